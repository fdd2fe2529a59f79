"""Gaussian moments, and scores by differences from each mean: exact at any offset.

`BLOCK_ROWS` rows at a time are transposed, so that the values of a feature are contiguous, in a
column. Arrays of columns are flat, column after column, so that compilers know how far apart they
are. Features are taken four at a time, so that sums are written a quarter as often: there are
columns for a multiple of four, the last ones zeros. Those of some features stay in the first cache.
"""

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


BLOCK_ROWS, BLOCK_FEATURES = 128, 32  # at once; BLOCK_FEATURES is a multiple of 4
SECOND, THIRD, FOURTH = (np.uintp(i * BLOCK_ROWS) for i in (1, 2, 3))  # starts of columns


@row_kernel
def _transpose(X, start, first, stop, origin, columns):
    """Set a column to x_ij - c_j for each feature j, and columns up to a multiple of four to 0."""
    rows = X[start : start + BLOCK_ROWS]
    for j in range(first, stop):
        at, c = np.uintp((j - first) * BLOCK_ROWS), origin[j]
        for i in range(np.uintp(rows.shape[0])):
            columns[at + i] = rows[i, j] - c
    for at in range((stop - first) * BLOCK_ROWS, (stop - first + 3) // 4 * 4 * BLOCK_ROWS):
        columns[at] = 0


@row_kernel
def _transpose_back(totals, factors, out, start):
    """Set out[start + i, k] to factors[k] times column k, eight components at a time."""
    block = out[start : start + BLOCK_ROWS]
    K = block.shape[1]
    for first in range(0, K - 7, 8):
        for i in range(block.shape[0]):
            for k in range(first, first + 8):
                block[i, k] = factors[k] * totals[k * BLOCK_ROWS + i]
    for i in range(block.shape[0]):
        for k in range(K - K % 8, K):
            block[i, k] = factors[k] * totals[k * BLOCK_ROWS + i]


@row_kernel
def _add_scaled_squares(columns, means, scales, k, first, stop, totals):
    """Add the squares of (column j - means[k, j]) scales[k, j] to column k, over features j."""
    at, x = np.uintp(k * BLOCK_ROWS), np.uintp(0)
    for j in range(first, stop, 4):
        m0, m1, m2, m3 = means[k, j], means[k, j + 1], means[k, j + 2], means[k, j + 3]
        s0, s1, s2, s3 = scales[k, j], scales[k, j + 1], scales[k, j + 2], scales[k, j + 3]
        for i in range(SECOND):
            y0, y1 = (columns[x + i] - m0) * s0, (columns[x + SECOND + i] - m1) * s1
            y2, y3 = (columns[x + THIRD + i] - m2) * s2, (columns[x + FOURTH + i] - m3) * s3
            totals[at + i] = (((totals[at + i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3
        x += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _add_squares(columns, x, means, k, first, stop, totals):
    """Add the squares of column j - means[k, j] to column k; the first column begins at x."""
    at = np.uintp(k * BLOCK_ROWS)
    for j in range(first, stop, 4):
        m0, m1, m2, m3 = means[k, j], means[k, j + 1], means[k, j + 2], means[k, j + 3]
        for i in range(SECOND):
            y0, y1 = columns[x + i] - m0, columns[x + SECOND + i] - m1
            y2, y3 = columns[x + THIRD + i] - m2, columns[x + FOURTH + i] - m3
            totals[at + i] = (((totals[at + i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3
        x += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _whiten(columns, root, row, white, at):
    """Set four columns of `white`, from `at` on, to rows of a triangular root times columns."""
    f, g, h, e = root[row], root[row + 1], root[row + 2], root[row + 3]
    for i in range(at, at + np.uintp(4 * BLOCK_ROWS)):
        white[i] = 0
    x = np.uintp(0)
    for j in range(0, row + 4, 4):
        f0, f1, f2, f3 = f[j], f[j + 1], f[j + 2], f[j + 3]
        g0, g1, g2, g3 = g[j], g[j + 1], g[j + 2], g[j + 3]
        h0, h1, h2, h3 = h[j], h[j + 1], h[j + 2], h[j + 3]
        e0, e1, e2, e3 = e[j], e[j + 1], e[j + 2], e[j + 3]
        for i in range(SECOND):
            x0, x1 = columns[x + i], columns[x + SECOND + i]
            x2, x3 = columns[x + THIRD + i], columns[x + FOURTH + i]
            a, b, c, d = at + i, at + SECOND + i, at + THIRD + i, at + FOURTH + i
            white[a] = (((white[a] + x0 * f0) + x1 * f1) + x2 * f2) + x3 * f3
            white[b] = (((white[b] + x0 * g0) + x1 * g1) + x2 * g2) + x3 * g3
            white[c] = (((white[c] + x0 * h0) + x1 * h1) + x2 * h2) + x3 * h3
            white[d] = (((white[d] + x0 * e0) + x1 * e1) + x2 * e2) + x3 * e3
        x += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _white_squares(columns, mean, root, gaps, white, totals, k):
    """Set column k to the squared lengths of root @ (columns - mean)."""
    for j in range(mean.shape[0]):
        x, m = np.uintp(j * BLOCK_ROWS), mean[j]
        for i in range(SECOND):
            gaps[x + i] = columns[x + i] - m
    at = np.uintp(k * BLOCK_ROWS)
    for i in range(SECOND):
        totals[at + i] = 0
    for j in range(0, mean.shape[0], 4):
        _whiten(gaps, root, j, white, np.uintp(0))
        for i in range(SECOND):
            y0, y1, y2, y3 = white[i], white[SECOND + i], white[THIRD + i], white[FOURTH + i]
            totals[at + i] += (y0 * y0 + y1 * y1) + (y2 * y2 + y3 * y3)


@row_kernel
def _clear(totals):
    for i in range(totals.shape[0]):
        totals[i] = 0


@row_kernel
def diagonal_scores(X, origin, means, scales, factors, columns, totals, out):
    """out[n, k] = factors[k] sum_j ((x_nj - c_j - means[k, j]) scales[k, j])^2.

    X is (n, d), and all that follows of the type of `out` (n, K): the origin c (d,), means and
    scales (K, D) for the least multiple D of four from d on, and BLOCK_FEATURES and K columns to
    work in.
    """
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _clear(totals)
        for j in range(0, X.shape[1], BLOCK_FEATURES):
            stop = min(j + BLOCK_FEATURES, X.shape[1])
            _transpose(X, start, j, stop, origin, columns)
            for k in range(out.shape[1]):
                _add_scaled_squares(columns, means, scales, k, j, stop, totals)
        _transpose_back(totals, factors, out, start)


@row_kernel
def count_rows_below(scores, least):
    """Return how many rows of scores (n, K) have none of `least` or more."""
    count = 0
    for n in range(scores.shape[0]):
        row, near = scores[n], False
        for k in range(row.shape[0]):
            near |= row[k] >= least
        count += not near
    return count


@row_kernel
def spherical_scores(X, origin, means, factors, columns, totals, out):
    """out[n, k] = factors[k] sum_j (x_nj - c_j - means[k, j])^2; arguments are as above."""
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _clear(totals)
        for j in range(0, X.shape[1], BLOCK_FEATURES):
            stop = min(j + BLOCK_FEATURES, X.shape[1])
            _transpose(X, start, j, stop, origin, columns)
            for k in range(out.shape[1]):
                _add_squares(columns, np.uintp(0), means, k, j, stop, totals)
        _transpose_back(totals, factors, out, start)


@row_kernel
def tied_scores(X, origin, root, means, factors, columns, totals, out):
    """out[n, k] = factors[k] |L (x_n - c) - means[k]|^2; L is `root`, and columns are 2 D."""
    rows, white = columns[: len(root) * BLOCK_ROWS], columns[len(root) * BLOCK_ROWS :]
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _transpose(X, start, 0, X.shape[1], origin, rows)
        for j in range(0, root.shape[0], 4):
            _whiten(rows, root, j, white, np.uintp(j * BLOCK_ROWS))
        _clear(totals)
        for j in range(0, root.shape[0], BLOCK_FEATURES):
            stop = min(j + BLOCK_FEATURES, root.shape[0])
            for k in range(out.shape[1]):
                _add_squares(white, np.uintp(j * BLOCK_ROWS), means, k, j, stop, totals)
        _transpose_back(totals, factors, out, start)


@row_kernel
def full_scores(X, origin, roots, means, factors, columns, totals, out):
    """out[n, k] = factors[k] |L_k (x_n - c - means[k])|^2; L_k are roots; columns are 2 D + 4."""
    size = means.shape[1] * BLOCK_ROWS
    rows, gaps, white = columns[:size], columns[size : 2 * size], columns[2 * size :]
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _transpose(X, start, 0, X.shape[1], origin, rows)
        for k in range(out.shape[1]):
            _white_squares(rows, means[k], roots[k], gaps, white, totals, k)
        _transpose_back(totals, factors, out, start)
