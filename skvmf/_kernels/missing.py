"""Rows with missing values, nan, beside Gaussian components.

Of a component with the precision P, the missing features of a row have the conditional covariance
C, the inverse of P_MM, and the conditional mean gap -C P_MO g_O, if g_O are the gaps of the
observed ones. |U g|^2 of a row that is filled so is the squared distance of what is observed: as a
minimum over what is missing, errors of the filling enter squared.
"""

import math

from ._jit import assume_no_overlap, inlined, row_kernel, sum_kernel

# The least pivot relative to its diagonal entry: a few roundings. Roots of matrices that rounding
# has made singular stay finite.
MIN_PIVOT = 1e-15


@sum_kernel
def _dot(matrix, i, vector, size):
    """Return the product of as many entries of row i of a matrix and of a vector."""
    row = matrix[i]
    total = 0.0
    for j in range(size):
        total += row[j] * vector[j]
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
                root[a, a] = math.sqrt(max(value, MIN_PIVOT * line[where[a]]))
                log_det += 2.0 * math.log(root[a, a])
    return log_det


@inlined
def _fill(row, mean, precision, where, m, root, work, gap):
    """Set `gap` to a row less a mean, missing entries to the conditional means of that."""
    for j in range(row.shape[0]):
        gap[j] = row[j] - mean[j]
    for a in range(m):
        gap[where[a]] = 0.0

    # Solve L L' gap_M = -P_MO gap_O, first L from the top down, then L' from the bottom up.
    for a in range(m):
        # Products with missing entries add zero.
        value = -_dot(precision, where[a], gap, gap.shape[0])
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
    """Add `total` times the inverse of P_MM to the lower triangle of `scatter`."""
    for a in range(m):
        inverse[a, a] = 1.0 / root[a, a]
        for b in range(a):
            value = 0.0
            for c in range(b, a):
                value -= root[a, c] * inverse[c, b]
            inverse[a, b] = value / root[a, a]

    # The inverse of L L' is the product of the inverses of L' and L.
    for a in range(m):
        for b in range(a + 1):
            value = 0.0
            for c in range(a, m):
                value += inverse[c, a] * inverse[c, b]
            scatter[where[a], where[b]] += total * value


@row_kernel
def full_scores(X, patterns, means, precisions, work, roots, scores, logs):
    """Set scores to minus half the squared distances of what is observed, and logs to log det P_MM.

    Parameters
    ----------
    X : (n, d) float64, nan where a value is missing
    patterns : (p, 3 + d) int64, as `Missing` has them
    means, precisions : (K, d) and (K, d, d)
    work : two (d, d) and two (d,) float64, to work in
    roots : (K, d, d), lower triangular L with P = L' L
    scores, logs : (n, K), set
    """
    K, d = means.shape
    root, _, line, gap = work
    for k in range(K):
        for p in range(patterns.shape[0]):
            m = patterns[p, 2]
            where = patterns[p, 3:]
            log_det = _factor(precisions[k], where, m, root)
            for n in range(patterns[p, 0], patterns[p, 1]):
                _fill(X[n], means[k], precisions[k], where, m, root, line, gap)
                total = 0.0
                for j in range(d):
                    white = _dot(roots[k], j, gap, j + 1)
                    total += white * white
                scores[n, k] = -0.5 * total
                logs[n, k] = log_det


@row_kernel
def full_moments(X, patterns, means, precisions, work, weights, shares, moments):
    """Add expected moments about the means; arguments are as above.

    Parameters
    ----------
    weights, shares : (n, K), of rows and of conditional covariances
    moments : (K, d + 1, d), set to second moments, and first ones below them
    """
    assume_no_overlap()
    K, d = means.shape
    root, inverse, line, gap = work
    for k in range(K):
        moments[k] = 0.0
        first = moments[k, d]
        second = moments[k]
        for p in range(patterns.shape[0]):
            m = patterns[p, 2]
            where = patterns[p, 3:]
            _factor(precisions[k], where, m, root)
            share = 0.0
            for n in range(patterns[p, 0], patterns[p, 1]):
                r = weights[n, k]
                if r == 0.0:
                    continue
                _fill(X[n], means[k], precisions[k], where, m, root, line, gap)
                share += shares[n, k]
                for i in range(d):
                    weighted = r * gap[i]
                    first[i] += weighted
                    row = second[i]
                    for j in range(i + 1):
                        row[j] += weighted * gap[j]
            # Once for all rows of a pattern, whose conditional covariance is the same.
            _add_covariance(share, where, m, root, inverse, second)

        for i in range(d):
            for j in range(i):
                second[j, i] = second[i, j]


@row_kernel
def add_full_means(X, patterns, means, precisions, work, resp, filled):
    """Add the rows that each component fills, by responsibilities; arguments are as above."""
    assume_no_overlap()
    K, d = means.shape
    root, _, line, gap = work
    for k in range(K):
        for p in range(patterns.shape[0]):
            m = patterns[p, 2]
            where = patterns[p, 3:]
            _factor(precisions[k], where, m, root)
            for n in range(patterns[p, 0], patterns[p, 1]):
                _fill(X[n], means[k], precisions[k], where, m, root, line, gap)
                for j in range(d):
                    filled[n, j] += resp[n, k] * (means[k, j] + gap[j])


@sum_kernel
def diagonal_scores(X, means, scales, scores):
    """Set scores to minus half the squared distances of what is observed, with scales (K, d)."""
    for n in range(X.shape[0]):
        x = X[n]
        for k in range(means.shape[0]):
            mean = means[k]
            scale = scales[k]
            total = 0.0
            for j in range(x.shape[0]):
                y = (x[j] - mean[j]) * scale[j]
                # Only a nan differs from itself.
                total += y * y if y == y else 0.0
            scores[n, k] = -0.5 * total


@row_kernel
def diagonal_moments(X, means, weights, first, second):
    """Add r (x - m) and r (x - m)^2 of observed values to `first` and `second`, (K, d)."""
    assume_no_overlap()
    for n in range(X.shape[0]):
        x = X[n]
        for k in range(weights.shape[1]):
            r = weights[n, k]
            if r == 0.0:
                continue
            mean = means[k]
            one = first[k]
            two = second[k]
            for j in range(x.shape[0]):
                gap = x[j] - mean[j]
                gap = gap if gap == gap else 0.0
                one[j] += r * gap
                two[j] += r * gap * gap
