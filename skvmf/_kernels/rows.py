"""Sums of data rows by component."""

import numpy as np

from ._jit import prefetch, row_kernel

PREFETCH_ROWS = 4  # rows to fetch before they are used
MIN_PREFETCH_BYTES = 1024  # bytes of a row, from which fetching it ahead pays
NO_BITS, ONE_BIT = np.uint64(0), np.uint64(1)
CACHED_FEATURES, CACHED_COMPONENTS = 128, 32  # of sums that stay in the processor's first cache


@row_kernel
def add_labelled_rows(X, labels, factors, out):
    """out[labels[n]] += factors[n] * X[n]; X is (n, d), out (K, d) float64."""
    d = X.shape[1]
    last = X.shape[0] - PREFETCH_ROWS if d * X.itemsize >= MIN_PREFETCH_BYTES else 0
    for n in range(X.shape[0]):
        if n < last:
            prefetch(X, n + PREFETCH_ROWS)
        row, total, factor = X[n], out[labels[n]], factors[n]
        for j in range(d):
            total[j] += factor * np.float64(row[j])


@row_kernel
def add_dense_responsibilities(X, resp, out):
    """out[k] += sum_n resp[n, k] X[n], four rows and two components at a time.

    X is (n, d), resp (n, K), and out (K, d), with a row more where K is odd, which is scrap. So
    many sums at a time stay in the processor's first cache.
    """
    K, d, N = resp.shape[1], X.shape[1], X.shape[0]
    for start in range(0, d, CACHED_FEATURES):
        low, high = np.uintp(start), np.uintp(min(start + CACHED_FEATURES, d))
        for first in range(0, K, CACHED_COMPONENTS):
            for n in range(0, N - 3, 4):
                x0, x1, x2, x3 = X[n], X[n + 1], X[n + 2], X[n + 3]
                for k in range(first, min(first + CACHED_COMPONENTS, K), 2):
                    one, two, m = out[k], out[k + 1], min(k + 1, K - 1)
                    a0, a1, a2, a3 = resp[n, k], resp[n + 1, k], resp[n + 2, k], resp[n + 3, k]
                    b0, b1, b2, b3 = resp[n, m], resp[n + 1, m], resp[n + 2, m], resp[n + 3, m]
                    for j in range(low, high):
                        y0, y1, y2, y3 = x0[j], x1[j], x2[j], x3[j]
                        one[j] = (((one[j] + a0 * y0) + a1 * y1) + a2 * y2) + a3 * y3
                        two[j] = (((two[j] + b0 * y0) + b1 * y1) + b2 * y2) + b3 * y3
    for n in range(N - N % 4, N):
        for k in range(K):
            for j in range(d):
                out[k, j] += resp[n, k] * X[n, j]


@row_kernel
def pack_rows(resp, ends, columns, packed):
    """Write the non-zeros of the rows of resp (n, K) one behind the other.

    Parameters
    ----------
    resp : (n, K) float32 or float64
    ends : (n,) int64, where the non-zeros of each row end
    columns : (m + 1,) int32 for m non-zeros, their columns, ascending in a row; the last is scrap
    packed : (m + 1,) of resp's dtype, their values; the last is scrap
    """
    size = np.uintp(0)
    for n in range(resp.shape[0]):
        row = resp[n]
        for k in range(resp.shape[1]):
            columns[size] = k
            packed[size] = row[k]
            size += np.uintp(row[k] != 0)
        ends[n] = size


@row_kernel
def _marked(part):
    """Return a word with bit k set where entry k, of 64 at most, is not zero."""
    bits = NO_BITS
    for k in range(part.shape[0]):
        bits |= NO_BITS if part[k] == 0 else ONE_BIT << np.uint64(k)
    return bits


@row_kernel
def add_sparse_responsibilities(X, resp, out):
    """out[k] += resp[n, k] * X[n] wherever resp is not zero; X is (n, d), out (K, d) float64."""
    last = X.shape[0] - PREFETCH_ROWS if X.shape[1] * X.itemsize >= MIN_PREFETCH_BYTES else 0
    for n in range(X.shape[0]):
        if n < last:
            prefetch(X, n + PREFETCH_ROWS)
        row = X[n]
        for start in range(0, resp.shape[1], 64):
            bits = _marked(resp[n, start : start + 64])
            while bits:  # each step clears one
                bit = bits & (~bits + ONE_BIT)  # the lowest; its logarithm is a float's exponent
                k = start + (np.float64(bit).view(np.int64) >> 52) - 1023
                total, factor = out[k], np.float64(resp[n, k])
                for i in range(row.shape[0]):
                    total[i] += factor * np.float64(row[i])
                bits ^= bit
