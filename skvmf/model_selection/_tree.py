"""The tree of pairwise merges, in SciPy's format."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from .._typing import Array

_RISE = 1e-12  # least relative difference of a distance from the one before


def make_linkage(n_leaves: int, merges: Sequence[tuple[int, int, float]]) -> Array:
    """Return the linkage matrix (n_leaves - 1, 4) of merges: two nodes and a loss, in order.

    Distances increase strictly, so that every number of parts belongs to some distance: a merge
    that loses less than the one before is placed right above it.
    """
    linkage = np.empty((len(merges), 4))
    sizes = np.ones(n_leaves + len(merges))
    before = 0.0
    for i, (a, b, loss) in enumerate(merges):
        before = max(loss, before * (1 + _RISE), np.finfo(float).tiny)
        sizes[n_leaves + i] = sizes[a] + sizes[b]
        linkage[i] = min(a, b), max(a, b), before, sizes[n_leaves + i]
    return linkage


def parts_of_leaves(linkage: Array, n_parts: int) -> Array:
    """Return the part of each leaf in a cut into `n_parts`, numbered along the dendrogram."""
    n_leaves = len(linkage) + 1
    part = np.arange(n_leaves + len(linkage))
    for i in range(n_leaves - n_parts - 1, -1, -1):
        part[linkage[i, :2].astype(np.intp)] = part[n_leaves + i]
    order = leaves_list(linkage) if n_leaves > 1 else np.zeros(1, dtype=np.intp)
    nodes, first = np.unique(part[order], return_index=True)
    number = np.empty(len(nodes), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(nodes))
    return number[np.searchsorted(nodes, part[:n_leaves])]
