"""Gaussian moments: features of rows about an origin, and differences from each mean."""

import numpy as np

from ._jit import row_kernel, sum_kernel


@row_kernel
def gap_squares(X, origin, out):
    """out[n] = [x - c, (x - c)^2], (n, 2 d) float64."""
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        for j in range(d):
            gap = np.float64(X[n, j]) - origin[j]
            out[n, j] = gap
            out[n, d + j] = gap * gap


@sum_kernel
def gap_norms(X, origin, out):
    """out[n] = [x - c, |x - c|^2], (n, d + 1) float64."""
    d = X.shape[1]
    for n in range(X.shape[0]):
        total = 0.0
        for j in range(d):
            gap = np.float64(X[n, j]) - origin[j]
            out[n, j] = gap
            total += gap * gap
        out[n, d] = total


@row_kernel
def gap_products(X, origin, out):
    """out[n] = [x - c, products of its pairs i <= j by rows], (n, d + d (d + 1) / 2) float64."""
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        row = out[n]
        for j in range(d):
            row[j] = np.float64(X[n, j]) - origin[j]
        start = d
        for i in range(d):
            gap = row[i]
            for j in range(d - i):
                row[start + j] = gap * row[i + j]
            start += d - i


@row_kernel
def difference_moments(X, means, resp, first, second):
    """Add r (x - m) and r (x - m)^2 to `first` and `second`, (K, d), for each r > 0."""
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        x = X[n]
        for k in range(resp.shape[1]):
            r = resp[n, k]
            if r == 0.0:
                continue
            mean, one, two = means[k], first[k], second[k]
            for j in range(d):
                gap = np.float64(x[j]) - mean[j]
                weighted = r * gap
                one[j] += weighted
                two[j] += weighted * gap
