"""Where a fit begins: one class for each way to find a first partition of the rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture, Point
from ..families.background import FIRST_WEIGHT
from ..families.elliptical import Elliptical
from ..families.family import AnyFamily
from ..families.params import Components, Params
from ..families.statistics import Statistics
from ..rows.changed import divided, without_outliers
from ..rows.sources import RowSource
from .imputed import MIN_WHOLE_ROWS, MIN_WHOLE_SHARE, filled_by, imputed, whole_rows
from .kmeans import (
    KMEANS_MAX_ITER,
    draw_seed,
    has_copies,
    kmeans_plusplus,
    kmeans_start,
    random_rows,
)
from .merging_start import RESCORING_STEPS, MergingStart
from .overseeding import MIN_COMPONENTS_OF_MANY, SEEDS_PER_COMPONENT
from .partitions import (
    Assignment,
    assign_labels,
    assign_randomly,
    nearest_partition,
    partition_statistics,
)
from .sample import Draw, FoundStart, Rescoring, Sample, best_of
from .units import units_of_clusters


@dataclass(frozen=True, eq=False)
class Partition:
    """Moments of a partition of the rows, and components that they are about."""

    stats: Statistics
    about: Components
    centres: Array | None = None  # where components are put, if that does not follow


# Products in a step on the sample from which single precision saves more than a second kind of
# compiled code costs once.
_SINGLE_PRECISION_PRODUCTS = 10**10

# The most that rows which belong to no part leave to a background: components need some to begin.
MAX_FIRST_WEIGHT = 0.9


def _say_nothing(note: str) -> None:
    """Print no note."""


@dataclass(frozen=True, eq=False)
class Start(ABC):
    """Where a fit begins. Subclasses find a partition of the rows; what follows is the same."""

    n_components: int
    weights: Array | None = None  # (K,), where given; 0 prunes a component from the beginning
    shapes: Array | None = None  # first covariances or concentrations, where given
    n_init: int = 1  # how many starts compete
    init_size: int = 1  # how many rows a sample has
    max_init_size: int = 1  # and to how many it may grow, if that is more
    note: Callable[[str], None] = _say_nothing  # is told when one grows

    @abstractmethod
    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        """Return a first partition of the rows, without missing values."""

    means: Any = None  # first centres (K, d), where given, as `GivenMeans` has them
    given = False  # whether the user says where to begin, so that all starts are the same
    searches = False  # whether it looks for clusters

    @property
    def n_starts(self) -> int:
        """How many starts continue on all rows."""
        return 1 if self.given else self.n_init

    def describe(self, n_rows: int) -> tuple[str, str, int | None]:
        """Return the title and a detail of a search, and its most steps: None if they are long."""
        detail = f"{self.sample_size(n_rows)} of {n_rows} rows, {self.n_components} components"
        return "k-means", detail, KMEANS_MAX_ITER

    def first(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration = ignore
    ) -> Point:
        """Return where a fit begins, with a prior that is centred on a first partition.

        What is looked for in units of the features' spread is the same in any units.
        """
        candidates = without_outliers(rows, mixture.known, self.n_components)
        outlier_weight = 0.0
        if candidates is not rows:
            outlier_weight = rows.total_weight - candidates.total_weight
        start: Start = self
        by_class = mixture.has_known_classes(self.n_components) and not self.given
        if by_class:
            start = _ByClass.of(self)
        units = mixture.family.units
        in_units = mixture
        if units is not None:
            if start.searches:
                units = units_of_clusters(units, candidates, self.n_components)
            in_units = mixture.in_units(units)
            candidates = divided(candidates, units)
            start = start.in_units(units)
        partition = start.partition(in_units, candidates, rng, watch)
        stats = partition.stats
        family = in_units.family.with_prior_from(stats)
        weights = self.weights if self.weights is not None else start.first_weights(stats)
        not_in_parts = 1 - stats.counts.sum() / (stats.total + outlier_weight)
        of_background = min(max(not_in_parts, FIRST_WEIGHT), MAX_FIRST_WEIGHT)
        weights = mixture.background.add_weight(weights, of_background)
        first = family.initial(stats, partition.about, partition.centres)
        of_parts = first
        if partition.centres is not None:  # which have the shape of the whole data
            of_parts = family.initial(stats, partition.about)
        if units is not None:
            family = mixture.family
            first = family.from_units(first, units)
            of_parts = family.from_units(of_parts, units)
        if isinstance(family, Elliptical) and family.fixed_covariances and self.shapes is not None:
            of_parts = family.with_shapes(of_parts, self.shapes)
        point = Point(replace(mixture, family=family), Params.first(weights, first))
        point.at(Params.first(weights, of_parts)).refuse_known(rows)
        return point.begun(self.weights, self.shapes, by_class)

    def first_weights(self, stats: Statistics) -> Array:
        """Return the weights of a first partition."""
        return stats.counts / stats.counts.sum()

    def in_columns(self, columns: Array) -> Self:
        """Return the same for some columns of the rows."""
        return self

    def in_units(self, units: Array) -> Self:
        """Return the same for rows whose features are divided by units (d,)."""
        return self

    # What all may look for: clusters of a sample.

    def search(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> FoundStart:
        """Return the components that are found on a sample of rows.

        If values are missing, they are looked for among whole rows where these are most of them.
        Else values are also filled under one normal distribution, and then again by the best
        components so far. Which of them are the best, rows say as they are.
        """
        if not rows.incomplete:
            return self.clusters(mixture, rows, rng, watch)
        whole, share = whole_rows(rows, max(self.init_size, self.n_components))
        if whole is not None and share >= MIN_WHOLE_SHARE:
            return self.clusters(mixture, whole, rng, watch)
        sample = self.sample(rows, draw_seed(rng), self.n_components)

        def rescored(found: FoundStart) -> FoundStart:
            return found.rescored(mixture, sample, RESCORING_STEPS)

        def found_among(candidates: RowSource, watch: OnIteration = ignore) -> FoundStart:
            return rescored(self.clusters(mixture, candidates, rng, watch, rescored))

        best = found_among(imputed(rows), watch)
        if whole is not None and whole.n_rows >= MIN_WHOLE_ROWS * self.n_components:
            best = best_of([best, found_among(whole)])
        return best_of([best, found_among(filled_by(best.after, rows))])

    def clusters(
        self,
        mixture: Mixture,
        rows: RowSource,
        rng: Generator,
        watch: OnIteration,
        rescored: Rescoring | None = None,
    ) -> FoundStart:
        """Return the components that k-means finds on a sample of rows without missing values.

        Where there are several candidates, the best is that with the largest bound, if values are
        filled after they were `rescored` on the rows as they are.
        """
        seed = 0  # where all rows are drawn, any will do
        if rows.n_rows > max(self.init_size, self.n_components):
            seed = draw_seed(rng)
        return self.kmeans(mixture.family, self.sample(rows, seed, self.n_components), rng, watch)

    def kmeans(
        self,
        family: AnyFamily,
        sample: Sample,
        rng: Generator,
        watch: OnIteration = ignore,
        n_steps: int = KMEANS_MAX_ITER,
    ) -> FoundStart:
        """Return the components that k-means finds from its own seeds."""
        centres = kmeans_plusplus(family, sample.rows, self.n_components, rng)
        return kmeans_start(family, sample.rows, centres, max_iter=n_steps, on_iteration=watch)

    def sample_size(self, n_rows: int) -> int:
        return min(n_rows, max(self.init_size, self.n_components))

    def sample(self, rows: RowSource, seed: int, width: int, single: bool = False) -> Sample:
        """Draw some rows by weight; a row brings `width` numbers along in a step."""
        numbers, weights = rows.draw(max(self.init_size, self.n_components), seed)
        return Sample(rows.subset(numbers, weights, width=width, single=single))

    # What is known of classes, for starts with known labels and for more components.

    def class_means(self, mixture: Mixture, rows: RowSource) -> tuple[Array, Array, Array]:
        """Return known labels of components, the means (K, d) of their rows, and who has none."""
        K = self.n_components
        kmeans = mixture.family.kmeans()
        known = np.asarray(mixture.known)
        known = np.where(known < K, known, np.int32(-1))  # others are of the background
        stats, about = partition_statistics(
            kmeans, rows, _anywhere(rows, K), partial(assign_labels, known, K)
        )
        return known, kmeans.centres(kmeans.maximize(stats, about)[0]), stats.counts == 0

    def completed(
        self,
        mixture: Mixture,
        rows: RowSource,
        centres: Array,
        free: Array,
        rng: Generator,
        watch: OnIteration = ignore,
    ) -> Array:
        """Return centres, those that are free at clusters which are not next to the others."""
        if free.any():
            found = self.search(mixture, rows, rng, watch)
            clusters = found.point.centres
            _, taken = linear_sum_assignment(cdist(centres[~free], clusters))
            centres = centres.copy()
            centres[free] = np.delete(clusters, taken, axis=0)
        return centres


class Random(Start):
    """Rows get components at random."""

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        rows = imputed(rows)
        anywhere = _anywhere(rows, self.n_components)
        assign = partial(assign_randomly, draw_seed(rng), self.n_components)
        return Partition(*partition_statistics(mixture.family, rows, anywhere, assign))


class RandomRows(Start):
    """Distinct rows as means, with equal weights and the spread of all rows."""

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        rows = imputed(rows)
        centres = random_rows(rows, self.n_components, rng)
        return Partition(*nearest_partition(mixture.family, rows, centres), centres)

    def first_weights(self, stats: Statistics) -> Array:
        return np.full(self.n_components, 1 / self.n_components)


@dataclass(frozen=True, eq=False)
class GivenMeans(Start):
    """Means of the user's; rows belong to the nearest."""

    means: Any = None
    given = True

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        rows = imputed(rows)
        anywhere = _anywhere(rows, self.n_components)
        nearest = nearest_partition(mixture.family, rows, self.means, about=anywhere)
        return Partition(*nearest, self.means)

    def in_columns(self, columns: Array) -> Self:
        return replace(self, means=self.means[:, columns])

    def in_units(self, units: Array) -> Self:
        return replace(self, means=self.means / units)


@dataclass(frozen=True, eq=False)
class GivenPartition(Start):
    """Labels or responsibilities of the user's."""

    assign: Assignment | None = None
    given = True

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        assert self.assign is not None
        rows = imputed(rows)
        anywhere = _anywhere(rows, self.n_components)
        return Partition(*partition_statistics(mixture.family, rows, anywhere, self.assign))


class KMeans(Start):
    """Clusters of a sample, by k-means."""

    searches = True

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        found = self.search(mixture, rows, rng, watch)
        return Partition(*found.partition(mixture.family, rows))


class KMeansPlusPlus(KMeans):
    """The seeds of k-means alone."""

    def kmeans(
        self,
        family: AnyFamily,
        sample: Sample,
        rng: Generator,
        watch: OnIteration = ignore,
        n_steps: int = 0,
    ) -> FoundStart:
        return super().kmeans(family, sample, rng, watch, 0)


class Merging(KMeans):
    """Clusters of a sample, by merging; starts compete there, and the best one continues."""

    n_starts = 1

    def describe(self, n_rows: int) -> tuple[str, str, int | None]:
        K = self.n_components
        sample = self.sample_size(n_rows)
        first = min(sample, SEEDS_PER_COMPONENT * K)
        return "Merging", f"{sample} of {n_rows} rows, {first} components merged into {K}", None

    def clusters(
        self,
        mixture: Mixture,
        rows: RowSource,
        rng: Generator,
        watch: OnIteration,
        rescored: Rescoring | None = None,
    ) -> FoundStart:
        K = self.n_components
        family = mixture.family
        width = SEEDS_PER_COMPONENT * K
        n_products = min(rows.n_rows, self.init_size) * rows.n_features * width
        single = n_products >= _SINGLE_PRECISION_PRODUCTS
        proposal = family.proposal()
        seed = draw_seed(rng)
        size = max(self.init_size, K)
        # Beside covariances, 100 rows for each component suffice (ten sets of 8 to 64 features:
        # at most .006 nats), and where there are many there are more rows from the beginning.
        simple = proposal.shaped is None and proposal.alternative is None
        few = K < MIN_COMPONENTS_OF_MANY and len(mixture.background) == 0
        if simple and few and size < min(self.max_init_size, rows.n_rows):
            draw = Draw.of(rows, self.max_init_size, seed, width, single, self.note)
            sample = draw.sample(size)
        else:
            sample = self.sample(rows, seed, width, single)
        seeds = [draw_seed(rng) for _ in range(self.n_init)]
        starts = []
        for seed in seeds:
            merging = MergingStart(proposal, sample, K, watch, mixture.background, rescored)
            starts.append(merging.run(np.random.default_rng(seed)))
            # The first says how many rows are needed: bounds on the same rows can be compared.
            sample = (starts[0].sample or sample).alone()
        if len(mixture.background) == 0 and has_copies(sample, K):
            starts += [self.kmeans(family, sample, rng) for _ in seeds]
        if len(mixture.background) == 0 and len(starts) > 1:
            # Those of the search may be simpler, such as directions of one concentration, and where
            # clusters are not, the best of them is not the best for the mixture's own components.
            plain = Mixture.plain(family)
            starts = [start.rescored(plain, sample, RESCORING_STEPS) for start in starts]
        return best_of(starts, rescored)


@dataclass(frozen=True, eq=False)
class _ByClass(Start):
    """By known labels, or the nearest centre: the mean of known rows, or of a cluster."""

    other: Start | None = None
    searches = True

    @classmethod
    def of(cls, start: Start) -> "_ByClass":
        return cls(start.n_components, other=start)

    def partition(
        self, mixture: Mixture, rows: RowSource, rng: Generator, watch: OnIteration
    ) -> Partition:
        assert self.other is not None
        filled = imputed(rows)
        known, middles, free = self.class_means(mixture, filled)
        middles = self.other.completed(mixture, rows, middles, free, rng, watch)
        return Partition(*nearest_partition(mixture.family, filled, middles, known=known))


def _anywhere(rows: RowSource, n_components: int) -> Array:
    """Return a row for each component, for moments to be about."""
    return np.tile(rows.first_row, (n_components, 1))


STARTS: dict[str, type[Start]] = {
    "merging": Merging,
    "kmeans": KMeans,
    "k-means++": KMeansPlusPlus,
    "random": Random,
    "random_from_data": RandomRows,
}


def make_start(
    n_components: int,
    partition: str | Callable[..., Any],
    means: Array | None = None,
    **options: Any,
) -> Start:
    """Return the start that parameters name.

    Parameters
    ----------
    n_components : int
        The number of components K.
    partition : str or callable
        A value of `init_params`: ``"merging"``, ``"kmeans"``, ``"k-means++"``, ``"random"`` or
        ``"random_from_data"``; or the first responsibilities.
    means : ndarray of shape (K, d), default=None
        First means.
    **options : object
        Further options of the start, such as `init_size`.

    Returns
    -------
    Start
        Its ``first(mixture, rows, rng)`` returns the point where EM begins.
    """
    if means is not None:
        return GivenMeans(n_components, means=means, **options)
    if not isinstance(partition, str):
        return GivenPartition(n_components, assign=partition, **options)
    return STARTS[partition](n_components, **options)
