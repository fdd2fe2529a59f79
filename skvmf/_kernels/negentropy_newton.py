"""Concentration in natural parameters: Newton's method on the Perron continued fraction.

The method of the literature before mean parameters (P0 appendix A.5; Hornik & Gruen 2014), for
comparison. Notation as in `vonmises_fisher`.
"""

import math

from ._jit import kernel


@kernel
def _perron_ratio(kappa, half_dim):
    """Return A(kappa) from the Perron continued fraction (Gautschi & Slavik 1978)."""
    half = 0.5 * kappa
    v = half_dim + kappa + 0.5
    u = (half_dim + kappa) * v
    w = half * (half_dim + 0.5)
    rho = w / ((half_dim + half) * v - w)
    product = rho
    total = 1.0 + rho
    while product > 1e-17 * total:  # w grows like k, u like k^2: rho falls to 0
        u += v
        v += 0.5
        w += half
        part = w * (1.0 + rho)
        rho = part / (u - part)
        product *= rho
        total += product
    return kappa * total / (kappa + 2.0 * half_dim)


@kernel
def _ratio_slope(kappa, ratio, a):
    """Return A'(kappa): the Riccati equation, or two terms of its expansion where it cancels."""
    S = math.sqrt(a * a + kappa * kappa)
    t = a / S
    expanded = t / (a + S) * (1.0 + (1.0 - 0.5 * t - t * t) / S)
    if S > 10.0 and 2e-16 * S * S > expanded:  # rounding against the terms left out
        return expanded
    return 1.0 - ratio * ratio - 2.0 * a * ratio / kappa


@kernel
def _amos_inverse(r, vee, alpha, beta):
    """Return the kappa at which kappa/(alpha + sqrt(kappa^2 + beta^2)) is r."""
    return r / vee * (alpha + math.sqrt(alpha * alpha * r * r + beta * beta * vee))


@kernel
def newton(r, complement, dim, order, out):
    """Set out to psi' (order 1) or psi'' (order 2) by root finding in natural parameters.

    Newton's method on A(kappa) = r, within the bounds of Amos (1974). A is known to its last
    digit only, so the relative error grows like 1e-15/(1 - r).
    """
    a = 0.5 * (dim - 1.0)
    given = len(complement) > 0
    for i in range(len(r)):
        x = r[i]
        q = complement[i] if given else 1.0 - x
        if x < 1e-150:
            out[i] = dim * x if order == 1 else dim
            continue
        vee = q * (1.0 + x)
        low = max(
            _amos_inverse(x, vee, a, math.sqrt(a * (a + 1.0))),
            _amos_inverse(x, vee, a - 0.5, a + 1.5),
        )
        high = _amos_inverse(x, vee, a, a + 1.0)
        kappa = math.sqrt(low * high)
        for _ in range(20):
            ratio = _perron_ratio(kappa, a + 0.5)
            gap = (1.0 - ratio) - q if x > 0.5 else x - ratio
            step = gap / _ratio_slope(kappa, ratio, a)
            kappa = min(max(kappa + step, low), high)
            if abs(step) < 1e-8 * kappa or abs(gap) < 3e-16 * x:
                break
        ratio = _perron_ratio(kappa, a + 0.5)
        out[i] = kappa if order == 1 else 1.0 / _ratio_slope(kappa, ratio, a)
