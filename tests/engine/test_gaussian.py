"""The Gaussian family alone: densities, its maximum, and what becomes of empty components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from skvmf._engine.gaussian import Gaussian
from skvmf._engine.student_t import StudentT

from .elliptical import COVARIANCES, MEANS, TYPES, in_kind, matrices, some_rows, statistics, whole

BOTH = pytest.mark.parametrize("make", [Gaussian, StudentT])


@pytest.mark.bits
@pytest.mark.parametrize("kind", TYPES)
def test_scores_and_biases_are_log_densities(kind):
    family, (X, _) = Gaussian(2, kind), some_rows()
    scores = family.scores(whole(X), family.components(MEANS, COVARIANCES[kind]))
    assert scores.slopes is None
    for k, covariance in enumerate(matrices(kind, COVARIANCES[kind])):
        density = multivariate_normal(MEANS[k], covariance)
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
    assert_allclose(fresh.means, resp.T @ X / resp.sum(axis=0)[:, None], rtol=1e-9)
    full = [np.cov(X.T, aweights=share, ddof=0) for share in resp.T]
    expected = in_kind(kind, full, resp.sum(axis=0)) + 0.1 * np.eye(2)
    tolerance = 1e-9 if apart == 1 else 1e-8  # the square of 3000 times rounding
    assert_allclose(matrices(kind, fresh.covariances), expected, atol=tolerance)


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
    expected = in_kind(kind, about, counts)
    assert_allclose(matrices(kind, fresh.covariances), expected, rtol=1e-10)


def test_fixed_covariances_stay():
    family, (X, resp) = Gaussian(2, "full", fixed_covariances=True), some_rows()
    components = family.components(MEANS, COVARIANCES["full"])
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert_array_equal(fresh.covariances, COVARIANCES["full"])
    assert_allclose(fresh.means, (resp.T @ X) / resp.sum(axis=0)[:, None])
    assert not broken.any()


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_an_empty_component_keeps_its_parameters(make, kind):
    family, (X, _) = make(2, kind), some_rows(n_outliers=3)
    components = family.components(MEANS, COVARIANCES[kind])
    resp = np.zeros((len(X), 2))
    resp[:, 0] = 1
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert not broken.any()
    assert_array_equal(fresh.means[1], MEANS[1])
    if kind != "tied":
        assert_array_equal(fresh.covariances[1], COVARIANCES[kind][1])
    if make is StudentT:
        assert_array_equal(fresh.degrees_of_freedom == 4, [False, True])


@BOTH
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_component_on_one_point_is_broken_and_keeps_its_parameters(make, kind):
    family, (X, _) = make(2, kind), some_rows()
    X[:3] = X[0]
    resp = np.zeros((len(X), 2))
    resp[3:, 0] = resp[:3, 1] = 1
    components = family.components(MEANS, COVARIANCES[kind])
    fresh, broken = family.maximize(statistics(family, components, X, resp), components)
    assert_array_equal(broken, [False, True])
    assert_array_equal(fresh.means[1], MEANS[1])
    assert_array_equal(fresh.covariances[1], COVARIANCES[kind][1])
    if make is StudentT:
        assert_array_equal(fresh.degrees_of_freedom == 4, [False, True])
    else:
        assert_allclose(fresh.means[0], X[3:].mean(axis=0))


@pytest.mark.parametrize("kind", TYPES)
def test_rows_without_any_covariance_are_refused(kind):
    family, X = Gaussian(2, kind), np.ones((10, 2))
    components = family.components(MEANS, COVARIANCES[kind])
    resp = np.full((10, 2), 0.5)
    with pytest.raises(ValueError, match=r"Every covariance is singular.*reg_covar"):
        family.maximize(statistics(family, components, X, resp), components)


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_a_reseeded_component_has_the_mean_covariance_of_all(make, kind):
    family = make(2, kind)
    before = family.components(MEANS.copy(), COVARIANCES[kind].copy())
    moved = family.reseed(before, 1, np.array([9.0, 9.0]))
    assert_array_equal(moved.means, [MEANS[0], [9.0, 9.0]])
    mean = COVARIANCES[kind] if kind == "tied" else COVARIANCES[kind].mean(axis=0)
    assert_allclose(moved.covariances if kind == "tied" else moved.covariances[1], mean)
    assert_array_equal(before.means, MEANS)
    assert_array_equal(before.covariances, COVARIANCES[kind])


@BOTH
def test_distances_are_squared_and_in_units_of_the_variance(make):
    X, centres = 1e6 + np.random.default_rng(0).normal(size=(30, 2)), 1e6 + MEANS
    found = make(2, "full", scale=4.0).distances(whole(X), centres)
    assert_allclose(found, ((X[:, None] - centres) ** 2).sum(axis=2) / 4, rtol=1e-8, atol=1e-8)
    assert (make(2, "full").distances(whole(centres), centres) >= 0).all()


def partition(family, X, labels):
    components = family.from_centres(np.tile(X[0], (2, 1)))
    return statistics(family, components, X, np.eye(2)[labels]), components


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_takes_the_moments_of_a_partition(kind):
    X, _ = some_rows()
    labels = (np.arange(len(X)) % 3 == 0).astype(int)
    family = Gaussian(2, kind, reg_covar=0.01)
    start = family.initial(*partition(family, X, labels))
    parts = [X[labels == k] for k in range(2)]
    assert_allclose(start.means, [part.mean(axis=0) for part in parts])
    expected = in_kind(kind, [np.cov(part.T, ddof=0) for part in parts], [40, 20])
    assert_allclose(matrices(kind, start.covariances), expected + 0.01 * np.eye(2), rtol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_from_centres_takes_the_covariance_of_the_data(kind):
    X, _ = some_rows()
    start = Gaussian(2, kind).initial(*partition(Gaussian(2, kind), X, np.arange(60) % 2), MEANS)
    assert_array_equal(start.means, MEANS)
    expected = in_kind(kind, [np.cov(X.T, ddof=0)] * 2, [1, 1])
    assert_allclose(matrices(kind, start.covariances), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_only_what_a_partition_does_not_give_is_taken_from_the_data(kind):
    X, _ = some_rows()
    labels = np.arange(60) == 0
    start = Gaussian(2, kind).initial(*partition(Gaussian(2, kind), X, labels.astype(int)))
    expected = in_kind(kind, [np.cov(X[1:].T, ddof=0), np.cov(X.T, ddof=0)], [59, 1])
    assert_allclose(matrices(kind, start.covariances), expected, rtol=1e-9)


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
    with pytest.raises(ValueError, match=r"rows lie in a subspace.*reg_covar"):
        family.initial(*partition(family, X, np.arange(20) % 2))


@BOTH
def test_kmeans_is_equal_spheres_that_stay(make):
    twin = make(2, "full", 0.1, scale=3.0).kmeans()
    assert (twin.covariance_type, twin.fixed_covariances, twin.reg_covar) == (
        "spherical",
        True,
        0.0,
    )
    assert_array_equal(twin.from_centres(MEANS).covariances, [3.0, 3.0])


@BOTH
def test_a_fit_goes_on_with_covariances_of_the_same_shape(make):
    fresh = make(2, "diag", 0.5)
    assert make(2, "diag").continued_by(fresh) is fresh
    with pytest.raises(ValueError, match="covariance_type='full', and covariance_type is 'diag'"):
        make(2, "full").continued_by(fresh)


@BOTH
def test_small_answers(make):
    family = make(3, "full", scale=2.0)
    components = family.from_centres(np.zeros((2, 3)))
    assert family.min_rows == 4
    assert family.log_prior(components) == 0
    assert_array_equal(family.centres(components), np.zeros((2, 3)))
