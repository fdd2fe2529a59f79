"""Where a fit begins: what the user gives, checked before any work, or what the rows provide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._engine import initialization as engine
from .._engine.chunks import Array, Chunk
from .._engine.contracts import Family, RowSource
from .._engine.em import OnIteration, ignore
from .._engine.shares import Shares
from .._engine.statistics import Params, Statistics
from ..distributions._arguments import checked_array

ShareOut: TypeAlias = Callable[[Chunk], tuple[Shares, Array]]


@dataclass(frozen=True)
class Initialization:
    """What a fit begins with, checked.

    Parameters
    ----------
    n_components : int
        Number of components.
    partition : str or callable
        Where the first partition comes from, by name; or what shares out a block, as
        `checked_partition` returns it.
    weights : ndarray of shape (n_components,) or None
        First weights, where given. A component of weight 0 is pruned from the beginning,
        whatever else is given.
    means : ndarray of shape (n_components, n_features) or None
        First centres, where given.
    covariances : ndarray or None
        First covariances of Gaussian components, where given.
    """

    n_components: int
    partition: str | ShareOut
    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None

    @property
    def random(self) -> bool:
        """Whether another draw begins elsewhere."""
        return self.means is None and isinstance(self.partition, str)

    def first(
        self,
        family: Family,
        rows: RowSource,
        rng: np.random.RandomState,
        on_iteration: OnIteration = ignore,
    ) -> tuple[Family, Params]:
        """Return a family anchored on a first partition, and first parameters."""
        (stats, about), centres = self._first_partition(family, rows, rng, on_iteration)
        family = family.anchored(stats)
        components = family.initial(stats, about, centres)
        if self.weights is not None:
            return family, Params.first(self.weights, components).pruned()
        if centres is not None and self.means is None:  # random rows
            return family, Params.first(
                np.full(self.n_components, 1 / self.n_components), components
            )
        return family, Params.first(stats.counts / stats.counts.sum(), components)

    def _first_partition(
        self, family: Family, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[tuple[Statistics, Any], Array | None]:
        """Return the statistics of a partition, and centres where those are kept."""
        K = self.n_components
        anywhere = np.tile(engine.first_row(rows), (K, 1))
        if self.means is not None:
            return engine.nearest_partition(family, rows, self.means, about=anywhere), self.means
        if self.partition == "random_from_data":
            centres = engine.random_rows(rows, K, rng)
            return engine.nearest_partition(family, rows, centres), centres
        if self.partition in ("kmeans", "k-means++"):
            centres = engine.kmeans_plusplus(family, rows, K, rng)
            n_steps = engine.KMEANS_MAX_ITER if self.partition == "kmeans" else 0
            found = engine.nearest_partition(
                family, rows, centres, max_iter=n_steps, on_iteration=watch
            )
            return found, None
        share = self.partition
        if isinstance(share, str):
            share = partial(engine.share_labels, engine.random_labels(rows, K, rng), K)
        return engine.partition_statistics(family, rows, anywhere, share), None


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


def checked_partition(given: Any, rows: RowSource, n_components: int) -> ShareOut:
    """Return how `init_params`, labels or responsibilities, shares out a block.

    Responsibilities may have any scale; they are divided by their largest.
    """
    given = checked_array(given, "init_params")
    shape = (rows.n_rows, n_components)
    if given.shape == shape[:1] and np.isin(given, np.arange(n_components)).all():
        return partial(engine.share_labels, given.astype(np.int32), n_components)
    if given.shape == shape and np.isfinite(given).all() and (given >= 0).all() and given.any():
        resp = (given / given.max()).astype(rows.dtype)
        if (rows.sampling_weights() @ resp).any():
            return partial(engine.share_responsibilities, resp)
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from 0 to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )
