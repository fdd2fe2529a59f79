"""What measures the papers' claims, against integrals and difference quotients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import expit

from reproduction.instruments.path import path_of
from reproduction.instruments.two_gaussians import expected_gradient
from skvmf import RelativeGMM

from . import singularity

OVERLAP = [0.5, 0.5], [0.0, 0.0]


@pytest.mark.parametrize(
    "truth",
    [
        *[OVERLAP, ([0.5, 0.5], [-5.1, -5.0]), ([0.4, 0.6], [0.0, 20.0])],
        ([0.2, 0.5, 0.3], [-2.0, 0.0, 3.0], [1.0, 4.0, 0.01]),
    ],
    ids=str,
)
@pytest.mark.parametrize("means", [(-0.3, 0.8), (1.0, -2.0), (-6.0, 3.0), (-10.0, 20.0)])
def test_gradients_are_integrals(truth, means):
    """By the trapezoidal rule, which is exact for such functions."""
    (weights, centres, *more), v = map(np.array, truth), 0.3
    scales = np.sqrt(more[0]) if more else np.ones(len(weights))
    x = np.linspace((centres - 12 * scales).min(), (centres + 12 * scales).max(), 20_001)
    density = stats.norm.pdf(x[:, None], centres, scales) @ weights
    log_odds = np.log(v / (1 - v)) + 0.5 * ((x - means[1]) ** 2 - (x - means[0]) ** 2)
    first, second = expit(log_odds), expit(-log_odds)
    slopes = [first * (x - means[0]), second * (x - means[1]), first / v - second / (1 - v)]
    a, b, c = integrate.trapezoid(density * slopes, x)
    for coordinates, mean in [("absolute", a), ("relative", a + b)]:  # where the gap stays
        there = expected_gradient(means, truth, weight=v, coordinates=coordinates)
        found = [*there.gradient, there.weight_gradient]
        assert_allclose(found, [mean, b, c], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gap", [0.0, 2.0, 6.0, 20.0])
def test_the_truth_is_stationary(gap):
    there = expected_gradient([0.0, gap], ([0.4, 0.6], [0.0, gap]), weight=0.4)
    assert_allclose([*there.gradient, there.weight_gradient], 0, atol=1e-14)


def test_relative_velocity_is_the_gradient_through_the_jacobian():
    grid = np.random.default_rng(0).normal(size=(4, 5, 2))
    absolute = expected_gradient(grid, OVERLAP)
    relative = expected_gradient(grid, OVERLAP, coordinates="relative")
    assert_allclose(absolute.velocity, absolute.gradient)
    assert_allclose(relative.velocity, absolute.gradient @ [[1, 1], [1, 2]], atol=1e-15)
    assert absolute.weight_gradient.shape == (4, 5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_path_leads_from_the_start_to_the_fit():
    X = np.random.default_rng(0).normal([[0.0, 0.0]] * 50 + [[3.0, 1.0]] * 50)
    mixture = RelativeGMM(2, random_state=0, tol=1e-6, max_iter=200).fit(X)
    path = path_of(mixture, X)
    assert path.shape == (mixture.n_iter_ + 1, 2, 2)
    for n_iter in (0, 1, 3, mixture.n_iter_):
        part = RelativeGMM(2, random_state=0, tol=1e-6, max_iter=n_iter).fit(X)
        assert_array_equal(part.means_, path[n_iter])


def test_overlap_is_the_hellinger_distance():
    means, variances = np.array([[0.0], [0.4], [3.0]]), np.array([1.0, 2.0, 0.3])
    distances = singularity.overlap(means, variances[:, None, None])
    for i in range(3):
        for j in range(3):
            p, q = (stats.norm(means[k, 0], np.sqrt(variances[k])).pdf for k in (i, j))
            affinity = integrate.quad(lambda x, p=p, q=q: np.sqrt(p(x) * q(x)), -20, 20)[0]
            assert_allclose(distances[i, j], np.sqrt(max(1 - affinity, 0)), atol=1e-7)


def test_elimination_is_the_hellinger_distance_of_the_weights():
    weights = np.array([0.7, 0.2999, 1e-4, 0.0])
    for weight, distance in zip(weights, singularity.elimination(weights), strict=True):
        rest = 1 - weight  # the affinity is that of the others with themselves, scaled up
        assert_allclose(distance, np.sqrt(1 - np.sqrt(rest)), atol=1e-8)


def test_a_clearance_keeps_the_distance():
    X = np.random.default_rng(0).normal(size=(300, 1))
    options = dict(fixed=("weights", "covariances"), random_state=0, max_iter=1000, tol=1e-9)
    near, far = (
        singularity.overlap(mixture.means_, mixture.covariances_)[0, 1]
        for mixture in (RelativeGMM(2, clearance=c, **options).fit(X) for c in (0.0, 1.5))
    )
    assert far > near
    assert far >= np.sqrt(-np.expm1(-(1.5**2) / 8)) - 1e-12


def test_a_weight_floor_keeps_the_distance_to_elimination_where_it_binds():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (390, 1)), rng.normal(4, 1, (10, 1))])
    options = dict(fixed=("covariances",), means_init=[[0.0], [4.0]], max_iter=2000, tol=1e-10)
    free, held = (
        RelativeGMM(2, weight_floor=floor, weight_concentration_prior=1.0, **options).fit(X)
        for floor in (0.0, 0.1)
    )
    least = np.sqrt(1 - np.sqrt(1 - 0.1))
    assert singularity.elimination(free.weights_).min() < 0.6 * least
    assert_allclose(singularity.elimination(held.weights_).min(), least, rtol=1e-12)
    assert held.lower_bound_ < free.lower_bound_  # what the bound costs
    assert np.diff(held.lower_bounds_).min() >= -1e-12
