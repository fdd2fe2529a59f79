"""Sums of data rows by component."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skvmf._engine.rows.reading import check_structure
from skvmf._kernels.rows import (
    CACHED_COMPONENTS,
    CACHED_FEATURES,
    MAX_LISTED,
    add_dense_responsibilities,
    add_labelled_rows,
    add_sparse_responsibilities,
    csr_dot,
    csr_normalize,
    csr_row_scales,
    csr_scatter,
    listing_space,
    normalize_rows,
    pack_rows,
    row_scales,
    sum_for_many_components,
    widen,
)

from .. import oracles
from ..pairwise import pairwise

DTYPES = [np.float32, np.float64]
FORMS = [np.asarray, sparse.csr_array]


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
    assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


@pairwise(
    shape=[(1, 1), (9, 2), (CACHED_FEATURES + 3, 5), (5, CACHED_COMPONENTS + 1), (8, 100)],
    n=[1, 4, 7, 60],
    dtype=DTYPES,
)
def test_dense_shares(shape, n, dtype):
    d, K = shape
    rng = np.random.default_rng(0)
    X, resp = rng.standard_normal((n, d)), rng.uniform(size=(n, K)).astype(dtype)
    out = rng.standard_normal((K + K % 2, d))
    expected = out[:K] + resp.astype(float).T @ X
    add_dense_responsibilities(X, resp, out)
    assert_allclose(out[:K], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 6, 20])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_packed_rows(K, density, dtype):
    resp = some_shares(K, density, dtype)
    rows, where = np.nonzero(resp)
    ends = np.empty(30, dtype=np.int64)
    columns, packed = np.empty(len(where) + 1, dtype=np.int32), np.empty(len(where) + 1, dtype)
    pack_rows(resp, ends, columns, packed)
    assert_array_equal(ends, np.searchsorted(rows, np.arange(30), side="right"))
    assert_array_equal(columns[:-1], where)
    assert_array_equal(packed[:-1], resp[rows, where])


@pairwise(K=[1, 6, 20, 63, 64, 65, 200], density=[0.0, 0.2, 1.0], d=[9, 300], dtype=DTYPES)
def test_sparse_shares(K, density, d, dtype):
    """Summed by row, and by component with the same bits."""
    rng, resp = np.random.default_rng(2), some_shares(K, density, dtype)
    X, before = rng.standard_normal((30, d)).astype(dtype), rng.standard_normal((K, d))
    out, by_row, by_component = before.copy(), np.zeros((K, d)), np.full((K, d), np.nan)
    add_sparse_responsibilities(X, resp, out)
    expected = before + resp.astype(float).T @ X.astype(float)
    assert_allclose(out, expected, rtol=1e-13, atol=1e-13)
    add_sparse_responsibilities(X, resp, by_row)
    sum_for_many_components(X, resp, listing_space(K), by_component)
    assert_array_equal(by_component, by_row)


def test_more_shares_than_are_listed_at_once():
    rng, K = np.random.default_rng(3), 300
    resp = rng.random((400, K)) * (rng.random((400, K)) < 0.8)
    assert np.count_nonzero(resp) > MAX_LISTED
    X, out = rng.standard_normal((400, 5)), np.zeros((2, K, 5))
    add_sparse_responsibilities(X, resp, out[0])
    sum_for_many_components(X, resp, listing_space(K), out[1])
    assert_array_equal(out[1], out[0])


def test_sums_do_not_round_in_float32():
    X = np.ones((100_000, 1), dtype=np.float32)
    out = np.zeros((1, 1))
    add_labelled_rows(X, np.zeros(100_000, dtype=np.int32), np.full(100_000, 0.1), out)
    assert_allclose(out, 10_000, rtol=1e-11)


# Half precision, against NumPy.


def test_every_half_is_the_same_number_in_single_precision():
    """Subnormal numbers, infinities and each nan among them: the same bits."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    out = np.empty(2**16, dtype=np.float32)
    widen(halves.view(np.int16), out)
    assert_array_equal(out.view(np.int32), halves.astype(np.float32).view(np.int32))


# Lengths of rows.


def scales_of(X):
    scales = np.full(X.shape[0], np.nan)
    if sparse.issparse(X):
        with np.errstate(over="ignore"):  # squares may overflow: such a row is extreme
            csr_row_scales(X.indptr, X.data, 1e-12, 1e12, scales)
    else:
        row_scales(X, 1e-12, 1e12, scales)
    return scales


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scales_are_inverse_lengths(d, dtype, form):
    X = np.random.default_rng(0).normal(size=(20, d)).astype(dtype)
    X[3] = 0
    X[4] *= 1e20
    X[5] *= 1e-20
    scales = scales_of(form(X))
    assert (scales[3], scales[4], scales[5]) == (0, -1, -1)
    ordinary = np.r_[0:3, 6:20]
    lengths = np.linalg.norm(X[ordinary].astype(float), axis=1)
    assert_allclose(scales[ordinary], 1 / lengths, rtol=1e-15)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_not_finite_have_no_scale(bad, dtype, form):
    X = np.ones((2, 21), dtype=dtype)
    X[1, 17] = bad
    scales = scales_of(form(X))
    assert scales[0] > 0
    assert scales[1] == -1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("magnitude", [5e-324, 1e-310, 1e-160, 1.0, 1e160, 1e307])
def test_lengths_neither_over_nor_underflow(magnitude, form):
    X = np.random.default_rng(0).integers(-9, 10, size=(20, 5)).astype(float)
    X[3] = 0
    wanted = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    X = form(X * magnitude)
    if sparse.issparse(X):
        csr_normalize(X.indptr, X.data)
        X = X.toarray()
    else:
        normalize_rows(X)
    assert_allclose(X, wanted, rtol=1e-13)


# Products of CSR rows, against their dense twins.


def matrix(dtype=np.float64):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 30)) * (rng.random((40, 30)) < 0.3)
    dense[3] = 0
    dense[:, 5] = 0
    return sparse.csr_array(dense.astype(dtype))


def by_columns(X):
    columns = X.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.uint16), columns.data


def fault(X, **parts):
    """What is found in a matrix, with another indptr, indices or data; None if it is valid."""
    arrays = {name: parts.get(name, getattr(X, name)) for name in ("indptr", "indices", "data")}
    try:
        check_structure(SimpleNamespace(**arrays, shape=X.shape))
    except ValueError as error:
        return re.match(r"X is not a valid CSR matrix: (indptr|column numbers)", str(error))[1]


@pytest.mark.parametrize("index", [np.int32, np.int64])
class TestFaults:
    def test_none(self, index):
        X = matrix()
        pointers, columns = X.indptr.astype(index), X.indices.astype(index)
        assert fault(X, indptr=pointers, indices=columns) is None
        assert fault(X, indptr=pointers[3:8], indices=columns) is None  # a block
        assert fault(sparse.csr_array((5, 3))) is fault(sparse.csr_array((0, 3))) is None
        edges = np.array([0, X.shape[1] - 1], index)
        assert fault(X, indptr=np.array([0, 2], index), indices=edges, data=np.ones(2)) is None

    @pytest.mark.parametrize("at", [0, 17, -1])
    @pytest.mark.parametrize("wrong", [-5, -1, 30, 31, 2**30, -(2**31)])
    def test_columns_out_of_range(self, index, wrong, at):
        X = matrix()
        columns = X.indices.astype(index)
        columns[at] = wrong
        assert fault(X, indices=columns) == "column numbers"

    @pytest.mark.parametrize(
        ("at", "step"), [(0, -1), (5, 1000), (5, -1000), (-1, 1), (-1, 2**30), (-1, -(2**30))]
    )
    def test_pointers_that_lead_astray(self, index, at, step):
        X = matrix()
        pointers = X.indptr.astype(index)
        pointers[at] += step
        assert fault(X, indptr=pointers) == "indptr"

    def test_arrays_too_short(self, index):
        X = matrix()
        pointers, columns = X.indptr.astype(index), X.indices.astype(index)
        assert fault(X, indptr=pointers, indices=columns[:-1]) == "indptr"
        assert fault(X, indptr=pointers, data=X.data[:-1]) == "indptr"
        assert fault(X, indptr=pointers[:-1], indices=columns[: pointers[-2]]) is None


@pytest.mark.parametrize("K", [1, 7, 20])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_both_products(K, dtype, index):
    X = matrix(dtype=dtype)
    rng = np.random.default_rng(1)
    B, R = rng.normal(size=(30, K)), rng.normal(size=(40, K)).astype(dtype)
    product = np.full((40, K), np.nan, dtype=dtype)
    csr_dot(X.indptr.astype(index), X.indices.astype(index), X.data, B, product)
    eps = np.finfo(dtype).eps
    assert_allclose(product, X.toarray() @ B, atol=50 * eps)
    sums = np.full((30, K), np.nan)
    csr_dot(*by_columns(X), R, sums)
    assert_allclose(sums, X.toarray().T @ R, atol=50 * eps)
    assert_array_equal(sums[5], 0)


def test_scatter_adds_packed_rows():
    X = matrix()
    rng = np.random.default_rng(2)
    resp = rng.random((40, 6)) * (rng.random((40, 6)) < 0.3)
    packed = sparse.csr_array(resp)
    ends = packed.indptr[1:].astype(np.int64)
    out = np.ones((30, 6))
    csr_scatter(X.indptr, X.indices, X.data, ends, packed.indices, packed.data, out)
    assert_allclose(out, 1 + X.toarray().T @ resp, rtol=1e-13)
