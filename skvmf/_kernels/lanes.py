"""Gaussian scores by differences, with rows side by side: no cancellation, whatever the offset.

`ROWS` rows at a time are turned: a feature's values lie side by side, in a lane. Arrays of lanes
are flat, lane after lane, so that compilers know how far lanes are from each other. Features are
taken four at a time, so that sums are written a quarter as often: there are lanes for a multiple
of four, the last ones zeros. Those of some features stay in the processor's first cache.
"""

import numpy as np

from ._jit import row_kernel

ROWS, FEATURES = 128, 32  # at once; FEATURES is a multiple of 4
SECOND, THIRD, FOURTH = np.uintp(ROWS), np.uintp(2 * ROWS), np.uintp(3 * ROWS)  # lanes of four


@row_kernel
def _turn(X, origin, lanes):
    """Set lane j to x_ij - c_j for the rows there are, and lanes up to a multiple of four to 0."""
    n, d = X.shape
    for j in range(d):
        lane, c = lanes[j * ROWS : (j + 1) * ROWS], origin[j]
        for i in range(np.uintp(n)):
            lane[i] = X[i, j] - c
    lanes[d * ROWS : (d + 3) // 4 * 4 * ROWS] = 0


@row_kernel
def _turn_back(totals, factors, out):
    """Set out[i, k] to factors[k] times lane k, eight components at a time."""
    K = out.shape[1]
    for first in range(0, K - 7, 8):
        for i in range(out.shape[0]):
            for k in range(first, first + 8):
                out[i, k] = factors[k] * totals[k * ROWS + i]
    for i in range(out.shape[0]):
        for k in range(K - K % 8, K):
            out[i, k] = factors[k] * totals[k * ROWS + i]


@row_kernel
def _add_scaled_squares(lanes, mean, scale, total):
    """Add the squares of (lane j - mean[j]) scale[j] to a lane, over j."""
    for j in range(0, mean.shape[0], 4):
        x = lanes[j * ROWS : (j + 4) * ROWS]
        m0, m1, m2, m3 = mean[j], mean[j + 1], mean[j + 2], mean[j + 3]
        s0, s1, s2, s3 = scale[j], scale[j + 1], scale[j + 2], scale[j + 3]
        for i in range(SECOND):
            y0, y1 = (x[i] - m0) * s0, (x[SECOND + i] - m1) * s1
            y2, y3 = (x[THIRD + i] - m2) * s2, (x[FOURTH + i] - m3) * s3
            total[i] = (((total[i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3


@row_kernel
def _add_squares(lanes, mean, total):
    """Add the squares of lane j - mean[j] to a lane, over j."""
    for j in range(0, mean.shape[0], 4):
        x = lanes[j * ROWS : (j + 4) * ROWS]
        m0, m1, m2, m3 = mean[j], mean[j + 1], mean[j + 2], mean[j + 3]
        for i in range(SECOND):
            y0, y1, y2, y3 = x[i] - m0, x[SECOND + i] - m1, x[THIRD + i] - m2, x[FOURTH + i] - m3
            total[i] = (((total[i] + y0 * y0) + y1 * y1) + y2 * y2) + y3 * y3


@row_kernel
def _whiten(lanes, factors, white):
    """Set four lanes to sums of factors[., j] times lane j, for as many j as are given."""
    f, g, h, e = factors[0], factors[1], factors[2], factors[3]
    white[:] = 0
    for j in range(0, factors.shape[1], 4):
        x = lanes[j * ROWS : (j + 4) * ROWS]
        f0, f1, f2, f3 = f[j], f[j + 1], f[j + 2], f[j + 3]
        g0, g1, g2, g3 = g[j], g[j + 1], g[j + 2], g[j + 3]
        h0, h1, h2, h3 = h[j], h[j + 1], h[j + 2], h[j + 3]
        e0, e1, e2, e3 = e[j], e[j + 1], e[j + 2], e[j + 3]
        for i in range(SECOND):
            a, b, c = SECOND + i, THIRD + i, FOURTH + i
            x0, x1, x2, x3 = x[i], x[a], x[b], x[c]
            white[i] = (((white[i] + x0 * f0) + x1 * f1) + x2 * f2) + x3 * f3
            white[a] = (((white[a] + x0 * g0) + x1 * g1) + x2 * g2) + x3 * g3
            white[b] = (((white[b] + x0 * h0) + x1 * h1) + x2 * h2) + x3 * h3
            white[c] = (((white[c] + x0 * e0) + x1 * e1) + x2 * e2) + x3 * e3


@row_kernel
def _white_squares(lanes, mean, root, gaps, white, total):
    """Set a lane to the squared lengths of root @ (lanes - mean)."""
    for j in range(mean.shape[0]):
        x, gap, m = lanes[j * ROWS : (j + 1) * ROWS], gaps[j * ROWS : (j + 1) * ROWS], mean[j]
        for i in range(SECOND):
            gap[i] = x[i] - m
    total[:] = 0
    for j in range(0, mean.shape[0], 4):
        _whiten(gaps, root[j : j + 4, : j + 4], white)
        for i in range(SECOND):
            y0, y1, y2, y3 = white[i], white[SECOND + i], white[THIRD + i], white[FOURTH + i]
            total[i] += (y0 * y0 + y1 * y1) + (y2 * y2 + y3 * y3)


@row_kernel
def diagonal_scores(X, origin, means, scales, factors, lanes, totals, out):
    """out[n, k] = factors[k] sum_j ((x_nj - c_j - means[k, j]) scales[k, j])^2.

    Returns whether all are finite.

    Parameters
    ----------
    X : (n, d) float32 or float64
    origin : (d,), c; like all that follows of the type of `out`
    means, scales : (K, D); D is the least multiple of four from d on
    factors : (K,)
    lanes, totals : FEATURES and K lanes to work in
    out : (n, K)
    """
    finite = True
    for start in range(0, X.shape[0], ROWS):
        rows, own = X[start : start + ROWS], out[start : start + ROWS]
        totals[:] = 0
        for j in range(0, X.shape[1], FEATURES):
            some = slice(j, j + FEATURES)
            _turn(rows[:, some], origin[some], lanes)
            for k in range(out.shape[1]):
                total = totals[k * ROWS : (k + 1) * ROWS]
                _add_scaled_squares(lanes, means[k, some], scales[k, some], total)
        _turn_back(totals, factors, own)
        for i in range(own.shape[0]):
            row = own[i]
            for k in range(row.shape[0]):
                finite &= row[k] > -np.inf
    return finite


@row_kernel
def spherical_scores(X, origin, means, factors, lanes, totals, out):
    """out[n, k] = factors[k] sum_j (x_nj - c_j - means[k, j])^2; arguments are as above."""
    for start in range(0, X.shape[0], ROWS):
        rows = X[start : start + ROWS]
        totals[:] = 0
        for j in range(0, X.shape[1], FEATURES):
            some = slice(j, j + FEATURES)
            _turn(rows[:, some], origin[some], lanes)
            for k in range(out.shape[1]):
                _add_squares(lanes, means[k, some], totals[k * ROWS : (k + 1) * ROWS])
        _turn_back(totals, factors, out[start : start + ROWS])


@row_kernel
def tied_scores(X, origin, root, means, factors, lanes, totals, out):
    """out[n, k] = factors[k] |L (x_n - c) - means[k]|^2; arguments are as above.

    `root` (D, D) is L, lower triangular; `lanes` are 2 D lanes.
    """
    white = lanes[len(root) * ROWS :]
    for start in range(0, X.shape[0], ROWS):
        _turn(X[start : start + ROWS], origin, lanes)
        for j in range(0, root.shape[0], 4):
            _whiten(lanes, root[j : j + 4, : j + 4], white[j * ROWS : (j + 4) * ROWS])
        totals[:] = 0
        for j in range(0, root.shape[0], FEATURES):
            some = white[j * ROWS : (j + FEATURES) * ROWS]
            for k in range(out.shape[1]):
                total = totals[k * ROWS : (k + 1) * ROWS]
                _add_squares(some, means[k, j : j + FEATURES], total)
        _turn_back(totals, factors, out[start : start + ROWS])


@row_kernel
def full_scores(X, origin, roots, means, factors, lanes, totals, out):
    """out[n, k] = factors[k] |L_k (x_n - c - means[k])|^2; arguments are as above.

    `roots` (K, D, D) are lower triangular; `lanes` are 2 D + 4 lanes.
    """
    size = means.shape[1] * ROWS
    gaps, white = lanes[size : 2 * size], lanes[2 * size :]
    for start in range(0, X.shape[0], ROWS):
        _turn(X[start : start + ROWS], origin, lanes)
        for k in range(out.shape[1]):
            total = totals[k * ROWS : (k + 1) * ROWS]
            _white_squares(lanes, means[k], roots[k], gaps, white, total)
        _turn_back(totals, factors, out[start : start + ROWS])
