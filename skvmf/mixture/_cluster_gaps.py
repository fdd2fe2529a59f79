"""How far clusters are apart: what their merges lose in log-likelihood, beyond chance."""

from typing import Any

import numpy as np

from .._engine.families.family import MergeCost
from .._engine.families.merging import chance_gain
from .._typing import Array
from ._base import BaseMixture


def with_rows(mixture: BaseMixture, least_count: float = 0.0) -> Array:
    """Return the components that have rows: more than a least count of them."""
    statistics = mixture._running_statistics
    assert statistics is not None
    return np.flatnonzero(statistics.counts[: mixture._fitted.n_components] > least_count)


def merge_cost(mixture: BaseMixture, clusters: Array) -> MergeCost:
    """Return what merges of some components cost, which have rows."""
    fitted, statistics = mixture._fitted, mixture._running_statistics
    assert statistics is not None
    statistics = statistics.first_components(fitted.n_components)
    cost: MergeCost = fitted.family.merge_cost(statistics, fitted.components, clusters)
    return cost


def gap(loss: Any, a: Any, b: Any, dim: int) -> Any:
    """Return what merging clusters of a and b rows loses beyond chance, whatever their sizes."""
    return (loss - chance_gain(a, b, dim)) * (1 / a + 1 / b)


def typical_gap(cost: MergeCost, ids: Array) -> float:
    """Return the median gap between a cluster and its nearest one, from parts of clusters.

    The parts are merged to the clusters that their `ids` say: this changes `cost`.
    """
    first = np.unique(ids, return_index=True)[1]
    if len(first) < 2:
        return np.inf
    for i in first.tolist():
        for j in np.flatnonzero(ids == ids[i])[1:].tolist():
            cost.merge(i, j)
    gaps = []
    for i in first.tolist():
        others = first[first != i]
        losses = cost.losses(i, others)
        gaps.append(gap(losses, cost.counts[others], cost.counts[i], cost.dim).min())
    return float(np.median(gaps))
