"""Where a fit begins: what the user gives, checked before any work, or what the rows provide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._engine.contracts.model_parts import Family
from .._engine.contracts.responsibilities import Responsibilities
from .._engine.contracts.statistics import Params, Statistics
from .._engine.data.base import RowSource
from .._engine.data.blocks import Block
from .._engine.em.loop import OnIteration, ignore
from .._engine.families.background import FIRST_SHARE, with_share
from .._engine.initialization import kmeans, partitions
from .._engine.initialization.base import Proposal
from .._typing import Array
from ..distributions._arguments import checked_array

# Numbers in a product of the sample from which single precision saves more than a second kind of
# compiled code costs once.
LARGE = 10**10

ShareOut: TypeAlias = Callable[[Block], tuple[Responsibilities, Array]]


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
    seeding : Seeding or None
        What `partition='merging'` starts with; None is k-means instead.
    n_init : int
        How many starts compete on a sample.
    init_size : int
        How many rows the sample has.
    background : float or None
        The log-density of a background; None is none.
    """

    n_components: int
    partition: str | ShareOut
    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None
    seeding: Proposal | None = None
    n_init: int = 1
    init_size: int = 1
    background: float | None = None

    @property
    def n_starts(self) -> int:
        """How many starts are to go on to all rows; a start that is given is one."""
        return 1 if self.given or self.merges else self.n_init

    @property
    def merges(self) -> bool:
        """Whether starts are made by merging, and compete on a sample."""
        return not self.given and self.partition == "merging" and self.seeding is not None

    @property
    def given(self) -> bool:
        """Whether the user has said where to begin."""
        return self.means is not None or not isinstance(self.partition, str)

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
            weights = self._beside_background(self.weights, stats)
            return family, Params.first(weights, components).pruned()
        weights = stats.counts / stats.counts.sum()
        if centres is not None and self.means is None:  # random rows
            weights = np.full(self.n_components, 1 / self.n_components)
        return family, Params.first(self._beside_background(weights, stats), components)

    def _beside_background(self, weights: Array, stats: Statistics) -> Array:
        """Return first weights with the background's: what a partition leaves out, or a share."""
        if self.background is None:
            return weights
        left_out = 1 - stats.counts.sum() / stats.total
        return with_share(weights, min(max(left_out, FIRST_SHARE), 0.9))

    def _first_partition(
        self, family: Family, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[tuple[Statistics, Any], Array | None]:
        """Return the statistics of a partition, and centres where those are kept."""
        K = self.n_components
        anywhere = np.tile(partitions.first_row(rows), (K, 1))
        if self.means is not None:
            return kmeans.nearest_partition(family, rows, self.means, about=anywhere), self.means
        if self.partition == "random_from_data":
            centres = partitions.random_rows(rows, K, rng)
            return kmeans.nearest_partition(family, rows, centres), centres
        if self.merges:
            assert self.seeding is not None
            return self._merged_partition(self.seeding, family, rows, rng, watch), None
        if self.partition in ("kmeans", "k-means++", "merging"):
            return self._nearest_partition(family, rows, rng, watch), None
        share = self.partition
        if isinstance(share, str):
            share = partial(partitions.share_randomly, partitions.draw_seed(rng), K)
        return partitions.partition_statistics(family, rows, anywhere, share), None

    def _nearest_partition(
        self, family: Family, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[Statistics, Any]:
        """Return the partition of all rows by the nearest k-means centre of a sample."""
        n_steps = 0 if self.partition == "k-means++" else kmeans.KMEANS_MAX_ITER
        many = rows.n_rows > max(self.init_size, self.n_components)
        seed = partitions.draw_seed(rng) if many else 0  # no other: all are drawn
        sample = self._sample(rows, seed, self.n_components)
        centres = kmeans.kmeans_plusplus(family, sample, self.n_components, rng)
        _, found = kmeans.nearest_partition(
            family, sample, centres, max_iter=n_steps, on_iteration=watch
        )
        return kmeans.nearest_partition(family, rows, family.centres(found))

    def _sample(self, rows: RowSource, seed: int, width: int, single: bool = False) -> RowSource:
        """Draw some rows by weight; a row brings `width` numbers along in a step."""
        size = max(self.init_size, self.n_components)
        return rows.subset(*rows.draw(size, seed), width=width, single=single)

    def _merged_partition(
        self,
        seeding: Proposal,
        family: Family,
        rows: RowSource,
        rng: np.random.RandomState,
        watch: OnIteration,
    ) -> tuple[Statistics, Any]:
        """Return the soft partition of all rows by the best of some starts on a sample."""
        n_rows, M = min(rows.n_rows, self.init_size), 4 * self.n_components
        single = n_rows * rows.n_features * M >= LARGE
        sample = self._sample(rows, partitions.draw_seed(rng), M, single)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        starts = [
            seeding.start(
                sample, self.n_components, np.random.default_rng(seed), watch, self.background
            )
            for seed in seeds
        ]
        best = max(starts, key=lambda start: start.bound)
        return best.partition(family, rows)


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
) -> ShareOut:
    """Return how `init_params`, labels or responsibilities, shares out a block.

    Responsibilities may have any scale; they are divided by their largest. Beside a background
    some labels may be -1.
    """
    given = checked_array(given, "init_params")
    shape, least = (rows.n_rows, n_components), -int(background)
    labels = given.shape == shape[:1] and np.isin(given, np.arange(least, n_components)).all()
    if labels and rows.map_reduce_weights(partial(_weight_of, given >= 0)).any():
        return partial(partitions.share_labels, given.astype(np.int32), n_components)
    if given.shape == shape and np.isfinite(given).all() and (given >= 0).all() and given.any():
        resp = (given / given.max()).astype(rows.dtype)
        if rows.map_reduce_weights(partial(_weight_of, resp)).any():
            return partial(partitions.share_responsibilities, resp)
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from {least} to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )
