"""RelativeGMM through its public methods."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture

from reproduction.instruments.path import path_of
from skvmf import RelativeGMM, SparseGaussianMixture, component_summary

from ..pairwise import pairwise
from .checks import assert_finite
from .kinds import TYPES, as_given

SOLVERS = ["ecm", "em"]


def blobs(n=300, d=2, K=3, spread=4.0, seed=0, dtype=np.float64):
    """Gaussian clusters in a row along the first feature, and which."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = rng.normal(size=(n, d))
    X[:, 0] += spread * y
    return X.astype(dtype), y


def overlapping(n, K, d, seed):
    """Rows of clusters that overlap, and sample weights."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, d))
    X = centres[rng.integers(K, size=n)] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, size=d)
    return X, rng.uniform(0, 2, size=n)


def ordered(means, feature=0, clearance=0.0):
    return (means[..., :-1, feature] + clearance <= means[..., 1:, feature]).all()


# What the solvers promise


@pytest.mark.parametrize("covariance_type", TYPES)
def test_exact_relative_steps_are_em(covariance_type):
    X, y = blobs(spread=2.0)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 2, size=300)
    labels = np.where(rng.uniform(size=300) < 0.5, y, rng.integers(3, size=300))
    options = dict(
        covariance_type=covariance_type, solver="em", init_params=labels, max_iter=30, tol=0
    )
    relative = RelativeGMM(3, **options).fit(X, sample_weight=weights)
    del options["solver"]
    plain = SparseGaussianMixture(3, weight_concentration_prior=1, **options)
    for n_iter in range(0, 31, 5):
        plain.set_params(max_iter=n_iter).fit(X, sample_weight=weights)
        relative.set_params(max_iter=n_iter).fit(X, sample_weight=weights)
        assert np.diff(plain.means_[:, 0]).min() > 0  # no bound is active
        assert_allclose(relative.means_, plain.means_, rtol=0, atol=1e-10)
    assert_allclose(relative.lower_bounds_, plain.lower_bounds_, rtol=1e-12)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_maxima_are_scikit_learns(covariance_type):
    X, _ = blobs()
    means = X[[1, 2, 3]]
    weights = [0.2, 0.3, 0.5]
    rival = GaussianMixture(
        3, covariance_type=covariance_type, means_init=means, weights_init=weights, tol=1e-10
    )
    rival.set_params(max_iter=2000).fit(X)
    mixture = RelativeGMM(
        3,
        covariance_type=covariance_type,
        means_init=rival.means_ + 0.01,
        weights_init=rival.weights_,
        precisions_init=rival.precisions_,
        tol=1e-12,
        max_iter=2000,
    ).fit(X)
    order = np.argsort(rival.means_[:, 0])
    assert_allclose(mixture.means_, rival.means_[order], atol=1e-3)
    assert_allclose(mixture.score(X), rival.score(X), rtol=1e-7)


# Order


@pairwise(solver=SOLVERS, feature=[0, 1])
def test_means_ascend_whatever_the_start(solver, feature):
    X, y = blobs(spread=6.0)
    X = X[:, ::-1] if feature else X
    for seed in range(5):
        mixture = RelativeGMM(3, solver=solver, ordering_feature=feature, random_state=seed).fit(X)
        assert ordered(mixture.means_, feature)
        assert_allclose(mixture.differences_, np.diff(mixture.means_, axis=0))
        assert np.mean(mixture.labels_ == y) > 0.99  # labels mean the same in every fit
        assert_array_equal(mixture.predict(X), mixture.labels_)
        assert_allclose(mixture.weights_, np.bincount(y) / 300, atol=0.02)


@pytest.mark.parametrize(
    ("order", "covariance_type", "numbers"),
    [*[("means", kind, [1, 2, 0]) for kind in TYPES], ("scales", "diag", [2, 0, 1])],
)
def test_sorting_takes_everything_along(order, covariance_type, numbers):
    weights, means = np.array([0.2, 0.3, 0.5]), np.array([[3.0, 0.0], [-1.0, 1.0], [1.0, 2.0]])
    variances = np.array([[1.6, 1.0], [1.8, 1.5], [1.0, 1.2]])
    covariances = as_given(covariance_type, variances[:, None] * np.eye(2))
    mixture = RelativeGMM.from_parameters(
        weights, means, covariances, covariance_type=covariance_type, order=order
    )
    assert_array_equal(mixture.means_, means[numbers])
    assert_allclose(mixture.weights_, weights[numbers])
    expected = covariances if covariance_type == "tied" else covariances[numbers]
    assert_array_equal(mixture.covariances_, expected)
    assert_array_equal(mixture.predict(means), np.argsort(numbers))


@pytest.mark.parametrize(
    ("order", "means", "weights", "precisions"),
    [
        ("means", [[8.0], [16.0], [0.0]], [0.1, 0.6, 0.3], [4, 1, 2]),
        ("scales", [[8.0], [16.0], [0.0]], [0.1, 0.3, 0.6], [4, 2, 1]),
        ("means", None, [0.6, 0.3, 0.1], [1, 2, 4]),
    ],
)
def test_what_is_given_belongs_to_the_means_given_or_to_the_order(
    order, means, weights, precisions
):
    X, _ = blobs(spread=8.0, d=1)
    options = dict(
        covariance_type="spherical", weights_init=[0.6, 0.3, 0.1], precisions_init=[1.0, 2.0, 4.0]
    )
    mixture = RelativeGMM(3, means_init=means, order=order, max_iter=0, random_state=0, **options)
    mixture.fit(X)
    sorted_means = [0, 16, 8] if order == "scales" else [0, 8, 16]
    assert_allclose(mixture.means_.ravel(), sorted_means, atol=0.5 if means is None else 1e-14)
    assert_allclose(mixture.weights_, weights)
    assert_allclose(mixture.precisions_, precisions)


def test_priors_by_number_belong_to_the_means_given():
    X, _ = blobs(spread=8.0, d=1)
    means, priors = [[16.0], [0.0], [8.0]], [1.0, -30.0, 200.0]
    free = SparseGaussianMixture(3, means_init=means, weight_concentration_prior=priors).fit(X)
    mixture = RelativeGMM(3, solver="em", means_init=means, weight_concentration_prior=priors).fit(
        X
    )
    assert_allclose(mixture.weights_, free.weights_[[1, 2, 0]], atol=1e-6)
    given = RelativeGMM.from_parameters(
        free.weights_, free.means_, free.covariances_, weight_concentration_prior=priors
    )
    given.set_params(warm_start=True, solver="em").fit(X)
    assert_allclose(given.weights_, mixture.weights_, atol=1e-3)


# Degenerate and bad input


@pytest.mark.parametrize("solver", SOLVERS)
def test_heavy_rows_have_the_means_of_others(solver):
    """A precision of 1e300 times a weight is no float; the weights' size does not matter."""
    X = np.random.default_rng(0).normal(size=(2, 2))
    options = dict(solver=solver, reg_covar=1e-300, random_state=0)
    plain = RelativeGMM(2, **options).fit(X, sample_weight=[1.0, 1e-5])
    heavy = RelativeGMM(2, **options).fit(X, sample_weight=[1e100, 1e95])
    assert_allclose(heavy.means_, plain.means_, rtol=1e-12)


@pytest.mark.parametrize("clearance", [0.0, 0.5])
@pytest.mark.parametrize("solver", SOLVERS)
def test_tied_starting_means_are_fitted(solver, clearance):
    X, _ = blobs()
    options = dict(solver=solver, means_init=np.zeros((3, 2)), clearance=clearance, tol=1e-7)
    mixture = RelativeGMM(3, max_iter=60, **options).fit(X)
    assert_finite(mixture, X)
    assert ordered(path_of(mixture, X), 0, clearance)
    if clearance > 0:  # they leave the bound
        assert mixture.set_params(max_iter=500).fit(X).differences_[:, 0].max() > 1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fixed", [("weights", "covariances"), ("covariances",), ("weights",)])
def test_an_empty_component_does_no_harm(solver, fixed):
    X, _ = blobs(K=1)
    mixture = RelativeGMM(
        3,
        solver=solver,
        means_init=[[-500.0, 0.0], [0.0, 0.0], [500.0, 0.0]],
        fixed=fixed,
        clearance=0.2,
        temperature=0,
        max_iter=20,
    ).fit(X)
    assert_finite(mixture, X)
    assert ordered(path_of(mixture, X))


def test_the_clearance_is_held_against_the_largest_floats():
    """The span of float32 rows may be more than float32 holds."""
    X = np.random.default_rng(0).uniform(-3e38, 3e38, size=(40, 2)).astype(np.float32)
    mixture = RelativeGMM(2, clearance=1e37, random_state=0, tol=1).fit(X)
    assert ordered(mixture.means_, clearance=1e37)
    with pytest.raises(ValueError, match=r"where the data spans 5.*e\+38"):
        RelativeGMM(2, clearance=1e39).fit(X)


def test_the_clearance_is_held_against_rows_that_count():
    X = np.array([[0.0], [1.0], [9.0]])
    assert RelativeGMM(2, clearance=8.0, random_state=0).fit(X).n_components == 2
    with pytest.raises(ValueError, match="the data spans 1"):
        RelativeGMM(2, clearance=8.0).fit(X, sample_weight=[1.0, 1.0, 0.0])


def test_what_describes_a_fit_does_not_ask_the_parameters():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(c, s, (60, 2)) for c, s in [([0, 0], 1), ([5, 1], [2, 0.5])]])
    mixture = RelativeGMM(2, random_state=0).fit(X)
    before, summary = mixture.scale_differences_, component_summary(mixture, X)
    mixture.set_params(covariance_type="diag", ordering_feature=1)
    for other in (mixture, copy.copy(mixture), pickle.loads(pickle.dumps(mixture))):
        assert_array_equal(other.scale_differences_, before)
        assert_array_equal(other.covariances_, mixture.covariances_)
        assert str(component_summary(other, X)) == str(summary)


def test_a_warm_start_leaves_a_component_without_rows_where_it_is():
    """Its weight is fixed, so it is not pruned; the others do not move to make room for it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 9 * rng.integers(-1, 2, size=(60, 1))
    means = [[-1.03, -1.04, 0.27], [9.61, 8.85, 7.53], [9.41, 10.04, 8.87], [0.69, -0.76, 1.42]]
    mixture = RelativeGMM(
        4,
        covariance_type="spherical",
        temperature=0,
        clearance=1e-3,
        fixed=("weights",),
        weights_init=[0.2, 0.44, 0.2, 0.16],
        means_init=means,
        warm_start=True,
        max_iter=20,
    ).fit(X)
    before = mixture.lower_bound_
    assert_allclose(mixture.fit(X).lower_bounds_[0], before, rtol=1e-12)
