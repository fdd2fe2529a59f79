"""Fixed parameters: what a fit finds beside them, held against EM in plain NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

from ..pairwise import pairwise
from .em import em_on_the_sphere
from .kinds import TYPES, as_given, in_type, matrices

DIRECTIONS, _ = make_vonmises_fisher_blobs(300, 4, centers=3, concentration=9.0, random_state=0)
STARTS = DIRECTIONS[[0, 120, 250]]
POINTS = np.concatenate(
    [np.random.default_rng(k).normal(3 * k, 1 + k, (100 + 50 * k, 2)) for k in range(2)]
)
MEANS = [[0.0, 0.5], [3.0, 3.5]]


def sphere(fixed, **options):
    options = {"means_init": STARTS, "concentrations_init": [4.0, 9.0, 15.0]} | options
    return VonMisesFisherMixture(3, fixed=fixed, tol=1e-12, max_iter=2000, **options)


FIXED = [
    ("weights",),
    ("concentrations",),
    ("means",),
    ("weights", "concentrations"),
    ("weights", "means"),
    ("means", "concentrations"),
]


@pytest.mark.parametrize("fixed", FIXED)
def test_directions_are_those_of_em_without_the_fixed_steps(fixed):
    options = {} if "concentrations" in fixed else {"concentration_prior": 0}
    weights, kappa = np.array([0.5, 0.3, 0.2]), np.array([4.0, 9.0, 15.0])
    mixture = sphere(fixed, weights_init=weights, **options)
    mixture.set_params(max_iter=20, tol=0).fit(DIRECTIONS)
    weights, directions, kappa, bounds = em_on_the_sphere(
        DIRECTIONS, np.ones(300), weights, STARTS, kappa, 20, fixed
    )
    assert_allclose(mixture.weights_, weights, rtol=1e-10)
    assert_allclose(mixture.mean_directions_, directions, atol=1e-10)
    assert_allclose(mixture.concentrations_, kappa, atol=1e-7)
    assert_allclose(mixture.lower_bounds_, bounds, rtol=1e-10)
    assert np.diff(mixture.lower_bounds_).min() >= -1e-13


@pairwise(
    negentropy=["exact", "banerjee"],
    concentration_type=["free", "tied"],
    prior=[0.0, 2.0],
    kappa=[3.0, 1e7],
)
def test_rows_that_point_away_from_a_fixed_mean_have_no_concentration(
    negentropy, concentration_type, prior, kappa
):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([1, 0, 0], 0.2, (60, 3)), rng.normal([0, 2, 0], 0.3, (40, 3))])
    mixture = VonMisesFisherMixture(
        2,
        concentration_type=concentration_type,
        concentration_prior=prior,
        negentropy=negentropy,
        fixed=("means",),
        means_init=[[-1, 0, 0], [-0.2, -1, 0.0]],
        concentrations_init=[kappa, kappa],
        max_iter=300,
        tol=0,
    ).fit(X)
    assert np.diff(mixture.lower_bounds_).min() >= -1e-12
    if prior == 0:  # else its pseudo-rows have a direction
        assert_array_equal(mixture.concentrations_, 0)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize(
    ("estimator", "fixed"),
    [
        *[(SparseGaussianMixture, (name,)) for name in ("weights", "means", "covariances")],
        (SparseGaussianMixture, ("weights", "means")),
        *[(RelativeGMM, (name,)) for name in ("weights", "covariances")],
        (RelativeGMM, ("weights", "covariances")),
    ],
)
def test_fixed_gaussians_are_at_a_maximum_beside_what_is_fixed(estimator, covariance_type, fixed):
    mixture = estimator(
        2,
        covariance_type=covariance_type,
        reg_covar=0,
        means_init=MEANS,
        weight_concentration_prior=1,
        fixed=fixed,
        tol=1e-13,
        max_iter=5000,
    ).fit(POINTS)
    assert np.diff(mixture.lower_bounds_).min() >= -1e-13
    resp, X = mixture.predict_proba(POINTS), POINTS
    counts = resp.sum(axis=0)
    weights = np.full(2, 0.5) if "weights" in fixed else counts / len(X)
    means = MEANS if "means" in fixed else (resp.T @ X) / counts[:, None]
    assert_allclose(mixture.weights_, weights, atol=1e-5)
    assert_allclose(mixture.means_, means, atol=1e-4)
    if "covariances" in fixed:
        assert_array_equal(mixture.covariances_, as_given(covariance_type, [np.eye(2)] * 2))
    else:
        gaps = X[:, None] - mixture.means_
        expected = np.einsum("nk,nkd,nke->kde", resp / counts, gaps, gaps)
        assert_allclose(matrices(mixture), in_type(covariance_type, expected, counts), atol=1e-3)


@pairwise(
    degrees_of_freedom=[3.0, "estimated", "tied"],
    covariance_type=["full", "tied"],
    fixed=[("scale_matrices",), ("means",), ("means", "scale_matrices")],
)
def test_fixed_student_t_components_never_lower_the_likelihood(
    degrees_of_freedom, covariance_type, fixed
):
    scales = 2 * np.eye(2)
    mixture = StudentTMixture(
        2,
        covariance_type=covariance_type,
        degrees_of_freedom=degrees_of_freedom,
        reg_covar=0,
        means_init=MEANS,
        scale_matrices_init=scales if covariance_type == "tied" else [scales, scales],
        fixed=fixed,
        tol=1e-11,
        max_iter=3000,
    ).fit(POINTS)
    assert np.diff(mixture.lower_bounds_).min() >= -1e-12
    if "means" in fixed:
        assert_array_equal(mixture.means_, MEANS)
    if "scale_matrices" in fixed:
        assert (mixture.scale_matrices_ == scales).all()

    # No better degrees of freedom, nor means, nearby.
    def likelihood(means, dof):
        given = mixture.weights_, means, mixture.scale_matrices_, dof
        made = StudentTMixture.from_parameters(*given, covariance_type=covariance_type)
        return made.score(POINTS)

    best = likelihood(mixture.means_, mixture.degrees_of_freedom_)
    assert_allclose(best, mixture.lower_bound_, rtol=1e-9)
    for factor in (0.9, 1.1):
        if degrees_of_freedom != 3.0:
            assert likelihood(mixture.means_, factor * mixture.degrees_of_freedom_) <= best + 1e-9
        if "means" not in fixed:
            assert likelihood(factor * mixture.means_, mixture.degrees_of_freedom_) < best


def test_what_is_fixed_keeps_its_bits():
    mixture = sphere(("weights", "means", "concentrations"), weights_init=[0.5, 0.3, 0.2])
    mixture.fit(DIRECTIONS)
    assert mixture.n_iter_ == 1
    assert_array_equal(mixture.weights_, [0.5, 0.3, 0.2])
    assert_allclose(mixture.mean_directions_, STARTS, rtol=1e-15)
    assert_allclose(mixture.concentrations_, [4, 9, 15], rtol=1e-13)
    n = len(DIRECTIONS)
    assert_allclose(mixture.bic(DIRECTIONS), -2 * n * mixture.score(DIRECTIONS))


def test_weights_are_equal_and_concentrations_one_number_by_default():
    options = {"random_state": 0, "concentrations_init": 9.0}
    mixture = VonMisesFisherMixture(3, fixed=["weights", "concentrations"], **options)
    mixture.fit(DIRECTIONS)
    assert_array_equal(mixture.weights_, np.full(3, 1 / 3))
    assert_allclose(mixture.concentrations_, 9, rtol=1e-13)
    assert mixture._fitted.n_parameters == 3 * 3


@pytest.mark.parametrize("fixed", FIXED)
def test_streams_and_warm_starts_keep_what_is_fixed(fixed):
    mixture = sphere(fixed, weights_init=[0.5, 0.3, 0.2], warm_start=True)
    mixture.partial_fit(DIRECTIONS).partial_fit(-DIRECTIONS)
    mixture.fit(-DIRECTIONS)
    if "weights" in fixed:
        assert_array_equal(mixture.weights_, [0.5, 0.3, 0.2])
    if "means" in fixed:
        assert_allclose(mixture.mean_directions_, STARTS, rtol=1e-15)
    if "concentrations" in fixed:
        assert_allclose(mixture.concentrations_, [4, 9, 15], rtol=1e-13)


def test_an_empty_component_of_fixed_mean_does_no_harm():
    X = np.abs(DIRECTIONS)
    starts = np.array([[1.0, 1, 1, 1], [-1, -1, -1, -1]])
    options = {"means_init": starts, "temperature": 0, "max_iter": 20}
    for fixed in (("means",), ("means", "weights")):
        mixture = VonMisesFisherMixture(2, fixed=fixed, **options).fit(X)
        assert_allclose(mixture.mean_directions_, starts / 2)
        assert np.isfinite(mixture.concentrations_).all()
        assert set(mixture.labels_) == {0}


def test_sparse_gaussians_estimate_weights_without_a_prior_if_they_are_fixed():
    mixture = SparseGaussianMixture(2, fixed=("weights",), random_state=0).fit(POINTS)
    assert_array_equal(mixture.weights_, [0.5, 0.5])
    assert_allclose(mixture.lower_bound_, mixture.score(POINTS), rtol=1e-9)
