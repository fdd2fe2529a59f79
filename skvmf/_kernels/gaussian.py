"""Gaussian moments, and scores by differences from each mean: exact at any offset.

`BLOCK_ROWS` rows at a time are transposed, so that the values of a feature are contiguous, in a
column. Arrays of columns are flat, column after column, so that compilers know how far apart they
are. Features are taken four at a time, so that sums are written a quarter as often: there are
columns for a multiple of four, the last ones zeros. Those of some features stay in the first cache.
"""

import numpy as np

from ._jit import assume_no_overlap, row_kernel, sum_kernel


@row_kernel
def gap_squares(X, origin, out):
    """out[n] = [x - c, (x - c)^2], (n, 2 d) float64."""
    assume_no_overlap()
    # Unsigned, here and below: a signed index is tested for being negative.
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        for j in range(d):
            gap = np.float64(X[n, j]) - origin[j]
            out[n, j] = gap
            out[n, d + j] = gap * gap


@sum_kernel
def gap_norms(X, origin, out):
    """out[n] = [x - c, |x - c|^2], (n, d + 1) float64."""
    assume_no_overlap()
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
    assume_no_overlap()
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
    assume_no_overlap()
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        x = X[n]
        for k in range(resp.shape[1]):
            r = resp[n, k]
            # Most are zero where posteriors are sparse.
            if r == 0.0:
                continue
            mean = means[k]
            one = first[k]
            two = second[k]
            for j in range(d):
                gap = np.float64(x[j]) - mean[j]
                weighted = r * gap
                one[j] += weighted
                two[j] += weighted * gap


# Rows at a time. 32 take a third longer with 16 features, and 256 a quarter with 64 in float32.
BLOCK_ROWS = 128

# Features at a time, a multiple of 4: their columns, 32 KiB in float64, stay in the first cache.
BLOCK_FEATURES = 32

# Where the second, third and fourth of four columns start. Unsigned: a signed index is tested for
# being negative.
SECOND = np.uintp(BLOCK_ROWS)
THIRD = np.uintp(2 * BLOCK_ROWS)
FOURTH = np.uintp(3 * BLOCK_ROWS)


@row_kernel
def _transpose(X, start, first, stop, origin, columns):
    """Set a column to x_ij - c_j for each feature j, and columns up to a multiple of four to 0."""
    rows = X[start : start + BLOCK_ROWS]
    for j in range(first, stop):
        column = np.uintp((j - first) * BLOCK_ROWS)
        c = origin[j]
        for i in range(np.uintp(rows.shape[0])):
            columns[column + i] = rows[i, j] - c
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
    target = np.uintp(k * BLOCK_ROWS)
    column = np.uintp(0)
    for j in range(first, stop, 4):
        m0, m1, m2, m3 = means[k, j], means[k, j + 1], means[k, j + 2], means[k, j + 3]
        s0, s1, s2, s3 = scales[k, j], scales[k, j + 1], scales[k, j + 2], scales[k, j + 3]
        for i in range(SECOND):
            y0 = (columns[column + i] - m0) * s0
            y1 = (columns[column + SECOND + i] - m1) * s1
            y2 = (columns[column + THIRD + i] - m2) * s2
            y3 = (columns[column + FOURTH + i] - m3) * s3
            # In this order each product is fused with its sum.
            totals[target + i] = (((totals[target + i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3
        column += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _add_squares(columns, column, means, k, first, stop, totals):
    """Add the squares of column j - means[k, j] to column k; the first begins at `column`."""
    target = np.uintp(k * BLOCK_ROWS)
    for j in range(first, stop, 4):
        m0, m1, m2, m3 = means[k, j], means[k, j + 1], means[k, j + 2], means[k, j + 3]
        for i in range(SECOND):
            y0 = columns[column + i] - m0
            y1 = columns[column + SECOND + i] - m1
            y2 = columns[column + THIRD + i] - m2
            y3 = columns[column + FOURTH + i] - m3
            totals[target + i] = (((totals[target + i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3
        column += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _whiten(columns, root, row, white, at):
    """Set four columns of `white`, from `at` on, to rows of a triangular root times columns."""
    a, b, c, d = root[row], root[row + 1], root[row + 2], root[row + 3]
    for i in range(at, at + np.uintp(4 * BLOCK_ROWS)):
        white[i] = 0
    column = np.uintp(0)
    for j in range(0, row + 4, 4):
        a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
        b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        d0, d1, d2, d3 = d[j], d[j + 1], d[j + 2], d[j + 3]
        # Four columns times four rows: sixteen products for eight loads and four stores.
        for i in range(SECOND):
            x0 = columns[column + i]
            x1 = columns[column + SECOND + i]
            x2 = columns[column + THIRD + i]
            x3 = columns[column + FOURTH + i]
            first = at + i
            second = at + SECOND + i
            third = at + THIRD + i
            fourth = at + FOURTH + i
            white[first] = (((white[first] + x0 * a0) + x1 * a1) + x2 * a2) + x3 * a3
            white[second] = (((white[second] + x0 * b0) + x1 * b1) + x2 * b2) + x3 * b3
            white[third] = (((white[third] + x0 * c0) + x1 * c1) + x2 * c2) + x3 * c3
            white[fourth] = (((white[fourth] + x0 * d0) + x1 * d1) + x2 * d2) + x3 * d3
        column += np.uintp(4 * BLOCK_ROWS)


@row_kernel
def _white_squares(columns, mean, root, gaps, white, totals, k):
    """Set column k to the squared lengths of root @ (columns - mean)."""
    for j in range(mean.shape[0]):
        column = np.uintp(j * BLOCK_ROWS)
        m = mean[j]
        for i in range(SECOND):
            gaps[column + i] = columns[column + i] - m

    target = np.uintp(k * BLOCK_ROWS)
    for i in range(SECOND):
        totals[target + i] = 0
    for j in range(0, mean.shape[0], 4):
        _whiten(gaps, root, j, white, np.uintp(0))
        for i in range(SECOND):
            y0, y1, y2, y3 = white[i], white[SECOND + i], white[THIRD + i], white[FOURTH + i]
            totals[target + i] += (y0 * y0 + y1 * y1) + (y2 * y2 + y3 * y3)


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
        row = scores[n]
        # Every score is compared: a loop that ends early is not vectorised.
        near = False
        for k in range(row.shape[0]):
            near |= row[k] >= least
        if not near:
            count += 1
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
    size = len(root) * BLOCK_ROWS
    rows = columns[:size]
    white = columns[size:]
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _transpose(X, start, 0, X.shape[1], origin, rows)
        # Once for all components, which have the root in common.
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
    rows = columns[:size]
    gaps = columns[size : 2 * size]
    white = columns[2 * size :]
    for start in range(0, X.shape[0], BLOCK_ROWS):
        _transpose(X, start, 0, X.shape[1], origin, rows)
        for k in range(out.shape[1]):
            _white_squares(rows, means[k], roots[k], gaps, white, totals, k)
        _transpose_back(totals, factors, out, start)
