"""Make modified_dirichlet_table.npz: modes to 40 digits, rounded to float64.

Run as ``python tests/reference/make_modified_dirichlet_table.py`` (seconds). The mode is
x = max(floor, (alpha - 1) m) with m, by bisection, such that x sums to 1: neither of the paper's
algorithms. Problem i is the slice offsets[i]:offsets[i + 1] of alpha and x, with floor[i].
"""

from pathlib import Path

import mpmath as mp
import numpy as np

DIGITS = 50


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


def main():
    mp.mp.dps = DIGITS
    rng = np.random.default_rng(0)
    columns = {"alpha": [], "x": [], "floor": [], "offsets": [0]}
    for alpha, floor in problems(rng):
        columns["alpha"].extend(alpha)
        columns["x"].extend(float(v) for v in mode(alpha, floor))
        columns["floor"].append(floor)
        columns["offsets"].append(len(columns["x"]))
    path = Path(__file__).with_name("modified_dirichlet_table.npz")
    np.savez_compressed(path, **{name: np.array(values) for name, values in columns.items()})


if __name__ == "__main__":
    main()
