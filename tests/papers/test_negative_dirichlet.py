"""Tu, "Modified Dirichlet distribution", section 3: Figures 1 to 4.

Five components for data of two. The paper's figures have no numbers and it does not give its
true model; the bars are for the model below, of which 10,000 points have a mean log-likelihood
of -3.32.
"""

from functools import cache

import numpy as np
import pytest

from skvmf import SparseGaussianMixture

from ..conftest import FULL_SIZE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N_RUNS = 100 if FULL_SIZE else 30
MEANS = np.array([[0.0, 0.0], [4.0, 0.0]])
ROOTS = np.linalg.cholesky([[[1, 0.5], [0.5, 1]], [[1, -0.5], [-0.5, 1]]])


def draw(n_samples, rng):
    labels = rng.integers(2, size=n_samples)
    noise = rng.normal(size=(n_samples, 2, 1))
    return MEANS[labels] + (ROOTS[labels] @ noise)[:, :, 0]


@cache
def runs(n_samples, alpha, flat_start):
    """Return the mean test log-likelihood and the effective number of components of each run."""
    results = []
    for seed in range(N_RUNS):
        rng = np.random.default_rng(seed)
        X, test = draw(n_samples, rng), draw(10_000, rng)
        mixture = SparseGaussianMixture(
            5,
            weight_concentration_prior=alpha,
            weight_floor=0 if alpha == 1 else 1e-5,
            flat_start=flat_start,
            init_params="random_from_data",
            max_iter=2000,
            tol=1e-7,
            random_state=seed,
        ).fit(X)
        results.append([mixture.score(test), mixture.effective_n_components_])
    return np.array(results)


@pytest.mark.parametrize("flat_start", [True, False])
def test_a_negative_parameter_finds_two_components(flat_start):
    scores, numbers = runs(200, -5.0, flat_start).T
    assert scores.mean() >= -3.37
    assert np.mean((numbers >= 1.95) & (numbers <= 2.1)) >= 0.95


def test_maximum_likelihood_keeps_all_components():
    numbers = runs(200, 1.0, True)[:, 1]
    assert 3.6 <= numbers.mean() <= 4.3


@pytest.mark.parametrize("n_samples", [20, 200])
def test_a_negative_parameter_beats_maximum_likelihood(n_samples):
    alpha, least = {20: (-2.0, 1.5), 200: (-5.0, 0.05)}[n_samples]
    gains = runs(n_samples, alpha, True)[:, 0] - runs(n_samples, 1.0, True)[:, 0]
    assert gains.mean() >= least
    assert np.median(gains) >= least
