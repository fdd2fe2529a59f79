"""A few rows far away do not hide the clusters from mixtures that can do without them."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skvmf import SparseGaussianMixture, StudentTMixture

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
