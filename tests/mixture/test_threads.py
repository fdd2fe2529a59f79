"""Fits are bit-identical for any number of threads."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..hooks import few_rows_in_blocks
from ..pairwise import pairwise
from .checks import assert_same_bits
from .kinds import TYPES

pytestmark = pytest.mark.bits


def rows(n, d, noise):
    """Return rows about five centres."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(5, d))
    return centres[rng.integers(5, size=n)] + noise * rng.normal(size=(n, d))


def assert_same(mixture, X):
    """The bits of a fit, and of a stream, are the same on one thread and on three."""
    mixture.set_params(n_components=5, random_state=0, max_iter=4, tol=0)
    fits, streams = [], []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads), few_rows_in_blocks(256):
            fits.append(clone(mixture).fit(X))
            streams.append(clone(mixture).partial_fit(X))
    assert_same_bits(*fits)
    assert_same_bits(*streams)


@pairwise(
    kind=[
        (SparseGaussianMixture, {}),
        (StudentTMixture, {}),
        (RelativeGMM, {"solver": "ecm"}),
        (RelativeGMM, {"solver": "em"}),
    ],
    covariance_type=TYPES,
    posterior=[{}, {"entmax_alpha": 2.0}, {"temperature": 0}],
    dtype=[np.float32, np.float64],
    missing=[0, 0.3],
)
def test_gaussians_and_students(kind, covariance_type, posterior, dtype, missing):
    cls, options = kind
    mixture = cls(covariance_type=covariance_type, **options, **posterior)
    X = rows(1500, 4, 3.0).astype(dtype)
    if missing:
        mixture.set_params(missing_values="marginal")
        X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    assert_same(mixture, X)


@pairwise(
    dtype=[np.float32, np.float64],
    form=[np.asarray, sparse.csr_array],
    init=["kmeans", "k-means++", "random", "random_from_data"],
    temperature=[0, 1],
)
def test_directions(dtype, form, init, temperature):
    X = form(rows(2000, 8, 4.0).astype(dtype))
    assert_same(VonMisesFisherMixture(init_params=init, temperature=temperature), X)
