"""Split-and-merge EM: components with covariances on a sample, more of them than asked for.

Simple components (`skvmf._engine.search.overseeding`) find where clusters are, but cover
a long one with several and let a wide one swallow its neighbours. With covariances, shrunk so that
few rows suffice, the exact change of the mixture's likelihood tells which two to merge;
responsibilities are soft, so a cut gains next to nothing by chance. Then all components are
split and merged again, as long as that helps, in the spirit of Ueda et al. (Neural Computation
12, 2000).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from scipy import sparse
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Point
from ..families.gaussian import ShrunkGaussian
from ..families.gaussian_products import GaussianComponents
from ..families.responsibilities import as_dense
from ..families.statistics import Statistics
from ..families.tiles import tiles
from ..rows.blocks import DenseBlock
from ..rows.parallel import map_reduce
from .longest_axes import half_axes
from .partitions import assignment, partition_statistics
from .sample import FoundStart, FreePoint, Sample

# Steps of EM before, between and after merging: before, components with covariances settle at the
# rows of simple ones; between, one mends what a merge has moved; after, costs are not compared.
FIRST_STEPS = 2
STEPS_BETWEEN = 1
LAST_STEPS = 3

# Each component may be merged with so many of the nearest: of farther ones the cost is large.
N_NEIGHBOURS = 4

# Half of the surplus components are merged at a time, so that costs stay true; or all, if they are
# at most a sixteenth of those to be left.
SURPLUS_FACTOR = 2
SMALL_SURPLUS = 1 / 16

# Costs are known from a step ago; the three least for each pair to be merged are computed anew.
N_RECOMPUTED = 3

# Iterations of the power method for the longest axes: any direction near one cuts a cluster in two.
POWER_ITERATIONS = 3

# Splits at most; after one that gains less than a hundredth of a nat a row there is no other.
MAX_SPLITS = 3
MIN_SPLIT_GAIN = 1e-2

# A row counts in what merging costs where its responsibility is larger: others change the cost by
# less than the steps between change it.
MIN_COUNTED_RESPONSIBILITY = 5e-4

# Of few rows all are scored under all merged components at once: that many, times the products of a
# score. They take some ten microseconds for a pair, where to gather its rows takes a hundred. An
# exponential and a logarithm take as long as 80 products.
MAX_PRODUCTS_OF_FEW_ROWS = 2**18
PRODUCTS_OF_LOGARITHM = 80

# Pairs that a thread takes at once, or as many as have so many entries of covariances (8 MiB).
PAIRS_PER_BLOCK = 64
MAX_BLOCK_ENTRIES = 2**20

# Of rows that merged components explain far better than all do now: exponentials stay finite, and
# so do logarithms of what is left of others.
MAX_LOG_SHARE = 50
LEAST_RATIO = 1e-300

Costs: TypeAlias = dict[tuple[int, ...], float]  # of merging, by the numbers of two components


@dataclass(eq=False)
class _Expectation:
    """Statistics of blocks, and their rows' larger responsibilities, log-densities and weights.

    Responsibilities (n, M) are sparse, unless rows are few.
    """

    stats: Statistics
    of_rows: list[tuple[Any, Array, Array]]

    def __iadd__(self, other: "_Expectation") -> "_Expectation":
        self.stats += other.stats
        self.of_rows += other.of_rows
        return self


@dataclass(frozen=True, eq=False)
class SplitAndMerge:
    """Merge components on a sample, then split and merge them again."""

    family: ShrunkGaussian
    sample: Sample
    n_components: int  # to be left

    def run(self, start: FreePoint, rng: Generator, watch: OnIteration = ignore) -> FoundStart:
        """Return `n_components` components.

        `start` has more. ``watch(n_splits, bounds, point)`` is called each time that so many
        are left, and may stop the run.
        """
        point, bound = self._merge(start)
        bounds = [bound]
        stop = watch(0, bounds, point)
        while not stop and len(bounds) <= MAX_SPLITS and self.n_components > 1:
            improved, bound = self._merge(self._split(point, rng))
            gain = bound - bounds[-1]
            if gain > 0:
                point = improved
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, point) or gain < MIN_SPLIT_GAIN
        return FoundStart(point, bounds[-1])

    def point(self, weights: Array, components: GaussianComponents) -> FreePoint:
        """Return a point of components with covariances."""
        return FreePoint.of(self.family, weights, components)

    def with_covariances(self, simple: Point) -> FreePoint:
        """Return components with the moments of the rows of simple ones, of another family."""
        stats, centred_at = partition_statistics(
            self.family, self.sample.rows, simple.centres, assignment(simple)
        )
        components, _ = self.family.maximize(stats, centred_at)
        return self.point(stats.counts / stats.counts.sum(), components)

    def _merge(self, point: FreePoint) -> tuple[FreePoint, float]:
        """Merge until `n_components` are left; return these and their bound."""
        point, _ = self.sample.em(point, FIRST_STEPS)
        known: Costs = {}
        while point.n_components > self.n_components:
            point, known = self._merge_some(point, known)
            point, _ = self.sample.em(point, STEPS_BETWEEN)
        return self.sample.em(point, LAST_STEPS)

    # Splitting.

    def _split(self, point: FreePoint, rng: Generator) -> FreePoint:
        """Split each component across its longest axis, in two of its own shape."""
        components = self.family.split(point.components, self._half_axes(point, rng))
        return self.point(0.5 * np.tile(point.weights, 2), components)

    def _half_axes(self, point: FreePoint, rng: Generator) -> Array:
        """Return how far half of each component's rows are off along its longest axis, (K, d)."""
        rows = self.sample.rows
        counts = point.weights * self.sample.total_weight
        divisors = np.where(counts > 0, counts, 1.0)[:, None]
        factors = rng.standard_normal(rows.n_rows)

        def scatter(axes: Array) -> Array:
            products: Array = rows.map_reduce(partial(_scatter_products, point, axes))
            return products / divisors

        first = rows.map_reduce(partial(_random_sums, point, factors))
        steps, _ = half_axes(scatter, first, POWER_ITERATIONS)
        return steps

    # Merging.

    def _merge_some(self, point: FreePoint, known: Costs) -> tuple[FreePoint, Costs]:
        """Merge the cheapest disjoint pairs, with a step of EM; `known` costs are a step old."""
        M = point.n_components
        surplus = M - self.n_components
        n_wanted = -(-surplus // SURPLUS_FACTOR)
        if surplus <= SMALL_SURPLUS * self.n_components:
            n_wanted = surplus
        pairs = self._neighbours(point)
        # Pairs of unknown costs, -inf, come first; those that were cheapest are computed again.
        costs = np.array([known.get((a, b), -np.inf) for a, b in pairs.tolist()])
        n_computed = np.isneginf(costs).sum() + N_RECOMPUTED * n_wanted
        computed = np.argsort(costs, kind="stable")[:n_computed]
        expectation = self.sample.rows.map_reduce(partial(_expect, point, self._few_rows))
        costs[computed] = self._costs(point, pairs[computed], expectation)
        unpaired = np.ones(M, dtype=bool)
        cheapest: list[Array] = []
        for pair in pairs[np.argsort(costs, kind="stable")]:
            if len(cheapest) < n_wanted and unpaired[pair].all():
                unpaired[pair] = False
                cheapest.append(pair)
        merged = np.array(cheapest)
        left = np.ones(M, dtype=bool)
        left[merged[:, 1]] = False
        new_numbers = np.cumsum(left) - 1
        untouched = unpaired[pairs].all(axis=1)
        numbers = map(tuple, new_numbers[pairs[untouched]].tolist())
        known = dict(zip(numbers, costs[untouched], strict=True))
        stats, centred_at = self.family.merge_statistics(
            expectation.stats, point.components, merged
        )
        components, _ = self.family.maximize(stats, centred_at)
        return self.point(stats.counts / stats.counts.sum(), components), known

    def _neighbours(self, point: FreePoint) -> Array:
        """Return the pairs (n_pairs, 2) of components that are near each other for their sizes."""
        means = point.components.means
        M = len(means)
        sizes = np.broadcast_to(self.family.type.sizes(point.components.covariances), M)
        n_near = min(N_NEIGHBOURS, M - 1)
        near = np.empty((M, n_near), dtype=np.intp)
        for tile in tiles(M):
            distances = cdist(means[tile], means, "sqeuclidean") / (sizes[tile, None] + sizes)
            np.fill_diagonal(distances[:, tile], np.inf)
            near[tile] = np.argsort(distances, axis=1, kind="stable")[:, :n_near]
        first = np.repeat(np.arange(M), n_near)
        second = near.ravel()
        numbers = np.unique(np.minimum(first, second) * M + np.maximum(first, second))
        return np.stack(np.divmod(numbers, M), axis=1)

    @property
    def _few_rows(self) -> bool:
        """Whether all rows are scored under all merged components at once."""
        n_products = self.family.dim  # of a score
        if self.family.type.full:
            n_products = n_products**2
        n_products += PRODUCTS_OF_LOGARITHM
        return self.sample.rows.n_rows * n_products <= MAX_PRODUCTS_OF_FEW_ROWS

    def _costs(self, point: FreePoint, pairs: Array, expectation: _Expectation) -> Array:
        """Return what merging each of some pairs (m, 2) alone loses, (m,)."""
        losses = _Losses(self.family, self.sample, point, expectation, self._few_rows)
        size = max(1, min(PAIRS_PER_BLOCK, MAX_BLOCK_ENTRIES // self.family.dim**2))
        blocks = [pairs[i : i + size] for i in range(0, len(pairs), size)]
        return np.concatenate(map_reduce(losses.of_pairs, blocks).total())


class _Losses:
    """What merging two components a and b loses: the density p becomes p - p_a - p_b + p_ab."""

    def __init__(
        self,
        family: ShrunkGaussian,
        sample: Sample,
        point: FreePoint,
        expectation: _Expectation,
        few_rows: bool,
    ) -> None:
        responsibilities, log_densities, weights = zip(*expectation.of_rows, strict=True)
        self._family = family
        self._sample = sample
        self._point = point
        self._few_rows = few_rows
        self._log_densities = np.concatenate(log_densities)
        self._weights = np.concatenate(weights)
        self._responsibilities: Any
        if few_rows:
            self._responsibilities = np.concatenate(responsibilities)
        else:
            self._responsibilities = sparse.csc_array(sparse.vstack(responsibilities))

    def of_pairs(self, pairs: Array) -> list[Array]:
        """Return the losses of some pairs (m, 2), in arrays one after the other."""
        merged = self._family.merge_pairs(self._point.components, self._point.weights, pairs)
        with np.errstate(divide="ignore"):
            log_weights = np.log(self._point.weights[pairs].sum(axis=1))
        if self._few_rows:
            shares = self._responsibilities[:, pairs].sum(axis=2)
            all_rows = np.arange(len(self._weights))
            return [self._among(all_rows, shares, log_weights, merged)]
        of_pairs = []
        for k, (a, b) in enumerate(pairs.tolist()):
            rows, share = _union(self._responsibilities, a, b)
            only = self._family.some(merged, slice(k, k + 1))
            of_pairs.append(self._among(rows, share[:, None], log_weights[k], only))
        return of_pairs

    def _among(
        self, rows: Array, shares: Array, log_weights: Array, merged: GaussianComponents
    ) -> Array:
        """Return losses (m,) among some rows (n,), with shares (p_a + p_b) / p (n, m)."""
        block = DenseBlock(self._sample.take(rows), self._weights[rows], None, 0)
        scores = self._family.scores(block, merged).log_density()
        log_shares = scores + log_weights - self._log_densities[rows, None]
        counted = shares > 0
        gained = np.exp(np.minimum(log_shares[counted], MAX_LOG_SHARE))
        ratios = np.maximum(np.maximum(1 - shares[counted], 0) + gained, LEAST_RATIO)
        gains = np.zeros_like(shares)
        gains[counted] = np.log(ratios)
        losses: Array = -(block.weights @ gains)
        return losses


def _expect(point: FreePoint, few_rows: bool, block: DenseBlock) -> _Expectation:
    """Return the sums of a block, and what merging costs need of its rows."""
    assigned = point.assign(block)
    counts = assigned.counts
    weights = block.weights
    moments = point.family.moments(block, assigned.responsibilities, point.components)
    centred_at = point.family.centred_at(point.components)
    stats = Statistics(
        value=0.0, total=weights.sum(), counts=counts, moments=moments, centred_at=centred_at
    )
    resp = as_dense(assigned.responsibilities, len(counts))
    resp = resp / np.where(weights > 0, weights, 1.0)[:, None]
    large = np.where(resp > MIN_COUNTED_RESPONSIBILITY, resp, 0.0)
    if not few_rows:
        large = sparse.csr_array(large)
    return _Expectation(stats, [(large, assigned.values, weights)])


def _random_sums(point: FreePoint, factors: Array, block: DenseBlock) -> Array:
    """Return the sums (K, d) of components' rows, less their means, times rows' factors (n,)."""
    own = factors[block.span, None]
    return _sums_of_gaps(point, block, block.X - point.centres.mean(axis=0), own)


def _scatter_products(point: FreePoint, axes: Array, block: DenseBlock) -> Array:
    """Return the scatter matrix of each component's rows times its axis, (K, d)."""
    centre = point.centres.mean(axis=0)
    gaps = block.X - centre
    along = gaps @ axes.T - np.einsum("kd,kd->k", point.centres - centre, axes)
    return _sums_of_gaps(point, block, gaps, along)


def _sums_of_gaps(point: FreePoint, block: DenseBlock, gaps: Array, factors: Array) -> Array:
    """Return the sums (K, d) of components' rows, less their means, times factors (n, K).

    `gaps` (n, d) are the rows less the mean of all components' means.
    """
    offsets = point.centres - point.centres.mean(axis=0)
    resp = as_dense(point.assign(block).responsibilities, point.n_components)
    factors = factors * resp
    sums: Array = factors.T @ gaps - factors.sum(axis=0)[:, None] * offsets
    return sums


def _union(columns: sparse.csc_array, a: int, b: int) -> tuple[Array, Array]:
    """Return the rows where one of two sorted columns is not zero, and the columns' sum there."""
    rows, values = _column(columns, a)
    other_rows, other_values = _column(columns, b)
    places = np.searchsorted(rows, other_rows)
    in_both = np.append(rows, -1)[places] == other_rows
    sums = np.append(values, other_values[~in_both])
    sums[places[in_both]] += other_values[in_both]
    return np.append(rows, other_rows[~in_both]), sums


def _column(columns: sparse.csc_array, k: int) -> tuple[Array, Array]:
    """Return the rows in which a column is not zero, and its values there."""
    span = slice(columns.indptr[k], columns.indptr[k + 1])
    return columns.indices[span], columns.data[span]
