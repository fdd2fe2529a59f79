"""Gaussians of their own shapes on a sample: twice too many, joined where that costs least.

Balls (`skvmf._engine.initialization.base`) find where clusters are, but cover a long one with
several and let a wide one swallow its neighbours. With covariances of their own, kept sound by
pseudo-rows, the exact change of the mixture's likelihood says which two to make one; shares are
soft, so a cut gains next to nothing by chance. Then all are cut at random rows and joined again, as
long as that helps, in the spirit of split-and-merge EM (Ueda et al., Neural Computation 12, 2000).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy import sparse

from ..._typing import Array
from ..contracts.model_parts import Family
from ..contracts.responsibilities import as_dense
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..data.blocks import DenseBlock
from ..em.loop import OnIteration, ignore
from ..families.gaussian_products import GaussianComponents
from ..families.shrinkage import ShrunkGaussian
from ..parallel.map_reduce import map_reduce
from .base import plain_model, plain_step, share_by
from .partitions import partition_statistics

FIRST_STEPS, STEPS, LAST_STEPS = 2, 2, 3  # of EM before components are joined, between, after
NEIGHBOURS = 4  # of each component that it may be joined with
PART = 2  # of the components that are too many, one in so many is joined at a time
AT_ONCE = 16  # all, where there are so many times as many components as are too many
AGAIN = 3  # pairs whose costs were found a step ago are looked at again for each to be joined
POWERS = 3  # of a scatter, that show its longest axis
CUTS = 3  # times that components are cut again, at most
ENOUGH = 1e-2  # gain of the bound below which they are not
SMALL = 5e-4  # share below which a row has no say in what joining costs
BLOCK = 64  # pairs that one thread takes

Costs: TypeAlias = dict[tuple[int, ...], float]  # of unions, by the numbers of two components


@dataclass
class _Shared:
    """What blocks of rows say: statistics, and the larger shares, values and weights of rows."""

    stats: Statistics
    responsibilities: list[sparse.csr_array]
    values: list[Array]
    weights: list[Array]

    def __iadd__(self, other: "_Shared") -> "_Shared":
        self.stats += other.stats
        self.responsibilities += other.responsibilities
        self.values += other.values
        self.weights += other.weights
        return self


@dataclass(frozen=True)
class SplitAndMerge:
    """Components of their own shapes on a sample, joined until there are as many as asked for.

    Parameters
    ----------
    family : ShrunkGaussian
        The components.
    rows : RowSource
        The sample.
    n_components : int
        How many components are to be left.
    """

    family: ShrunkGaussian
    rows: RowSource
    n_components: int

    def run(
        self, start: Params, rng: np.random.Generator, watch: OnIteration = ignore
    ) -> tuple[Params, float]:
        """Return parameters of `n_components` components, and their bound on the sample.

        `start` are some more components. ``watch(n_cuts, bounds, params)`` is called after
        components are joined, and may stop what follows.
        """
        params, bound = self._reduced(start)
        bounds = [bound]
        stop = watch(0, bounds, params)
        while not stop and len(bounds) <= CUTS and self.n_components > 1:
            more, bound = self._reduced(self._cut(params, rng))
            gain = bound - bounds[-1]
            if gain > 0:
                params = more
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, params) or gain < ENOUGH
        return params, bounds[-1]

    def shaped(self, family: Family, simple: Params) -> Params:
        """Return components with the shapes of what simple ones, of another family, share in."""
        centres = family.centres(simple.components)
        stats, about = partition_statistics(
            self.family, self.rows, centres, share_by(family, simple)
        )
        components, _ = self.family.maximize(stats, about)
        return Params.first(stats.counts / stats.counts.sum(), components)

    def _reduced(self, params: Params) -> tuple[Params, float]:
        """Return what joining the components that are too many leaves, and its bound."""
        params, _ = self._climbed(params, FIRST_STEPS)
        known: Costs = {}
        while len(params.weights) > self.n_components:
            params, known = self._joined(params, known)
            params, _ = self._climbed(params, STEPS - 1)
        return self._climbed(params, LAST_STEPS)

    def _climbed(self, params: Params, n_steps: int) -> tuple[Params, float]:
        bound = -np.inf
        for _ in range(n_steps):
            params, bound = plain_step(self.family, self.rows, params)
        return params, bound

    def _cut(self, params: Params, rng: np.random.Generator) -> Params:
        """Cut each component in two across its longest axis."""
        old, n = params.components, len(params.weights)
        steps, halves = self._longest_axes(params, rng), np.tile(np.arange(n), 2)
        components = self.family.components(
            np.vstack([old.means - steps, old.means + steps]),
            self.family.type.select(old.covariances, halves),
        )
        return Params.first(0.5 * params.weights[halves], components)

    def _longest_axes(self, params: Params, rng: np.random.Generator) -> Array:
        """Return what half of the rows lie off to one side on average, (K, d), by powers."""
        counts = params.weights * self.rows.total_weight
        axes = rng.standard_normal(params.components.means.shape)
        for _ in range(POWERS):
            axes /= _lengths(axes)[:, None]
            sums = self.rows.map_reduce(partial(self._along, params, axes))
            variances = _lengths(sums) / np.where(counts > 0, counts, 1.0)
            axes = np.where(variances[:, None] > 0, sums, axes)
        axes /= _lengths(axes)[:, None]
        half: Array = 0.8 * np.sqrt(variances)[:, None] * axes  # E|z| of a normal z
        return half

    def _along(self, params: Params, axes: Array, block: DenseBlock) -> Array:
        """Return the scatter (K, d, d) of each component times its axis."""
        means = params.components.means
        centre = means.mean(axis=0)
        responsibilities, counts = share_by(self.family, params)(block)
        gaps, offsets = block.X - centre, means - centre
        along = gaps @ axes.T - np.einsum("kd,kd->k", offsets, axes)
        along *= as_dense(responsibilities, len(counts))
        sums: Array = along.T @ gaps - along.sum(axis=0)[:, None] * offsets
        return sums

    # Joining.

    def _joined(self, params: Params, known: Costs) -> tuple[Params, Costs]:
        """Return what a step of EM makes of the components when the cheapest pairs are one.

        With the costs of pairs that are still there; `known` are such, from a step ago.
        """
        M = len(params.weights)
        surplus = M - self.n_components
        n_wanted = surplus if surplus * AT_ONCE <= self.n_components else -(-surplus // PART)
        pairs = self._pairs(params.components)
        costs = np.array([known.get((a, b), -np.inf) for a, b in pairs.tolist()])
        again = np.argsort(costs, kind="stable")[: np.isneginf(costs).sum() + AGAIN * n_wanted]
        shared = self.rows.map_reduce(partial(self._shared, params))
        costs[again] = self._costs(params, pairs[again], shared)
        free = np.ones(M, dtype=bool)
        chosen: list[Array] = []
        for pair in pairs[np.argsort(costs, kind="stable")]:
            if len(chosen) < n_wanted and free[pair].all():
                free[pair] = False
                chosen.append(pair)
        united = np.array(chosen)
        numbers = np.cumsum(~np.isin(np.arange(M), united[:, 1])) - 1  # of those that are left
        same = free[pairs].all(axis=1)
        left = map(tuple, numbers[pairs[same]].tolist())
        return self._united(params, shared.stats, united), dict(zip(left, costs[same], strict=True))

    def _united(self, params: Params, stats: Statistics, pairs: Array) -> Params:
        """Maximize with the statistics of the second of each pair added to those of the first."""
        kind, old, (a, b) = self.family.type, params.components, pairs.T
        assert stats.origins is not None
        origins = stats.origins.copy()
        origins[b] = origins[a]
        stats = self.family.recenter(stats, origins)
        counts, (first, second) = stats.counts, stats.moments
        for part in (counts, first) if kind.shared else (counts, first, second):
            part[a] += part[b]
        left = np.delete(np.arange(len(counts)), b)
        moments = (first[left], kind.select(second, left))
        stats = replace(stats, counts=counts[left], moments=moments, origins=origins[left])
        before = self.family.components(old.means[left], kind.select(old.covariances, left))
        components, _ = self.family.maximize(stats, before)
        return Params.first(stats.counts / stats.counts.sum(), components)

    def _pairs(self, components: GaussianComponents) -> Array:
        """Return the pairs (n_pairs, 2) of components that are near each other."""
        means, M = components.means, len(components.means)
        sizes = np.broadcast_to(self.family.type.sizes(components.covariances), M)
        found = set()
        for i in range(M):
            distances = ((means - means[i]) ** 2).sum(axis=1) / (sizes + sizes[i])
            distances[i] = np.inf
            near = np.argsort(distances, kind="stable")[: min(NEIGHBOURS, M - 1)]
            found |= {(min(i, j), max(i, j)) for j in near.tolist()}
        return np.array(sorted(found))

    def _shared(self, params: Params, block: DenseBlock) -> _Shared:
        model, components = plain_model(self.family), params.components
        responsibilities, counts, values = model.posterior.assign(
            model.scores(params, block), params.weights, block.weights
        )
        weights, moments = block.weights, self.family.moments(block, responsibilities, components)
        origins = self.family.origins(components)
        stats = Statistics(0.0, weights.sum(), counts, moments, origins, 0.0, np.empty(0))
        own = as_dense(responsibilities, len(counts)) / np.where(weights > 0, weights, 1.0)[:, None]
        large = sparse.csr_array(np.where(own > SMALL, own, 0.0))
        return _Shared(stats, [large], [values], [weights])

    def _costs(self, params: Params, pairs: Array, shared: _Shared) -> Array:
        """Return the loss of log-likelihood by each union alone.

        Where a and b become one, the density p of a row becomes p - p_a - p_b + p_ab.
        """
        responsibilities = sparse.csc_array(sparse.vstack(shared.responsibilities))
        values, weights = np.concatenate(shared.values), np.concatenate(shared.weights)

        def cost(a: int, b: int) -> float:
            spans = [
                slice(responsibilities.indptr[k], responsibilities.indptr[k + 1]) for k in (a, b)
            ]
            rows, of_row = np.unique(
                np.concatenate([responsibilities.indices[span] for span in spans]),
                return_inverse=True,
            )
            weight, union = self._union(params, a, b)
            if len(rows) == 0 or weight == 0:
                return 0.0
            lost = np.bincount(
                of_row, np.concatenate([responsibilities.data[span] for span in spans])
            )
            block = DenseBlock(self.rows.take(rows), weights[rows], None, 0)
            scores = self.family.scores(block, union).log_density()[:, 0]
            both = np.exp(np.minimum(np.log(weight) + scores - values[rows], 50))
            left = np.maximum(np.maximum(1 - lost, 0) + both, 1e-300)
            return -float(block.weights @ np.log(left))

        def costs(block: Array) -> list[float]:
            return [cost(int(a), int(b)) for a, b in block]

        blocks = [pairs[i : i + BLOCK] for i in range(0, len(pairs), BLOCK)]
        return np.array(map_reduce(costs, blocks).total())

    def _union(self, params: Params, a: int, b: int) -> tuple[float, GaussianComponents]:
        """Return weight and shape of one component with the mean and covariance of two."""
        kind, old, weights = self.family.type, params.components, params.weights
        weight = float(weights[a] + weights[b])
        part = weights[a] / weight if weight > 0 else 0.5
        gap = old.means[[a]] - old.means[[b]]
        mean, covariance = old.means[[b]] + part * gap, kind.select(old.covariances, [a])
        if not kind.shared:
            other = kind.select(old.covariances, [b])
            covariance = kind.united(np.array([1 - part]), covariance, other, gap)
        return weight, self.family.components(mean, covariance)


def _lengths(vectors: Array) -> Array:
    """Return the lengths of vectors whose squares may over- or underflow: scatter is a square."""
    largest = np.abs(vectors).max(axis=1)
    within = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    lengths: Array = largest * np.linalg.norm(within, axis=1)
    return lengths
