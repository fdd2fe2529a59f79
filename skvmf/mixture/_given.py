"""What the user gives to begin with, checked before any work: weights, means, a partition."""

from functools import partial
from typing import Any

import numpy as np

from .._engine.data.base import RowSource
from .._engine.initialization.partitions import assign_labels, assign_responsibilities
from .._engine.initialization.start import Assignment
from .._typing import Array
from ..distributions._arguments import checked_array


def checked_weights(weights: Any, n_components: int, name: str) -> Array:
    """Return weights as float64 that sum to one, or raise a ValueError that names them."""
    weights = checked_array(weights, name).astype(np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {weights.shape}.")
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(
            f"{name} should be non-negative and sum to 1, "
            f"got minimum {weights.min():.5g} and sum {weights.sum():.5g}."
        )
    normalized: Array = weights / weights.sum()
    return normalized


def checked_weights_beside(weights: Any, n_components: int, background_weight: Any) -> Array:
    """Return weights with that of a background behind them, or raise a ValueError."""
    weights = checked_array(weights, "weights").astype(np.float64)
    share = checked_array(background_weight, "background_weight").astype(np.float64)
    if weights.shape != (n_components,) or share.shape != ():
        raise ValueError(
            f"weights should have the shape ({n_components},) and background_weight be a number, "
            f"got shapes {weights.shape} and {share.shape}."
        )
    together = "weights and background_weight together"
    return checked_weights(np.append(weights, share), n_components + 1, together)


def checked_means(means: Any, name: str, shape: tuple[int, int] | None = None) -> Array:
    """Return means as finite float64, (n_components, n_features), or raise a ValueError."""
    means = checked_array(means, name).astype(np.float64)
    if means.ndim != 2 or means.size == 0 or shape not in (None, means.shape):
        expected = "(n_components, n_features)" if shape is None else shape
        raise ValueError(f"{name} should have the shape {expected}, got {means.shape}.")
    if not np.isfinite(means).all():
        raise ValueError(f"{name} contains nan or inf: give finite means.")
    checked: Array = means
    return checked


def _weight_of(responsibilities: Array, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows in shares of all rows."""
    weight: Array = np.asarray(weights @ responsibilities[start : start + len(weights)])
    return weight


def checked_partition(
    given: Any, rows: RowSource, n_components: int, background: bool = False
) -> Assignment:
    """Return how `init_params`, labels or responsibilities, shares out a block.

    Responsibilities may have any scale; they are divided by their largest. Beside a background
    some labels may be -1.
    """
    given = checked_array(given, "init_params")
    shape, least = (rows.n_rows, n_components), -int(background)
    labels = given.shape == shape[:1] and np.isin(given, np.arange(least, n_components)).all()
    if labels and rows.map_reduce_weights(partial(_weight_of, given >= 0)).any():
        return partial(assign_labels, given.astype(np.int32), n_components)
    if given.shape == shape and np.isfinite(given).all() and (given >= 0).all() and given.any():
        resp = (given / given.max()).astype(rows.dtype)
        if rows.map_reduce_weights(partial(_weight_of, resp)).any():
            return partial(assign_responsibilities, resp)
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from {least} to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )
