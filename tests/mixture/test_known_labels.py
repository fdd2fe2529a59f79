"""Rows whose component is known: oracles, what they leave alone, and what is refused."""

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..pairwise import pairwise
from .checks import assert_bound_never_falls, assert_same_bits

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
FAMILIES = {
    "gaussian": SparseGaussianMixture,
    "student": StudentTMixture,
    "directions": VonMisesFisherMixture,
}
POSTERIORS = {
    "soft": {},
    "hard": {"temperature": 0},
    "softer": {"temperature": 2.0},
    "sparse": {"entmax_alpha": 1.5},
    "background": {"background": True},
}


DEFAULTS = {"random_state": 0, "tol": 1e-6, "max_iter": 300, "weight_concentration_prior": 1}


def few_known(labels=Y, n_each=4, seed=0):
    """Labels of a few rows of each class, -1 for all others."""
    rng, known = np.random.default_rng(seed), np.full(len(labels), -1)
    for k in np.unique(labels):
        rows = rng.choice(np.flatnonzero(labels == k), n_each, replace=False)
        known[rows] = k
    return known


def new(family="gaussian", **params):
    return FAMILIES[family](3, **DEFAULTS | params)


# All labels known: one step of maximum likelihood.


@pytest.mark.parametrize(
    ("kind", "oracle"),
    [("full", QuadraticDiscriminantAnalysis()), ("tied", LinearDiscriminantAnalysis())],
)
def test_all_labels_known_are_discriminant_analysis(kind, oracle):
    mixture = new(covariance_type=kind, reg_covar=0).fit(X, known_labels=Y)
    step = new(covariance_type=kind, reg_covar=0, max_iter=1).fit(X, known_labels=Y)
    assert step.lower_bound_ == pytest.approx(mixture.lower_bound_, rel=1e-12)
    oracle.fit(X, Y)
    np.testing.assert_array_equal(mixture.predict(X), oracle.predict(X))
    np.testing.assert_allclose(mixture.weights_, oracle.priors_, rtol=1e-12)
    np.testing.assert_allclose(mixture.means_, oracle.means_, atol=1e-12)
    classes = [X[Y == k].T for k in range(3)] if kind == "full" else [(X - oracle.means_[Y]).T]
    covariances = [np.cov(rows, bias=True) for rows in classes]  # the oracle's divisors differ
    found = np.reshape(mixture.covariances_, np.shape(covariances))
    np.testing.assert_allclose(found, covariances, rtol=1e-9, atol=1e-12)


def test_all_labels_known_give_the_mean_directions():
    mixture = new("directions").fit(X, known_labels=Y)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    sums = np.stack([units[k == Y].sum(axis=0) for k in range(3)])
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(mixture.mean_directions_, means, atol=1e-12)


def test_a_known_row_counts_with_the_joint_density_of_its_component():
    known = few_known()
    mixture = new().fit(X, known_labels=known)
    normals = map(multivariate_normal, mixture.means_, mixture.covariances_)
    log_joint = np.stack([each.logpdf(X) for each in normals], axis=1) + np.log(mixture.weights_)
    unknown = logsumexp(log_joint, axis=1)
    values = np.where(known < 0, unknown, log_joint[np.arange(len(X)), known])
    assert mixture.lower_bound_ == pytest.approx(values.mean(), rel=1e-9)


# No label known, and in-between.


@pytest.mark.parametrize("family", FAMILIES)
def test_no_label_known_is_the_fit_without(family):
    first, second = new(family).fit(X), new(family).fit(X, known_labels=np.full(len(X), -1))
    assert_same_bits(first, second)


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_component_k_is_class_k_and_the_bound_never_falls(family, posterior):
    labels = np.array([2, 0, 1])[Y]
    mixture = new(family, **POSTERIORS[posterior]).fit(X, known_labels=few_known(labels))
    assert_bound_never_falls(mixture)
    assert (mixture.labels_ == labels).mean() > 0.8


@pairwise(family=FAMILIES, missing=range(3), init_params=["merging", "kmeans"])
def test_a_class_without_known_rows_is_found_among_the_others(family, missing, init_params):
    known = few_known()
    known[known == missing] = -1
    mixture = new(family, init_params=init_params, n_init=3).fit(X, known_labels=known)
    assert (mixture.labels_ == Y).mean() > 0.8


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_repeated_rows_in_any_order(family):
    known, weights = few_known(), np.arange(len(X)) % 3
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), weights))
    first = new(family).fit(X, sample_weight=weights, known_labels=known)
    second = new(family).fit(X[rows], known_labels=known[rows])
    np.testing.assert_allclose(first.means_, second.means_, atol=1e-6)


def test_predictions_are_free_of_known_labels():
    wrong = np.where(np.arange(len(Y)) < 5, 2, few_known())  # rows of class 0
    mixture = new().fit(X, known_labels=wrong)
    assert 0 in mixture.predict(X[:5])
    np.testing.assert_array_equal(mixture.labels_, mixture.predict(X))
    np.testing.assert_array_equal(mixture.labels_, new().fit_predict(X, known_labels=wrong))


def test_sparse_rows_and_dask_arrays_agree_with_rows_in_memory():
    known = few_known()
    first = new("directions").fit(X, known_labels=known)
    second = new("directions").fit(sparse.csr_array(X), known_labels=known)
    np.testing.assert_allclose(first.means_, second.means_, atol=1e-9)
    for labels in (known, da.from_array(known, chunks=30)):
        lazy = new("directions").fit(da.from_array(X, chunks=(50, -1)), known_labels=labels)
        np.testing.assert_array_equal(lazy.means_, first.means_)


def test_a_known_outlier_is_of_the_background():
    outliers = np.random.default_rng(0).normal(0, 1, (40, X.shape[1]))
    rows = np.vstack([X, outliers])
    known = np.append(few_known(), np.full(40, -2))
    mixture = new(covariance_type="diag", background=True).fit(rows, known_labels=known)
    assert mixture.background_weight_ >= 40 / len(rows)
    assert_bound_never_falls(mixture)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_known_outliers_alone_leave_components_to_be_found(family, method):
    known = np.full(len(X), -1)
    known[:5] = -2
    mixture = new(family, background=True, random_state=0)
    mixture = getattr(mixture, method)(X, known_labels=known)
    assert np.isfinite(mixture.means_).all()
    assert mixture.background_weight_ >= 0.9 * 5 / len(X)
    assert (mixture.weights_ > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # that no component is left
def test_outliers_alone_are_all_of_the_background(family):
    mixture = new(family, background=True).fit(X, known_labels=np.full(len(X), -2))
    assert mixture.background_weight_ == 1
    assert np.isfinite(mixture.score_samples(X)).all()


def test_fixed_parameters_stay():
    means = np.stack([X[k == Y].mean(axis=0) for k in range(3)])
    params = {"means_init": means, "fixed": ("means", "weights")}
    mixture = new("directions", **params).fit(X, known_labels=few_known())
    cosines = (mixture.mean_directions_ * means).sum(axis=1) / np.linalg.norm(means, axis=1)
    np.testing.assert_allclose(cosines, 1)
    np.testing.assert_allclose(mixture.weights_, 1 / 3)


def test_fits_that_continue_take_labels():
    labels = (Y + 1) % 3
    mixture = new(warm_start=True).fit(X, known_labels=labels)
    mixture.fit(X, known_labels=Y)
    np.testing.assert_allclose(mixture.means_[0], X[Y == 0].mean(axis=0), atol=1e-6)
    stream = new("directions")
    for start in range(2):
        stream.partial_fit(X[start::2], known_labels=labels[start::2])
    assert (stream.predict(X) == labels).mean() > 0.9


def test_an_empty_component_is_not_moved_to_a_known_row():
    mixture = SparseGaussianMixture(4, reg_covar=1e-3, random_state=0).fit(X, known_labels=Y)
    assert mixture.weights_[3] == 0


def test_labels_and_weights_travel_by_metadata_routing():
    weights = {"sample_weight": np.arange(len(X)) % 3}
    with config_context(enable_metadata_routing=True):
        mixture = new().set_fit_request(known_labels=True, sample_weight=True)
        pipeline = make_pipeline(
            FunctionTransformer(), mixture.set_score_request(sample_weight=True)
        )
        score = pipeline.fit(X, known_labels=few_known(), **weights).score(X, **weights)
    direct = new().fit(X, known_labels=few_known(), **weights)
    np.testing.assert_array_equal(pipeline[-1].means_, direct.means_)
    assert score == direct.score(X, **weights) != direct.score(X)


# The order of a RelativeGMM, and what is refused.


def test_classes_in_order_keep_it_and_others_are_refused():
    falling = RelativeGMM(2).fit(X[Y < 2], known_labels=1 - Y[Y < 2])
    assert falling.means_[0, 0] < falling.means_[1, 0]
    with pytest.raises(ValueError, match=r"contradict the order .* class 1 is below .* class 0"):
        RelativeGMM(2).fit(X[Y < 2], known_labels=Y[Y < 2])


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Y[:-1], r"got shape \(177,\)"),
        (Y + 1, "from -1 to n_components - 1 = 2.*got 3"),
        (Y - 2, "got -2; -2, an outlier, needs background=True"),
        (Y + 0.5, "got 0.5"),
        (["red"] * len(Y), r"holds names\. .*known_labels = \[classes\.index\(name\)"),
        ([None, "red"] * (len(Y) // 2), "holds names"),
        ([None] * len(Y), "got nan"),
        (Y + 1j, "known_labels should hold real numbers"),
    ],
)
def test_labels_that_are_none_are_refused(known, message):
    mixture = new()
    for fit in (mixture.fit, mixture.partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(X, known_labels=known)
    assert not hasattr(mixture, "weights_")


def test_names_of_classes_become_numbers_as_the_message_says():
    names = np.array(["red", "white", "rose"])[few_known()]
    names[few_known() < 0] = "?"
    with pytest.raises(ValueError, match="holds names") as caught:
        new().fit(X, known_labels=names)
    line = str(caught.value).split("known_labels = ")[1].removesuffix(".")
    known = eval(line, {"classes": ["red", "white", "rose"], "names": names.tolist()})
    assert known == few_known().tolist()


def test_a_class_without_weight_is_refused_by_name():
    with pytest.raises(ValueError, match="class 1, and they weigh nothing"):
        new().fit(X, known_labels=few_known(), sample_weight=Y != 1)
    with pytest.raises(ValueError, match="class 0, and they weigh nothing"):
        new(weights_init=[0, 0.5, 0.5]).fit(X, known_labels=few_known())
    with pytest.raises(ValueError, match="class 2, and they weigh nothing"):
        new("directions").fit(np.where(Y[:, None] == 2, 0, X), known_labels=few_known())
