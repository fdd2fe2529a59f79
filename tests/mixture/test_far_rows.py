"""A few rows far away do not hide the clusters from mixtures that can do without them."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture

from ..pairwise import pairwise
from .kinds import TYPES

CASES = {
    "heavy tails": (StudentTMixture, {}),
    "heavy tails and a background": (StudentTMixture, {"background": True}),
    "two starts": (StudentTMixture, {"covariance_type": "diag", "n_init": 2}),
    "a background": (SparseGaussianMixture, {"background": True}),
}


@pytest.mark.slow
@pairwise(n_far=[1, 10], far=[1e2, 1e4, 1e8], case=CASES)
def test_clusters_are_found_beside_far_rows(case, far, n_far):
    cls, options = CASES[case]
    X, y = make_blobs(2000, centers=5, n_features=4, random_state=2)
    X[:n_far] = far * np.random.default_rng(2).normal(size=(n_far, 4))
    mixture = cls(5, random_state=0, **options).fit(X, sample_weight=np.full(len(X), 2.0))
    assert adjusted_rand_score(y[n_far:], mixture.labels_[n_far:]) > 0.98
    if mixture.background:
        assert (mixture.labels_[:n_far] == -1).mean() >= 0.9


@pytest.mark.parametrize(
    ("n_between", "tails"), [(20, 1.0), (60, "estimated"), (150, 1.0), (270, "estimated")]
)
def test_heavy_tails_find_clusters_among_rows_between_them(n_between, tails):
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 200)
    clusters = centres[y] + rng.normal(size=(600, 2))
    X = np.vstack([clusters, rng.uniform(-20, 28, size=(n_between, 2))])
    fit = StudentTMixture(3, degrees_of_freedom=tails, random_state=0).fit(X)
    gaps = np.linalg.norm(fit.means_[:, np.newaxis] - centres, axis=2)
    assert gaps.min(axis=0).max() < 0.3
    assert adjusted_rand_score(y, fit.labels_[:600]) > 0.95


@pairwise(
    covariance_type=TYPES,
    dtype=[np.float32, np.float64],
    mixture=[SparseGaussianMixture, StudentTMixture],
)
def test_far_rows_get_finite_probabilities(mixture, covariance_type, dtype):
    X, _ = make_blobs(300, 3, centers=3, random_state=0)
    fit = mixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    far = np.array([[1e200, -1e200, 0], [1e30, 1e30, 1e38], [-1e9, 3, 4]])
    far = far[1:].astype(dtype) if dtype == np.float32 else far
    resp = fit.predict_proba(far)
    assert resp.dtype == dtype
    assert np.isfinite(resp).all()
    assert_allclose(resp.sum(axis=1), 1, rtol=1e-6)
    assert np.isfinite(fit.score_samples(far)).all()


TOO_FAR = re.compile(
    r"(The covariance of the data is singular: the rows lie in a subspace\. Increase reg_covar "
    r"\(now 1e-06\) or choose a simpler covariance_type\."
    r"|Every covariance is singular: the rows of each component lie in a subspace\. Increase "
    r"reg_covar \(now 1e-06\), reduce n_components, or choose a simpler covariance_type\.)"
    r" If a few rows lie far from all others, no reg_covar helps: leave them out, set "
    r"background=True, or take a StudentTMixture\."
)


@pairwise(
    far=[1e8, 1e9, 1e12],
    dtype=[np.float64, np.float32],
    mixture=[SparseGaussianMixture, RelativeGMM],
)
def test_a_row_too_far_for_covariances_is_fitted_or_told(mixture, far, dtype):
    X = np.random.default_rng(0).normal(size=(500, 3))
    X[7] *= far
    X = X.astype(dtype)
    for covariance_type in TYPES:
        matrices = covariance_type in ("full", "tied")
        refused = ""
        try:
            fit = mixture(3, covariance_type=covariance_type, random_state=0).fit(X)
        except ValueError as error:
            refused = str(error)
        if refused:
            assert matrices
            assert TOO_FAR.fullmatch(refused)
        else:
            assert far == 1e8 or not matrices
            assert np.isfinite(fit.score_samples(X)).all()
    fit = mixture(3, background=True, random_state=0).fit(X)
    assert np.isfinite(fit.score_samples(X)).all()
    assert fit.labels_[7] == -1
