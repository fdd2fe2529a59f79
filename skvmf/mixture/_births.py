"""Groups of rows that the last batches have and earlier ones had not: a scan statistic."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betainc
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._engine.families.merging import merge_greedily
from .._sklearn import safe_indexing
from .._typing import Array
from ._base import BaseMixture
from ._cluster_gaps import gap, merge_cost, typical_gap, with_rows
from ._parameters import of_other_components
from ._tracked_rows import TINY, KeptRows

# Rows for each fine cluster, on average: with 15 or 30 the topics of newsgroups had about the same
# evidence, and fewer clusters are faster.
_ROWS_PER_FINE_CLUSTER = 30
# Steps of EM for fine clusters, which begin at random rows: 10 gained little more than 5. With 3,
# of hard EM or of 40 rows a cluster, one birth of newsgroups in twelve was wrong, instead of one in
# fifty.
_FINE_STEPS = 5
# A new cluster has this many times its share of earlier rows in the window: below it, shares that
# change a little would count as new, however sure the change is.
MIN_RATIO = 2.0
# Fine clusters that are further apart than this share of the median gap between a live cluster and
# its nearest one are not one new cluster. A smaller share gives a cluster several ids, a larger
# one several clusters one id.
_MAX_GAP = 0.5
# A cut of a new cluster in two has parts of at least so many rows: a few rows are always far apart.
_MIN_PART = 8
# Fine clusters with fewer rows have none but for rounding.
_LEAST_COUNT = 1e-6
# A node of the tree need not have all rows of a cluster that is born: this share of `min_size`.
_MIN_SHARE_OF_SIZE = 0.6


@dataclass(eq=False)
class BirthSearch:
    """The search for groups of rows that are new, in those that are kept.

    Rows of the window and of the reservoir together are clustered finely. Fine clusters are merged
    to a tree, and each node of it is tested for having more rows of the last batches, of one, two,
    four and so on up to the window, than it would if these and the reservoir were alike.
    """

    mixture: BaseMixture  # not fitted, of the kind that fine clusters get
    kept: KeptRows
    tested: Array  # the rows to cluster, by index
    window: int
    min_size: int
    seed: int

    @property
    def _n_fine(self) -> int:
        return len(self.tested) // _ROWS_PER_FINE_CLUSTER

    def groups(self, significance: float) -> Iterator[tuple[Array, float]]:
        """Yield groups of rows, by index, and log p-values, the most significant first."""
        ages = self.kept.ages[self.tested]
        weights = self.kept.weights[self.tested]
        if self._n_fine < 2 or not (ages < 0).any() or not (ages >= 0).any():
            return
        labels, nodes = self._tree
        spans = self._spans
        in_spans = np.bincount(ages[ages >= 0], weights[ages >= 0], self.window).cumsum()[spans - 1]
        earlier = float(weights[ages < 0].sum())
        counts = np.zeros((self._n_fine, self.window + 1))
        np.add.at(counts, (labels, ages), weights)  # earlier rows, of age -1, come last
        of_nodes = np.array([counts[node].sum(axis=0) for node in nodes])
        recent = of_nodes[:, :-1].cumsum(axis=1)[:, spans - 1]
        least = _MIN_SHARE_OF_SIZE * self.min_size
        log_p = _log_p_values(recent, of_nodes[:, -1:], in_spans, earlier, least)
        best = log_p.min(axis=1)
        threshold = np.log(significance / log_p.size)
        taken: set[int] = set()
        for node in np.argsort(best, kind="stable").tolist():
            if best[node] > threshold:
                return
            if taken.isdisjoint(nodes[node]):
                taken.update(nodes[node])
                own = self.tested[np.isin(labels, nodes[node])]
                for part in self._parts(own):
                    yield part, float(best[node])

    def part_of(self, own: Array, group: Array) -> Array:
        """Leave out rows of another new cluster: old ones may be further from them than this one.

        Of the parts of `own` that are far apart, the one with most rows of the group stays.
        """
        parts = self._parts(np.flatnonzero(own))
        largest = max(parts, key=lambda part: np.count_nonzero(np.isin(part, group)))
        return np.isin(np.arange(len(own)), largest)

    @property
    def _spans(self) -> Array:
        """The numbers of last batches that are tested: the powers of two, and the window.

        All numbers would be more tests of nearly the same rows.
        """
        n_powers = int(np.log2(self.window)) + 1
        return np.unique(np.append(2 ** np.arange(n_powers), self.window))

    @cached_property
    def _fine(self) -> tuple[BaseMixture, Array]:
        rows = safe_indexing(self.kept.rows, self.tested)
        return self._fine_clusters(rows, self._n_fine, "random_from_data")

    @cached_property
    def _largest_gap(self) -> float:
        """What the gap between two parts of a new cluster is at most."""
        fine, alive = self._fine
        ids = _majorities(fine.labels_, self.kept.ids[self.tested], alive)
        return _MAX_GAP * typical_gap(merge_cost(fine, alive), ids)

    @cached_property
    def _tree(self) -> tuple[Array, list[list[int]]]:
        """Return the fine cluster of each row, and nodes of a tree that joins near ones.

        A node is no longer one where it joins what is as far apart as live clusters are: two new
        clusters have more evidence together than each alone.
        """
        fine, alive = self._fine
        cost = merge_cost(fine, alive)
        counts = cost.counts.copy()
        groups = {i: [int(k)] for i, k in enumerate(alive)}
        is_node = dict.fromkeys(groups, True)
        nodes = list(groups.values())
        for i, j, loss in merge_greedily(cost, 1)[1]:
            is_near = gap(loss, counts[i], counts[j], cost.dim) <= self._largest_gap
            is_node[i] = bool(is_node[i] and is_node[j] and is_near)
            groups[i] = groups[i] + groups[j]
            counts[i] += counts[j]
            if is_node[i]:
                nodes.append(groups[i])
        return fine.labels_, nodes

    def _parts(self, group: Array) -> list[Array]:
        """Return the rows for one new cluster, cut in two while parts are far apart."""
        if len(group) < 2 * _MIN_PART:
            return [group]
        fine, alive = self._fine_clusters(safe_indexing(self.kept.rows, group), 2, "kmeans")
        parts = [group[fine.labels_ == k] for k in alive]
        if len(parts) < 2 or min(map(len, parts)) < _MIN_PART:
            return [group]
        cost = merge_cost(fine, alive)
        (loss,) = cost.losses(0, np.array([1]))
        if gap(loss, cost.counts[0], cost.counts[1], cost.dim) <= self._largest_gap:
            return [group]
        return [each for part in parts for each in self._parts(part)]

    def _fine_clusters(self, rows: Any, n_fine: int, init: str) -> tuple[BaseMixture, Array]:
        """Return a mixture of simple components for rows, and those that have rows."""
        params = of_other_components(self.mixture) | {
            "n_components": n_fine,
            "init_params": init,
            "background": False,
            "max_iter": _FINE_STEPS,
            "tol": 0.0,
            "random_state": self.seed,
        }
        if hasattr(self.mixture, "concentration_type"):
            params["concentration_type"] = "tied"
        else:  # which few rows suffice to estimate
            params["covariance_type"] = "spherical"
        fine: BaseMixture = clone(self.mixture).set_params(**params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            fine.fit(rows)
        return fine, with_rows(fine, _LEAST_COUNT)


def _majorities(labels: Array, ids: Array, alive: Array) -> Array:
    """Return the id that most rows of each fine cluster have, those of `alive` by number."""
    live, numbers = np.unique(ids, return_inverse=True)
    counts = np.zeros((labels.max(initial=alive.max()) + 1, len(live)))
    np.add.at(counts, (labels, numbers), 1.0)
    return live[counts[alive].argmax(axis=1)]


def _log_p_values(
    recent: Array, before: Array, spans: Array, earlier: float, least: float
) -> Array:
    """Return log p-values of nodes for spans of last batches (m, s), 0 where too few are new.

    `recent` (m, s) and `before` (m, 1) are weights of the nodes' rows, `spans` (s,) and `earlier`
    those of all rows, and `least` is the least weight of recent rows of a new node. Given the sum
    a + b of recent and earlier rows, a is binomial where nothing is new.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        is_new = recent / spans > MIN_RATIO * before / earlier
        is_new &= (recent >= least) & (spans > 0)
    log_p = np.zeros(recent.shape)
    node, span = np.nonzero(is_new)
    a = recent[node, span]
    b = before[node, 0]
    share = spans[span] / (spans[span] + earlier)
    log_p[node, span] = np.log(np.maximum(betainc(a, b + 1, share), TINY))
    return log_p
