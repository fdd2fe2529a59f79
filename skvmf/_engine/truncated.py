"""Truncated steps of EM: between exact ones, rows meet only the components near their own.

Components that are near each other form a cell. In a round of steps a row may only belong to the
candidates of its cell, those nearest to any of the cell: a step costs as many products as there are
candidates, whatever the number of components. As candidates stay, the steps of a round do not lower
their bound, which is one of the exact bound from below (Forster and Lücke, "Can clustering scale
sublinearly with its clusters?", AISTATS 2018). Before each round an audit compares some rows with
all components. A round that might lose more than it gains is not taken.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np

from .._typing import Array
from .blocks import Block
from .contracts import Family, Params, Scores, Statistics
from .merging import nearest_points
from .model import LEAST, Mixture
from .parallel import map_reduce
from .rows import DenseRows, RowSource

MIN_ROWS = 20  # for each component
MAX_ROUNDS, MAX_STEPS = 6, 7  # between two exact steps, and of steps in a round
CELL, NEAREST = 64, 16  # components in a cell at most; candidates of each
AUDITED = 2048  # rows
MAX_CHANGED = 0.01  # of the labels
MIN_GAIN = 1 / 4  # of that of the best round, or of the first step of one; less is the last
PIECE, SPAN = 4096, 64  # rows of a cell taken at once; rows per component read before others
AT_ONCE = 64  # pieces whose sums are kept

Piece = tuple[int, Array]  # a cell, and numbers of rows
Note = Callable[[str], object]  # str tells nobody


class TruncatedSteps:
    """A mixture as `run_em` takes it; each of its steps is an exact one and truncated ones."""

    def __init__(
        self, mixture: Mixture, rows: RowSource, n_components: int, tol: float, note: Note = str
    ) -> None:
        self._mixture, self._rows, self._tol, self._note = mixture, rows, tol, note
        self.lower_bound, self.comparable = mixture.lower_bound, mixture.comparable
        self.labels = np.zeros(rows.n_rows, dtype=np.int32)  # after the last step
        # Labels and their responsibilities, after the last exact step.
        self.of_rows = np.zeros(rows.n_rows, dtype=np.int64), np.zeros(rows.n_rows, rows.dtype)
        self._weights, self._n_components = rows.sampling_weights(), n_components

    @cached_property
    def _audited(self) -> tuple[Array, Array, RowSource]:
        """Numbers of the rows to audit, their shares of the weight, and the rows."""
        numbers, weights = self._rows.draw(AUDITED, 0)
        return numbers, weights / weights.sum(), self._some(numbers, self._n_components)

    @staticmethod
    def possible(mixture: Mixture, rows: RowSource, n_components: int) -> bool:
        """Whether there are rows enough for many components, and all that truncated steps need."""
        enough = rows.n_rows >= MIN_ROWS * n_components
        if not (enough and isinstance(rows, DenseRows)) or rows.incomplete:
            return False
        if mixture.known is not None or mixture.posterior.tsallis:
            return False
        kind: Any = type(mixture.family)
        return kind.chosen is not Family.chosen and None not in mixture.family.component_axes

    def expect(self, params: Params, block: Block) -> Statistics:
        return self._mixture.expect(params, block, self.labels, self.of_rows)

    def maximize(self, stats: Statistics, params: Params, rows: RowSource) -> Params:
        """Return better parameters: those after an exact step, or after truncated steps, too."""
        best = self._mixture.maximize(stats, params, rows)
        if not self.comparable(params, best):  # rows may belong to where one was moved
            return best
        n_steps, gains = 0, [0.0]
        while len(gains) <= MAX_ROUNDS and gains[-1] >= MIN_GAIN * max(gains):
            cells = self.cells(best)
            lost, changed = self._audit(best, cells)
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
        return _Cells(self._mixture.family.centres(params.components), self.labels)

    def round(self, params: Params, cells: "_Cells") -> tuple[Params, list[float]]:
        """Return parameters after a round, and the bound before each step."""
        bounds: list[float] = []
        while len(bounds) < MAX_STEPS:
            stats = self._near(params, cells)
            bounds.append(self.lower_bound(stats, params))
            after = self._mixture.maximize(stats, params, self._rows)
            if not self.comparable(params, after):
                break
            params = after
            gains = np.diff(bounds)
            if len(gains) > 0 and gains[-1] <= max(self._tol, MIN_GAIN * gains[0]):
                break
        return params, bounds

    def _near(self, params: Params, cells: "_Cells") -> Statistics:
        """Return the statistics of all rows, each shared out among the candidates of its cell."""
        family, K = self._mixture.family, params.n_components
        origins = family.origins(params.components)
        sums: list[Array] = []
        total = Statistics(0.0, 0.0, np.zeros(len(params.weights)), (), origins)
        for start in range(0, len(cells.pieces), AT_ONCE):
            some = cells.pieces[start : start + AT_ONCE]
            expect = partial(self._expect_piece, params, cells.candidates, origins)
            for near, part in map_reduce(expect, some).total():
                total.value += part.value
                total.total += part.total
                total.counts[_with_background(near, params)] += part.counts
                own = list(map(np.moveaxis, part.moments, family.component_axes, repeat(0)))
                sums = sums or [np.zeros((K, *moment.shape[1:])) for moment in own]
                for whole, moment in zip(sums, own, strict=True):
                    whole[near] += moment
        moments = tuple(map(np.moveaxis, sums, repeat(0), family.component_axes))
        return replace(total, moments=moments)

    def _expect_piece(
        self, params: Params, candidates: list[Array], origins: Array | None, piece: Piece
    ) -> list[tuple[Array, Statistics]]:
        """Return the candidates of a piece, and their statistics; note the labels of its rows."""
        family, near = self._mixture.family, candidates[piece[0]]
        few = params.reordered(near, family.chosen(params.components, near))
        rows, labels = self._some(piece[1], len(near)), np.empty(len(piece[1]), dtype=np.int32)
        stats = rows.map_reduce(partial(self._mixture.expect, few, labels=labels))
        self.labels[piece[1]] = near[labels]
        stats = replace(stats, unit=rows.weight_unit).in_unit(1.0)
        about = None if origins is None else origins[near]
        moved = family.recenter(stats.first_components(len(near)), about)
        return [(near, replace(stats, moments=moved.moments, buffers=None))]

    def _some(self, numbers: Array, width: int) -> RowSource:
        return self._rows.subset(numbers, self._weights[numbers], width)

    def _audit(self, params: Params, cells: "_Cells") -> tuple[float, float]:
        """Return the nats lost per row of the sample, and the share of labels that differ."""
        numbers, shares, sample = self._audited
        own, n = cells.of_rows[numbers], len(numbers)
        posterior, weights = self._mixture.posterior, params.weights
        lost, changed = np.zeros(n), np.zeros(n)

        def compare(block: Block, span: slice) -> None:
            scores, ones = self._mixture.scores(params, block), np.ones(len(block.weights))
            labels, values = posterior.label(scores, weights, ones)[0], np.empty(len(ones))
            for cell in np.unique(own[span]).tolist():
                rows = np.flatnonzero(own[span] == cell)
                index = _with_background(cells.candidates[cell], params)
                products = scores.products[np.ix_(rows, index)]
                slopes = None if scores.slopes is None else scores.slopes[rows]
                few = Scores(products, scores.bias[index], slopes)
                found = posterior.label(few, weights[index], ones[rows])[0]
                changed[span][rows] = index[found] != labels[rows]
                values[rows] = posterior.values(few, weights[index])
            best = np.maximum(posterior.values(scores, weights), LEAST)
            lost[span] = best - np.maximum(values, LEAST)

        sample.for_each(compare)
        return float(shares @ lost), float(shares @ changed)


def _with_background(near: Array, params: Params) -> Array:
    """Return places of components, and of the background, among weights."""
    return np.append(near, np.arange(params.n_components, len(params.weights)))


class _Cells:
    """Cells of near components, at points (K, d), and of the rows, by labels of those.

    Candidates of a cell are its components, and those that are nearest to any of them. Pieces are
    numbers of some rows of a cell each.
    """

    def __init__(self, points: Array, labels: Array) -> None:
        cells, points = near_groups(points, CELL), _scaled(points)
        nearest = nearest_points(points, points, NEAREST)
        self.candidates = [np.union1d(cell, nearest[cell]) for cell in cells]
        of_components = np.empty(len(points), dtype=np.int64)
        for i, cell in enumerate(cells):
            of_components[cell] = i
        self.of_rows = of_components[labels]
        self.pieces = _pieces(self.of_rows, len(points))


def _scaled(points: Array) -> Array:
    points = points - points.mean(axis=0)
    return points / max(np.abs(points).max(), np.finfo(np.float64).tiny)  # far ones may overflow


def near_groups(points: Array, size: int) -> list[Array]:
    """Return groups of near points (K, d), of `size` at most, by their numbers."""
    return _halves(_scaled(points), np.arange(len(points)), size)


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


def _pieces(own: Array, n_components: int) -> list[Piece]:
    """Return rows by cell, span after span: rows on a disk are read in spans that memory holds."""
    n_spans = -(-len(own) // (SPAN * n_components))
    spans = np.arange(len(own)) * n_spans // len(own)
    keys = spans * (own.max() + 1) + own
    order = np.argsort(keys, kind="stable")
    pieces: list[Piece] = []
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        parts = np.array_split(rows, -(-len(rows) // PIECE))
        pieces.extend((int(own[part[0]]), part) for part in parts)
    return pieces
