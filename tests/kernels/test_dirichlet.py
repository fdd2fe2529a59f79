"""The two algorithms for the mode of the modified Dirichlet."""

import numpy as np
import pytest

from skvmf._kernels import dirichlet

from .. import oracles


def by_rounds(alpha, floor):
    x = np.empty(len(alpha))
    dirichlet.mode_by_rounds(alpha, floor, x)
    return x


def by_sorting(alpha, floor):
    x = np.empty(len(alpha))
    dirichlet.mode_by_sorting(alpha, np.argsort(alpha), floor, x)
    return x


def problems(n_problems=300):
    """Parameters of every sign and size, at least one above 1, and floors up to 1/n."""
    rng = np.random.default_rng(0)
    for _ in range(n_problems):
        n = rng.integers(1, 30)
        alpha = rng.choice([-20.0, -1.0, 0.0, 0.5, 1.0, 1.5, 3.0, 40.0, 1e5], n)
        alpha += rng.choice([0.0, 1.0]) * rng.uniform(0, 1, n)
        alpha[rng.integers(n)] = rng.choice([1 + 1e-9, 2.0, 50.0])
        yield alpha, rng.choice([1e-12, 1e-5, 1e-2, 0.3, 0.9, 0.999999]) / n


@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
def test_mode_agrees_with_bisection(mode):
    for alpha, floor in problems():
        np.testing.assert_allclose(
            mode(alpha, floor), oracles.modified_dirichlet_mode(alpha, floor), rtol=2e-14
        )


@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
def test_mode_meets_the_kkt_conditions(mode):
    for alpha, floor in problems():
        x = mode(alpha, floor)
        assert abs(x.sum() - 1) <= 1e-14
        assert x.min() >= floor * (1 - 1e-14)
        pull = (alpha - 1) / x
        free = x > floor * (1 + 1e-12)
        if free.any():
            multiplier = pull[free].max()
            np.testing.assert_allclose(pull[free], multiplier, rtol=1e-13)
            assert pull[~free].max(initial=-np.inf) <= multiplier * (1 + 1e-12)


@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
@pytest.mark.parametrize(
    ("alpha", "floor", "expected"),
    [
        ([-10.0, 2.0], 0.1, [0.1, 0.9]),  # the three cases in which the printed algorithm
        ([0.0, 2.0], 0.1, [0.1, 0.9]),  # gives 1.1, divides by zero,
        ([2.0, 3.0, 4.0], 0.1, [1 / 6, 2 / 6, 3 / 6]),  # or does not sum to one
        ([5.0], 0.3, [1.0]),
        ([2.0, 2.0, 1e6], 0.25, [0.25, 0.25, 0.5]),
        ([2.0, 3.0, 1.0], 0.0, [1 / 3, 2 / 3, 0.0]),
    ],
)
def test_known_modes(mode, alpha, floor, expected):
    np.testing.assert_allclose(mode(np.array(alpha), floor), expected, rtol=1e-15)


@pytest.mark.parametrize("n", [2, 3, 10, 49])
@pytest.mark.parametrize("mode", [by_rounds, by_sorting])
def test_a_floor_one_rounding_below_uniform(mode, n):
    floor = np.nextafter(1 / n, 0)
    np.testing.assert_allclose(mode(np.arange(n) + 1.5, floor), np.full(n, 1 / n), rtol=1e-13)
