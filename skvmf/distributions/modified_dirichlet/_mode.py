"""Modes of many modified Dirichlets at once, and the limits of their parameters."""

import numpy as np

from ..._kernels import dirichlet
from ..._typing import Array

MAX_PARAMETER = 1e300  # times the log of the smallest float, and summed, it is still a float


def checked_sizes(alpha: Array, name: str) -> Array:
    """Return parameters, or raise a ValueError that names them if densities would overflow."""
    if not np.all(np.abs(alpha) <= MAX_PARAMETER):  # nor for nan
        raise ValueError(f"{name} must be finite, and at most {MAX_PARAMETER:g} in absolute value.")
    return alpha


def modes(excess: Array, floor: float, *, by_sorting: bool = False) -> Array:
    """Return the most probable point for each vector along the last axis.

    `excess` of shape (..., n) is alpha - 1 + counts: in alpha itself, counts below 1e-16 would be
    lost. If no excess is above 0, the first largest takes all but the floors. `by_sorting` uses
    Algorithm 2 of Tu in place of Algorithm 1.
    """
    n = excess.shape[-1]
    if n * floor >= 1:
        return np.full(excess.shape, 1 / n)
    x = np.full(excess.shape, floor)
    vectors, points = np.ascontiguousarray(excess).reshape(-1, n), x.reshape(-1, n)
    largest = vectors.argmax(axis=-1)
    at_vertex = vectors.max(axis=-1) <= 0  # no unique mode, or on the border
    points[at_vertex, largest[at_vertex]] = 1 - (n - 1) * floor
    if not by_sorting:
        points[~at_vertex] = dirichlet.mode_by_rounds(vectors[~at_vertex], floor)
        return x
    for i in np.flatnonzero(~at_vertex):
        dirichlet.mode_by_sorting(vectors[i], np.argsort(vectors[i]), floor, points[i])
    return x
