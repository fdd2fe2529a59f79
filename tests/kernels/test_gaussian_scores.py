"""Gaussian scores with rows side by side, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._kernels.gaussian import (
    BLOCK_FEATURES,
    BLOCK_ROWS,
    count_rows_below,
    diagonal_scores,
    full_scores,
    spherical_scores,
    tied_scores,
)

SHAPES = [
    (1, 1, 1),
    (5, 3, 9),
    (BLOCK_ROWS - 1, 4, 8),
    (BLOCK_ROWS, 5, 2),
    (BLOCK_ROWS + 1, 8, 17),
    (2 * BLOCK_ROWS + 15, BLOCK_FEATURES + 1, 3),
    (40, 2 * BLOCK_FEATURES + 2, 10),
]


def columns(n, dtype=float):
    """Return what kernels work in, with numbers that must not come out."""
    return np.full(n * BLOCK_ROWS, np.nan, dtype)


def fours(array, axes=1):
    missing = -array.shape[-1] % 4
    return np.pad(array, [(0, 0)] * (array.ndim - axes) + [(0, missing)] * axes)


@pytest.fixture(params=SHAPES, ids=str)
def task(request):
    """Rows, origin, means and factors, far from zero."""
    n, d, K = request.param
    rng = np.random.default_rng(n + d + K)
    origin = rng.normal(1e6, 1, size=d)
    X, means = rng.normal(1e6, 1, size=(n, d)), rng.normal(size=(K, d))
    return X, origin, means, rng.uniform(-1, 1, size=K), np.full((n, K), np.nan)


def roots(K, d):
    return np.tril(np.random.default_rng(0).normal(size=(K, d, d)))


@pytest.mark.parametrize(
    ("of_rows", "of_others", "rtol"),
    [
        (np.float64, np.float64, 1e-13),
        (np.float32, np.float64, 1e-13),
        (np.float32, np.float32, 2e-5),
    ],
)
def test_diagonal_scores_are_scaled_squared_distances(task, of_rows, of_others, rtol):
    X, origin, means, factors, out = task
    X = X.astype(of_rows)
    origin, means, factors, out = (a.astype(of_others) for a in (origin, means, factors, out))
    scales = np.random.default_rng(1).uniform(0.5, 2, size=means.shape).astype(of_others)
    work = columns(BLOCK_FEATURES, of_others), columns(len(means), of_others)
    diagonal_scores(X, origin, fours(means), fours(scales), factors, *work, out)
    gaps = (X.astype(float)[:, None] - origin - means) * scales
    assert_allclose(out, factors * (gaps**2).sum(axis=2), rtol=rtol)


@pytest.mark.parametrize("n", [1, BLOCK_ROWS + 3])
def test_rows_without_a_large_score_are_counted(n):
    scores = np.full((n, 2), -50, np.float32)
    for last, count in [([-50, -50], 0), ([-51, -50], 0), ([-51, -60], 1), ([-np.inf] * 2, 1)]:
        scores[-1] = last
        assert count_rows_below(scores, np.float32(-50)) == count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spherical_scores_are_squared_distances(task, dtype):
    X, origin, means, factors, out = task
    X = X.astype(dtype)
    rest = origin, fours(means), factors, columns(BLOCK_FEATURES), columns(len(means))
    spherical_scores(X, *rest, out)
    gaps = X.astype(float)[:, None] - origin - means
    assert_allclose(out, factors * (gaps**2).sum(axis=2), rtol=1e-13)
    last = out[-1:].copy()
    spherical_scores(X[-1:].copy(), *rest, last)
    assert_array_equal(last, out[-1:])  # rows beside a row do not touch it


def test_tied_scores_are_squared_distances_of_white_rows(task):
    X, origin, means, factors, out = task
    root = roots(1, len(origin))[0]
    D = len(fours(origin))
    work = columns(2 * D), columns(len(means))
    tied_scores(X, origin, fours(root, 2), fours(means), factors, *work, out)
    gaps = ((X - origin) @ root.T)[:, None] - means
    assert_allclose(out, factors * (gaps**2).sum(axis=2), rtol=1e-11)


def test_full_scores_are_squared_lengths_of_white_differences(task):
    X, origin, means, factors, out = task
    factor_roots = roots(*means.shape)
    D = len(fours(origin))
    work = columns(2 * D + 4), columns(len(means))
    full_scores(X, origin, fours(factor_roots, 2), fours(means), factors, *work, out)
    white = np.einsum("kij,nkj->nki", factor_roots, X[:, None] - origin - means)
    assert_allclose(out, factors * (white**2).sum(axis=2), rtol=1e-12)
