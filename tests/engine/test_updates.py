"""How statistics move parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.contracts import Update
from skvmf._engine.model import FenchelYoungPosterior, Mixture, ModifiedDirichlet

SOFTMAX = FenchelYoungPosterior()
TSALLIS = FenchelYoungPosterior(2.0, 1.0)
SPARSE = ModifiedDirichlet(-20.0, 1e-3)
COUNTS, OLD = np.array([60.0, 30.0, 10.0]), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("posterior", [SOFTMAX, TSALLIS])
def test_weights_under_a_flat_prior_are_proportions(posterior):
    weights = Mixture(None, posterior, ModifiedDirichlet()).new_weights(COUNTS, OLD)
    assert_array_equal(weights, [0.6, 0.3, 0.1])


def test_weights_of_a_softmax_are_at_the_mode_and_fixed_ones_stay():
    weights = Mixture(None, SOFTMAX, SPARSE).new_weights(COUNTS, OLD)
    assert_allclose(weights, SPARSE.mode(COUNTS))
    assert weights[2] == 1e-3  # 10 rows are fewer than the prior takes
    assert Mixture(None, fixed_weights=True).new_weights(COUNTS, OLD) is OLD


@pytest.mark.parametrize("seed", range(30))
def test_weights_of_a_sparse_posterior_never_lower_the_bound(seed):
    rng = np.random.default_rng(seed)
    old, counts = rng.dirichlet(np.ones(4)), 50 * rng.dirichlet(np.ones(4))
    prior = ModifiedDirichlet(rng.uniform(-10, 5), 1e-3)
    old = prior.clip(old)
    new = Mixture(None, TSALLIS, prior).new_weights(counts, old)

    def bound(weights):
        return TSALLIS.value_of_weights(counts, weights) + prior.log_density(weights)

    assert bound(new) >= bound(old)
    assert_array_equal(new, prior.mode(counts) if bound(prior.mode(counts)) >= bound(old) else old)


@pytest.mark.parametrize("left", [0, 1])
def test_the_guard_holds_somewhere_also_beside_a_component_that_has_left(left):
    """There are weights that the mode of the prior would make worse, and they stay."""
    prior, counts = ModifiedDirichlet(-5.0, 1e-3), np.pad([12.0, 11.0, 9.0], (0, left))
    several = np.random.default_rng(0).dirichlet(np.full(3, 5.0), size=50)
    held = [
        np.array_equal(Mixture(None, TSALLIS, prior).new_weights(counts, old), old)
        for old in np.pad(several, [(0, 0), (0, left)])
    ]
    assert any(held)


def test_a_component_that_leaves_changes_the_weights_whatever_the_bound():
    prior, counts = ModifiedDirichlet(-5.0, 1e-3), np.array([12.0, 11.0, 0.0])
    for old in np.random.default_rng(0).dirichlet([5.0, 5.0, 0.5], size=50):
        weights = Mixture(None, TSALLIS, prior).new_weights(counts, old)
        assert_array_equal(weights, prior.mode(counts))
        assert weights[2] == 0


def test_the_plain_update_is_the_maximum_of_the_family():
    class Family:
        def maximize(self, stats, components):
            return ("maximum", stats, components)

        def reseed(self, components, k, row):
            return ("moved", components, k, row)

    update = Update()
    assert update(Family(), "stats", "old") == ("maximum", "stats", "old")
    assert update.reseed(Family(), "old", None, 2, "row") == ("moved", "old", 2, "row")
