"""Weights, means and partitions that the user gives, checked before any work."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._engine.data.base import RowSource
from .._engine.initialization.partitions import (
    Assignment,
    assign_labels,
    assign_responsibilities,
)
from .._typing import Array
from ..distributions._arguments import checked_array


def checked_weights(weights: ArrayLike, n_components: int, name: str) -> Array:
    """Return weights as float64 that sum to one, or raise a ValueError that names them."""
    weights = checked_array(weights, name).astype(np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {weights.shape}.")
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(
            f"{name} should be non-negative and sum to 1, "
            f"got minimum {weights.min():.5g} and sum {weights.sum():.5g}."
        )
    return weights / weights.sum()


def checked_means(means: ArrayLike, name: str, shape: tuple[int, int] | None = None) -> Array:
    """Return means as finite float64, (n_components, n_features), or raise a ValueError."""
    means = checked_array(means, name).astype(np.float64)
    if means.ndim != 2 or means.size == 0 or shape not in (None, means.shape):
        expected = "(n_components, n_features)" if shape is None else shape
        raise ValueError(f"{name} should have the shape {expected}, got {means.shape}.")
    if not np.isfinite(means).all():
        raise ValueError(f"{name} contains nan or inf: give finite means.")
    return means


def checked_directions(means: Array, name: str) -> Array:
    """Return means at unit length, or raise a ValueError."""
    largest = np.abs(means).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError(f"{name} contains a zero row, which has no direction.")
    means = means / largest
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def checked_concentrations(concentrations: ArrayLike | None, n_components: int, name: str) -> Array:
    """Return concentrations (n_components,) as float64, or raise a ValueError."""
    kappa = checked_array(concentrations, name).astype(np.float64)
    if kappa.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {kappa.shape}.")
    if not np.isfinite(kappa).all() or not (kappa >= 0).all():
        raise ValueError(f"{name} should be finite and at least 0, got {kappa}.")
    return kappa


def refuse_unequal(concentrations: Array, tied: bool) -> None:
    """Refuse concentrations that differ where all components share one."""
    if tied and not np.allclose(concentrations, concentrations[0]):
        raise ValueError(
            f"concentration_type='tied' needs one concentration, got {concentrations}."
        )


def _weight_of(responsibilities: Array, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows per component."""
    return np.asarray(weights @ responsibilities[start : start + len(weights)])


def checked_partition(
    partition: ArrayLike, rows: RowSource, n_components: int, least: int = 0
) -> Assignment:
    """Return how `init_params`, labels or responsibilities, assigns the rows of a block.

    Responsibilities may have any scale: they are divided by the largest. Labels are at least
    `least`; rows with the label -1 belong to no component.
    """
    given = checked_array(partition, "init_params")
    shape = rows.n_rows, n_components
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
