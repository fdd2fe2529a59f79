"""The paper's routes from mean resultant length to psi, psi' and psi'': closed forms and roots.

Notation as in `vonmises_fisher`: d the dimension, a = (d - 1)/2, r the mean resultant length,
w = r^2, q = 1 - r, psi the negative entropy, psi' = kappa, psi'' = 1/A'(kappa). Everywhere
1 - w is q (1 + r), which keeps its digits as r nears one.
"""

import math

from ._jit import kernel


@kernel
def _banerjee(r, w, vee, d, order):
    """Banerjee et al. (2005): psi' = r (d - w)/(1 - w), with antiderivative and derivative."""
    if order == 0:
        return 0.5 * (w - (d - 1.0) * (math.log1p(-w) if w < 0.5 else math.log(vee)))
    if order == 1:
        return r * (d - w) / vee
    return (w * w + (d - 3.0) * w + d) / (vee * vee)


@kernel
def _half_integral(w, d):
    """Return T(w), the integral from 0 to w of 1/(2 Q) with Q = w^2 + (d - 2) w + d - 1.

    The roots of Q are complex for d <= 6, where the logarithm becomes an arctangent.
    """
    v = 0.5 * (d - 2.0)
    discriminant = v * v - (d - 1.0)
    s = math.sqrt(abs(discriminant))
    if discriminant < 0.0:
        return 0.5 * math.atan(w * s / (d - 1.0 + v * w)) / s
    return 0.25 * math.log1p(2.0 * w * s / ((d - 1.0) * (1.0 + w / (v + s)))) / s


@kernel
def _rational(r, w, vee, d, order):
    """Put Banerjee's psi'' into the differential equation once (P0 section 2.5)."""
    Q = w * w + (d - 2.0) * w + d - 1.0
    if order == 0:
        log_vee = math.log1p(-w) if w < 0.5 else math.log(vee)
        return (d - 1.0) * (_half_integral(w, d) - 0.5 * log_vee)
    if order == 1:
        return (d - 1.0) * r * (1.0 / vee + 1.0 / Q)
    odd = Q - 2.0 * w * (2.0 * w + d - 2.0)
    return (d - 1.0) * ((1.0 + w) / (vee * vee) + odd / (Q * Q))


@kernel
def _refined(r, w, vee, d, order):
    """Put the psi'' of `_rational` into the differential equation (P0 section 2.5)."""
    slope = _rational(r, w, vee, d, 2)
    below = vee - 1.0 / slope
    if order == 1:
        return (d - 1.0) * r / below
    Q = w * w + (d - 2.0) * w + d - 1.0
    dQ = 2.0 * w + d - 2.0
    odd = Q - 2.0 * w * dQ
    bend = (3.0 + w) / vee**3 - (dQ + 4.0 * w) / (Q * Q) - 2.0 * odd * dQ / Q**3
    curvature = 2.0 * (d - 1.0) * r * bend  # the third derivative of psi
    below_slope = curvature / (slope * slope) - 2.0 * r
    return (d - 1.0) * (1.0 - r * below_slope / below) / below


@kernel
def closed_form(r, complement, dim, refinement, order, out):
    """Set out to a closed form of psi, psi' or psi'' (order 0, 1, 2).

    `refinement` is 0 for Banerjee's, 1 and 2 for the paper's first and second refinement;
    the second has no antiderivative. Where `complement` is empty, 1 - r is computed.
    """
    d = 1.0 * dim
    given = len(complement) > 0
    for i in range(len(r)):
        x = r[i]
        w = x * x
        vee = (complement[i] if given else 1.0 - x) * (1.0 + x)
        if refinement == 0:
            out[i] = _banerjee(x, w, vee, d, order)
        elif refinement == 1:
            out[i] = _rational(x, w, vee, d, order)
        else:
            out[i] = _refined(x, w, vee, d, order)


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
    while product > 1e-17 * total:
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
    if 2e-16 * S * S > expanded:  # rounding against the terms left out
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
    digit only, so the relative error grows like 1e-16/(1 - r).
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
