"""Sums of data rows by component."""

import numpy as np
import pytest

from skvmf._kernels.rows import (
    CACHED_COMPONENTS,
    CACHED_FEATURES,
    MAX_LISTED,
    add_dense_responsibilities,
    add_labelled_rows,
    add_sparse_responsibilities,
    listing_space,
    pack_rows,
    sum_for_many_components,
)

from .. import oracles

DTYPES = [np.float32, np.float64]


def some_shares(K, density, dtype):
    rng = np.random.default_rng(1)
    return (rng.uniform(0.1, 1, (30, K)) * (rng.uniform(size=(30, K)) < density)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 7, 8, 33])
def test_labelled_rows(d, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, d)).astype(dtype)
    labels = rng.integers(0, 5, 60).astype(np.int32)
    factors = rng.uniform(0, 2, 60)
    out = rng.standard_normal((6, d))
    expected = out.copy()
    add_labelled_rows(X, labels, factors, out)
    oracles.add_labelled_rows(X, labels, factors, expected)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 4, 7, 60])
@pytest.mark.parametrize(
    ("d", "K"), [(1, 1), (9, 2), (CACHED_FEATURES + 3, 5), (5, CACHED_COMPONENTS + 1), (8, 100)]
)
def test_dense_shares(n, d, K, dtype):
    rng = np.random.default_rng(0)
    X, resp = rng.standard_normal((n, d)), rng.uniform(size=(n, K)).astype(dtype)
    out = rng.standard_normal((K + K % 2, d))
    expected = out[:K] + resp.astype(float).T @ X
    add_dense_responsibilities(X, resp, out)
    np.testing.assert_allclose(out[:K], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 6, 20])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_packed_rows(K, density, dtype):
    resp = some_shares(K, density, dtype)
    rows, where = np.nonzero(resp)
    ends = np.empty(30, dtype=np.int64)
    columns, packed = np.empty(len(where) + 1, dtype=np.int32), np.empty(len(where) + 1, dtype)
    pack_rows(resp, ends, columns, packed)
    np.testing.assert_array_equal(ends, np.searchsorted(rows, np.arange(30), side="right"))
    np.testing.assert_array_equal(columns[:-1], where)
    np.testing.assert_array_equal(packed[:-1], resp[rows, where])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 6, 20, 63, 64, 65, 200])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("d", [9, 300])
def test_sparse_shares(d, K, density, dtype):
    rng, resp = np.random.default_rng(2), some_shares(K, density, dtype)
    X, out = rng.standard_normal((30, d)).astype(dtype), rng.standard_normal((K, d))
    expected = out + resp.astype(float).T @ X.astype(float)
    add_sparse_responsibilities(X, resp, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 6, 20, 63, 64, 65, 200])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("d", [9, 300])
def test_sums_by_component_have_the_bits_of_those_by_row(d, K, density, dtype):
    resp = some_shares(K, density, dtype)
    X = np.random.default_rng(2).standard_normal((30, d)).astype(dtype)
    by_row, by_component = np.zeros((K, d)), np.full((K, d), np.nan)
    add_sparse_responsibilities(X, resp, by_row)
    sum_for_many_components(X, resp, listing_space(K), by_component)
    np.testing.assert_array_equal(by_component, by_row)


def test_more_shares_than_are_listed_at_once():
    rng, K = np.random.default_rng(3), 300
    resp = rng.random((400, K)) * (rng.random((400, K)) < 0.8)
    assert np.count_nonzero(resp) > MAX_LISTED
    X, out = rng.standard_normal((400, 5)), np.zeros((2, K, 5))
    add_sparse_responsibilities(X, resp, out[0])
    sum_for_many_components(X, resp, listing_space(K), out[1])
    np.testing.assert_array_equal(out[1], out[0])


def test_sums_do_not_round_in_float32():
    X = np.ones((100_000, 1), dtype=np.float32)
    out = np.zeros((1, 1))
    add_labelled_rows(X, np.zeros(100_000, dtype=np.int32), np.full(100_000, 0.1), out)
    np.testing.assert_allclose(out, 10_000, rtol=1e-11)
