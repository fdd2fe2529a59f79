"""Sums over bags of vectors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skvmf._kernels.fisher import (
    WORDS_PER_PRODUCT,
    WORDS_PER_STEP,
    direction_sums,
    moment_sums,
    packed_direction_sums,
    packed_moment_sums,
    pad_bags,
)

V = 12
SHAPES = [(1, 2), (3, 1), (4, 7), (5, 16)]  # components, dimensions


def random_counts():
    """Counts with rows of 0, 1, 2, ... entries."""
    rng = np.random.default_rng(0)
    dense = np.zeros((9, V))
    for row in range(9):
        dense[row, rng.permutation(V)[:row]] = rng.integers(1, 5, size=row)
    return sparse.csr_array(dense)


def pad(indptr, indices, data):
    """Return the bags of the kernels, and each row's largest count."""
    n = len(indptr) - 1
    ptr = np.zeros(n + 1, dtype=np.intp)
    np.cumsum(-(-np.diff(indptr) // WORDS_PER_STEP) * WORDS_PER_STEP, out=ptr[1:])
    words, amounts, largest = np.empty(ptr[-1], np.intp), np.empty(ptr[-1]), np.empty(n)
    pad_bags(indptr, indices, data, ptr, words, amounts, largest)
    return (ptr, words, amounts), largest


def unpad(bags):
    """Return the bags as a dense matrix of counts."""
    ptr, words, amounts = bags
    dense = np.zeros((len(ptr) - 1, V))
    for n in range(len(dense)):
        np.add.at(dense[n], words[ptr[n] : ptr[n + 1]], amounts[ptr[n] : ptr[n + 1]])
    return dense


def problem(K, d, dtype=np.float64):
    """Bags, dense and packed shares with zeros, a table of vectors and their scales."""
    rng = np.random.default_rng(0)
    counts = random_counts()
    bags, _ = pad(counts.indptr, counts.indices, counts.data)
    resp = rng.dirichlet(np.ones(K), size=V) * (rng.random((V, K)) < 0.7)
    packed = sparse.csr_array(resp)
    table = rng.normal(size=(V, d)).astype(dtype)
    return (
        bags,
        resp,
        (packed.indptr.astype(np.intp), packed.indices.astype(np.intp), packed.data),
        table,
        rng.uniform(0.5, 2, size=V),
    )


@pytest.mark.parametrize(("K", "d"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_direction_sums_are_products(K, d, dtype):
    bags, resp, packed, table, scales = problem(K, d, dtype)
    n = len(bags[0]) - 1
    C = unpad(bags)
    for kernel, responsibilities in [(direction_sums, resp), (packed_direction_sums, packed)]:
        counts, sums = np.full((n, K), np.nan), np.full((n, K, d), np.nan)
        kernel(bags, responsibilities, table, scales, counts, sums)
        assert_allclose(counts, C @ resp, rtol=1e-13, atol=1e-15)
        expected = np.einsum("nv,vk,v,vd->nkd", C, resp, scales, table.astype(float))
        assert_allclose(sums, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "size",
    [WORDS_PER_PRODUCT - 1, WORDS_PER_PRODUCT, WORDS_PER_PRODUCT + 1, 2 * WORDS_PER_PRODUCT + 6],
)
def test_direction_sums_of_long_bags(size):
    _, resp, _, table, scales = problem(3, 4)
    words = np.random.default_rng(2).integers(V, size=size)
    bags, _ = pad(np.array([0, 2, 2 + size]), np.r_[0, 1, words], np.ones(2 + size))
    C = unpad(bags)
    counts, sums = np.full((2, 3), np.nan), np.full((2, 3, 4), np.nan)
    direction_sums(bags, resp, table, scales, counts, sums)
    assert_allclose(counts, C @ resp, rtol=1e-13)
    assert_allclose(sums, np.einsum("nv,vk,v,vd->nkd", C, resp, scales, table), rtol=1e-12)


@pytest.mark.parametrize(("K", "d"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moment_sums_are_about_the_means(K, d, dtype):
    bags, resp, packed, table, _ = problem(K, d, dtype)
    n = len(bags[0]) - 1
    C = unpad(bags)
    means = np.random.default_rng(1).normal(size=(K, d))
    gaps = table.astype(float)[:, None] - means
    for kernel, responsibilities in [(moment_sums, resp), (packed_moment_sums, packed)]:
        counts = np.full((n, K), np.nan)
        first, second = np.full((n, K, d), np.nan), np.full((n, K, d), np.nan)
        kernel(bags, responsibilities, table, means, counts, first, second)
        assert_allclose(counts, C @ resp, rtol=1e-13, atol=1e-15)
        for moment, power in [(first, 1), (second, 2)]:
            expected = np.einsum("nv,vk,vkd->nkd", C, resp, gaps**power)
            assert_allclose(moment, expected, rtol=1e-12, atol=1e-14)
