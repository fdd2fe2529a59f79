"""Sparse posteriors: alpha-entmax over rows of scores, in place, for alpha > 1.

With c = alpha - 1 and y = z - max(z), p_i = b_i^(1 / c) where b_i = 1 + c (y_i - T) is positive,
else 0; T >= 0 is such that p sums to 1 [P2]_. So only entries with y > -1 / c can have a share:
they are picked out first, and everything else is done on these few, in float64.
The conjugate Omega*(z) = <p, z> - Omega(p) is max(z) + (T + c <p, y>) / alpha: derived here
from p_i^c = b_i, without the cancellation of (sum p^alpha - 1) / c for alpha near 1.

References
----------
.. [P2] Sklaviadis et al., "Fenchel-Young variational learning", eq. 8 and 15.
"""

import math

import numpy as np

from ._jit import row_kernel

BLOCK = 16  # rows
FEW = 12  # candidates that are compared pair by pair
MAX_ITER = 100
TINY_32, TINY_64 = np.float32(1.1754944e-38), 2.2250738585072014e-308  # smallest normals


@row_kernel
def _shift_rows(scores, slopes, offsets, lanes, tops):
    """Set scores = slopes * scores + offsets, and find the largest of each row.

    `lanes` holds running maxima eight entries apart, which lets the loop be vectorised.
    """
    K = scores.shape[1]
    for n in range(scores.shape[0]):
        row, lane, slope = scores[n], lanes[n], slopes[n]
        for k in range(K):
            value = slope * row[k] + offsets[k]
            row[k] = value
            lane[k + 8] = value if value > lane[k] else lane[k]
        top = lane[K]
        for k in range(K + 1, K + 8):
            top = lane[k] if lane[k] > top else top
        tops[n] = top


@row_kernel
def _candidates(row, cut, columns):
    """Write down the columns where row >= cut; return how many there are."""
    size = np.uintp(0)
    for k in range(row.shape[0]):
        columns[size] = k
        size += np.uintp(row[k] >= cut)
    return size


@row_kernel
def _sparsemax(y, p):
    """Solve alpha = 2, p = (y - tau)_+; returns T = 1 + tau."""
    size, total, count = y.shape[0], 0.0, 0
    if size <= FEW:  # i has a share if and only if sum_j (y_j - y_i)_+ < 1
        for i in range(size):
            above = 0.0
            for j in range(size):
                above += max(y[j] - y[i], 0.0)
            if above < 1:
                total += 1 + y[i]
                count += 1
    else:  # Newton, which is to drop what falls below tau until nothing does
        previous = size + 1
        tau = -1.0
        while True:
            total, count = 0.0, 0
            for i in range(size):
                if y[i] > tau:
                    total += 1 + y[i]
                    count += 1
            if count == previous:
                break
            previous = count
            tau = (total - 1) / count - 1
    T = (total - 1) / count
    for i in range(size):
        p[i] = max(1 + y[i] - T, 0.0)
    return T


@row_kernel
def _entmax_three_halves(y, p):
    """Solve alpha = 1.5, p = (y / 2 - tau)_+^2; returns T = 2 (1 + tau)."""
    size, shift = y.shape[0], 0.0  # shift = 1 + tau
    if size > FEW:  # Newton on the norm of (1 + y / 2 - shift)_+: convex, so it climbs to shift
        for _ in range(MAX_ITER):
            total, squares = 0.0, 0.0
            for i in range(size):
                u = max(1 + 0.5 * y[i] - shift, 0.0)
                total += u
                squares += u * u
            step = (squares - math.sqrt(squares)) / total
            shift += step
            if step <= 1e-15:
                break
    total, squares, count = 0.0, 0.0, 0
    for i in range(size):
        u = 1 + 0.5 * y[i] - shift
        above = 0.0
        if size <= FEW:  # i has a share if and only if sum_j (y_j - y_i)_+^2 / 4 < 1
            for j in range(size):
                above += 0.25 * max(y[j] - y[i], 0.0) ** 2
        if above < 1 and u > 0:
            total += u
            squares += u * u
            count += 1
    # sum (u - step)^2 = 1 over the support
    excess = squares - 1
    shift += excess / (total + math.sqrt(max(total * total - count * excess, 0.0)))
    for i in range(size):
        p[i] = max(1 + 0.5 * y[i] - shift, 0.0) ** 2
    return 2 * shift


@row_kernel
def _entmax_below_two(y, c, p):
    """Solve 0 < c < 1 as p = exp(log1p(c (y - T)) / c), which keeps its digits as c goes to 0.

    Newton on sum(p)^c, convex in T: it climbs from T = 0.
    """
    T = 0.0
    for _ in range(MAX_ITER):
        total, slope = 0.0, 0.0
        for i in range(y.shape[0]):
            b = c * (y[i] - T)
            p[i] = math.exp(math.log1p(b) / c) if b > -1 else 0.0
            if p[i] > 0:
                total += p[i]
                slope += p[i] / (1 + b)
        step = -total * math.expm1(-c * math.log(total)) / (c * slope)
        if step <= 1e-15 * max(T, 1.0):
            break
        T += step
    for i in range(y.shape[0]):
        p[i] /= total
    return T


@row_kernel
def _last_of_support(y, c):
    """Find the smallest y with a share: y_i has one where sum_j (c (y_j - y_i))_+^(1/c) < 1."""
    low, high = -1 / c, 0.0  # the last is in (low, high]
    while True:
        least, most = high, low  # of the values still in doubt
        for i in range(y.shape[0]):
            if low < y[i] < high:
                least, most = min(least, y[i]), max(most, y[i])
        if least > most:
            return high
        pivot, middle = least, 0.5 * (least + most)
        for i in range(y.shape[0]):
            if pivot < y[i] <= middle:
                pivot = y[i]
        above = 0.0
        for i in range(y.shape[0]):
            if y[i] > pivot:
                above += (c * (y[i] - pivot)) ** (1 / c)
        if above < 1:
            high = pivot
        else:
            low = pivot


@row_kernel
def _entmax_above_two(y, c, p):
    """Solve c > 1 by Newton on the smallest share v, p = (c (y - y_last) + v^c)^(1/c).

    Derived here: as a function of T the sum has infinite slope where an entry joins, as a
    function of v it is convex with slope >= 1, so Newton falls from v = 1 / count.
    """
    last, count = _last_of_support(y, c), 0
    for i in range(y.shape[0]):
        count += y[i] >= last
    v = 1.0 / count
    for _ in range(MAX_ITER):
        total, slope = 0.0, 0.0
        for i in range(y.shape[0]):
            p[i] = (c * (y[i] - last) + v**c) ** (1 / c) if y[i] >= last else 0.0
            if p[i] > 0:
                total += p[i]
                slope += (v / p[i]) ** (c - 1)
        if total - 1 <= 1e-15 * slope * v:
            break
        v = max(v - (total - 1) / slope, 0.0)
    for i in range(y.shape[0]):
        p[i] /= total
    return last + (1 - v**c) / c


@row_kernel
def _entmax(y, alpha, p):
    """Set p = entmax(y), where max(y) = 0; returns its T."""
    if y.shape[0] == 1:
        p[0] = 1.0
        return 0.0
    if alpha == 2:
        return _sparsemax(y, p)
    if alpha == 1.5:
        return _entmax_three_halves(y, p)
    if alpha < 2:
        return _entmax_below_two(y, alpha - 1, p)
    return _entmax_above_two(y, alpha - 1, p)


@row_kernel
def entmax_rows(scores, slopes, offsets, weights, scales, counts, values, alpha):
    """Turn scores into weighted and scaled alpha-entmax responsibilities, in place.

    With z = slopes[n] * scores[n] + offsets and p = entmax(z), on exit scores[n] is
    weights[n] * scales[n] * p, counts has gained weights[n] * p, and values[n] is the
    conjugate Omega*(z). No subnormal leaves. A row whose z are all -inf gets zeros and the
    value -inf.

    Parameters
    ----------
    scores : (n, K) float32 or float64
    slopes, offsets : (n,) and (K,), of scores' dtype; offsets may be -inf
    weights, scales : (n,) float64, not negative
    counts : (K,) float64, accumulated
    values : (n,) float64
    alpha : float > 1
    """
    N, K = scores.shape
    c, dtype = alpha - 1, scores.dtype.type
    zero, width = dtype(0.0), dtype(1 / c)
    tiny = TINY_32 if dtype(1.0) + dtype(1e-9) == dtype(1.0) else TINY_64
    lanes = np.full((BLOCK, K + 8), -np.inf, scores.dtype)
    tops = np.empty(BLOCK, scores.dtype)
    columns = np.empty(K + 1, np.uintp)
    all_y, all_p = np.empty(K), np.empty(K)
    for start in range(0, N, BLOCK):
        rows = scores[start : start + BLOCK]
        _shift_rows(rows, slopes[start : start + BLOCK], offsets, lanes, tops)
        for i in range(rows.shape[0]):
            row, top, n = rows[i], tops[i], start + i
            if top == -np.inf:
                row[:] = zero
                values[n] = -np.inf
                continue
            size = _candidates(row, top - width, columns)
            y, p = all_y[:size], all_p[:size]
            for j in range(size):
                y[j] = np.float64(row[columns[j]]) - np.float64(top)
            row[:] = zero
            T = _entmax(y, alpha, p)
            factor, mean = weights[n] * scales[n], 0.0
            for j in range(size):
                k = columns[j]
                mean += p[j] * y[j]
                counts[k] += weights[n] * p[j]
                share = factor * p[j]
                row[k] = share if share >= tiny else 0.0
            values[n] = top + (T + c * mean) / alpha
