"""A summary of labels is that of the clusters, whoever found them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import component_summary
from skvmf.model_selection import ComponentPath

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


@pytest.mark.parametrize(
    "own",
    [
        VonMisesFisherMixture(4, concentrations_init=[1.0, 50.0, 5e3, 1e5]),
        VonMisesFisherMixture(2, concentrations_init=[1.0, 50.0]),
        SparseGaussianMixture(4, precisions_init=np.tile(100.0 * np.eye(4), (4, 1, 1))),
        SparseGaussianMixture(2, precisions_init=np.tile(100.0 * np.eye(4), (2, 1, 1))),
        SparseGaussianMixture(3, weight_floor=0.3),
        StudentTMixture(4, degrees_of_freedom=[1.0, 2.0, 50.0, 1e3]),
        StudentTMixture(3, degrees_of_freedom=[1.0, 2.0, 50.0]),
    ],
)
def test_what_is_given_for_the_components_of_a_mixture_says_nothing_of_clusters(own):
    plain = component_summary(type(own)(), X, labels=CLASSES)
    summary = component_summary(own, X, labels=CLASSES)
    for name in ("weights", "angles", "nearest", "overlaps", "typical"):
        assert_array_equal(getattr(summary, name), getattr(plain, name))


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
