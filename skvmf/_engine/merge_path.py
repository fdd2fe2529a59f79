"""From a fitted mixture down to fewer components: merge two, fit a little, and so on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._typing import Array
from .blocks import Block
from .contracts import DenseResponsibilities, Params, Responsibilities, Statistics, as_dense
from .em import run_em
from .merging import merge_greedily
from .model import FittedMixture, Mixture
from .parallel import limited_blas
from .partitions import Assignment, assignment, partition_statistics
from .rows import RowSource

_STEPS = 3  # of EM after a merge


@dataclass
class MergePath:
    """Mixtures of fewer and fewer components, each from the one before.

    `_of_size` returns the mixture of a number of components for the rows. The path begins with
    `fitted`, whose bound is `_lower_bound`; fits stop when the bound changes by at most `_tol`.

    `nodes` (n_components,) are the components of `fitted`, the current mixture, as nodes of the
    tree: a component of the first mixture by its number, a merged one by the number of the first
    mixture's components plus its place in `merges`. A merge is two nodes, and the log-likelihood
    that was lost.
    """

    _of_size: Callable[[int], Mixture]
    fitted: FittedMixture
    _lower_bound: float
    _rows: RowSource
    _tol: float
    _lost: bool = False  # whether no component has a row any more

    def __post_init__(self) -> None:
        self._n_leaves = self.fitted.n_components
        self.nodes = np.arange(self._n_leaves)
        self.merges: list[tuple[int, int, float]] = []

    @property
    def n_active(self) -> int:
        """Number of components with positive weight, 0 if none has a row."""
        return 0 if self._lost else int(np.count_nonzero(self.fitted.weights))

    def measures(self) -> dict[str, float]:
        """Return the number of components, the bounds and the criteria of the current mixture."""
        log_likelihood, n_samples = self.fitted.log_likelihood(self._rows)
        n_parameters = self.fitted.n_parameters
        bic = -2 * log_likelihood + n_parameters * float(np.log(max(n_samples, 1)))
        return {
            "n_components": len(self.nodes),
            "n_parameters": n_parameters,
            "lower_bound": self._lower_bound,
            "log_likelihood": log_likelihood,
            "bic": bic,
            "icl": bic + 2 * self.fitted.entropy(self._rows, self.fitted.mixture.posterior),
        }

    def to(self, n_components: int) -> None:
        """Go down to `n_components`: merge the pairs that lose least, and fit a few steps.

        Components without weight are merged first, so that no mixture of the path has any. If
        the fit prunes more, the path continues to a mixture without them. If all are
        pruned or none has a row, the path ends there.
        """
        with limited_blas():
            while len(self.nodes) > n_components or self.n_active < len(self.nodes):
                if self.n_active == 0:
                    return
                n_components = min(n_components, self.n_active)
                stats = self._statistics()
                if not stats.counts[: len(self.nodes)].any():
                    self._lost = True
                    return
                spec, params = self._start(self._groups(stats, n_components), stats.counts)
                params = replace(params, weights=spec.weight_prior.clip(params.weights))
                result = run_em(spec, self._rows, params, max_iter=_STEPS, tol=self._tol)
                self._sort_nodes(spec, result.params)
                self._lower_bound = result.bounds[-1]
                self.fitted, _ = spec.fitted(result.params)

    def end(self) -> None:
        """Merge what is left without another fit, so that the tree has one root."""
        self._groups(self._statistics(), 1)

    def _statistics(self) -> Statistics:
        return self._rows.map_reduce(partial(self.fitted.mixture.expect, self.fitted.params))

    # Which components are merged.

    def _groups(self, stats: Statistics, n_groups: int) -> Array:
        """Merge nodes; return the new node that each component (K,) is part of."""
        K = len(self.nodes)
        self.nodes = self.nodes.copy()
        group, fitted = np.arange(K), self.fitted
        alive = np.flatnonzero((stats.counts[:K] > 0) & (fitted.weights > 0))
        centres = fitted.family.centres(fitted.params.components)
        others = alive if len(alive) else np.array([0])  # else none has a row
        for k in np.setdiff1d(np.arange(K), others)[: K - n_groups]:  # pruned before
            nearest = others[np.linalg.norm(centres[others] - centres[k], axis=1).argmin()]
            self._merge(group, nearest, k, 0.0)
        n_left = n_groups - (len(np.unique(group)) - len(alive))
        if n_left < len(alive):  # those with rows: the pairs that lose least beyond chance
            cost = fitted.family.merge_cost(stats, fitted.params.components, alive)
            for i, j, loss in merge_greedily(cost, n_left)[1]:
                self._merge(group, alive[i], alive[j], max(loss, 0.0))
        first, group = np.unique(group, return_inverse=True)
        self.nodes = self.nodes[first]
        return group

    def _merge(self, group: Array, i: int, j: int, loss: float) -> None:
        """Put the components of the group of j into that of i, under a new node."""
        first, second = sorted((group[i], group[j]))
        self.merges.append((int(self.nodes[first]), int(self.nodes[second]), loss))
        group[group == second] = first
        self.nodes[first] = self._n_leaves + len(self.merges) - 1

    # The fit of fewer components.

    def _start(self, group: Array, counts: Array) -> tuple[Mixture, Params]:
        """Return a mixture and its first parameters: those of the groups' responsibilities."""
        K, fitted = len(self.nodes), self.fitted
        spec, assign = self._of_size(K), self._assignment_to_groups(group)
        by_group = np.lexsort((-counts[: len(group)], group))
        largest = by_group[np.searchsorted(group[by_group], np.arange(K))]
        centres = fitted.family.centres(fitted.params.components)[largest]
        stats, about = partition_statistics(spec.family, self._rows, centres, assign)
        family = spec.family.with_prior_from(stats)
        merged = np.bincount(group, minlength=K) > 1
        first = family.initial(stats, about)
        first = family.kept(first, fitted.params.components, largest, merged)
        rest = fitted.params.weights[fitted.n_components :]  # of a background: it stays
        weights = np.append((1 - rest.sum()) * stats.counts / stats.counts.sum(), rest)
        params = Params.first(weights, first).pruned()
        self._sort_nodes(spec, params)
        params = spec.constraint.apply(family, params)
        return replace(spec, family=family), params

    def _assignment_to_groups(self, group: Array) -> Assignment:
        """Return a function that assigns the rows of a block to groups of current components."""
        K, to_components = len(self.nodes), assignment(self.fitted.mixture, self.fitted.params)
        by_group = np.argsort(group, kind="stable")
        places = np.arange(len(group))  # of members within their groups
        places -= np.searchsorted(group[by_group], group[by_group])
        members = [by_group[places == place] for place in range(places.max() + 1)]

        def assign(block: Block) -> tuple[Responsibilities, Array]:
            responsibilities, counts = to_components(block)
            resp = as_dense(responsibilities, len(group))
            of_groups = resp[:, members[0]]
            for others in members[1:]:
                of_groups[:, group[others]] += resp[:, others]
            counts_of_groups = np.bincount(group, weights=counts, minlength=K)
            return DenseResponsibilities(of_groups), counts_of_groups

        return assign

    def _sort_nodes(self, spec: Mixture, params: Params) -> None:
        order = spec.constraint.order(params.components)
        if order is not None:
            self.nodes = self.nodes[order]
