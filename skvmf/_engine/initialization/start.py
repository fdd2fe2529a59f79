"""Where a fit begins: what the user gives, or what the rows provide."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Family
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..em.loop import OnIteration, ignore
from ..em.spec import Start
from ..families.background import FIRST_SHARE, with_share
from . import kmeans, partitions
from .merging_start import MergingStart
from .partitions import Assignment

# Products in a step on the sample from which single precision saves more than a second kind of
# compiled code costs once.
_SINGLE_PRECISION_PRODUCTS = 10**10


@dataclass(frozen=True)
class Initialization(Start):
    """What a fit begins with, checked.

    Parameters
    ----------
    n_components : int
        Number of components.
    partition : str or callable
        Where the first partition comes from, by name; or what assigns a block's rows, as
        `checked_partition` returns it.
    weights : ndarray of shape (n_components,) or None
        First weights, where given. A component of weight 0 is pruned from the beginning,
        whatever else is given.
    means : ndarray of shape (n_components, n_features) or None
        First centres, where given.
    covariances : ndarray or None
        First covariances of Gaussian components, where given.
    n_init : int
        How many starts compete on a sample.
    init_size : int
        How many rows the sample has.
    background : float or None
        The log-density of a background; None is none.
    """

    n_components: int
    partition: str | Assignment
    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None
    n_init: int = 1
    init_size: int = 1
    background: float | None = None

    @property
    def title(self) -> str:
        """What progress reports call the search for first parameters."""
        return "Merging" if self.partition == "merging" else "k-means"

    @property
    def max_steps(self) -> int | None:
        """Number of steps that a search reports at most; None if that is not known."""
        return None if self.merges else kmeans.KMEANS_MAX_ITER

    @property
    def reports_late(self) -> bool:
        """Whether a search has worked for a while when it reports its first step."""
        return self.merges

    @property
    def n_starts(self) -> int:
        """How many starts go on to all rows; a start that is given is one."""
        return 1 if self.given or self.merges else self.n_init

    @property
    def merges(self) -> bool:
        """Whether starts are made by merging, and compete on a sample."""
        return not self.given and self.partition == "merging"

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
        family = family.with_prior_from(stats)
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
            return self._merged_partition(family, rows, rng, watch), None
        if self.partition in ("kmeans", "k-means++"):
            return self._nearest_partition(family, rows, rng, watch), None
        assign = self.partition
        if isinstance(assign, str):
            assign = partial(partitions.assign_randomly, partitions.draw_seed(rng), K)
        return partitions.partition_statistics(family, rows, anywhere, assign), None

    def _nearest_partition(
        self, family: Family, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[Statistics, Any]:
        """Return the partition of all rows by the nearest k-means centre of a sample."""
        n_steps = 0 if self.partition == "k-means++" else kmeans.KMEANS_MAX_ITER
        many = rows.n_rows > max(self.init_size, self.n_components)
        seed = partitions.draw_seed(rng) if many else 0  # no other: all are drawn
        sample = self._sample(rows, seed, self.n_components)
        centres = kmeans.kmeans_plusplus(family, sample, self.n_components, rng)
        _, components = kmeans.nearest_partition(
            family, sample, centres, max_iter=n_steps, on_iteration=watch
        )
        return kmeans.nearest_partition(family, rows, family.centres(components))

    def _sample(self, rows: RowSource, seed: int, width: int, single: bool = False) -> RowSource:
        """Draw some rows by weight; a row brings `width` numbers along in a step."""
        size = max(self.init_size, self.n_components)
        return rows.subset(*rows.draw(size, seed), width=width, single=single)

    def _merged_partition(
        self, family: Family, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[Statistics, Any]:
        """Return the soft partition of all rows by the best of some starts on a sample."""
        proposal = family.proposal(self.background is not None)
        n_rows, M = min(rows.n_rows, self.init_size), 4 * self.n_components
        single = n_rows * rows.n_features * M >= _SINGLE_PRECISION_PRODUCTS
        sample = self._sample(rows, partitions.draw_seed(rng), M, single)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        start = MergingStart(proposal, sample, self.n_components, watch)
        starts = [start.run(np.random.default_rng(seed), self.background) for seed in seeds]
        best = max(starts, key=lambda start: start.bound)
        return best.partition(family, rows)
