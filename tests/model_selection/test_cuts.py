"""A cut puts new rows where it would have put them in the fit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.model_selection import ComponentPath

RNG = np.random.default_rng(0)
LABELS = RNG.integers(4, size=400)
X = 6 * np.eye(5)[LABELS] + RNG.normal(size=(400, 5))


@pytest.mark.parametrize("held_out", [None, 0.3])
@pytest.mark.parametrize(
    "mixture",
    [VonMisesFisherMixture(random_state=0), SparseGaussianMixture(random_state=0, background=True)],
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
