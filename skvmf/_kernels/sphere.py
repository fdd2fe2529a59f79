"""Dense rows and the unit sphere: safe lengths."""

import numpy as np

from ._jit import Array, sum_kernel


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


def normalize_rows(X: Array) -> None:
    """Scale rows to unit length in place, in two steps that neither over- nor underflow."""
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    largest[largest == 0] = 1.0
    rows = X / largest
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    norms[norms == 0] = 1.0
    rows /= norms[:, None]
    X[:] = rows
