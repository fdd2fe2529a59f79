"""Sparse posteriors: alpha-entmax over rows of scores, in place, for alpha > 1.

With c = alpha - 1 and y = z - max(z), p_i = b_i^(1 / c) where b_i = 1 + c (y_i - T) is positive,
else 0; T >= 0 is such that p sums to 1 (Sklaviadis et al., "Fenchel-Young variational learning",
eq. 8 and 15). So only entries with y > -1 / c can be in the support: they are picked out first, and
everything else is done on these few, in float64.
The conjugate Omega*(z) = <p, z> - Omega(p) is max(z) + (T + c <p, y>) / alpha: derived here
from p_i^c = b_i, without the cancellation of (sum p^alpha - 1) / c for alpha near 1.
For c > 1 a root magnifies the rounding of y, so there gaps between scores are taken first.
"""

import math

import numpy as np

from ._jit import prefetch, row_kernel

# Rows that are marked before the first of them is solved. Where supports are small, 4 take a fifth
# longer, and 32 save a twentieth; work space grows with them.
BLOCK = 16

# Up to so many candidates, the support is found by comparing them pair by pair. Rows of 24 to 40
# would take up to 1.8 times as long in this way.
MAX_PAIRWISE = 12

# A limit that is not reached: Newton's method takes 4 to 9 steps for alpha <= 2, and hardly more
# above.
MAX_ITER = 100

# Places from the top bit of an integer to its lowest, and the integers at both ends.
SIGN_32 = np.int32(31)
MAX_INT_32 = np.int32(2**31 - 1)
MIN_INT_32 = np.int32(-(2**31))
SIGN_64 = np.int64(63)
MAX_INT_64 = np.int64(2**63 - 1)
MIN_INT_64 = np.int64(-(2**63))

MAX_FLOAT_32 = np.finfo(np.float32).max
MAX_FLOAT_64 = np.finfo(np.float64).max

# The smallest normal floats. Below them arithmetic is up to 26 times as slow.
TINY_32 = np.float32(1.1754944e-38)
TINY_64 = 2.2250738585072014e-308

NO_BITS = np.uint64(0)
ONE_BIT = np.uint64(1)


@row_kernel
def _is_single(x):
    """Tell float32 from float64; the compiler knows the answer."""
    return x.dtype.type(1.0) + x.dtype.type(1e-9) == x.dtype.type(1.0)


@row_kernel
def _smallest_normal(x):
    """Return the smallest normal float of an array's type."""
    return TINY_32 if _is_single(x) else TINY_64


@row_kernel
def _largest(row):
    """Return the largest entry, as float64.

    Compilers vectorise the maximum of integers, not that of floats, which may be nan. So the
    bits are compared, those of negative numbers flipped to make their order that of integers.
    """
    if _is_single(row):
        best = MIN_INT_32
        for k in range(row.shape[0]):
            bits = np.float32(row[k]).view(np.int32)
            best = max(best, np.int32(bits ^ np.int32(np.int32(bits >> SIGN_32) & MAX_INT_32)))
        return np.float64(
            np.int32(best ^ np.int32((best >> SIGN_32) & MAX_INT_32)).view(np.float32)
        )
    top = MIN_INT_64
    for k in range(row.shape[0]):
        bits = np.float64(row[k]).view(np.int64)
        top = max(top, bits ^ ((bits >> SIGN_64) & MAX_INT_64))
    return np.int64(top ^ ((top >> SIGN_64) & MAX_INT_64)).view(np.float64)


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
    limit = scores.dtype.type(MAX_FLOAT_32 if _is_single(scores) else MAX_FLOAT_64)
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
