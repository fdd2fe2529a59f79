"""Gaussian features and moments, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._kernels.gaussian import difference_moments, gap_norms, gap_products, gap_squares


@pytest.fixture(params=[np.float32, np.float64])
def X(request):
    return (np.random.default_rng(0).normal(size=(30, 4)) + 100).astype(request.param)


def test_features_about_an_origin(X):
    origin = np.array([100.0, 99, 101, 100])
    gaps = X.astype(float) - origin
    squares, norms = np.empty((30, 8)), np.empty((30, 5))
    gap_squares(X, origin, squares)
    gap_norms(X, origin, norms)
    pairs = np.empty((30, 14))
    gap_products(X, origin, pairs)
    i, j = np.triu_indices(4)
    assert_array_equal(pairs, np.hstack([gaps, gaps[:, i] * gaps[:, j]]))
    assert_array_equal(squares, np.hstack([gaps, gaps**2]))
    assert_array_equal(norms[:, :4], gaps)
    assert_allclose(norms[:, 4], (gaps**2).sum(axis=1), rtol=1e-15)


def test_moments_are_about_the_means(X):
    rng = np.random.default_rng(2)
    means, resp = rng.normal(100, 1, size=(3, 4)), rng.random((30, 3))
    resp[::2, 0] = 0
    first, second = np.ones((3, 4)), np.ones((3, 4))
    difference_moments(X, means, resp, first, second)
    gaps = X.astype(float)[:, None] - means
    assert_allclose(first, 1 + np.einsum("nk,nkd->kd", resp, gaps), rtol=1e-13)
    assert_allclose(second, 1 + np.einsum("nk,nkd->kd", resp, gaps**2), rtol=1e-13)
