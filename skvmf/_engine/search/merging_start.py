"""Starts by merging on a sample: overseeding, then split-and-merge with covariances."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture
from ..em.truncated import near_groups
from ..families.background import NO_BACKGROUND, Background
from ..families.family import AnyFamily, Proposal
from ..families.gaussian import ShrunkGaussian
from ..families.gaussian_products import squared_distances
from ..families.params import Params
from ..families.responsibilities import as_dense
from ..families.tiles import tiles
from ..rows.blocks import Block, DenseBlock
from ..rows.sources import RowSource
from . import partitions
from .overseeding import Overseeding
from .partitions import SampleStart, assignment, em_steps
from .split_and_merge import SplitAndMerge

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
            starts.append(start if judge is None else judged(judge, start, self.rows))
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


def judged(family: AnyFamily, start: SampleStart, rows: RowSource) -> SampleStart:
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
