"""Fisher information against integrals, and what a change of coordinates leaves alone."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.distributions.vonmises_fisher import negentropy_hessian
from skvmf.inspection import fisher_information

from ..pairwise import pairwise

MIXTURES = [
    ([0.5, 0.5], [0.0, 1.0]),
    ([0.3, 0.7], [0.0, 2.5]),
    ([0.2, 0.5, 0.3], [-1.0, 0.5, 3.0], [1.0, 0.25, 2.0]),
    ([0.6, 0.4], [0.0, 12.0], [1.0, 4.0]),
]


def assert_integrals(mixture, weights, means, variances, edges, box=None):
    """Some entries are integrals over intervals between edges, with scores as in the textbook."""
    result, (low, high) = fisher_information(mixture), box or (0.0, np.inf)
    uniform, rest = 1 / (high - low), 1 - weights.sum()  # of the background, the same outside

    def entry(x, i, j):
        densities = stats.norm.pdf(x, means, np.sqrt(variances))
        density = weights @ densities + rest * uniform
        *others, last = densities if box is None else [*densities, uniform]
        by_weights = np.subtract(others, last)
        by_means = weights * densities * (x - means) / variances
        s = np.append(by_weights, by_means) / density
        return s[i] * s[j] * (weights @ densities + rest * uniform * (low <= x <= high))

    assert result.method == "quadrature"
    assert_allclose(result.eigenvalues, np.linalg.eigvalsh(result.information))
    last = len(result.information) - 1
    for pair in [(0, 0), (0, 1), (1, 1), (last, 1), (last, last)]:
        expected = sum(
            integrate.quad(entry, a, b, args=pair, epsabs=1e-12, epsrel=1e-11, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        )
        assert_allclose(result.information[pair], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_quadrature_agrees_with_adaptive_integration(mixture):
    weights, means, *rest = map(np.array, mixture)
    [variances] = rest or [np.ones(len(weights))]
    edges = np.linspace(means.min() - 20, means.max() + 20, 12)
    assert_integrals(mixture, weights, means, variances, edges)


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_relative_information_is_pulled_back_and_keeps_its_determinant(mixture):
    absolute = fisher_information(mixture)
    relative = fisher_information(mixture, coordinates="relative")
    K = len(mixture[0])
    jacobian = np.eye(2 * K - 1)
    jacobian[K - 1 :, K - 1 :] = np.tri(K)  # d (weights, means) / d (weights, mean, gaps)
    pulled = jacobian.T @ absolute.information @ jacobian
    assert_allclose(relative.information, pulled, rtol=1e-12, atol=1e-14)
    determinants = [np.linalg.det(result.information) for result in (absolute, relative)]
    assert_allclose(determinants[0], determinants[1], rtol=1e-10)


def test_separated_components_have_independent_information():
    weights, means = np.array([0.2, 0.3, 0.5]), np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0]])
    covariances = np.array([[[1.0, 0.5], [0.5, 2.0]], np.eye(2), np.diag([4.0, 1.0])])
    result = fisher_information((weights, means, covariances), random_state=0)
    assert result.method == "monte carlo"
    expected = np.zeros((8, 8))
    expected[:2, :2] = np.diag(1 / weights[:2]) + 1 / weights[2]
    for k in range(3):
        block = slice(2 + 2 * k, 4 + 2 * k)
        expected[block, block] = weights[k] * np.linalg.inv(covariances[k])
    assert_allclose(result.information, expected, atol=0.15)
    assert_allclose(np.diagonal(result.information), np.diagonal(expected), rtol=0.03)
    only = fisher_information((weights, means, covariances), parameters=("weights",))
    assert only.information.shape == (2, 2)


def quotients(function, point):
    """Return difference quotients of a function with values (n,), a column for each argument."""
    steps = 1e-5 * np.eye(len(point))
    return np.transpose([(function(point + h) - function(point - h)) / 2e-5 for h in steps])


@pytest.mark.parametrize("background", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["plane", "sphere"])
def test_information_is_the_mean_product_of_slopes(kind, background):
    """Of difference quotients of the log-density, at the rows that are drawn."""
    rng = np.random.default_rng(0)
    weights, means = (1 - background) * np.array([0.2, 0.3, 0.5]), rng.normal(size=(3, 3))
    roots, box = rng.normal(size=(3, 3, 3)), np.array([[-9.0] * 3, [9.0] * 3])
    covariances, n_free = roots @ roots.transpose(0, 2, 1) + np.eye(3), 3 if background else 2
    if kind == "sphere":
        means *= 0.7 / np.linalg.norm(means, axis=1, keepdims=True)

    def make(point):
        own, m = point[:n_free], point[n_free:].reshape(3, 3)
        rest, more = 1 - own.sum(), {}
        own, more = (own, {"background_weight": rest}) if background else (np.append(own, rest), {})
        if kind == "sphere":
            return VonMisesFisherMixture.from_parameters(own, m, random_state=1, **more)
        more |= {"background_bounds": box} if background else {}
        return SparseGaussianMixture.from_parameters(own, m, covariances, random_state=1, **more)

    point = np.append(weights[:n_free], means)
    X, _ = make(point).sample(500)
    slopes = quotients(lambda point: make(point).score_samples(X), point)
    expected = slopes.T @ slopes / 500
    result = fisher_information(make(point), n_samples=500, random_state=1)
    assert_allclose(result.information, expected, atol=1e-6 * np.abs(expected).max())


@pairwise(
    covariance_type=["full", "tied", "diag", "spherical"],
    make=[SparseGaussianMixture, GaussianMixture],
)
def test_fitted_mixtures_are_read(make, covariance_type):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=80), rng.normal(5, 2, size=120)])[:, None]
    mixture = make(2, covariance_type=covariance_type, random_state=0).fit(X)
    variances = np.resize(np.ravel(mixture.covariances_), 2)
    given = mixture.weights_, mixture.means_.ravel(), variances
    for coordinates in ["absolute", "relative"]:
        result, expected = (
            fisher_information(m, coordinates=coordinates) for m in (mixture, given)
        )
        assert_allclose(result.information, expected.information, rtol=1e-10, atol=1e-13)


def test_relative_coordinates_take_the_estimators_order():
    means, covariances = [[3.0, 0.0], [0.0, 1.0]], np.tile(np.eye(2), (2, 1, 1))
    options = dict(coordinates="relative", n_samples=2000, random_state=0)
    mixture = RelativeGMM.from_parameters([0.5, 0.5], means, covariances, ordering_feature=1)
    expected = fisher_information(([0.5, 0.5], means, covariances), ordering_feature=1, **options)
    assert_allclose(fisher_information(mixture, **options).information, expected.information)
    with pytest.raises(ValueError, match="ordering_feature=2 is out of range"):
        fisher_information(mixture, ordering_feature=2, **options)


def test_components_without_weight_are_left_out():
    result = fisher_information(([0.5, 0.0, 0.5], [0.0, 9.0, 1.0]))
    assert_allclose(result.information, fisher_information(([0.5, 0.5], [0.0, 1.0])).information)


def test_components_too_unlike_for_quadrature_are_sampled():
    result = fisher_information(
        ([0.5, 0.5], [0.0, 0.0], [1e-12, 1.0]), n_samples=2000, random_state=0
    )
    assert result.method == "monte carlo"
    assert np.isfinite(result.information).all()


def test_a_single_component():
    assert_allclose(fisher_information(([1.0], [3.0], [4.0])).information, [[0.25]])
    mixture = VonMisesFisherMixture.from_parameters([1.0], [[0.9, 0.0]])
    result = fisher_information(mixture, random_state=0)
    expected = negentropy_hessian(mixture.means_[0])
    assert_allclose(result.information, expected, rtol=0.05, atol=0.3)


@pytest.mark.parametrize(
    ("mixture", "options", "message"),
    [
        (([0.5, 0.6], [0.0, 1.0]), {}, "sum to 1"),
        (([1.0],), {}, "got 1 entries"),
        (([0.5, 0.5], [0.0, 1.0, 2.0]), {}, "weights should have the shape"),
        (([0.5, 0.5], [0.0, np.nan]), {}, "finite"),
        (([0.5, 0.5], [0.0, 1.0], [1.0, -1.0]), {}, "positive definite"),
        (([0.5, 0.5], [0.0, 1.0], [1.0, 1.0, 1.0]), {}, r"of shape \(2, 1, 1\)"),
        (([0.5, 0.5], [0.0, 1.0]), dict(coordinates="polar"), "'absolute' or 'relative'"),
        (([0.5, 0.5], [0.0, 1.0]), dict(parameters=("means", "x")), "'weights', 'means'"),
        (([0.5, 0.5], [0.0, 1.0]), dict(parameters=()), "'weights', 'means'"),
        (([0.5, 0.5], [0.0, 1.0]), dict(n_samples=0), "n_samples"),
        (RelativeGMM(), {}, "not fitted"),
    ],
)
def test_bad_arguments_are_refused(mixture, options, message):
    with pytest.raises(ValueError, match=message):
        fisher_information(mixture, **options)


def test_other_estimators_are_refused():
    from sklearn.cluster import KMeans

    with pytest.raises(ValueError, match="KMeans is not a mixture"):
        fisher_information(KMeans(1, n_init=1).fit([[0.0], [1.0]]))


@pytest.mark.parametrize("bounds", [(-4.0, 9.0), (0.5, 2.0), (-300.0, 5.0)])
def test_the_background_counts_on_the_line(bounds):
    weights, means, variances = np.array([0.5, 0.3]), np.array([0.0, 2.5]), np.array([1.0, 0.5])
    background = {"background_weight": 0.2, "background_bounds": np.array(bounds)[:, None]}
    mixture = SparseGaussianMixture.from_parameters(
        weights, means[:, None], variances, covariance_type="spherical", **background
    )
    edges = np.unique([*np.linspace(-15, 15, 16), *bounds])
    assert_integrals(mixture, weights, means, variances, edges, bounds)


def test_a_background_that_has_every_row_has_no_information_on_components():
    mixture = VonMisesFisherMixture.from_parameters(
        [0.0, 0.0], 0.5 * np.eye(2, 3), background_weight=1.0
    )
    with pytest.raises(ValueError, match="background has every row"):
        fisher_information(mixture)


def test_bits_do_not_depend_on_the_number_of_threads():
    means = np.random.default_rng(0).normal(size=(5, 2))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            given = np.full(5, 0.2), means
            found.append(fisher_information(given, n_samples=20_000, random_state=0))
    assert_array_equal(found[0].information, found[1].information)
    assert_array_equal(found[0].eigenvalues, found[1].eigenvalues)
