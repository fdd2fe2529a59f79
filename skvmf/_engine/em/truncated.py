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
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from ..._typing import Array
from ..families.family import Family, Scores
from ..families.neighbours import nearest_points
from ..families.params import Params
from ..families.statistics import Statistics
from ..rows.blocks import MIN_ROWS, Block, span_rows
from ..rows.parallel import map_reduce
from ..rows.sources import Labels, Rows, RowSource, Span, joined
from .loop import OfRows
from .mixture import LEAST, Mixture

MAX_ROUNDS, MAX_STEPS = 6, 7  # between two exact steps, and of steps in a round
CELL, NEAREST = 64, 16  # components in a cell at most; candidates of each
AUDITED = 2048  # rows
MAX_CHANGED = 0.01  # of the labels
MIN_GAIN = 1 / 4  # of that of the best round, or of the first step of one; less is the last
PIECE, AT_ONCE = 4096, 64  # rows of a cell taken at once; pieces whose sums are kept

Piece = tuple[int, Array]  # a cell, and numbers of rows
Note = Callable[[str], object]  # str tells nobody
Part = TypeVar("Part")


class TruncatedSteps:
    """A mixture as `run_em` takes it; each of its steps is an exact one and truncated ones."""

    def __init__(
        self,
        mixture: Mixture,
        rows: RowSource,
        n_components: int,
        tol: float,
        labels: Any = None,
        note: Note = str,
    ) -> None:
        self._mixture, self._rows, self._tol, self._note = mixture, rows, tol, note
        self.lower_bound, self.comparable = mixture.lower_bound, mixture.comparable
        self.labels = labels  # after the last step, where the rows are
        self.of_rows: OfRows = None  # labels and their responsibilities, after the last exact step
        if isinstance(rows, Rows):
            self.of_rows = np.zeros(rows.n_rows, np.int64), np.zeros(rows.n_rows, rows.dtype)
        self._size = span_rows(rows.n_rows, rows.n_features, n_components)

    @cached_property
    def _audited(self) -> tuple[Array, Array]:
        """Numbers of the rows to audit, and their shares of the weight."""
        numbers, weights = self._rows.draw(AUDITED, 0)
        return numbers, weights / weights.sum()

    @staticmethod
    def possible(mixture: Mixture, rows: RowSource, n_components: int) -> bool:
        """Whether there are rows enough for many components, and all that truncated steps need."""
        if rows.n_rows < MIN_ROWS * n_components or rows.is_sparse or rows.incomplete:
            return False
        if mixture.known is not None or mixture.posterior.tsallis:
            return False
        kind: Any = type(mixture.family)
        return kind.select is not Family.select and None not in mixture.family.component_axes

    def expectation(self, params: Params, rows: RowSource) -> Statistics:
        """Return the statistics of an exact step."""
        noted = partial(self._mixture.expect, params, of_rows=self.of_rows)
        stats, self.labels = rows.noting_labels(noted)
        return stats

    def maximize(self, stats: Statistics, params: Params, rows: RowSource) -> Params:
        """Return better parameters: those after an exact step, or after truncated steps, too."""
        best = self._mixture.maximize(stats, params, rows)
        if not self.comparable(params, best):  # rows may belong to where one was moved
            return best
        n_steps, gains = 0, [0.0]
        while len(gains) <= MAX_ROUNDS and gains[-1] >= MIN_GAIN * max(gains):
            cells = self.cells(best)
            audit = _Audit(self._mixture, best, cells, *self._audited)
            lost, changed = self._over_spans(audit, relabels=False)
            if changed > MAX_CHANGED:
                break
            after, bounds = self.round(best, cells)
            n_steps += len(bounds)
            if bounds[-1] - bounds[0] <= lost:
                break
            best, gains = after, [*gains, bounds[-1] - bounds[0]]
        self._note(
            f"{n_steps} truncated steps: gain {sum(gains):.2g}; of {len(self._audited[0])} "
            f"rows they lose {lost:.2g} and {changed:.2%} of the labels"
        )
        return best

    def cells(self, params: Params) -> "_Cells":
        return _Cells(self._mixture.family.centres(params.components))

    def round(self, params: Params, cells: "_Cells") -> tuple[Params, list[float]]:
        """Return parameters after a round, and the bound before each step."""
        bounds: list[float] = []
        while len(bounds) < MAX_STEPS:
            stats = self._over_spans(_Near(self._mixture, params, cells))
            bounds.append(self.lower_bound(stats, params))
            after = self._mixture.maximize(stats, params, self._rows)
            if not self.comparable(params, after):
                break
            params = after
            gains = np.diff(bounds)
            if len(gains) > 0 and gains[-1] <= max(self._tol, MIN_GAIN * gains[0]):
                break
        return params, bounds

    def _over_spans(self, function: Callable[[Span], Part], relabels: bool = True) -> Part:
        arguments = function, self.labels, self._size, relabels
        total, self.labels = self._rows.map_reduce_spans(*arguments)
        return total


@dataclass(frozen=True)
class _Near:
    """Sums the statistics of a span, whose rows belong to the candidates of their cell alone."""

    mixture: Mixture
    params: Params
    cells: "_Cells"

    def __call__(self, span: Span) -> Statistics:
        family, K = self.mixture.family, self.params.n_components
        sums: list[Array] = []
        total = Statistics(0.0, 0.0, np.zeros(len(self.params.weights)), (), self._centred_at)
        pieces = self.cells.pieces(span.labels)
        for start in range(0, len(pieces), AT_ONCE):
            expect, some = partial(self._expect, span), pieces[start : start + AT_ONCE]
            for near, part in map_reduce(expect, some).total():
                total.value += part.value
                total.total += part.total
                total.counts[_with_background(near, self.params)] += part.counts
                own = list(map(np.moveaxis, part.moments, family.component_axes, repeat(0)))
                sums = sums or [np.zeros((K, *moment.shape[1:])) for moment in own]
                for whole, moment in zip(sums, own, strict=True):
                    whole[near] += moment
        moments = tuple(map(np.moveaxis, sums, repeat(0), family.component_axes))
        return replace(total, moments=moments)

    def _expect(self, span: Span, piece: Piece) -> list[tuple[Array, Statistics]]:
        """Return the candidates of a piece, and their statistics; note the labels of its rows."""
        family, (cell, numbers) = self.mixture.family, piece
        near = self.cells.candidates[cell]
        rows, labels = span.subset(numbers, len(near)), Labels()
        expect = partial(self.mixture.expect, self._chosen[cell], labels=labels)
        stats = rows.map_reduce(expect)
        span.labels[numbers] = near[joined(labels)]
        stats = replace(stats, unit=rows.weight_unit).in_unit(1.0)
        about = None if self._centred_at is None else self._centred_at[near]
        moved = family.shift_moments(stats.first_components(len(near)), about)
        return [(near, replace(stats, moments=moved.moments, buffers=None))]

    @cached_property
    def _centred_at(self) -> Array | None:
        centred_at: Array | None = self.mixture.family.centred_at(self.params.components)
        return centred_at

    @cached_property
    def _chosen(self) -> list[Params]:
        """The candidates of each cell."""
        params, choose = self.params, self.mixture.family.select
        return [
            params.reordered(near, choose(params.components, near))
            for near in self.cells.candidates
        ]


@dataclass(frozen=True)
class _Audit:
    """Sums nats lost per row of a sample in a span, and the share of labels that differ."""

    mixture: Mixture
    params: Params
    cells: "_Cells"
    numbers: Array  # of the sample's rows, which rise
    shares: Array

    def __call__(self, span: Span) -> Array:
        first, last = np.searchsorted(self.numbers, [span.start, span.start + len(span.labels)])
        own = self.numbers[first:last] - span.start
        if len(own) == 0:
            return np.zeros(2)
        compare = partial(self._compare, self.cells.of_components[span.labels[own]])
        both = span.subset(own, self.params.n_components).per_row(compare, np.float64, 2)
        return self.shares[first:last] @ both

    def _compare(self, own: Array, block: Block) -> Array:
        """Return how much each row loses, and whether its label differs, (n, 2)."""
        posterior, weights = self.mixture.posterior, self.params.weights
        own = own[block.start : block.start + len(block.weights)]
        scores, ones = self.mixture.scores(self.params, block), np.ones(len(own))
        labels, values = posterior.label(scores, weights, ones)[0], np.empty(len(own))
        changed = np.empty(len(own), dtype=bool)
        for cell in np.unique(own).tolist():
            rows = np.flatnonzero(own == cell)
            index = _with_background(self.cells.candidates[cell], self.params)
            products = scores.unnormalized[np.ix_(rows, index)]
            slopes = None if scores.slopes is None else scores.slopes[rows]
            few = Scores(products, scores.bias[index], slopes)
            found = posterior.label(few, weights[index], ones[rows])[0]
            changed[rows] = index[found] != labels[rows]
            values[rows] = posterior.values(few, weights[index])
        best = np.maximum(posterior.values(scores, weights), LEAST)
        return np.column_stack([best - np.maximum(values, LEAST), changed])


def _with_background(near: Array, params: Params) -> Array:
    """Return places of components, and of the background, among weights."""
    return np.append(near, np.arange(params.n_components, len(params.weights)))


class _Cells:
    """Cells of near components, at points (K, d); candidates of one are those and the nearest."""

    def __init__(self, points: Array) -> None:
        cells, nearest = near_groups(points, CELL), nearest_points(points, points, NEAREST)
        self.candidates = [np.union1d(cell, nearest[cell]) for cell in cells]
        self.of_components = np.empty(len(points), dtype=np.int64)
        for i, cell in enumerate(cells):
            self.of_components[cell] = i

    def pieces(self, labels: Array) -> list[Piece]:
        """Return the rows with such labels by cell, some of one cell each."""
        own = self.of_components[labels]
        order = np.argsort(own, kind="stable")
        pieces: list[Piece] = []
        for rows in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
            parts = np.array_split(rows, -(-len(rows) // PIECE))
            pieces.extend((int(own[part[0]]), part) for part in parts)
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
    own = points[numbers] - points[numbers].mean(axis=0)
    axis = own[np.einsum("nd,nd->n", own, own).argmax()]
    for _ in range(3):  # steps of the power method
        axis = np.dot(np.dot(own, axis), own)
        axis /= max(np.abs(axis).max(), np.finfo(np.float64).tiny)
    order = numbers[np.argsort(np.dot(own, axis), kind="stable")]
    left, right = np.array_split(order, 2)
    return _halves(points, left, size) + _halves(points, right, size)
