"""The tree is one that SciPy takes, and is cut as SciPy cuts it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster import hierarchy
from sklearn.metrics import adjusted_rand_score

from skvmf.model_selection._component_path import make_linkage, parts_of_leaves


def some_unions(n_leaves, seed=0):
    """Join random nodes at losses that rise and fall."""
    rng = np.random.default_rng(seed)
    nodes, unions = list(range(n_leaves)), []
    for i in range(n_leaves - 1):
        a, b = rng.choice(len(nodes), 2, replace=False)
        loss = float(rng.choice([0.0, 1.0, rng.exponential() * (i + 1)]))
        unions.append((nodes[a], nodes[b], loss))
        nodes = [node for node in nodes if node not in unions[-1][:2]] + [n_leaves + i]
    return unions


@pytest.mark.parametrize("n_leaves", [2, 3, 10, 60])
def test_scipy_takes_the_linkage(n_leaves):
    unions = some_unions(n_leaves)
    linkage = make_linkage(n_leaves, unions)
    assert hierarchy.is_valid_linkage(linkage, throw=True)
    assert hierarchy.is_monotonic(linkage)
    assert (np.diff(linkage[:, 2]) > 0).all()
    assert linkage[-1, 3] == n_leaves
    losses = np.array([loss for *_, loss in unions])
    np.testing.assert_allclose(linkage[:, 2], np.maximum.accumulate(losses), 1e-9, 1e-9)


@pytest.mark.parametrize("n_leaves", [2, 3, 10, 60])
def test_cuts_are_those_of_scipy_in_the_order_of_the_dendrogram(n_leaves):
    linkage = make_linkage(n_leaves, some_unions(n_leaves, seed=1))
    leaves = hierarchy.dendrogram(linkage, no_plot=True)["leaves"]
    for n_parts in range(1, n_leaves + 1):
        parts = parts_of_leaves(linkage, n_parts)
        theirs = hierarchy.cut_tree(linkage, n_parts)[:, 0]
        assert adjusted_rand_score(parts, theirs) == 1
        assert_array_equal(np.unique(parts), np.arange(n_parts))
        assert (np.diff(parts[leaves]) >= 0).all()


def test_one_leaf_is_one_part():
    assert_array_equal(parts_of_leaves(make_linkage(1, []), 1), [0])
