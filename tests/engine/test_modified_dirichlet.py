"""The weight prior and its update."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.model import ModifiedDirichlet


def test_flat_is_proportions():
    counts = np.array([3.0, 0.0, 1.0])
    prior = ModifiedDirichlet()
    assert prior.flat
    assert ModifiedDirichlet(np.ones(3)).flat
    assert_array_equal(prior.mode(counts), [0.75, 0, 0.25])
    assert prior.log_density(np.array([0.2, 0.8])) == 0


@pytest.mark.parametrize("alpha", [3.0, 0.5, -4.0, np.array([1.0, -3.0, 2.0, 0.0])])
def test_mode_maximizes_the_posterior(alpha):
    counts = np.array([20.0, 5.0, 1.0, 40.0])
    prior = ModifiedDirichlet(alpha, 1e-3)
    mode = prior.mode(counts)
    assert_allclose(mode.sum(), 1)
    assert (mode >= 1e-3).all()

    def objective(weights):
        return counts @ np.log(weights) + prior.log_density(weights)

    others = 1e-3 + (1 - 4e-3) * np.random.default_rng(0).dirichlet(np.ones(4), size=500)
    assert max(map(objective, others)) <= objective(mode)


def test_a_component_without_counts_is_pruned():
    weights = ModifiedDirichlet(-1.0, 1e-3).mode(np.array([10.0, 0.0, 5.0]))
    assert weights[1] == 0
    assert (weights[[0, 2]] > 0).all()
    assert_allclose(weights.sum(), 1)


def test_pruning_does_not_change_what_is_compared():
    prior = ModifiedDirichlet(-2.0, 1e-4)
    resting = prior.log_density(np.array([1 - 1e-4, 1e-4]))
    pruned = prior.log_density(np.array([1.0, 0.0]))
    assert_allclose(resting, pruned, rtol=1e-4)
    assert np.isfinite(ModifiedDirichlet(2.0, 0.0).log_density(np.array([1.0, 0.0])))


def test_small_counts_are_not_lost_beside_a_one():
    counts = np.array([1.0, 1e-9, 1e-17, 1e-300])
    assert_allclose(ModifiedDirichlet(1.0, 1e-305).mode(counts), counts, rtol=1e-8)
    assert_array_equal(ModifiedDirichlet(1.0, 1e-305).clip(np.array([1.0, 1e-20])), [1.0, 1e-20])


@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize("seed", range(30))
def test_only_weights_below_the_floor_are_moved_up_to_it(seed, floor):
    rng = np.random.default_rng(seed)
    counts = rng.exponential(size=7) ** 3 * [1, 1, 0, 1, 1, 1, 1]
    for weights in (counts / counts.sum(), ModifiedDirichlet(-0.5, 1e-3).mode(counts)):
        if (weights[weights > 0] >= floor).all():
            assert_array_equal(ModifiedDirichlet(-0.5, floor).clip(weights), weights)
    lifted = ModifiedDirichlet(-0.5, 0.1).clip(np.array([0.7, 0.0, 0.27, 0.03]))
    assert_allclose(lifted, [0.9 * 70 / 97, 0, 0.9 * 27 / 97, 0.1])


@pytest.mark.parametrize("size", [1e15, 1e200, 1e300])
def test_the_strongest_priors_stay_finite(size):
    counts, K = np.array([20.0, 5.0, 1.0, 40.0]), 4
    above, below = ModifiedDirichlet(size, 1e-3), ModifiedDirichlet(-size, 1e-3)
    assert_allclose(above.mode(counts), 1 / K)
    assert_allclose(np.sort(below.mode(counts)), [1e-3, 1e-3, 1e-3, 1 - 3e-3])
    for prior in (above, below):
        assert np.isfinite(prior.log_density(prior.mode(counts)))
        assert np.isfinite(prior.log_density(np.array([1.0, 5e-324, 0.0, 0.0])))


@pytest.mark.parametrize("alpha", [1e301, -1.7e308, np.array([1.0, 1e308]), np.nan, np.inf])
def test_priors_whose_density_overflows_are_refused(alpha):
    with pytest.raises(ValueError, match=r"weight_concentration_prior must be finite.*1e.300"):
        ModifiedDirichlet(alpha, 1e-3)
