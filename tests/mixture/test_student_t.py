"""StudentTMixture through its public methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.base import clone
from sklearn.datasets import make_blobs

from skvmf import SparseGaussianMixture, StudentTMixture

from ..pairwise import pairwise
from .checks import assert_bound_never_falls
from .kinds import TYPES, as_given, in_type, matrices

SCALES = np.array([[[2.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.1]]])
POSTERIORS = [{}, {"entmax_alpha": 2.0}, {"temperature": 0}]


def mixture_of_two(covariance_type, dof=(3.0, 8.0), apart=20.0, **options):
    return StudentTMixture.from_parameters(
        [0.3, 0.7],
        [[0, 0], [apart, 0]],
        as_given(covariance_type, SCALES),
        dof,
        covariance_type=covariance_type,
        random_state=0,
        **options,
    )


def log_joint(X, weights, means, shapes, dof):
    parts = zip(means, shapes, dof, strict=True)
    densities = [multivariate_t(mean, shape, df=nu).logpdf(X) for mean, shape, nu in parts]
    return np.log(weights) + np.column_stack(densities)


def tailed(n=300, d=3, dof=3.0, seed=0):
    """Return rows of three components with heavy tails, and whose they are."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = rng.uniform(-10, 10, size=(3, d))
    return centres[y] + rng.standard_t(dof, size=(n, d)), y


# What it computes.


@pytest.mark.parametrize("covariance_type", TYPES)
def test_em_is_that_of_the_paper(covariance_type):
    """Peel and McLachlan's equations in NumPy, scatter over sums of r u; ten steps."""
    X, y = tailed()
    dof = np.array([2.0, 4.0, 9.0])
    options = dict(degrees_of_freedom=dof, reg_covar=0, init_params=y, tol=0)
    options["covariance_type"] = covariance_type
    fitted = StudentTMixture(3, max_iter=10, **options).fit(X)
    start = StudentTMixture(3, max_iter=0, **options).fit(X)
    weights, means, shapes = start.weights_, start.means_, matrices(start)
    for _ in range(10):
        joint = log_joint(X, weights, means, shapes, dof)
        resp = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        gaps = X[:, None] - means
        squares = np.einsum("nkd,kde,nke->nk", gaps, np.linalg.inv(shapes), gaps)
        weighed = resp * (dof + 3) / (dof + squares)
        weights, sums = resp.mean(axis=0), weighed.sum(axis=0)
        means = weighed.T @ X / sums[:, None]
        gaps = X[:, None] - means
        scatter = np.einsum("nk,nkd,nke->kde", weighed, gaps, gaps)
        shapes = in_type(covariance_type, scatter / sums[:, None, None], sums)
        if covariance_type == "tied":
            shapes *= sums.sum() / len(X) * (dof @ resp.sum(axis=0)) / (dof @ sums)
    assert_allclose(fitted.weights_, weights, rtol=1e-10)
    assert_allclose(fitted.means_, means, rtol=1e-9, atol=1e-9)
    assert_allclose(matrices(fitted), shapes, rtol=1e-8, atol=1e-8)
    expected = logsumexp(log_joint(X, weights, means, shapes, dof), axis=1).mean()
    assert_allclose(fitted.lower_bound_, expected, rtol=1e-11)
    assert_allclose(fitted.score(X), expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("covariance_type", "posterior"), zip(TYPES, [*POSTERIORS, {}], strict=True)
)
def test_the_limit_of_many_degrees_of_freedom_is_a_gaussian_mixture(covariance_type, posterior):
    X, y = make_blobs(200, 3, centers=3, cluster_std=3, random_state=0)
    options = dict(covariance_type=covariance_type, init_params=y, max_iter=15, tol=0, **posterior)
    options["weight_concentration_prior"] = 1.0
    t = StudentTMixture(3, degrees_of_freedom=1e100, **options).fit(X)
    gaussian = SparseGaussianMixture(3, **options).fit(X)
    assert_allclose(t.means_, gaussian.means_, rtol=1e-11)
    assert_allclose(t.scale_matrices_, gaussian.covariances_, rtol=1e-10, atol=1e-12)
    assert_allclose(t.lower_bounds_, gaussian.lower_bounds_, rtol=1e-12)
    assert_allclose(t.aic(X), gaussian.aic(X), rtol=1e-12)


# What it finds.


@pytest.mark.parametrize(
    ("covariance_type", "tails", "truth"),
    [
        *[(kind, "estimated", (3.0, 8.0)) for kind in ("full", "spherical")],
        *[(kind, "tied", (4.0, 4.0)) for kind in ("tied", "diag")],
    ],
)
def test_parameters_are_recovered_from_draws(covariance_type, tails, truth):
    X, _ = mixture_of_two(covariance_type, truth).sample(20_000)
    fitted = StudentTMixture(
        2,
        degrees_of_freedom=tails,
        covariance_type=covariance_type,
        means_init=[[0, 0], [20, 0]],
        reg_covar=0,
        tol=1e-8,
        max_iter=500,
    ).fit(X)
    assert fitted.converged_
    assert_bound_never_falls(fitted)
    assert_allclose(fitted.degrees_of_freedom_, truth, rtol=0.12)
    assert_allclose(fitted.weights_, [0.3, 0.7], atol=0.01)
    assert_allclose(fitted.means_, [[0, 0], [20, 0]], atol=0.06)
    assert_allclose(fitted.scale_matrices_, as_given(covariance_type, SCALES), rtol=0.06, atol=0.03)
    known = clone(fitted).set_params(degrees_of_freedom=truth, tol=1e-6).fit(X)
    assert_array_equal(known.degrees_of_freedom_, truth)
    assert_allclose(known.scale_matrices_, as_given(covariance_type, SCALES), rtol=0.06, atol=0.03)


# What mixtures promise.


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("spread", [1.0, 1e5])
def test_offset_does_not_matter(covariance_type, spread):
    X, y = tailed()
    X += (spread - 1) * np.eye(3)[y]
    options = dict(covariance_type=covariance_type, init_params=y, max_iter=30, tol=0)
    near = StudentTMixture(3, **options).fit(X)
    far = StudentTMixture(3, **options).fit(X + 1e8)
    digits = 1e8 * 2.3e-16  # what adding the offset rounds away
    assert_allclose(far.means_ - 1e8, near.means_, atol=20 * digits)
    assert_allclose(far.scale_matrices_, near.scale_matrices_, rtol=200 * digits, atol=200 * digits)
    assert_allclose(far.degrees_of_freedom_, near.degrees_of_freedom_, rtol=2000 * digits)


# Going on, and what is given.


def test_a_warm_start_takes_today_s_degrees_of_freedom():
    X, y = tailed()
    options = dict(reg_covar=0, warm_start=True, tol=1e-6, max_iter=100)
    mixture = StudentTMixture(3, degrees_of_freedom=50, init_params=y, **options).fit(X)
    for tails in ("estimated", "tied", 4.0):
        before = mixture.means_
        mixture.set_params(degrees_of_freedom=tails).fit(X)
        assert_bound_never_falls(mixture)
        assert_allclose(mixture.means_, before, atol=0.5)
        if tails == "estimated":
            assert (mixture.degrees_of_freedom_ < 10).all()
        else:
            assert len(set(mixture.degrees_of_freedom_)) == 1
    assert_array_equal(mixture.degrees_of_freedom_, 4.0)
    with pytest.raises(ValueError, match="scratch with a clone of the mixture"):
        mixture.set_params(covariance_type="diag").fit(X)
    assert mixture.sample(5)[0].shape == (5, 3)  # of the fit as it was


@pytest.mark.bits
@pytest.mark.parametrize("seed", range(5))
def test_a_warm_start_does_not_round_tied_degrees_of_freedom(seed):
    X = np.random.default_rng(seed).standard_t(5, size=(200, 2))
    mixture = StudentTMixture(2, degrees_of_freedom="tied", random_state=seed, warm_start=True)
    before = mixture.fit(X).degrees_of_freedom_
    again = mixture.set_params(max_iter=0).fit(X)
    assert_array_equal(again.degrees_of_freedom_, before)


TAILS = ["estimated", "tied", 4.0]


@pairwise(seed=range(4), covariance_type=TYPES, tails=TAILS)
def test_few_distinct_rows_do_not_lower_the_bound(covariance_type, tails, seed):
    """Where `reg_covar` holds a component's scale, its degrees of freedom belong to that scale."""
    rng = np.random.default_rng(seed)
    d, n_distinct = 4 + seed, 1 + seed % 3
    copies = np.repeat(rng.normal(8, 1, (n_distinct, d)), 20, axis=0)
    X = np.concatenate([rng.normal(size=(60, d)), copies])
    mixture = StudentTMixture(
        2,
        covariance_type=covariance_type,
        degrees_of_freedom=tails,
        init_params=np.repeat([0, 1], [60, len(copies)]),
        max_iter=60,
        tol=0,
    ).fit(X)
    assert mixture.lower_bound_ >= max(mixture.lower_bounds_) - 1e-5


@pytest.mark.parametrize("scale", [1.0, 1e9])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_scale_matrices_at_the_limit_of_floats_stay_regular(covariance_type, scale):
    """Two rows are a line, along which a heavy tail grows beyond 1e16 times `reg_covar`."""
    X = scale * np.random.default_rng(1).normal(size=(9, 3))  # rows that are not all on lines
    mixture = StudentTMixture(4, covariance_type=covariance_type, random_state=0).fit(X)
    assert np.isfinite(mixture.lower_bounds_).all()
    assert np.isfinite(mixture.score_samples(X)).all()
    assert mixture.lower_bound_ == max(mixture.lower_bounds_)


@pytest.mark.parametrize("far", [0, 1e2, 1e6])
def test_degrees_of_freedom_of_a_component_with_next_to_no_weight(far):
    first = 1e9 * np.array([[[1.0, 0.1], [0.1, 1.4]], [[1.4, -0.4], [-0.4, 3.6]]])
    X = np.float32([[0, 0], [-far, -far]])
    mixture = StudentTMixture(2, scale_matrices_init=first, random_state=0).fit(X)
    assert np.isfinite(mixture.degrees_of_freedom_).all()
    assert np.isfinite(mixture.lower_bounds_).all()


@pytest.mark.parametrize("tails", TAILS)
def test_degrees_of_freedom_of_equal_rows_are_the_likeliest(tails):
    mixture = StudentTMixture(1, degrees_of_freedom=tails, tol=1e-9, max_iter=500, reg_covar=0.1)
    mixture.fit(np.ones((10, 3)))
    assert_allclose(mixture.scale_matrices_, [0.1 * np.eye(3)], rtol=1e-9)
    assert_allclose(mixture.degrees_of_freedom_, 4.0 if tails == 4.0 else 0.1)


def test_a_mixture_of_given_parameters_can_be_fitted_further():
    X, _ = mixture_of_two("full").sample(2000)
    mixture = mixture_of_two("full", (1e-3, 1e100), warm_start=True, reg_covar=0, tol=1e-6)
    mixture.set_params(degrees_of_freedom="estimated").fit(X)
    assert_bound_never_falls(mixture)
    assert_allclose(mixture.degrees_of_freedom_, [3.0, 8.0], rtol=0.4)


def test_weights_of_any_ratio_give_a_finite_fit():
    """The background of a start by merging may have every row."""
    X = np.random.default_rng(0).normal(size=(2, 2))
    fit = StudentTMixture().fit(X, sample_weight=[1e192, 1e66])
    assert np.isfinite(fit.lower_bound_)
