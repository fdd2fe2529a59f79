"""Products and scales of CSR rows, against their dense twins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skvmf._kernels.rows import (
    BAD_COLUMNS,
    BAD_POINTERS,
    VALID,
    csr_dot,
    csr_fault,
    csr_normalize,
    csr_row_scales,
    csr_scatter,
)


def matrix(n=40, d=30, seed=0, dtype=np.float64, density=0.3):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    dense[3] = 0
    dense[:, 5] = 0
    return sparse.csr_array(dense.astype(dtype))


def by_columns(X, dtype=np.uint16):
    columns = X.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(dtype), columns.data


def fault(X, **parts):
    """What is found in a matrix, with another indptr, indices or data."""
    arrays = {name: parts.get(name, getattr(X, name)) for name in ("indptr", "indices", "data")}
    return csr_fault(arrays["indptr"], arrays["indices"], len(arrays["data"]), X.shape[1])


@pytest.mark.parametrize("index", [np.int32, np.int64])
class TestFaults:
    def test_none(self, index):
        assert len({VALID, BAD_POINTERS, BAD_COLUMNS}) == 3
        X = matrix()
        pointers, columns = X.indptr.astype(index), X.indices.astype(index)
        assert fault(X, indptr=pointers, indices=columns) == VALID
        assert fault(X, indptr=pointers[3:8], indices=columns) == VALID  # a block
        assert fault(sparse.csr_array((5, 3))) == fault(sparse.csr_array((0, 3))) == VALID
        assert csr_fault(np.zeros(4, index), np.empty(0, index), 0, 0) == VALID
        assert csr_fault(np.array([0, 1], index), np.zeros(1, index), 1, 0) == BAD_COLUMNS
        edges = np.array([0, X.shape[1] - 1], index)
        assert csr_fault(np.array([0, 2], index), edges, 2, X.shape[1]) == VALID

    @pytest.mark.parametrize("at", [0, 17, -1])
    @pytest.mark.parametrize("wrong", [-5, -1, 30, 31, 2**30, -(2**31)])
    def test_columns_out_of_range(self, index, wrong, at):
        X = matrix()
        columns = X.indices.astype(index)
        columns[at] = wrong
        assert fault(X, indices=columns) == BAD_COLUMNS

    @pytest.mark.parametrize(
        ("at", "step"), [(0, -1), (5, 1000), (5, -1000), (-1, 1), (-1, 2**30), (-1, -(2**30))]
    )
    def test_pointers_that_lead_astray(self, index, at, step):
        X = matrix()
        pointers = X.indptr.astype(index)
        pointers[at] += step
        assert fault(X, indptr=pointers) == BAD_POINTERS

    def test_arrays_too_short(self, index):
        X = matrix()
        pointers, columns = X.indptr.astype(index), X.indices.astype(index)
        assert fault(X, indptr=pointers, indices=columns[:-1]) == BAD_POINTERS
        assert fault(X, indptr=pointers, data=X.data[:-1]) == BAD_POINTERS
        assert fault(X, indptr=pointers[:-1], indices=columns[: pointers[-2]]) == VALID


@pytest.mark.parametrize("K", [1, 7, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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


def test_scales_mark_zero_and_extreme_rows():
    X = matrix()
    scales = np.empty(40)
    csr_row_scales(X.indptr, X.data, 1e-3, 1e3, scales)
    norms = np.linalg.norm(X.toarray(), axis=1)
    assert scales[3] == 0
    assert_allclose(scales[norms > 0], 1 / norms[norms > 0], rtol=1e-15)
    X.data[X.indptr[0] : X.indptr[1]] *= 1e200
    X.data[X.indptr[1] : X.indptr[2]] *= 1e-200
    with np.errstate(over="ignore"):  # squares may overflow: such a row is extreme
        csr_row_scales(X.indptr, X.data, 1e-3, 1e3, scales)
    assert scales[0] == scales[1] == -1


@pytest.mark.parametrize("magnitude", [5e-324, 1e-160, 1.0, 1e160, 1e307])
def test_normalize_neither_over_nor_underflows(magnitude):
    X = matrix()
    expected = np.sign(X.data) if magnitude == 5e-324 else X.data.copy()
    X.data = expected * magnitude
    csr_normalize(X.indptr, X.data)
    wanted = sparse.csr_array((expected, X.indices, X.indptr), shape=X.shape).toarray()
    wanted /= np.maximum(np.linalg.norm(wanted, axis=1, keepdims=True), 1e-300)
    assert_allclose(X.toarray(), wanted, rtol=1e-14)
