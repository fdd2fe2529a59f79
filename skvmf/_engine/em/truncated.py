"""Truncated steps of EM: between exact ones, rows meet only the components near their own.

Components that are near each other form a cell. In a round of steps a row may only belong to the
candidates of its cell, those nearest to any of the cell: a step costs as many products as there are
candidates, whatever the number of components. As candidates stay, the steps of a round do not lower
their bound, which is one of the exact bound from below (Forster and Lücke, "Can clustering scale
sublinearly with its clusters?", AISTATS 2018). Before each round an audit compares some rows with
all components. A round that might lose more than it gains is not taken.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ..._typing import Array
from ..families.family import Family, Scores
from ..families.neighbours import nearest_points
from ..families.params import Params
from ..families.statistics import Statistics
from ..rows.blocks import MIN_ROWS, Block, span_rows
from ..rows.parallel import Part, map_reduce
from ..rows.sources import Labels, Rows, RowSource, Span, joined
from .loop import EMState, LabelsOfRows
from .mixture import LEAST, Mixture, Point
from .predictions import note_published

# Between two exact steps there are at most so many rounds of at most so many steps: as many
# products as one exact step with some thousands of components. A round that gains less than a
# quarter of the best one is the last, and so is a step that gains less than a quarter of the first
# of its round: what is left is found as well by the next exact step.
MAX_ROUNDS = 6
MAX_STEPS = 7
MIN_RELATIVE_GAIN = 1 / 4

# A cell has at most so many components; the candidates of its rows are these, and so many nearest
# ones of each: a product with some hundred components runs at full speed.
CELL_SIZE = 64
N_NEAREST = 16

# So many rows are compared with all components before a round: the mean of their losses is known to
# a fortieth of its spread. A round is not taken where more than one in a hundred of their labels
# would change: candidates then are not those that rows need, as among means without neighbours.
N_AUDITED = 2048
MAX_CHANGED = 0.01

# Rows of a cell are taken so many at once, so that their scores stay in the second cache, and the
# sums of so many of these pieces are kept until they are added.
PIECE_ROWS = 4096
MAX_KEPT_PIECES = 64

Piece = tuple[int, Array]  # a cell, and numbers of rows


def truncated_steps_suit(mixture: Mixture, rows: RowSource, n_components: int) -> bool:
    """Return whether there are rows enough, and all that truncated steps need."""
    if rows.n_rows < MIN_ROWS * n_components or rows.is_sparse or rows.incomplete:
        return False
    if mixture.known is not None or mixture.posterior.tsallis:
        return False
    kind: Any = type(mixture.family)
    return kind.select is not Family.select and None not in mixture.family.component_axes


class TruncatedSteps:
    """What the truncated steps of a run have in common: the rows and their last labels."""

    def __init__(
        self,
        rows: RowSource,
        n_components: int,
        tol: float,
        labels: Any = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.rows = rows
        self.tol = tol
        self.note = note
        self.labels = labels  # after the last step, where the rows are
        self.of_rows: LabelsOfRows = None  # as published, after the last exact step
        if isinstance(rows, Rows):
            self.of_rows = np.zeros(rows.n_rows, np.int64), np.zeros(rows.n_rows, rows.dtype)
        self._span_size = span_rows(rows.n_rows, rows.n_features, n_components)

    @cached_property
    def audited(self) -> tuple[Array, Array]:
        """Numbers of the rows to audit, and their shares of the weight."""
        numbers, weights = self.rows.draw(N_AUDITED, 0)
        return numbers, weights / weights.sum()

    def over_spans(self, function: Callable[[Span], Part], relabels: bool = True) -> Part:
        """Add what a function of a span returns; it may overwrite the labels of the span."""
        total, self.labels = self.rows.map_reduce_spans(
            function, self.labels, self._span_size, relabels
        )
        return total

    def state(self, state: EMState[Point]) -> EMState[Point]:
        """Return the state of a run whose steps are truncated ones, too."""
        point = TruncatedPoint(state.point.mixture, state.point.params, self)
        best = state.best
        if best is not None:
            best = best[0], point.at(best[1].params)
        return replace(state, point=point, best=best)

    def round(self, point: Point, cells: "_Cells") -> tuple[Point, list[float]]:
        """Return the point after a round, and the bound before each step."""
        bounds: list[float] = []
        while len(bounds) < MAX_STEPS:
            stats = self.over_spans(_Near(point, cells))
            bounds.append(point.bound(stats))
            after = point.maximize(stats, self.rows)
            if not point.comparable(after):
                break
            point = after
            gains = np.diff(bounds)
            if len(gains) > 0 and gains[-1] <= max(self.tol, MIN_RELATIVE_GAIN * gains[0]):
                break
        return point, bounds


@dataclass(frozen=True, eq=False)
class TruncatedPoint(Point):
    """A point whose steps are an exact one and truncated ones."""

    steps: TruncatedSteps

    def expect(self, rows: RowSource) -> Statistics:
        """Return the statistics of an exact step, and note the labels of rows."""
        expect = partial(_expect_and_label, Point(self.mixture, self.params), self.steps.of_rows)
        stats, self.steps.labels = rows.noting_labels(expect)
        return stats

    def maximize(self, stats: Statistics, rows: RowSource) -> Self:
        """Return a better point: that after an exact step, or after truncated steps, too."""
        point = Point(self.mixture, self.params)
        best = point.maximize(stats, rows)
        if not point.comparable(best):  # rows may belong to where one was moved
            return self.at(best.params)
        steps = self.steps
        n_steps = 0
        gains = [0.0]
        while len(gains) <= MAX_ROUNDS and gains[-1] >= MIN_RELATIVE_GAIN * max(gains):
            cells = _Cells(best.centres)
            lost, changed = steps.over_spans(_Audit(best, cells, *steps.audited), relabels=False)
            if changed > MAX_CHANGED:
                break
            after, bounds = steps.round(best, cells)
            n_steps += len(bounds)
            gain = bounds[-1] - bounds[0]
            if gain <= lost:
                break
            best = after
            gains.append(gain)
        if steps.note is not None:
            steps.note(
                f"{n_steps} truncated steps: gain {sum(gains):.2g}; of {len(steps.audited[0])} "
                f"rows they lose {lost:.2g} and {changed:.2%} of the labels"
            )
        return self.at(best.params)


def rounds_of_truncated_steps(
    point: Point, rows: RowSource, labels: Array, n_rounds: int, tol: float
) -> tuple[Point, float, Array]:
    """Return a point after rounds of truncated steps, the bound before the last, and labels.

    They begin with labels (n,) of the rows.
    """
    steps = TruncatedSteps(rows, point.n_components, tol, labels.astype(np.int32))
    for _ in range(n_rounds):
        point, bounds = steps.round(point, _Cells(point.centres))
    return point, bounds[-1], steps.labels


def _expect_and_label(
    point: Point, of_rows: LabelsOfRows, block: Block, labels: Labels
) -> Statistics:
    """Return the sums of a block; note the components of its rows by the number of its first.

    Where there is a place for them, note labels as published, and their responsibilities, too.
    """
    scores = point.scores(block)
    labelled = None if of_rows is None else point.label(block, scores)
    assigned = point.assign(block, scores=scores)
    labels[block.start] = assigned.of_components(point.n_components).largest().astype(np.int32)
    if of_rows is not None and labelled is not None:
        note_published(point, block, labelled, assigned, of_rows)
    return point.sums(block, assigned)


@dataclass(frozen=True, eq=False)
class _Near:
    """Sums the statistics of a span, whose rows belong to the candidates of their cell alone."""

    point: Point
    cells: "_Cells"

    def __call__(self, span: Span) -> Statistics:
        family = self.point.family
        params = self.point.params
        sums: list[Array] = []
        total = Statistics(
            value=0.0,
            total=0.0,
            counts=np.zeros(len(params.weights)),
            moments=(),
            centred_at=self._centred_at,
        )
        pieces = self.cells.pieces(span.labels)
        for start in range(0, len(pieces), MAX_KEPT_PIECES):
            some = pieces[start : start + MAX_KEPT_PIECES]
            for near, part in map_reduce(partial(self._expect, span), some).total():
                total.value += part.value
                total.total += part.total
                total.log_units += part.log_units
                total.counts[_with_background(near, params)] += part.counts
                moments = [
                    np.moveaxis(moment, axis, 0)
                    for moment, axis in zip(part.moments, family.component_axes, strict=True)
                ]
                if not sums:
                    sums = [np.zeros((params.n_components, *each.shape[1:])) for each in moments]
                for whole, moment in zip(sums, moments, strict=True):
                    whole[near] += moment
        moments_of_all = [
            np.moveaxis(whole, 0, axis)
            for whole, axis in zip(sums, family.component_axes, strict=True)
        ]
        return replace(total, moments=tuple(moments_of_all))

    def _expect(self, span: Span, piece: Piece) -> list[tuple[Array, Statistics]]:
        """Return the candidates of a piece, and their statistics; note the labels of its rows."""
        cell, numbers = piece
        near = self.cells.candidates[cell]
        rows = span.subset(numbers, len(near))
        labels = Labels()
        stats = rows.map_reduce(
            partial(_expect_and_label, self._candidates[cell], None, labels=labels)
        )
        span.labels[numbers] = near[joined(labels)]
        stats = replace(stats, unit=rows.weight_unit).in_unit(1.0)
        centred_at = None if self._centred_at is None else self._centred_at[near]
        shifted = self.point.family.shift_moments(stats.first_components(len(near)), centred_at)
        return [(near, replace(stats, moments=shifted.moments, buffers=None))]

    @cached_property
    def _centred_at(self) -> Array | None:
        return self.point.family.centred_at(self.point.components)

    @cached_property
    def _candidates(self) -> list[Point]:
        """The point with the candidates of each cell alone."""
        params = self.point.params
        choose = self.point.family.select
        return [
            self.point.at(params.reordered(near, choose(params.components, near)))
            for near in self.cells.candidates
        ]


@dataclass(frozen=True, eq=False)
class _Audit:
    """Sums nats lost per row of a sample in a span, and the share of labels that differ."""

    point: Point
    cells: "_Cells"
    numbers: Array  # of the sample's rows, which rise
    shares: Array

    def __call__(self, span: Span) -> Array:
        first, last = np.searchsorted(self.numbers, [span.start, span.start + len(span.labels)])
        in_span = self.numbers[first:last] - span.start
        if len(in_span) == 0:
            return np.zeros(2)
        compare = partial(self._compare, self.cells.of_components[span.labels[in_span]])
        lost_and_changed = span.subset(in_span, self.point.n_components).per_row(
            compare, np.float64, 2
        )
        return self.shares[first:last] @ lost_and_changed

    def _compare(self, cells_of_rows: Array, block: Block) -> Array:
        """Return how much each row loses, and whether its label differs, (n, 2)."""
        posterior = self.point.mixture.posterior
        weights = self.point.params.weights
        n = len(block.weights)
        ones = np.ones(n)
        cells_of_rows = cells_of_rows[block.span]
        scores = self.point.offset(self.point.scores(block))
        labels, *_ = posterior.label(scores, weights, ones)
        values = np.empty(n)
        changed = np.empty(n, dtype=bool)
        for cell in np.unique(cells_of_rows).tolist():
            rows = np.flatnonzero(cells_of_rows == cell)
            index = _with_background(self.cells.candidates[cell], self.point.params)
            products = scores.unnormalized[np.ix_(rows, index)]
            slopes = None if scores.slopes is None else scores.slopes[rows]
            of_candidates = Scores(products, scores.bias[index], slopes)
            best, *_ = posterior.label(of_candidates, weights[index], ones[rows])
            changed[rows] = index[best] != labels[rows]
            values[rows] = posterior.values(of_candidates, weights[index])
        of_all = np.maximum(posterior.values(scores, weights), LEAST)
        return np.column_stack([of_all - np.maximum(values, LEAST), changed])


def _with_background(near: Array, params: Params) -> Array:
    """Return the indices of components, and of the background, among weights."""
    return np.append(near, np.arange(params.n_components, len(params.weights)))


class _Cells:
    """Cells of near components, at points (K, d); candidates of one are those and the nearest."""

    def __init__(self, points: Array) -> None:
        cells = near_groups(points, CELL_SIZE)
        nearest = nearest_points(points, points, N_NEAREST)
        self.candidates = [np.union1d(cell, nearest[cell]) for cell in cells]
        self.of_components = np.empty(len(points), dtype=np.int64)
        for i, cell in enumerate(cells):
            self.of_components[cell] = i

    def pieces(self, labels: Array) -> list[Piece]:
        """Return the rows with such labels by cell, some of one cell each."""
        cells = self.of_components[labels]
        order = np.argsort(cells, kind="stable")
        pieces: list[Piece] = []
        for rows in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
            parts = np.array_split(rows, -(-len(rows) // PIECE_ROWS))
            pieces.extend((int(cells[part[0]]), part) for part in parts)
        return pieces


def near_groups(points: Array, size: int) -> list[Array]:
    """Return groups of near points (K, d), of `size` at most, by their numbers."""
    points = points - points.mean(axis=0)
    points /= max(np.abs(points).max(), np.finfo(np.float64).tiny)  # far ones may overflow
    return _halves(points, np.arange(len(points)), size)


def _halves(points: Array, numbers: Array, size: int) -> list[Array]:
    """Cut points in halves along the direction in which they differ most, down to a size."""
    if len(numbers) <= size:
        return [numbers]
    gaps = points[numbers] - points[numbers].mean(axis=0)
    axis = gaps[np.einsum("nd,nd->n", gaps, gaps).argmax()]
    for _ in range(3):  # steps of the power method: any direction near the longest axis will do
        axis = np.dot(np.dot(gaps, axis), gaps)
        axis /= max(np.abs(axis).max(), np.finfo(np.float64).tiny)
    order = numbers[np.argsort(np.dot(gaps, axis), kind="stable")]
    left, right = np.array_split(order, 2)
    return _halves(points, left, size) + _halves(points, right, size)
