"""Student-t scores, latent weights by which rows far away count less, and degrees of freedom."""

import math

import numpy as np

from ._jit import kernel, row_kernel

# Squared distances over degrees of freedom that are larger count as this: `_log` takes finite
# numbers only.
MAX_RATIO = 1e300

# s = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): SHIFT moves the bits of s so that e is what
# stands in the exponent's place. There, put into the low bits of 2^52, it is a float.
# log(1 + f) = f - f^2 / 2 + q (f^2 / 2 + R(q^2)), q = f / (2 + f), with the minimax R of
# FreeBSD's logarithm: relative error below 2^-58.
# The bits of sqrt(1/2), and what they are below those of 1.
LOWEST = np.int64(0x3FE6A09E667F3BCD)
SHIFT = np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)

# The bits of a mantissa, and how many they are.
MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
MANTISSA_SIZE = np.int64(52)

# The bits of 2^52, and what they and the bias of exponents add to a number in the low bits.
INTEGER = np.int64(0x4330000000000000)
OFFSET = 2.0**52 + 1023.0

# log(2) in two parts, so that the product of an exponent and the first is exact.
LOG2_HIGH = 6.93147180369123816490e-01
LOG2_LOW = 1.90821492927058770002e-10
R1 = 6.666666666666735130e-01
R2 = 3.999999999940941908e-01
R3 = 2.857142874366239149e-01
R4 = 2.222219843214978396e-01
R5 = 1.818357216161805012e-01
R6 = 1.531383769920937332e-01
R7 = 1.479819860511658591e-01

# From here on, log(x) - digamma(x) is its asymptotic series, to 1e-16.
SERIES_FROM = 16.0

# Halvings of the range of log(nu): twelve digits are left of its 16 units.
HALVINGS = 45


@row_kernel
def _log(s, rest):
    """Return log(s) + rest of a normal s > 0; `rest` is added where it keeps its digits.

    A logarithm that compilers vectorise. For log(1 + t), s = 1 + t rounded and `rest` is
    what the rounding takes from t, over s.
    """
    bits = np.float64(s).view(np.int64) + SHIFT
    e = np.int64((bits >> MANTISSA_SIZE) | INTEGER).view(np.float64) - OFFSET
    f = np.int64((bits & MANTISSA) + LOWEST).view(np.float64) - 1.0
    q = f / (2.0 + f)
    z = q * q
    w = z * z
    # Even and odd powers in two chains, which run side by side.
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
    inverse = 1.0 / dof
    power = 0.5 * (dof + dim)
    # The latent weight of a row at the mean.
    largest = 1.0 + dim / dof
    for n in range(products.shape[0]):
        row = products[n]
        weights = latent[n]
        for k in range(K):
            t = min(max(-2.0 * np.float64(row[k]) * inverse[k], 0.0), MAX_RATIO)
            s = 1.0 + t
            row[k] = -power[k] * _log(s, (t - (s - 1.0)) / s)
            weights[k] = largest[k] / s


@row_kernel
def weigh_responsibilities(resp, latent, sums, logs):
    """Multiply latent weights u by responsibilities r (n, K), in place, and sum them.

    On exit latent[n, k] is r u, and sums and logs have gained r u and r log(u) summed over rows.
    """
    K = np.uintp(resp.shape[1])
    for n in range(resp.shape[0]):
        row = resp[n]
        weights = latent[n]
        for k in range(K):
            r = np.float64(row[k])
            u = weights[k]
            logs[k] += r * _log(u, 0.0)
            sums[k] += r * u
            weights[k] = r * u


@kernel
def _log_less_digamma(x):
    """Return log(x) - digamma(x), by digamma(x) = digamma(x + 1) - 1 / x below the series."""
    y = x
    total = 0.0
    # At most sixteen times.
    while y < SERIES_FROM:
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
        below = math.log(low)
        above = math.log(high)
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
