"""Averaged dynamics against integrals and difference quotients, and what the paper shows."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import expit

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.inspection import expected_gradient, park_ozeki_coordinates

OVERLAP = [0.5, 0.5], [0.0, 0.0]


def expected_log_density(v, first, second, truth):
    """E log p over the truth, by the trapezoidal rule, which is exact for such functions."""
    weights, means = np.array(truth[0]), np.array(truth[1])
    scales = np.sqrt(truth[2]) if len(truth) > 2 else np.ones(len(weights))

    x = np.linspace((means - 12 * scales).min(), (means + 12 * scales).max(), 20_001)[:, None]
    log_p = np.logaddexp(
        np.log(v) + stats.norm.logpdf(x, first), np.log(1 - v) + stats.norm.logpdf(x, second)
    )
    return integrate.trapezoid(log_p[:, 0] * (stats.norm.pdf(x, means, scales) @ weights), x[:, 0])


@pytest.mark.parametrize(
    "truth",
    [
        OVERLAP,
        ([0.5, 0.5], [-5.1, -5.0]),
        ([0.2, 0.5, 0.3], [-2.0, 0.0, 3.0], [1.0, 4.0, 0.01]),
    ],
    ids=str,
)
@pytest.mark.parametrize("means", [(-0.3, 0.8), (1.0, -2.0), (-6.0, 3.0)])
def test_gradients_are_difference_quotients(truth, means):
    v, (first, second) = 0.3, means
    found = expected_gradient(means, truth, weight=v)
    relative = expected_gradient(means, truth, weight=v, coordinates="relative")
    h = 1e-4

    def quotient(dv, d_first, d_second):
        up = expected_log_density(v + h * dv, first + h * d_first, second + h * d_second, truth)
        down = expected_log_density(v - h * dv, first - h * d_first, second - h * d_second, truth)
        return (up - down) / (2 * h)

    for value, expected in [
        (found.weight_gradient, quotient(1, 0, 0)),
        (relative.weight_gradient, quotient(1, 0, 0)),
        (found.gradient[0], quotient(0, 1, 0)),
        (found.gradient[1], quotient(0, 0, 1)),
        (relative.gradient[0], quotient(0, 1, 1)),  # Delta stays
        (relative.gradient[1], quotient(0, 0, 1)),
    ]:
        assert abs(value - expected) < 1e-6 * max(1, abs(expected))


def integrated_gradient(means, density, edges):
    """The gradient itself, by adaptive integration: to more digits than its quotients have."""

    def integrand(x, k):
        logits = 0.5 * ((x - means[1]) ** 2 - (x - means[0]) ** 2)
        return density(x) * expit(logits if k == 0 else -logits) * (x - means[k])

    spans = list(itertools.pairwise(edges))
    return [
        sum(integrate.quad(integrand, *span, (k,), epsabs=1e-15, epsrel=1e-13)[0] for span in spans)
        for k in range(2)
    ]


@pytest.mark.parametrize("gap", [0.0, 2.0, 6.0, 20.0])
def test_integrals_are_exact(gap):
    means = (-gap / 2, gap)
    found = expected_gradient(means, ([0.4, 0.6], [0.0, gap])).gradient

    def density(x):
        return 0.4 * stats.norm.pdf(x) + 0.6 * stats.norm.pdf(x, gap)

    expected = integrated_gradient(means, density, np.linspace(-12, gap + 12, 40))
    assert_allclose(found, expected, atol=1e-12)
    truth = expected_gradient([0.0, gap], ([0.4, 0.6], [0.0, gap]), weight=0.4)
    assert_allclose([*truth.gradient, truth.weight_gradient], 0, atol=1e-14)  # is stationary


def test_relative_velocity_is_the_gradient_through_the_jacobian():
    grid = np.random.default_rng(0).normal(size=(4, 5, 2))
    absolute = expected_gradient(grid, OVERLAP)
    relative = expected_gradient(grid, OVERLAP, coordinates="relative")
    assert_allclose(absolute.velocity, absolute.gradient)
    assert_allclose(relative.velocity, absolute.gradient @ [[1, 1], [1, 2]], atol=1e-15)
    assert absolute.weight_gradient.shape == (4, 5)
    slow = np.array([-1, 1]) / np.sqrt(2)  # along mu_2 - mu_1 speed is halved or less
    antisymmetric = expected_gradient([-0.5, 0.5], OVERLAP)
    moved = expected_gradient([-0.5, 0.5], OVERLAP, coordinates="relative").velocity
    assert_allclose(moved @ slow, 0.5 * antisymmetric.velocity @ slow)


def test_gradients_are_longer_in_relative_coordinates():
    """Figure 1 of the paper: twice as long on average, longer on three quarters of the grid."""
    axis = np.linspace(-2, 2, 41)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    absolute, relative = (
        np.linalg.norm(expected_gradient(grid, OVERLAP, coordinates=name).velocity, axis=-1)
        for name in ["absolute", "relative"]
    )
    moving = absolute > 1e-9
    assert abs(relative.mean() / absolute.mean() - 2.0) <= 0.1
    assert abs(np.mean(relative[moving] / absolute[moving]) - 2.0) <= 0.1
    assert abs(np.mean(relative > absolute) - 0.76) <= 0.05


@pytest.mark.parametrize("make", [RelativeGMM, SparseGaussianMixture])
def test_the_truth_can_be_a_fitted_mixture(make):
    X = np.random.default_rng(0).normal(size=(100, 1))
    mixture = make(2, covariance_type="spherical", random_state=0).fit(X)
    given = mixture.weights_, mixture.means_.ravel(), mixture.covariances_
    assert_allclose(
        expected_gradient([0.0, 1.0], mixture).gradient,
        expected_gradient([0.0, 1.0], given).gradient,
    )


@pytest.mark.parametrize(
    ("means", "truth", "options", "message"),
    [
        ([0.0], OVERLAP, {}, r"shape \(\.\.\., 2\)"),
        ([0.0, np.inf], OVERLAP, {}, "finite"),
        ([0.0, 1.0], OVERLAP, dict(weight=1.0), "between 0 and 1"),
        ([0.0, 1.0], OVERLAP, dict(coordinates="polar"), "'absolute' or 'relative'"),
        ([0.0, 1.0], ([1.0], [[0.0, 0.0]]), {}, "the truth has 2"),
        ([0.0, 1.0], ([1.0], [0.0], [1e14]), {}, "too wide"),
        ([0.0, 1e9], OVERLAP, {}, "too far apart"),
        ([0.0, 1.0], RelativeGMM(), {}, "not fitted"),
        (
            [0.0, 1.0],
            VonMisesFisherMixture.from_parameters([1.0], [[0.5, 0.0]]),
            {},
            "VonMisesFisherMixture lie on a sphere",
        ),
    ],
)
def test_bad_arguments_are_refused(means, truth, options, message):
    with pytest.raises(ValueError, match=message):
        expected_gradient(means, truth, **options)


@pytest.mark.parametrize("coordinates", ["absolute", "relative"])
def test_park_ozeki_coordinates_have_their_jacobian(coordinates):
    def values(v, first, second):
        if coordinates == "relative":
            second = first + second
            return np.array([v, second - first, v * first + (1 - v) * second])
        return np.array([v, first - second, v * first + (1 - v) * second])

    point = np.array([0.3, -1.0, 2.5])
    means = [-1.0, 1.5] if coordinates == "relative" else [-1.0, 2.5]
    found = park_ozeki_coordinates(means, weight=0.3, coordinates=coordinates)
    assert_allclose(found.position, values(*point))
    quotient = [(values(*(point + h)) - values(*(point - h))) / 2e-6 for h in 1e-6 * np.eye(3)]
    assert_allclose(found.jacobian, np.transpose(quotient), atol=1e-9)


def test_park_ozeki_metrics_are_those_of_the_paper():
    v, first, second = 0.3, -1.0, 2.5
    u, gap = first - second, second - first
    J = park_ozeki_coordinates([first, second], weight=v).jacobian
    expected = [[1, 0, u], [0, 2, 2 * v - 1], [u, 2 * v - 1, u**2 + v**2 + (1 - v) ** 2]]
    assert_allclose(J @ J.T, expected)
    J = park_ozeki_coordinates([first, second], weight=v, coordinates="relative").jacobian
    expected = [[1, 0, -gap], [0, 1, 1 - v], [-gap, 1 - v, gap**2 + 1 + (1 - v) ** 2]]
    assert_allclose(J @ J.T, expected)  # the paper's is for another last row
    with pytest.raises(ValueError, match="'absolute' or 'relative'"):
        park_ozeki_coordinates([0.0, 1.0], coordinates="polar")
    with pytest.raises(ValueError, match="shape"):
        park_ozeki_coordinates([0.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        park_ozeki_coordinates([0.0, 1.0], weight=2.0)


@pytest.mark.parametrize("bounds", [(-4.0, 9.0), (-1.0, 2.0)])
def test_rows_of_the_background_of_the_truth_count(bounds):
    options = {"background_weight": 0.3, "background_bounds": np.array(bounds)[:, None]}
    truth = SparseGaussianMixture.from_parameters(
        [0.4, 0.3], [[0.0], [2.0]], [1.0, 0.5], covariance_type="spherical", **options
    )
    means, (low, high) = (-1.0, 1.5), bounds

    def density(x):
        components = 0.4 * stats.norm.pdf(x) + 0.3 * stats.norm.pdf(x, 2, np.sqrt(0.5))
        return components + 0.3 / (high - low) * (low <= x <= high)

    edges = np.unique([*np.linspace(-13, 15, 29), low, high])
    expected = integrated_gradient(means, density, edges)
    assert_allclose(expected_gradient(means, truth).gradient, expected, rtol=1e-11, atol=1e-12)
