"""Rows whose missing values are filled, as starts see them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..em.mixture import FittedMixture, Mixture
from ..families.gaussian import Gaussian
from ..families.params import Params
from ..rows.blocks import DenseBlock
from ..rows.sources import Part, RowSource, make_rows
from .partitions import em_steps

MAX_FULL_DIM = 100  # features up to which values are filled by what they have to do with others
N_SAMPLED = 10_000  # rows that the normal distribution is fitted to
N_STEPS = 20  # of EM
LEAST_SHARE = 1e-6  # of the mean variance, that each feature has in addition

Fill = Callable[[DenseBlock], Array]  # returns rows without missing values


def imputed(rows: RowSource, centre: Array | float = 0.0) -> RowSource:
    """Return rows without missing values: filled by their conditional means under one normal.

    Beyond `MAX_FULL_DIM` features it has no covariances: these are then the means of features.
    `centre` (d,) is for features that no row has, as in a batch.
    """
    if not rows.incomplete:
        return rows
    d, scale = rows.n_features, rows.mean_variance() or 1.0
    kind = "full" if d <= MAX_FULL_DIM else "diag"
    model = Mixture.plain(Gaussian(d, kind, LEAST_SHARE * scale, scale=scale))
    low, high = rows.extent(slice(None))
    extent = np.where(low > high, centre, [low, high])
    middle = model.family.from_centres(np.mean(extent, axis=0, keepdims=True))
    params = Params.first(np.ones(1), middle)
    sample = rows.subset(*rows.draw(N_SAMPLED, 0), width=1)
    params, _ = em_steps(model, sample, params, N_STEPS)
    limit = float(np.abs(extent).max())  # of rows with a weight
    return ImputedRows(rows, partial(FittedMixture(model, params).imputed, limit))


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
