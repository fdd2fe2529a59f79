"""Exact von Mises-Fisher arithmetic: log-partition, Bessel ratio and its inverse.

Notation: d the dimension, a = (d - 1)/2, kappa the concentration, r = A(kappa) the mean
resultant length, q = 1 - r. The log-partition Phi is with respect to the uniform probability
measure on the sphere; psi(r) = kappa r - Phi(kappa) is its Legendre transform. All arrays are
contiguous float64, all results as exact as their arguments allow.

For small dimension and concentration there are power series of positive terms; for the inverse
there, polynomials fitted to them in cells of y = (1 + r^2)/(1 - r^2), which come in as arguments,
and so do the polynomials of `expansions` for a >= 32 or a large S = sqrt(a^2 + kappa^2) (derived
here). With t = a/S, the Riccati equation A' = 1 - A^2 - 2 a A/kappa of the Bessel ratio A is solved
by

    A = kappa/(a + S) (1 + sum_k c_k(t) S^-k)

and, with tau = (1 - r^2)/(1 + r^2), its inverse by

    kappa = 2 a r/(1 - r^2) (1 + sum_n h_n(tau) (2 a)^-n),

c_k and h_n polynomials. The log-partition and the negative entropy are integrals of the same
polynomials. For one dimension every sum over orders is a single polynomial in t or in tau.
"""

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ._jit import assume_no_overlap, kernel, row_kernel, sum_kernel

# The expansions are used from this a or kappa on. They are asymptotic: their smallest terms are
# 1e-19 where S = 25, and 1e-13 where S = 15.
MIN_EXPANDED = 32.0

# For a below, that of the inverse is used from this 2 a / tau on, where as many orders reach the
# last digit.
MIN_EXPANDED_INVERSE = 90.0

# Of the bits of y, the exponent and two of the mantissa number its cell, a quarter of a power of
# two; the other bits are below. The first cell starts at y = 1.
BITS_BELOW = np.int64(50)
FIRST_CELL = np.int64(0x3FF << 2)


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
    # Each term is less than half the last once k^2 > 2 z.
    while term > 1e-17 * first:
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
    # Each term is less than half the last once k > 4 kappa.
    while term > 1e-17 * above:
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
            elementary = 0.5 * math.log1p(t) - a * math.log(a + S)
            lower_order = elementary + _polynomial(t, tail) + constant
            if deficit:
                # kappa - S, without the difference.
                out[i] = -a * a / (S + k) - lower_order
            else:
                out[i] = S + lower_order
        else:
            b = k / (S + a)
            y = 0.5 * b * k / a
            # 1 - t, without the difference.
            c = b * k / S
            elementary = 0.5 * math.log1p(-0.5 * c) - a * math.log1p(y)
            lower_order = elementary + c * _polynomial(t, tail)
            if deficit:
                # kappa - b kappa, without the difference.
                out[i] = a * k * (1.0 + b) / (S + k) - lower_order
            else:
                out[i] = b * k + lower_order


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
    # Numba tests a signed index for being negative, which this one never is: y is at least one.
    cell = np.uintp(leading - FIRST_CELL)
    return _polynomial(y - start, cells[cell])


@kernel
def negentropy(r, complement, dim, excess, tail, cells, order, out):
    """Set out to psi(r), psi'(r) (the concentration) or psi''(r) for order 0, 1 or 2.

    `complement` holds 1 - r; where it is empty, 1 - r is computed. `cells` (2, n, m) are read
    for small dimension and concentration only: y times the excess, and the tail.
    """
    a = 0.5 * (dim - 1.0)
    given = len(complement) > 0
    excess_cells = cells[0]
    tail_cells = cells[1]
    for i in range(len(r)):
        x = r[i]
        q = complement[i] if given else 1.0 - x
        w = x * x
        # 1 - r^2, which keeps its digits as r nears one.
        vee = q * (1.0 + x)
        tau = vee / (1.0 + w)
        # (1 + r^2)/(1 - r^2), in a form that rounding leaves at least one.
        y = 1.0 + 2.0 * w / vee
        near = a < MIN_EXPANDED and 2.0 * a * y < MIN_EXPANDED_INVERSE
        if order == 0:
            log_vee = math.log1p(-w) if w < 0.5 else math.log(vee)
            elementary = 0.5 * math.log1p(w) - a * log_vee
            if near:
                value = _in_cell(y, tail_cells)
            else:
                value = _polynomial(tau, tail)
            # The tail is divided by 1 - tau, so that its digits are kept as r nears zero.
            if a >= MIN_EXPANDED:
                value *= 2.0 * w / (1.0 + w)
            out[i] = elementary + value
            continue
        if near:
            h = tau * _in_cell(y, excess_cells)
        else:
            h = _polynomial(tau, excess)
        if order == 1:
            out[i] = 2.0 * a * x / vee * (1.0 + h)
        elif x == 0.0:
            out[i] = dim
        else:
            out[i] = (1.0 + h) / (vee * h)


# 1 - m.x for highly concentrated components, from the squared chord (x - m)^2 / 2: nothing
# cancels if x and m are close.

# The largest 1 - cosine that is taken from the chord: above, the difference loses three digits.
MAX_FROM_CHORD = 1e-3


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
    assume_no_overlap()
    for n in range(X.shape[0]):
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _half_squared_chord(X[n], scales[n], directions[k])
            cosines[n, k] = gap


@row_kernel
def _csr_half_squared_chord(columns, values, scale, direction):
    """Return half of ||scale row - direction||^2 for a row of sorted columns."""
    total = 0.0
    j = 0
    size = columns.shape[0]
    for c in range(direction.shape[0]):
        gap = -direction[c]
        # It ends: j rises, by one where columns differ.
        while j < size and columns[j] == c:
            gap += scale * np.float64(values[j])
            j += 1
        total += gap * gap
    return 0.5 * total


@row_kernel
def csr_cosine_complements(indptr, indices, data, scales, directions, cosines):
    """As `cosine_complements`, for the CSR rows that indptr spans, their columns sorted."""
    assume_no_overlap()
    for n in range(cosines.shape[0]):
        start = indptr[n]
        stop = indptr[n + 1]
        columns = indices[start:stop]
        values = data[start:stop]
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _csr_half_squared_chord(columns, values, scales[n], directions[k])
            cosines[n, k] = gap


# With so many orders the expansions leave 1e-17 at MIN_EXPANDED; with 13 they would at 50.
_ORDERS = 18

# Parts that are left out, relative to the whole: 2^-53 is a rounding, and there are several parts.
_NEGLIGIBLE = 2.0**-57

# Points, relative to the largest argument, at which orders are compared with the whole.
_GRID = np.linspace(0.125, 1.0, 8)


class Expansions(NamedTuple):
    """Polynomials (ascending coefficients, of even number) and constants for one dimension.

    `gap` is A (a + S)/kappa - 1 in t; `tail` the part of the log-partition that is not
    elementary, in t; `excess` is kappa (1 - r^2)/(2 a r) - 1 in tau; `inverse_tail` the part of
    the negative entropy that is not elementary, in tau, with its constant of integration. For
    a >= 32 the two tails are divided by 1 - t and 1 - tau, and their constants are zero.
    """

    gap: np.ndarray
    tail: np.ndarray
    constant: float
    excess: np.ndarray
    inverse_tail: np.ndarray


@lru_cache(maxsize=256)
def expansions(dim: int) -> Expansions:
    """Sum the series over their orders for dimension `dim`."""
    a = 0.5 * (dim - 1)
    ratios, integrals, inverses, inverse_integrals = _series()
    small = a < MIN_EXPANDED
    # Where the expansions are used: a < 32 leaves kappa >= 32, and 2 a / tau >= 90.
    largest_t = 1.0
    largest_tau = 1.0
    if small:
        largest_t = a / np.hypot(a, MIN_EXPANDED)
        largest_tau = 2 * a / MIN_EXPANDED_INVERSE

    gap = _summed(ratios, a, largest_t)
    tail = a * _summed(integrals, a, largest_t)
    excess = _summed(inverses, 2 * a, largest_tau, scale=0.5 / a)
    inverse_tail = a * _summed(inverse_integrals, 2 * a, largest_tau)
    if small:
        constant = gammaln(a + 0.5) + (a - 0.5) * np.log(2) - 0.5 * np.log(2 * np.pi)
        inverse_tail = _trimmed(inverse_tail, largest_tau)
        inverse_tail[0] += -a + a * np.log(2 * a) - constant - 0.5 * np.log(2)
    else:
        constant = 0.0
        tail = _over_one_minus(tail)
        inverse_tail = _trimmed(_over_one_minus(inverse_tail), largest_tau)

    gap = _trimmed(gap, largest_t)
    tail = _trimmed(tail, largest_t)
    excess = _trimmed(excess, largest_tau)
    return Expansions(gap, tail, float(constant), excess, inverse_tail)


@cache
def _series() -> tuple[np.ndarray, ...]:
    """Solve the recurrences; return c_k t^k, the integrals of its tail, h_n, and those of its own.

    Double precision is enough: the leading orders are dyadic and exact, and an order needs
    fewer digits the smaller its part.
    """
    c = _ratio_series()
    h = _inverse_series()
    h[0] = 0.0
    ratios, integrals, inverse_integrals = np.zeros((3, *c.shape))
    for k in range(1, _ORDERS + 1):
        ratios[k] = _shifted(c[k], k)
        # Minus the integrals from 0 of c_k(s) s^(k-2)/(1+s) and h_k(s)/(s (1+s)).
        if k > 1:
            integrals[k] = -_integral(_shifted(_over_one_plus(c[k]), k - 2))
            inverse_integrals[k] = -_integral(_over_one_plus(_shifted(h[k], -1)))
    return ratios, integrals, h, inverse_integrals


def _summed(rows: np.ndarray, base: float, largest: float, scale: float = 1.0) -> np.ndarray:
    """Sum rows of order k times base^-k over the orders that count.

    An order counts if somewhere in (0, largest] it reaches the last digit of `scale` times the
    variable.
    """
    powers = np.arange(rows.shape[1])
    grid = largest * _GRID
    sizes = np.abs(rows @ (grid ** powers[:, np.newaxis] / (scale * grid))).max(axis=1)
    factors = base ** -np.arange(float(len(rows)))
    return np.where(sizes * factors > _NEGLIGIBLE, factors, 0.0) @ rows


def _ratio_series() -> np.ndarray:
    """Return c_k(t): the expansion of the Bessel ratio put into the Riccati equation.

    c_k = -1/2 [(1-t) sum_i c_i c_{k-i} + t c_{k-1} - (1-t^2)(t c_{k-1}' + (k-1) c_{k-1})].
    """
    c = np.zeros((_ORDERS + 1, 3 * _ORDERS))
    c[0, 0] = 1.0
    powers = np.arange(c.shape[1])
    for k in range(1, _ORDERS + 1):
        products = _products(c, c, k)
        slope = (powers + (k - 1)) * c[k - 1]
        bracket = products - _shifted(products, 1) + _shifted(c[k - 1], 1)
        c[k] = -0.5 * (bracket - slope + _shifted(slope, 2))
    return c


def _inverse_series() -> np.ndarray:
    """Return h_n(tau), whose coefficients are integers.

    h_n = tau h_{n-1} - sum_{0<i<n} h_i [h_{n-i} - tau (1-tau^2) h_{n-i}'].
    """
    h = np.zeros((_ORDERS + 1, 3 * _ORDERS))
    brackets = np.zeros_like(h)
    h[0, 0] = 1.0
    powers = np.arange(h.shape[1])
    for n in range(1, _ORDERS + 1):
        h[n] = _shifted(h[n - 1], 1) - _products(h, brackets, n)
        slope = powers * h[n]
        brackets[n] = h[n] - slope + _shifted(slope, 2)
    return h


def _products(left: np.ndarray, right: np.ndarray, n: int) -> np.ndarray:
    """Return the sum over 0 < i < n of left_i times right_{n-i}."""
    total = np.zeros(left.shape[1])
    for i in range(1, n):
        total += np.convolve(left[i], right[n - i])[: len(total)]
    return total


def _shifted(coefficients: np.ndarray, by: int) -> np.ndarray:
    """Multiply by the variable to the power `by`; what leaves at either end is zero."""
    result = np.zeros_like(coefficients)
    if by >= 0:
        result[by:] = coefficients[: len(coefficients) - by]
    else:
        result[:by] = coefficients[-by:]
    return result


def _integral(coefficients: np.ndarray) -> np.ndarray:
    """Return the antiderivative that is zero at zero."""
    return _shifted(coefficients / np.arange(1, len(coefficients) + 1), 1)


def _over_one_plus(coefficients: np.ndarray) -> np.ndarray:
    """Divide exactly by (1 + variable), from the constant term up."""
    quotient = np.zeros_like(coefficients)
    carry = 0.0
    for j, value in enumerate(coefficients):
        carry = value - carry
        quotient[j] = carry
    return quotient


def _over_one_minus(coefficients: np.ndarray) -> np.ndarray:
    """Return (p(x) - p(1))/(1 - x)."""
    above = np.cumsum(coefficients[::-1])[::-1]
    return -np.append(above[1:], 0.0)


def _trimmed(coefficients: np.ndarray, largest: float) -> np.ndarray:
    """Keep an even number of powers: those that count where the variable is at most `largest`."""
    sizes = np.abs(coefficients) * largest ** np.arange(len(coefficients))
    above = np.cumsum(sizes[::-1])[::-1]
    n_kept = np.count_nonzero(above > _NEGLIGIBLE * sizes.max())
    leading = np.zeros(n_kept + n_kept % 2)
    leading[:n_kept] = coefficients[:n_kept]
    return leading
