"""Make vmf_table.npz: von Mises-Fisher quantities to 30 digits, rounded to float64.

Run as ``python tests/reference/make_vmf_table.py`` (about a minute). With cos(theta) = tanh(u) the
density of the cosine c = m.x on the sphere in d dimensions becomes

    exp(kappa tanh(u) - (d - 1) log cosh(u)) du,        u from minus to plus infinity,

analytic around the real line, so the trapezoidal rule converges geometrically. Everything is an
integral of positive terms: E[c], E[1 - c], Var[c] and the normaliser. No Bessel function,
recurrence or expansion is used; every row is computed with two step lengths that must agree.
"""

from pathlib import Path

import mpmath as mp
import numpy as np

DIMS = [2, 3, 4, 5, 6, 7, 10, 20, 33, 50, 63, 64, 65, 66, 100, 300, 1000, 10**5, 10**6, 10**7]
N_KAPPA = 10
DIGITS = 80


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
    columns = (d, kappa, A, rest, phi, kappa - phi, psi_rounded, kappa_rounded, 1 / variance)
    return [float(value) for value in columns]


def main():
    mp.mp.dps = DIGITS
    rng = np.random.default_rng(20)
    rows = []
    for d in DIMS:
        spread = 10 ** rng.uniform(-8, 12, N_KAPPA - 4)
        middle = d * 10 ** rng.uniform(-1, 1, 2)
        kappas = [*spread, *middle, *rng.uniform(25, 50, 2)]
        rows += [row(d, float(kappa)) for kappa in kappas]
        print(d, flush=True)
    names = [
        "d",
        "kappa",
        "r",
        "one_minus_r",
        "log_partition",
        "deficit",
        "psi",
        "kappa_of_rounded",
        "psi2",
    ]
    columns = dict(zip(names, np.array(rows).T, strict=True))
    np.savez_compressed(Path(__file__).with_name("vmf_table.npz"), **columns)


if __name__ == "__main__":
    main()
