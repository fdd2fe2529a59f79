"""Dense rows and the unit sphere: safe lengths."""

import numpy as np

from ._jit import kernel, row_kernel, sum_kernel


@sum_kernel
def _squared_length(row):
    """Return the sum of squares in float64."""
    total = 0.0
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total += value * value
    return total


@row_kernel
def row_scales(X, low, high, out):
    """out[n] = 1 / ||x_n||; 0 for a zero row and -1 where the norm is outside [low, high]."""
    for n in range(X.shape[0]):
        norm = np.sqrt(_squared_length(X[n]))
        if low <= norm <= high:
            out[n] = 1.0 / norm
        else:
            out[n] = -1 if np.any(X[n]) else 0


@kernel
def normalize_rows(X):
    """Scale rows to unit length in place, in two steps that neither over- nor underflow."""
    for n in range(X.shape[0]):
        row = X[n]
        largest = 0.0
        for j in range(row.shape[0]):
            largest = max(largest, abs(np.float64(row[j])))
        if largest == 0.0:
            continue
        squares = 0.0
        for j in range(row.shape[0]):
            squares += (row[j] / largest) ** 2
        norm = np.sqrt(squares)
        for j in range(row.shape[0]):
            row[j] = (row[j] / largest) / norm
