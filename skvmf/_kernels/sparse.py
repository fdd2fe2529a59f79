"""Products of CSR row blocks with small dense matrices."""

import numpy as np

from ._jit import Array, kernel, row_kernel

VALID, BAD_POINTERS, BAD_COLUMNS = 0, 1, 2


def csr_fault(indptr: Array, indices: Array, n_values: int, n_columns: int) -> int:
    """Find pointers or column numbers that would lead kernels out of their arrays.

    Returns VALID, BAD_POINTERS where `indptr` falls or leaves `indices` or the `n_values` of the
    data, or BAD_COLUMNS where a column number is not in [0, n_columns).
    """
    first, last = indptr[0], indptr[-1]
    if first < 0 or last > min(len(indices), n_values) or (indptr[1:] < indptr[:-1]).any():
        return BAD_POINTERS
    used = indices[first:last]
    valid = used.size == 0 or (used.min() >= 0 and used.max() < n_columns)
    return VALID if valid else BAD_COLUMNS


@row_kernel
def csr_dot(indptr, indices, data, matrix, out):
    """Out = X @ matrix for the CSR rows that indptr spans; matrix is (d, K), out (n, K).

    The columns of X in its place give X.T @ matrix, for a matrix (n, K) and out (d, K).

    Four non-zeros a step: a quarter of the passes over `out`, and few enough rows of
    `matrix` for LLVM to prove that none overlaps it (with eight the loop stays scalar).
    """
    K = np.uintp(matrix.shape[1])
    for n in range(np.uintp(out.shape[0])):
        row = out[n]
        row[:] = 0
        j, stop = np.uintp(indptr[n]), np.uintp(indptr[n + 1])
        while j + 4 <= stop:  # j rises
            v0, v1, v2, v3 = data[j], data[j + 1], data[j + 2], data[j + 3]
            m0 = matrix[np.uintp(indices[j])]
            m1 = matrix[np.uintp(indices[j + 1])]
            m2 = matrix[np.uintp(indices[j + 2])]
            m3 = matrix[np.uintp(indices[j + 3])]
            for k in range(K):
                row[k] += (v0 * m0[k] + v1 * m1[k]) + (v2 * m2[k] + v3 * m3[k])
            j += np.uintp(4)
        while j < stop:  # and here
            v = data[j]
            m = matrix[np.uintp(indices[j])]
            for k in range(K):
                row[k] += v * m[k]
            j += np.uintp(1)


@row_kernel
def csr_scatter(indptr, indices, data, ends, columns, packed, out):
    """Out += X.T @ resp for packed rows of responsibilities; out is (d, K) float64."""
    start = np.int64(0)
    for n in range(np.uintp(ends.shape[0])):
        for m in range(start, ends[n]):
            k = columns[m]
            r = np.float64(packed[m])
            for j in range(indptr[n], indptr[n + 1]):
                out[indices[j], k] += r * data[j]
        start = ends[n]


def csr_row_scales(indptr: Array, data: Array, low: float, high: float, out: Array) -> None:
    """out[n] = 1 / ||x_n||; 0 for a zero row and -1 where the norm is outside [low, high]."""
    starts, filled = indptr[:-1] - indptr[0], indptr[:-1] < indptr[1:]
    used, starts = data[indptr[0] : indptr[-1]], starts[filled]
    norms, largest = np.zeros(len(out)), np.zeros(len(out))
    if len(used):
        with np.errstate(over="ignore", under="ignore"):
            squares = np.square(used, dtype=np.float64)
            norms[filled] = np.sqrt(np.add.reduceat(squares, starts))
    safe = (low <= norms) & (norms <= high)
    np.divide(1.0, norms, out=out, where=safe)
    if not safe.all():
        largest[filled] = np.maximum.reduceat(np.abs(used), starts) if len(used) else 0.0
        out[~safe] = np.where(largest[~safe] != 0, -1.0, 0.0)


@kernel
def csr_normalize(indptr, data):
    """Scale each row to unit length in place, in two steps that neither over- nor underflow."""
    for n in range(indptr.shape[0] - 1):
        largest = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            largest = max(largest, abs(np.float64(data[j])))
        if largest == 0.0:
            continue
        squares = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            squares += (data[j] / largest) ** 2
        norm = np.sqrt(squares)
        for j in range(indptr[n], indptr[n + 1]):
            data[j] = (data[j] / largest) / norm
