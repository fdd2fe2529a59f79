"""A summary of labels is that of the clusters, whoever found them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import component_stability, component_summary
from skvmf.model_selection import ComponentPath

from ..pairwise import pairwise

RNG = np.random.default_rng(0)
CLASSES = RNG.permutation(np.repeat(np.arange(4), [40, 30, 20, 10]))
X = 5 * np.eye(4)[CLASSES] + RNG.normal(size=(100, 4))
WORDS = np.array(["tea", "ice", "puck", "goal"])
TEXTS = [f"{word} and milk" for word in WORDS[CLASSES]]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sizes_words_and_typical_rows_are_those_of_the_labels(form):
    labels = KMeans(4, n_init=4, random_state=0).fit(X).labels_
    summary = component_summary(X=form(X), labels=labels, texts=TEXTS)
    assert_array_equal(summary.sizes, np.bincount(labels)[summary.labels])
    assert_allclose(summary.weights, summary.sizes / 100)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    for k, words, typical in zip(summary.labels, summary.words, summary.typical, strict=True):
        rows = np.flatnonzero(labels == k)
        assert words[0] == WORDS[np.bincount(CLASSES[rows]).argmax()]
        assert typical[0] == rows[(units[rows] @ units[rows].mean(axis=0)).argmax()]
    assert summary.names(1)[summary.labels[0]] == summary.words[0][0]


def test_outliers_and_numbers_without_rows():
    labels = np.where(CLASSES == 3, -1, 2 * CLASSES)
    summary = component_summary(X=X, labels=labels)
    assert_array_equal(summary.labels, [0, 2, 4])
    assert_array_equal(summary.sizes, [40, 30, 20])
    assert (summary.n_outliers, summary.n_components) == (10, 5)
    found = component_summary(X=X, labels=DBSCAN(eps=2.5).fit(X).labels_)
    assert found.sizes.sum() + found.n_outliers == 100


@pytest.mark.parametrize(
    "kind",
    [
        VonMisesFisherMixture(9, background=True, random_state=0),
        SparseGaussianMixture(2, covariance_type="diag", fixed=("weights",), n_init=3),
        SparseGaussianMixture(1).fit(X),
        RelativeGMM(3, covariance_type="diag"),
    ],
)
def test_the_kind_of_components_is_that_of_the_mixture(kind):
    summary = component_summary(kind, X, labels=CLASSES)
    assert_array_equal(summary.labels, [0, 1, 2, 3])
    assert_array_equal(summary.sizes, [40, 30, 20, 10])
    assert (summary.cosines is None) == (not isinstance(kind, VonMisesFisherMixture))


# What a mixture may say of each of its K components, or of how a fit of it begins.
OF_COMPONENTS = {
    "nothing": lambda K: {},
    "weights_init": lambda K: {"weights_init": np.arange(1, K + 1) / np.arange(1, K + 1).sum()},
    "means_init": lambda K: {"means_init": X[:K]},
    "priors": lambda K: {"weight_concentration_prior": np.linspace(-30, 50, K)},
    "prior": lambda K: {"weight_concentration_prior": -50.0},
    "weight_floor": lambda K: {"weight_floor": 1 / K},
    "fixed weights": lambda K: {"fixed": ("weights",)},
    "fixed means": lambda K: {"fixed": ("means",), "means_init": X[:K]},
    "partition": lambda K: {"init_params": np.arange(100) % K},
    "responsibilities": lambda K: {"init_params": np.ones((100, K))},
    "starts": lambda K: {"n_init": 5, "init_size": 3, "max_iter": 3},
    "warm start": lambda K: {"warm_start": True, "verbose": 1, "background": True},
}
MATRICES = np.tile(100.0 * np.eye(4), (6, 1, 1))
KAPPA = 10.0 ** np.arange(6)
OWN_SHAPES = {
    "concentrations": (
        VonMisesFisherMixture,
        lambda K: {"concentrations_init": 10.0 ** np.arange(K)},
    ),
    "precisions": (SparseGaussianMixture, lambda K: {"precisions_init": MATRICES[:K]}),
    "tails": (StudentTMixture, lambda K: {"degrees_of_freedom": np.arange(1.0, K + 1)}),
    "scales": (StudentTMixture, lambda K: {"scale_matrices_init": MATRICES[:K]}),
    "order": (RelativeGMM, lambda K: {"ordering_feature": 9, "clearance": 9.0}),
}
POSTERIORS = [{}, {"temperature": 0.0}, {"temperature": 2.0}, {"entmax_alpha": 2.0}]


@pairwise(
    own=OWN_SHAPES,
    of_components=OF_COMPONENTS,
    K=[1, 3, 4, 6],
    outliers=[False, True],
    posterior=range(len(POSTERIORS)),
    is_fitted=[False, True],
)
def test_what_a_mixture_says_of_its_components_says_nothing_of_clusters(
    own, of_components, K, outliers, posterior, is_fitted, capsys
):
    labels = np.where(CLASSES == 3, -1, CLASSES) if outliers else CLASSES
    cls, shapes = OWN_SHAPES[own]
    chosen = POSTERIORS[posterior]
    plain = SparseGaussianMixture if cls is RelativeGMM else cls
    params = shapes(K) | OF_COMPONENTS[of_components](K) | chosen
    if cls is RelativeGMM and params.get("fixed") == ("means",):
        del params["fixed"]
    kind = cls(K, **params)
    if is_fitted:
        means = X[:K] / (1.01 * np.linalg.norm(X[:K], axis=1, keepdims=True))
        given = [np.full(K, 1 / K), means]
        if cls is not VonMisesFisherMixture:
            given += [np.tile(np.eye(4), (K, 1, 1))]
        if cls is StudentTMixture:
            given += [np.arange(1.0, K + 1)]
        kind = cls.from_parameters(*given).set_params(**params)
    capsys.readouterr()
    summary = component_summary(kind, X, labels=labels)
    assert capsys.readouterr().out == ""
    expected = component_summary(plain(**chosen), X, labels=labels)
    for name in ("labels", "weights", "angles", "nearest", "overlaps", "sizes", "cosines"):
        assert_array_equal(getattr(summary, name), getattr(expected, name))
    for name in ("typical", "doubtful"):
        for rows, rows_expected in zip(
            getattr(summary, name), getattr(expected, name), strict=True
        ):
            assert_array_equal(rows, rows_expected)


def test_the_stability_of_other_components_is_refused():
    mixture = VonMisesFisherMixture(3, random_state=0).fit(X)
    stability = component_stability(mixture, X, n_resamples=2, random_state=0)
    with pytest.raises(ValueError, match="stability is of the components of a mixture"):
        component_summary(mixture, X, labels=CLASSES, stability=stability)
    with pytest.raises(ValueError, match=r"of the 2 components of the mixture, got that of 3"):
        component_summary(VonMisesFisherMixture(2).fit(X), X, stability=stability)


def test_paths_and_cuts():
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=8).fit(X)
    assert str(component_summary(path, X)) == str(component_summary(path.best_estimator_, X))
    cut = path.cut(3)
    summary = component_summary(path, X, labels=cut, texts=TEXTS)
    assert_array_equal(summary.sizes, np.bincount(cut)[summary.labels])
    assert summary.n_components == 3


OUTLIERS = np.full(100, -1)


@pytest.mark.parametrize(
    "labels", [CLASSES[:-1], CLASSES + 0.5, CLASSES - 2, WORDS[CLASSES], -1, OUTLIERS]
)
def test_other_labels_are_refused(labels):
    with pytest.raises(ValueError, match="labels should be whole numbers from 0, or -1"):
        component_summary(X=X, labels=labels)
    with pytest.raises(ValueError, match="labels need X"):
        component_summary(labels=labels)
