"""The Gaussian family alone: densities, its maximum, and what becomes of empty components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from skvmf._engine.contracts.responsibilities import DenseResponsibilities
from skvmf._engine.contracts.statistics import Statistics
from skvmf._engine.data.rows import make_rows
from skvmf._engine.families.gaussian import Gaussian

TYPES = ["full", "tied", "diag", "spherical"]
COVARIANCES = {
    "full": np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]),
    "tied": np.array([[2.0, 0.5], [0.5, 1.0]]),
    "diag": np.array([[2.0, 1.0], [0.5, 3.0]]),
    "spherical": np.array([2.0, 0.5]),
}
MEANS = np.array([[0.0, 0.0], [3.0, 1.0]])


def matrix(kind, covariances, k):
    own = covariances if kind == "tied" else covariances[k]
    return own if np.ndim(own) == 2 else np.diag(np.broadcast_to(own, 2))


def whole(X, weights=None):
    """Return all rows as one block."""
    return make_rows(X, weights, unit=False).map_reduce(lambda block: block)


def statistics(family, components, X, resp):
    moments = family.moments(whole(X), DenseResponsibilities(resp.copy()), components)
    counts, origins = resp.sum(axis=0), family.origins(components)
    return Statistics(0.0, float(resp.sum()), counts, moments, origins, 0.0, X[0])


def some_rows(n=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) * [1.0, 2.0] + 5, rng.dirichlet(np.ones(2), size=n)


@pytest.mark.bits
@pytest.mark.parametrize("kind", TYPES)
def test_scores_and_biases_are_log_densities(kind):
    family, (X, _) = Gaussian(2, kind), some_rows()
    scores = family.scores(whole(X), family.components(MEANS, COVARIANCES[kind]))
    assert scores.slopes is None
    for k in range(2):
        density = multivariate_normal(MEANS[k], matrix(kind, COVARIANCES[kind], k))
        assert_allclose(scores.log_density()[:, k], density.logpdf(X), rtol=1e-11)


@pytest.mark.bits
def test_full_scores_about_a_common_origin_keep_their_digits():
    """Means dozens of standard deviations from each other, far from zero, in strange shapes."""
    rng = np.random.default_rng(0)
    means = 1e3 + rng.uniform(-50, 50, size=(5, 3))
    roots = rng.normal(size=(5, 3, 3)) + 2 * np.eye(3)
    components = Gaussian(3, "full").components(means, roots @ roots.transpose(0, 2, 1))
    assert 30 < components.spread < 100
    X = means[rng.integers(5, size=200)] + rng.normal(size=(200, 3))
    gaps = X[:, None].astype(np.longdouble) - means
    white = np.einsum("nki,kij->nkj", gaps, components.cholesky.astype(np.longdouble))
    exact = -0.5 * np.einsum("nkj,nkj->nk", white, white)
    scores = Gaussian(3, "full").scores(whole(X), components).products
    assert np.max(np.abs(scores - exact) / (1 - exact)) < 1e-12


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("others", [0, 1])
def test_distances_beyond_the_largest_float_are_infinite(kind, others):
    """1e9 is 1e159 standard deviations of 1e-150, whose square is none that a float can hold."""
    family, means = Gaussian(2, kind), np.array([[0.0, 0.0], [1e9, 1e9]])[: 1 + others]
    components = family.components(means, 1e-300 * family.type.identity(*means.shape))
    assert components.common_origin == (others == 0)
    products = family.scores(whole(np.array([[0.0, 0.0], [1e9, 1e9]])), components).products
    assert_array_equal(products, [[0, -np.inf], [-np.inf, 0]] if others else [[0], [-np.inf]])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("apart", [1.0, 1e3], ids=["near", "far"])
def test_the_maximum_is_the_weighted_moments_of_the_rows(kind, apart):
    family, (X, resp) = Gaussian(2, kind, reg_covar=0.1), some_rows()
    components = family.components(apart * MEANS, COVARIANCES[kind])
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert not broken.any()
    own = np.array([np.cov(X.T, aweights=share, ddof=0) for share in resp.T])
    pooled = np.einsum("k,kde->de", resp.mean(axis=0), own)
    for k in range(2):
        assert_allclose(fresh.means[k], resp[:, k] @ X / resp[:, k].sum(), rtol=1e-9)
        expected = {
            "full": own[k],
            "tied": pooled,
            "diag": np.diag(np.diag(own[k])),
            "spherical": np.trace(own[k]) / 2 * np.eye(2),
        }[kind] + 0.1 * np.eye(2)
        tolerance = 1e-9 if apart == 1 else 1e-8  # the square of 3000 times rounding
        assert_allclose(matrix(kind, fresh.covariances, k), expected, atol=tolerance)


@pytest.mark.parametrize("kind", TYPES)
def test_weights_of_rows_may_be_small(kind):
    """The maximum depends on shares of the total; a component with any rows is not empty."""
    family, (X, resp) = Gaussian(2, kind), some_rows()
    components = family.components(MEANS, COVARIANCES[kind])
    fresh, _ = family.maximize(statistics(family, components, X, resp), components)
    small, _ = family.maximize(statistics(family, components, X, 1e-3 * resp), components)
    assert_allclose(small.means, fresh.means, rtol=1e-12)
    assert_allclose(small.covariances, fresh.covariances, rtol=1e-9)
    start = family.initial(statistics(family, components, X, 1e-3 * resp), components)
    assert_allclose(start.covariances, fresh.covariances, rtol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_means_within_a_hundred_standard_deviations_share_an_origin(kind):
    family, centre = Gaussian(2, kind), np.array([1e6, -1e6])
    near = family.components(centre + 40 * MEANS, COVARIANCES[kind])
    assert near.common_origin
    assert_allclose(near.origins, np.tile(near.means.mean(axis=0), (2, 1)))
    far = family.components(centre + 400 * MEANS, COVARIANCES[kind])
    assert not far.common_origin
    assert_array_equal(far.origins, far.means)


@pytest.mark.parametrize("kind", TYPES)
def test_covariances_are_about_the_means_given(kind):
    family, (X, resp) = Gaussian(2, kind), some_rows()
    components = family.components(MEANS, COVARIANCES[kind])
    stats = statistics(family, components, X, resp)
    fresh, _ = family.maximize(stats, components, MEANS.copy())
    assert_array_equal(fresh.means, MEANS)
    counts = resp.sum(axis=0)
    about = np.einsum("nk,nkd,nke->kde", resp, *[X[:, None] - MEANS] * 2) / counts[:, None, None]
    pooled = np.einsum("k,kde->de", counts / counts.sum(), about)
    for k in range(2):
        expected = pooled if kind == "tied" else about[k]
        found = matrix(kind, fresh.covariances, k)
        if kind == "spherical":
            assert_allclose(np.trace(found), np.trace(expected), rtol=1e-10)
        else:
            assert_allclose(np.diag(found), np.diag(expected), rtol=1e-10)
        if kind in ("full", "tied"):
            assert_allclose(found, expected, rtol=1e-10)


def test_fixed_covariances_stay():
    family, (X, resp) = Gaussian(2, "full", fixed=True), some_rows()
    components = family.components(MEANS, COVARIANCES["full"])
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert_array_equal(fresh.covariances, COVARIANCES["full"])
    assert_allclose(fresh.means, (resp.T @ X) / resp.sum(axis=0)[:, None])
    assert not broken.any()


@pytest.mark.parametrize("kind", TYPES)
def test_an_empty_component_keeps_its_parameters(kind):
    family, (X, _) = Gaussian(2, kind), some_rows()
    components = family.components(MEANS, COVARIANCES[kind])
    resp = np.zeros((len(X), 2))
    resp[:, 0] = 1
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert not broken.any()
    assert_array_equal(fresh.means[1], MEANS[1])
    if kind != "tied":
        assert_array_equal(fresh.covariances[1], COVARIANCES[kind][1])


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_component_on_one_point_is_broken_and_keeps_its_parameters(kind):
    family, (X, _) = Gaussian(2, kind), some_rows()
    X[:3] = X[0]
    resp = np.zeros((len(X), 2))
    resp[3:, 0] = resp[:3, 1] = 1
    components = family.components(MEANS, COVARIANCES[kind])
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert_array_equal(broken, [False, True])
    assert_array_equal(fresh.means[1], MEANS[1])
    assert_array_equal(fresh.covariances[1], COVARIANCES[kind][1])
    assert_allclose(fresh.means[0], X[3:].mean(axis=0))


@pytest.mark.parametrize("kind", TYPES)
def test_rows_without_any_covariance_are_refused(kind):
    family, X = Gaussian(2, kind), np.ones((10, 2))
    components = family.components(MEANS, COVARIANCES[kind])
    resp = np.full((10, 2), 0.5)
    with pytest.raises(ValueError, match="Every covariance is singular.*reg_covar"):
        family.maximize(statistics(family, components, X, resp), components)


@pytest.mark.parametrize("kind", TYPES)
def test_a_reseeded_component_has_the_mean_covariance_of_all(kind):
    family = Gaussian(2, kind)
    before = family.components(MEANS.copy(), COVARIANCES[kind].copy())
    moved = family.reseed(before, 1, np.array([9.0, 9.0]))
    assert_array_equal(moved.means, [MEANS[0], [9.0, 9.0]])
    mean = COVARIANCES[kind] if kind == "tied" else COVARIANCES[kind].mean(axis=0)
    assert_allclose(moved.covariances if kind == "tied" else moved.covariances[1], mean)
    assert_array_equal(before.means, MEANS)
    assert_array_equal(before.covariances, COVARIANCES[kind])


def test_distances_are_squared_and_in_units_of_the_variance():
    X, centres = 1e6 + np.random.default_rng(0).normal(size=(30, 2)), 1e6 + MEANS
    found = Gaussian(2, "full", scale=4.0).distances(whole(X), centres)
    assert_allclose(found, ((X[:, None] - centres) ** 2).sum(axis=2) / 4, rtol=1e-8, atol=1e-8)
    assert (Gaussian(2, "full").distances(whole(centres), centres) >= 0).all()


def partition(family, X, labels):
    components = family.from_centres(np.tile(X[0], (2, 1)))
    return statistics(family, components, X, np.eye(2)[labels]), components


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_takes_the_moments_of_a_partition(kind):
    X, _ = some_rows()
    labels = (np.arange(len(X)) % 3 == 0).astype(int)
    family = Gaussian(2, kind, reg_covar=0.01)
    start = family.initial(*partition(family, X, labels))
    own = np.array([np.cov(X[labels == k].T, ddof=0) for k in range(2)])
    for k in range(2):
        assert_allclose(start.means[k], X[labels == k].mean(axis=0))
        expected = np.average(own, axis=0, weights=[40, 20]) if kind == "tied" else own[k]
        expected = expected + 0.01 * np.eye(2)
        trace = np.trace(matrix(kind, start.covariances, k))
        assert_allclose(trace, np.trace(expected), rtol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_from_centres_or_from_too_little_takes_the_covariance_of_the_data(kind):
    X, _ = some_rows()
    family, whole_covariance = Gaussian(2, kind), np.cov(X.T, ddof=0)
    few = np.zeros(len(X), dtype=int)
    few[:1] = 1
    labels = np.arange(len(X)) % 2
    centred = family.initial(*partition(family, X, labels), MEANS)
    assert_array_equal(centred.means, MEANS)
    starts = [(centred, 0), (centred, 1)]
    if kind != "tied":
        starts.append((family.initial(*partition(family, X, few)), 1))
    for start, k in starts:
        found = matrix(kind, start.covariances, k)
        assert_allclose(np.trace(found), np.trace(whole_covariance), rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_only_what_a_partition_does_not_give_is_taken_from_the_data(kind):
    X, _ = some_rows()
    labels = np.zeros(len(X), dtype=int)
    labels[:1] = 1
    start = Gaussian(2, kind).initial(*partition(Gaussian(2, kind), X, labels))
    own = np.cov(X[1:].T, ddof=0)
    assert_allclose(np.trace(matrix(kind, start.covariances, 0)), np.trace(own), rtol=1e-9)


def test_a_tied_start_on_points_takes_the_covariance_of_the_data():
    X = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 5, axis=0)
    family = Gaussian(2, "tied")
    components = family.from_centres(np.tile(X[0], (3, 1)))
    resp = np.repeat(np.eye(3), 5, axis=0)
    start = family.initial(statistics(family, components, X, resp), components)
    assert_allclose(start.covariances, np.cov(X.T, ddof=0))


def test_a_start_on_a_line_is_refused():
    X = np.repeat(np.arange(20.0)[:, None], 2, axis=1)
    family = Gaussian(2, "full")
    with pytest.raises(ValueError, match="rows lie in a subspace.*reg_covar"):
        family.initial(*partition(family, X, np.arange(20) % 2))


def test_kmeans_is_equal_spheres_that_stay():
    twin = Gaussian(2, "full", 0.1, scale=3.0).kmeans()
    assert (twin.covariance_type, twin.fixed, twin.reg_covar) == ("spherical", True, 0.0)
    assert_array_equal(twin.from_centres(MEANS).covariances, [3.0, 3.0])


def test_a_fit_goes_on_with_covariances_of_the_same_shape():
    fresh = Gaussian(2, "diag", 0.5)
    assert Gaussian(2, "diag").continued_by(fresh) is fresh
    with pytest.raises(ValueError, match="covariance_type='full', and covariance_type is 'diag'"):
        Gaussian(2, "full").continued_by(fresh)


def test_small_answers():
    family = Gaussian(3, "full")
    components = family.from_centres(np.zeros((2, 3)))
    assert family.min_rows == 4
    assert family.log_prior(components) == 0
    assert_array_equal(family.centres(components), np.zeros((2, 3)))
