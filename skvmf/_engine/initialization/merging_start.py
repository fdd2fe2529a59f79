"""Starts by merging: what a family proposes, on a sample.

Overseeding finds clusters with simple components. If there are enough rows, split-and-merge
continues with more of these components than `n_components`, and with covariances.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily, Proposal, ShapedFamily
from ..contracts.responsibilities import as_dense
from ..contracts.statistics import Components, Params
from ..data.base import RowSource
from ..data.blocks import Block
from ..em.loop import OnIteration, ignore
from ..em.mixture_model import MixtureModel
from ..families.background import NO_BACKGROUND, Background
from .overseeding import Overseeding
from .partitions import SampleStart, assignment, climb
from .split_and_merge import SplitAndMerge
from .trimming import rows_in_groups

SHAPED_PER_COMPONENT = 2  # simple components that get covariances, for each to be left
SEEDS_PER_SHAPED = 2  # first seeds for each of those
STEPS_BESIDE_BACKGROUND = 3  # of EM, of components that started without it
JUDGED_STEPS = 3  # of EM of the family that judges two starts
MIN_RESPONSIBILITY = 1e-3  # times the largest that the components together have for a row
FAR = 200  # squared standard deviations, beside d, from which a trimmed row is nobody's


@dataclass(frozen=True)
class MergingStart:
    """A start by merging on a sample."""

    proposal: Proposal  # how the family's components are found
    rows: RowSource  # the sample
    n_components: int  # to be left
    watch: OnIteration = ignore  # is called after each round, and returns whether to stop
    background: Background = NO_BACKGROUND

    def run(self, rng: np.random.Generator) -> SampleStart:
        """Return the best components, with a background or without one.

        They have covariances where rows suffice, else they are simple.
        """
        backgrounds, judge, alternative = [self.background], None, self.proposal.alternative
        if alternative is not None and len(self.background) == 0:
            another, judge = alternative(self.rows)
            backgrounds.append(another)
        near, trimmed_weight = self._trimmed(backgrounds)
        starts = []
        for background in backgrounds:
            task = replace(near, background=background)
            if (shaped := task._shaped_family(task.rows)) is None:
                start = task._overseeding.run(rng, self.watch)
            elif len(background) > 0:
                start = task._run_with_background(shaped, rng)
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
            background = Background((peak - 0.5 * (dim + FAR),))
        weight = max(trimmed_weight, params.background_weight)
        weights = background.add_weight(params.conditional_weights, weight)
        model = replace(start.model, background=background)
        return SampleStart(model, Params.first(weights, params.components), start.bound)

    @property
    def _overseeding(self) -> Overseeding:
        return Overseeding(self.proposal.seeds, self.rows, self.n_components, self.background)

    def _shaped_family(self, rows: RowSource) -> ShapedFamily[Components] | None:
        """Return the family of components with covariances, None if rows do not suffice."""
        shaped, n_shaped = self.proposal.shaped, SHAPED_PER_COMPONENT * self.n_components
        return shaped if shaped is not None and shaped.affordable(rows.n_rows, n_shaped) else None

    def _run_shaped(
        self, shaped: ShapedFamily[Components], rng: np.random.Generator
    ) -> SampleStart:
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

    def _run_with_background(
        self, shaped: ShapedFamily[Components], rng: np.random.Generator
    ) -> SampleStart:
        """Start among the rows that simple components do not leave to a background.

        Components with covariances start from the simple ones and from scratch, and the better
        are returned; the simple ones, if there are too few rows.
        """
        stops = []

        def after_round(n_rounds: int, bounds: list[float], params: Params) -> bool:
            stops.append(self.watch(n_rounds, bounds, params))
            return stops[-1]

        simple = self._overseeding.run(rng, after_round)
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
        model, starts = MixtureModel.plain(shaped, self.background), []
        for candidate in candidates:
            weights = self.background.add_weight(candidate.weights, background_weight)
            params = Params.first(weights, candidate.components)
            reached = climb(model, self.rows, params, STEPS_BESIDE_BACKGROUND)
            starts.append(SampleStart(model, *reached))
        return max(starts, key=lambda start: start.bound)


def _judged(family: AnyFamily, start: SampleStart, rows: RowSource) -> SampleStart:
    """Return a start with the bound that components of a family reach from it on a sample."""
    stats, about = start.partition(family, rows)
    if not stats.counts.any():  # the background has every row
        return replace(start, bound=-np.inf)
    params = Params.first(stats.counts / stats.counts.sum(), family.initial(stats, about))
    return replace(start, bound=climb(MixtureModel.plain(family), rows, params, JUDGED_STEPS)[1])


def _rows_of_components(start: SampleStart, rows: RowSource) -> RowSource:
    """Return the rows that are not the background's, weighted by 1 - its responsibility.

    All rows, if it has every one.
    """
    K, assign = start.params.n_components, assignment(start.model, start.params)

    def weigh(block: Block) -> list[Array]:
        return [as_dense(assign(block)[0], K).sum(axis=1)]

    weights = np.concatenate(rows.map_reduce(weigh))
    some = np.flatnonzero(weights > MIN_RESPONSIBILITY * weights.max())
    return rows.subset(some, weights[some], width=4 * K) if len(some) else rows
