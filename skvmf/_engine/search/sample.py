"""The rows that a start looks at, and what it does with them: label, sum, and steps of EM."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

import numpy as np

from ..._typing import Array
from ..em.loop import run_em
from ..em.mixture import Mixture, Point
from ..families.background import FIRST_WEIGHT, NO_BACKGROUND, Background
from ..families.family import AnyFamily
from ..families.params import Components, Params
from ..families.statistics import Statistics
from ..rows.sources import RowSource
from .partitions import assign_labels, assignment, nearest_partition, partition_statistics


@dataclass(frozen=True, eq=False)
class FreePoint(Point):
    """A point whose steps are those of plain EM: no component is moved to a row, or pruned.

    Where a fit begins, components without rows are wanted: merging and splitting use them.
    """

    @classmethod
    def of(
        cls,
        family: AnyFamily,
        weights: Array,
        components: Components,
        background: Background = NO_BACKGROUND,
    ) -> "FreePoint":
        """Return plain components with weights, that of a background last."""
        return FreePoint(Mixture.plain(family, background), Params.first(weights, components))

    def least_likely(self, values: Array, counts: Array) -> Array:
        """Return the numbers of no rows: no component is moved to one."""
        return np.empty(0, dtype=np.intp)

    def maximize(self, stats: Statistics, rows: RowSource) -> Self:
        """Return a better point, whose weights are the shares of the rows."""
        if not stats.counts.any():  # rows so far off that they have no share in any component
            return self
        components = self.components
        of_components = stats.first_components(self.n_components)
        if of_components.counts.any():  # else the background has every row
            components, _ = self.family.maximize(of_components, components)
        return self.at(Params.first(stats.counts / stats.counts.sum(), components))

    def with_free_weights(self) -> Point:
        """Return the point of a mixture whose components may be moved and pruned."""
        return Point(replace(self.mixture, fixed_weights=False), self.params)

    def without_background(self) -> "FreePoint":
        """Return the components alone, with equal weights if the background has every row."""
        weights = self.weights
        if not weights.any():
            weights = np.ones_like(weights)
        return FreePoint.of(self.family, weights / weights.sum(), self.components)


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """For each row its likeliest component, and how well that one explains it."""

    labels: Array  # (n,) int32: -1 is a background
    log_densities: Array  # of those components, weights included, (n,)
    below_mode: Array  # by how much the log-density is below its largest value, (n,)


# A sample that is too small becomes so many times as large: where 100 rows for each component were
# too few, 300 mostly sufficed (vMF mixtures of 100 and 300 components in 256 to 768 dimensions).
_GROWTH = 3

# The bound of a fit on its own rows is above that on others, by the number of parameters for each
# row if the model is true (as in Akaike's criterion). Fits that missed clusters were 1.10 to 1.38
# times as far above, those that found all of them .95 to 1.04 times.
_CHANCE = 1.05

# Standard errors of that difference beyond which it is one, and rows that suffice to see it.
_N_ERRORS = 2
_MIN_HELD_OUT = 1000


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows of a source, drawn by weight and in a random order; samples are its first ones."""

    rows: RowSource
    numbers: Array
    weights: Array
    width: int  # how many numbers a row brings along in a step
    single: bool  # whether directions are had in single precision
    note: Callable[[str], None]  # is told when a sample grows

    @classmethod
    def of(
        cls,
        rows: RowSource,
        size: int,
        seed: int,
        width: int,
        single: bool,
        note: Callable[[str], None],
    ) -> "Draw":
        """Draw at most `size` rows."""
        numbers, weights = rows.draw(size, seed)
        order = np.random.default_rng(seed).permutation(len(numbers))
        return cls(rows, numbers[order], weights[order], width, single, note)

    def sample(self, size: int) -> "Sample":
        """Return the first rows."""
        return Sample(self._between(0, size), self)

    def others(self, size: int) -> "Sample":
        """Return as many rows that follow the first ones, if there are so many."""
        return Sample(self._between(size, 2 * size))

    def _between(self, first: int, last: int) -> RowSource:
        order = first + np.argsort(self.numbers[first:last])
        return self.rows.subset(
            self.numbers[order], self.weights[order], width=self.width, single=self.single
        )


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory, drawn by weight."""

    rows: RowSource
    drawn: Draw | None = None  # that they are the first rows of, where a search may take more

    @cached_property
    def weights(self) -> Array:
        """The weight of each row, (n,): none for a zero row of directions."""
        return self.rows.sampling_weights()

    @cached_property
    def drawable(self) -> Array:
        """The numbers of the rows that have a weight."""
        return np.flatnonzero(self.weights)

    @property
    def total_weight(self) -> float:
        return self.rows.total_weight

    def take(self, numbers: Array) -> Array:
        """Return rows as the family sees them, dense float64."""
        return self.rows.take(numbers)

    def some(self, numbers: Array, width: int, weights: Array | None = None) -> "Sample":
        """Return some of the rows, for `width` components; weights (n,) may replace theirs."""
        weights = self.weights if weights is None else weights
        return Sample(self.rows.subset(numbers, weights[numbers], width))

    def alone(self) -> "Sample":
        """Return the same rows, which a search takes as they are."""
        return Sample(self.rows)

    def enlarged_for(self, point: Point) -> "Sample | None":
        """Return a larger sample if this one is too small for a point that was fitted to it.

        It is if the point explains its rows better than others by more than a fit does by chance.
        """
        draw = self.drawn
        n_rows = self.rows.n_rows
        if draw is None or len(draw.numbers) - n_rows < _MIN_HELD_OUT:
            return None
        mean, variance = self._log_density(point)
        mean_of_others, variance_of_others = draw.others(n_rows)._log_density(point)
        gain = mean - mean_of_others
        by_chance = point.n_parameters / n_rows
        error = np.sqrt(variance + variance_of_others)
        if gain <= _CHANCE * by_chance + _N_ERRORS * error:
            return None
        size = min(_GROWTH * n_rows, len(draw.numbers))
        draw.note(
            f"{n_rows} rows are explained better than others by {gain:.3g}, of which "
            f"{by_chance:.3g} are chance: the sample grows to {size} rows"
        )
        return draw.sample(size)

    def _log_density(self, point: Point) -> tuple[float, float]:
        """Return the mean log-density of the rows, and the variance of the mean."""
        blocks = self.rows.map_reduce(lambda block: [point.log_density(block)])
        values = np.concatenate(blocks).astype(np.float64)
        weights = self.weights / self.weights.sum()
        counted = weights > 0
        weights, values = weights[counted], values[counted]
        mean = float(weights @ values)
        return mean, float(weights**2 @ (values - mean) ** 2)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw the numbers of at most `size` rows that have a weight, each as likely."""
        size = min(size, len(self.drawable))
        return np.sort(rng.choice(self.drawable, size, replace=False))

    def label(self, point: Point) -> LabelledSample:
        """Return the likeliest component of each row, of a family that has peaks."""
        labelled = self.rows.map_reduce(point.label)
        peaks = np.append(point.family.peaks(point.components), point.background.log_densities)
        with np.errstate(divide="ignore"):
            largest = np.log(point.params.weights) + peaks
        below_mode = largest[labelled.labels] - labelled.scores  # the background's is the last
        return LabelledSample(labelled.labels, labelled.scores, below_mode)

    def sums(self, point: Point, labels: Array) -> Statistics:
        """Return the statistics of the rows by labels (n,), about the centres of components."""
        assign = partial(assign_labels, labels, point.n_components)
        stats, _ = partition_statistics(point.family, self.rows, point.centres, assign)
        return stats

    def em(self, point: Any, n_steps: int) -> tuple[Any, float]:
        """Return the point after some steps of EM, and the bound before the last of them."""
        result = run_em(point, self.rows, max_iter=n_steps - 1, tol=None)
        return result.point.maximize(result.stats, self.rows), result.bounds[-1]


def draw_by_weight(weights: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw the numbers of at most `size` rows by weight, without replacement.

    As sources of rows do: each has a key, Exp(1) over its weight, and the smallest win.
    """
    drawable = np.flatnonzero(weights > 0)
    with np.errstate(over="ignore"):  # of rows that are next to never drawn
        keys = rng.exponential(size=len(drawable)) / weights[drawable]
    if size >= len(drawable):
        return drawable
    return drawable[np.sort(np.argpartition(keys, size - 1)[:size])]


@dataclass(frozen=True, eq=False)
class FoundStart:
    """Components found on a sample, and their bound there."""

    point: Point
    bound: float
    labels: Array | None = None  # of the sample, if they are known
    after: Point | None = None  # where some steps of EM lead from here, if they were taken
    sample: Sample | None = None  # where they were found, which a search may have enlarged

    def partition(self, family: AnyFamily, rows: RowSource) -> tuple[Statistics, Components]:
        """Return `partition_statistics` of a family for these responsibilities for rows.

        If the sample is all rows, and has labels, these are as good. If the background has every
        row, each is its nearest component's.
        """
        centres = self.point.centres
        if self.labels is not None and len(self.labels) == rows.n_rows:
            by_labels = partial(assign_labels, self.labels, len(centres))
            return partition_statistics(family, rows, centres, by_labels)
        sums = partition_statistics(family, rows, centres, assignment(self.point))
        return sums if sums[0].counts.any() else nearest_partition(family, rows, centres)

    def rescored(self, mixture: Mixture, sample: Sample, n_steps: int) -> "FoundStart":
        """Return the start with the bound that a mixture's components reach from it on a sample."""
        family, background = mixture.family, mixture.background
        stats, centred_at = self.partition(family, sample.rows)
        family = family.with_prior_from(stats)
        weights = stats.counts / stats.counts.sum()
        of_background = self.point.params.background_weight
        if len(background) > 0:
            of_background = max(of_background, FIRST_WEIGHT)
        weights = background.add_weight(weights, of_background)
        first = FreePoint.of(family, weights, family.initial(stats, centred_at), background)
        after, bound = sample.em(first, n_steps)
        return replace(self, bound=bound, after=after)


Rescoring: TypeAlias = Callable[[FoundStart], FoundStart]  # on other rows


# Bounds that differ by less, for their size, may do so by rounding: that of float32 scores.
_TIE = 1e-6


def best_of(starts: list[FoundStart], rescored: Rescoring | None = None) -> FoundStart:
    """Return the start with the largest bound, or with the largest after it was rescored.

    Of those that are as good but for rounding it is the first.
    """
    judged = starts
    if rescored is not None and len(starts) > 1:
        judged = [rescored(start) for start in starts]
    bounds = np.array([start.bound for start in judged])
    largest = bounds.max()
    return starts[int(np.argmax(bounds >= largest - _TIE * max(1.0, abs(largest))))]
