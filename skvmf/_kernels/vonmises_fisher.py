"""Exact von Mises-Fisher arithmetic: log-partition, Bessel ratio and its inverse.

Notation: d the dimension, a = (d - 1)/2, kappa the concentration, r = A(kappa) the mean
resultant length, q = 1 - r. The log-partition Phi is with respect to the uniform probability
measure on the sphere; psi(r) = kappa r - Phi(kappa) is its Legendre transform.

Three regions. For a >= 32, or a large S = sqrt(a^2 + kappa^2), the uniform expansions of
`vonmises_fisher_tables` (their polynomials come in as arguments); for small dimension and
concentration, power series of positive terms; for the inverse there, polynomials fitted to them
in cells of y = (1 + r^2)/(1 - r^2), which come in too. All arrays are contiguous float64, all
results as exact as their arguments allow.
"""

import math

import numpy as np

from ._jit import kernel, row_kernel, sum_kernel

MIN_EXPANDED = 32.0  # a or kappa, from which the expansions reach the last digit
MIN_EXPANDED_INVERSE = 90.0  # 2a/tau, from which that of the inverse does for a below MIN_EXPANDED
BITS_BELOW = np.int64(50)  # of the leading bits of y, two tell the quarter of a power of two
FIRST_CELL = np.int64(0x3FF << 2)  # that of y = 1


@kernel
def _polynomial(x, coefficients):
    """Sum coefficients (ascending, of even number) in two independent Horner chains."""
    square = x * x
    even = 0.0
    odd = 0.0
    for i in range(len(coefficients) - 2, -1, -2):
        even = even * square + coefficients[i]
        odd = odd * square + coefficients[i + 1]
    return even + x * odd


@kernel
def _bessel_series(kappa, half_dim):
    """Return 0F1(; n; z) - 1 and 0F1(; n + 1; z) at n = d/2, z = kappa^2/4."""
    z = 0.25 * kappa * kappa
    term = 1.0
    first = 0.0
    second = 1.0
    k = 0.0
    while term > 1e-17 * first:  # each term is less than half the last once k^2 > 2 z
        k += 1.0
        term *= z / (k * (half_dim + k - 1.0))
        first += term
        second += term * half_dim / (half_dim + k)
    return first, second


@kernel
def _kummer_series(kappa, a):
    """Return 1 - A = M(a, 2a + 1, 2 kappa)/M(a, 2a, 2 kappa): positive terms only."""
    term = 1.0
    above = 1.0
    below = 1.0
    k = 0.0
    while term > 1e-17 * above:  # each term is less than half the last once k > 4 kappa
        k += 1.0
        term *= 2.0 * kappa * (a + k - 1.0) / ((2.0 * a + k - 1.0) * k)
        below += term
        above += term * 2.0 * a / (2.0 * a + k)
    return above / below


@kernel
def log_partition(kappa, dim, tail, constant, deficit, out):
    """Set out to Phi(kappa), or to kappa - Phi(kappa) without cancellation if `deficit`."""
    a = 0.5 * (dim - 1.0)
    for i in range(len(kappa)):
        k = kappa[i]
        if a < MIN_EXPANDED and k < MIN_EXPANDED:
            phi = math.log1p(_bessel_series(k, a + 0.5)[0])
            out[i] = k - phi if deficit else phi
            continue
        S = math.sqrt(a * a + k * k)
        t = a / S
        if a < MIN_EXPANDED:
            rest = 0.5 * math.log1p(t) - a * math.log(a + S) + _polynomial(t, tail) + constant
            out[i] = -a * a / (S + k) - rest if deficit else S + rest
        else:
            b = k / (S + a)
            y = 0.5 * b * k / a
            c = b * k / S  # 1 - t
            rest = 0.5 * math.log1p(-0.5 * c) - a * math.log1p(y) + c * _polynomial(t, tail)
            out[i] = a * k * (1.0 + b) / (S + k) - rest if deficit else b * k + rest


@kernel
def mean_resultant_length(kappa, dim, gap, complement, out):
    """Set out to A(kappa), or to 1 - A(kappa) without cancellation if `complement`."""
    a = 0.5 * (dim - 1.0)
    for i in range(len(kappa)):
        k = kappa[i]
        if a < MIN_EXPANDED and k < MIN_EXPANDED:
            if complement:
                out[i] = _kummer_series(k, a)
            else:
                first, second = _bessel_series(k, a + 0.5)
                out[i] = k / (2.0 * a + 1.0) * (second / (1.0 + first))
            continue
        S = math.sqrt(a * a + k * k)
        b = k / (a + S)
        g = _polynomial(a / S, gap)
        if complement:
            out[i] = a * (1.0 + a / (S + k)) / (a + S) - b * g
        else:
            out[i] = b + b * g


@kernel
def _in_cell(y, cells):
    """Return the polynomial of the cell that the leading bits of y, at least one, tell."""
    leading = np.float64(y).view(np.int64) >> BITS_BELOW
    start = np.int64(leading << BITS_BELOW).view(np.float64)
    return _polynomial(y - start, cells[leading - FIRST_CELL])


@kernel
def negentropy(r, complement, dim, excess, tail, cells, order, out):
    """Set out to psi(r), psi'(r) (the concentration) or psi''(r) for order 0, 1 or 2.

    `complement` holds 1 - r; where it is empty, 1 - r is computed. `cells` (2, n, m) are read
    for small dimension and concentration only: y times the excess, and the tail.
    """
    a = 0.5 * (dim - 1.0)
    given = len(complement) > 0
    for i in range(len(r)):
        x = r[i]
        q = complement[i] if given else 1.0 - x
        w = x * x
        vee = q * (1.0 + x)  # 1 - r^2
        tau = vee / (1.0 + w)
        y = 1.0 + 2.0 * w / vee  # rounding leaves it at least one
        near = a < MIN_EXPANDED and 2.0 * a * y < MIN_EXPANDED_INVERSE
        if order == 0:
            rest = 0.5 * math.log1p(w) - a * (math.log1p(-w) if w < 0.5 else math.log(vee))
            above = _in_cell(y, cells[1]) if near else _polynomial(tau, tail)
            out[i] = rest + (above if a < MIN_EXPANDED else 2.0 * w / (1.0 + w) * above)
            continue
        h = tau * _in_cell(y, cells[0]) if near else _polynomial(tau, excess)
        if order == 1:
            out[i] = 2.0 * a * x / vee * (1.0 + h)
        elif x == 0.0:
            out[i] = dim
        else:
            out[i] = (1.0 + h) / (vee * h)


# 1 - m.x for highly concentrated components, from the squared chord (x - m)^2 / 2: nothing
# cancels if x and m are close.

MAX_FROM_CHORD = 1e-3  # 1 - cosine, at most: above, the difference itself loses four digits


@sum_kernel
def _half_squared_chord(row, scale, direction):
    """Return half of ||scale row - direction||^2."""
    total = 0.0
    for j in range(direction.shape[0]):
        gap = scale * np.float64(row[j]) - direction[j]
        total += gap * gap
    return 0.5 * total


@row_kernel
def cosine_complements(X, scales, directions, cosines):
    """Turn cosines (n, m) of rows and unit directions (m, d) into 1 - cosine, in place.

    Scales (n,) give the rows unit length; a row of scale 0 is all zeros.
    """
    for n in range(X.shape[0]):
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _half_squared_chord(X[n], scales[n], directions[k])
            cosines[n, k] = gap


@row_kernel
def _csr_half_squared_chord(columns, values, scale, direction):
    """Return half of ||scale row - direction||^2 for a row of sorted columns."""
    total, j, size = 0.0, 0, columns.shape[0]
    for c in range(direction.shape[0]):
        gap = -direction[c]
        while j < size and columns[j] == c:  # ends: j rises, by one where columns differ
            gap += scale * np.float64(values[j])
            j += 1
        total += gap * gap
    return 0.5 * total


@row_kernel
def csr_cosine_complements(indptr, indices, data, scales, directions, cosines):
    """As `cosine_complements`, for the CSR rows that indptr spans, their columns sorted."""
    for n in range(cosines.shape[0]):
        start, stop = indptr[n], indptr[n + 1]
        columns, values = indices[start:stop], data[start:stop]
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _csr_half_squared_chord(columns, values, scales[n], directions[k])
            cosines[n, k] = gap
