"""Overseeding: many simple components at rows of a sample, merged until so many are left.

Overseeding and pruning goes back to Dasgupta and Schulman, "A probabilistic analysis of EM for
mixtures of separated, spherical Gaussians", JMLR 8, 2007; here components are merged, where
that loses least log-likelihood (Ward, 1963). Rounds of further seeds at rows with a low
likelihood, merged again, find what is still missing, in the spirit of split-and-merge EM (Ueda et
al., Neural Computation 12, 2000) and breathing k-means (Fritzke, 2020). A round looks only at
the rows that its seeds explain better than the components do: it costs about as much as some
steps of EM with the components.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..._typing import Array
from ..em.loop import OnIteration, ignore, run_em
from ..families.background import FIRST_WEIGHT, NO_BACKGROUND, Background
from ..families.family import SeedFamily
from ..families.merging import OtherRows, merge_greedily
from ..families.params import Components
from ..families.statistics import Statistics
from ..rows.sources import RowSource
from .halves import halves
from .sample import FoundStart, FreePoint, LabelledSample, Sample, draw_by_weight

# First seeds for each component. With 4, all of 100 clusters of embeddings were found (adjusted
# Rand index 1.000); 2 and 8 ended slightly lower (.998, .997).
SEEDS_PER_COMPONENT = 4

# No more first seeds than this, if there are two for each component: merging takes the square.
MAX_FIRST_SEEDS = 4096

# Seeds of a further round for each component, and as many from the rows of a background.
SEEDS_PER_ROUND = 2

# Further rounds at most; the first two bring nearly all. From the second on, after one that gains
# less than a hundredth of a nat a row there is no other.
MAX_ROUNDS = 4
MIN_ROUND_GAIN = 1e-2

# With many components, a round must also gain a twentieth of what the first one did.
MIN_GAIN_OF_FIRST = 0.05

# Steps of EM before and after merging: after three, seeds have settled at their rows.
STEPS = (3, 3)

# With many components steps with all of them are most of the time, and later ones mend the rest.
STEPS_OF_MANY = (2, 1)

# Times at most that clusters are cut in two, while that gains as much as a round has to: a guard.
# Of 1,000 weak clusters the first four gained .23 to .04 nats a row, the eighth .01.
MAX_CUTS = 8

# Steps of EM at the end, while each gains a thousandth of a nat a row: on all rows they cost more.
MAX_LAST_STEPS = 10
MIN_STEP_GAIN = 1e-3

# Rows for each component, or rows in all, that suffice to find first components: the larger
# number is drawn.
FIRST_ROWS_PER_COMPONENT = 25
MIN_FIRST_ROWS = 10_000

# Many clusters are weak where the second step of EM from those gains more than a third of what the
# first one does, and as much as a round has to. Then they are looked for again among more rows, and
# no step is spared. (It gained .49 to .76 of the first where clusters were missed, and less than .2
# where all were found.)
MAX_RATIO_OF_GAINS = 1 / 3
ROWS_PER_WEAK_COMPONENT = 100

# From so many components on, steps with all of them are spared: there they are most of the time of
# a fit. If each has so many rows, components are looked for in regions, too: with fewer, regions
# lose much (14,885 sentences in 2,000 components: a cosine of .621 in place of .631).
MIN_COMPONENTS_OF_MANY = 1000
MIN_ROWS_OF_REGIONS = 10

# Every second seed is moved so far towards its component's centre. If two clusters share a
# component, a row of one is nearer to that component than to a seed at any other row.
TOWARDS_CENTRE = 2 / 3

# A seed among the rows of a background needs so many of them: alone none has a row to itself.
BACKGROUND_ROWS_PER_SEED = 4

# The most that a background may have at the beginning: components need some rows to begin with.
MAX_BACKGROUND_WEIGHT = 0.99

# A component counts as one of a single row up to this many rows: weights are rounded.
_ONE_ROW = 1.0001

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Overseeding:
    """Seeds, merging and further rounds of both, on a sample."""

    family: SeedFamily[Components]
    sample: Sample
    n_components: int  # to be left
    background: Background = NO_BACKGROUND
    seeds_per_component: int = SEEDS_PER_COMPONENT
    steps: tuple[int, int] | None = None  # before and after merging; None asks `many`
    weak: bool = False  # whether clusters have turned out to be weak

    @property
    def n_drawable(self) -> int:
        return len(self.sample.drawable)

    @property
    def many(self) -> bool:
        """Whether steps with all components are spared."""
        enough = self.n_components >= MIN_COMPONENTS_OF_MANY
        return enough and len(self.background) == 0 and not self.weak

    @property
    def in_regions(self) -> bool:
        """Whether components are looked for in regions."""
        return self.many and self.n_drawable >= MIN_ROWS_OF_REGIONS * self.n_components

    @property
    def n_steps(self) -> tuple[int, int]:
        """Steps of EM before and after merging."""
        if self.many:
            return STEPS_OF_MANY
        return STEPS if self.steps is None else self.steps

    @property
    def n_first_seeds(self) -> int:
        K = self.n_components
        least = SEEDS_PER_COMPONENT * (1 + len(self.background))
        most = max(min(self.seeds_per_component * K, max(2 * K, MAX_FIRST_SEEDS)), least)
        return min(most, self.n_drawable)

    def run(self, rng: np.random.Generator, watch: OnIteration = ignore) -> FoundStart:
        """Return `n_components` components; ``watch(n_rounds, bounds, point)`` may stop early.

        Where the sample is too small for them, the search goes on with a larger one.
        """
        search, point = self._begun(rng)
        point, bound, stopped = search._improved(point, rng, watch)
        while not stopped:
            sample = search.sample.enlarged_for(point)
            if sample is None:
                break
            search = replace(search, sample=sample)
            point, bound, stopped = search._improved(point, rng, watch)
        # Where the sample is all rows, as of small data, only clusters known to be weak are cut.
        may_cut = search.weak or search.sample.drawn is not None
        if not stopped and may_cut and search.family.unit_rows:
            for _ in range(MAX_CUTS):
                before = bound
                point, bound = search._cut_in_two(point, bound, rng)
                if bound - before < MIN_ROUND_GAIN:
                    break
        if not stopped and not search.many:
            point, bound = search._converged(point, bound)
        return FoundStart(point, bound, sample=search.sample)

    def _begun(self, rng: np.random.Generator) -> tuple[Self, FreePoint]:
        """Return first components, and the search that goes on from there."""
        few = self._rows_for_seeds(FIRST_ROWS_PER_COMPONENT, rng)
        point = few._merged_seeds(rng)
        if few is self or not self.many or not few._moves_on(point):
            return self, point
        search = replace(self, weak=True)
        return search, search._rows_for_seeds(ROWS_PER_WEAK_COMPONENT, rng)._merged_seeds(rng)

    def _merged_seeds(self, rng: np.random.Generator) -> FreePoint:
        """Return the components of first seeds, merged."""
        seeds = self._first_seeds(rng)
        point = self._fitted_seeds(self.sample, None, seeds, np.ones(len(seeds)))
        return self.merged(point, self.sample.label(point).labels)

    def _moves_on(self, point: FreePoint) -> bool:
        """Return whether a second step of EM gains much, also beside what the first one does."""
        first, second = np.diff(run_em(point, self.sample.rows, max_iter=2, tol=None).bounds)
        return bool(second > max(MAX_RATIO_OF_GAINS * first, MIN_ROUND_GAIN))

    def _improved(
        self, point: FreePoint, rng: np.random.Generator, watch: OnIteration
    ) -> tuple[FreePoint, float, bool]:
        """Return a point after rounds of seeds and merging, its bound, and whether to stop."""
        _, n_steps = self.n_steps
        point, bound = self.sample.em(point, n_steps)
        bounds = [bound]
        stop = watch(0, bounds, point)
        several = self.n_components + len(self.background) > 1
        n_rounds = MAX_ROUNDS if several and self.n_drawable > 2 * self.n_components else 0
        while not stop and len(bounds) <= n_rounds:
            improved = self._further_round(point, rng)
            if improved is None:
                break
            improved, bound = self.sample.em(improved, n_steps)
            gain = bound - bounds[-1]
            if gain > 0:
                point = improved
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, point)
            least = MIN_ROUND_GAIN
            if self.many:
                least = max(least, MIN_GAIN_OF_FIRST * (bounds[1] - bounds[0]))
            if gain < least and len(bounds) > 2:
                break
        return point, bounds[-1], stop

    def _rows_for_seeds(self, n_each: int, rng: np.random.Generator) -> Self:
        """Return the same on `n_each` rows a component, or `MIN_FIRST_ROWS`; self without more."""
        size = max(n_each * self.n_components, MIN_FIRST_ROWS)
        if self.n_drawable <= size or len(self.background) > 0:  # beside one, clusters are small
            return self
        return self.on(self.sample.draw(size, rng), self.n_first_seeds)

    def on(self, numbers: Array, width: int) -> Self:
        """Return the same on some of the rows, for `width` components."""
        return replace(self, sample=self.sample.some(numbers, width))

    def point(self, counts: Array, components: Components, background_weight: float) -> FreePoint:
        """Return a point with weights in proportion to counts, and the background's weight."""
        background_weight = min(background_weight, MAX_BACKGROUND_WEIGHT)
        weights = self.background.add_weight(counts / counts.sum(), background_weight)
        return FreePoint.of(self.family, weights, components, self.background)

    def at_rows(self, points: Array) -> FreePoint:
        """Return equal components at rows (n, d), without a background."""
        weights = np.full(len(points), 1 / len(points))
        return FreePoint.of(self.family, weights, self.family.at_points(points))

    def _first_seeds(self, rng: np.random.Generator) -> Components:
        """Return seeds at rows drawn by weight, of the size of the clusters near them.

        Many seeds are the clusters of the rows nearest to each, which spares a step of EM.
        """
        weights = self.sample.weights.astype(np.float64)
        points = self.sample.take(draw_by_weight(weights, self.n_first_seeds, rng))
        equal = self.point(np.ones(len(points)), self.family.at_points(points), 0.0)
        stats = self.sample.sums(equal, self.sample.label(equal).labels)
        cost = self.family.merge_cost(stats, equal.components, np.flatnonzero(stats.counts > 0))
        clusters = self.family.fit_clusters(cost, np.arange(len(cost.counts)))
        return clusters if self.many else self.family.at_points(points, clusters)

    def _further_round(self, point: FreePoint, rng: np.random.Generator) -> FreePoint | None:
        """Add and merge seeds; None where no row is explained badly, or no seed helps."""
        K = self.n_components
        labelled = self.sample.label(point)
        n_seeds = SEEDS_PER_ROUND * K * (1 + len(self.background))
        probabilities = self._seed_probabilities(labelled, n_seeds)
        if not probabilities.any():
            return None
        drawn = draw_by_weight(probabilities, n_seeds, rng)
        points = self._seed_points(drawn, labelled, point)
        return self._with_seeds_at(points, np.flatnonzero(probabilities), labelled, point)

    def _cut_in_two(
        self, point: FreePoint, bound: float, rng: np.random.Generator
    ) -> tuple[FreePoint, float]:
        """Return the point, or a better one that has seeds at the halves of each cluster merged.

        Two clusters that share a component are found so where no row says which seeds they need.
        """
        labelled = self.sample.label(point)
        points = halves(self.sample, labelled.labels, point.centres, rng)
        improved = None
        if len(points) > 0:
            improved = self._with_seeds_at(points, self.sample.drawable, labelled, point)
        if improved is None:
            return point, bound
        improved, after = self.sample.em(improved, self.n_steps[1])
        return (improved, after) if after > bound else (point, bound)

    def _with_seeds_at(
        self, points: Array, candidates: Array, labelled: LabelledSample, point: FreePoint
    ) -> FreePoint | None:
        """Add seeds at points, and merge; `candidates` are rows that they may explain better."""
        K = self.n_components
        seeds = self.family.at_points(points, point.components)
        n_seeds = len(points)
        equal = FreePoint.of(self.family, np.full(n_seeds, 1 / n_seeds), seeds)
        by_seeds = self.sample.some(candidates, n_seeds).label(equal).log_densities
        better = by_seeds + np.log(n_seeds / K) > labelled.log_densities[candidates]
        gained = candidates[better | (labelled.labels[candidates] < 0)]
        if len(gained) == 0:
            return None
        near = self.sample.some(gained, K + n_seeds)
        counts = np.full(n_seeds, self.sample.total_weight / K)
        more = self._fitted_seeds(near, point, seeds, counts)
        labels = labelled.labels.copy()
        labels[gained] = near.label(more).labels
        return self.merged(more, labels)

    def _seed_probabilities(self, labelled: LabelledSample, n_seeds: int) -> Array:
        """Return how likely rows are to be seeds, up to a factor: s^2, for s above the median.

        s is by how much the log-density is below its component's mode. Rows of the background,
        where whole clusters may lie hidden, have the same probability together as all others,
        unless they have fewer than `BACKGROUND_ROWS_PER_SEED` for a seed: among seeds alone
        none would have a row to itself.
        """
        weights = self.sample.weights.astype(np.float64)
        inside = labelled.labels >= 0
        below_mode = labelled.below_mode
        if inside.all():
            return weights * _relative_squares(below_mode - np.median(below_mode))
        probabilities = np.where(inside, weights, 0.0)
        if inside.any():
            excess = np.where(inside, below_mode - np.median(below_mode[inside]), 0.0)
            probabilities *= _relative_squares(excess)
        outside = np.where(inside, 0.0, weights)
        n_outside = float(np.count_nonzero(outside))
        probabilities /= max(probabilities.sum(), _TINY)
        factor = min(1.0, n_outside / (BACKGROUND_ROWS_PER_SEED * n_seeds))
        probabilities += factor * outside / max(outside.sum(), _TINY)
        return probabilities

    def _seed_points(self, drawn: Array, labelled: LabelledSample, point: FreePoint) -> Array:
        """Return rows, every second one moved towards its component's centre.

        If two clusters share a component, the rows of a cluster are nearer to that component
        than to any one of them, but not nearer than to such a point.
        """
        points = self.sample.take(drawn)
        labels = labelled.labels[drawn]
        moved = (np.arange(len(drawn)) % 2 == 1) & (labels >= 0)
        centres = point.centres[labels[moved]]
        points[moved] += TOWARDS_CENTRE * (centres - points[moved])
        return points

    def _fitted_seeds(
        self, sample: Sample, old: FreePoint | None, seeds: Components, counts: Array
    ) -> FreePoint:
        """Return old components and seeds, after some steps of EM that move the seeds only.

        Seeds with no more than a row are dropped. The first step is without the background: a
        component at a single row is too far from the others to win them from it.
        """
        n_steps, _ = self.n_steps
        alone = self.with_seeds(old, seeds, counts, FIRST_WEIGHT).without_background()
        first = _SeedPoint(alone.mixture, alone.params, self, old)
        point: FreePoint = sample.em(first, n_steps)[0]
        return point

    def with_seeds(
        self, old: FreePoint | None, seeds: Components, counts: Array, background_weight: float
    ) -> FreePoint:
        """Return old components, if there are any, and seeds that have such counts."""
        if old is None:
            return self.point(counts, seeds, background_weight)
        old_counts = old.params.component_weights * self.sample.total_weight
        components = self.family.append(old.components, seeds)
        return self.point(np.append(old_counts, counts), components, background_weight)

    def merged(self, point: FreePoint, labels: Array) -> FreePoint:
        """Merge components, of rows with such labels, until `n_components` are left."""
        stats = self.sample.sums(point, labels)
        if not stats.counts.any():  # the background has every row
            labels = self.sample.label(point.without_background()).labels
            stats = self.sample.sums(point, labels)
        large = self.more_than_a_row(stats.counts, self.n_components)
        cost = self.family.merge_cost(stats, point.components, large)
        others = OtherRows(max(float(stats.total - cost.counts.sum()), 0.0), self.background)
        left, _ = merge_greedily(cost, min(self.n_components, len(cost.counts)), others)
        background_weight = max(others.count / stats.total, point.params.background_weight)
        counts, components = self._filled(cost.counts[left], self.family.fit_clusters(cost, left))
        return self.point(counts, components, background_weight)

    def _filled(self, counts: Array, components: Components) -> tuple[Array, Components]:
        """Add components without rows where rows are too few or too much alike for all."""
        n_missing = self.n_components - len(counts)
        if n_missing == 0:
            return counts, components
        row = np.argmax(self.sample.weights > 0)
        more = self.family.at_points(self.sample.take(np.full(n_missing, row)), components)
        return np.append(counts, np.zeros(n_missing)), self.family.append(components, more)

    def more_than_a_row(self, counts: Array, least: int) -> Array:
        """Return the components with more than a row, or the largest if those are too few."""
        one_row = _ONE_ROW * self.sample.total_weight / self.n_drawable
        large = np.flatnonzero(counts > one_row)
        if len(large) < least:
            large = np.sort(np.argsort(-counts, kind="stable")[:least])
            large = large[counts[large] > 0]
        return large

    def _converged(self, point: FreePoint, bound: float) -> tuple[FreePoint, float]:
        """Return the point after steps of EM that still gain, and its bound."""
        for _ in range(MAX_LAST_STEPS):
            point, after = self.sample.em(point, 1)
            if after - bound < MIN_STEP_GAIN:
                break
            bound = after
        return point, max(bound, after)


@dataclass(frozen=True, eq=False)
class _SeedPoint(FreePoint):
    """Old components, which stay, followed by seeds that steps of EM move and drop."""

    search: Overseeding
    old: FreePoint | None

    def maximize(self, stats: Statistics, rows: RowSource) -> Self:
        search, old = self.search, self.old
        n_old = 0 if old is None else old.n_components
        if len(self.background) > 0:
            of_background = stats.counts[self.n_components :].sum()
            background_weight = of_background / search.sample.total_weight
        else:  # in the first step
            background_weight = FIRST_WEIGHT if old is None else old.params.background_weight
        stats = stats.first_components(self.n_components)
        n_missing = search.n_components - n_old
        large = n_old + search.more_than_a_row(stats.counts[n_old:], n_missing)
        if len(large) > 0:
            cost = self.family.merge_cost(stats, self.components, large)
            seeds = self.family.fit_clusters(cost, np.arange(len(large)))
            after = search.with_seeds(old, seeds, cost.counts, background_weight)
        elif old is None:  # the background has every row
            return self
        else:  # no seed helps
            after = old
        return replace(self, mixture=after.mixture, params=after.params)


def _relative_squares(excess: Array) -> Array:
    """Return the squares of what is positive, in units of the largest: they are finite."""
    positive = np.maximum(excess, 0)
    return (positive / (positive.max() or 1.0)) ** 2
