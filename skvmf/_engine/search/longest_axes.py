"""The longest axes of clusters, across which they are cut in two."""

from collections.abc import Callable

import numpy as np

from ..._typing import Array

# E|z| of a standard normal: so many standard deviations half of the rows are off on average.
MEAN_DEVIATION = 0.8


def half_axes(
    scatter: Callable[[Array], Array], first: Array, n_iterations: int
) -> tuple[Array, Array]:
    """Return how far half of each cluster's rows are off, (K, d), and the variances there, (K,).

    That is E|z| sigma u, where u is near the longest axis and sigma^2 the variance along it, by the
    power method. ``scatter(axes)`` returns the covariance matrix of each cluster times its axis.
    It begins at `first` (K, d), sums of a cluster's rows with random factors: unlike random
    numbers for each feature, these are the same for features in another order.
    """
    axes = _unit(first)
    variances = np.zeros(len(axes))
    for _ in range(n_iterations):
        products = scatter(axes)
        variances = _lengths(products)
        axes = np.where(variances[:, None] > 0, _unit(products), axes)
    return MEAN_DEVIATION * np.sqrt(variances)[:, None] * axes, variances


def _unit(vectors: Array) -> Array:
    lengths = _lengths(vectors)
    unit: Array = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    return unit


def _lengths(vectors: Array) -> Array:
    """Return the lengths of vectors whose squares may over- or underflow: scatter is a square."""
    largest = np.abs(vectors).max(axis=1)
    within = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    lengths: Array = largest * np.linalg.norm(within, axis=1)
    return lengths
