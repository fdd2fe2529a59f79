"""How statistics move parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.posteriors.fenchel_young import FenchelYoungPosterior
from skvmf._engine.updates.closed_form import ClosedForm
from skvmf._engine.weights.modified_dirichlet import ModifiedDirichlet
from skvmf._engine.weights.updates import FixedWeights, MapWeights

SOFTMAX = FenchelYoungPosterior()
TSALLIS = FenchelYoungPosterior(2.0, 1.0)
SPARSE = ModifiedDirichlet(-20.0, 1e-3)
COUNTS, OLD = np.array([60.0, 30.0, 10.0]), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("posterior", [SOFTMAX, TSALLIS])
def test_weights_under_a_flat_prior_are_proportions(posterior):
    weights = MapWeights()(posterior, ModifiedDirichlet(), COUNTS, OLD)
    assert_array_equal(weights, [0.6, 0.3, 0.1])


def test_weights_of_a_softmax_are_at_the_mode():
    weights = MapWeights()(SOFTMAX, SPARSE, COUNTS, OLD)
    assert_allclose(weights, SPARSE.mode(COUNTS))
    assert weights[2] == 1e-3  # 10 rows are fewer than the prior takes


@pytest.mark.parametrize("seed", range(30))
def test_weights_of_a_sparse_posterior_never_lower_the_bound(seed):
    rng = np.random.default_rng(seed)
    old, counts = rng.dirichlet(np.ones(4)), 50 * rng.dirichlet(np.ones(4))
    prior = ModifiedDirichlet(rng.uniform(-10, 5), 1e-3)
    old = prior.lift(old)
    new = MapWeights()(TSALLIS, prior, counts, old)

    def bound(weights):
        return TSALLIS.weight_value(counts, weights) + prior.log_density(weights)

    assert bound(new) >= bound(old)
    assert_array_equal(new, prior.mode(counts) if bound(prior.mode(counts)) >= bound(old) else old)


def test_the_guard_holds_somewhere():
    """There are weights that the mode of the prior would make worse, and they stay."""
    prior, counts = ModifiedDirichlet(-5.0, 1e-3), np.array([12.0, 11.0, 9.0])
    held = [
        np.array_equal(MapWeights()(TSALLIS, prior, counts, old), old)
        for old in np.random.default_rng(0).dirichlet(np.full(3, 5.0), size=50)
    ]
    assert any(held)


def test_the_guard_holds_beside_a_component_that_has_left():
    """Weights that were 0 and stay so do not lift the guard of the others."""
    prior, counts = ModifiedDirichlet(-5.0, 1e-3), np.array([12.0, 11.0, 9.0, 0.0])
    held = [
        np.array_equal(MapWeights()(TSALLIS, prior, counts, old), old)
        for old in np.pad(np.random.default_rng(0).dirichlet(np.full(3, 5.0), 50), [(0, 0), (0, 1)])
    ]
    assert any(held)


def test_a_component_that_leaves_changes_the_weights_whatever_the_bound():
    prior, counts = ModifiedDirichlet(-5.0, 1e-3), np.array([12.0, 11.0, 0.0])
    for old in np.random.default_rng(0).dirichlet([5.0, 5.0, 0.5], size=50):
        weights = MapWeights()(TSALLIS, prior, counts, old)
        assert_array_equal(weights, prior.mode(counts))
        assert weights[2] == 0


def test_fixed_weights_stay():
    assert FixedWeights()(SOFTMAX, SPARSE, COUNTS, OLD) is OLD


def test_the_closed_form_is_the_maximum_of_the_family():
    class Family:
        def maximize(self, stats, components):
            return ("maximum", stats, components)

        def reseed(self, components, k, row):
            return ("moved", components, k, row)

    update = ClosedForm()
    assert update(Family(), "stats", "old") == ("maximum", "stats", "old")
    assert update.reseed(Family(), "old", None, 2, "row") == ("moved", "old", 2, "row")
