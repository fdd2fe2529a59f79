"""The tree that joining components two by two makes, in SciPy's format."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from .._typing import Array

_RISE = 1e-12  # by which a distance is above the one before, relatively


def make_linkage(n_leaves: int, unions: Sequence[tuple[int, int, float]]) -> Array:
    """Return the linkage matrix (n_leaves - 1, 4) of nodes joined in turn, and their losses.

    Distances rise strictly, so that every number of parts is that of some distance: a union
    that loses less than one before it is put right above that one.
    """
    linkage = np.empty((len(unions), 4))
    sizes = np.ones(n_leaves + len(unions))
    before = 0.0
    for i, (a, b, loss) in enumerate(unions):
        before = max(loss, before * (1 + _RISE), np.finfo(float).tiny)
        sizes[n_leaves + i] = sizes[a] + sizes[b]
        linkage[i] = min(a, b), max(a, b), before, sizes[n_leaves + i]
    return linkage


def parts_of_leaves(linkage: Array, n_parts: int) -> Array:
    """Return the part of each leaf in a cut into so many, numbered along the dendrogram."""
    n_leaves = len(linkage) + 1
    part = np.arange(n_leaves + len(linkage))
    for i in range(n_leaves - n_parts - 1, -1, -1):
        part[linkage[i, :2].astype(np.intp)] = part[n_leaves + i]
    order = leaves_list(linkage) if n_leaves > 1 else np.zeros(1, dtype=np.intp)
    nodes, first = np.unique(part[order], return_index=True)
    number = np.empty(len(nodes), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(nodes))
    parts: Array = number[np.searchsorted(nodes, part[:n_leaves])]
    return parts
