"""A background: rows of no component, whatever the family, posterior and prior."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score

from skvmf import (
    FisherVectorTransformer,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.distributions import vonmises_fisher as vmf

from ..pairwise import pairwise
from .kinds import MIXTURES, matrices, parameters_of

K = 3
CENTRES = np.array([[6.0, 0, 0], [0, 6, 0], [0, 0, 6]])
POSTERIORS = [(1, 1), (1, 0), (1, 0.5), (1.5, 1), (2, 3), (2, 0)]


def data(n=300, n_others=150, seed=0):
    """Rows of three clusters, then uniform ones; and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % K
    others = rng.uniform(-9, 9, size=(n_others, 3))
    X = np.vstack([CENTRES[labels] + 0.5 * rng.normal(size=(n, 3)), others])
    return X, np.append(labels, np.full(n_others, -1))


def new(mixture, **params):
    special = {
        StudentTMixture: {"degrees_of_freedom": 5.0},
        SparseGaussianMixture: {"weight_concentration_prior": 1.0},
        VonMisesFisherMixture: {"concentration_prior": 0},  # else bounds depend on the start
    }.get(mixture, {})
    return mixture(
        **({"n_components": K, "background": True, "random_state": 0} | special | params)
    )


def log_densities(mixture, X):
    """Log-densities (n, K + 1) of components and background, by SciPy."""
    if isinstance(mixture, VonMisesFisherMixture):
        units = X / np.linalg.norm(X, axis=1, keepdims=True)
        components = zip(mixture.mean_directions_, mixture.concentrations_, strict=True)
        columns = [vmf.logpdf(units, *parameters) for parameters in components]
        last = -vmf.log_sphere_area(3)
    else:
        t = isinstance(mixture, StudentTMixture)
        law = partial(multivariate_t, df=5) if t else multivariate_normal
        components = zip(mixture.means_, matrices(mixture), strict=True)
        columns = [law(*parameters).logpdf(X) for parameters in components]
        last = -np.log(np.diff(mixture.background_bounds_, axis=0)).sum()
    return np.column_stack([*columns, np.full(len(X), last)])


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_density_is_that_of_components_and_background(mixture):
    X, _ = data()
    fit = new(mixture).fit(X)
    far = np.vstack([X, 100 * X])  # also outside the box
    weights = np.append(fit.weights_, fit.background_weight_)
    joint = np.log(weights) + log_densities(fit, far)
    assert_allclose(fit.score_samples(far), logsumexp(joint, axis=1), rtol=1e-8, atol=1e-8)
    assert_allclose(fit.score(X), logsumexp(joint[: len(X)], axis=1).mean(), rtol=1e-8)
    resp = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    assert_allclose(fit.predict_proba(far), resp[:, :K], atol=1e-8)
    chosen = resp.argmax(axis=1)
    assert_array_equal(fit.predict(far), np.where(chosen == K, -1, chosen))
    plain = clone(fit).set_params(background=False).fit(X)
    extra = (fit.aic(X) + 2 * len(X) * fit.score(X)) - (plain.aic(X) + 2 * len(X) * plain.score(X))
    assert_allclose(extra, 2)  # a weight more


@pairwise(mixture=MIXTURES, posterior=POSTERIORS, background=[False, True])
def test_shares_and_labels_agree(mixture, posterior, background):
    X, labels = data()
    alpha, temperature = posterior
    options = {"entmax_alpha": alpha, "temperature": temperature, "background": background}
    start = labels if background else labels % K
    fit = new(mixture, init_params=start, max_iter=10, **options).fit(X)
    resp = fit.predict_proba(X)
    others = 1 - resp.sum(axis=1)
    assert resp.shape == (len(X), K)
    assert resp.min() >= 0
    assert others.min() >= -1e-12
    assert background or others.max() <= 1e-12
    assert_allclose(fit.weights_.sum() + fit.background_weight_, 1)
    responsibilities = np.column_stack([resp, others])
    labels = np.where(fit.labels_ < 0, K, fit.labels_)
    largest = np.take_along_axis(responsibilities, labels[:, None], axis=1)[:, 0]
    assert_allclose(largest, responsibilities.max(axis=1), atol=1e-9)
    assert_array_equal(fit.predict(X), fit.labels_)
    stored = fit.responsibilities(X)
    assert_array_equal(stored.toarray(), resp)
    assert stored.nnz == np.count_nonzero(resp)
    assert stored.indices.dtype == stored.indptr.dtype == np.int32  # some refuse 64 bits
    assert_allclose(fit.probabilities_, np.where(fit.labels_ < 0, 0, largest), atol=1e-12)
    assert set(fit.labels_) == {*range(-background, K)}


def test_the_prior_on_the_background_is_flat():
    """A strong prior holds the weights of components, and leaves the data theirs together."""
    X, _ = data(300, 300)
    prior = 1 + 1e8 * np.array([0.5, 0.3, 0.2])
    held = new(SparseGaussianMixture, weight_concentration_prior=prior, max_iter=1).fit(X)
    assert_allclose(held.weights_, [0.5, 0.3, 0.2], atol=1e-4)
    emptied = new(SparseGaussianMixture, weight_concentration_prior=-1000.0)
    with pytest.warns(UserWarning, match="component holds 10[0-9]"):  # no background
        emptied.fit(X)
    assert emptied.n_active_components_ == emptied.effective_n_components_ == 0
    assert emptied.background_weight_ == 1
    assert set(emptied.labels_) == {-1}


@pairwise(mixture=MIXTURES, share=[0.05, 0.5], dtype=[np.float32, np.float64])
def test_the_share_of_uniform_rows_is_found(mixture, share, dtype):
    n = 2000
    rng = np.random.default_rng(1)
    X, labels = data(n, round(n * share / (1 - share)))
    if mixture is VonMisesFisherMixture:
        X[n:] = rng.normal(size=(len(X) - n, 3))
    clean = clone(new(mixture)).set_params(background=False).fit(X[:n].astype(dtype))
    fit = new(mixture).fit(X.astype(dtype))
    assert abs(fit.background_weight_ - share) < 0.02
    largest = fit.predict_proba(X[:n].astype(dtype)).argmax(axis=1)
    assert adjusted_rand_score(labels[:n], largest) > (
        adjusted_rand_score(labels[:n], clean.labels_) - 0.01
    )


@pytest.mark.parametrize("mixture", MIXTURES)
def test_every_start_goes_with_a_background(mixture):
    X, labels = data(300, 50)
    oracle = new(mixture, init_params=labels, tol=1e-6, max_iter=300).fit(X)
    for init_params in ("kmeans", "k-means++", "random_from_data", "merging"):
        fit = new(mixture, init_params=init_params, n_init=5, tol=1e-6, max_iter=300).fit(X)
        assert_allclose(fit.lower_bound_, oracle.lower_bound_, atol=1e-3)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (np.asarray, {}),
        (sparse.csr_array, {"temperature": 0}),
        (lambda X: da.from_array(X, chunks=(100, 3)), {"entmax_alpha": 2.0}),
    ],
)
def test_rows_without_a_direction_belong_to_the_background(form, options):
    X, _ = data()
    blank = np.arange(len(X)) % 50 == 0
    X[blank] = 0
    fit = new(VonMisesFisherMixture, **options).fit(form(X))
    labels, probabilities = np.asarray(fit.labels_), np.asarray(fit.probabilities_)
    assert set(labels[blank]) == {-1}
    assert not probabilities[blank].any()
    assert (labels[~blank] >= 0).any()
    assert_array_equal(np.asarray(fit.predict(form(X))), labels)
    assert_array_equal(new(VonMisesFisherMixture, **options).fit_predict(form(X)), labels)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_samples_are_of_components_and_background(mixture):
    X, _ = data()
    fit = new(mixture).fit(X)
    drawn, labels = fit.sample(20_000)
    assert_allclose(np.mean(labels == -1), fit.background_weight_, atol=0.02)
    assert_array_equal(labels[-1:], -1)
    others = drawn[labels == -1]
    if mixture is VonMisesFisherMixture:
        assert_allclose(others.T @ others / len(others), np.eye(3) / 3, atol=0.02)
    else:
        low, high = fit.background_bounds_
        assert (others >= low).all()
        assert (others <= high).all()
        assert_allclose(others.mean(axis=0), (low + high) / 2, atol=0.5)
    again = clone(fit).set_params(init_params=labels).fit(drawn)
    assert_allclose(again.background_weight_, fit.background_weight_, atol=0.03)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_mixture_of_given_parameters(mixture):
    X, _ = data()
    fit = new(mixture).fit(X)
    given = fit.get_params() | parameters_of(fit)
    del given["background"]
    built = mixture.from_parameters(**given)
    assert built.background
    assert built.background_weight_ == pytest.approx(fit.background_weight_)
    assert_allclose(built.score_samples(X), fit.score_samples(X), rtol=1e-9)
    assert_array_equal(built.predict(X), fit.labels_)
    went_on = built.set_params(warm_start=True, max_iter=0).fit(X)
    assert_allclose(went_on.lower_bound_, fit.lower_bound_, rtol=1e-9)

    all_weights = fit.weights_ / fit.weights_.sum()
    for others, message in [
        ({"background_weight": 0.9999}, "together should be non-negative and sum"),
        ({"background_weight": [0.1]}, "background_weight be a number"),
        ({"weights": all_weights, "background_weight": 0.1}, "together should be"),
        ({"background": False}, "contradicts background_weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            mixture.from_parameters(**given | others)
    if mixture is not VonMisesFisherMixture:
        low, high = fit.background_bounds_
        for bounds, message in [
            (None, "needs background_bounds"),
            ([low], "shape"),
            ([high, low], "no width"),
            ([low, high * np.inf], "finite"),
        ]:
            with pytest.raises(ValueError, match=message):
                mixture.from_parameters(**given | {"background_bounds": bounds})


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_fit_goes_on_with_and_without(mixture):
    X, _ = data()
    fit = new(mixture, warm_start=True).fit(X)
    n_iter, bound = fit.n_iter_, fit.lower_bound_
    assert n_iter > 0
    assert fit.fit(X).n_iter_ <= 1
    assert fit.lower_bound_ >= bound - 1e-9
    without = fit.set_params(background=False).fit(X)
    assert without.background_weight_ == 0
    assert -1 not in without.labels_
    assert_allclose(without.weights_.sum(), 1)
    assert without.predict_proba(X).sum(axis=1) == pytest.approx(1)
    with_it = without.set_params(background=True, tol=1e-6, max_iter=500).fit(X)
    assert with_it.background_weight_ > 0.2
    assert -1 in with_it.labels_


def test_a_background_without_weight_changes_nothing():
    X, labels = data()
    plain = SparseGaussianMixture(K, init_params=labels % K, max_iter=3, tol=0).fit(X)
    built = SparseGaussianMixture.from_parameters(
        plain.weights_,
        plain.means_,
        plain.covariances_,
        background=True,
        background_weight=0.0,
        background_bounds=[X.min(axis=0), X.max(axis=0)],
        warm_start=True,
        max_iter=3,
        tol=0,
    )
    assert_allclose(built.score_samples(X), plain.score_samples(X), rtol=1e-12)
    assert_allclose(built.bic(X), plain.bic(X), rtol=1e-12)  # it is pruned, and no parameter
    plain.set_params(warm_start=True).fit(X)
    assert_allclose(built.fit(X).means_, plain.means_, rtol=1e-9)
    assert built.background_weight_ == 0


def test_no_steps_and_few_rows():
    X, labels = data(30, 10)
    for options in ({"max_iter": 0}, {"max_iter": 0, "init_params": labels}, {}):
        for mixture in MIXTURES:
            fit = new(mixture, **options).fit(X)
            assert 0 < fit.background_weight_ < 1
            assert_allclose(fit.weights_.sum() + fit.background_weight_, 1)
    given = new(SparseGaussianMixture, max_iter=0, init_params=labels).fit(X)
    assert_allclose(given.background_weight_, 0.25)  # ten of forty
    for rows in (np.ones((4, 2)), np.repeat([[1.0, 2.0]], 9, axis=0), np.eye(5)):
        for mixture in MIXTURES:
            fit = new(mixture, n_components=2).fit(rows)
            assert np.isfinite(fit.score_samples(rows)).all()
            assert np.isfinite(fit.predict_proba(rows)).all()
            assert set(fit.labels_) <= {-1, 0, 1}


def test_labels_of_the_background_are_no_start_without_one():
    X, labels = data()
    with pytest.raises(ValueError, match="labels from 0 to 2"):
        SparseGaussianMixture(K, init_params=labels).fit(X)
    with pytest.raises(ValueError, match="labels from -1 to 2"):
        new(SparseGaussianMixture, init_params=labels - 1).fit(X)
    with pytest.raises(ValueError, match="labels from -1 to 2"):
        new(SparseGaussianMixture, init_params=np.full(len(X), -1)).fit(X)
    start = new(SparseGaussianMixture, weights_init=[0.5, 0.3, 0.2], init_params=labels)
    fit = start.set_params(max_iter=0).fit(X)
    assert_allclose(fit.weights_, 2 / 3 * np.array([0.5, 0.3, 0.2]))


@pytest.mark.parametrize("gradients", [("means",), ("weights",), ("means", "weights")])
def test_fisher_vectors_are_of_the_components(gradients):
    """Outliers count nothing: a bag is what components have of it."""
    responsibilities = {"background_weight": 0.5, "background_bounds": [[-9.0] * 3, [9.0] * 3]}
    covariances = np.full((K, 3), 0.25)
    with_it = SparseGaussianMixture.from_parameters(
        [0.1, 0.2, 0.2], CENTRES, covariances, covariance_type="diag", **responsibilities
    )
    alone = SparseGaussianMixture.from_parameters(
        [0.2, 0.4, 0.4], CENTRES, covariances, covariance_type="diag"
    )
    table = np.vstack([CENTRES + 0.1, [[-9.0, -9.0, -9.0]]])
    bags = np.array([[1, 2, 0, 0], [1, 2, 0, 5], [0, 0, 0, 1]])

    def vectors(mixture):
        encoder = FisherVectorTransformer(
            FrozenEstimator(mixture), embeddings=table, gradients=gradients
        )
        return encoder.fit(bags).transform(bags)

    result = vectors(with_it)
    assert np.isfinite(result).all()
    assert_allclose(result[0], vectors(alone)[0], atol=1e-3)
    assert_allclose(result[1], result[0], atol=1e-3)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_background_may_have_every_row(mixture):
    """One row of weight, far from the one component: steps of empty components change nothing."""
    X = data()[0]
    weights = np.zeros(len(X))
    weights[0] = 1e9
    fitted = new(mixture, n_components=1, means_init=-X[:1]).fit(X, sample_weight=weights)
    assert np.isfinite(fitted.lower_bound_)
    assert np.isfinite(fitted.means_).all()
    assert_allclose(fitted.weights_.sum() + fitted.background_weight_, 1, rtol=1e-12)


def test_the_box_holds_what_counts_and_has_a_volume_where_features_are_constant():
    X, weights = data()[0], np.ones(450)
    X[:, 2] = 5.0
    weights[np.abs(X).max(axis=1) > 8] = 0
    fit = new(SparseGaussianMixture, reg_covar=0.01).fit(X, sample_weight=weights)
    low, high = fit.background_bounds_
    counted = X[weights > 0, :2]
    assert_array_equal([low[:2], high[:2]], [counted.min(axis=0), counted.max(axis=0)])
    assert_allclose((high - low)[2] ** 2 / 12, 0.01)  # as of a uniform variable
    assert_allclose((high + low)[2] / 2, 5)
