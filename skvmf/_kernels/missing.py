"""Rows with missing values, nan, beside Gaussian components.

Of a component with the precision P, the missing features of a row have the conditional covariance
C, the inverse of P_MM, and the conditional mean gap -C P_MO g_O, if g_O are the gaps of the
observed ones. |U g|^2 of a row that is filled so is the squared distance of what is observed: as a
minimum over what is missing, errors of the filling enter squared.
"""

import math

import numpy as np

from ._jit import row_kernel, sum_kernel

MAKES_ARRAYS = True

LEAST_PIVOT = 1e-15  # of a diagonal entry, so that no pivot is zero


@sum_kernel
def _dot(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@row_kernel
def _factor(precision, where, m, root):
    """Set `root` to the lower Cholesky factor of P_MM; return the logarithm of its determinant."""
    log_det = 0.0
    for a in range(m):
        line = precision[where[a]]
        for b in range(a + 1):
            value = line[where[b]]
            for c in range(b):
                value -= root[a, c] * root[b, c]
            if b < a:
                root[a, b] = value / root[b, b]
            else:
                root[a, a] = math.sqrt(max(value, LEAST_PIVOT * line[where[a]]))
                log_det += 2.0 * math.log(root[a, a])
    return log_det


@row_kernel
def _fill(gap, precision, where, m, root, work):
    """Fill the missing entries of a gap, which are zero, with their conditional means."""
    for a in range(m):
        value = -_dot(precision[where[a]], gap)
        for b in range(a):
            value -= root[a, b] * work[b]
        work[a] = value / root[a, a]
    for a in range(m - 1, -1, -1):
        value = work[a]
        for b in range(a + 1, m):
            value -= root[b, a] * work[b]
        work[a] = value / root[a, a]
    for a in range(m):
        gap[where[a]] = work[a]


@row_kernel
def _add_covariance(total, where, m, root, inverse, scatter):
    """Add `total` times the inverse of P_MM to the missing part of `scatter`."""
    for a in range(m):
        inverse[a, a] = 1.0 / root[a, a]
        for b in range(a):
            value = 0.0
            for c in range(b, a):
                value -= root[a, c] * inverse[c, b]
            inverse[a, b] = value / root[a, a]
    for a in range(m):
        for b in range(a + 1):
            value = 0.0
            for c in range(a, m):
                value += inverse[c, a] * inverse[c, b]
            scatter[where[a], where[b]] += total * value
            if b < a:
                scatter[where[b], where[a]] += total * value


@row_kernel
def fill_gaps(X, mean, precision, shares, gaps, logs, scatter):
    """Fill gaps from a mean with conditional means, and sum conditional covariances.

    Rows of X (n, d), nan where a value is missing, of the same pattern that follow each other are
    factored once. `gaps` (n, d) are set to x - mean and its conditional mean where missing, `logs`
    (n,) to log det P_MM; `scatter` (d, d) gains the inverses of P_MM times the `shares` (n,).
    """
    d = X.shape[1]
    root, inverse, work = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    where, before = np.empty(d, np.intp), -1
    m, log_det, total = 0, 0.0, 0.0
    for n in range(X.shape[0]):
        gap = gaps[n]
        count, same = 0, True
        for j in range(d):
            x = X[n, j]
            if x == x:
                gap[j] = x - mean[j]
                continue
            gap[j] = 0.0
            same &= count < m and where[min(count, d - 1)] == j
            count += 1
        if before < 0 or not same or count != m:
            if total > 0.0:
                _add_covariance(total, where, m, root, inverse, scatter)
            total, m, before = 0.0, 0, n
            for j in range(d):
                if X[n, j] != X[n, j]:
                    where[m] = j
                    m += 1
            log_det = _factor(precision, where, m, root)
        _fill(gap, precision, where, m, root, work)
        logs[n] = log_det
        total += shares[n]
    if total > 0.0:
        _add_covariance(total, where, m, root, inverse, scatter)
