"""Student-t scores, latent weights by which rows far away count less, and degrees of freedom."""

import math

import numpy as np

from ._jit import kernel, row_kernel

MAKES_ARRAYS = True

MAX_RATIO = 1e300  # of squared distances to degrees of freedom: larger ones count as this

# s = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): SHIFT moves the bits of s so that e is what
# stands in the exponent's place. There, put into the low bits of 2^52, it is a float.
# log(1 + f) = f - f^2 / 2 + q (f^2 / 2 + R(q^2)), q = f / (2 + f), with the minimax R of
# FreeBSD's logarithm: relative error below 2^-58.
LOWEST = np.int64(0x3FE6A09E667F3BCD)  # sqrt(1/2)
SHIFT = np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
MANTISSA, PLACE = np.int64(0x000FFFFFFFFFFFFF), np.int64(52)
INTEGER, OFFSET = np.int64(0x4330000000000000), 2.0**52 + 1023.0
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
R1, R2, R3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
R4, R5, R6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
R7 = 1.479819860511658591e-01

SERIES_FROM = 16.0  # from which log(x) - digamma(x) is its asymptotic series, to 1e-16
HALVINGS = 45  # of the range of log(nu): of 16 units twelve digits are left


@row_kernel
def _log(s, rest):
    """Return log(s) + rest of a normal s > 0; `rest` is added where it keeps its digits.

    A logarithm that compilers vectorise. For log(1 + t), s = 1 + t rounded and `rest` is
    what the rounding takes from t, over s.
    """
    bits = np.float64(s).view(np.int64) + SHIFT
    e = np.int64((bits >> PLACE) | INTEGER).view(np.float64) - OFFSET
    f = np.int64((bits & MANTISSA) + LOWEST).view(np.float64) - 1.0
    q = f / (2.0 + f)
    z = q * q
    w = z * z
    R = z * (R1 + w * (R3 + w * (R5 + w * R7))) + w * (R2 + w * (R4 + w * R6))
    half = 0.5 * f * f
    return e * LOG2_HIGH - ((half - (q * (half + R) + (e * LOG2_LOW + rest))) - f)


@row_kernel
def tail_scores(products, dof, dim, latent):
    """Turn minus half squared distances (n, K) into log-densities but for a constant, in place.

    On exit products[n, k] is -(nu + d) / 2 log(1 + D / nu), with D = -2 products[n, k] and
    nu = dof[k] between 1e-3 and 1e100, and latent[n, k] is (nu + d) / (nu + D).
    """
    K = np.uintp(products.shape[1])
    inverse, power, most = 1.0 / dof, 0.5 * (dof + dim), 1.0 + dim / dof
    for n in range(products.shape[0]):
        row, weights = products[n], latent[n]
        for k in range(K):
            t = min(max(-2.0 * np.float64(row[k]) * inverse[k], 0.0), MAX_RATIO)
            s = 1.0 + t
            row[k] = -power[k] * _log(s, (t - (s - 1.0)) / s)
            weights[k] = most[k] / s


@row_kernel
def weigh_responsibilities(resp, latent, sums, logs):
    """Multiply latent weights u by responsibilities r (n, K), in place, and sum them.

    On exit latent[n, k] is r u, and sums and logs have gained r u and r log(u) summed over rows.
    """
    K = np.uintp(resp.shape[1])
    for n in range(resp.shape[0]):
        row, weights = resp[n], latent[n]
        for k in range(K):
            r, u = np.float64(row[k]), weights[k]
            logs[k] += r * _log(u, 0.0)
            sums[k] += r * u
            weights[k] = r * u


@kernel
def _log_less_digamma(x):
    """Return log(x) - digamma(x), by digamma(x) = digamma(x + 1) - 1 / x below the series."""
    y, total = x, 0.0
    while y < SERIES_FROM:  # at most sixteen times
        total += 1.0 / y
        y += 1.0
    z = 1.0 / (y * y)
    tail = 1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132))))
    return (math.log(x) - math.log(y)) + total + (0.5 / y + z * tail)


@kernel
def solve_dof(gaps, dims, shares, low, high, out):
    """Find degrees of freedom nu with f(nu / 2) - mean of f((nu + d) / 2) = gap, f = log - digamma.

    The mean is over numbers d of observed features, `dims` (m,), with shares (K, m) of sum 1. The
    left side falls from infinity to 0; beyond the range of nu its nearer end is found. By bisection
    of log(nu), written to `out` (K,).
    """
    for k in range(gaps.shape[0]):
        below, above = math.log(low), math.log(high)
        for _ in range(HALVINGS):
            middle = 0.5 * (below + above)
            x = 0.5 * math.exp(middle)
            mean = 0.0
            for i in range(dims.shape[0]):
                mean += shares[k, i] * _log_less_digamma(x + 0.5 * dims[i])
            if _log_less_digamma(x) - mean > gaps[k]:
                below = middle
            else:
                above = middle
        out[k] = min(max(math.exp(0.5 * (below + above)), low), high)
