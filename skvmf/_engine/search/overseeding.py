"""Overseeding: many simple components at rows of a sample, merged until so many are left.

Overseeding and pruning goes back to Dasgupta and Schulman, "A probabilistic analysis of EM for
mixtures of separated, spherical Gaussians", JMLR 8, 2007; here components are merged, where
that loses least log-likelihood (Ward, 1963). Rounds of further seeds at rows with a low
likelihood, merged again, find what is still missing, in the spirit of split-and-merge EM (Ueda et
al., Neural Computation 12, 2000) and breathing k-means (Fritzke, 2020). A round looks only at
the rows that its seeds explain better than the components do: it costs about as much as some
steps of EM with the components.

Many components are looked for in parts of the rows, the clusters of a coarse mixture, where
seeds meet only those of the same part. Merging all of them mends what the parts' borders cut. If
clusters have no neighbourhoods, parts would cut most of them: then the start is that of few
components.
"""

from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture
from ..em.posterior import FenchelYoungPosterior
from ..em.truncated import TruncatedSteps
from ..families.background import FIRST_WEIGHT, NO_BACKGROUND, Background
from ..families.family import SeedFamily
from ..families.merging import OtherRows, merge_greedily
from ..families.neighbours import nearest_points
from ..families.params import Components, Params
from ..families.statistics import Statistics
from ..rows.blocks import Block
from ..rows.parallel import for_each
from ..rows.sources import RowSource
from .partitions import SampleStart, assign_labels, em_steps, partition_statistics

SEEDS_PER_COMPONENT = 4  # at the beginning
MAX_SEEDS = 4096  # at the beginning, if there are more than two for each component
SEEDS_PER_ROUND = 2  # for each component, and as many from the rows of a background
MAX_ROUNDS = 4  # of further seeds
MIN_ROUND_GAIN = 1e-2  # of the bound; after less there is no further round
STEPS = (3, 3)  # of EM before and after merging
MAX_LAST_STEPS, MIN_STEP_GAIN = 10, 1e-3  # of EM at the end, and of the bound by each of them
FIRST_ROWS_PER_COMPONENT, MIN_ROWS = 25, 10_000  # the larger number is drawn at first
MANY, MIN_ROWS_BY_PARTS = 1000, 10  # components, and rows for each, from which parts are taken
PART_ROWS = 100  # for each part, to find the parts
PART_SURPLUS, MIN_ROWS_IN_PART = 1.5, 3  # times the share of components; rows for each of those
LARGE_SURPLUS, ROWS_FOR_LARGE = 2.0, 100  # in its place, from as many rows for each component
COMPARED_ROWS = 1000  # with rows near them,
WHOLE = 1 / 3  # of which more are in the same part, if parts leave most clusters whole
STEPS_OF_PARTS, ROUNDS_OF_PARTS = 2, 2  # of EM with the components of all parts; or truncated ones
STEPS_OF_MANY, STEPS_IN_PARTS = (2, 1), (8, 10)  # in place of `STEPS`
SMALL_GAIN = 0.05  # of that of the first round; after less there is no further one
TOWARDS_CENTRE = 2 / 3  # of the way to its component's centre every second seed is moved
BACKGROUND_ROWS_PER_SEED = 4  # at least
MAX_BACKGROUND_WEIGHT = 0.99  # at the beginning
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Assigned:
    """For each row its likeliest component, -1 for a background, log p, and how far the peak is."""

    labels: Array
    log_densities: Array
    shortfalls: Array


@dataclass
class Overseeding:
    """Seeds, merging and further rounds of both, on a sample."""

    family: SeedFamily[Components]
    rows: RowSource  # the sample
    n_components: int  # to be left
    background: Background = NO_BACKGROUND
    seeds_per_component: int = SEEDS_PER_COMPONENT
    steps: tuple[int, int] = STEPS

    def __post_init__(self) -> None:
        K, n_uniform = self.n_components, len(self.background)
        self.model = Mixture.plain(self.family, self.background)
        self.weights = self.rows.sampling_weights()
        self.n_drawable = int(np.count_nonzero(self.weights))
        enough = self.n_drawable >= MIN_ROWS_BY_PARTS * K
        self.many = K >= MANY and n_uniform == 0 and enough  # steps with all of them are spared
        if self.many:
            self.steps = STEPS_OF_MANY
        self.truncated = self.many and TruncatedSteps.possible(self.model, self.rows, K)
        least = SEEDS_PER_COMPONENT * (1 + n_uniform)
        most = max(min(self.seeds_per_component * K, max(2 * K, MAX_SEEDS)), least)
        self.n_first_seeds = min(most, self.n_drawable)

    def run(self, rng: np.random.Generator, watch: OnIteration = ignore) -> SampleStart:
        """Return `n_components` components; ``watch(n_rounds, bounds, params)`` may stop early."""
        if self.many and (start := self._by_parts(rng)) is not None:
            watch(0, [start.bound], start.params)
            return start
        _, n_steps = self.steps
        params, bound = em_steps(self.model, self.rows, self._at_once(rng), n_steps)
        bounds = [bound]
        stop = watch(0, bounds, params)
        several = self.n_components + len(self.background) > 1
        if several and self.n_drawable > 2 * self.n_components:
            while not stop and len(bounds) <= MAX_ROUNDS:
                if (improved := self._further_round(params, rng)) is None:
                    break
                improved, bound = em_steps(self.model, self.rows, improved, n_steps)
                gain = bound - bounds[-1]
                if gain > 0:
                    params = improved
                bounds.append(max(bound, bounds[-1]))
                stop = watch(len(bounds) - 1, bounds, params)
                least = SMALL_GAIN * (bounds[1] - bounds[0]) if self.many else MIN_ROUND_GAIN
                if gain < max(least, MIN_ROUND_GAIN) and len(bounds) > 2:
                    break
        if stop or self.many:
            return SampleStart(self.model, params, bounds[-1])
        return SampleStart(self.model, *self._converge(params, bounds[-1]))

    def _at_once(self, rng: np.random.Generator) -> Params:
        """Merge seeds among as many rows as suffice for it."""
        few, size = self, max(FIRST_ROWS_PER_COMPONENT * self.n_components, MIN_ROWS)
        if self.n_drawable > size and len(self.background) == 0:  # beside one, clusters are small
            few = self._on(self._some_rows(size, rng), self.n_first_seeds)
        seeds = few._first_seeds(rng)
        params = few._fit_seeds(few.rows, seeds, np.ones(len(seeds)))
        return few._merge(params, few.assign(params).labels)

    def _by_parts(self, rng: np.random.Generator) -> SampleStart | None:
        """Merge more components of parts than are wanted; None if parts cut most clusters."""
        n_parts, weights = round(np.sqrt(self.n_components) / 2), self.weights
        few = self._on(self._some_rows(max(PART_ROWS * n_parts, MIN_ROWS), rng), n_parts)
        coarse = replace(few, n_components=n_parts, steps=STEPS_IN_PARTS).run(rng).params
        parts = np.where(weights > 0, self.assign(coarse).labels, -1)
        found = self._in_parts(parts, rng) if self._keep_neighbours(parts, rng) else None
        if found is None:
            return None
        params, labels = found
        if self.truncated:
            params = self._truncated_steps(params, labels).params
        else:
            params, _ = em_steps(self.model, self.rows, params, STEPS_OF_PARTS)
        labels = self.assign(params).labels
        merged = self._merge(params, labels)
        if self.truncated:
            before, after = (self.family.centres(own.components) for own in (params, merged))
            return self._truncated_steps(merged, nearest_points(before, after, 1)[labels, 0])
        return SampleStart(self.model, *em_steps(self.model, self.rows, merged, self.steps[1]))

    def _in_parts(self, parts: Array, rng: np.random.Generator) -> tuple[Params, Array] | None:
        """Return components of parts, and labels for truncated steps; None if rows are too few."""
        n_parts, total = int(parts.max()) + 1, float(self.weights.sum())
        rngs, starts, counts = rng.spawn(n_parts), {}, np.zeros(n_parts)
        enough = self.n_drawable >= ROWS_FOR_LARGE * self.n_components
        surplus = LARGE_SURPLUS if enough else PART_SURPLUS
        labels, sizes = np.zeros(len(parts), dtype=np.int32), np.zeros(n_parts, dtype=np.int32)

        def find(part: int) -> None:
            rows = np.flatnonzero(parts == part)
            counts[part] = self.weights[rows].sum()
            share = round(surplus * self.n_components * counts[part] / total)
            sizes[part] = min(share, len(rows) // MIN_ROWS_IN_PART)
            if (K := int(sizes[part])) > 0:
                own = self._on(rows, SEEDS_PER_COMPONENT * K)
                within = replace(own, n_components=K, steps=STEPS_IN_PARTS)
                starts[part] = within.run(rngs[part], lambda *_: True).params  # before any round
                if self.truncated:  # else nobody asks for labels
                    labels[rows] = within.assign(starts[part]).labels

        for_each(find, range(n_parts))
        if sizes.sum() < self.n_components:
            return None
        first = np.minimum(np.cumsum(sizes) - sizes, sizes.sum() - 1)  # also of parts without any
        labels += first[np.maximum(parts, 0)]
        numbers = sorted(starts)
        components = reduce(self.family.append, [starts[i].components for i in numbers])
        of_components = np.concatenate([counts[i] * starts[i].weights for i in numbers])
        return self._params(of_components, components, 0.0), labels

    def _truncated_steps(self, params: Params, labels: Array) -> SampleStart:
        """Return components after rounds of truncated steps, from labels of rows, and new ones."""
        model = replace(self.model, fixed_weights=False)
        steps = TruncatedSteps(
            model, self.rows, params.n_components, MIN_STEP_GAIN, labels.astype(np.int32)
        )
        for _ in range(ROUNDS_OF_PARTS):
            params, bounds = steps.round(params, steps.cells(params))
        return SampleStart(self.model, params, bounds[-1], steps.labels)

    def _keep_neighbours(self, parts: Array, rng: np.random.Generator) -> bool:
        """Return whether most rows are in the part of the row that is nearest of many."""
        drawn = rng.permutation(self._some_rows(self.n_first_seeds + COMPARED_ROWS, rng))
        points, compared = drawn[COMPARED_ROWS:], np.sort(drawn[:COMPARED_ROWS])
        equal = self._params(
            np.ones(len(points)), self.family.at_points(self.rows.take(points)), 0.0
        )
        nearest = points[self._on(compared, len(points)).assign(equal).labels]
        return bool(np.mean(parts[nearest] == parts[compared]) > WHOLE)

    def _first_seeds(self, rng: np.random.Generator) -> Components:
        """Return seeds at rows drawn by weight, of the size of the parts near them.

        Many seeds are the clusters of the rows nearest to each, which spares a step of EM.
        """
        weights = self.weights.astype(np.float64)
        points = self.rows.take(_draw(weights, self.n_first_seeds, rng))
        equal = self._params(np.ones(len(points)), self.family.at_points(points), 0.0)
        stats = self._partition(equal, self.assign(equal).labels)
        cost = self.family.merge_cost(stats, equal.components, np.flatnonzero(stats.counts > 0))
        clusters = self.family.fit_clusters(cost, np.arange(len(cost.counts)))
        return clusters if self.many else self.family.at_points(points, clusters)

    def _some_rows(self, size: int, rng: np.random.Generator) -> Array:
        """Draw the numbers of at most `size` rows that have a weight."""
        drawable = np.flatnonzero(self.weights)
        return np.sort(rng.choice(drawable, min(size, len(drawable)), replace=False))

    def _on(self, indices: Array, width: int) -> "Overseeding":
        """Return the same on some of the rows, for `width` components."""
        return replace(self, rows=self.rows.subset(indices, self.weights[indices], width))

    def _further_round(self, params: Params, rng: np.random.Generator) -> Params | None:
        """Add and merge seeds; None where no row is explained badly, or no seed helps."""
        assigned, K = self.assign(params), self.n_components
        n_seeds = SEEDS_PER_ROUND * K * (1 + len(self.background))
        probabilities = self._seed_probabilities(assigned, n_seeds)
        if not probabilities.any():
            return None
        drawn, candidates = _draw(probabilities, n_seeds, rng), np.flatnonzero(probabilities)
        seeds = self.family.at_points(self._seed_points(drawn, assigned, params), params.components)
        n_seeds = len(drawn)
        alone = replace(self._on(candidates, n_seeds), background=NO_BACKGROUND)
        by_seeds = alone.assign(alone._params(np.ones(n_seeds), seeds, 0.0)).log_densities
        better = by_seeds + np.log(n_seeds / K) > assigned.log_densities[candidates]
        won = candidates[better | (assigned.labels[candidates] < 0)]
        if len(won) == 0:
            return None
        local = self._on(won, K + n_seeds)
        counts = np.full(n_seeds, self.rows.total_weight / K)
        more = self._fit_seeds(local.rows, seeds, counts, params)
        assigned.labels[won] = local.assign(more).labels
        return self._merge(more, assigned.labels)

    def _seed_probabilities(self, assigned: _Assigned, n_seeds: int) -> Array:
        """Return how likely rows are to be seeds, up to a factor: s^2, for s above the median.

        s is by how much the log-density is below its component's peak. Rows of the background,
        where whole clusters may lie hidden, have the same probability together as all others,
        unless they have fewer than `BACKGROUND_ROWS_PER_SEED` for a seed: among seeds alone
        none would have a row to itself.
        """
        weights = self.weights.astype(np.float64)
        inside, shortfalls = assigned.labels >= 0, assigned.shortfalls
        if inside.all():
            return weights * _squares(shortfalls - np.median(shortfalls))
        probabilities = np.where(inside, weights, 0.0)
        if inside.any():
            excess = np.where(inside, shortfalls - np.median(shortfalls[inside]), 0.0)
            probabilities *= _squares(excess)
        outside = np.where(inside, 0.0, weights)
        n_outside = float(np.count_nonzero(outside))
        probabilities /= max(probabilities.sum(), _TINY)
        factor = min(1.0, n_outside / (BACKGROUND_ROWS_PER_SEED * n_seeds))
        probabilities += factor * outside / max(outside.sum(), _TINY)
        return probabilities

    def _seed_points(self, drawn: Array, assigned: _Assigned, params: Params) -> Array:
        """Return rows, every second one moved towards its component's centre.

        If two clusters share a component, the rows of a cluster are nearer to that component
        than to any one of them, but not nearer than to such a point.
        """
        points, labels = self.rows.take(drawn), assigned.labels[drawn]
        moved = (np.arange(len(drawn)) % 2 == 1) & (labels >= 0)
        centres = self.family.centres(params.components)[labels[moved]]
        points[moved] += TOWARDS_CENTRE * (centres - points[moved])
        return points

    def _fit_seeds(
        self, rows: RowSource, seeds: Components, counts: Array, old: Params | None = None
    ) -> Params:
        """Return old components and seeds, after some steps of EM that move the seeds only.

        Seeds with no more than a row are dropped. The first step is without the background: a
        component at a single row is too far from the others to win them from it.
        """
        n_old = 0 if old is None else self.n_components
        background_weight = FIRST_WEIGHT if old is None else old.background_weight
        for step in range(self.steps[0]):
            params, model = self._append(old, seeds, counts, background_weight), self.model
            if step == 0:
                params, model = _without_background(params), Mixture.plain(self.family)
            stats = model.expectation(params, rows)
            if step > 0:
                background_weight = (
                    stats.counts[params.n_components :].sum() / self.rows.total_weight
                )
            stats = stats.first_components(params.n_components)
            large = n_old + self._more_than_a_row(stats.counts[n_old:], self.n_components - n_old)
            if old is not None and len(large) == 0:
                return old
            if len(large) == 0:  # the background has every row
                break
            cost = self.family.merge_cost(stats, params.components, large)
            seeds, counts = self.family.fit_clusters(cost, np.arange(len(large))), cost.counts
        return self._append(old, seeds, counts, background_weight)

    def _append(
        self, old: Params | None, seeds: Components, counts: Array, background_weight: float
    ) -> Params:
        """Return parameters of old components, if there are any, and of seeds with counts."""
        if old is None:
            return self._params(counts, seeds, background_weight)
        old_counts = old.component_weights * self.rows.total_weight
        components = self.family.append(old.components, seeds)
        return self._params(np.append(old_counts, counts), components, background_weight)

    def _merge(self, params: Params, labels: Array) -> Params:
        """Merge components, of rows with such labels, until `n_components` are left."""
        stats = self._partition(params, labels)
        if not stats.counts.any():  # the background has every row
            alone = replace(self, background=NO_BACKGROUND)
            labels = alone.assign(_without_background(params)).labels
            stats = self._partition(params, labels)
        large = self._more_than_a_row(stats.counts, self.n_components)
        cost = self.family.merge_cost(stats, params.components, large)
        others = OtherRows(max(float(stats.total - cost.counts.sum()), 0.0), self.background)
        left, _ = merge_greedily(cost, min(self.n_components, len(cost.counts)), others)
        background_weight = max(others.count / stats.total, params.background_weight)
        counts, components = self._fill(cost.counts[left], self.family.fit_clusters(cost, left))
        return self._params(counts, components, background_weight)

    def _fill(self, counts: Array, components: Components) -> tuple[Array, Components]:
        """Add components without rows where rows are too few or too much alike for all."""
        missing = self.n_components - len(counts)
        if missing == 0:
            return counts, components
        row = np.argmax(self.weights > 0)
        more = self.family.at_points(self.rows.take(np.full(missing, row)), components)
        return np.append(counts, np.zeros(missing)), self.family.append(components, more)

    def _more_than_a_row(self, counts: Array, least: int) -> Array:
        """Return the components with more than a row, or the largest if those are too few."""
        one_row = 1.0001 * self.rows.total_weight / self.n_drawable
        large = np.flatnonzero(counts > one_row)
        if len(large) < least:
            large = np.sort(np.argsort(-counts, kind="stable")[:least])
            large = large[counts[large] > 0]
        return large

    def _converge(self, params: Params, bound: float) -> tuple[Params, float]:
        """Return parameters after steps of EM that still gain: on all rows they cost more."""
        for _ in range(MAX_LAST_STEPS):
            params, after = em_steps(self.model, self.rows, params, 1)
            if after - bound < MIN_STEP_GAIN:
                break
            bound = after
        return params, max(bound, after)

    def _params(self, counts: Array, components: Components, background_weight: float) -> Params:
        """Return parameters with weights in proportion to counts, and the background's weight."""
        background_weight = min(background_weight, MAX_BACKGROUND_WEIGHT)
        weights = self.background.add_weight(counts / counts.sum(), background_weight)
        return Params.first(weights, components)

    def _partition(self, params: Params, labels: Array) -> Statistics:
        """Return the statistics of the rows by their labels."""
        centres = self.family.centres(params.components)
        assign = partial(assign_labels, labels, params.n_components)
        return partition_statistics(self.family, self.rows, centres, assign)[0]

    def assign(self, params: Params) -> _Assigned:
        """Assign each row of the sample to its likeliest component."""
        n, K = self.rows.n_rows, params.n_components
        labels, log_densities, shortfalls = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        posterior = FenchelYoungPosterior(temperature=0)
        peaks = np.append(self.family.peaks(params.components), self.background.log_densities)
        with np.errstate(divide="ignore"):
            offsets = np.log(params.weights) + peaks

        def write(block: Block, span: slice) -> None:
            labels[span], log_densities[span], _ = self.model.label(params, block, posterior)
            shortfalls[span] = offsets[labels[span]] - log_densities[span]
            labels[span][labels[span] == K] = -1

        self.rows.for_each(write)
        return _Assigned(labels, log_densities, shortfalls)


def _without_background(params: Params) -> Params:
    weights = params.component_weights
    weights = weights if weights.any() else np.ones_like(weights)  # the background has every row
    return Params.first(weights / weights.sum(), params.components)


def _draw(weights: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw the numbers of at most `size` rows by weight, without replacement."""
    keys = np.full(len(weights), np.inf)
    drawable = weights > 0
    with np.errstate(over="ignore"):  # of rows that are next to never drawn
        keys[drawable] = rng.exponential(size=int(drawable.sum())) / weights[drawable]
    size = min(size, int(drawable.sum()))
    return np.sort(np.argpartition(keys, size - 1)[:size])


def _squares(excess: Array) -> Array:
    """Return the squares of what is positive, in units of the largest: they are finite."""
    positive = np.maximum(excess, 0)
    return (positive / (positive.max() or 1.0)) ** 2
