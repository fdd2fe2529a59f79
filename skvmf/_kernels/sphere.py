"""Dense rows and the unit sphere: safe lengths."""

import numpy as np

from ._jit import kernel, sum_kernel


@sum_kernel
def row_scales(X, low, high, out):
    """out[n] = 1 / ||x_n||; 0 for a zero row and -1 where the norm is outside [low, high]."""
    for n in range(X.shape[0]):
        squares = 0.0
        for j in range(X.shape[1]):
            value = np.float64(X[n, j])
            squares += value * value
        norm = np.sqrt(squares)
        if low <= norm <= high:
            out[n] = 1.0 / norm
            continue
        out[n] = 0.0
        for j in range(X.shape[1]):
            if X[n, j] != 0:
                out[n] = -1.0


@kernel
def normalize_rows(X):
    """Scale rows to unit length in place, in two steps that neither over- nor underflow."""
    for n in range(X.shape[0]):
        largest, squares = 0.0, 0.0
        for j in range(X.shape[1]):
            value = abs(np.float64(X[n, j]))
            largest = value if value > largest else largest
        if largest == 0.0:
            continue
        for j in range(X.shape[1]):
            value = X[n, j] / largest
            squares += value * value
        norm = np.sqrt(squares)
        for j in range(X.shape[1]):
            X[n, j] = (X[n, j] / largest) / norm
