"""What Gaussian and Student-t components have in common: first steps, samples, digits."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import chi2, f, kstest, multivariate_normal

from skvmf import SparseGaussianMixture, StudentTMixture

from ..pairwise import pairwise
from .kinds import FLAT, TYPES, as_given, in_type, matrices

MATRICES = {SparseGaussianMixture: "precisions", StudentTMixture: "scale_matrices"}
SHAPES = np.array([[[2.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.1]]])
BOTH = pytest.mark.parametrize("estimator", MATRICES)


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_a_start_takes_from_a_partition_what_it_gives(estimator, kind):
    """Components of one row, and given means, have the covariance of all rows."""
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 2.0] + 2
    options = {"covariance_type": kind, "max_iter": 0} | FLAT
    everywhere = np.cov(X.T, ddof=0)

    def assert_started(expected, counts, reg_covar=0.01, **start):
        mixture = estimator(2, reg_covar=reg_covar, **start, **options).fit(X)
        expected = in_type(kind, expected, counts) + reg_covar * np.eye(2)
        assert_allclose(matrices(mixture), expected, rtol=1e-9)
        return mixture

    labels = np.arange(60) % 3 // 2
    parts = [X[labels == k] for k in (0, 1)]
    mixture = assert_started([np.cov(p.T, ddof=0) for p in parts], [40, 20], init_params=labels)
    assert_allclose(mixture.means_, [part.mean(axis=0) for part in parts])
    assert_started([everywhere] * 2, [1, 1], means_init=[[0.0, 0.0], [3.0, 1.0]])
    if kind != "tied":
        expected = np.cov(X[1:].T, ddof=0), everywhere
        assert_started(expected, [59, 1], 0, init_params=(np.arange(60) == 0).astype(int))


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_initial_parameters_are_used(estimator, kind):
    options = {"weights_init": [0.4, 0.6], "means_init": np.eye(2), "max_iter": 0}
    options |= {"degrees_of_freedom": [1.0, 5.0]} if estimator is StudentTMixture else {}
    name, given = MATRICES[estimator], as_given(kind, SHAPES)
    mixture = estimator(2, covariance_type=kind, **{f"{name}_init": given}, **options)
    mixture.fit(np.random.default_rng(0).normal(size=(100, 2)))
    assert_allclose(mixture.weights_, [0.4, 0.6])
    assert_allclose(mixture.means_, np.eye(2))
    assert_allclose(getattr(mixture, f"{name}_"), given)
    if estimator is StudentTMixture:
        assert_allclose(mixture.degrees_of_freedom_, [1.0, 5.0])


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_samples_follow_the_parameters(estimator, kind):
    """Squared Mahalanobis distances over d are F(d, nu), and directions are all alike."""
    tails, laws = [1.5, 6.0], [chi2(2, scale=0.5)] * 2
    given = [0.3, 0.7], [[0, 0], [20, 0]], as_given(kind, SHAPES)
    if estimator is StudentTMixture:
        given, laws = (*given, tails), [f(2, nu) for nu in tails]
    truth = estimator.from_parameters(*given, covariance_type=kind, random_state=0)
    X, y = truth.sample(20_000)
    assert abs((y == 0).mean() - 0.3) < 0.01
    for k, (shape, law) in enumerate(zip(matrices(truth), laws, strict=True)):
        white = np.linalg.solve(np.linalg.cholesky(shape), (X[y == k] - truth.means_[k]).T)
        assert kstest((white**2).sum(axis=0) / 2, law.cdf).pvalue > 1e-3
        angles = np.arctan2(*white) / (2 * np.pi) + 0.5
        assert kstest(angles, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dim", [1, 64, 130, 256, 257])
def test_covariances_are_right_for_any_number_of_features(dim):
    X = np.random.default_rng(3).normal(size=(600, dim))
    labels = np.arange(600) % 2
    mixture = SparseGaussianMixture(2, init_params=labels, max_iter=0, reg_covar=0, **FLAT).fit(X)
    expected = [np.cov(X[labels == k].T, ddof=0).reshape(dim, dim) for k in (0, 1)]
    assert_allclose(mixture.covariances_, expected, atol=1e-12)


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_an_empty_component_moves_to_a_row_with_the_mean_covariance_of_all(estimator, kind):
    X = np.random.default_rng(0).normal(size=(60, 2))
    name, scales, tails = f"{MATRICES[estimator]}_init", np.array([1.0, 9.0]), {}
    if estimator is SparseGaussianMixture:
        scales = 1 / scales
    else:
        tails = {"degrees_of_freedom": 8.0}
    given = as_given(kind, scales[:, None, None] * np.eye(2))
    common = {"covariance_type": kind, "max_iter": 1, "tol": 0, "temperature": 0, "reg_covar": 0}
    common |= tails | FLAT
    mixture = estimator(2, means_init=[[0, 0], [1e6, 0]], **{name: given}, **common).fit(X)
    given = given if kind == "tied" else given[:1]
    one = estimator(1, means_init=[[0, 0]], **{name: given}, **common).fit(X)
    assert (X == mixture.means_[1]).all(axis=1).any()
    assert_allclose(matrices(mixture)[0], matrices(one)[0], rtol=1e-9)
    if kind != "tied":
        expected = (matrices(one)[0] + 9 * np.eye(2)) / 2
        assert_allclose(matrices(mixture)[1], expected, rtol=1e-9)


# Digits.


@pytest.mark.bits
def test_log_densities_far_from_zero_keep_their_digits():
    """Means dozens of standard deviations from each other, in strange shapes."""
    rng = np.random.default_rng(0)
    means = 1e3 + rng.uniform(-50, 50, size=(5, 3))
    roots = rng.normal(size=(5, 3, 3)) + 2 * np.eye(3)
    mixture = SparseGaussianMixture.from_parameters(
        np.full(5, 0.2), means, roots @ roots.transpose(0, 2, 1)
    )
    X = means[rng.integers(5, size=200)] + rng.normal(size=(200, 3))
    cholesky = mixture.precisions_cholesky_.astype(np.longdouble)
    white = np.einsum("nki,kij->nkj", X[:, None].astype(np.longdouble) - means, cholesky)
    log_det = np.log(np.einsum("kii->ki", cholesky)).sum(axis=1)
    joint = log_det - 1.5 * np.log(2 * np.pi) - 0.5 * (white**2).sum(axis=2) + np.log(0.2)
    exact = logsumexp(joint.astype(float), axis=1)
    assert np.max(np.abs(mixture.score_samples(X) - exact) / (1 - exact)) < 1e-12


@pytest.mark.bits
@pairwise(dim=[1, 2, 128, 129, 2000], far=[0, 10, 100, 1e4, 1e6], offset=[0.0, 1e4])
def test_float32_rows_are_scored_and_shared_out_as_in_float64(dim, far, offset):
    rng = np.random.default_rng(dim)
    variances = np.full((3, dim), 0.1) * rng.uniform(1, 1 + 1 / max(far, 1) ** 2, size=(3, dim))
    # so near that no component has all of a far row
    means = offset + rng.normal(size=(3, dim)) / max(far, 10) / dim**0.5
    mixture = SparseGaussianMixture.from_parameters(
        [0.2, 0.3, 0.5], means, variances, covariance_type="diag"
    )
    X = rng.normal(size=(400, dim))
    X = (offset + far * X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    X[::2] = means[0] + np.sqrt(variances[0]) * rng.normal(size=(200, dim))
    wide = X.astype(np.float64)
    assert_allclose(mixture.predict_proba(X), mixture.predict_proba(wide), rtol=0, atol=1e-4)
    expected = mixture.score_samples(wide)
    assert_allclose(mixture.score_samples(X), expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("apart", [0.3, 10, 20, 100, 1000])
def test_float32_rows_near_their_component_are_scored_to_their_digits(apart):
    """Products of float32 features miss by 8e-4 at ten standard deviations, 0.08 at a hundred."""
    rng = np.random.default_rng(0)
    K, d = 12, 32
    means = apart * rng.choice([-0.5, 0.5], size=(K, d)) * rng.uniform(0.9, 1, size=(K, d))
    variances = rng.uniform(0.5, 2, size=(K, d))
    mixture = SparseGaussianMixture.from_parameters(
        np.full(K, 1 / K), means, variances, covariance_type="diag"
    )
    labels = rng.integers(K, size=1000)
    X = (means[labels] + rng.normal(size=(1000, d)) * variances[labels] ** 0.5).astype(np.float32)
    joint = [
        multivariate_normal(m, v).logpdf(X.astype(float))
        for m, v in zip(means, variances, strict=True)
    ]
    expected = logsumexp(joint, axis=0) - np.log(K)
    assert_allclose(mixture.score_samples(X), expected, rtol=2e-7, atol=3e-5)


@pytest.mark.bits
@pytest.mark.parametrize(("gap", "refused"), [(1e-12, False), (5e-16, True)])
def test_a_correlation_is_perfect_to_rounding(gap, refused):
    """Of the second variance a share of `gap` is its own; 1e-15 of it is rounding."""
    root = np.array([[1.0, 0.0], [1.0, gap**0.5]])
    for scale in (1e-10, 1.0, 1e10):
        given = [1.0], [[0.0, 0.0]], [scale * root @ root.T]
        if refused:
            with pytest.raises(ValueError, match="positive definite"):
                SparseGaussianMixture.from_parameters(*given)
        else:
            SparseGaussianMixture.from_parameters(*given)


@pytest.mark.bits
@pytest.mark.parametrize("dim", [1, 3, 33, 1001])
@pytest.mark.parametrize("dof", [1e-3, 0.1, 3.9, 39.9, 40.1, 1e3, 1e6, 1e12, 1e20])
def test_tails_keep_their_digits(dim, dof):
    """Where differences of log-gammas of 1e12 would be wrong by 1e-3."""
    mixture = StudentTMixture.from_parameters(
        [1.0], np.zeros((1, dim)), [2.0], dof, covariance_type="spherical"
    )
    lengths = [0.0, 0.3, 1.0, 7.0, 100.0]
    with mpmath.workdps(60):
        nu, half = mpmath.mpf(dof), mpmath.mpf(dim) / 2
        peak = mpmath.loggamma(nu / 2 + half) - mpmath.loggamma(nu / 2)
        peak -= half * mpmath.log(2 * mpmath.pi * nu)
        expected = [
            peak - (nu / 2 + half) * mpmath.log1p(mpmath.mpf(x) ** 2 / 2 / nu) for x in lengths
        ]
    result = mixture.score_samples(np.outer(lengths, np.eye(1, dim)))
    assert_allclose(result, [float(e) for e in expected], rtol=2e-13, atol=1e-14 * dim)
