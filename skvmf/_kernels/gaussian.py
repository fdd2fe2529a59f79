"""Gaussian scores and moments by differences: no cancellation, whatever the offset."""

import numpy as np

from ._jit import row_kernel

LANES = 256  # rows taken at once, a feature's values of which lie side by side
LARGEST, HALF = np.finfo(np.float32).max, np.float32(0.5)


@row_kernel
def gap_squares(X, origin, out):
    """out[n] = [x - c, (x - c)^2], (n, 2 d) float64."""
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        for j in range(d):
            gap = np.float64(X[n, j]) - origin[j]
            out[n, j] = gap
            out[n, d + j] = gap * gap


@row_kernel
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
def difference_scores(X, means, scales, out):
    """out[n, k] = -1/2 sum_j ((x_nj - means[j, k]) scales[j, k])^2.

    Means and scales are (d, K): the inner loop runs over components, so sums are in order.
    """
    K = np.uintp(means.shape[1])
    for n in range(X.shape[0]):
        total = out[n]
        total[:] = 0
        for j in range(X.shape[1]):
            x, mean, scale = np.float64(X[n, j]), means[j], scales[j]
            for k in range(K):
                gap = (x - mean[k]) * scale[k]
                total[k] += gap * gap
        for k in range(K):
            total[k] *= -0.5


@row_kernel
def white_scores(white, shifts, first, out):
    """out[n, first + k] = -1/2 sum_j (white[n, j, k] - shifts[j, k])^2.

    White is (n, d, m) and shifts (d, m) for m components: sums are in order, as above.
    """
    d, m = np.uintp(shifts.shape[0]), np.uintp(shifts.shape[1])
    for n in range(white.shape[0]):
        rows, total = white[n], out[n, first : first + m]
        for k in range(m):
            total[k] = 0
        for j in range(d):
            row, shift = rows[j], shifts[j]
            for k in range(m):
                gap = row[k] - shift[k]
                total[k] += gap * gap
        for k in range(m):
            total[k] *= -0.5


@row_kernel
def _turn(X, origin, lanes):
    """Set lanes[j, i] = x_ij - c_j for the rows there are, eight rows at a time."""
    n, d = X.shape
    for start in range(0, n - 7, 8):
        for j in range(np.uintp(d)):
            c = origin[j]
            for i in range(8):
                lanes[j, start + i] = X[start + i, j] - c
    for i in range(n - n % 8, n):
        for j in range(d):
            lanes[j, i] = X[i, j] - origin[j]


@row_kernel
def _add_squares(lanes, scales, shifts, total):
    """Set total[i] to sum_j (lanes[j, i] scales[j] - shifts[j])^2, four features at a time."""
    d, size = lanes.shape[0], np.uintp(total.shape[0])
    total[:] = 0
    for j in range(0, d - 3, 4):
        x0, x1, x2, x3 = lanes[j], lanes[j + 1], lanes[j + 2], lanes[j + 3]
        s0, s1, s2, s3 = scales[j], scales[j + 1], scales[j + 2], scales[j + 3]
        t0, t1, t2, t3 = shifts[j], shifts[j + 1], shifts[j + 2], shifts[j + 3]
        for i in range(size):
            y0, y1, y2, y3 = x0[i] * s0 - t0, x1[i] * s1 - t1, x2[i] * s2 - t2, x3[i] * s3 - t3
            total[i] = (((total[i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3
    for j in range(d - d % 4, d):
        x, s, t = lanes[j], scales[j], shifts[j]
        for i in range(size):
            y = x[i] * s - t
            total[i] += y * y


@row_kernel
def single_scores(X, origin, scales, shifts, out):
    """out[n, k] = -1/2 sum_j ((x_nj - c_j) scales[k, j] - shifts[k, j])^2, all float32.

    Rounded shifts are rounded means: what is computed is right for a mean that is off by
    the rounding of its distance from c. Returns whether no sum overflowed.
    """
    K, d = scales.shape
    fits = True
    lanes, totals = np.zeros((d, LANES), np.float32), np.empty((K, LANES), np.float32)
    for start in range(0, X.shape[0], LANES):
        rows = X[start : start + LANES]
        _turn(rows, origin, lanes)
        for k in range(K):
            _add_squares(lanes, scales[k], shifts[k], totals[k])
        for i in range(rows.shape[0]):
            row = out[start + i]
            for k in range(K):
                row[k] = -HALF * totals[k, i]
                fits &= totals[k, i] < LARGEST
    return fits


@row_kernel
def difference_moments(X, means, resp, first, second):
    """Add r (x - m) and r (x - m)^2 to `first` and `second`, (K, d), for each share r > 0."""
    d = np.uintp(X.shape[1])
    for n in range(X.shape[0]):
        x = X[n]
        for k in range(resp.shape[1]):
            share = resp[n, k]
            if share == 0.0:
                continue
            mean, one, two = means[k], first[k], second[k]
            for j in range(d):
                gap = np.float64(x[j]) - mean[j]
                weighted = share * gap
                one[j] += weighted
                two[j] += weighted * gap
