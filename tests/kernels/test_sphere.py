"""Lengths and chords of dense rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skvmf._kernels.rows import normalize_rows, row_scales


@pytest.mark.parametrize("d", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_are_inverse_lengths(d, dtype):
    X = np.random.default_rng(0).normal(size=(20, d)).astype(dtype)
    X[3] = 0
    X[4] *= 1e20
    X[5] *= 1e-20
    scales = np.empty(20)
    row_scales(X, 1e-12, 1e12, scales)
    assert (scales[3], scales[4], scales[5]) == (0, -1, -1)
    ordinary = np.r_[0:3, 6:20]
    lengths = np.linalg.norm(X[ordinary].astype(float), axis=1)
    assert_allclose(scales[ordinary], 1 / lengths, rtol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_not_finite_have_no_scale(bad, dtype):
    X = np.ones((2, 21), dtype=dtype)
    X[1, 17] = bad
    scales = np.empty(2)
    row_scales(X, 1e-12, 1e12, scales)
    assert scales[0] > 0
    assert scales[1] == -1


@pytest.mark.parametrize("magnitude", [1e-310, 1e-160, 1.0, 1e160, 1e307])
def test_normalize_neither_over_nor_underflows(magnitude):
    X = np.random.default_rng(0).integers(-9, 10, size=(20, 5)).astype(float)
    X[3] = 0
    wanted = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    X *= magnitude
    normalize_rows(X)
    assert_allclose(X, wanted, rtol=1e-13)
