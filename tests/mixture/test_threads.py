"""Fits are bit-identical for any number of threads."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf._engine.families import vonmises_fisher
from skvmf._engine.families.responsibilities import DenseResponsibilities
from skvmf._engine.rows import blocks

from ..dask.data import blobs
from ..hooks import few_rows_in_blocks
from ..pairwise import pairwise
from .checks import assert_same_bits
from .kinds import TYPES

pytestmark = pytest.mark.bits


def assert_same(mixture, X):
    """On one thread and on three, the bits of a fit, and of a stream after it, are the same."""
    mixture.set_params(n_components=3, random_state=0, max_iter=2, tol=0)
    fits, n_rows = [], X.shape[0]
    for n_threads in (1, 3):
        with threadpool_limits(n_threads), few_rows_in_blocks(n_rows // 6):
            fits.append(clone(mixture).fit(X))
    assert_same_bits(*fits)
    for n_threads, fitted in zip((1, 3), fits, strict=True):
        with threadpool_limits(n_threads), few_rows_in_blocks(n_rows // 6):
            fitted.partial_fit(X)
    assert_same_bits(*fits)


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture, RelativeGMM],
    covariance_type=TYPES,
    posterior=[{}, {"entmax_alpha": 2.0}, {"temperature": 0}],
    dtype=[np.float32, np.float64],
    missing=[0, 0.3],
)
def test_gaussians_and_students(kind, covariance_type, posterior, dtype, missing):
    mixture = kind(covariance_type=covariance_type, **posterior)
    X = blobs(360, 4, dtype, noise=3.0)
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
    X = form(blobs(800, 8, dtype, noise=4.0))
    assert_same(VonMisesFisherMixture(init_params=init, temperature=temperature), X)


def test_sums_are_laid_out_alike_whatever_was_used_before():
    X, resp, buffers = np.ones((9, 2)), np.ones((9, 4)), blocks.BufferPool()
    buffers.release("sums", buffers.acquire("sums", (4, 2)).T)
    block = blocks.DenseBlock(X, np.ones(9), None, 0, buffers)
    sums = vonmises_fisher.dense_row_sums(block, DenseResponsibilities(resp), 4)
    assert sums.flags.c_contiguous  # or sums over it would be in another order
