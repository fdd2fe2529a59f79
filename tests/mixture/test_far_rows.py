"""A few rows far away do not hide the clusters from mixtures that can do without them."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture

from ..pairwise import pairwise

CASES = {
    "heavy tails": (StudentTMixture, {}),
    "heavy tails and a background": (StudentTMixture, {"background": True}),
    "two starts": (StudentTMixture, {"covariance_type": "diag", "n_init": 2}),
    "a background": (SparseGaussianMixture, {"background": True}),
}


@pairwise(n_far=[1, 10], far=[1e2, 1e4, 1e8], case=CASES)
def test_clusters_are_found_beside_far_rows(case, far, n_far):
    cls, options = CASES[case]
    X, y = make_blobs(2000, centers=5, n_features=4, random_state=2)
    X[:n_far] = far * np.random.default_rng(2).normal(size=(n_far, 4))
    mixture = cls(5, random_state=0, **options).fit(X, sample_weight=np.full(len(X), 2.0))
    assert adjusted_rand_score(y[n_far:], mixture.labels_[n_far:]) > 0.98
    if mixture.background:
        assert (mixture.labels_[:n_far] == -1).mean() >= 0.9


@pytest.mark.parametrize("n_between", [20, 60, 150])
def test_heavy_tails_find_clusters_among_rows_between_them(n_between):
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])
    rng = np.random.default_rng(0)
    clusters = np.repeat(centres, 200, axis=0) + rng.normal(size=(600, 2))
    X = np.vstack([clusters, rng.uniform(-20, 28, size=(n_between, 2))])
    means = StudentTMixture(3, random_state=0).fit(X).means_
    gaps = np.linalg.norm(means[:, np.newaxis] - centres, axis=2)
    assert gaps.min(axis=0).max() < 0.3


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("mixture", [SparseGaussianMixture, RelativeGMM])
def test_what_a_row_too_far_for_covariances_needs_is_told(mixture):
    X = np.random.default_rng(0).normal(size=(500, 3))
    X[7] *= 1e9
    with pytest.raises(ValueError, match="a few rows lie far .* set background=True"):
        mixture(3, random_state=0).fit(X)
    assert np.isfinite(mixture(3, background=True, random_state=0).fit(X).lower_bound_)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("mixture", [SparseGaussianMixture, StudentTMixture, RelativeGMM])
def test_rows_whose_squares_underflow_count_as_equal(mixture, background):
    X = 1e-160 * np.random.default_rng(0).normal(size=(500, 3))
    fit = mixture(3, random_state=0, background=background).fit(X)
    assert np.isfinite(fit.score_samples(X)).all()
