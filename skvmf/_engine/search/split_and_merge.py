"""Split-and-merge EM: components with covariances on a sample, more of them than asked for.

Simple components (`skvmf._engine.overseeding`) find where clusters are, but cover
a long one with several and let a wide one swallow its neighbours. With covariances, shrunk so that
few rows suffice, the exact change of the mixture's likelihood tells which two to merge;
responsibilities are soft, so a cut gains next to nothing by chance. Then all components are
split and merged again, as long as that helps, in the spirit of Ueda et al. (Neural Computation
12, 2000).
"""

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from scipy import sparse

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture
from ..families.family import AnyFamily
from ..families.gaussian import ShrunkGaussian
from ..families.gaussian_products import GaussianComponents
from ..families.params import Params
from ..families.responsibilities import as_dense
from ..families.statistics import Statistics
from ..rows.blocks import DenseBlock
from ..rows.parallel import map_reduce
from ..rows.sources import RowSource
from .partitions import SampleStart, assignment, em_steps, partition_statistics

FIRST_STEPS, STEPS_BETWEEN, LAST_STEPS = 2, 1, 3  # of EM before, between and after merging
NEIGHBOURS = 4  # of each component that it may be merged with
SURPLUS_FACTOR = 2  # one in so many of the surplus components is merged at a time,
SMALL_SURPLUS = 1 / 16  # or all, if they are at most such a fraction of those to be left
RECOMPUTED = 3  # of the costs known from a step ago, the least for each pair to be merged
POWER_ITERATIONS = 3  # for the longest axes
MAX_SPLITS = 3
MIN_SPLIT_GAIN = 1e-2  # of the bound; after less there is no further split
MIN_COUNTED_RESPONSIBILITY = 5e-4  # for a row to count in what merging costs
PAIRS_PER_BLOCK = 64  # for threads,
MAX_BLOCK_ENTRIES = 2**20  # or as many as have so many entries of covariances

Costs: TypeAlias = dict[tuple[int, ...], float]  # of merging, by the numbers of two components


@dataclass
class _Expectation:
    """Statistics of blocks, and their rows' larger responsibilities, log-densities and weights."""

    stats: Statistics
    of_rows: list[tuple[sparse.csr_array, Array, Array]]

    def __iadd__(self, other: "_Expectation") -> "_Expectation":
        self.stats += other.stats
        self.of_rows += other.of_rows
        return self


@dataclass
class SplitAndMerge:
    """Merge components on a sample, then split and merge them again."""

    family: ShrunkGaussian
    rows: RowSource  # the sample
    n_components: int  # to be left

    def __post_init__(self) -> None:
        self.model = Mixture.plain(self.family)

    def run(self, start: Params, rng: Generator, watch: OnIteration = ignore) -> SampleStart:
        """Return `n_components` components.

        `start` has more. ``watch(n_splits, bounds, params)`` is called each time that so many
        are left, and may stop the run.
        """
        params, bound = self._merge(start)
        bounds = [bound]
        stop = watch(0, bounds, params)
        while not stop and len(bounds) <= MAX_SPLITS and self.n_components > 1:
            improved, bound = self._merge(self._split(params, rng))
            gain = bound - bounds[-1]
            if gain > 0:
                params = improved
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, params) or gain < MIN_SPLIT_GAIN
        return SampleStart(self.model, params, bounds[-1])

    def shaped(self, family: AnyFamily, simple: Params) -> Params:
        """Return components with the moments of the rows of simple ones, of another family."""
        centres = family.centres(simple.components)
        stats, about = partition_statistics(
            self.family, self.rows, centres, assignment(Mixture.plain(family), simple)
        )
        components, _ = self.family.maximize(stats, about)
        return Params.first(stats.counts / stats.counts.sum(), components)

    def _merge(self, params: Params) -> tuple[Params, float]:
        """Merge until `n_components` are left; return these and their bound."""
        params, _ = em_steps(self.model, self.rows, params, FIRST_STEPS)
        known: Costs = {}
        while len(params.weights) > self.n_components:
            params, known = self._merge_some(params, known)
            params, _ = em_steps(self.model, self.rows, params, STEPS_BETWEEN)
        return em_steps(self.model, self.rows, params, LAST_STEPS)

    # Splitting.

    def _split(self, params: Params, rng: Generator) -> Params:
        """Split each component across its longest axis, in two of its own shape."""
        components = self.family.split(params.components, self._half_axes(params, rng))
        return Params.first(0.5 * np.tile(params.weights, 2), components)

    def _half_axes(self, params: Params, rng: Generator) -> Array:
        """Return E|z| sigma u (K, d), u the longest axis: how far half of the rows are off."""
        counts = params.weights * self.rows.total_weight
        axes = rng.standard_normal(self.family.centres(params.components).shape)
        for _ in range(POWER_ITERATIONS):
            axes /= _lengths(axes)[:, None]
            products = self.rows.map_reduce(partial(self._scatter_products, params, axes))
            variances = _lengths(products) / np.where(counts > 0, counts, 1.0)
            axes = np.where(variances[:, None] > 0, products, axes)
        axes /= _lengths(axes)[:, None]
        return 0.8 * np.sqrt(variances)[:, None] * axes

    def _scatter_products(self, params: Params, axes: Array, block: DenseBlock) -> Array:
        """Return the scatter matrix of each component's rows times its axis, (K, d)."""
        means = self.family.centres(params.components)
        centre = means.mean(axis=0)
        responsibilities, counts = assignment(self.model, params)(block)
        gaps, offsets = block.X - centre, means - centre
        along = gaps @ axes.T - np.einsum("kd,kd->k", offsets, axes)
        along *= as_dense(responsibilities, len(counts))
        return along.T @ gaps - along.sum(axis=0)[:, None] * offsets

    # Merging.

    def _merge_some(self, params: Params, known: Costs) -> tuple[Params, Costs]:
        """Merge the cheapest disjoint pairs, with a step of EM; `known` costs are a step old."""
        M = len(params.weights)
        surplus = M - self.n_components
        small = surplus <= SMALL_SURPLUS * self.n_components
        n_wanted = surplus if small else -(-surplus // SURPLUS_FACTOR)
        pairs = self._neighbours(params)
        costs = np.array([known.get((a, b), -np.inf) for a, b in pairs.tolist()])
        n_computed = np.isneginf(costs).sum() + RECOMPUTED * n_wanted
        computed = np.argsort(costs, kind="stable")[:n_computed]
        expectation = self.rows.map_reduce(partial(self._expect, params))
        costs[computed] = self._costs(params, pairs[computed], expectation)
        free = np.ones(M, dtype=bool)
        cheapest: list[Array] = []
        for pair in pairs[np.argsort(costs, kind="stable")]:
            if len(cheapest) < n_wanted and free[pair].all():
                free[pair] = False
                cheapest.append(pair)
        merged = np.array(cheapest)
        left = np.cumsum(~np.isin(np.arange(M), merged[:, 1])) - 1  # new numbers
        untouched = free[pairs].all(axis=1)
        numbers = map(tuple, left[pairs[untouched]].tolist())
        known = dict(zip(numbers, costs[untouched], strict=True))
        stats, about = self.family.merge_statistics(expectation.stats, params.components, merged)
        components, _ = self.family.maximize(stats, about)
        return Params.first(stats.counts / stats.counts.sum(), components), known

    def _neighbours(self, params: Params) -> Array:
        """Return the pairs (n_pairs, 2) of components that are near each other for their sizes."""
        means, covariances = params.components.means, params.components.covariances
        M = len(means)
        sizes = np.broadcast_to(self.family.type.sizes(covariances), M)
        pairs = set()
        for i in range(M):
            distances = ((means - means[i]) ** 2).sum(axis=1) / (sizes + sizes[i])
            distances[i] = np.inf
            near = np.argsort(distances, kind="stable")[: min(NEIGHBOURS, M - 1)]
            pairs |= {(min(i, j), max(i, j)) for j in near.tolist()}
        return np.array(sorted(pairs))

    def _expect(self, params: Params, block: DenseBlock) -> _Expectation:
        components = params.components
        assigned = self.model.assign(params, block)
        responsibilities, counts = assigned.responsibilities, assigned.counts
        log_densities = assigned.values
        weights, moments = block.weights, self.family.moments(block, responsibilities, components)
        centred_at = self.family.centred_at(components)
        stats = Statistics(0.0, weights.sum(), counts, moments, centred_at)
        resp = as_dense(responsibilities, len(counts))
        resp = resp / np.where(weights > 0, weights, 1.0)[:, None]
        large = sparse.csr_array(np.where(resp > MIN_COUNTED_RESPONSIBILITY, resp, 0.0))
        return _Expectation(stats, [(large, log_densities, weights)])

    def _costs(self, params: Params, pairs: Array, expectation: _Expectation) -> Array:
        """Return the loss by merging each pair alone: the density becomes p - p_a - p_b + p_ab."""
        parts = zip(*expectation.of_rows, strict=True)
        responsibilities = sparse.csc_array(sparse.vstack(next(parts)))
        log_densities, weights = map(np.concatenate, parts)

        def cost(a: int, b: int, merged: GaussianComponents) -> float:
            rows, lost = _union(responsibilities, a, b)  # lost is (p_a + p_b) / p
            weight = float(params.weights[a] + params.weights[b])
            if len(rows) == 0 or weight == 0:
                return 0.0
            block = DenseBlock(self.rows.take(rows), weights[rows], None, 0)
            scores = self.family.scores(block, merged).log_density()[:, 0]
            gained = np.exp(np.minimum(np.log(weight) + scores - log_densities[rows], 50))
            ratios = np.maximum(np.maximum(1 - lost, 0) + gained, 1e-300)
            return -float(block.weights @ np.log(ratios))

        def costs(block: Array) -> list[float]:
            merged = self.family.merge_pairs(params.components, params.weights, block)
            return [cost(a, b, each) for (a, b), each in zip(block.tolist(), merged, strict=True)]

        size = max(1, min(PAIRS_PER_BLOCK, MAX_BLOCK_ENTRIES // self.family.dim**2))
        starts = range(0, len(pairs), size)
        return np.array(map_reduce(costs, [pairs[i : i + size] for i in starts]).total())


def _union(columns: sparse.csc_array, a: int, b: int) -> tuple[Array, Array]:
    """Return the rows where one of two sorted columns is not zero, and the columns' sum there."""
    (rows, sums), (others, values) = (
        (columns.indices[span], columns.data[span])
        for span in (slice(columns.indptr[k], columns.indptr[k + 1]) for k in (a, b))
    )
    places = np.searchsorted(rows, others)
    both = np.append(rows, -1)[places] == others
    sums = np.append(sums, values[~both])
    sums[places[both]] += values[both]
    return np.append(rows, others[~both]), sums


def _lengths(vectors: Array) -> Array:
    """Return the lengths of vectors whose squares may over- or underflow: scatter is a square."""
    largest = np.abs(vectors).max(axis=1)
    within = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    return largest * np.linalg.norm(within, axis=1)
