"""Missing values: densities, fits, imputation, and mixtures of some features."""

import pickle

import dask.array as da
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t, norm, t
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score

from skvmf import (
    ComponentPath,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf._engine.search import beside_background, merging_start, sample, starts

from ..pairwise import pairwise
from .checks import assert_same_bits
from .kinds import PLANE, TYPES, as_given, in_type, matrices

NAN = np.nan


def with_missing(X, share, seed=0):
    """Return rows of which values are missing at random; each feature and row keeps some."""
    rng = np.random.default_rng(seed)
    X = np.array(X)
    X[rng.random(X.shape) < share] = NAN
    return X


def blobs(n=600, d=4, share=0.3, seed=0):
    X, y = make_blobs(n, d, centers=3, cluster_std=1.5, center_box=(-9, 9), random_state=seed)
    return with_missing(X @ np.random.default_rng(seed).normal(size=(d, d)), share, seed), y


def mixture_of(dof, *parameters, **params):
    """Return a mixture of given parameters, of Gaussian components if there is no `dof`."""
    kind, tails = (SparseGaussianMixture, []) if dof is None else (StudentTMixture, [dof])
    return kind.from_parameters(*parameters, *tails, **{"missing_values": "marginal"} | params)


def given(dof, covariance_type, weights=(0.2, 0.5, 0.3), **params):
    """Return a mixture of known parameters, and its weights, means and matrices."""
    K, d = len(weights), 4
    A = np.random.default_rng(0).normal(size=(K, d, d))
    shapes = as_given(covariance_type, A @ A.transpose(0, 2, 1) + 0.3 * np.eye(d))
    means = 2 * np.random.default_rng(1).normal(size=(K, d))
    mixture = mixture_of(dof, weights, means, shapes, covariance_type=covariance_type, **params)
    return mixture, (np.array(weights), means, matrices(mixture))


def log_densities(X, means, full, dof=None):
    """Return log-densities of observed features, (n, K), by SciPy."""
    out = np.zeros((len(X), len(means)))
    dof = None if dof is None else np.broadcast_to(dof, len(means))
    for n, x in enumerate(X):
        seen = np.flatnonzero(~np.isnan(x))
        for k, (mean, cov) in enumerate(zip(means, full, strict=True)):
            if not len(seen):
                continue
            part = mean[seen], cov[np.ix_(seen, seen)]
            of = multivariate_normal(*part) if dof is None else multivariate_t(*part, df=dof[k])
            out[n, k] = of.logpdf(x[seen])
    return out


# Densities and responsibilities of what is observed.


@pytest.mark.parametrize("dof", [None, 3.5])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_densities_are_those_of_the_observed_features(covariance_type, dof):
    mixture, (weights, means, full) = given(dof, covariance_type)
    X = with_missing(3 * np.random.default_rng(2).normal(size=(60, 4)), 0.4)
    X[3] = NAN
    joint = log_densities(X, means, full, dof) + np.log(weights)
    values = logsumexp(joint, axis=1)
    assert_allclose(mixture.score_samples(X), values, rtol=1e-12, atol=1e-13)
    assert_allclose(mixture.predict_proba(X), np.exp(joint - values[:, None]), atol=1e-12)
    assert_array_equal(mixture.predict(X), joint.argmax(axis=1))
    assert_allclose(mixture.score(X, sample_weight=np.arange(60)),
                    np.average(values, weights=np.arange(60)), rtol=1e-12)  # fmt: skip
    penalty = mixture.n_parameters_ * np.log(60)
    assert_allclose(mixture.bic(X), penalty - 2 * values.sum(), rtol=1e-12)
    single = mixture.predict_proba(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, mixture.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("dof", [None, 0.7])
def test_one_row_has_the_density_that_mpmath_finds(dof):
    """Two of three features are observed, of matrices of a condition near 1e8."""
    cov = [[1.0, 0.9999, 0.5], [0.9999, 1.0, 0.5], [0.5, 0.5, 1e4]]
    mixture = mixture_of(dof, [1.0], [[1.0, 2.0, 3.0]], [cov])
    for x in ([0.5, NAN, -40.0], [0.5, 1.5003, NAN], [NAN, 2.5, NAN]):
        seen = [j for j in range(3) if not np.isnan(x[j])]
        with mpmath.workdps(40):
            part = mpmath.matrix([[mpmath.mpf(cov[i][j]) for j in seen] for i in seen])
            gap = mpmath.matrix([mpmath.mpf(x[j]) - (j + 1) for j in seen])
            squares = (gap.T * mpmath.inverse(part) * gap)[0]
            p, pi = len(seen), mpmath.pi
            if dof:
                nu = mpmath.mpf(dof)
                value = mpmath.loggamma((nu + p) / 2) - mpmath.loggamma(nu / 2)
                value -= p * mpmath.log(nu * pi) / 2 + (nu + p) / 2 * mpmath.log(1 + squares / nu)
            else:
                value = -squares / 2 - p * mpmath.log(2 * pi) / 2
            value = float(value - mpmath.log(mpmath.det(part)) / 2)
        assert_allclose(mixture.score_samples([x]), value, rtol=1e-11)


@pytest.mark.parametrize("dof", [None, 4.0])
def test_a_row_without_values_has_the_prior_weights(dof):
    bounds, empty = [[-5.0] * 4, [5.0] * 4], np.full((1, 4), NAN)
    box = {"background_weight": 0.1, "background_bounds": bounds}
    mixture, _ = given(dof, "full")
    assert_allclose(mixture.predict_proba(empty), [mixture.weights_], rtol=1e-13)
    assert_allclose(mixture.score_samples(empty), 0, atol=1e-13)
    _, (weights, means, full) = given(dof, "full")
    mixture = mixture_of(dof, 0.9 * weights, means, full, **box)
    assert_allclose(mixture.predict_proba(empty), [0.9 * weights], rtol=1e-13)
    row = np.array([[1.0, NAN, NAN, 2.0]])  # the box is uniform along two features
    joint = np.append(log_densities(row, means, full, dof)[0] + np.log(0.9 * weights),
                      np.log(0.1) - 2 * np.log(10))  # fmt: skip
    assert_allclose(mixture.score_samples(row), logsumexp(joint), rtol=1e-12)


# Fits, against what is known of them.


def slow_step(X, means, full, dof=None):
    """Return the mean and the matrix after a step of EM for one component (Little and Rubin)."""
    n, d = X.shape
    mean, cov = means[0], full[0]
    total, first, second = 0.0, np.zeros(d), np.zeros((d, d))
    for x in X:
        seen, gone = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        inverse = np.linalg.inv(cov[np.ix_(seen, seen)])
        gap = x[seen] - mean[seen]
        u = 1.0 if dof is None else (dof + len(seen)) / (dof + gap @ inverse @ gap)
        slopes = cov[np.ix_(gone, seen)] @ inverse
        filled = x.copy()
        filled[gone] = mean[gone] + slopes @ gap
        rest = np.zeros((d, d))
        rest[np.ix_(gone, gone)] = cov[np.ix_(gone, gone)] - slopes @ cov[np.ix_(seen, gone)]
        total += u
        first += u * filled
        second += u * np.outer(filled, filled) + rest
    mean = first / total
    return mean, (second - total * np.outer(mean, mean)) / (n if dof is None else total)


@pytest.mark.parametrize("dof", [None, 3.0])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_step_of_one_component_is_that_of_the_textbook(covariance_type, dof):
    """Little and Rubin, "Statistical analysis with missing data", section 11.2; PX-EM for t."""
    params = {"reg_covar": 0, "warm_start": True, "max_iter": 1, "tol": 1e9}
    mixture, (_, means, full) = given(dof, covariance_type, [1.0], **params)
    X = with_missing(np.random.default_rng(3).normal(size=(200, 4)) @ full[0], 0.3)
    X[np.isnan(X).all(axis=1)] = 1.0
    mean, cov = slow_step(X, means, full, dof)
    mixture.fit(X)
    assert_allclose(mixture.means_[0], mean, rtol=1e-11)
    assert_allclose(matrices(mixture), in_type(covariance_type, [cov], [1]), rtol=1e-11)


def test_two_patterns_have_the_closed_form():
    """Of two normal features the second is missing in some rows: the first is regressed on.

    Anderson, "Maximum likelihood estimates for a multivariate normal distribution when some
    observations are missing", Journal of the American Statistical Association 52, 1957.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ [[1.0, 0.7], [0.0, 0.5]] + [3.0, -2.0]
    X[180:, 1] = NAN
    a, b = X[:180].T
    slope = np.cov(a, b, bias=True)[0, 1] / a.var()
    mean = [X[:, 0].mean(), b.mean() + slope * (X[:, 0].mean() - a.mean())]
    variance, rest = X[:, 0].var(), b.var() - slope**2 * a.var()
    cov = [[variance, slope * variance], [slope * variance, rest + slope**2 * variance]]
    mixture = SparseGaussianMixture(
        missing_values="marginal", reg_covar=0, tol=1e-15, max_iter=1000, random_state=0
    ).fit(X)
    assert_allclose(mixture.means_[0], mean, rtol=1e-7)  # the bound is flat there
    assert_allclose(mixture.covariances_[0], cov, rtol=1e-7)
    assert_allclose(mixture.lower_bound_, mixture.score(X), rtol=1e-12)


@pytest.mark.parametrize("dof", ["estimated", "tied"])
def test_degrees_of_freedom_maximize_the_likelihood_of_what_is_observed(dof):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_t(3, size=(900, 3)), 20 + rng.standard_t(3, size=(600, 3))])
    X = with_missing(X, 0.4)
    mixture = StudentTMixture(
        2, degrees_of_freedom=dof, missing_values="marginal", tol=1e-12, max_iter=2000,
        reg_covar=0, random_state=0,
    ).fit(X)  # fmt: skip
    found = mixture.degrees_of_freedom_

    def score(factors):
        return StudentTMixture.from_parameters(
            mixture.weights_, mixture.means_, mixture.scale_matrices_, found * factors,
            missing_values="marginal",
        ).score(X)  # fmt: skip

    step = 1e-3
    for way in [np.ones(2)] if dof == "tied" else np.eye(2):
        up, down = score(1 + step * way), score(1 - step * way)
        curvature = (up + down - 2 * score(np.ones(2))) / step**2
        assert curvature < 0
        assert abs((up - down) / (2 * step) / curvature) < 1e-3  # of the degrees of freedom
    assert ((found > 2) & (found < 5)).all()
    assert_allclose(mixture.lower_bound_, mixture.score(X), rtol=1e-12)


@pytest.mark.bits
@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture], covariance_type=TYPES, background=[False, True]
)
def test_without_missing_values_the_fit_is_the_same(kind, covariance_type, background):
    X, _ = blobs(200, share=0)
    fits = [
        kind(3, covariance_type=covariance_type, background=background, random_state=0,
             max_iter=3, tol=0, missing_values=how).fit(X)
        for how in ("error", "marginal")
    ]  # fmt: skip
    assert_same_bits(*fits)


@pairwise(kind=[SparseGaussianMixture, StudentTMixture], covariance_type=TYPES)
def test_the_order_of_rows_does_not_matter(kind, covariance_type):
    X, y = blobs(200)
    order = np.random.default_rng(0).permutation(200)
    options = {"covariance_type": covariance_type, "missing_values": "marginal", "max_iter": 5,
               "tol": 0, "weight_concentration_prior": 1.0}  # fmt: skip
    fits = [kind(3, init_params=y[rows], **options).fit(X[rows]) for rows in (order, slice(None))]
    assert_allclose(fits[0].means_, fits[1].means_, rtol=1e-9)
    assert_allclose(fits[0].lower_bound_, fits[1].lower_bound_, rtol=1e-12)


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture],
    start=["merging", "kmeans", "k-means++", "random_from_data"],
    dtype=[np.float32, np.float64],
)
def test_starts_find_clusters(kind, start, dtype):
    X, y = blobs(share=0.2)
    options = {"missing_values": "marginal", "init_params": start, "random_state": 0}
    mixture = kind(3, n_init=3, tol=1e-4, max_iter=500, **options).fit(X.astype(dtype))
    assert adjusted_rand_score(y, mixture.labels_) > 0.8


@pytest.mark.parametrize("kind", PLANE)
def test_streams_take_batches_with_missing_values(kind):
    X, y = blobs(1800, share=0.2)
    mixture = kind(3, missing_values="marginal", random_state=0)
    X[300:600, 0] = NAN  # a batch may lack a feature, though not the first
    for batch in np.split(X, 6):
        mixture.partial_fit(batch)
    assert adjusted_rand_score(y, mixture.predict(X)) > 0.8
    assert np.isfinite(mixture.means_).all()


def test_known_labels_paths_and_pickles_have_missing_values():
    X, y = blobs(share=0.2)
    mixture = SparseGaussianMixture(3, missing_values="marginal", random_state=0)
    known = np.where(np.arange(600) % 5 == 0, y, -1)
    mixture.fit(X, known_labels=known)
    assert np.mean(mixture.labels_ == y) > 0.9
    again = pickle.loads(pickle.dumps(mixture))
    assert_array_equal(again.predict_proba(X), mixture.predict_proba(X))
    path = ComponentPath(clone(mixture), max_components=8, criterion="icl").fit(X)
    assert path.best_n_components_ == 3


def test_an_empty_component_moves_to_a_row_with_missing_values():
    X, _ = blobs()
    X[5] = [1e3, NAN, NAN, -1e3]
    far = np.vstack([np.nanmean(X, axis=0), np.full(4, 1e6)])
    mixture = SparseGaussianMixture(2, means_init=far, missing_values="marginal").fit(X)
    assert np.isfinite(mixture.means_).all()


# Imputation, marginal and conditional mixtures.


@pytest.mark.parametrize("dof", [None, 5.0])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_imputed_values_are_conditional_means(covariance_type, dof):
    mixture, _ = given(dof, covariance_type)
    X = with_missing(3 * np.random.default_rng(2).normal(size=(40, 4)), 0.4)
    X[3], X[4] = NAN, 1.0
    filled = mixture.impute(X)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    assert_allclose(filled[3], mixture.weights_ @ mixture.means_, rtol=1e-12)
    for x, own in zip(X, filled, strict=True):
        features = np.flatnonzero(~np.isnan(x))
        if 0 < len(features) < 4:
            part = mixture.condition(features, x[features])
            assert_allclose(own[np.isnan(x)], part.weights_ @ part.means_, rtol=1e-10, atol=1e-12)
    assert mixture.impute(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dof", [None, 2.5])
@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("background", [False, True])
def test_conditional_densities_are_ratios(covariance_type, dof, background):
    mixture, (weights, _, _) = given(dof, covariance_type)
    if background:
        box = {"background_weight": 0.2, "background_bounds": [[-4.0] * 4, [5.0] * 4]}
        mixture, _ = given(dof, covariance_type, 0.8 * weights, **box)
    part, rest = mixture.marginal([2, 0]), mixture.condition([2, 0], [1.0, -1.5])
    assert type(part) is type(rest) is type(mixture)
    X = np.random.default_rng(4).normal(size=(9, 4))
    X[:, [2, 0]] = [1.0, -1.5]
    ratios = mixture.score_samples(X) - part.score_samples([[1.0, -1.5]])
    assert_allclose(rest.score_samples(X[:, [1, 3]]), ratios, rtol=1e-11, atol=1e-12)
    if dof is not None:
        assert_array_equal(rest.degrees_of_freedom_, dof + 2)


def test_weights_given_some_features_are_exact_however_small():
    """An E-step takes responsibilities of less than e^-60 for zero; other values need them."""
    mixture = SparseGaussianMixture.from_parameters([0.5, 0.5], [[0, 0], [20, 0]], [np.eye(2)] * 2)
    weights = mixture.condition([0], [0.0]).weights_
    assert_allclose(weights, [1, np.exp(-200)], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_masked_values_are_missing_values(dtype):
    X, _ = blobs(share=0.0)
    X = (100 * X).astype(dtype)
    missing = np.random.default_rng(0).random(X.shape) < 0.1
    masked = np.ma.masked_array(X, mask=missing)
    mixture = SparseGaussianMixture(3, missing_values="marginal", random_state=0)
    fitted = clone(mixture).fit(masked)
    as_floats = X.astype(np.result_type(dtype, np.float32))
    other = clone(mixture).fit(np.where(missing, NAN, as_floats).astype(as_floats.dtype))
    assert_allclose(fitted.means_, other.means_, rtol=1e-6)
    assert_allclose(fitted.score(masked), other.score(masked), rtol=1e-6)
    with pytest.raises(ValueError, match=r"of its values are masked.*missing_values='marginal'"):
        SparseGaussianMixture(3).fit(masked)
    nothing_masked = np.ma.masked_array(X, mask=False)
    plain = SparseGaussianMixture(3, random_state=0)
    assert_array_equal(plain.fit(nothing_masked).means_, clone(plain).fit(X).means_)


def test_features_have_names_and_components_keep_their_numbers():
    pandas = pytest.importorskip("pandas")
    X, _ = blobs(share=0.1)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    mixture = RelativeGMM(3, missing_values="marginal", random_state=0).fit(frame)
    part = mixture.marginal(["c", "b"])
    assert type(part) is SparseGaussianMixture
    assert part.feature_names_in_.tolist() == ["c", "b"]
    assert_array_equal(part.means_, mixture.means_[:, [2, 1]])
    rest = mixture.condition(["b"], [0.5])
    assert rest.feature_names_in_.tolist() == ["a", "c", "d"]
    for features in (["x"], [0, 0], [4], [], 1, [0.5]):
        with pytest.raises(ValueError, match="features should be distinct"):
            mixture.marginal(features)
    for features, values in (([0, 1], [1.0]), ([0], [NAN]), ([0, 1, 2, 3], [0.0] * 4)):
        with pytest.raises(ValueError, match="values should be finite, one for each"):
            mixture.condition(features, values)


# Predictions of features.


def conditional_quantile(part, level):
    """The quantile of a one-dimensional mixture by a root of its distribution function."""
    if isinstance(part, StudentTMixture):
        scales = np.sqrt(part.scale_matrices_.ravel())
        kinds = [t(dof) for dof in part.degrees_of_freedom_]
    else:
        scales, kinds = np.sqrt(part.covariances_.ravel()), [norm] * len(part.means_)
    scales = np.broadcast_to(scales, len(part.means_))

    def above(value):
        of_components = [
            kind.cdf((value - mean) / scale)
            for kind, mean, scale in zip(kinds, part.means_[:, 0], scales, strict=True)
        ]
        return part.weights_ @ of_components - level

    return brentq(above, -1e4, 1e4, xtol=1e-12)


@pytest.mark.parametrize("dof", [None, 3.5])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_predicted_features_are_those_of_the_conditional_mixtures(covariance_type, dof):
    mixture, _ = given(dof, covariance_type)
    X = with_missing(3 * np.random.default_rng(3).normal(size=(30, 2)), 0.3)
    X[:5] = [[0.5, -0.5], [NAN, 1.0], [2.0, NAN], [NAN, NAN], [40.0, -40.0]]
    levels = [0.05, 0.5, 0.99]
    prediction = mixture.predict_features([3, 1], X, quantiles=levels)
    assert prediction.mean.shape == prediction.variance.shape == (30, 2)
    assert prediction.quantiles.shape == (30, 2, 3)
    for n, x in enumerate(X):
        seen = ~np.isnan(x)
        part = mixture
        if seen.any():
            part = mixture.condition(np.array([0, 2])[seen], x[seen])
        unknown = np.delete(np.arange(4), np.array([0, 2])[seen])
        for j, feature in enumerate([3, 1]):
            one = part.marginal([unknown.tolist().index(feature)])
            mean = one.weights_ @ one.means_[:, 0]
            assert_allclose(prediction.mean[n, j], mean, rtol=1e-10, atol=1e-12)
            expected = [conditional_quantile(one, level) for level in levels]
            assert_allclose(prediction.quantiles[n, j], expected, rtol=1e-8, atol=1e-9)
            if dof is None:
                spread = np.broadcast_to(one.covariances_.ravel(), len(one.means_))
            else:
                factor = one.degrees_of_freedom_ / (one.degrees_of_freedom_ - 2)
                spread = one.scale_matrices_.ravel() * factor
            variance = one.weights_ @ (spread + (one.means_[:, 0] - mean) ** 2)
            assert_allclose(prediction.variance[n, j], variance, rtol=1e-9)


def test_a_mixture_of_predictors_and_a_target_is_a_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    y = x @ [2.0, -1.0] + 0.5 + rng.normal(scale=0.3, size=2000)
    joint = SparseGaussianMixture(1, reg_covar=0).fit(np.column_stack([y, x]))
    prediction = joint.predict_features([0], x, quantiles=[0.05, 0.95])
    linear = LinearRegression().fit(x, y)
    assert_allclose(prediction.mean[:, 0], linear.predict(x), rtol=1e-6, atol=1e-8)
    low, high = prediction.quantiles[:, 0].T
    assert 0.88 < np.mean((low < y) & (y < high)) < 0.92


def test_student_t_components_without_a_variance_say_so():
    mixture, _ = given(1.0, "full", missing_values="marginal")
    prediction = mixture.predict_features([0], [[NAN, NAN, NAN], [0.0, 1.0, 2.0]])
    assert_array_equal(np.isinf(prediction.variance), [[True], [False]])
    assert prediction.quantiles.shape == (2, 1, 0)


def test_predicted_features_have_names_dtypes_and_errors():
    pandas = pytest.importorskip("pandas")
    X, _ = blobs(share=0.0)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    mixture = SparseGaussianMixture(2, random_state=0, background=True).fit(frame)
    prediction = mixture.predict_features(["b"], frame[["a", "c", "d"]], quantiles=[0.5])
    with pytest.raises(ValueError, match="feature names should match"):
        mixture.predict_features(["b"], frame[["a", "d", "c"]])

    mixture = clone(mixture).fit(X)
    other = mixture.predict_features([1], da.from_array(X[:, [0, 2, 3]]), quantiles=[0.5])
    for name, values in prediction.items():
        assert_array_equal(values, other[name])
        assert np.isfinite(values).all()
    narrow = mixture.predict_features([1], X[:, [0, 2, 3]].astype(np.float32))
    assert narrow.mean.dtype == narrow.variance.dtype == np.float32
    assert_allclose(narrow.mean, prediction.mean, rtol=1e-3, atol=1e-3)
    far = mixture.predict_features([1], [[1e200, -1e200, 1e200]], quantiles=[0.1])
    assert all(np.isfinite(values).all() for values in far.values())
    with pytest.raises(ValueError, match="3 features as input"):
        mixture.predict_features([1], X[:, :2])
    with pytest.raises(ValueError, match=r"other 3 features, and has all 4: .*to predict, \[1\]"):
        mixture.predict_features([1], X)
    with pytest.raises(ValueError, match="fewer than all 4"):
        mixture.predict_features([0, 1, 2, 3], X[:, :0])
    with pytest.raises(ValueError, match="levels between 0 and 1"):
        mixture.predict_features([1], X[:, 1:], quantiles=[1.0])
    with pytest.raises(ValueError, match="NaN"):
        mixture.predict_features([1], [[NAN, 0.0, 0.0]])


def test_many_rows_of_values_give_many_conditional_mixtures():
    mixture, _ = given(None, "full")
    values = np.random.default_rng(0).normal(size=(5, 2))
    parts = mixture.condition([2, 0], values)
    assert len(parts) == 5
    for part, row in zip(parts, values, strict=True):
        one = mixture.condition([2, 0], row)
        assert_array_equal(part.means_, one.means_)
        assert_array_equal(part.weights_, one.weights_)


# What is refused.


def test_what_cannot_be_used_is_refused():
    X, _ = blobs()
    with pytest.raises(ValueError, match=r"NaN.*row.*, column.*set missing_values='marginal'"):
        SparseGaussianMixture(3).fit(X)
    mixture = SparseGaussianMixture(3, missing_values="marginal")
    with pytest.raises(ValueError, match=r"needs rows of floats: X is of int64, which has no NaN"):
        mixture.fit(np.arange(600).reshape(100, 6))
    X[7, 1] = np.inf
    with pytest.raises(ValueError, match="infinity or a value too large for float64, in row 7"):
        mixture.fit(X)
    X[:, 1] = NAN
    with pytest.raises(ValueError, match=r"No row has a value of the features \[1\]"):
        mixture.fit(X)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"No row has a value of the features \['b'\]"):
        mixture.fit(pandas.DataFrame(X, columns=list("abcd")))
    with pytest.raises(TypeError, match="impute values of directions first"):
        VonMisesFisherMixture(3, missing_values="marginal")
    assert not hasattr(mixture, "weights_")


def test_values_that_are_filled_are_finite_at_any_magnitude():
    """What a regression says far outside the data may be beyond the floats of the rows."""
    rng, limit = np.random.default_rng(0), np.finfo(np.float32).max
    X = rng.normal(size=(12, 5)) * 10.0 ** rng.integers(-99, 99, (12, 1))
    X = np.clip(X, -limit, limit).astype(np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    mixture = StudentTMixture(missing_values="marginal").fit(X)
    assert np.isfinite(mixture.impute(X)).all()
    assert np.isfinite(mixture.score_samples(X)).all()
    assert np.isfinite(mixture.lower_bounds_).all()


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_start_whose_background_has_every_row(kind, method):
    rng = np.random.default_rng(30)
    X = rng.normal(size=(40, 2)) * 10.0 ** rng.integers(-99, 99, (40, 1))
    X[np.random.default_rng(30).random(X.shape) < 0.5] = np.nan
    mixture = kind(background=True, missing_values="marginal", random_state=0)
    getattr(mixture, method)(X)
    assert mixture.weights_.sum() + mixture.background_weight_ == pytest.approx(1)
    assert np.isfinite(mixture.score(X))


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
def test_rows_without_a_weight_do_not_change_the_start(kind):
    """Values are filled up to the largest one: of those that count."""
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=60), 5.0)
    X = np.column_stack([x, 3 * x + 0.1 * rng.normal(size=61)])
    X[-1, 1] = np.nan
    mixture = kind(1, missing_values="marginal", init_params=np.zeros(61, dtype=int), max_iter=2)
    bounds = mixture.fit(X).lower_bounds_
    mixture.set_params(init_params=np.zeros(62, dtype=int))
    mixture.fit(np.vstack([X, [50.0, 50.0]]), sample_weight=np.append(np.ones(61), 0.0))
    assert_allclose(mixture.lower_bounds_, bounds, rtol=1e-12)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
def test_the_best_of_several_starts_is_that_of_the_rows_as_they_are(kind, background, monkeypatch):
    """Also of starts among rows that are filled."""
    chosen = []
    best_of = sample.best_of

    def noted(starts, rescored=None):
        best = best_of(starts, rescored)
        if rescored is None:  # then each has been
            assert len(starts) == 1 or all(start.after is not None for start in starts)
        elif len(starts) > 1:
            bounds = [rescored(start).bound for start in starts]
            assert rescored(best).bound >= max(bounds) - 1e-6 * max(1, abs(max(bounds)))
            chosen.append(bounds)
        return best

    for module in (starts, merging_start, beside_background):
        monkeypatch.setattr(module, "best_of", noted)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(0, 5, (4, 5)), 40, axis=0) + rng.normal(size=(160, 5))
    X[rng.random(X.shape) < 0.3] = np.nan
    kind(4, background=background, missing_values="marginal", n_init=2, random_state=0).fit(X)
    assert len(chosen) > 0
