"""Normalizer, mean and draws of the modified Dirichlet with any number of entries."""

import itertools
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import kstest

from skvmf.distributions.modified_dirichlet import log_normalizer, mean, rvs


def by_expansion(alpha, floor):
    """Return the log-normalizer for whole alphas: a polynomial above the floor, term by term."""
    n, rest, total = len(alpha), 1 - len(alpha) * floor, 0.0
    for powers in itertools.product(*(range(a) for a in alpha)):
        ways = np.prod([comb(a - 1, p) for a, p in zip(alpha, powers, strict=True)])
        power = floor ** sum(a - 1 - p for a, p in zip(alpha, powers, strict=True))
        beta = np.exp(gammaln(np.array(powers) + 1).sum() - gammaln(n + sum(powers)))
        total += ways * power * rest ** (sum(powers) + n - 1) * beta
    return np.log(total)


@pytest.mark.parametrize(
    ("alpha", "floor"),
    [
        *[((2, 3, 1, 4), floor) for floor in (1e-6, 0.01, 0.15)],
        *[((1, 1, 1, 1), 0.01), ((1, 2, 3, 2, 1, 2), 0.15)],
    ],
)
def test_whole_parameters_have_a_normalizer_in_closed_form(alpha, floor):
    expected = by_expansion(alpha, floor)
    assert log_normalizer(alpha, floor) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("floor", [1e-4, 0.05])
@pytest.mark.parametrize("alpha", [(-1.0, 2.0, 0.5, -3.0), (-8.0, -8.0, 1.0, 4.0)])
def test_four_entries_are_an_integral_over_two_pairs(alpha, floor):
    scale = log_normalizer(alpha, floor)

    def pair(parameters, total):
        inner = log_normalizer(parameters, min(floor / total, 0.5))
        return (sum(parameters) - 1) * np.log(total) + inner

    def integrand(t):  # t is the logit of the sum of the first two
        total, rest = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))
        log_f = pair(alpha[:2], total) + pair(alpha[2:], rest)
        return np.exp(log_f - scale) * total * rest

    end = np.log((1 - 2 * floor) / (2 * floor))
    area, _ = quad(integrand, -end, end, limit=30, epsabs=1e-6, epsrel=1e-6)
    assert area == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_means_add_up_to_one_and_are_those_of_the_dirichlet_without_a_floor():
    alpha, floor = np.array([-2.0, 0.5, 3.0, -2.0]), 0.02
    base = log_normalizer(alpha, floor)
    raw = [np.exp(log_normalizer(alpha + e, floor) - base) for e in np.eye(4)]
    assert sum(raw) == pytest.approx(1, rel=1e-8)
    np.testing.assert_allclose(mean(alpha, floor), raw, rtol=1e-8)
    np.testing.assert_allclose(mean([1.0, 2.0, 3.0, 4.0], 0.0), [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(mean([-5.0, 3.0], 0.5), [0.5, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "floor"),
    [((-2.0, -2.0), 0.01), ((-3.0, 1.0, 2.0), 1e-3), ((0.5, -1.0, 3.0, -1.0), 0.02)],
)
def test_draws_have_the_mean_and_keep_to_the_simplex(alpha, floor):
    x = rvs(alpha, floor, size=2000, random_state=0)
    assert x.min() >= floor
    assert np.abs(x.sum(axis=1) - 1).max() < 1e-12
    errors = x.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(x.mean(axis=0) - mean(alpha, floor)) < 4 * errors + 1e-12).all()


def test_the_first_of_two_entries_has_its_distribution():
    alpha, floor = (-1.5, 2.0), 0.03
    x = rvs(alpha, floor, size=3000, random_state=1)[:, 0]
    scale = log_normalizer(alpha, floor)
    grid = np.linspace(floor, 1 - floor, 20_001)
    density = np.exp((alpha[0] - 1) * np.log(grid) + (alpha[1] - 1) * np.log1p(-grid) - scale)
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    cdf = np.concatenate([[0], np.cumsum(steps)])
    assert cdf[-1] == pytest.approx(1, abs=1e-4)
    assert kstest(x, lambda v: np.interp(v, grid, cdf)).pvalue > 0.01


def test_shapes_and_seeds():
    assert rvs([1.0, -1.0, 2.0], 0.1, size=None, random_state=0).shape == (3,)
    for floor, alpha in [(0.1, -1.0), (0.0, 1.0), (1 / 3, -1.0)]:
        assert rvs([1.0, alpha, 2.0], floor, size=0).shape == (0, 3)
        assert rvs([1.0, alpha, 2.0], floor, size=(2, 0)).shape == (2, 0, 3)
    assert rvs([1.0, -1.0, 2.0], 0.1, size=(2, 5), random_state=0).shape == (2, 5, 3)
    assert rvs([1.0, 2.0, 2.0], 0.0, size=4, random_state=0).shape == (4, 3)
    assert rvs([1.0, 2.0], 0.5, size=2, random_state=0).tolist() == [[0.5, 0.5]] * 2
    same = [rvs([-1.0, 2.0], 0.1, size=3, random_state=7) for _ in range(2)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("call", [log_normalizer, mean, rvs])
def test_four_entries_and_more_have_a_largest_size(call):
    with pytest.raises(ValueError, match="between -1e4 and 1e4"):
        call([1.0, 2.0, 3.0, 1e5], 0.01)
