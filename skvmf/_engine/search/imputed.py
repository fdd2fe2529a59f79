"""Rows without missing values, as starts see them: filled, or those alone that lack nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..em.predictions import conditional_means
from ..families.gaussian import Gaussian
from ..rows.blocks import DenseBlock
from ..rows.changed import ChangedRows, as_type
from ..rows.sources import RowSource, make_rows
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
    sample = make_rows(as_type(values[whole], rows.dtype), None, unit=False)
    share = float(weights[whole].sum() / weights.sum())
    return sample.subset(np.arange(sample.n_rows), weights[whole], width=1), share


def _fill(values: Callable[[DenseBlock], Array], block: DenseBlock) -> DenseBlock:
    if block.missing is None:
        return block
    return replace(block, X=values(block), missing=None, copied=False)
