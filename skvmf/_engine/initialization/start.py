"""The start of a fit: from what the user gives, or from the rows."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily
from ..contracts.start import Start
from ..contracts.statistics import Components, Params, Statistics
from ..data.base import RowSource
from ..em.loop import OnIteration, ignore
from ..families.background import FIRST_WEIGHT, NO_BACKGROUND, Background
from . import kmeans, partitions
from .merging_start import MergingStart
from .overseeding import SEEDS_PER_COMPONENT
from .partitions import Assignment

# Products in a step on the sample from which single precision saves more than a second kind of
# compiled code costs once.
_SINGLE_PRECISION_PRODUCTS = 10**10


@dataclass(frozen=True)
class Initialization(Start):
    """What a fit begins with, checked."""

    n_components: int
    partition: str | Assignment  # by name, or as `checked_partition` returns it
    weights: Array | None = None  # (K,), where given; 0 prunes a component from the beginning
    means: Array | None = None  # first centres (K, d), where given
    shapes: Array | None = None  # first covariances or concentrations, where given
    n_init: int = 1  # how many starts compete on a sample
    init_size: int = 1  # how many rows the sample has
    background: Background = NO_BACKGROUND

    def describe(self, n_rows: int) -> tuple[str, str, int | None]:
        K = self.n_components
        sample = min(n_rows, max(self.init_size, K))
        if not self.merges:
            detail = f"{sample} of {n_rows} rows, {K} components"
            return "k-means", detail, kmeans.KMEANS_MAX_ITER
        first = min(sample, SEEDS_PER_COMPONENT * K)
        return "Merging", f"{sample} of {n_rows} rows, {first} components merged into {K}", None

    @property
    def n_starts(self) -> int:
        """How many starts continue on all rows; a given start is one."""
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
        family: AnyFamily,
        rows: RowSource,
        rng: np.random.RandomState,
        on_iteration: OnIteration = ignore,
    ) -> tuple[AnyFamily, Params]:
        K, centres = self.n_components, self.means
        if self.merges:
            merging = self._merging(family, rows, rng, on_iteration)
            seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
            starts = map(merging.run, map(np.random.default_rng, seeds))
            best = max(starts, key=lambda start: start.bound)
            stats, about = best.partition(family, rows)
        elif centres is None and self.partition in ("kmeans", "k-means++"):
            stats, about = self._nearest_partition(family, rows, rng, on_iteration)
        elif centres is None and self.partition == "random_from_data":
            centres = partitions.random_rows(rows, K, rng)
            stats, about = kmeans.nearest_partition(family, rows, centres)
        else:
            stats, about = self._given_partition(family, rows, rng)
        family = family.with_prior_from(stats)
        weights = stats.counts / stats.counts.sum()
        if self.weights is not None:
            weights = self.weights
        elif centres is not self.means:  # random rows
            weights = np.full(K, 1 / K)
        rest = 1 - stats.counts.sum() / stats.total  # what a partition leaves to the background
        weights = self.background.add_weight(weights, min(max(rest, FIRST_WEIGHT), 0.9))
        params = Params.first(weights, family.initial(stats, about, centres))
        return family, params if self.weights is None else params.pruned()

    def _given_partition(
        self, family: AnyFamily, rows: RowSource, rng: np.random.RandomState
    ) -> tuple[Statistics, Components]:
        """Return the partition by given means, labels or responsibilities, or a random one."""
        K, assign = self.n_components, self.partition
        anywhere = np.tile(partitions.first_row(rows), (K, 1))
        if self.means is not None:
            return kmeans.nearest_partition(family, rows, self.means, about=anywhere)
        if isinstance(assign, str):
            assign = partial(partitions.assign_randomly, partitions.draw_seed(rng), K)
        return partitions.partition_statistics(family, rows, anywhere, assign)

    def _nearest_partition(
        self, family: AnyFamily, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> tuple[Statistics, Components]:
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

    def _merging(
        self, family: AnyFamily, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> MergingStart:
        """Return starts by merging on a sample."""
        proposal, K = family.proposal(), self.n_components
        n_products = min(rows.n_rows, self.init_size) * rows.n_features * 4 * K
        single = n_products >= _SINGLE_PRECISION_PRODUCTS
        sample = self._sample(rows, partitions.draw_seed(rng), 4 * K, single)
        return MergingStart(proposal, sample, K, watch, self.background)
