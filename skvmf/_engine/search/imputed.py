"""Rows as starts see them: in units of their spread, filled, without those known as outliers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array, DType
from ..em.predictions import conditional_means
from ..families.gaussian import Gaussian
from ..rows.blocks import DenseBlock, Missing
from ..rows.parallel import Part
from ..rows.sources import MAX_MAGNITUDE, RowSource, make_rows
from .sample import FreePoint, Sample

# Features up to which values are filled by what they have to do with others: a matrix of
# covariances for each pattern of missing values.
MAX_FULL_DIM = 100

# Rows that the normal distribution is fitted to, and steps of EM: starts need no digits.
N_SAMPLED = 10_000
N_STEPS = 20

# The share of the rows without missing values from which they alone are looked at; and how many
# there are for each component where they are looked at beside filled ones.
MIN_WHOLE_SHARE = 0.5
MIN_WHOLE_ROWS = 8

# The share of the mean variance that each feature has in addition, so that none is constant.
MIN_VARIANCE_SHARE = 1e-6

Change = Callable[[DenseBlock], DenseBlock]


def imputed(rows: RowSource) -> RowSource:
    """Return rows without missing values: filled by their conditional means under one normal.

    Beyond `MAX_FULL_DIM` features it has no covariances: these are then the means of features.
    Features that no row has, as in a batch, are filled by zeros.
    """
    if not rows.incomplete:
        return rows
    d = rows.n_features
    scale = rows.mean_variance() or 1.0
    kind = "full" if d <= MAX_FULL_DIM else "diag"
    family = Gaussian(d, kind, MIN_VARIANCE_SHARE * scale, scale=scale)
    low, high = rows.extent(slice(None))
    extent = np.where(low > high, 0.0, [low, high])
    middle = family.from_centres(np.mean(extent, axis=0, keepdims=True))
    numbers, weights = rows.draw(N_SAMPLED, 0)
    sample = Sample(rows.subset(numbers, weights, width=1))
    normal, _ = sample.em(FreePoint.of(family, np.ones(1), middle), N_STEPS)
    limit = float(np.abs(extent).max())  # of rows with a weight
    return ChangedRows(rows, partial(_fill, partial(conditional_means, normal, limit)))


def filled_by(point: Any, rows: RowSource) -> RowSource:
    """Return rows without missing values: filled by their conditional means under components."""
    low, high = rows.extent(slice(None))
    some_row_has = low <= high
    limit = float(np.abs([low, high])[:, some_row_has].max(initial=0.0))
    return ChangedRows(rows, partial(_fill, partial(conditional_means, point, limit)))


def whole_rows(rows: RowSource, size: int) -> tuple[RowSource | None, float]:
    """Return the rows without missing values of a sample, if any, and their share of the weight."""
    numbers, weights = rows.draw(min(round(size / MIN_WHOLE_SHARE), rows.n_rows), 0)
    values = rows.take(numbers)
    whole = ~np.isnan(values).any(axis=1)
    if not whole.any():
        return None, 0.0
    sample = make_rows(_as(rows.dtype, values[whole]), None, unit=False)
    share = float(weights[whole].sum() / weights.sum())
    return sample.subset(np.arange(sample.n_rows), weights[whole], width=1), share


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
        values = _as(self.dtype, self.take(indices))
        rows = make_rows(values, None, unit=False, missing=self.incomplete)
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        rows = make_rows(self._rows.take(indices), None, unit=False, missing=True)
        return rows.per_row(lambda block: self._change(block).X, np.float64, self.n_features)


def divided(rows: RowSource, units: Array | None) -> RowSource:
    """Return rows whose features are divided by units (d,), if they matter."""
    if units is None:
        return rows
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
    some = without_weight[block.start : block.start + len(block.weights)]
    return replace(block, weights=np.where(some, 0.0, block.weights))


def _of_lighter_weights(
    without_weight: Array, function: Callable[[int, Array], Part], start: int, weights: Array
) -> Part:
    some = without_weight[start : start + len(weights)]
    return function(start, np.where(some, 0.0, weights))


def _divide(units: Array, block: DenseBlock) -> DenseBlock:
    X = _as(block.X.dtype, block.X / units)
    if block.missing is None:
        return replace(block, X=X, copied=False)
    return replace(block, X=X, copied=False, missing=Missing.of(X, block.buffers))


def _as(dtype: DType, values: Array) -> Array:
    """Return values in a type of float, moved in where they are too large for it, or for squares.

    Rows that weigh next to nothing beside others may be this far from them in units.
    """
    limit = min(MAX_MAGNITUDE, float(np.finfo(dtype).max))
    return np.clip(values, -limit, limit).astype(dtype, copy=False)


def _fill(values: Callable[[DenseBlock], Array], block: DenseBlock) -> DenseBlock:
    if block.missing is None:
        return block
    return replace(block, X=values(block), missing=None, copied=False)


def _of_changed(change: Change, function: Callable[[Any], Part], block: Any) -> Part:
    return function(change(block))
