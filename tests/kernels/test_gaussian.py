"""Gaussian scores, features and moments, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._kernels.gaussian import (
    LANES,
    difference_moments,
    difference_scores,
    gap_norms,
    gap_products,
    gap_squares,
    single_scores,
    white_scores,
)


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


def test_scores_are_half_squared_distances(X):
    rng = np.random.default_rng(1)
    means, scales = rng.normal(100, 1, size=(4, 3)), rng.uniform(0.5, 2, size=(4, 3))
    scores = np.full((30, 3), np.nan)
    difference_scores(X, means, scales, scores)
    gaps = (X.astype(float)[:, :, None] - means) * scales
    assert_allclose(scores, -0.5 * (gaps**2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize(("d", "m"), [(1, 1), (3, 8), (5, 3)])
def test_white_scores_are_those_of_their_components_alone(d, m):
    rng = np.random.default_rng(0)
    white, shifts = rng.normal(size=(20, d, m)), rng.normal(size=(d, m))
    scores = np.full((20, m + 3), 7.0)
    white_scores(white, shifts, 2, scores)
    expected = np.full((20, m + 3), 7.0)
    expected[:, 2 : 2 + m] = -0.5 * ((white - shifts) ** 2).sum(axis=1)
    assert_allclose(scores, expected, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 9, LANES, LANES + 1, 2 * LANES + 15])
@pytest.mark.parametrize("d", [1, 3, 4, 5, 8])
def test_single_scores_are_right_for_the_numbers_given(n, d):
    rng = np.random.default_rng(n + d)
    X = rng.normal(1e4, 1, size=(n, d)).astype(np.float32)
    origin = np.full(d, 1e4, dtype=np.float32)
    scales = rng.uniform(0.5, 2, size=(3, d)).astype(np.float32)
    shifts = rng.normal(size=(3, d)).astype(np.float32)
    scores = np.full((n, 3), np.nan, dtype=np.float32)
    single_scores(X, origin, scales, shifts, scores)
    gaps = (X.astype(float) - origin)[:, None] * scales - shifts
    assert_allclose(scores, -0.5 * (gaps**2).sum(axis=2), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:overflow")  # without the compiler
def test_single_scores_say_whether_they_overflow():
    ones, scores = np.ones((1, 1), np.float32), np.empty((2, 1), np.float32)
    origin = np.array([-3e38], np.float32)
    assert not single_scores(np.array([[3e38], [1]], np.float32), origin, ones, ones, scores)
    assert single_scores(np.array([[-3e38], [-3e38]], np.float32), origin, ones, ones, scores)


def test_moments_are_about_the_means(X):
    rng = np.random.default_rng(2)
    means, resp = rng.normal(100, 1, size=(3, 4)), rng.random((30, 3))
    resp[::2, 0] = 0
    first, second = np.ones((3, 4)), np.ones((3, 4))
    difference_moments(X, means, resp, first, second)
    gaps = X.astype(float)[:, None] - means
    assert_allclose(first, 1 + np.einsum("nk,nkd->kd", resp, gaps), rtol=1e-13)
    assert_allclose(second, 1 + np.einsum("nk,nkd->kd", resp, gaps**2), rtol=1e-13)
