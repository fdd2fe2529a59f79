"""Rows of another source, changed as they are read: filled, in other units, or of less weight."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array, DType
from .blocks import DenseBlock, Missing
from .parallel import Part
from .sources import MAX_MAGNITUDE, RowSource, make_rows

Change = Callable[[DenseBlock], DenseBlock]


class ChangedRows(RowSource):
    """Rows of a source whose values a function of a block changes.

    `incomplete` says whether values may be missing afterwards.
    """

    def __init__(self, rows: RowSource, change: Change, incomplete: bool = False) -> None:
        self._rows = rows
        self._change = change
        self.n_rows = rows.n_rows
        self.n_features = rows.n_features
        self.dtype = rows.dtype
        self.weight_unit = rows.weight_unit
        self.largest = rows.largest
        self.incomplete = incomplete

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        return self._rows.map_reduce(partial(_of_changed, self._change, function))

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        return self._rows.map_reduce_weights(function)

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        self._rows.for_each(lambda block, span: function(self._change(block), span))

    def sampling_weights(self) -> Array:
        return self._rows.sampling_weights()

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        values = as_type(self.take(indices), self.dtype)
        rows = make_rows(values, None, unit=False, missing=self.incomplete)
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        rows = make_rows(self._rows.take(indices), None, unit=False, missing=True)
        return rows.per_row(lambda block: self._change(block).X, np.float64, self.n_features)


def divided(rows: RowSource, units: Array) -> RowSource:
    """Return rows whose features are divided by units (d,)."""
    return ChangedRows(rows, partial(_divide, units), incomplete=rows.incomplete)


def without_outliers(rows: RowSource, known: Array | None, n_components: int) -> RowSource:
    """Return rows of which those that are known to be of the background weigh nothing.

    Where no other row weighs anything, they are all returned as they are.
    """
    if known is None:
        return rows
    are_outliers = known >= n_components
    if not are_outliers.any():
        return rows
    others = LighterRows(rows, are_outliers)
    return others if others.total_weight > 0 else rows


class LighterRows(ChangedRows):
    """Rows of a source of which some (n_rows,) weigh nothing."""

    def __init__(self, rows: RowSource, without_weight: Array) -> None:
        super().__init__(rows, partial(_lighter, without_weight), rows.incomplete)
        self._without_weight = without_weight
        self.is_sparse = rows.is_sparse

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        return self._rows.map_reduce_weights(
            partial(_of_lighter_weights, self._without_weight, function)
        )

    def sampling_weights(self) -> Array:
        return np.where(self._without_weight, 0.0, self._rows.sampling_weights())

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        return self._rows.subset(indices, weights, width, single)

    def take(self, indices: Array) -> Array:
        return self._rows.take(indices)


def _lighter(without_weight: Array, block: Any) -> Any:
    some = without_weight[block.span]
    return replace(block, weights=np.where(some, 0.0, block.weights))


def _of_lighter_weights(
    without_weight: Array, function: Callable[[int, Array], Part], start: int, weights: Array
) -> Part:
    some = without_weight[start : start + len(weights)]
    return function(start, np.where(some, 0.0, weights))


def _divide(units: Array, block: DenseBlock) -> DenseBlock:
    X = as_type(block.X / units, block.X.dtype)
    if block.missing is None:
        return replace(block, X=X, copied=False)
    return replace(block, X=X, copied=False, missing=Missing.of(X, block.buffers))


def as_type(values: Array, dtype: DType) -> Array:
    """Return values in a type of float, moved in where they are too large for it, or for squares.

    Rows that weigh next to nothing beside others may be this far from them in units.
    """
    limit = min(MAX_MAGNITUDE, float(np.finfo(dtype).max))
    return np.clip(values, -limit, limit).astype(dtype, copy=False)


def _of_changed(change: Change, function: Callable[[Any], Part], block: Any) -> Part:
    return function(change(block))
