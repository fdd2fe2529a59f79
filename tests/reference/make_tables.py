"""Make the tables of this folder by mpmath: values of 30 digits or more, rounded to float64.

``python tests/reference/make_tables.py entmax`` makes one, ``modified_dirichlet`` (seconds) and
``vmf`` (like the first, about a minute) the others.
"""

import sys
from collections import defaultdict
from pathlib import Path

import mpmath as mp
import numpy as np

# alpha-entmax. In p_i = (x_i - tau)_+^(1 / c), with c = alpha - 1 and x = c z, the last entry of
# the support is found from its definition, and its share v by bisection on sum p = 1 with
# p_i = (x_i - x_last + v^c)^(1 / c): for large alpha a threshold of 50 digits would not do.

ALPHAS = [1.01, 1.05, 1.25, 1.5, 1.9, 2.0, 3.0, 4.0, 6.0, 10.0, 50.0, 100.0]


def entmax(z, alpha):
    """Return p and the conjugate value, <p, z> - Omega(p), of one vector of mpf."""
    c = alpha - 1
    x = [c * value for value in z]

    def responsibilities(gaps, least):
        return [(gap + least**c) ** (1 / c) for gap in gaps if gap >= 0]

    last = min(
        one for one in x if mp.fsum(responsibilities([other - one for other in x], mp.mpf(0))) < 1
    )
    gaps = [value - last for value in x]
    low, high = mp.mpf(0), mp.mpf(1)
    while high - low > high * mp.mpf(10) ** -25:
        middle = (low + high) / 2 if low else high / 4
        low, high = (
            (middle, high) if mp.fsum(responsibilities(gaps, middle)) <= 1 else (low, middle)
        )
    shares = iter(responsibilities(gaps, high))
    p = [next(shares) if gap >= 0 else mp.mpf(0) for gap in gaps]
    negentropy = (mp.fsum(value**alpha for value in p) - 1) / (alpha * c)
    return p, mp.fdot(p, z) - negentropy


def score_vectors(rng):
    """Yield score vectors of several kinds, exact in float64."""
    for K in (1, 2, 3, 8, 20, 64):
        yield 3 * rng.standard_normal(K)
        yield 0.2 * rng.standard_normal(K)
        yield np.round(2 * rng.standard_normal(K)) / 2  # ties
        yield np.round(rng.standard_normal(K) * 1e3) * 2.0**-40  # tiny gaps
        yield 1e15 + np.round(4 * rng.standard_normal(K)) / 4  # huge, with small gaps
    yield np.zeros(30)
    for top in (1e-3, 0.02, 0.4):  # neighbours in floating point, but not next to the largest
        z = top * np.r_[1.0, np.repeat([-1.0, -0.7, -1.8], 5)]
        yield z + np.arange(-8, 8) * np.spacing(z)


def entmax_table():
    for z in score_vectors(np.random.default_rng(0)):
        for alpha in ALPHAS:
            p, conjugate = entmax([mp.mpf(float(v)) for v in z], mp.mpf(alpha))
            yield {"z": z, "p": p}, {"alpha": alpha, "conjugate": conjugate}


# Modes of the modified Dirichlet: x = max(floor, (alpha - 1) m) with m, by bisection, such that x
# sums to 1: neither of the paper's algorithms.


def mode(alpha, floor):
    """Return the mode, where an alpha is above 1 and n * floor is below 1."""
    excess = [mp.mpf(a) - 1 for a in alpha]

    def point(m):
        return [max(mp.mpf(floor), e * m) for e in excess]

    low, high = mp.mpf(0), 1 / max(excess)
    for _ in range(170):
        middle = (low + high) / 2
        low, high = (middle, high) if mp.fsum(point(middle)) < 1 else (low, middle)
    return point(high)


def problems(rng):
    """Yield parameters of all signs and sizes, and floors."""
    for n in (1, 2, 3, 5, 10, 30):
        for floor in (1e-12, 1e-5, 1e-2 / n, 0.5 / n, 0.999 / n):
            yield np.r_[1 + rng.exponential(10), rng.uniform(-20, 20, n - 1)], floor
            yield np.r_[2.0, rng.choice([-5.0, 0.0, 1.0, 1.5, 2.0, 3.0], n - 1)], floor
            yield np.r_[1.0 + 1e5, 10 ** rng.uniform(-1, 5, n - 1)], floor


def modified_dirichlet_table():
    for alpha, floor in problems(np.random.default_rng(0)):
        yield {"alpha": alpha, "x": mode(alpha, floor)}, {"floor": floor}


# Von Mises-Fisher quantities. With cos(theta) = tanh(u) the density of the cosine c = m.x on the
# sphere in d dimensions becomes
#
#     exp(kappa tanh(u) - (d - 1) log cosh(u)) du,        u from minus to plus infinity,
#
# analytic around the real line, so the trapezoidal rule converges geometrically. Everything is an
# integral of positive terms: E[c], E[1 - c], Var[c] and the normaliser. No Bessel function,
# recurrence or expansion is used; every row is computed with two step lengths that must agree.

DIMS = [2, 3, 4, 5, 6, 7, 10, 20, 33, 50, 63, 64, 65, 66, 100, 300, 1000, 10**5, 10**6, 10**7]
N_KAPPA = 10


def moments(d, kappa, fineness):
    """Return A, 1 - A, A' and Phi at one concentration."""
    m = mp.mpf(d - 1)
    # the mode: kappa sech^2 = m tanh, a quadratic in tanh
    mode = mp.atanh(2 * kappa / (m + mp.sqrt(m * m + 4 * kappa * kappa)))
    width = 1 / mp.sqrt(m * (1 + mp.tanh(mode) ** 2))
    h = min(width / 5, mp.mpf(1) / 24) / fineness
    top = kappa * mp.tanh(mode) - m * mp.log(mp.cosh(mode))
    nodes = []
    for direction in (1, -1):
        k = 0 if direction == 1 else 1
        while True:
            u = mode + direction * k * h
            e = mp.exp(-2 * abs(u))  # 1 - |tanh u| = 2 e/(1 + e), log cosh u = |u| + log((1+e)/2)
            small, large = 2 * e / (1 + e), 2 / (1 + e)
            below, above = (small, large) if u > 0 else (large, small)  # 1 - c, 1 + c
            c = (above - below) / 2
            weight = mp.exp(kappa * c - m * (abs(u) + mp.log((1 + e) / 2)) - top)
            nodes.append((weight, c, below))
            k += 1
            if weight < mp.mpf(10) ** -70:
                break
    total = mp.fsum(w for w, _, _ in nodes)
    A = mp.fsum(w * c for w, c, _ in nodes) / total
    rest = mp.fsum(w * q for w, _, q in nodes) / total
    variance = mp.fsum(w * (q - rest) ** 2 for w, _, q in nodes) / total
    uniform = mp.log(mp.pi) / 2 + mp.loggamma(m / 2) - mp.loggamma((m + 1) / 2)
    return A, rest, variance, top + mp.log(total * h) - uniform


def row(d, kappa):
    kappa = mp.mpf(kappa)
    values = moments(d, kappa, 1)
    for one, other in zip(values, moments(d, kappa, mp.mpf("1.37")), strict=True):
        assert abs(one - other) < mp.mpf(10) ** -30 * abs(other), (d, kappa, one, other)
    A, rest, variance, phi = values
    psi = kappa * A - phi
    # one Taylor step from the exact point to the rounded float64 arguments
    shift = float(A) - A if A < 0.5 else rest - mp.mpf(float(rest))
    kappa_rounded = kappa + shift / variance
    psi_rounded = psi + kappa * shift + shift * shift / (2 * variance)
    return {
        **{"d": d, "kappa": kappa, "r": A, "one_minus_r": rest, "log_partition": phi},
        **{"deficit": kappa - phi, "psi": psi_rounded, "kappa_of_rounded": kappa_rounded},
        "psi2": 1 / variance,
    }


def vmf_table():
    rng = np.random.default_rng(20)
    for d in DIMS:
        spread = 10 ** rng.uniform(-8, 12, N_KAPPA - 4)
        middle = d * 10 ** rng.uniform(-1, 1, 2)
        for kappa in (*spread, *middle, *rng.uniform(25, 50, 2)):
            yield {}, row(d, float(kappa))


TABLES = {  # with the digits that they take
    "entmax": (entmax_table, 50),
    "modified_dirichlet": (modified_dirichlet_table, 50),
    "vmf": (vmf_table, 80),
}


def main(name):
    """Write columns of numbers, and of vectors, of which number i is offsets[i]:offsets[i + 1]."""
    table, mp.mp.dps = TABLES[name]
    columns = defaultdict(list)
    for vectors, numbers in table():
        for column, vector in vectors.items():
            columns[column].extend(map(float, vector))
        if vectors:
            columns["offsets"] = [*(columns["offsets"] or [0]), len(columns[column])]
        for column, number in numbers.items():
            columns[column].append(float(number))
    path = Path(__file__).with_name(f"{name}_table.npz")
    np.savez_compressed(path, **{column: np.array(values) for column, values in columns.items()})


if __name__ == "__main__":
    main(sys.argv[1])
