"""From a fitted mixture down to fewer components: merge two, fit a little, and so on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import Array
from ..families.family import AnyFamily
from ..families.merging import KeptApart, merge_greedily
from ..families.params import Params
from ..families.statistics import Statistics
from ..rows.parallel import limited_blas
from ..rows.sources import RowSource
from .loop import run_em
from .mixture import Mixture, Point
from .predictions import bic, complete_log_likelihood, evaluate

# Steps of EM after a merge: they mend what the merge has moved; the fit is within `tol` of its end.
_STEPS = 3


@dataclass(eq=False)
class MergePath:
    """Mixtures of fewer and fewer components, each from the one before.

    `of_size` returns the mixture of a number of components for the rows. The path begins with
    `fitted`, whose bound is `lower_bound`; fits stop when the bound changes by at most `tol`.

    `nodes` (n_components,) are the components of `fitted`, the current mixture, as nodes of the
    tree: a component of the first mixture by its number, a merged one by the number of the first
    mixture's components plus its place in `merges`. A merge is two nodes, and the log-likelihood
    that was lost.

    `known` (n_rows,) are known labels of rows as `Mixture.known` has them, or None, and
    `n_classes` how many classes there are: components of different classes are not merged.
    `classes` (n_classes,) are the components that they have in the current mixture; -1 is one that
    has left.
    """

    of_size: Callable[[int], Mixture]
    fitted: Point
    lower_bound: float
    rows: RowSource
    tol: float
    known: Array | None = None
    n_classes: int = 0

    def __post_init__(self) -> None:
        self._n_leaves = self.fitted.n_components
        self.nodes = np.arange(self._n_leaves)
        self.classes = np.arange(self.n_classes)
        self.merges: list[tuple[int, int, float]] = []
        self._stats: Any = self.fitted.knowing(self.known).expect(self.rows)
        self._log_likelihood_now = self._log_likelihood()

    @property
    def alive(self) -> Array:
        """Components with positive weight that have rows, by their numbers."""
        has_rows = self._stats.counts[: len(self.nodes)] > 0
        return np.flatnonzero(has_rows & (self.fitted.weights > 0))

    @property
    def n_kept_apart(self) -> int:
        """The number of components with rows that are those of different classes."""
        return len(np.intersect1d(self.alive, self.classes))

    def measures(self) -> dict[str, float]:
        """Return the number of components, the bounds and the criteria of the current mixture."""
        fitted = self.fitted
        unit = self.rows.weight_unit
        log_likelihood, n_samples, entropy = np.multiply(evaluate(fitted, self.rows), unit).tolist()
        criterion = bic(fitted, log_likelihood, n_samples)
        return {
            "n_components": len(self.nodes),
            "n_parameters": fitted.n_parameters,
            "lower_bound": self.lower_bound,
            "log_likelihood": log_likelihood,
            "bic": criterion,
            "icl": criterion + 2 * entropy,
        }

    def to(self, n_components: int) -> None:
        """Go down to `n_components`: merge the pairs that lose least, and fit a few steps.

        Components without weight or rows are merged first, so that no mixture of the path has any.
        If the fit prunes more, the path continues to a mixture without them. If it has pruned all,
        the path ends there. It does not go below the number of classes that are kept apart.
        """
        with limited_blas():
            n_components = max(n_components, self.n_kept_apart)
            while len(self.nodes) > n_components or len(self.alive) < len(self.nodes):
                if len(self.alive) == 0:
                    return
                n_components = min(n_components, len(self.alive))
                n_before = len(self.merges)
                start = self._start(self._groups(n_components))
                result = run_em(start, self.rows, max_iter=_STEPS, tol=self.tol)
                self._sort_nodes(result.point)
                self.lower_bound = result.bounds[-1]
                self.fitted, self._stats = result.point.sorted(result.stats)
                self._measure(n_before)

    def end(self) -> None:
        """Merge what is left, so that the tree has one root; fit only to measure what is lost."""
        self.classes = self.classes[:0]
        if self.fitted.family.estimated_losses:
            self.to(1)
        self._groups(1)

    # Which components are merged.

    def _groups(self, n_groups: int) -> Array:
        """Merge nodes; return the new node that each component (K,) is part of."""
        K = len(self.nodes)
        fitted = self.fitted
        alive = self.alive
        self.nodes = self.nodes.copy()
        group = np.arange(K)
        centres = fitted.centres
        if fitted.family.units is not None:
            centres = centres / fitted.family.units
        # First components without rows, which have been pruned: to the nearest one, at no loss.
        targets = alive
        if len(alive) == 0:
            targets = np.array([0])
        without_rows = np.setdiff1d(np.arange(K), targets)
        for k in without_rows[: K - n_groups]:
            nearest = targets[np.linalg.norm(centres[targets] - centres[k], axis=1).argmin()]
            self._merge(group, nearest, k, 0.0)
        # Then those with rows: the pairs that lose least beyond chance.
        n_left = n_groups - (len(np.unique(group)) - len(alive))
        if n_left < len(alive):
            cost = fitted.family.merge_cost(self._stats, fitted.components, alive)
            if len(self.classes):
                classes_left = np.flatnonzero(self.classes >= 0)
                class_of = np.full(K, -1)
                class_of[self.classes[classes_left]] = classes_left
                cost = KeptApart(cost, class_of[alive])
            _, merges = merge_greedily(cost, n_left)
            for i, j, loss in merges:
                self._merge(group, alive[i], alive[j], max(loss, 0.0))
        first, group = np.unique(group, return_inverse=True)
        self.nodes = self.nodes[first]
        stay = np.isin(self.classes, alive)
        self.classes = np.where(stay, group[self.classes], -1)
        return group

    def _merge(self, group: Array, i: int, j: int, loss: float) -> None:
        """Put the components of the group of j into that of i, under a new node."""
        first, second = sorted((group[i], group[j]))
        loss *= self.rows.weight_unit
        self.merges.append((int(self.nodes[first]), int(self.nodes[second]), loss))
        group[group == second] = first
        self.nodes[first] = self._n_leaves + len(self.merges) - 1

    # What merges have lost, where that was only estimated.

    def _log_likelihood(self) -> float:
        """Return the log-likelihood of rows under their own components, if it is needed."""
        if not self.fitted.family.estimated_losses:
            return 0.0
        fitted = self.fitted.knowing(self._known_now())
        return complete_log_likelihood(fitted, self.rows) * self.rows.weight_unit

    def _measure(self, n_before: int) -> None:
        """Put the measured loss in place of estimates, which share it, from a merge number on."""
        if not self.fitted.family.estimated_losses:
            return
        before = self._log_likelihood_now
        self._log_likelihood_now = self._log_likelihood()
        lost = max(before - self._log_likelihood_now, 0.0)
        estimates = np.array([loss for _, _, loss in self.merges[n_before:]])
        if not estimates.any():
            estimates[:] = 1
        for number, loss in enumerate(lost * estimates / estimates.sum(), n_before):
            first, second, _ = self.merges[number]
            self.merges[number] = first, second, float(loss)

    # The fit of fewer components.

    def _start(self, group: Array) -> Point:
        """Return where the fit begins: by the groups' sums of statistics."""
        K = len(self.nodes)
        fitted = self.fitted
        mixture = replace(self.of_size(K), known=self._known_now())
        stats = self._stats.first_components(len(group))
        by_group = np.lexsort((-stats.counts, group))
        largest = by_group[np.searchsorted(group[by_group], np.arange(K))]
        about = mixture.family.from_centres(fitted.centres[largest])
        stats = summed(mixture.family, stats, group, mixture.family.centred_at(about))
        family = mixture.family.with_prior_from(stats)
        merged = np.bincount(group, minlength=K) > 1
        first = family.initial(stats, about)
        first = family.inherit(first, fitted.components, largest, merged)
        of_background = fitted.params.weights[fitted.n_components :]  # it stays
        weights = (1 - of_background.sum()) * stats.counts / stats.counts.sum()
        params = Params.first(np.append(weights, of_background), first).pruned()
        point = Point(replace(mixture, family=family), params)
        self._sort_nodes(point)
        params = mixture.constraint.apply(family, params)
        weights = mixture.weight_prior.clip(params.weights)
        return point.at(replace(params, weights=weights))

    def _known_now(self) -> Array | None:
        """Return the known labels of rows by the components of the current mixture."""
        if self.known is None:
            return None
        K = len(self.nodes)
        # The component of each known label: classes come first, then numbers that are no class. The
        # background has the number after them, and what is not known, -1, is the last entry.
        components = np.full(self._n_leaves + 2, -1, dtype=np.int32)
        components[: len(self.classes)] = self.classes
        components[self._n_leaves] = K
        return components[self.known]

    def _sort_nodes(self, point: Point) -> None:
        order = point.mixture.constraint.order(point.components)
        if order is not None:
            self.nodes = self.nodes[order]


def summed(
    family: AnyFamily, stats: Statistics, group: Array, centred_at: Array | None
) -> Statistics:
    """Return the statistics of groups of components, about points (K, d); `group` is of each."""
    stats = family.shift_moments(stats, None if centred_at is None else centred_at[group])
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))

    def of_groups(sums: Array, axis: int | None) -> Array:
        return sums if axis is None else np.add.reduceat(sums.take(order, axis), starts, axis)

    moments = tuple(map(of_groups, stats.moments, family.component_axes))
    return replace(stats, counts=of_groups(stats.counts, 0), moments=moments, centred_at=centred_at)
