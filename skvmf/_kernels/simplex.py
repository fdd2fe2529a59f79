"""Softmax, argmax and entmax over rows of scores, in place; the mode of the modified Dirichlet.

For softmax and argmax, rows are taken in blocks, and each step passes over the whole block before
the next begins: loops that short would otherwise wait for one another's sums and divisions. Work
rows are padded to whole vectors; padding scores -inf, so it weighs nothing.

alpha-entmax, for alpha > 1: with c = alpha - 1 and y = z - max(z), p_i = b_i^(1 / c) where
b_i = 1 + c (y_i - T) is positive, else 0; T >= 0 is such that p sums to 1 (Sklaviadis et al.,
"Fenchel-Young variational learning", eq. 8 and 15). So only entries with y > -1 / c can be in the
support: they are picked out first, and everything else is done on these few, in float64.
The conjugate Omega*(z) = <p, z> - Omega(p) is max(z) + (T + c <p, y>) / alpha: derived here
from p_i^c = b_i, without the cancellation of (sum p^alpha - 1) / c for alpha near 1.
For c > 1 a root magnifies the rounding of y, so there gaps between scores are taken first.

Parameters of the modified Dirichlet come as what they exceed 1 by, alpha - 1: added to 1, small
ones would be lost. Both algorithms want at least one excess above 0 and n * floor < 1. Then the
mode is unique: x = max(floor, excess / m), with m such that x sums to 1. Excesses are divided by
the largest before they are added: their sum may be beyond the floats.
"""

import math

import numpy as np

from ._jit import Array, assume_no_overlap, by_precision, kernel, prefetch, row_kernel, thread_cache

# Rows at a time, a multiple of 4. Fewer make softmax slower if rows are short, and as fast if they
# are long. Of entmax with small supports, 4 take a fifth longer, and 32 save a twentieth.
BLOCK = 16

# Responsibilities whose log-ratio to their row's largest is below this are exactly 0: subnormals,
# which slow arithmetic down up to 26 times, do not arise. Sums of float64 lose exp(-60), 9e-27, and
# sums of float32, even in float64, exp(-36), 2e-16.
LOG_FLOOR = -60.0
LOG_FLOOR_32 = np.float32(-36.0)

# exp(t) = 2^n exp(r), n = round(t / log 2), r = t - n log 2 in two parts. Adding MAGIC, 1.5 times
# 2^(mantissa bits), rounds to an integer and leaves it in the low bits; shifted into the exponent
# it is the power of two. exp(r) - 1 - r = r^2 Q(r), Q minimax on |r| <= log(2) / 2.
INVERSE_LOG2 = 1.4426950408889634
INVERSE_LOG2_32 = np.float32(INVERSE_LOG2)
ONE_32 = np.float32(1.0)
MAGIC = 6755399441055744.0
MAGIC_32 = np.float32(12582912.0)
LOG2_HIGH = 0.69314718036912382
LOG2_LOW = 1.9082149292705877e-10
LOG2_HIGH_32 = np.float32(0.693145751953125)
LOG2_LOW_32 = np.float32(1.42860682030941723e-6)

# With these, the relative error of exp(r) is below 3.7e-18 before rounding.
Q0 = 0.500000000000001063
Q1 = 0.166666666666664125
Q2 = 0.0416666666665301596
Q3 = 0.00833333333349447547
Q4 = 0.00138888889436298071
Q5 = 0.000198412695065454099
Q6 = 0.0000248014930992043885
Q7 = 2.75575864046917274e-6
Q8 = 2.7630248286970929e-7
Q9 = 2.50000518513388643e-8

# With these below 1.1e-7, for float32.
Q0_32 = np.float32(0.499992314988339632)
Q1_32 = np.float32(0.166671146220947662)
Q2_32 = np.float32(0.0418901566846828617)
Q3_32 = np.float32(0.00831252261764663395)

# Places from the top bit of an integer to its lowest, and the integers at both ends.
SIGN_32 = np.int32(31)
MAX_INT_32 = np.int32(2**31 - 1)
MIN_INT_32 = np.int32(-(2**31))
SIGN_64 = np.int64(63)
MAX_INT_64 = np.int64(2**63 - 1)
MIN_INT_64 = np.int64(-(2**63))

BYTES_32 = 4  # of a float32

LEAST_TEMPERATURE = 1e-30  # of float32; a lower one is as hard

MAX_FLOAT_32 = np.finfo(np.float32).max
MAX_FLOAT_64 = np.finfo(np.float64).max

# The smallest normal floats. Below them arithmetic is up to 26 times as slow.
TINY_32 = np.float32(1.1754944e-38)
TINY_64 = 2.2250738585072014e-308


@row_kernel
def _n_lanes(x):
    """Return how many numbers of an array's type a vector of 64 bytes has, known when compiled."""
    one = x.dtype.type(1.0)
    return 16 if one + x.dtype.type(1e-9) == one else 8


@row_kernel
def _largest_float(x):
    """Return the largest float of an array's type, of that type."""
    return x.dtype.type(MAX_FLOAT_32 if x.itemsize == BYTES_32 else MAX_FLOAT_64)


@row_kernel
def _smallest_normal(x):
    """Return the smallest normal float of an array's type, of that type."""
    return x.dtype.type(TINY_32 if x.itemsize == BYTES_32 else TINY_64)


@row_kernel
def _exp32(x):
    """exp(x) of a float32 x <= 0, and 0 from LOG_FLOOR_32 down."""
    x = x if x > LOG_FLOOR_32 else LOG_FLOOR_32
    shifted = x * INVERSE_LOG2_32 + MAGIC_32
    n = shifted - MAGIC_32
    r = (x - n * LOG2_HIGH_32) - n * LOG2_LOW_32
    p = ONE_32 + (r + r * r * (Q0_32 + r * (Q1_32 + r * (Q2_32 + r * Q3_32))))
    power = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
    value = np.int32(np.float32(p).view(np.int32) + power).view(np.float32)
    return value if x > LOG_FLOOR_32 else np.float32(0.0)


@row_kernel
def _exp64(x):
    """exp(x) of a float64 x <= 0, and 0 from LOG_FLOOR down."""
    x = x if x > LOG_FLOOR else LOG_FLOOR
    shifted = x * INVERSE_LOG2 + MAGIC
    n = shifted - MAGIC
    r = (x - n * LOG2_HIGH) - n * LOG2_LOW
    r2 = r * r
    # Even and odd powers in two chains, which run side by side.
    even = Q0 + r2 * (Q2 + r2 * (Q4 + r2 * (Q6 + r2 * Q8)))
    odd = Q1 + r2 * (Q3 + r2 * (Q5 + r2 * (Q7 + r2 * Q9)))
    p = 1.0 + (r + r2 * (even + r * odd))
    power = np.int64(np.float64(shifted).view(np.int64) << np.int64(52))
    value = np.int64(np.float64(p).view(np.int64) + power).view(np.float64)
    return value if x > LOG_FLOOR else 0.0


@row_kernel
def _largest32(x):
    """Return the largest entry of a float32 row.

    Compilers vectorise the maximum of integers, not that of floats, which may be nan. So the
    bits are compared, those of negative numbers flipped to make their order that of integers.
    """
    top = MIN_INT_32
    for k in range(x.shape[0]):
        bits = np.float32(x[k]).view(np.int32)
        top = max(top, np.int32(bits ^ np.int32(np.int32(bits >> SIGN_32) & MAX_INT_32)))
    return np.int32(top ^ np.int32((top >> SIGN_32) & MAX_INT_32)).view(np.float32)


@row_kernel
def _largest64(x):
    """Return the largest entry of a float64 row, as above."""
    top = MIN_INT_64
    for k in range(x.shape[0]):
        bits = np.float64(x[k]).view(np.int64)
        top = max(top, bits ^ ((bits >> SIGN_64) & MAX_INT_64))
    return np.int64(top ^ ((top >> SIGN_64) & MAX_INT_64)).view(np.float64)


_exp = by_precision(_exp32, _exp64)
_largest = by_precision(_largest32, _largest64)


@row_kernel
def _shift_rows(scores, start, size, slopes, offsets, z, tops):
    """Set z = slopes * scores + offsets for `size` rows, and find the largest of each.

    The work rows of z may be longer: their padding is left alone. If slopes overflow,
    infinity is replaced by the largest number.
    """
    assume_no_overlap()
    limit = _largest_float(scores)
    for n in range(size):
        row = scores[start + n]
        shifted = z[n]
        slope = slopes[start + n]
        for k in range(row.shape[0]):
            shifted[k] = slope * row[k] + offsets[k]

    for n in range(size):
        tops[n] = _largest(z[n])
        if tops[n] > limit:
            for k in range(z.shape[1]):
                z[n, k] = min(z[n, k], limit)
            tops[n] = limit


@row_kernel
def _exp_rows(z, size, tops, e, lanes):
    """Set e = exp(z - tops) for `size` rows, and sum each.

    A plain sum is not vectorised, for that would change its order. Running sums in `lanes`, one
    vector apart, are: the order is theirs, on every machine.
    """
    assume_no_overlap()
    width = _n_lanes(z)
    for n in range(size):
        row = z[n]
        powers = e[n]
        lane = lanes[n]
        # Of a row of -inf: differences of infinities would be nan.
        top = tops[n] if tops[n] > -np.inf else z.dtype.type(0.0)
        for k in range(row.shape[0]):
            powers[k] = _exp(row[k] - top)
            lane[k + width] = lane[k] + powers[k]


@row_kernel
def _lane_sum(lane):
    """Return the sum of sixteen or eight lanes."""
    width = _n_lanes(lane)
    a, b, c, d = lane[0], lane[1], lane[2], lane[3]
    for k in range(4, width, 4):
        a += lane[k]
        b += lane[k + 1]
        c += lane[k + 2]
        d += lane[k + 3]
    return (a + b) + (c + d)


@row_kernel
def _count_rows(e, factors, counts):
    """Add factors @ e to counts, four rows at a time: each row read once, `counts` a quarter."""
    assume_no_overlap()
    for n in range(0, e.shape[0], 4):
        e0, e1, e2, e3 = e[n], e[n + 1], e[n + 2], e[n + 3]
        s0, s1, s2, s3 = factors[n], factors[n + 1], factors[n + 2], factors[n + 3]
        for k in range(counts.shape[0]):
            counts[k] += np.float64((s0 * e0[k] + s1 * e1[k]) + (s2 * e2[k] + s3 * e3[k]))


@row_kernel
def _scale_rows(e, factors, scores, start, size):
    """Set scores = factors * e for `size` rows, subnormal results flushed to zero."""
    assume_no_overlap()
    zero = scores.dtype.type(0.0)
    tiny = _smallest_normal(scores)
    for n in range(size):
        row = scores[start + n]
        powers = e[n]
        factor = factors[n]
        for k in range(row.shape[0]):
            value = factor * powers[k]
            row[k] = value if value >= tiny else zero


def work_space(scores: Array) -> tuple[Array, ...]:
    """Return this thread's work space for a block of such scores, cached for rows as long."""
    kind = scores.shape[1], scores.dtype
    if getattr(thread_cache, "softmax_kind", None) != kind:
        K, dtype = kind
        # Of vectors of 64 bytes, the longest of processors: sums are the same on all.
        width = 64 // dtype.itemsize
        padded = -(-K // width) * width
        z = np.full((BLOCK, padded), -np.inf, dtype)
        tops = np.empty(BLOCK, dtype)
        e = np.zeros((BLOCK, padded), dtype)
        lanes = np.zeros((BLOCK, padded + width), dtype)
        factors = np.empty((2, BLOCK), dtype)
        totals = np.empty(padded)
        thread_cache.softmax_space = z, tops, e, lanes, factors, totals
        thread_cache.softmax_kind = kind
    return thread_cache.softmax_space


@row_kernel
def softmax_rows(scores, slopes, offsets, weights, scales, counts, values, work):
    """Turn scores (n, K) into weighted and scaled softmax responsibilities, in place.

    With z = slopes[n] * scores[n] + offsets and q = softmax(z), on exit scores[n] is
    weights[n] * scales[n] * q, counts has gained weights[n] * q, and values[n] is
    log(sum(exp(z))). A responsibility below exp(LOG_FLOOR), or exp(LOG_FLOOR_32), of its
    row's largest is exactly 0, and no subnormal leaves. A row whose z are all -inf gets zeros and
    the value -inf. Slopes and offsets, which may be -inf, are of the scores' dtype, all others
    float64; weights and scales are not negative; `work` is `work_space(scores)`.
    """
    z, tops, e, lanes, factors, totals = work
    for k in range(totals.shape[0]):
        totals[k] = 0
    for start in range(0, scores.shape[0], BLOCK):
        size = min(scores.shape[0] - start, BLOCK)
        _shift_rows(scores, start, size, slopes, offsets, z, tops)
        _exp_rows(z, size, tops, e, lanes)
        for i in range(size):
            total = _lane_sum(lanes[i, e.shape[1] :])
            factor = weights[start + i] / total if total > 0 else 0.0
            factors[0, i] = factor
            factors[1, i] = factor * scales[start + i]
            values[start + i] = tops[i] + math.log(total) if total > 0 else -np.inf
        # Work rows that the last block does not fill count nothing.
        for i in range(size, BLOCK):
            factors[0, i] = 0
        _count_rows(e, factors[0], totals)
        _scale_rows(e, factors[1], scores, start, size)
    for k in range(counts.shape[0]):
        counts[k] += totals[k]


@row_kernel
def log_sum_rows(scores, slopes, offsets, values, work):
    """Set values[n] to log(sum(exp(z))), z and arguments those of `softmax_rows`, and its bits."""
    z, tops, e, lanes, _, _ = work
    for start in range(0, scores.shape[0], BLOCK):
        size = min(scores.shape[0] - start, BLOCK)
        _shift_rows(scores, start, size, slopes, offsets, z, tops)
        _exp_rows(z, size, tops, e, lanes)
        for i in range(size):
            total = _lane_sum(lanes[i, e.shape[1] :])
            values[start + i] = tops[i] + math.log(total) if total > 0 else -np.inf


@row_kernel
def _first(row, top):
    """Find where a row first equals its largest; 0 where a nan does not even that."""
    K = np.int32(row.shape[0])
    # A minimum over all entries, without an early end: that is vectorised.
    first = K
    for k in range(row.shape[0]):
        candidate = np.int32(k) if row[k] == top else K
        first = candidate if candidate < first else first
    return first if first < K else 0


@row_kernel
def argmax_rows(scores, slopes, offsets, weights, counts, values, labels, work):
    """Give each row to its largest component; the first on ties. Scores are left alone.

    With z = slopes[n] * scores[n] + offsets, on exit labels[n] (int32) is argmax(z), values[n] is
    max(z), and counts[labels[n]] has gained weights[n]. A row whose z are all -inf goes to 0. Other
    arguments are as for `softmax_rows`.
    """
    z, tops, _, _, _, _ = work
    for start in range(0, scores.shape[0], BLOCK):
        size = min(scores.shape[0] - start, BLOCK)
        _shift_rows(scores, start, size, slopes, offsets, z, tops)
        for i in range(size):
            first = _first(z[i, : scores.shape[1]], tops[i])
            labels[start + i] = first
            values[start + i] = tops[i]
            counts[first] += weights[start + i]


# Entries of a row that are so far apart are a lane, and the largest of each lane is known first. Of
# 64 lanes, the 24th largest is below some 30 entries of the row: only these are looked at again.
N_LANES = 64


@row_kernel
def _smallest(values):
    """Return where the smallest of some values is."""
    where = 0
    for k in range(values.shape[0]):
        if values[k] < values[where]:
            where = k
    return where


@row_kernel
def _shift_lanes(row, slope, offsets, z, lanes):
    """Set z = slope * row + offsets, and find the largest of every `N_LANES`-th entry."""
    assume_no_overlap()
    for j in range(N_LANES):
        lanes[j] = -np.inf
    n_whole = row.shape[0] // N_LANES
    for i in range(n_whole):
        of_row = row[i * N_LANES : (i + 1) * N_LANES]
        of_offsets = offsets[i * N_LANES : (i + 1) * N_LANES]
        of_z = z[i * N_LANES : (i + 1) * N_LANES]
        for j in range(N_LANES):
            value = slope * of_row[j] + of_offsets[j]
            of_z[j] = value
            lanes[j] = value if value > lanes[j] else lanes[j]
    for k in range(n_whole * N_LANES, row.shape[0]):
        z[k] = slope * row[k] + offsets[k]
        j = k - n_whole * N_LANES
        lanes[j] = z[k] if z[k] > lanes[j] else lanes[j]


@row_kernel
def _least_of_largest(lanes, best):
    """Return the smallest of the largest lanes, as many as `best` holds; they are written there."""
    m = best.shape[0]
    best[:] = lanes[:m]
    where = _smallest(best)
    for j in range(m, lanes.shape[0]):
        if lanes[j] > best[where]:
            best[where] = lanes[j]
            where = _smallest(best)
    return best[where]


@row_kernel
def largest_rows(scores, slopes, offsets, columns, values):
    """Find the columns of the m largest z of each row, in any order, and these z.

    With z = slopes[n] * scores[n] + offsets, on exit columns[n] (int32) are those columns, and
    values[n], of the scores' dtype, their z. m is at most `N_LANES` and the number of columns.
    Other arguments are as for `softmax_rows`. A z that is nan is none of the largest: if others are
    too few, the first columns take its place, and their z is -inf.
    """
    K = scores.shape[1]
    m = columns.shape[1]
    z = np.empty(K, scores.dtype)
    lanes = np.empty(N_LANES, scores.dtype)
    for n in range(scores.shape[0]):
        _shift_lanes(scores[n], slopes[n], offsets, z, lanes)
        own = columns[n]
        best = values[n]
        # At least m entries are not below the m-th largest of the lanes.
        least = _least_of_largest(lanes, best)
        best[:] = -np.inf
        for k in range(m):
            own[k] = k
        where = 0
        n_found = 0
        for start in range(0, K, BLOCK):
            part = z[start : start + BLOCK]
            n_above = np.int32(0)  # nearly always 0, and counted without a jump
            for k in range(part.shape[0]):
                n_above += np.int32(1) if part[k] >= least else np.int32(0)
            if n_above == 0:
                continue
            for k in range(part.shape[0]):
                if n_found < m:
                    if part[k] >= least:
                        own[n_found] = start + k
                        best[n_found] = part[k]
                        n_found += 1
                        where = _smallest(best)
                elif part[k] > best[where]:
                    own[where] = start + k
                    best[where] = part[k]
                    where = _smallest(best)


@row_kernel
def _exp_of_gaps(z, top, scale, powers):
    """Set powers = exp(scale * (z - top)), which vectors do."""
    assume_no_overlap()
    for k in range(z.shape[0]):
        powers[k] = _exp(scale * (z[k] - top))


@row_kernel
def count_candidates(components, scores, weights, offsets, temperature, counts):
    """Add to counts the weights of rows, shared out among a few components of each.

    Row n chooses among components[n] (m) by softmax((scores[n] - offsets[components[n]]) /
    temperature); at a temperature of 0 it chooses the first with the largest difference.
    Components are int32; scores and offsets are finite float32, and all others float64.
    """
    m = components.shape[1]
    z = np.empty(m, scores.dtype)
    powers = np.empty(m, scores.dtype)
    scale = scores.dtype.type(1 / max(temperature, LEAST_TEMPERATURE))
    for n in range(components.shape[0]):
        own = components[n]
        first = 0
        for k in range(m):
            z[k] = scores[n, k] - offsets[own[k]]
            if z[k] > z[first]:
                first = k
        if temperature == 0:
            counts[own[first]] += weights[n]
            continue
        _exp_of_gaps(z, z[first], scale, powers)
        total = 0.0
        for k in range(m):
            total += powers[k]
        factor = weights[n] / total
        for k in range(m):
            if powers[k] > 0:
                counts[own[k]] += factor * powers[k]


# Up to so many candidates, the support is found by comparing them pair by pair. Rows of 24 to 40
# would take up to 1.8 times as long in this way.
MAX_PAIRWISE = 12

# A limit that is not reached: Newton's method takes 4 to 9 steps for alpha <= 2, and hardly more
# above.
MAX_ITER = 100

NO_BITS = np.uint64(0)
ONE_BIT = np.uint64(1)


@row_kernel
def _mark(rows, width, tops, marks):
    """Find the largest entry of each row, and set the bits of entries within width of it.

    Column k is bit k % 64 of word k // 64; a nan is marked too. Whole blocks are marked before
    the first bit is read: how many there are is a guess that processors get wrong, and it
    costs less once the answer is in memory.
    """
    for n in range(rows.shape[0]):
        tops[n] = _largest(rows[n])
    for n in range(rows.shape[0]):
        cut = rows.dtype.type(tops[n]) - width
        for word in range(marks.shape[1]):
            part = rows[n, 64 * word : 64 * word + 64]
            bits = NO_BITS
            for k in range(part.shape[0]):
                bits |= NO_BITS if part[k] < cut else ONE_BIT << np.uint64(k)
            marks[n, word] = bits


@row_kernel
def _pick(marks, rows, tops, n, columns, y):
    """Write down columns marked in row n and y = row - top there; return how many, 0 for nan."""
    if not -np.inf < tops[n] < np.inf:
        return np.uintp(0)
    size = np.uintp(0)
    valid = True
    for word in range(marks.shape[1]):
        bits = marks[n, word]
        # It ends: each step clears one bit.
        while bits:
            # The lowest bit. Its logarithm is the exponent of its value as a float.
            bit = bits & (~bits + ONE_BIT)
            k = np.int64(64 * word + (np.float64(bit).view(np.int64) >> 52) - 1023)
            columns[n, size] = np.uintp(max(k, 0))
            y[size] = rows[n, columns[n, size]] - tops[n]
            valid &= y[size] <= 0
            size += np.uintp(1)
            bits ^= bit
    if not valid:
        return np.uintp(0)
    return size


@row_kernel
def _sparsemax_of_few(y, size, p):
    """Solve alpha = 2, p = (1 + y - T)_+: p_i > 0 if and only if sum_j (y_j - y_i)_+ < 1."""
    total = 0.0
    count = 0.0
    for i in range(size):
        above = 0.0
        for j in range(size):
            above += max(y[j] - y[i], 0.0)
        # A factor, here and below: processors would guess a branch wrong.
        inside = 1.0 if above < 1 else 0.0
        total += inside * (1 + y[i])
        count += inside
    T = (total - 1) / count
    for i in range(size):
        p[i] = max(1 + y[i] - T, 0.0)
    return T


@row_kernel
def _sparsemax_step(y, size, T):
    """Return (sum - 1) / count of the entries of 1 + y above T, and their count."""
    total = 0.0
    count = 0.0
    for i in range(size):
        inside = 1.0 if 1 + y[i] > T else 0.0
        total += inside * (1 + y[i])
        count += inside
    return (total - 1) / count, count


@row_kernel
def _sparsemax_of_many(y, size, p):
    """Solve alpha = 2 by Newton, which drops what falls below T until nothing does.

    From anywhere its first step leads below the solution, and from there T can only rise.
    """
    T, _ = _sparsemax_step(y, size, 0.5)
    count = size + 1.0
    previous = np.inf
    # It ends: the count falls from step to step.
    while count < previous:
        previous = count
        T, count = _sparsemax_step(y, size, T)
    for i in range(size):
        p[i] = max(1 + y[i] - T, 0.0)
    return T


@row_kernel
def _three_halves_shift(total, squares, count):
    """Return the smaller root of sum (u - shift)^2 = 1, from the sums of u, u^2 and 1."""
    excess = squares - 1
    return excess / (total + math.sqrt(max(total * total - count * excess, 0.0)))


@row_kernel
def _three_halves_of_few(y, size, p):
    """Solve alpha = 1.5, p = (u - shift)_+^2 with u = 1 + y / 2; returns T = 2 shift.

    p_i > 0 if and only if sum_j (u_j - u_i)_+^2 < 1.
    """
    total = 0.0
    squares = 0.0
    count = 0.0
    for i in range(size):
        above = 0.0
        for j in range(size):
            gap = max(y[j] - y[i], 0.0)
            above += gap * gap
        # Gaps of y are twice those of u, and their squares four times.
        inside = 1.0 if above < 4 else 0.0
        u = inside * (1 + 0.5 * y[i])
        total += u
        squares += u * u
        count += inside
    shift = _three_halves_shift(total, squares, count)
    for i in range(size):
        u = max(1 + 0.5 * y[i] - shift, 0.0)
        p[i] = u * u
    return 2 * shift


@row_kernel
def _three_halves_of_many(y, size, p):
    """Solve alpha = 1.5 by Newton on the norm of (u - shift)_+, convex, then by the support."""
    shift = 0.5
    for _ in range(MAX_ITER):
        total = 0.0
        squares = 0.0
        for i in range(size):
            u = max(1 + 0.5 * y[i] - shift, 0.0)
            total += u
            squares += u * u
        step = (squares - math.sqrt(squares)) / total
        shift = max(shift + step, 0.0)
        # What is left is of the order of its square. The equation of the support corrects it.
        if abs(step) <= 1e-5:
            break

    total = 0.0
    squares = 0.0
    count = 0.0
    for i in range(size):
        u = max(1 + 0.5 * y[i] - shift, 0.0)
        total += u
        squares += u * u
        count += 1.0 if u > 0 else 0.0
    shift += _three_halves_shift(total, squares, count)
    for i in range(size):
        u = max(1 + 0.5 * y[i] - shift, 0.0)
        p[i] = u * u
    return 2 * shift


@row_kernel
def _root(b, c):
    """Return (1 + b)^(1/c) for b > -1, and 0 below."""
    if b <= -1:
        return 0.0
    # The papers' alpha = 1.25: ten times faster.
    if c == 0.25:
        return ((1 + b) * (1 + b)) * ((1 + b) * (1 + b))
    return math.exp(math.log1p(b) / c)


@row_kernel
def _entmax_below_two(y, size, c, p):
    """Solve 0 < c < 1 as p = exp(log1p(c (y - T)) / c), which keeps its digits as c goes to 0.

    Newton on sum(p)^c, convex in T: T increases from 0.
    """
    T = 0.0
    for _ in range(MAX_ITER):
        total = 0.0
        slope = 0.0
        for i in range(size):
            b = c * (y[i] - T)
            p[i] = _root(b, c)
            if p[i] > 0:
                total += p[i]
                slope += p[i] / (1 + b)
        step = -total * math.expm1(-c * math.log(total)) / (c * slope)
        if step <= 1e-15 * max(T, 1.0):
            break
        T += step
    for i in range(size):
        p[i] /= total
    return T


@row_kernel
def _last_of_support(z, size, c, top):
    """Find the smallest z with p > 0: those with sum_j (c (z_j - z_i))_+^(1/c) < 1."""
    # The last is in (low, high].
    low = -np.inf
    high = top
    # It ends: each step takes the pivot, and more, out of doubt.
    while True:
        # The smallest and the largest of the values still in doubt.
        least = high
        most = low
        for i in range(size):
            if low < z[i] < high:
                least = min(least, z[i])
                most = max(most, z[i])
        if least > most:
            return high

        # The largest value in doubt up to their middle, which rounding does not put above most.
        pivot = least
        middle = least + 0.5 * (most - least)
        for i in range(size):
            if pivot < z[i] <= middle:
                pivot = z[i]

        above = 0.0
        for i in range(size):
            if z[i] > pivot:
                above += (c * (z[i] - pivot)) ** (1 / c)
        if above < 1:
            high = pivot
        else:
            low = pivot


@row_kernel
def _entmax_above_two(z, size, c, top, p):
    """Solve c > 1 by Newton on the smallest positive entry v, p = (c (z - z_last) + v^c)^(1/c).

    Derived here: as a function of T the sum has infinite slope where an entry is added, as a
    function of v it is convex with slope >= 1, so Newton falls from v = 1 / count. Gaps of z are
    exact if small; those of y = z - top are not.
    """
    last = _last_of_support(z, size, c, top)
    count = 0
    for i in range(size):
        if z[i] >= last:
            count += 1
    v = 1.0 / count
    for _ in range(MAX_ITER):
        total = 0.0
        slope = 0.0
        for i in range(size):
            gap = c * (z[i] - last)
            if gap > 0:
                p[i] = (gap + v**c) ** (1 / c)
            elif gap == 0:
                p[i] = v
            else:
                p[i] = 0.0
            if p[i] > 0:
                total += p[i]
                slope += (v / p[i]) ** (c - 1)
        if total - 1 <= 1e-15 * slope * v or v == 0:
            break
        v = max(v - (total - 1) / slope, 0.0)
    for i in range(size):
        p[i] /= total
    return (last - top) + (1 - v**c) / c


@row_kernel
def _entmax_of_any(row, alpha, top, columns, y, size, p):
    """Set p[:size] to entmax, where no formula is known for alpha, and return T."""
    if alpha < 2:
        return _entmax_below_two(y, size, alpha - 1, p)
    for j in range(size):
        y[j] = row[columns[j]]
    return _entmax_above_two(y, size, alpha - 1, top, p)


@row_kernel
def _entmax_block(rows, alpha, p, T, work, later):
    """Set the rows of p, one block at most, to entmax of those given, and find their T.

    p must hold zeros: memory from `np.zeros` has them at no cost. The rows of `later` are fetched
    meanwhile, from wherever they are, for the next call.

    The support of row n is in columns[n, :sizes[n]]. A row without an entmax (it holds nan or
    +inf, or nothing above -inf) has sizes[n] = 0, and T is -1.
    """
    tops, marks, sizes, columns, y, q = work
    tiny = _smallest_normal(rows)
    _mark(rows, rows.dtype.type(1 / (alpha - 1)), tops, marks)
    for n in range(rows.shape[0]):
        if n < later.shape[0]:
            prefetch(later, n)
        size = _pick(marks, rows, tops, n, columns, y)
        sizes[n] = size
        if size == 0:
            T[n] = -1.0
        elif size == 1:
            T[n] = 0.0
            q[0] = 1.0
        elif alpha == 2 and size <= MAX_PAIRWISE:
            T[n] = _sparsemax_of_few(y, size, q)
        elif alpha == 2:
            T[n] = _sparsemax_of_many(y, size, q)
        elif alpha == 1.5 and size <= MAX_PAIRWISE:
            T[n] = _three_halves_of_few(y, size, q)
        elif alpha == 1.5:
            T[n] = _three_halves_of_many(y, size, q)
        else:
            T[n] = _entmax_of_any(rows[n], alpha, tops[n], columns[n], y, size, q)
        for j in range(size):
            p[n, columns[n, j]] = q[j] if q[j] >= tiny else 0.0


@row_kernel
def _work(K):
    """Return work space for a block of rows: tops, marks, sizes, columns, y and q."""
    tops = np.empty(BLOCK)
    marks = np.empty((BLOCK, (K + 63) // 64), np.uint64)
    sizes = np.empty(BLOCK, np.uintp)
    columns = np.empty((BLOCK, K), np.uintp)
    y = np.empty(K)
    q = np.empty(K)
    return tops, marks, sizes, columns, y, q


@row_kernel
def entmax(scores, alpha, p, T):
    """Set the rows of p to entmax of those of scores, both (n, K) and of one dtype.

    p must hold zeros. T is (n,) float64; -1 where a row has no entmax: it holds nan or +inf, or
    only -inf.
    """
    work = _work(scores.shape[1])
    for start in range(0, scores.shape[0], BLOCK):
        stop = start + BLOCK
        later = scores[stop : stop + BLOCK]
        _entmax_block(scores[start:stop], alpha, p[start:stop], T[start:stop], work, later)


@row_kernel
def entmax_rows(scores, slopes, offsets, weights, scales, counts, values, alpha):
    """Turn scores (n, K) into weighted and scaled alpha-entmax responsibilities, in place.

    With z = slopes[n] * scores[n] + offsets and p = entmax(z), on exit scores[n] is
    weights[n] * scales[n] * p, counts has gained weights[n] * p, and values[n] is the
    conjugate Omega*(z). No subnormal leaves. A row whose z are all -inf gets zeros and the
    value -inf. Arguments are as for `softmax_rows`; alpha is above 1.
    """
    z = np.empty((BLOCK, scores.shape[1]), scores.dtype)
    work = _work(scores.shape[1])
    tops, _, sizes, columns, _, _ = work
    tiny = _smallest_normal(scores)
    limit = _largest_float(scores)
    for start in range(0, scores.shape[0], BLOCK):
        rows = scores[start : start + BLOCK]
        T = values[start : start + BLOCK]
        for i in range(rows.shape[0]):
            slope = slopes[start + i]
            for k in range(rows.shape[1]):
                value = slope * rows[i, k] + offsets[k]
                # Slopes may overflow, and an infinite score would have no entmax.
                z[i, k] = limit if value > limit else value
                rows[i, k] = 0

        # No rows are fetched ahead: they have just been read.
        _entmax_block(z[: rows.shape[0]], alpha, rows, T, work, rows[:0])

        for i in range(rows.shape[0]):
            if sizes[i] == 0:
                T[i] = -np.inf
                continue
            weight = weights[start + i]
            scale = scales[start + i]
            mean = 0.0
            for j in range(sizes[i]):
                k = columns[i, j]
                count = weight * rows[i, k]
                mean += rows[i, k] * (z[i, k] - tops[i])
                counts[k] += count
                rows[i, k] = count * scale if count * scale >= tiny else 0.0
            T[i] = tops[i] + (T[i] + (alpha - 1) * mean) / alpha


@kernel
def mode_by_rounds(excess, floor, x):
    """Algorithm 1, for each row: share out by the excess; hold on the floor what falls below.

    Shares of the largest excess are `scale`, which falls from round to round as more entries are
    held; the largest never is. A round that holds no more is the last. If no excess is above 0,
    the first largest takes all but the floors.
    """
    n = x.shape[1]
    for i in range(x.shape[0]):
        row = excess[i]
        point = x[i]
        largest = 0
        for k in range(n):
            if row[k] > row[largest]:
                largest = k
        for k in range(n):
            point[k] = max(row[k], 0.0) / row[largest] if row[largest] > 0 else 0.0
        point[largest] = 1.0

        # The first round holds what is not above 0.
        scale = np.inf
        n_free = n + 1
        before = n + 2
        while n_free < before:
            before = n_free
            n_free = 0
            total = 0.0
            for k in range(n):
                if k == largest or (point[k] > 0 and point[k] * scale >= floor):
                    n_free += 1
                    total += point[k]
            scale = (1 - floor * (n - n_free)) / total
        for k in range(n):
            point[k] = max(point[k] * scale, floor)


@kernel
def mode_by_sorting(excess, order, floor, x):
    """Algorithm 2, corrected: free the entries from the largest down while they pass the floor.

    As printed, the algorithm fails wherever two entries are free or an alpha below 1 meets an
    alpha above. Here entry i of the ascending `order` is free where its excess is above 0 and
    excess_i (1 - i floor) >= floor sum_(j >= i) excess_j.
    """
    n = x.shape[0]
    largest = excess[order[n - 1]]
    first = n - 1
    total = 1.0
    # It ends: `first` falls.
    while first > 0:
        relative = max(excess[order[first - 1]], 0.0) / largest
        if relative == 0 or relative * (1 - floor * (first - 1)) < floor * (total + relative):
            break
        first -= 1
        total += relative

    scale = (1 - floor * first) / total
    for i in range(first):
        x[order[i]] = floor
    for i in range(first, n):
        x[order[i]] = excess[order[i]] / largest * scale
