"""The tree is one that SciPy takes, is cut as SciPy cuts it, and takes new rows."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster import hierarchy
from sklearn.metrics import adjusted_rand_score

from skvmf import ComponentPath, SparseGaussianMixture, VonMisesFisherMixture

RNG = np.random.default_rng(0)
LABELS = RNG.integers(4, size=400)
X = 6 * np.eye(5)[LABELS] + RNG.normal(size=(400, 5))


@pytest.fixture(scope="module", params=[1, 2, 3, 30])
def path(request):
    """Paths over rows without clusters, whose losses rise and fall."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    mixture = VonMisesFisherMixture(random_state=0)
    return ComponentPath(mixture, max_components=request.param, refit=False).fit(X)


def test_scipy_takes_the_linkage(path):
    if len(path.linkage_) > 0:
        assert hierarchy.is_valid_linkage(path.linkage_, throw=True)
        assert hierarchy.is_monotonic(path.linkage_)
        assert (np.diff(path.linkage_[:, 2]) > 0).all()
        assert path.linkage_[-1, 3] == path.max_components


def test_cuts_are_those_of_scipy_in_the_order_of_the_dendrogram(path):
    assert_array_equal(path.cut(1), 0)
    for n_parts in range(2, path.max_components + 1):
        theirs = hierarchy.cut_tree(path.linkage_, n_parts)[path.leaf_labels_, 0]
        labels = path.cut(n_parts)
        assert adjusted_rand_score(labels, theirs) == 1
        assert_array_equal(np.unique(labels), np.arange(n_parts))
        part_of = dict(zip(path.leaf_labels_, labels, strict=True))
        leaves = hierarchy.dendrogram(path.linkage_, no_plot=True)["leaves"]
        assert (np.diff([part_of[leaf] for leaf in leaves if leaf in part_of]) >= 0).all()


@pytest.mark.parametrize(
    ("mixture", "held_out"),
    [
        (VonMisesFisherMixture(random_state=0), 0.3),
        (SparseGaussianMixture(random_state=0, background=True), None),
    ],
)
def test_rows_of_the_fit_get_their_labels(mixture, held_out):
    path = ComponentPath(mixture, max_components=7, validation_fraction=held_out, random_state=0)
    path = pickle.loads(pickle.dumps(path.fit(X)))
    for K in (1, 3, 7):
        assert_array_equal(path.cut(K, X), path.cut(K))


def test_new_rows_get_the_cluster_of_their_kind():
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=7, refit=False)
    labels = path.fit(X[:300]).cut(4)
    of_class = {c: np.bincount(labels[LABELS[:300] == c]).argmax() for c in range(4)}
    new = path.cut(4, X[300:])
    assert np.mean([of_class[c] for c in LABELS[300:]] == new) > 0.98
    assert len(set(zip(path.cut(3, X[300:]), new, strict=True))) == 4  # cuts are nested
    with pytest.raises(ValueError, match="5 features"):
        path.cut(4, X[:, :3])
