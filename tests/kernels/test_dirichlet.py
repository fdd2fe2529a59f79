"""The two algorithms for the mode of the modified Dirichlet."""

import numpy as np
import pytest

from skvmf._kernels import simplex as dirichlet


def by_rounds(excess, floor):
    return dirichlet.mode_by_rounds(np.asarray(excess)[None], floor)[0]


def by_sorting(excess, floor):
    x = np.empty(len(excess))
    dirichlet.mode_by_sorting(excess, np.argsort(excess), floor, x)
    return x


def problems(n_problems=300):
    """Excesses of every sign and size, at least one above 0, and floors up to 1/n."""
    rng = np.random.default_rng(0)
    for _ in range(n_problems):
        n = rng.integers(1, 30)
        excess = rng.choice([-20.0, -2.0, -1.0, -0.5, 0.0, 0.5, 2.0, 40.0, 1e5], n)
        excess += rng.choice([0.0, 1.0]) * rng.uniform(0, 1, n)
        excess[rng.integers(n)] = rng.choice([1e-9, 1.0, 50.0])
        yield excess, rng.choice([1e-12, 1e-5, 1e-2, 0.3, 0.9, 0.999999]) / n


@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
def test_mode_meets_the_kkt_conditions(mode):
    uniform = [(np.arange(n) + 0.5, np.nextafter(1 / n, 0)) for n in (2, 3, 10, 49)]
    for excess, floor in [*problems(), *uniform]:
        x = mode(excess, floor)
        assert abs(x.sum() - 1) <= 1e-14
        assert x.min() >= floor * (1 - 1e-14)
        pull = excess / x
        free = x > floor * (1 + 1e-12)
        if free.any():
            multiplier = pull[free].max()
            np.testing.assert_allclose(pull[free], multiplier, rtol=1e-13)
            assert pull[~free].max(initial=-np.inf) <= multiplier * (1 + 1e-12)


@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
@pytest.mark.parametrize(
    ("excess", "floor", "expected"),
    [
        ([-11.0, 1.0], 0.1, [0.1, 0.9]),  # the three cases in which the printed algorithm
        ([-1.0, 1.0], 0.1, [0.1, 0.9]),  # gives 1.1, divides by zero,
        ([1.0, 2.0, 3.0], 0.1, [1 / 6, 2 / 6, 3 / 6]),  # or does not sum to one
        ([4.0], 0.3, [1.0]),
        ([1.0, 1.0, 1e6], 0.25, [0.25, 0.25, 0.5]),
        ([1.0, 2.0, 0.0], 0.0, [1 / 3, 2 / 3, 0.0]),
        ([1e-17, 1.0, 1e-300], 0.0, [1e-17, 1.0, 1e-300]),
        ([5e-324, 5e-324, -1e300], 0.1, [0.45, 0.45, 0.1]),
        ([1.7e308] * 4, 0.1, [0.25] * 4),
        ([1.7e308, -1.7e308, 3.0], 0.1, [0.8, 0.1, 0.1]),
    ],
)
def test_known_modes(mode, excess, floor, expected):
    np.testing.assert_allclose(mode(np.array(excess), floor), expected, rtol=1e-15)
