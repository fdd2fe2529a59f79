"""The weight prior and its update."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.priors import ModifiedDirichlet


def test_flat_is_proportions():
    counts = np.array([3.0, 0.0, 1.0])
    prior = ModifiedDirichlet()
    assert prior.flat and ModifiedDirichlet(np.ones(3)).flat
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
    assert weights[1] == 0 and (weights[[0, 2]] > 0).all()
    assert_allclose(weights.sum(), 1)


def test_pruning_does_not_change_what_is_compared():
    prior = ModifiedDirichlet(-2.0, 1e-4)
    resting = prior.log_density(np.array([1 - 1e-4, 1e-4]))
    pruned = prior.log_density(np.array([1.0, 0.0]))
    assert_allclose(resting, pruned, rtol=1e-4)
    assert np.isfinite(ModifiedDirichlet(2.0, 0.0).log_density(np.array([1.0, 0.0])))
