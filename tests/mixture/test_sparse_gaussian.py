"""SparseGaussianMixture through its public methods."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skvmf import SparseGaussianMixture

from ..pairwise import pairwise
from .checks import assert_finite
from .kinds import FLAT, TYPES, as_given


@pytest.mark.parametrize("covariance_type", TYPES)
def test_agrees_with_scikit_learn(covariance_type):
    X, _ = make_blobs(300, 3, centers=3, cluster_std=4.0, random_state=0)
    options = dict(covariance_type=covariance_type, max_iter=15, tol=0)
    start = SparseGaussianMixture(3, init_params=np.arange(300) % 3, **FLAT)
    start.set_params(covariance_type=covariance_type, max_iter=0).fit(X)
    first = {f"{name}_init": getattr(start, f"{name}_") for name in ("weights", "means")}
    first["precisions_init"] = start.precisions_
    prior = {"weight_concentration_prior": np.ones(3), "weight_floor": 0}
    ours = SparseGaussianMixture(3, **prior, **first, **options).fit(X)
    theirs = GaussianMixture(3, **first, **options).fit(X)
    for name in ["weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"]:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-10)
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    assert_allclose(ours.aic(X), theirs.aic(X), rtol=1e-10)
    assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-10)
    for n_steps in range(2, 16, 4):  # theirs is a step stale
        less = GaussianMixture(3, **first, **(options | {"max_iter": n_steps})).fit(X)
        assert_allclose(ours.lower_bounds_[n_steps - 1], less.lower_bound_, rtol=1e-9)
    assert_allclose(ours.score(X), ours.lower_bound_, rtol=1e-13)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("spread", [1.0, 1e5])
def test_offset_does_not_matter(covariance_type, spread):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    X = rng.normal(size=(300, 2)) + spread * np.array([[0, 0], [8, 0], [0, 8]])[y]
    options = dict(covariance_type=covariance_type, random_state=0, **FLAT)
    near = SparseGaussianMixture(3, **options).fit(X)
    far = SparseGaussianMixture(3, **options).fit(X + 1e9)
    digits = 1e9 * 2.3e-16  # what adding the offset rounds away
    assert adjusted_rand_score(y, far.labels_) > 0.99
    assert_array_equal(near.labels_, far.labels_)
    assert_allclose(far.covariances_, near.covariances_, rtol=20 * digits, atol=20 * digits)
    assert_allclose(far.means_ - 1e9, near.means_, atol=2 * digits)
    shifted = SparseGaussianMixture(3, **options).fit((X + 1e4).astype(np.float32))
    assert_allclose(shifted.covariances_, near.covariances_, rtol=0.05, atol=0.05 + spread * 1e-4)
    assert_array_equal(shifted.labels_, near.labels_)


@pytest.mark.parametrize("apart", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_rows_are_fitted_as_in_float64(apart, offset):
    """From one start, and with a bound that falls by no more than the rounding of scores."""
    rng = np.random.default_rng(0)
    centres = offset + apart * rng.choice([-0.5, 0.5], size=(4, 8))
    X = (centres[rng.integers(4, size=2000)] + rng.normal(size=(2000, 8))).astype(np.float32)
    options = dict(covariance_type="diag", means_init=centres, max_iter=20, tol=0, **FLAT)
    single = SparseGaussianMixture(4, **options).fit(X)
    double = SparseGaussianMixture(4, **options).fit(X.astype(float))
    assert_array_equal(single.labels_, double.labels_)
    assert_allclose(single.covariances_, double.covariances_, rtol=1e-5)
    assert_allclose(single.means_, double.means_, rtol=0, atol=1e-5)
    bounds = zip(single.lower_bounds_, double.lower_bounds_, strict=False)  # until one stands
    assert_allclose(*np.transpose(list(bounds)), rtol=1e-6)
    assert np.diff(single.lower_bounds_).min() > -1e-6


def test_float32_far_from_the_origin_keeps_the_regularizer():
    X = np.array([[9999], [0]], dtype=np.float32)
    mixture = SparseGaussianMixture(
        2, covariance_type="spherical", reg_covar=0.1, random_state=0, **FLAT
    ).fit(X)
    assert_allclose(mixture.covariances_, 0.1)
    assert_allclose(np.sort(mixture.means_[:, 0]), [0, 9999])


def test_a_prior_that_outweighs_the_data_warns():
    X, _ = make_blobs(60, 2, centers=3, random_state=0)
    with pytest.warns(UserWarning, match=r"outweighs the data.*above -\d"):
        mixture = SparseGaussianMixture(
            3, weight_concentration_prior=-100, flat_start=False, random_state=0
        ).fit(X)
    assert mixture.n_active_components_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseGaussianMixture(3, weight_concentration_prior=-2, random_state=0).fit(X)


def test_a_flat_start_keeps_what_the_prior_would_crush():
    X, _ = make_blobs(200, 2, centers=[[0, 0], [4, 0]], random_state=0)
    options = dict(weight_concentration_prior=-42, random_state=0, init_params="random_from_data")
    gentle = SparseGaussianMixture(5, **options).fit(X)
    assert gentle.effective_n_components_ > 1.9
    with pytest.warns(UserWarning, match="outweighs"):
        crushed = SparseGaussianMixture(5, flat_start=False, **options).fit(X)
    assert crushed.effective_n_components_ < 1.1


def test_a_component_of_equal_rows_is_singular_and_leaves():
    X, _ = make_blobs(100, 2, centers=3, random_state=0)
    outlier = np.vstack([X, np.tile([[500.0, 500.0]], (3, 1))])
    labels = np.r_[np.arange(100) % 2, 2, 2, 2]
    mixture = SparseGaussianMixture(3, reg_covar=0, init_params=labels, tol=0, **FLAT)
    assert_finite(mixture.fit(outlier), outlier)
    assert mixture.n_active_components_ < 3


@pairwise(covariance_type=TYPES, entmax_alpha=[1.0, 1.5, 2.0], temperature=[0.0, 1.0])
def test_rows_where_no_component_has_a_density_are_shared_out_by_weight(
    covariance_type, entmax_alpha, temperature
):
    near = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]]) * 1e-120
    mixture = SparseGaussianMixture.from_parameters(
        [0.2, 0.5, 0.3],
        near,
        as_given(covariance_type, [1e-240 * np.eye(2)] * 3),
        covariance_type=covariance_type,
        entmax_alpha=entmax_alpha,
        temperature=temperature,
    )
    far = np.array([[1e200, 0.0], [-1e90, 1e90], [1e308, -1e308]])
    X = np.vstack([near, far])
    resp = mixture.predict_proba(X)
    np.testing.assert_allclose(resp.sum(axis=1), 1)
    np.testing.assert_array_equal(resp[3:], [[0.2, 0.5, 0.3]] * 3)
    np.testing.assert_array_equal(mixture.responsibilities(X).toarray(), resp)
    np.testing.assert_array_equal(mixture.predict(X), [0, 1, 2, 1, 1, 1])
    assert np.isfinite(mixture.score_samples(X)).all()


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_one_point_keep_their_component(seed):
    """Far from the common origin of moments rounding makes their covariance indefinite."""
    rng = np.random.default_rng(seed)
    scales = rng.choice([1e-3, 1.0, 1e4], size=60)
    X = rng.standard_normal((428, 60)) * scales
    X[:142] = X[0]
    mixture = SparseGaussianMixture(4, random_state=0, max_iter=20).fit(X)
    labels = mixture.predict(X)
    assert len(set(labels[:142])) == 1
    assert 142 <= np.sum(labels == labels[0]) <= 142 + 4


@pairwise(covariance_type=TYPES, n_components=[20, 40], seed=range(2))
def test_copies_of_as_many_rows_as_components_get_one_each(covariance_type, n_components, seed):
    X = np.repeat(np.random.default_rng(seed).normal(size=(n_components, 16)), 10, axis=0)
    mixture = SparseGaussianMixture(
        n_components, covariance_type=covariance_type, random_state=seed
    ).fit(X)
    assert len(set(mixture.labels_)) == n_components
    expected = -np.log(n_components) - 8 * np.log(2 * np.pi * 1e-6)
    assert_allclose(mixture.score(X), expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("options", [{}, {"covariance_type": "diag"}, {"background": True}])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_as_many_rows_as_components_leave_a_prior_that_nobody_gave_flat(n, options, method):
    """Else one component would be left, and a warning of a parameter that was not given."""
    X = 10 * np.arange(n)[:, None] + np.random.default_rng(0).normal(size=(n, 2))
    mixture = SparseGaussianMixture(n, random_state=0, **options)
    given = SparseGaussianMixture(n, weight_concentration_prior=1, random_state=0, **options)
    getattr(mixture, method)(X)
    getattr(given, method)(X)
    assert_array_equal(mixture.weights_, given.weights_)
    assert_array_equal(mixture.means_, given.means_)
    if method == "fit" and not options:
        assert_allclose(mixture.weights_, 1 / n)
    light = SparseGaussianMixture(2, random_state=0).fit(np.repeat(X, 9, 0), sample_weight=1e-3)
    assert np.isfinite(light.lower_bound_)
