"""Exact von Mises-Fisher arithmetic: log-partition, Bessel ratio and its inverse.

Notation: d the dimension, a = (d - 1)/2, kappa the concentration, r = A(kappa) the mean
resultant length, q = 1 - r. The log-partition Phi is with respect to the uniform probability
measure on the sphere; psi(r) = kappa r - Phi(kappa) is its Legendre transform.

Three regions. Where a >= 32, or S = sqrt(a^2 + kappa^2) is large, the uniform expansions of
`vonmises_fisher_tables` (their polynomials come in as arguments); for small dimension and
concentration, power series of positive terms; for the inverse there, a Taylor step or two on
those series. All arrays are contiguous float64, all results as exact as their arguments allow.
"""

import math

from ._jit import kernel

WIDE = 32.0  # where a or kappa is at least this, the orders kept reach the last digit
FAR = 90.0  # for a below WIDE, the inverse is used where 2a/tau is at least this


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
def _slope_series(kappa, half_dim):
    """Return A'(kappa) times 0F1(; n; z)^2: positive terms only."""
    z = 0.25 * kappa * kappa
    n = half_dim
    term = 0.5 / n
    total = term
    k = 0.0
    while term > 1e-17 * total:  # each term is less than half the last once k^2 > 8 z
        below = (2.0 * n + k) * (k + 1.0) * (n + k) * (n + k + 1.0)
        term *= z * (2.0 * n - 1.0 + 2.0 * k) * (2.0 * n + 2.0 * k) / below
        total += term
        k += 1.0
    return total


@kernel
def log_partition(kappa, dim, tail, constant, deficit, out):
    """Set out to Phi(kappa), or to kappa - Phi(kappa) without cancellation if `deficit`."""
    a = 0.5 * (dim - 1.0)
    for i in range(len(kappa)):
        k = kappa[i]
        if a < WIDE and k < WIDE:
            phi = math.log1p(_bessel_series(k, a + 0.5)[0])
            out[i] = k - phi if deficit else phi
            continue
        S = math.sqrt(a * a + k * k)
        t = a / S
        if a < WIDE:
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
        if a < WIDE and k < WIDE:
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
def _improved(kappa, r, q, a):
    """Take one Taylor step of order three from kappa towards A(kappa) = r.

    The derivatives of the inverse come from the Riccati equation of A.
    """
    if r > 0.7:
        rest = _kummer_series(kappa, a)
        rho = 1.0 - rest
        gap = rest - q
    else:
        first, second = _bessel_series(kappa, a + 0.5)
        rho = kappa / (2.0 * a + 1.0) * (second / (1.0 + first))
        gap = r - rho
    b = 2.0 * a / kappa
    p1 = 1.0 / (1.0 - rho * rho - b * rho)
    u = p1 / kappa
    g1 = -2.0 * rho - b + b * rho * u
    p2 = -g1 * p1 * p1
    g2 = -2.0 + 2.0 * b * u + b * rho * (p2 / kappa - 2.0 * u * u)
    p3 = (2.0 * g1 * g1 * p1 - g2) * p1 * p1
    return kappa + gap * (p1 + gap * (0.5 * p2 + gap * p3 / 6.0))


@kernel
def _corner(r, q, a, order):
    """Return psi, psi' or psi'' where dimension and concentration are small."""
    d = 2.0 * a + 1.0
    w = r * r
    if r < 1e-4:  # start of the power series at r = 0; the next term is of order r^4
        slope = d * w / (d + 2.0)
        if order == 0:
            return 0.5 * d * w * (1.0 + 0.5 * slope)
        return d * r * (1.0 + slope) if order == 1 else d * (1.0 + 3.0 * slope)
    tau = q * (1.0 + r) / (1.0 + w)
    x = tau / (2.0 * a)
    scale = 2.0 * a * r / (q * (1.0 + r))
    kappa = scale * (1.0 + x + x * x * (1.0 - tau * tau) / (1.0 + 2.0 * x))
    for _ in range(4):  # one or two are taken
        better = _improved(kappa, r, q, a)
        step = better - kappa
        kappa = better
        if abs(step) <= 1e-4 * kappa:
            break
    if order == 1:
        return kappa
    first = _bessel_series(kappa, a + 0.5)[0]
    if order == 0:
        return kappa * r - math.log1p(first)
    return (1.0 + first) * (1.0 + first) / _slope_series(kappa, a + 0.5)


@kernel
def negentropy(r, complement, dim, excess, tail, constant, order, out):
    """Set out to psi(r), psi'(r) (the concentration) or psi''(r) for order 0, 1 or 2.

    `complement` holds 1 - r; where it is empty, 1 - r is computed.
    """
    a = 0.5 * (dim - 1.0)
    given = len(complement) > 0
    for i in range(len(r)):
        x = r[i]
        q = complement[i] if given else 1.0 - x
        w = x * x
        vee = q * (1.0 + x)  # 1 - r^2
        tau = vee / (1.0 + w)
        if a < WIDE and 2.0 * a < FAR * tau:
            out[i] = _corner(x, q, a, order)
        elif order == 0:
            rest = 0.5 * math.log1p(w) - a * (math.log1p(-w) if w < 0.5 else math.log(vee))
            if a < WIDE:
                out[i] = rest + _polynomial(tau, tail) + constant
            else:
                out[i] = rest + 2.0 * w / (1.0 + w) * _polynomial(tau, tail)
        else:
            h = _polynomial(tau, excess)
            if order == 1:
                out[i] = 2.0 * a * x / vee * (1.0 + h)
            elif x == 0.0:
                out[i] = dim
            else:
                out[i] = (1.0 + h) / (vee * h)
