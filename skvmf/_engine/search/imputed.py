"""Rows whose missing values are filled, as starts see them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..em.predictions import conditional_means
from ..families.gaussian import Gaussian
from ..rows.blocks import DenseBlock
from ..rows.sources import Part, RowSource, make_rows
from .sample import FreePoint, Sample

# Features up to which values are filled by what they have to do with others: a matrix of
# covariances for each pattern of missing values.
MAX_FULL_DIM = 100

# Rows that the normal distribution is fitted to, and steps of EM: starts need no digits.
N_SAMPLED = 10_000
N_STEPS = 20

# The share of the mean variance that each feature has in addition, so that none is constant.
MIN_VARIANCE_SHARE = 1e-6

Fill = Callable[[DenseBlock], Array]  # returns rows without missing values


def imputed(rows: RowSource, centre: Array | float = 0.0) -> RowSource:
    """Return rows without missing values: filled by their conditional means under one normal.

    Beyond `MAX_FULL_DIM` features it has no covariances: these are then the means of features.
    `centre` (d,) is for features that no row has, as in a batch.
    """
    if not rows.incomplete:
        return rows
    d = rows.n_features
    scale = rows.mean_variance() or 1.0
    kind = "full" if d <= MAX_FULL_DIM else "diag"
    family = Gaussian(d, kind, MIN_VARIANCE_SHARE * scale, scale=scale)
    low, high = rows.extent(slice(None))
    extent = np.where(low > high, centre, [low, high])
    middle = family.from_centres(np.mean(extent, axis=0, keepdims=True))
    numbers, weights = rows.draw(N_SAMPLED, 0)
    sample = Sample(rows.subset(numbers, weights, width=1))
    normal, _ = sample.em(FreePoint.of(family, np.ones(1), middle), N_STEPS)
    limit = float(np.abs(extent).max())  # of rows with a weight
    return ImputedRows(rows, partial(conditional_means, normal, limit))


class ImputedRows(RowSource):
    """Rows of a source, their missing values filled."""

    def __init__(self, rows: RowSource, fill: Fill) -> None:
        self._rows, self._fill = rows, fill
        self.n_rows, self.n_features, self.dtype = rows.n_rows, rows.n_features, rows.dtype
        self.weight_unit, self.largest = rows.weight_unit, rows.largest

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        return self._rows.map_reduce(partial(_of_filled, self._fill, function))

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        return self._rows.map_reduce_weights(function)

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        self._rows.for_each(lambda block, span: function(_filled(self._fill, block), span))

    def sampling_weights(self) -> Array:
        return self._rows.sampling_weights()

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        rows = make_rows(self.take(indices).astype(self.dtype), None, unit=False)
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        rows = make_rows(self._rows.take(indices), None, unit=False, missing=True)
        return rows.per_row(self._fill, np.float64, self.n_features)


def _of_filled(fill: Fill, function: Callable[[Any], Part], block: Any) -> Part:
    return function(_filled(fill, block))


def _filled(fill: Fill, block: DenseBlock) -> DenseBlock:
    if block.missing is None:
        return block
    return replace(block, X=fill(block), missing=None, copied=False)
