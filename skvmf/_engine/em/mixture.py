"""A mixture as a value, and at some parameters: its E-step and its M-step."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np

from ..._typing import Array
from ..families.background import NO_BACKGROUND, Background
from ..families.family import AnyFamily, Constraint, Scores, Update
from ..families.params import Params
from ..families.responsibilities import Responsibilities
from ..families.statistics import ROUNDING_OF_COUNTS, Statistics
from ..rows.blocks import Block
from ..rows.sources import RowSource
from .loop import EMResult
from .posterior import SOFTMAX, FenchelYoungPosterior
from .size_limits import SizeLimits
from .weight_prior import FLAT, ModifiedDirichlet

_LARGEST = float(np.finfo(np.float64).max)

# A component with less than this fraction of the weight of a block may be empty: the block then
# keeps its least likely rows, to which an empty component is moved. Too large a fraction costs a
# sort of the block, too small a one a row to move to.
_MAX_EMPTY_FRACTION = 1e-9

# Of the least likely rows so many numbers are kept: a few megabytes for any number of features.
_MAX_KEPT_NUMBERS = 2**20

# Weights within rounding of the floor are on it.
_FLOOR_TOLERANCE = 1 + 1e-9

# Rows with a log-density below this one are all as unlikely: sums of so many stay finite.
LEAST = -1e270


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture as a value: all that a fit needs to know but the parameters.

    An estimator turns its parameters into one; nothing below an estimator sees the estimator.

    Parameters
    ----------
    family : Family
        What a component is.
    posterior : FenchelYoungPosterior
        How responsibilities follow from log-densities; softmax by default.
    weight_prior : ModifiedDirichlet
        The prior of the weights; flat by default.
    fixed_weights : bool, default=False
        Whether the first weights stay.
    update : Update
        How statistics move components: to the family's maximum by default.
    background : Background
        What rows may belong to in place of a component: nothing by default.
    constraint : Constraint
        What components must fulfil: nothing by default.
    known : ndarray of shape (n_samples,), int32, default=None
        The component of each row, if it is known; -1 if not; K for the background.
    size_limits : SizeLimits, default=None
        Limits of the weight of the rows of a component, in this fit.
    """

    family: Any
    posterior: FenchelYoungPosterior = SOFTMAX
    weight_prior: ModifiedDirichlet = FLAT
    fixed_weights: bool = False
    update: Update = Update()
    background: Background = NO_BACKGROUND
    constraint: Constraint = Constraint()
    known: Array | None = None
    size_limits: SizeLimits | None = None

    @classmethod
    def plain(cls, family: AnyFamily, background: Background = NO_BACKGROUND) -> "Mixture":
        """Return a mixture with softmax responsibilities and no prior; its weights stay."""
        return cls(family, fixed_weights=True, background=background)

    def has_known_classes(self, n_components: int) -> bool:
        """Return whether rows of components are known, not of the background alone."""
        if self.known is None:
            return False
        return bool(((self.known >= 0) & (self.known < n_components)).any())

    def in_units(self, units: Array) -> "Mixture":
        """Return the mixture for rows whose features are divided by units (d,)."""
        background = self.background.in_units(units)
        return replace(self, family=self.family.in_units(units), background=background)

    def renumbered(self, numbers: Array) -> "Mixture":
        """Return the mixture for some of its components, by their numbers, in that order."""
        prior = self.weight_prior
        alpha = np.asarray(prior.alpha)
        if alpha.ndim > 0:  # that of a background is the last
            of_background = alpha[len(alpha) - len(self.background) :]
            alpha = np.append(alpha[numbers], of_background)
        prior = replace(prior, alpha=alpha[()])
        return replace(self, family=self.family.renumbered(numbers), weight_prior=prior)

    def new_weights(self, counts: Array, weights: Array) -> Array:
        """Return weights at the mode of their posterior, or the old ones if they are fixed.

        The old ones stay, whatever the prior, if no component has rows because all are singular.
        For alpha-entmax and a prior that is not flat the mode is only a good guess: the old weights
        stay where new ones would lower the bound (the guard is derived here).
        """
        if self.fixed_weights or not counts.any():
            return weights
        better = self.weight_prior.mode(counts)
        exact = not self.posterior.tsallis or self.weight_prior.flat
        if exact or np.any((better > 0) != (weights > 0)):
            return better
        if self._bound_of_weights(counts, better) >= self._bound_of_weights(counts, weights):
            return better
        return weights

    def _bound_of_weights(self, counts: Array, weights: Array) -> float:
        """Return the part of the penalised value that depends on the weights."""
        value = self.posterior.value_of_weights(counts, weights)
        return value + self.weight_prior.log_density(weights)


@dataclass(frozen=True, eq=False)
class Assigned:
    """The E-step of a block."""

    responsibilities: Responsibilities  # of the components and the background
    counts: Array  # sums of the responsibilities, (K,), or with a background (K + 1,)
    values: Array  # of each row, (n,): how well the mixture explains it
    scores: Scores  # used up, but for the cache

    def of_components(self, n_components: int) -> Responsibilities:
        """Return the responsibilities without those of the background."""
        return self.responsibilities.first_components(n_components)


@dataclass(eq=False)
class Labelled:
    """The most responsible component of each row; blocks of rows add up in their order."""

    labels: Array  # (n,): -1 is the background
    scores: Array  # of those components, weights included, (n,)
    zero_density: Array  # (n,), boolean: rows that no component has a density at

    def __iadd__(self, other: "Labelled") -> "Labelled":
        return Labelled(
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.zero_density, other.zero_density]),
        )


@dataclass(frozen=True, eq=False)
class Point:
    """A mixture at some parameters: what a fit moves, and what predictions are asked.

    With a background the last of `params.weights` is its weight. It has no number and no column
    among the K components: its rows have the label -1.
    """

    mixture: Mixture
    params: Params

    @property
    def family(self) -> Any:
        return self.mixture.family

    @property
    def background(self) -> Background:
        return self.mixture.background

    @property
    def components(self) -> Any:
        return self.params.components

    @property
    def n_components(self) -> int:
        return self.params.n_components

    @property
    def weights(self) -> Array:
        """The weights of the components, (K,)."""
        return self.params.component_weights

    @property
    def offsets(self) -> Array:
        """The offsets of the components, (K,); 0 without limits on sizes."""
        if self.params.offsets is None:
            return np.zeros(self.n_components)
        return self.params.offsets[: self.n_components]

    @property
    def centres(self) -> Array:
        """Where the components are, (K, d)."""
        return self.family.centres(self.components)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the components in use, and of the weights."""
        n_used = int(np.count_nonzero(self.weights))
        n_parameters: int = self.family.n_parameters(n_used)
        if self.mixture.fixed_weights:
            return n_parameters
        return n_parameters + max(int(np.count_nonzero(self.params.weights)) - 1, 0)

    def at(self, params: Params) -> Self:
        """Return the mixture at other parameters."""
        return replace(self, params=params)

    def knowing(self, known: Array | None) -> Self:
        """Return the same parameters with known labels of rows."""
        return replace(self, mixture=replace(self.mixture, known=known))

    def with_posterior(self, posterior: FenchelYoungPosterior) -> Self:
        """Return the same parameters with responsibilities of another kind."""
        return replace(self, mixture=replace(self.mixture, posterior=posterior))

    # The E-step of a block: nowhere else do rows meet components.

    def scores(self, block: Block) -> Scores:
        """Return log-densities of a block, the background's last; -inf beside a known component."""
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores: Scores = self.family.scores(block, self.params.components)
        scores = self.background.add_scores(scores, block)
        if self.mixture.known is not None:
            rows, labels = self._known_rows(block)
            known = scores.unnormalized[rows, labels]
            scores.unnormalized[rows] = -np.inf
            scores.unnormalized[rows, labels] = known
        return scores

    def offset(self, scores: Scores) -> Scores:
        """Return scores less the offsets of components, which limits on sizes have."""
        if self.params.offsets is None:
            return scores
        return replace(scores, bias=scores.bias - self.params.offsets)

    def assign(
        self, block: Block, row_weights: Array | None = None, scores: Scores | None = None
    ) -> Assigned:
        """Return the responsibilities for the rows of a block, and what follows from them.

        Responsibilities carry the weights and scales of the block's rows, unless other weights are
        given. Scores that are given are used up.
        """
        if scores is None:
            scores = self.scores(block)
        scores = self.offset(scores)
        row_scales = None
        if row_weights is None:
            row_weights = block.weights
            row_scales = block.scales
        responsibilities, counts, values = self.mixture.posterior.assign(
            scores, self.params.weights, row_weights, row_scales
        )
        return Assigned(responsibilities, counts, values, scores)

    def label(self, block: Block, scores: Scores | None = None) -> Labelled:
        """Return the most responsible component of each row of a block; ties go to the first.

        A row without a direction or a density goes to the background, or if there is none, to the
        component with the largest weight. Scores that are given are not used up.
        """
        if scores is None:
            scores = self.scores(block)
        scores = self.offset(scores)
        labels, _, best = self.mixture.posterior.label(scores, self.params.weights, block.weights)
        zero_density = ~block.has_direction | np.isneginf(best)
        if len(self.background):
            labels[zero_density | (labels == self.n_components)] = -1
        elif zero_density.any():
            labels[zero_density] = np.argmax(self.weights)
        return Labelled(labels, best, zero_density)

    def log_density(self, block: Block, scores: Scores | None = None) -> Array:
        """Return the log-density of the mixture at each row of a block.

        Scores that are given are used up.
        """
        scores = self.scores(block) if scores is None else scores
        values = SOFTMAX.values(scores, self.params.weights)
        block.buffers.release("scores", scores.unnormalized)
        return values - self.family.log_units(block)

    def _known_rows(self, block: Block) -> tuple[Array, Array]:
        """Return the rows of a block whose components are known and have not left, and those."""
        assert self.mixture.known is not None
        labels = self.mixture.known[block.span]
        rows = np.flatnonzero((labels >= 0) & block.has_direction)
        rows = rows[self.params.weights[labels[rows]] > 0]
        return rows, labels[rows]

    # What the loop asks for: sums over all rows, the bound, and better parameters.

    def expect(self, rows: RowSource) -> Statistics:
        """Return what the maximization needs of all rows."""
        return rows.map_reduce(self.expect_block)

    def expect_block(self, block: Block) -> Statistics:
        """Share out the rows of a block and sum what the maximization needs."""
        scores = self.scores(block)
        return self.sums(block, self.assign(block, scores=scores))

    def sums(self, block: Block, assigned: Assigned) -> Statistics:
        """Return the sums of a block that has been assigned; the block is used up."""
        params = self.params
        counts = assigned.counts
        values = assigned.values
        own = assigned.of_components(params.n_components)
        moments = self.family.moments(block, own, params.components, assigned.scores.cache)
        block.buffers.release("scores", assigned.scores.unnormalized)
        log_units = self.family.log_units(block)
        public_values = np.maximum(values - log_units, LEAST)
        value = weighted_sum(block.weights, public_values)
        # An empty component is moved to none of these: rows that do not count, and known ones.
        values[block.weights == 0] = np.inf
        if self.mixture.known is not None:
            known, _ = self._known_rows(block)
            values[known] = np.inf
        worst = self.least_likely(values, counts)
        block.release()
        return Statistics(
            value=value,
            total=float(block.weights.sum()),
            counts=counts,
            moments=moments,
            centred_at=self.family.centred_at(params.components),
            worst_values=values[worst].astype(np.float64),
            worst_rows=block.start + worst,
            buffers=block.buffers,
            log_units=float((block.weights * log_units).sum()),
        )

    def least_likely(self, values: Array, counts: Array) -> Array:
        """Return the numbers of the least likely rows, at least one.

        There is one for each component that has no rows here and was not moved yet, up to what fits
        into memory.
        """
        K = self.n_components
        may_be_empty = counts[:K] <= _MAX_EMPTY_FRACTION * counts.sum()
        n_empty = np.count_nonzero(may_be_empty & ~self.params.moved_or_pruned[:K])
        n_kept = min(n_empty, max(1, _MAX_KEPT_NUMBERS // self.family.dim))
        if n_kept <= 1:
            return np.array([np.argmin(values)])
        return np.argsort(values, kind="stable")[:n_kept]

    def bound(self, stats: Statistics) -> float:
        """Return the penalised value of the parameters per unit of sample weight; it is finite."""
        log_prior = self.mixture.weight_prior.log_density(self.params.weights)
        log_prior += self.family.log_prior(self.params.components)
        if self.params.offsets is not None and self.mixture.size_limits is not None:
            log_prior += self.mixture.size_limits.value(self.params.offsets)
        return min(max((stats.value + log_prior) / stats.total, -_LARGEST), _LARGEST)

    def size_of_bound(self, stats: Statistics) -> float:
        """Return the size of the bound in units of the features' spread, at least 1."""
        return max(1.0, abs(self.bound(stats) + stats.log_units / stats.total))

    def comparable(self, after: "Point") -> bool:
        """Return whether a small change of the bound to another point is the end of a fit."""
        before = self.params
        same_weights = np.array_equal(before.weights > 0, after.params.weights > 0)
        return same_weights and np.array_equal(before.moved_or_pruned, after.params.moved_or_pruned)

    def maximize(self, stats: Statistics, rows: RowSource) -> Self:
        """Return a better point.

        Empty components are re-seeded once in a fit, each at another of the least likely `rows`,
        then pruned. A singular one is pruned at once, and so is one whose weight stays on the
        prior's floor for two steps with fewer rows than a component or the prior asks for, unless
        all weights are on the floor.
        """
        mixture = self.mixture
        params = self.params
        K = params.n_components
        empty = stats.counts <= ROUNDING_OF_COUNTS * stats.total
        counts = np.where(empty, 0.0, stats.counts)
        components = params.components
        singular = np.zeros(K, dtype=bool)
        if counts[:K].any():  # else the background has every row
            own = replace(stats, counts=counts[:K].copy())
            components, singular = mixture.update(mixture.family, own, params.components)
        counts[:K][singular] = 0
        moved_or_pruned = params.moved_or_pruned.copy()
        moved_or_pruned[:K] |= singular
        to_move = np.flatnonzero(empty[:K] & ~moved_or_pruned[:K]).tolist()
        components = self._moved_to_rows(components, counts, moved_or_pruned, to_move, stats, rows)
        weights = mixture.new_weights(counts, params.weights)
        floor = mixture.weight_prior.floor * _FLOOR_TOLERANCE
        on_floor = (weights <= floor) & (weights.max() > floor)
        needed = np.maximum(mixture.family.min_rows, 1 - mixture.weight_prior.alpha)
        leaves = on_floor & params.on_floor & (stats.counts < needed) & (counts > 0)
        leaves[K:] = False
        if leaves.any():
            counts[leaves] = 0
            weights = mixture.new_weights(counts, params.weights)
        params = Params(weights, components, moved_or_pruned | leaves, on_floor, params.offsets)
        return self.at(params)

    def _moved_to_rows(
        self,
        components: Any,
        counts: Array,
        moved_or_pruned: Array,
        to_move: list[int],
        stats: Statistics,
        rows: RowSource,
    ) -> Any:
        """Move empty components to rows, each with an average count; notes these in both arrays."""
        targets = _distinct_worst(stats, rows, len(to_move))
        for k, row in zip(to_move, targets, strict=False):
            non_empty = counts[: self.n_components] > 0
            if np.isnan(row).any():  # of a missing value
                middle = self.family.centres(components).mean(axis=0)
                row = np.where(np.isnan(row), middle, row)
            moved = self.mixture.update.reseed(self.family, components, non_empty, k, row)
            if moved is components:  # its mean is fixed, and it has no rows there
                continue
            components = moved
            counts[k] = stats.total / len(counts)
            moved_or_pruned[k] = True
        return components

    # Where a fit begins, and how one continues another.

    def begun(
        self, weights: Array | None = None, shapes: Array | None = None, by_class: bool = False
    ) -> "Point":
        """Return first parameters as a fit begins with them: they fulfil the constraint.

        Starts, streams and warm starts with more components all begin here. `weights` (K,) and
        `shapes` are those that were given, by number. `by_class` is whether components have the
        numbers of known classes, which they then keep.
        """
        mixture = self.mixture
        classes = None
        if by_class and mixture.known is not None:
            classes = np.unique(mixture.known)
            classes = classes[(classes >= 0) & (classes < self.n_components)]
        params = self.params if weights is None else self.params.pruned()
        return self.at(mixture.constraint.apply(mixture.family, params, weights, shapes, classes))

    def refuse_known(self, rows: RowSource) -> None:
        """Refuse known labels of rows that contradict the constraint."""
        if self.mixture.known is not None:
            self.mixture.constraint.refuse_known(self.mixture.known, rows, self.params)

    def continued_as(
        self, mixture: Mixture, rows: RowSource, centres: Array | None = None
    ) -> "Point":
        """Return where a fit of a mixture begins that continues the fit which ended here.

        More components are added at `centres` (m, d). They have an average weight, and the average
        shape of those that have not been pruned. What the mixture has by number follows its
        components into their order.
        """
        family = self.family.continued_by(mixture.family)
        background = mixture.background.with_units(family.units)
        weights = background.weights_after(self.params)
        components = self.components
        if centres is not None:
            in_use = np.flatnonzero(self.weights)
            n_after = len(in_use) + len(centres)
            of_background = weights[self.n_components :]
            of_old = weights[: self.n_components] * (len(in_use) / n_after)
            of_added = np.full(len(centres), (1 - of_background.sum()) / n_after)
            weights = np.concatenate([of_old, of_added, of_background])
            if len(in_use) == 0:  # the background has every row
                in_use = np.arange(self.n_components)
            components = family.with_added(components, centres, in_use)
        components = family.adapted(components)
        mixture = replace(mixture, family=family, background=background)
        first = Point(mixture, Params.first(weights, components).pruned())
        first.refuse_known(rows)
        if centres is None and self.mixture.constraint == mixture.constraint:  # they fulfil it
            return first
        order = mixture.constraint.order(components)
        if order is not None:
            first = replace(first, mixture=mixture.renumbered(order))
        return first.begun()

    def sorted(self, stats: Statistics | None = None) -> tuple["Point", Statistics | None]:
        """Return a fit and its statistics, with components in the order to publish."""
        mixture = self.mixture
        params, stats = mixture.constraint.sort(mixture.family, self.params, stats)
        return Point(replace(mixture, known=None, size_limits=None), params), stats


MixtureResult: TypeAlias = EMResult[Point, Statistics]


def _distinct_worst(stats: Statistics, rows: RowSource, n: int) -> Array:
    """Return at most n different rows that count, the least likely first."""
    n_counted = int(np.count_nonzero(stats.worst_values < np.inf))
    if n == 0 or n_counted == 0:
        return np.empty((0, 0))
    if n == 1:  # which differs from no other
        n_counted = 1
    numbers = stats.worst_rows[:n_counted].tolist()
    by_number = dict(rows.map_reduce(partial(_numbered_rows, set(numbers))))
    worst = np.stack([by_number[number] for number in numbers])
    if n > 1:
        _, first_of_copies = np.unique(worst, axis=0, return_index=True)
        worst = worst[np.sort(first_of_copies)]
    return worst[:n]


def _numbered_rows(numbers: set[int], block: Block) -> list[tuple[int, Array]]:
    """Return those of some rows that are in a block, each after its number."""
    start = block.start
    in_block = sorted(numbers.intersection(range(start, start + len(block.weights))))
    numbered = [(number, block.row(number - start)) for number in in_block]
    block.release()
    return numbered


def weighted_sum(weights: Array, values: Array) -> float:
    """Return weights @ values without the rows of weight 0, whose values may be infinite."""
    if (weights > 0).all():
        return float(weights @ values)
    counted = weights > 0
    return float(weights[counted] @ values[counted])
