"""Sums of data rows by component."""

import numpy as np

from ._jit import row_kernel


@row_kernel
def add_labelled_rows(X, labels, factors, out):
    """out[labels[n]] += factors[n] * X[n]; X is (n, d), out (K, d) float64."""
    d = X.shape[1]
    for n in range(X.shape[0]):
        row, total, factor = X[n], out[labels[n]], factors[n]
        for j in range(d):
            total[j] += factor * np.float64(row[j])


@row_kernel
def pack_rows(resp, sizes, columns, packed):
    """Write the non-zeros of each row of resp (n, K) to the left end of its row in the outputs.

    Parameters
    ----------
    resp : (n, K) float32 or float64
    sizes : (n,) int32, the number of non-zeros
    columns : (n, K) int32, their columns, ascending; beyond sizes[n] there is scrap
    packed : (n, K) of resp's dtype, their values; beyond sizes[n] there is scrap
    """
    for n in range(resp.shape[0]):
        row, column, value, size = resp[n], columns[n], packed[n], np.uintp(0)
        for k in range(resp.shape[1]):
            column[size] = k
            value[size] = row[k]
            size += np.uintp(row[k] != 0)
        sizes[n] = size


@row_kernel
def add_packed_rows(X, sizes, columns, packed, out):
    """out[k] += value * X[n] for every packed non-zero; X is (n, d), out (K, d) float64."""
    for n in range(X.shape[0]):
        row = X[n]
        for j in range(sizes[n]):
            total, factor = out[columns[n, j]], np.float64(packed[n, j])
            for i in range(row.shape[0]):
                total[i] += factor * np.float64(row[i])
