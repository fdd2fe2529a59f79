"""Make entmax_table.npz: alpha-entmax of score vectors to 40 digits, rounded to float64.

Run as ``python tests/reference/make_entmax_table.py`` (a minute). In p_i = (x_i - tau)_+^(1 / c),
with c = alpha - 1 and x = c z, the last entry of the support is found from its definition, and
its share v by bisection on sum p = 1 with p_i = (x_i - x_last + v^c)^(1 / c): for large alpha a
threshold of 50 digits would not do. Vector i and its p are the slices offsets[i]:offsets[i + 1]
of z and p; conjugate is <p, z> - Omega(p).
"""

from pathlib import Path

import mpmath as mp
import numpy as np

ALPHAS = [1.01, 1.05, 1.25, 1.5, 1.9, 2.0, 3.0, 4.0, 6.0, 10.0, 50.0, 100.0]
DIGITS = 50


def entmax(z, alpha):
    """Return p and the conjugate value of one vector of mpf."""
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


def vectors(rng):
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


def main():
    mp.mp.dps = DIGITS
    rng = np.random.default_rng(0)
    columns = {"z": [], "p": [], "alpha": [], "conjugate": [], "offsets": [0]}
    for z in vectors(rng):
        for alpha in ALPHAS:
            p, conjugate = entmax([mp.mpf(float(v)) for v in z], mp.mpf(alpha))
            columns["z"].extend(z)
            columns["p"].extend(float(v) for v in p)
            columns["alpha"].append(alpha)
            columns["conjugate"].append(float(conjugate))
            columns["offsets"].append(len(columns["z"]))
    path = Path(__file__).with_name("entmax_table.npz")
    np.savez_compressed(path, **{name: np.array(values) for name, values in columns.items()})


if __name__ == "__main__":
    main()
