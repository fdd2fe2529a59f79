"""Which rows of a sample lie far from all others."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skvmf._engine.rows import make_rows
from skvmf._engine.starts import rows_in_groups


def near(X, weights=None):
    return rows_in_groups(make_rows(X, weights, unit=False))


def clusters(n=3000, d=4, K=5, seed=0):
    rng = np.random.default_rng(seed)
    return 10 * rng.normal(size=(K, d))[rng.integers(K, size=n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("far", [3e2, 1e4, 1e9])
@pytest.mark.parametrize("n_far", [1, 20])
def test_rows_far_from_all_others_are_left_out(n_far, far, offset):
    X = clusters()
    X[:n_far] = far * np.random.default_rng(1).normal(size=(n_far, 4))
    assert_array_equal(near(X + offset), np.arange(n_far, len(X)))


def test_one_row_far_from_few_others_is_left_out():
    X = clusters(100)
    X[0] = 1e4
    assert_array_equal(near(X), np.arange(1, 100))


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("kind", ["normal", "uniform", "of two spreads"])
def test_ordinary_rows_stay(kind, d):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, d)) if kind == "uniform" else rng.normal(size=(3000, d))
    if kind == "of two spreads":
        X[::4] *= 20
    assert len(near(X)) >= 0.998 * len(X)


def first_moved(n, factor, offset=0.0):
    """Return clusters of which the first rows lie far off."""
    X = clusters()
    X[:n] = offset + factor * np.random.default_rng(1).normal(size=(n, 4))
    return X


STAYING = {
    "a small cluster however far": first_moved(40, 1.0, 1e4),
    "many that are far": first_moved(300, 1e4),
    **{f"of scale {scale}": clusters() * scale for scale in (1e-300, 1e-3, 1e99)},
    "equal": np.ones((50, 3)),
    "one": np.ones((1, 3)),
    "few": np.arange(6.0).reshape(2, 3),
}


@pytest.mark.parametrize("X", STAYING.values(), ids=STAYING)
def test_all_rows_stay(X):
    assert len(near(X)) == len(X)


def test_rows_without_weight_are_no_company():
    X, weights = clusters(), np.ones(3000)
    X[:100] = 1e4 + np.random.default_rng(1).normal(size=(100, 4))
    weights[1:100] = 0
    assert_array_equal(near(X, weights), np.arange(100, 3000))
