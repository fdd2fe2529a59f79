"""Greedy merging of clusters, by what a pair loses in log-likelihood.

This is Ward's method (Journal of the American Statistical Association 58, 1963) with losses of
log-likelihood in place of squares. Cutting one cluster in two gains log-likelihood, too: by
chance, and the more, the more rows and features it has. `chance_gain` is taken off the losses
(derived here), or large clusters would be cut while small neighbours are merged.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, xlogy

from ..._typing import Array
from .background import NO_BACKGROUND, Background
from .family import MergeCost
from .merge_costs import MAX_PAIRED
from .neighbours import nearest_points

MAX_COMPARED_AT_ONCE = 256  # clusters: some megabytes of pairs
NEAREST = 32  # that a cluster is compared with where there are too many to compare all pairs


@dataclass(eq=False)
class OtherRows:
    """The number of rows that belong to no cluster, and the background that they belong to."""

    count: float = 0.0
    background: Background = NO_BACKGROUND

    def excess_losses(self, cost: MergeCost) -> Array:
        """Return what giving each cluster (M,) to the background loses, beyond chance.

        Chance is the largest of as many halved chi-squares as there are rows (Laurent and Massart,
        Annals of Statistics 28, 2000, lemma 1): what a component that is fitted anywhere gains on
        average.
        """
        excess = np.full(len(cost.counts), np.inf)
        if len(self.background) > 0:
            (log_density,) = self.background.log_densities
            n = cost.counts
            others = self.count
            apart = cost.log_likelihoods() + xlogy(n, n) + xlogy(others, others)
            together = n * log_density + xlogy(n + others, n + others)
            log_rows = np.log(n.sum() + others)
            excess = apart - together - (np.sqrt(cost.dim / 2) + np.sqrt(log_rows)) ** 2
        return excess


class KeptApart(MergeCost):
    """Clusters of which those of different classes are never merged."""

    def __init__(self, cost: MergeCost, classes: Array) -> None:
        self._cost = cost
        self._classes = classes.copy()  # (M,); -1 is a cluster of no class
        self.dim = cost.dim

    @property
    def counts(self) -> Array:  # type: ignore[override]
        return self._cost.counts

    def points(self) -> Array:
        return self._cost.points()

    def losses(self, i: int, clusters: Array | slice = slice(None)) -> Array:
        losses = self._cost.losses(i, clusters)
        of_class = self._classes[i]
        if of_class < 0:
            return losses
        others = self._classes[clusters]
        return np.where((others >= 0) & (others != of_class), np.inf, losses)

    def merge(self, i: int, j: int) -> None:
        self._cost.merge(i, j)
        self._classes[i] = max(self._classes[i], self._classes[j])


class _AllPairs:
    """What merging each two clusters loses beyond chance, and the cheapest merge of each."""

    def __init__(self, cost: MergeCost) -> None:
        M = len(cost.counts)
        self.cost = cost
        self.left = np.ones(M, dtype=bool)
        if M <= MAX_COMPARED_AT_ONCE:
            counts = cost.counts
            chance = chance_gain(counts, counts[:, np.newaxis], cost.dim)
            self._excess = cost.all_losses() - chance
        else:
            clusters = np.arange(M)
            self._excess = np.stack([excess_losses(cost, i, clusters) for i in clusters.tolist()])
        np.fill_diagonal(self._excess, np.inf)
        self.least = self._excess.min(axis=1)
        self.nearest = self._excess.argmin(axis=1)

    def first(self) -> int:
        """Return the cluster that is cheapest to merge."""
        return int(self.least.argmin())

    def remove(self, i: int) -> None:
        self._take_out(i)
        self._find_again(self.nearest == i)

    def join(self, i: int, j: int) -> None:
        """Add cluster j to cluster i."""
        self.cost.merge(i, j)
        self._take_out(j)
        others = np.flatnonzero(self.left)
        others = others[others != i]
        if len(others) == 0:
            self.least[i] = np.inf
            return
        excess = excess_losses(self.cost, i, others)
        self._excess[i, others] = excess
        self._excess[others, i] = excess
        is_closer = excess < self.least[others]
        closer = others[is_closer]
        self.least[closer] = excess[is_closer]
        changed = (self.nearest == i) | (self.nearest == j)
        self.nearest[closer] = i
        changed[closer] = False
        changed[i] = True
        self._find_again(changed)

    def _take_out(self, i: int) -> None:
        self.left[i] = False
        self._excess[i] = np.inf
        self._excess[:, i] = np.inf
        self.least[i] = np.inf
        self.nearest[i] = -1

    def _find_again(self, changed: Array) -> None:
        """Find the cheapest merges of clusters (M,) of which a nearest one has changed."""
        clusters = np.flatnonzero(changed)
        rows = self._excess[clusters]
        self.least[clusters] = rows.min(axis=1)
        self.nearest[clusters] = rows.argmin(axis=1)


class _PairsOfNeighbours:
    """The clusters that are left, and the merge of each with a near one that loses least.

    A merge is out of date where the nearest of a cluster has been merged since: it is looked for
    again only if it is the cheapest of all.
    """

    def __init__(self, cost: MergeCost) -> None:
        M = len(cost.counts)
        self.cost = cost
        self.left = np.ones(M, dtype=bool)
        self.least = np.full(M, np.inf)  # excess losses
        self.nearest = np.zeros(M, dtype=np.intp)
        self._out_of_date = np.zeros(M, dtype=bool)
        self._compare_neighbours()

    def _compare_neighbours(self) -> None:
        """Find the cheapest merge of each cluster that is left, among all once they are few."""
        clusters = np.flatnonzero(self.left)
        self._neighbours = [clusters] * len(self.left)
        if len(clusters) > MAX_PAIRED:
            self._neighbours = _neighbours(self.cost.points(), clusters)
        for i in clusters.tolist():
            self._update(i)

    def _candidates(self, i: int) -> Array:
        """Return the clusters that are left to merge with cluster i, which may itself be gone."""
        clusters = self._neighbours[i]
        return clusters[self.left[clusters] & (clusters != i)]

    def _update(self, i: int) -> tuple[Array, Array]:
        """Find the cheapest merge of cluster i; return its candidates, and excess losses."""
        candidates = self._candidates(i)
        self._out_of_date[i] = False
        self.least[i] = np.inf
        if len(candidates) == 0:
            return candidates, np.empty(0)
        excess = excess_losses(self.cost, i, candidates)
        self.least[i] = excess.min()
        self.nearest[i] = candidates[excess.argmin()]
        return candidates, excess

    def first(self) -> int:
        """Return the cluster that is cheapest to merge."""
        i = int(self.least.argmin())
        while self._out_of_date[i]:
            self._update(i)
            i = int(self.least.argmin())
        if self.least[i] == np.inf:  # none has a neighbour left
            self._compare_neighbours()
            return self.first()
        return i

    def remove(self, i: int) -> None:
        self.left[i] = False
        self.least[i] = np.inf
        self._mark_out_of_date(i)

    def _mark_out_of_date(self, i: int) -> None:
        """Mark merges with cluster i, which has changed."""
        clusters = self._candidates(i)
        self._out_of_date[clusters[self.nearest[clusters] == i]] = True

    def join(self, i: int, j: int) -> None:
        """Add cluster j to cluster i, with its neighbours."""
        self.cost.merge(i, j)
        self._mark_out_of_date(i)
        self.remove(j)
        lists = self._neighbours
        of_j = self._candidates(j)
        for cluster in np.setdiff1d(of_j, np.append(lists[i], i)).tolist():
            lists[cluster] = np.append(lists[cluster], i)
        lists[i] = np.union1d(self._candidates(i), of_j)
        candidates, excess = self._update(i)
        # Of the others' merges only those with cluster i have changed, and it may be nearer now.
        is_closer = excess < self.least[candidates]
        closer = candidates[is_closer]
        self.least[closer] = excess[is_closer]
        self.nearest[closer] = i
        self._out_of_date[closer] = False


def excess_losses(cost: MergeCost, i: int, clusters: Array) -> Array:
    """Return what merging cluster i with each of others (m,) loses beyond chance."""
    if len(clusters) == 0:  # a contributed cost need not know what none of them is
        return np.empty(0)
    counts = cost.counts
    return cost.losses(i, clusters) - chance_gain(counts[clusters], counts[i], cost.dim)


def merge_greedily(
    cost: MergeCost, n_clusters: int, others: OtherRows | None = None
) -> tuple[Array, list[tuple[int, int, float]]]:
    """Merge clusters until so many are left; return their numbers, and merges as (i, j, loss).

    More than `MAX_PAIRED` clusters are compared with their nearest ones only. Once no pair loses
    less than chance, a cluster that gains no more than chance is added to `others`.
    """
    if others is None:
        others = OtherRows()
    few = len(cost.counts) <= MAX_PAIRED  # losses of all pairs take as much memory as products
    cheapest = _AllPairs(cost) if few else _PairsOfNeighbours(cost)
    merges = []
    for _ in range(len(cost.counts) - n_clusters):
        first = cheapest.first()
        excess_loss = float(cheapest.least[first])
        # No two are one cluster, as far as chance tells: now one may be no cluster at all.
        if excess_loss >= 0:
            excess = np.where(cheapest.left, others.excess_losses(cost), np.inf)
            cluster = int(excess.argmin())
            if excess[cluster] < 0:
                others.count += float(cost.counts[cluster])
                cheapest.remove(cluster)
                continue
        # Each is the nearest of the other, and rounding decides which came first.
        i, j = sorted((first, int(cheapest.nearest[first])))
        chance = chance_gain(cost.counts[i], cost.counts[j], cost.dim)
        merges.append((i, j, excess_loss + float(chance)))
        cheapest.join(i, j)
    return np.flatnonzero(cheapest.left), merges


def _neighbours(points: Array, clusters: Array) -> list[Array]:
    """Return for some of the points (M, d) the nearest ones among them.

    If a point is one of the nearest of another, that is one of its own. Other points have none.
    """
    M = len(clusters)
    n_near = min(NEAREST, M - 1)
    nearest = nearest_points(points[clusters], points[clusters], n_near, but_itself=True)
    pairs = np.repeat(np.arange(M), n_near), nearest.ravel()
    graph = csr_array((np.ones(nearest.size, dtype=bool), pairs), shape=(M, M))
    graph = csr_array(graph + graph.T)
    graph.sort_indices()
    lists = [np.empty(0, dtype=np.intp)] * (clusters[-1] + 1)
    for cluster, near in zip(clusters, np.split(graph.indices, graph.indptr[1:-1]), strict=True):
        lists[cluster] = clusters[near]
    return lists


_STEPS_OF_ROOT = 2**14  # of the table of gains, per unit of the root of p


def chance_gain(a: Array, b: Array, dim: int) -> Array:
    """Return what the best cut of one spherical cluster of a + b rows gains by chance, in nats.

    Cutting at a quantile of one direction gains n phi(z)^2 / (2 p (1 - p)), for n = a + b and the
    normal density phi at the quantile z of p = a / n; choosing the best of `dim` directions adds
    about sqrt(dim / 2) to its root. Quantiles take long: roots of gains are interpolated.
    """
    n = a + b
    roots, differences = _roots_of_gains()
    positions = np.sqrt(np.minimum(a, b) / n) * _STEPS_OF_ROOT
    below = np.asarray(positions).astype(np.intp)
    root = roots[below] + (positions - below) * differences[below]
    return (np.sqrt(dim / 2) + np.sqrt(n) * root) ** 2


@cache
def _roots_of_gains() -> tuple[Array, Array]:
    """Return the roots of phi(z)^2 / (2 p (1 - p)) for p up to a half, and their differences.

    In steps of the root of p the table is finest where a gain changes fastest, at small p.
    """
    p = (np.arange(int(_STEPS_OF_ROOT * np.sqrt(0.5)) + 3) / _STEPS_OF_ROOT) ** 2
    p = np.clip(p, 1e-12, 0.5)  # the quantile of 0 is infinite, and its gain 0
    roots = np.exp(-0.5 * ndtri(p) ** 2) / np.sqrt(4 * np.pi * p * (1 - p))
    return roots, np.diff(roots)
