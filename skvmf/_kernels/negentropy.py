"""The paper's routes from mean resultant length to psi, psi' and psi'', and Newton's method.

Notation as in `vonmises_fisher`: d the dimension, a = (d - 1)/2, r the mean resultant length,
w = r^2, q = 1 - r, psi the negative entropy, psi' = kappa, psi'' = 1/A'(kappa). Everywhere
1 - w is q (1 + r), which keeps its digits as r nears one.

Newton's method in natural parameters is that of the literature before mean parameters (P0 appendix
A.5; Hornik & Gruen 2014), for comparison.
"""

import math

import numpy as np

from ._jit import kernel


@kernel
def _log_vee(w, vee):
    """Return log(1 - w), from the form of 1 - w that keeps its digits."""
    if w < 0.5:
        return math.log1p(-w)
    return math.log(vee)


@kernel
def _banerjee(r, w, vee, d, order):
    """Banerjee et al. (2005): psi' = r (d - w)/(1 - w), with antiderivative and derivative."""
    if order == 0:
        return 0.5 * (w - (d - 1.0) * _log_vee(w, vee))
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
        return (d - 1.0) * (_half_integral(w, d) - 0.5 * _log_vee(w, vee))
    if order == 1:
        return (d - 1.0) * r * (1.0 / vee + 1.0 / Q)
    odd = Q - 2.0 * w * (2.0 * w + d - 2.0)
    return (d - 1.0) * ((1.0 + w) / (vee * vee) + odd / (Q * Q))


@kernel
def _refined(r, w, vee, d, order):
    """Put the psi'' of `_rational` into the differential equation (P0 section 2.5)."""
    Q = w * w + (d - 2.0) * w + d - 1.0
    dQ = 2.0 * w + d - 2.0
    odd = Q - 2.0 * w * dQ
    ratio = vee / Q
    # psi'' vee^2 in place of psi'': a power of vee may underflow, and psi'' overflow.
    slope = (d - 1.0) * (1.0 + w + odd * ratio * ratio)
    below = vee - vee * vee / slope
    if order == 1:
        return (d - 1.0) * r / below
    bend = 3.0 + w - ratio * ratio * (vee * (dQ + 4.0 * w) + 2.0 * odd * dQ * ratio)
    # The third derivative of psi, times vee^3.
    curvature = 2.0 * (d - 1.0) * r * bend
    below_slope = vee * curvature / (slope * slope) - 2.0 * r
    return (d - 1.0) * (1.0 - r * below_slope / below) / below


@kernel
def closed_form(r, complement, dim, refinement, order, out):
    """Set out to a closed form of psi, psi' or psi'' (order 0, 1, 2).

    `refinement` is 0 for Banerjee's, 1 and 2 for the paper's first and second refinement;
    the second has no antiderivative. If `complement` is empty, 1 - r is computed.
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


# The singly diagonally implicit method of Hairer & Wanner (1996), Solving Ordinary Differential
# Equations II, table IV.6.5: order 4, L-stable; the last row weighs the result, `_ERROR` its
# difference from the embedded result of order 3.
_NODES = np.array([1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0])
_STAGES = np.array(
    [
        [1 / 4, 0.0, 0.0, 0.0, 0.0],
        [1 / 2, 1 / 4, 0.0, 0.0, 0.0],
        [17 / 50, -1 / 25, 1 / 4, 0.0, 0.0],
        [371 / 1360, -137 / 2720, 15 / 544, 1 / 4, 0.0],
        [25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4],
    ]
)
_ERROR = np.array([25 / 24 - 59 / 48, 17 / 96 - 49 / 48, 125 / 16 - 225 / 32, 0.0, 1 / 4])

# Below this r, the power series at zero: eight terms leave 1e-16.
_START = 0.1

# Beyond this -log(1 - r), delta is nothing and its integral constant.
_END = 32.0

# Newton's method in a step starts at the last stage's value; few steps reach 1e-14.
_MAX_NEWTON_STEPS = 8


@kernel
def start_series(dim, series):
    """Set series to u_j in psi'(r) = r sum_j u_j r^(2j): the ODE solved by powers, from r = 0."""
    d = 1.0 * dim
    series[0] = d
    for j in range(1, len(series)):
        total = d * series[j - 1]
        for i in range(1, j):
            total -= (1.0 + 2.0 * i) * series[i] * (series[j - i] - series[j - i - 1])
        series[j] = total / (2.0 * j + d)


@kernel
def _series_value(r, series, order):
    """Return psi, psi' or psi'' near zero."""
    w = r * r
    total = 0.0
    for j in range(len(series) - 1, -1, -1):
        if order == 0:
            factor = 0.5 / (j + 1.0)
        elif order == 1:
            factor = 1.0
        else:
            factor = 2.0 * j + 1.0
        total = total * w + series[j] * factor
    if order == 0:
        return total * w
    if order == 1:
        return total * r
    return total


@kernel
def _slope(r, q, d, delta):
    """Return delta' = psi'' - k_1', its derivative by delta, and psi' = k_1 + delta.

    delta = psi' - k_1, with k_1 the `_rational` form (P0 appendix A.4). The differential
    equation psi'' = 1/(1 - w - (d-1) r/psi') is written so that nothing cancels as r nears one.
    """
    w = r * r
    vee = q * (1.0 + r)
    Q = w * w + (d - 2.0) * w + d - 1.0
    odd = Q - 2.0 * w * (2.0 * w + d - 2.0)
    k1 = (d - 1.0) * r * (1.0 / vee + 1.0 / Q)
    kappa = k1 + delta
    # 1 - w - (d-1) r/k_1, and (d-1) r/k_1.
    below = vee * vee / (Q + vee)
    b = vee * Q / (Q + vee)
    shift = b * delta / kappa
    moved = below + shift
    slope = 1.0 - (d - 1.0) * odd / (Q * Q) - shift / (moved * below)
    return slope, -b * k1 / (kappa * kappa * moved * moved), kappa


@kernel
def _implicit(base, guess, weight, r, q, d):
    """Solve y = base + weight q delta'(r, y) by Newton's method."""
    y = guess
    for _ in range(_MAX_NEWTON_STEPS):
        slope, derivative, kappa = _slope(r, q, d, y)
        step = (y - base - weight * q * slope) / (1.0 - weight * q * derivative)
        y -= step
        if abs(step) < 1e-14 * kappa:
            break
    return y


@kernel
def _advance(start, h, r, q, d, stages):
    """Step from a row (x, delta, integral of delta) to x + h, where r and q are given.

    x = -log(1 - r): in it the solution is smooth up to r = 1. `stages` (2, 5) is work space and
    keeps the slopes of both components. Returns delta and its integral.
    """
    y = start[1]
    for s in range(5):
        base = start[1]
        for j in range(s):
            base += h * _STAGES[s, j] * stages[0, j]
        if s == 4:  # the last stage is at the end of the step: there r and q have all their digits
            q_s = q
            r_s = r
        else:
            q_s = math.exp(-(start[0] + _NODES[s] * h))
            r_s = 1.0 - q_s
        y = _implicit(base, y, 0.25 * h, r_s, q_s, d)
        stages[0, s] = (y - base) / (0.25 * h)
        stages[1, s] = q_s * y
    integral = start[2]
    for s in range(5):
        integral += h * _STAGES[4, s] * stages[1, s]
    return y, integral


@kernel
def solve(dim, series, tolerance, checkpoints):
    """Integrate the ODE in delta form over all r, and return the number of checkpoints.

    Explicit steps would have to be of length (1 - r)^2/d: the solution attracts strongly.
    `checkpoints` (n, 3) receives rows (-log(1 - r), delta, integral of delta); the local error
    relative to psi' and psi is held at `tolerance`. Returns -1 where n rows are too few.
    """
    d = 1.0 * dim
    stages = np.empty((2, 5))
    checkpoints[0, 0] = -math.log1p(-_START)
    k1 = _rational(_START, _START**2, 1.0 - _START**2, d, 1)
    checkpoints[0, 1] = _series_value(_START, series, 1) - k1
    psi1 = _rational(_START, _START**2, 1.0 - _START**2, d, 0)
    checkpoints[0, 2] = _series_value(_START, series, 0) - psi1
    n = 1
    # Any short first step: its length adapts within a few steps.
    h = 0.01
    # Twice as many steps as checkpoints: few are refused.
    for _ in range(2 * len(checkpoints)):
        if n == len(checkpoints):
            return -1
        x = checkpoints[n - 1, 0] + h
        q = math.exp(-x)
        r = 1.0 - q
        y, integral = _advance(checkpoints[n - 1], h, r, q, d, stages)
        # Errors of psi' and of psi, relative to k_1 and to a bound below psi. Zero would make the
        # next step infinite.
        scale = _rational(r, r * r, q * (1.0 + r), d, 1)
        error = 1e-10
        for component in range(2):
            difference = 0.0
            for s in range(5):
                difference += h * _ERROR[s] * stages[component, s]
            error = max(error, abs(difference) / (tolerance * scale))
            scale = 0.5 * d * r * r
        if error <= 1.0:
            checkpoints[n, 0] = x
            checkpoints[n, 1] = y
            checkpoints[n, 2] = integral
            n += 1
            if x >= _END:
                return n
        # The usual control of steps of order 4 (Hairer & Wanner, section IV.8): aim a tenth below
        # the step that the error allows, and change it by a factor of 5 at most.
        h *= min(5.0, max(0.2, 0.9 * error**-0.25))
    return -1


@kernel
def ode(r, complement, dim, series, checkpoints, order, out):
    """Set out to psi, psi' or psi'' by one step of the ODE from the last checkpoint before r."""
    d = 1.0 * dim
    given = len(complement) > 0
    stages = np.empty((2, 5))
    for i in range(len(r)):
        x = r[i]
        if x <= _START:
            out[i] = _series_value(x, series, order)
            continue
        q = complement[i] if given else 1.0 - x
        position = -math.log(q)
        if position >= _END:
            value = _rational(x, x * x, q * (1.0 + x), d, order)
            if order == 0:
                value += checkpoints[-1, 2]
            out[i] = value
            continue
        # The last checkpoint before the position, by bisection.
        low = 0
        high = len(checkpoints)
        while high - low > 1:
            middle = (low + high) // 2
            if checkpoints[middle, 0] < position:
                low = middle
            else:
                high = middle
        # Not zero, by which slopes are divided.
        h = max(position - checkpoints[low, 0], 1e-12)
        delta, integral = _advance(checkpoints[low], h, x, q, d, stages)
        value = _rational(x, x * x, q * (1.0 + x), d, order)
        if order == 0:
            out[i] = value + integral
        elif order == 1:
            out[i] = value + delta
        else:
            out[i] = value + _slope(x, q, d, delta)[0]


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
    # It ends: w grows like k and u like k^2, so rho falls to 0.
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
    # Two terms are better where rounding, 2e-16 S^2 of the rest, is more than what they leave out.
    if S > 10.0 and 2e-16 * S * S > expanded:
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
        # The square of a smaller r underflows; psi' is d r and psi'' d there.
        if x < 1e-150:
            if order == 1:
                out[i] = dim * x
            else:
                out[i] = dim
            continue
        vee = q * (1.0 + x)
        low = max(
            _amos_inverse(x, vee, a, math.sqrt(a * (a + 1.0))),
            _amos_inverse(x, vee, a - 0.5, a + 1.5),
        )
        high = _amos_inverse(x, vee, a, a + 1.0)
        # The geometric mean of the bounds is within 6 % for d = 2, and 0.6 % for d = 10.
        kappa = math.sqrt(low * high)
        for _ in range(20):
            ratio = _perron_ratio(kappa, a + 0.5)
            # In 1 - r where that has more digits.
            gap = (1.0 - ratio) - q if x > 0.5 else x - ratio
            step = gap / _ratio_slope(kappa, ratio, a)
            kappa = min(max(kappa + step, low), high)
            # The next step would be of the order of this one's square, or less than a rounding.
            if abs(step) < 1e-8 * kappa or abs(gap) < 3e-16 * x:
                break
        if order == 1:
            out[i] = kappa
        else:
            ratio = _perron_ratio(kappa, a + 0.5)
            out[i] = 1.0 / _ratio_slope(kappa, ratio, a)
