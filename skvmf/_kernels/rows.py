"""Sums and products of dense and CSR rows, conversion of half precision, and sampling."""

import math

import numpy as np

from ._jit import Array, assume_no_overlap, kernel, prefetch, row_kernel, sum_kernel, thread_cache

# How many rows ahead a row is fetched from memory, and how many bytes it has at least: fetching
# short rows costs more than it saves (twice the time at 64 bytes).
PREFETCH_ROWS = 4
MIN_PREFETCH_BYTES = 1024

NO_BITS = np.uint64(0)
ONE_BIT = np.uint64(1)

# Responsibilities that are listed before they are added. With 4,000 components of 384 features,
# lists of 2^12 take half as long again, as they have few rows of each; those of 2^18 save nothing.
MAX_LISTED = 2**16

# Sums of so many features and components, 32 KiB, stay in the processor's first cache.
CACHED_FEATURES = 128
CACHED_COMPONENTS = 32


@row_kernel
def add_labelled_rows(X, labels, factors, out):
    """out[labels[n]] += factors[n] * X[n]; X is (n, d), out (K, d) float64."""
    assume_no_overlap()
    d = X.shape[1]
    last = 0  # of the rows that a later one is fetched at
    if d * X.itemsize >= MIN_PREFETCH_BYTES:
        last = X.shape[0] - PREFETCH_ROWS
    for n in range(X.shape[0]):
        if n < last:
            prefetch(X, n + PREFETCH_ROWS)
        row = X[n]
        total = out[labels[n]]
        factor = factors[n]
        for j in range(d):
            total[j] += factor * np.float64(row[j])


@row_kernel
def add_dense_responsibilities(X, resp, out):
    """out[k] += sum_n resp[n, k] X[n], four rows and two components at a time.

    X is (n, d), resp (n, K), and out (K, d), with a row more where K is odd, which is scrap. So
    many sums at a time stay in the processor's first cache.
    """
    assume_no_overlap()
    N, d = X.shape
    K = resp.shape[1]
    for start in range(0, d, CACHED_FEATURES):
        # Unsigned: a signed index is tested for being negative.
        low = np.uintp(start)
        high = np.uintp(min(start + CACHED_FEATURES, d))
        for first in range(0, K, CACHED_COMPONENTS):
            for n in range(0, N - 3, 4):
                x0, x1, x2, x3 = X[n], X[n + 1], X[n + 2], X[n + 3]
                for k in range(first, min(first + CACHED_COMPONENTS, K), 2):
                    # If K is odd, the last component is added once more, to the row of scrap.
                    m = min(k + 1, K - 1)
                    one = out[k]
                    two = out[k + 1]
                    a0, a1, a2, a3 = resp[n, k], resp[n + 1, k], resp[n + 2, k], resp[n + 3, k]
                    b0, b1, b2, b3 = resp[n, m], resp[n + 1, m], resp[n + 2, m], resp[n + 3, m]
                    for j in range(low, high):
                        y0, y1, y2, y3 = x0[j], x1[j], x2[j], x3[j]
                        # In this order each product is fused with its sum.
                        one[j] = (((one[j] + a0 * y0) + a1 * y1) + a2 * y2) + a3 * y3
                        two[j] = (((two[j] + b0 * y0) + b1 * y1) + b2 * y2) + b3 * y3
    for n in range(N - N % 4, N):
        for k in range(K):
            for j in range(d):
                out[k, j] += resp[n, k] * X[n, j]


@row_kernel
def pack_rows(resp, ends, columns, packed):
    """Write the m non-zeros of the rows of resp (n, K) one behind the other.

    Those of row n end before ends[n]. Their columns, ascending in a row, are int32, and `packed` of
    resp's dtype; both are (m + 1,), and the last entry is scrap.
    """
    assume_no_overlap()
    size = np.uintp(0)
    for n in range(resp.shape[0]):
        row = resp[n]
        for k in range(resp.shape[1]):
            # Every entry is written, and overwritten by the next if it is zero: processors would
            # guess a branch wrong.
            columns[size] = k
            packed[size] = row[k]
            size += np.uintp(row[k] != 0)
        ends[n] = size


@row_kernel
def _marked(part):
    """Return a word with bit k set where entry k, of 64 at most, is not zero."""
    bits = NO_BITS
    for k in range(part.shape[0]):
        bits |= NO_BITS if part[k] == 0 else ONE_BIT << np.uint64(k)
    return bits


@row_kernel
def add_sparse_responsibilities(X, resp, out):
    """out[k] += resp[n, k] * X[n] wherever resp is not zero; X is (n, d), out (K, d) float64."""
    assume_no_overlap()
    last = 0  # as above
    if X.shape[1] * X.itemsize >= MIN_PREFETCH_BYTES:
        last = X.shape[0] - PREFETCH_ROWS
    for n in range(X.shape[0]):
        if n < last:
            prefetch(X, n + PREFETCH_ROWS)
        row = X[n]
        for start in range(0, resp.shape[1], 64):
            bits = _marked(resp[n, start : start + 64])
            # It ends: each step clears one bit.
            while bits:
                # The lowest bit. Its logarithm is the exponent of its value as a float.
                bit = bits & (~bits + ONE_BIT)
                k = start + (np.float64(bit).view(np.int64) >> 52) - 1023
                total = out[k]
                factor = np.float64(resp[n, k])
                for i in range(row.shape[0]):
                    total[i] += factor * np.float64(row[i])
                bits ^= bit


@row_kernel
def _add_listed(X, size, listed, ordered, is_first, out):
    """out[k] += value * X[n] for `size` listed entries, component after component.

    Four rows at a time spare loads and stores. The rows of a component keep their order. If
    `is_first`, what is in `out` does not count.
    """
    assume_no_overlap()
    rows, columns, values = listed
    ends, order, factors = ordered
    K = out.shape[0]
    # Unsigned: a signed index is tested for being negative.
    one = np.uintp(1)
    two = np.uintp(2)
    three = np.uintp(3)
    four = np.uintp(4)

    # Sort by counting: first, component k begins at ends[k].
    ends[:] = 0
    for i in range(size):
        ends[np.uintp(columns[i]) + one] += 1
    for k in range(K):
        ends[k + 1] += ends[k]
    # ends[k] rises with every entry that is put in its place, up to the end of component k.
    for i in range(size):
        at = np.uintp(ends[np.uintp(columns[i])])
        ends[np.uintp(columns[i])] += 1
        order[at] = rows[i]
        factors[at] = values[i]

    i = np.uintp(0)
    for k in range(K):
        total = out[k]
        end = np.uintp(ends[k])
        if is_first:
            total[:] = 0
        # Both loops end: i rises.
        while i + four <= end:
            x0 = X[np.uintp(order[i])]
            x1 = X[np.uintp(order[i + one])]
            x2 = X[np.uintp(order[i + two])]
            x3 = X[np.uintp(order[i + three])]
            f0, f1, f2, f3 = factors[i], factors[i + one], factors[i + two], factors[i + three]
            for j in range(X.shape[1]):
                y0 = np.float64(x0[j])
                y1 = np.float64(x1[j])
                y2 = np.float64(x2[j])
                y3 = np.float64(x3[j])
                total[j] = (((total[j] + f0 * y0) + f1 * y1) + f2 * y2) + f3 * y3
            i += four
        while i < end:
            row = X[np.uintp(order[i])]
            factor = factors[i]
            for j in range(X.shape[1]):
                total[j] += factor * np.float64(row[j])
            i += one


def listing_space(n_components: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return this thread's work space for lists of the responsibilities of components."""
    space = getattr(thread_cache, "listing_space", None)
    if space is None or len(space[1][0]) != n_components + 1:
        # The limit and one row more: a list is added as soon as another row may not fit.
        size = MAX_LISTED + n_components
        listed = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
        ordered = np.empty(n_components + 1, np.int64), np.empty(size, np.int32), np.empty(size)
        space = listed, ordered
        thread_cache.listing_space = space
    return space


@row_kernel
def sum_for_many_components(X, resp, work, out):
    """out[k] = sum_n resp[n, k] * X[n] where most of resp is 0; X is (n, d), out (K, d) float64.

    The bits are those of `add_sparse_responsibilities` from 0 on. Here responsibilities are listed,
    and rows added by component: its sum stays in the first cache, where all of `out` would not.
    `work` is `listing_space(K)`.
    """
    listed, ordered = work
    rows, columns, values = listed
    size = np.uintp(0)
    is_first = True
    for n in range(X.shape[0]):
        for start in range(0, resp.shape[1], 64):
            bits = _marked(resp[n, start : start + 64])
            # As in `add_sparse_responsibilities`.
            while bits:
                bit = bits & (~bits + ONE_BIT)
                k = start + (np.float64(bit).view(np.int64) >> 52) - 1023
                rows[size] = n
                columns[size] = k
                values[size] = resp[n, k]
                size += np.uintp(1)
                bits ^= bit
        if size + resp.shape[1] > rows.shape[0]:
            _add_listed(X, size, listed, ordered, is_first, out)
            size = np.uintp(0)
            is_first = False
    _add_listed(X, size, listed, ordered, is_first, out)


# Products of CSR row blocks with small dense matrices.


@row_kernel
def csr_dot(indptr, indices, data, matrix, out):
    """Out = X @ matrix for the CSR rows that indptr spans; matrix is (d, K), out (n, K).

    The columns of X in its place give X.T @ matrix, for a matrix (n, K) and out (d, K).

    Four non-zeros a step: a quarter of the passes over `out`, and few enough rows of
    `matrix` for LLVM to prove that none overlaps it (with eight the loop stays scalar).
    """
    assume_no_overlap()
    K = np.uintp(matrix.shape[1])
    for n in range(np.uintp(out.shape[0])):
        row = out[n]
        row[:] = 0
        j = np.uintp(indptr[n])
        stop = np.uintp(indptr[n + 1])
        # Both loops end: j rises.
        while j + 4 <= stop:
            v0, v1, v2, v3 = data[j], data[j + 1], data[j + 2], data[j + 3]
            m0 = matrix[np.uintp(indices[j])]
            m1 = matrix[np.uintp(indices[j + 1])]
            m2 = matrix[np.uintp(indices[j + 2])]
            m3 = matrix[np.uintp(indices[j + 3])]
            for k in range(K):
                row[k] += (v0 * m0[k] + v1 * m1[k]) + (v2 * m2[k] + v3 * m3[k])
            j += np.uintp(4)
        while j < stop:
            v = data[j]
            m = matrix[np.uintp(indices[j])]
            for k in range(K):
                row[k] += v * m[k]
            j += np.uintp(1)


@row_kernel
def csr_scatter(indptr, indices, data, ends, columns, packed, out):
    """Out += X.T @ resp for packed rows of responsibilities; out is (d, K) float64."""
    start = np.int64(0)
    for n in range(np.uintp(ends.shape[0])):
        for m in range(start, ends[n]):
            k = columns[m]
            r = np.float64(packed[m])
            for j in range(indptr[n], indptr[n + 1]):
                out[indices[j], k] += r * data[j]
        start = ends[n]


def csr_row_scales(indptr: Array, data: Array, low: float, high: float, out: Array) -> None:
    """out[n] = 1 / ||x_n||; 0 for a zero row and -1 where the norm is outside [low, high]."""
    # Rows without entries are left out: `reduceat` would give them the next row's first entry.
    filled = indptr[:-1] < indptr[1:]
    if not filled.any():
        out[:] = 0.0
        return
    starts = (indptr[:-1] - indptr[0])[filled]
    values = data[indptr[0] : indptr[-1]]

    norms = np.zeros(len(out))
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square(values, dtype=np.float64)
        norms[filled] = np.sqrt(np.add.reduceat(squares, starts))
    safe = (low <= norms) & (norms <= high)
    np.divide(1.0, norms, out=out, where=safe)
    if safe.all():
        return

    largest = np.zeros(len(out))
    largest[filled] = np.maximum.reduceat(np.abs(values), starts)
    out[~safe] = np.where(largest[~safe] != 0, -1.0, 0.0)


@kernel
def csr_normalize(indptr, data):
    """Scale each row to unit length in place, in two steps that neither over- nor underflow."""
    for n in range(indptr.shape[0] - 1):
        largest = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            largest = max(largest, abs(np.float64(data[j])))
        if largest == 0.0:
            continue
        squares = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            squares += (data[j] / largest) ** 2
        norm = np.sqrt(squares)
        for j in range(indptr[n], indptr[n + 1]):
            data[j] = (data[j] / largest) / norm


# Conversion of half precision to float32, faster than NumPy's.


# Moved 13 places up, the bits of a half are those of a float32, but for its sign and an exponent
# that is 112 less. Multiplication by 2^112 is exact, for subnormal halves too.
SHIFT = np.int32(13)
RESCALING = np.float32(2.0**112)
SIGN_BIT = np.int32(-(2**31))
MAGNITUDE_BITS = np.int32(0x0FFFE000)

# The moved exponent of an infinite half or nan, 31, becomes that of float32, 255.
INFINITE_FROM = np.int32(0x0F800000)
INFINITE_EXPONENT = np.int32(0x7F800000)


@row_kernel
def widen(bits, out):
    """Write the float32 of each half, given as int16 (n,), to `out` (n,): the same number."""
    for i in range(np.uintp(bits.shape[0])):
        shifted = np.int32(np.int32(bits[i]) << SHIFT)
        magnitude = np.int32(shifted & MAGNITUDE_BITS)
        number = np.float32(magnitude.view(np.float32) * RESCALING).view(np.int32)
        number |= INFINITE_EXPONENT if magnitude >= INFINITE_FROM else np.int32(0)
        sign = np.int32(np.int32(bits[i]) & SIGN_BIT)
        out[i] = np.int32(number | sign).view(np.float32)


@sum_kernel
def row_scales(X, low, high, out):
    """out[n] = 1 / ||x_n||; 0 for a zero row and -1 where the norm is outside [low, high]."""
    for n in range(X.shape[0]):
        squares = 0.0
        for j in range(X.shape[1]):
            value = np.float64(X[n, j])
            squares += value * value
        norm = np.sqrt(squares)
        if low <= norm <= high:
            out[n] = 1.0 / norm
            continue
        out[n] = 0.0
        for j in range(X.shape[1]):
            if X[n, j] != 0:
                out[n] = -1.0


def normalize_rows(X: Array) -> None:
    """Scale rows to unit length in place, in two steps that neither over- nor underflow."""
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    largest[largest == 0] = 1.0
    rows = X / largest
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    norms[norms == 0] = 1.0
    rows /= norms[:, None]
    X[:] = rows


@kernel
def one_minus_cosines(rng, kappa, dim, out):
    """Set out to draws of 1 - m.x for x von Mises-Fisher about m.

    Ulrich (1984) with the envelope of Wood (1994), in quantities that do not cancel, however
    large kappa is. A proposal is the gap 2 b z / below, with below = 1 - (1 - b) z and z from a
    beta distribution; z = 1/2 is the one that is never refused, and in s = 2 z - 1 the logarithm
    of the chance of acceptance is m log(1 + (1 - b) s / (2 below)) - 2 b kappa s / ((1 + b) below).
    """
    m = dim - 1.0
    b = m / (2.0 * kappa + math.sqrt(4.0 * kappa * kappa + m * m))
    pull = 2.0 * b * kappa / (1.0 + b)
    for i in range(len(out)):
        accepted = False
        # Two proposals in three are accepted.
        while not accepted:
            z = rng.beta(0.5 * m, 0.5 * m)
            # Never zero, whose logarithm would be infinite.
            u = 1.0 - rng.random()
            below = max(1.0 - (1.0 - b) * z, b)
            s = (2.0 * z - 1.0) / below
            accepted = m * math.log1p(0.5 * (1.0 - b) * s) - pull * s >= math.log(u)
            out[i] = min(2.0 * b * z / below, 2.0)
