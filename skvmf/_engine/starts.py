"""The starts of a fit, and the best of them: given parameters, a partition, or by merging.

A start by merging works on a sample: overseeding, and if there are enough rows, split-and-merge of
more of these components than `n_components`, with covariances.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from .._typing import Array, Attributes, warn
from . import partitions
from .blocks import Block, DenseBlock, has_truncated_steps, warn_if_too_large
from .checkpoint import Checkpoint, Run
from .contracts import (
    AnyFamily,
    Components,
    OnIteration,
    Params,
    Proposal,
    Statistics,
    as_dense,
    ignore,
)
from .em import Progress, run_em
from .gaussian import ShrunkGaussian
from .imputed import imputed
from .merging import chance_gain
from .model import (
    FIRST_WEIGHT,
    FLAT,
    LEAST,
    NO_BACKGROUND,
    SOFTMAX,
    Background,
    FittedMixture,
    Mixture,
    MixtureResult,
    ModifiedDirichlet,
)
from .overseeding import MIN_ROUND_GAIN, SEEDS_PER_COMPONENT, Overseeding
from .partitions import Assignment, SampleStart, assign_labels, assignment, em_steps
from .products import squared_distances, tiles
from .rows import RowSource
from .split_and_merge import SplitAndMerge
from .truncated import TruncatedSteps, near_groups

# Rows far from all others, among which a start looks for no components: each would get a component,
# or a mean and a variance, of its own. The steps of EM that follow weigh these rows down.


N_COMPARED = 1000  # rows that stand for all
MAX_GROUP = 0.005  # fraction of those rows up to which a group is too small for a component
MAX_TRIMMED = 0.05  # fraction of those rows that may be trimmed: if more would be, none are
REACH = 2.0  # largest gap in a group, in radii that all but MAX_TRIMMED of the rows lie within


def rows_in_groups(rows: RowSource) -> Array:
    """Return the rows of a sample in groups of some size, with gaps up to `REACH` radii."""
    drawable = np.flatnonzero(rows.sampling_weights() > 0)
    places = np.linspace(0, len(drawable) - 1, min(len(drawable), N_COMPARED))
    compared = rows.take(drawable[np.round(places).astype(int)])
    distances = np.linalg.norm(compared - np.median(compared, axis=0), axis=1)
    reach = REACH * np.quantile(distances, 1 - MAX_TRIMMED)
    if len(compared) < 2 or reach == 0:
        return drawable
    neighbours = csr_array(cdist(compared, compared) <= reach)
    _, groups = connected_components(neighbours, directed=False)
    far = np.bincount(groups)[groups] <= max(1, MAX_GROUP * len(compared))
    if not 0 < far.mean() <= MAX_TRIMMED:
        return drawable
    others, near = compared[~far], np.zeros(rows.n_rows, dtype=bool)

    def write(block: DenseBlock, span: slice) -> None:
        for tile in tiles(len(block.X)):
            squares = squared_distances(block.X[tile], others, np.ones(len(others)))
            near[span][tile] = squares.min(axis=1) <= reach**2

    rows.for_each(write)
    return drawable[near[drawable]]


# Copies of few rows: what merging pools of their covariances is nothing.


MAX_DISTINCT = 4  # rows for each component, up to which there are few distinct ones


def has_copies(rows: RowSource, n_components: int) -> bool:
    """Return whether most rows of a sample are copies of a few per component."""
    weights = rows.sampling_weights()
    drawable = np.flatnonzero(weights)
    most = min(MAX_DISTINCT * n_components, len(drawable) // 2)
    few = drawable[: most + 1]  # which tell in most cases
    if partitions.count_distinct(rows.subset(few, weights[few], width=1)) > most:
        return False
    return partitions.count_distinct(rows) <= most


# Starts by merging: what a family proposes, on a sample.


SHAPED_PER_COMPONENT = 2  # simple components that get covariances, for each to be left
SEEDS_PER_SHAPED = 2  # first seeds for each of those
IN_GROUP = 64  # near ones at most, where many get covariances
STEPS_BESIDE_BACKGROUND = 3  # of EM, of components that started without it
JUDGED_STEPS = 3  # of EM of the family that judges two starts
MIN_RELATIVE_WEIGHT = 1e-3  # times the largest that the components together have for a row
TRIMMED_FROM = 200  # squared standard deviations, plus d


@dataclass(frozen=True)
class MergingStart:
    """A start by merging on a sample."""

    proposal: Proposal  # how the family's components are found
    rows: RowSource  # the sample
    n_components: int  # to be left
    watch: OnIteration = ignore  # is called after each round, and returns whether to stop
    background: Background = NO_BACKGROUND

    def run(self, rng: np.random.Generator) -> SampleStart:
        """Return the best components, with covariances if rows suffice, and maybe a background."""
        backgrounds, judge, alternative = [self.background], None, self.proposal.alternative
        if alternative is not None and len(self.background) == 0:
            another, judge = alternative(self.rows)
            backgrounds.append(another)
        near, trimmed_weight = self._trimmed(backgrounds)
        shaped, starts = near._shaped_family(near.rows), []
        for background in backgrounds:
            task = replace(near, background=background)
            overseeding = Overseeding(near.proposal.seeds, near.rows, self.n_components, background)
            if shaped is None:
                start = overseeding.run(rng, self.watch)
            elif len(background) > 0:
                start = task._run_with_background(shaped, overseeding, rng)
            elif overseeding.many:
                start = task._run_in_groups(shaped, overseeding, rng)
            else:
                start = task._run_shaped(shaped, rng)
            if trimmed_weight > 0:
                start = near._with_trimmed(start, trimmed_weight)
            starts.append(start if judge is None else _judged(judge, start, self.rows))
        return max(starts, key=lambda start: start.bound)

    def _trimmed(self, backgrounds: list[Background]) -> tuple["MergingStart", float]:
        """Return the same among rows that are not far from all others, and the others' weight."""
        trimmed = self.proposal.trimmed
        if trimmed is None or not any(map(len, backgrounds)):
            return self, 0.0
        weights = self.rows.sampling_weights()
        far = weights > 0
        far[rows_in_groups(self.rows)] = False
        if far.any():
            near = np.flatnonzero(~far & (weights > 0))
            rows = self.rows.subset(near, weights[near], 4 * self.n_components)
            if (scale := rows.mean_variance()) > 0:  # else the rows are equal
                trimmed_weight = float(weights[far].sum() / weights.sum())
                return replace(self, proposal=trimmed(scale), rows=rows), trimmed_weight
        return self, 0.0

    def _with_trimmed(self, start: SampleStart, trimmed_weight: float) -> SampleStart:
        """Return a start with a background that has the trimmed rows."""
        params, background, dim = start.params, start.model.background, start.model.family.dim
        if len(background) == 0:
            peak = float(self.proposal.seeds.peaks(params.components).min())
            background = Background((peak - 0.5 * (dim + TRIMMED_FROM),))
        weight = max(trimmed_weight, params.background_weight)
        weights = background.add_weight(params.conditional_weights, weight)
        model = replace(start.model, background=background)
        return SampleStart(model, Params.first(weights, params.components), start.bound)

    def _shaped_family(self, rows: RowSource) -> ShrunkGaussian | None:
        """Return the family of components with covariances, None if rows do not suffice."""
        shaped, n_shaped = self.proposal.shaped, SHAPED_PER_COMPONENT * self.n_components
        return shaped if shaped is not None and shaped.affordable(rows.n_rows, n_shaped) else None

    def _run_shaped(self, shaped: ShrunkGaussian, rng: np.random.Generator) -> SampleStart:
        """Return components with covariances that start from simple ones, without a background."""
        seeds = self.proposal.seeds
        stops = []

        def after_seeding(n_rounds: int, bounds: list[float], params: Params) -> bool:
            stops.append(self.watch(n_rounds, bounds, params))
            return True

        def after_split(n_splits: int, bounds: list[float], params: Params) -> bool:
            return self.watch(1 + n_splits, bounds, params) or any(stops)

        n_shaped = SHAPED_PER_COMPONENT * self.n_components
        overseeding = Overseeding(seeds, self.rows, n_shaped, seeds_per_component=SEEDS_PER_SHAPED)
        simple = overseeding.run(rng, after_seeding).params
        split_and_merge = SplitAndMerge(shaped, self.rows, self.n_components)
        return split_and_merge.run(split_and_merge.shaped(seeds, simple), rng, after_split)

    def _run_in_groups(
        self, shaped: ShrunkGaussian, overseeding: Overseeding, rng: np.random.Generator
    ) -> SampleStart:
        """Return many components: from groups of near ones, then split and merged among all."""
        simple = overseeding.run(rng, self.watch).params
        labels, weights = overseeding.assign(simple).labels, overseeding.weights
        tasks = []
        for group in near_groups(self.proposal.seeds.centres(simple.components), IN_GROUP):
            own = np.flatnonzero(np.isin(labels, group) & (weights > 0))
            rows = self.rows.subset(own, weights[own], 4 * len(group))
            tasks.append(replace(self, rows=rows, n_components=len(group), watch=ignore))
        if None in [task._shaped_family(task.rows) for task in tasks]:
            return self._run_shaped(shaped, rng)
        found = [task._run_shaped(shaped, rng).params for task in tasks]
        counts = np.array([task.rows.total_weight for task in tasks])
        shapes: Any = [params.components.covariances for params in found]
        shapes = np.average(shapes, 0, counts) if shaped.type.shared else np.concatenate(shapes)
        means = np.concatenate([params.components.means for params in found])
        weights = np.concatenate([n * p.weights for n, p in zip(counts, found, strict=True)])
        params = Params.first(weights / weights.sum(), shaped.components(means, shapes))
        split_and_merge = SplitAndMerge(shaped, self.rows, self.n_components)
        return split_and_merge.run(params, rng, lambda n, *now: self.watch(1 + n, *now) or n == 1)

    def _run_with_background(
        self, shaped: ShrunkGaussian, overseeding: Overseeding, rng: np.random.Generator
    ) -> SampleStart:
        """Start among the rows that simple components do not leave to a background.

        Components with covariances start from the simple ones and from scratch, and the better
        are returned; the simple ones, if there are too few rows.
        """
        stops = []

        def after_round(n_rounds: int, bounds: list[float], params: Params) -> bool:
            stops.append(self.watch(n_rounds, bounds, params))
            return stops[-1]

        simple = overseeding.run(rng, after_round)
        rows, weights = _rows_of_components(simple, self.rows), simple.params.weights
        background_weight = weights[-1]
        if any(stops) or background_weight == 1 or self._shaped_family(rows) is None:
            return simple
        params = Params.first(weights[:-1] / (1 - background_weight), simple.params.components)
        split_and_merge = SplitAndMerge(shaped, rows, self.n_components)
        candidates = (
            split_and_merge.shaped(self.proposal.seeds, params),
            replace(self, rows=rows)._run_shaped(shaped, rng).params,
        )
        model, starts = Mixture.plain(shaped, self.background), []
        for candidate in candidates:
            weights = self.background.add_weight(candidate.weights, background_weight)
            params = Params.first(weights, candidate.components)
            reached = em_steps(model, self.rows, params, STEPS_BESIDE_BACKGROUND)
            starts.append(SampleStart(model, *reached))
        return max(starts, key=lambda start: start.bound)


def _judged(family: AnyFamily, start: SampleStart, rows: RowSource) -> SampleStart:
    """Return a start with the bound that components of a family reach from it on a sample."""
    stats, about = start.partition(family, rows)
    params = Params.first(stats.counts / stats.counts.sum(), family.initial(stats, about))
    return replace(start, bound=em_steps(Mixture.plain(family), rows, params, JUDGED_STEPS)[1])


def _rows_of_components(start: SampleStart, rows: RowSource) -> RowSource:
    """Return rows weighted by 1 - the background's responsibility; all, if it has every one."""
    K, assign = start.params.n_components, assignment(start.model, start.params)

    def weigh(block: Block) -> list[Array]:
        return [as_dense(assign(block)[0], K).sum(axis=1)]

    weights = np.concatenate(rows.map_reduce(weigh))
    some = np.flatnonzero(weights > MIN_RELATIVE_WEIGHT * weights.max())
    return rows.subset(some, weights[some], width=4 * K) if len(some) else rows


# A stream that grows: what a new component must gain.


MORE_CLUSTERS = 3  # are looked for, as several topics may come at once
MIN_SIZE = 0.5  # of an average component: any stream of texts has smaller groups
STEPS_WITH_NEWCOMER = 3  # of EM on a batch, with and without it
SHAPE_PENALTY = 1.5  # nats for each parameter of its shape, as in AIC3


# Products in a step on the sample from which single precision saves more than a second kind of
# compiled code costs once.
_SINGLE_PRECISION_PRODUCTS = 10**10


@dataclass(frozen=True)
class Start:
    """Where a fit begins: what the user gives, checked, and how the rest is found."""

    n_components: int
    partition: str | Assignment  # by name, or as `checked_partition` returns it
    weights: Array | None = None  # (K,), where given; 0 prunes a component from the beginning
    means: Array | None = None  # first centres (K, d), where given
    shapes: Array | None = None  # first covariances or concentrations, where given
    n_init: int = 1  # how many starts compete on a sample
    init_size: int = 1  # how many rows the sample has

    def describe(self, n_rows: int) -> tuple[str, str, int | None]:
        """Return the title and a detail of a search, and its most steps: None if they are long."""
        K = self.n_components
        sample = min(n_rows, max(self.init_size, K))
        if not self.merges:
            detail = f"{sample} of {n_rows} rows, {K} components"
            return "k-means", detail, partitions.KMEANS_MAX_ITER
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
        mixture: Mixture,
        rows: RowSource,
        rng: np.random.RandomState,
        on_iteration: OnIteration = ignore,
    ) -> tuple[AnyFamily, Params]:
        """Return a family whose prior is centred on a first partition, and first parameters."""
        K, centres, family, rows = self.n_components, self.means, mixture.family, imputed(rows)
        if mixture.known is not None and not self.given:
            # By known labels, or the nearest centre: the mean of known rows, or of a component
            # without any one of the K clusters of the usual start that are not next to the others.
            known, middles, free = self._class_means(mixture, rows)
            middles = self._completed(mixture, rows, middles, free, rng, on_iteration)
            stats, about = partitions.nearest_partition(family, rows, middles, known=known)
        elif self.merges or (centres is None and self.partition in ("kmeans", "k-means++")):
            stats, about = self._found(mixture, rows, rng, on_iteration).partition(family, rows)
        elif centres is None and self.partition == "random_from_data":
            centres = partitions.random_rows(rows, K, rng)
            stats, about = partitions.nearest_partition(family, rows, centres)
        else:
            stats, about = self._given_partition(family, rows, rng)
        family = family.with_prior_from(stats)
        weights = stats.counts / stats.counts.sum()
        if self.weights is not None:
            weights = self.weights
        elif centres is not self.means:  # random rows
            weights = np.full(K, 1 / K)
        rest = 1 - stats.counts.sum() / stats.total  # what a partition leaves to the background
        weights = mixture.background.add_weight(weights, min(max(rest, FIRST_WEIGHT), 0.9))
        params = Params.first(weights, family.initial(stats, about, centres))
        order = mixture.constraint.order(params.components)
        if mixture.known is not None and order is not None and (np.diff(order) < 0).any():
            raise ValueError(
                "known_labels contradict the order of the components: by the means and scales that "
                f"the fit starts with, it is {order.tolist()}. Number the classes in that order."
            )
        return family, params if self.weights is None else params.pruned()

    def _given_partition(
        self, family: AnyFamily, rows: RowSource, rng: np.random.RandomState
    ) -> tuple[Statistics, Components]:
        """Return the partition by given means, labels or responsibilities, or a random one."""
        K, assign = self.n_components, self.partition
        anywhere = np.tile(rows.first_row, (K, 1))
        if self.means is not None:
            return partitions.nearest_partition(family, rows, self.means, about=anywhere)
        if isinstance(assign, str):
            assign = partial(partitions.assign_randomly, partitions.draw_seed(rng), K)
        return partitions.partition_statistics(family, rows, anywhere, assign)

    def _class_means(self, mixture: Mixture, rows: RowSource) -> tuple[Array, Array, Array]:
        """Return known labels of components, the means (K, d) of their rows, and who has none."""
        K, kmeans, known = self.n_components, mixture.family.kmeans(), np.asarray(mixture.known)
        known = np.where(known < K, known, np.int32(-1))  # others are of the background
        anywhere, assign = np.tile(rows.first_row, (K, 1)), partial(assign_labels, known, K)
        stats, about = partitions.partition_statistics(kmeans, rows, anywhere, assign)
        return known, kmeans.centres(kmeans.maximize(stats, about)[0]), stats.counts == 0

    def _completed(
        self,
        mixture: Mixture,
        rows: RowSource,
        centres: Array,
        free: Array,
        rng: np.random.RandomState,
        watch: OnIteration = ignore,
    ) -> Array:
        """Return centres, those that are free at clusters which are not next to the others."""
        if free.any():
            found = self._found(mixture, rows, rng, watch)
            clusters = found.model.family.centres(found.params.components)
            _, taken = linear_sum_assignment(cdist(centres[~free], clusters))
            centres = centres.copy()
            centres[free] = np.delete(clusters, taken, axis=0)
        return centres

    def grown(
        self, mixture: Mixture, fitted: FittedMixture, rows: RowSource, rng: np.random.RandomState
    ) -> FittedMixture:
        """Return a fit with more components: the old ones, and average ones where no old one is."""
        rows, K = imputed(rows), self.n_components
        old = fitted.family.centres(fitted.params.components)
        centres, new = np.resize(old, (K, old.shape[1])), np.arange(K) >= len(old)
        free = new
        if mixture.known is not None:
            _, means, unknown = self._class_means(mixture, rows)
            centres[new], free = means[new], new & unknown
        centres = self._completed(mixture, rows, centres, free, rng)
        return self._extended(mixture, fitted, centres[new])

    def _extended(self, mixture: Mixture, fitted: FittedMixture, centres: Array) -> FittedMixture:
        """Return a fit with more components, at centres (m, d)."""
        K, n_old, family = self.n_components, fitted.n_components, fitted.family
        numbers = np.where(np.arange(K) < n_old, np.arange(K), 0)
        components = family.chosen(fitted.params.components, numbers)
        for k, centre in enumerate(centres, n_old):
            components = family.reseed(components, k, centre)
        weights = mixture.background.weights_after(fitted.params)
        own, rest = weights[:n_old] * (n_old / K), weights[n_old:]
        weights = np.concatenate([own, np.full(K - n_old, (1 - rest.sum()) / K), rest])
        return replace(fitted, params=Params.first(weights, components))

    def newcomer(
        self, mixture: Mixture, fitted: FittedMixture, rows: RowSource, rng: np.random.RandomState
    ) -> FittedMixture | None:
        """Return a fit with one more component for rows that no old one explains, or None.

        It begins at that cluster of the usual start whose rows gain most. It stays if it is not
        small among the components, and gains more than a round of that start and merging ask for:
        what cutting one cluster in two gains by chance, and a penalty for its shape.
        """
        spec, params = mixture.continued(fitted)
        family, total, K = spec.family, rows.total_weight, self.n_components
        rows = imputed(rows, params.conditional_weights @ family.centres(params.components))
        search = replace(self, n_components=min(K + MORE_CLUSTERS, rows.n_rows))
        stats, about = search._found(spec, rows, rng, ignore).partition(family, rows)
        clusters = family.initial(stats, about)
        plain = Mixture.plain(family, spec.background)
        with np.errstate(divide="ignore"):
            log_weights = np.log(stats.counts / total)

        def gains(block: Block) -> Array:
            before = SOFTMAX.values(plain.scores(params, block), params.weights)
            after = family.scores(block, clusters).log_density() + log_weights
            gained = np.maximum(after, LEAST) - np.maximum(before, LEAST)[:, np.newaxis]
            return block.weights @ np.maximum(gained, 0)

        best = family.centres(clusters)[[rows.map_reduce(gains).argmax()]]
        grown = self._extended(spec, replace(fitted, params=params), best)
        before = em_steps(plain, rows, params, STEPS_WITH_NEWCOMER)[1]
        after, bound = em_steps(plain, rows, grown.params, STEPS_WITH_NEWCOMER)
        n_new = after.weights[K - 1] * total
        n_shape = family.n_parameters(K) - family.n_parameters(K - 1) - family.dim
        needed = chance_gain(n_new, total - n_new, family.dim) + SHAPE_PENALTY * n_shape
        needed = max(needed, MIN_ROUND_GAIN * total)
        large = after.weights[K - 1] * K >= MIN_SIZE
        return grown if large and (bound - before) * total > needed else None

    def _found(
        self, mixture: Mixture, rows: RowSource, rng: np.random.RandomState, watch: OnIteration
    ) -> SampleStart:
        """Return the components that merging, or else k-means, finds on a sample."""
        K, family = self.n_components, mixture.family
        if self.merges:
            n_products = min(rows.n_rows, self.init_size) * rows.n_features * 4 * K
            single, seed = n_products >= _SINGLE_PRECISION_PRODUCTS, partitions.draw_seed(rng)
            sample = self._sample(rows, seed, 4 * K, single)
            merging = MergingStart(family.proposal(), sample, K, watch, mixture.background)
            seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
            starts = [merging.run(np.random.default_rng(seed)) for seed in seeds]
            if len(mixture.background) == 0 and has_copies(sample, K):
                starts += [self._kmeans(family, sample, rng) for _ in seeds]
                starts = [_judged(family, start, sample) for start in starts]
            return max(starts, key=lambda start: start.bound)
        many = rows.n_rows > max(self.init_size, self.n_components)
        seed = partitions.draw_seed(rng) if many else 0  # no other: all are drawn
        return self._kmeans(family, self._sample(rows, seed, K), rng, watch)

    def _kmeans(
        self,
        family: AnyFamily,
        sample: RowSource,
        rng: np.random.RandomState,
        watch: OnIteration = ignore,
    ) -> SampleStart:
        n_steps = 0 if self.partition == "k-means++" else partitions.KMEANS_MAX_ITER
        centres = partitions.kmeans_plusplus(family, sample, self.n_components, rng)
        return partitions.kmeans_start(
            family, sample, centres, max_iter=n_steps, on_iteration=watch
        )

    def _sample(self, rows: RowSource, seed: int, width: int, single: bool = False) -> RowSource:
        """Draw some rows by weight; a row brings `width` numbers along in a step."""
        size = max(self.init_size, self.n_components)
        return rows.subset(*rows.draw(size, seed), width=width, single=single)


@dataclass(frozen=True)
class MultiStart:
    """Runs EM from every start of a fit."""

    rows: RowSource
    progress: Progress
    checkpoint: Checkpoint
    max_iter: int  # of a run
    tol: float  # change of the lower bound at which a run stops
    flat_start: bool  # whether a run under a flat prior comes before one that takes weight away
    attributes: Callable[[FittedMixture], Attributes]  # those of an estimator, for callbacks
    columns: tuple[Array, int] | None = None  # numbers of the rows' columns among all, so many

    def best(
        self, mixture: Mixture, start: Start, rng: np.random.RandomState
    ) -> tuple[Mixture, MixtureResult]:
        """Return the mixture with the largest bound, the first of equals, in used columns."""
        if (compact := self.rows.compact(start.means)) is not None:
            rows, columns = compact
            if start.means is not None:
                start = replace(start, means=start.means[:, columns])
            narrow = replace(self, rows=rows, columns=(columns, self.rows.n_features))
            mixture, result = narrow.best(mixture, start, rng)
            params, stats = narrow._widened(mixture.family, result.params, result.stats)
            return mixture, replace(result, params=params, stats=stats)
        # Numbers for each component and column: about twenty in use while it runs, four of them for
        # seeds and statistics each; afterwards five.
        K, d = start.n_components, mixture.family.dim
        warn_if_too_large(
            8 * K * max(20 * self.rows.n_features, 5 * d),
            f"{K} components in {d} columns take",
            "Hash words to fewer columns, or reduce them with TruncatedSVD, or use fewer "
            "components.",
        )
        self.checkpoint.begin(rng)
        best: tuple[Mixture, MixtureResult] | None = None
        for i in range(start.n_starts):
            reached = [self.checkpoint.reached(mixture, (i, past)) for past in (False, True)]
            state = reached[0] or reached[1]
            if state is None or start.n_starts > 1:
                begun, params = self._begin(mixture, start, i, rng, best)
            if state is not None:
                begun, params = state[0], state[1].params
            if reached[1] is None:
                params = self._after_flat_start(begun, params, i)
            result = self.run(begun, params, (i, True))
            if best is None or result.bounds[-1] > best[1].bounds[-1]:
                best = begun, result
        assert best is not None
        return best

    def _begin(
        self,
        mixture: Mixture,
        start: Start,
        i: int,
        rng: np.random.RandomState,
        best: tuple[Mixture, MixtureResult] | None,
    ) -> tuple[Mixture, Params]:
        """Return the mixture and the parameters that a start begins with."""
        title, detail, max_iter = start.describe(self.rows.n_rows)
        watch, finish = self.progress.task(
            f"{title} {i}", max_iter=max_iter, detail=detail, at_once=max_iter is None
        )
        family, params = start.first(mixture, self.rows, rng, watch)
        finish()
        if best is not None:  # one prior for all starts, so that bounds can be compared
            family = best[0].family.continued_by(family)
        params = mixture.constraint.apply(family, params, start.weights, start.shapes)
        return replace(mixture, family=family), params

    def _after_flat_start(self, mixture: Mixture, params: Params, i: int) -> Params:
        """Run EM under a flat prior first if the prior would take weight away."""
        if np.all(mixture.weight_prior.alpha >= 1) or self.max_iter == 0:
            return params
        if self.flat_start:
            flat = replace(mixture, weight_prior=FLAT)
            params = self.run(flat, params, (i, False)).params
        _warn_if_prior_outweighs(mixture.weight_prior, params, self.rows.total_weight)
        return params

    def run(self, mixture: Mixture, params: Params, run: Run = (0, True)) -> MixtureResult:
        """Return what EM reaches from parameters; `run` is a start, and if past the flat start."""
        params = replace(params, weights=mixture.weight_prior.clip(params.weights))
        reached, (i, past_flat) = self.checkpoint.reached(mixture, run), run

        def attributes(params: Params) -> Attributes:
            params, _ = self._widened(mixture.family, params)
            return self.attributes(mixture.fitted(params)[0])

        watch, finish = self.progress.task(
            f"{'Start' if past_flat else 'Flat start'} {i}",
            attributes,
            self.max_iter,
            detail=f"{self.rows.n_rows} rows, {params.n_components} components",
            tol=self.tol,
            at_once=reached is not None,
        )
        model: Any = mixture
        K, note = params.n_components, self.progress.note
        if has_truncated_steps(self.rows.n_rows, K) and TruncatedSteps.possible(
            mixture, self.rows, K
        ):
            model = TruncatedSteps(mixture, self.rows, K, self.tol, note=note)
        result = run_em(
            model,
            self.rows,
            params if reached is None else reached[1],
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=watch,
            keep=self.checkpoint.keeper(mixture, run),
        )
        finish(result if past_flat else None)
        return replace(result, of_rows=getattr(model, "of_rows", None))

    def _widened(
        self, family: Any, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and statistics of all columns."""
        if self.columns is None:
            return params, stats
        components, stats = family.widened(params.components, stats, *self.columns)
        return replace(params, components=components), stats


def _warn_if_prior_outweighs(prior: ModifiedDirichlet, params: Params, total_weight: float) -> None:
    """Warn of a prior that leaves one component, or the background alone, at once."""
    K, n_weights = params.n_components, len(params.weights)
    counts = params.component_weights * total_weight
    alpha = np.broadcast_to(prior.alpha, params.weights.shape)[:K]
    if n_weights == 1 or np.any(counts + alpha > 1):
        return
    left, more = ("one component", "more than one")
    if n_weights > K:
        left, more = ("the background alone", "any component")
    given = alpha[0] if (alpha == alpha[0]).all() else alpha
    warn(
        f"weight_concentration_prior={given} outweighs the data and leaves {left}: the largest "
        f"component holds {counts.max():.6g} rows. A number above {1 - counts.max():.6g} leaves "
        f"{more}.",
        UserWarning,
    )
