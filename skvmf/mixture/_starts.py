"""Where a fit starts: what the user gives, checked before any work, or what the rows provide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._engine import initialization as starts
from .._engine.statistics import Params
from ..distributions._arguments import checked_array


@dataclass(frozen=True)
class Start:
    """What a fit starts from, checked.

    Parameters
    ----------
    n_components : int
        Number of components.
    partition : str or callable
        Where the first partition comes from, by name; or what shares out a block, as
        `checked_partition` returns it.
    weights : ndarray of shape (n_components,) or None
        First weights, where given.
    means : ndarray of shape (n_components, n_features) or None
        First centres, where given.
    covariances : ndarray or None
        First covariances of Gaussian components, where given.
    """

    n_components: int
    partition: str | Callable
    weights: np.ndarray | None = None
    means: np.ndarray | None = None
    covariances: np.ndarray | None = None

    def params(self, family, rows, rng):
        """Return a family anchored on a first partition, and first parameters."""
        (stats, about), centres = self._first_partition(family, rows, rng)
        family = family.anchored(stats)
        if self.weights is not None:
            weights = self.weights
        elif centres is not None and self.means is None:  # random rows
            weights = np.full(self.n_components, 1 / self.n_components)
        else:
            weights = stats.counts / stats.counts.sum()
        params = Params.start(weights, family.start(stats, about, centres))
        return family, params if self.weights is None else params.pruned()

    def _first_partition(self, family, rows, rng):
        """Return the statistics of a partition, and centres where those are kept."""
        K = self.n_components
        if self.means is not None:
            return starts.nearest_partition(family, rows, self.means), self.means
        if self.partition == "random_from_data":
            centres = starts.random_rows(rows, K, rng)
            return starts.nearest_partition(family, rows, centres), centres
        if self.partition in ("kmeans", "k-means++"):
            centres = starts.kmeans_plusplus(family, rows, K, rng)
            n_steps = starts.KMEANS_MAX_ITER if self.partition == "kmeans" else 0
            return starts.nearest_partition(family, rows, centres, max_iter=n_steps), None
        share = self.partition
        if share == "random":
            share = partial(starts.share_labels, starts.random_labels(rows, K, rng), K)
        centre = np.tile(starts.first_row(rows), (K, 1))
        return starts.partition_statistics(family, rows, centre, share), None


def checked_weights(weights, n_components, name):
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


def checked_means(means, name, shape=None):
    """Return means as finite float64, (n_components, n_features), or raise a ValueError."""
    means = checked_array(means, name).astype(np.float64)
    if means.ndim != 2 or means.size == 0 or shape not in (None, means.shape):
        expected = "(n_components, n_features)" if shape is None else shape
        raise ValueError(f"{name} should have the shape {expected}, got {means.shape}.")
    if not np.isfinite(means).all():
        raise ValueError(f"{name} contains nan or inf: give finite means.")
    return means


def checked_partition(given, rows, n_components):
    """Return how `init_params`, labels or responsibilities, shares out a block."""
    given = checked_array(given, "init_params")
    shape = (rows.n_rows, n_components)
    if given.shape == shape[:1] and np.isin(given, np.arange(n_components)).all():
        return partial(starts.share_labels, given.astype(np.int32), n_components)
    if (
        given.shape == shape
        and np.isfinite(given).all()
        and (given >= 0).all()
        and (rows.sampling_weights() @ given).any()
    ):
        return partial(starts.share_responsibilities, given.astype(rows.dtype))
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from 0 to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )
