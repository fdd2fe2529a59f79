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
