"""Starts by merging: what a family proposes, on a sample.

Overseeding finds where clusters are with simple components. Where rows suffice, more of those than
asked for are then given covariances, and split-and-merge goes on with them.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..contracts.model_parts import Family, Proposal, ShapedFamily
from ..contracts.statistics import Params
from ..data.base import RowSource
from ..em.loop import OnIteration, ignore
from ..families.background import with_share
from .base import SampleStart, climb
from .overseeding import Overseeding
from .split_and_merge import SplitAndMerge
from .trimming import rows_in_groups

SHAPED_PER_COMPONENT = 2  # simple components that get covariances, for each to be left
SEEDS_PER_SHAPED = 2  # first seeds for each of those
STEPS_BESIDE_BACKGROUND = 3  # of EM, of components that started without it
JUDGED_STEPS = 3  # of EM of the family that judges two starts
FAR = 200  # squared standard deviations, beside d, from which a trimmed row is nobody's


@dataclass(frozen=True)
class MergingStart:
    """A start by merging on a sample.

    Parameters
    ----------
    proposal : Proposal
        How the family's components are found.
    rows : RowSource
        The sample.
    n_components : int
        How many components are to be left.
    watch : callable
        ``watch(n_rounds, bounds, params)`` is called after each round; it returns whether to stop.
    """

    proposal: Proposal
    rows: RowSource
    n_components: int
    watch: OnIteration = ignore

    def run(self, rng: np.random.Generator, background: float | None = None) -> SampleStart:
        """Return components beside a background of some log-density, or alone."""
        start, trimmed_weight = self._trimmed()
        judge, uniform = self.proposal.judge, self.proposal.uniform
        if background is not None or judge is None or uniform is None:
            return start._run_untrimmed(trimmed_weight, rng, background)
        starts = [
            start._run_untrimmed(trimmed_weight, rng, log_density)
            for log_density in (None, uniform(self.rows))
        ]
        judged = [_judged(judge, found, self.rows) for found in starts]
        return max(judged, key=lambda found: found.bound)

    def _trimmed(self) -> tuple["MergingStart", float]:
        """Return the same among rows that are not far from all others, and the others' weight."""
        trimmed = self.proposal.trimmed
        if trimmed is None:
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

    def _run_untrimmed(
        self, trimmed_weight: float, rng: np.random.Generator, background: float | None
    ) -> SampleStart:
        """Return components beside a background that has the trimmed rows, if there are any."""
        start = self._run(rng, background)
        if trimmed_weight == 0:
            return start
        family, components, weights = start.family, start.params.components, start.params.weights
        if background is None:
            peaks = self.proposal.seeds.peaks(components)
            background = float(peaks.min()) - 0.5 * (family.dim + FAR)
        else:
            trimmed_weight = max(trimmed_weight, weights[-1])
            weights = weights[:-1] / (weights[:-1].sum() or 1.0)
        params = Params.first(with_share(weights, trimmed_weight), components)
        return SampleStart(family, params, start.bound, background)

    def _run(self, rng: np.random.Generator, background: float | None = None) -> SampleStart:
        """Return components with covariances where rows suffice, else simple ones."""
        shaped = self.proposal.shaped
        if shaped is None or not self._affordable(shaped, self.rows):
            return self._simple(rng, self.watch, background)
        if background is not None:
            return self._run_beside(background, shaped, rng)
        stops = []

        def after_seeding(n_rounds: int, bounds: list[float], params: Params) -> bool:
            stops.append(self.watch(n_rounds, bounds, params))
            return True

        def after_split(n_splits: int, bounds: list[float], params: Params) -> bool:
            return self.watch(1 + n_splits, bounds, params) or any(stops)

        seeds, n_shaped = self.proposal.seeds, SHAPED_PER_COMPONENT * self.n_components
        overseeding = Overseeding(seeds, self.rows, n_shaped, seeds_per_component=SEEDS_PER_SHAPED)
        simple, _ = overseeding.run(rng, after_seeding)
        split_and_merge = SplitAndMerge(shaped, self.rows, self.n_components)
        params, bound = split_and_merge.run(split_and_merge.shaped(seeds, simple), rng, after_split)
        return SampleStart(shaped, params, bound)

    def _run_beside(
        self, background: float, shaped: ShapedFamily, rng: np.random.Generator
    ) -> SampleStart:
        """Start among the rows that simple components have beside a background.

        Of components with covariances that go on from the simple ones, and those that start
        anew, the better are returned; the simple ones, where rows do not suffice.
        """
        stops = []

        def after_round(n_rounds: int, bounds: list[float], params: Params) -> bool:
            stops.append(self.watch(n_rounds, bounds, params))
            return stops[-1]

        simple = self._simple(rng, after_round, background)
        rows, weights = simple.rows_of_components(self.rows), simple.params.weights
        share = weights[-1]
        if any(stops) or share == 1 or not self._affordable(shaped, rows):
            return simple
        params = Params.first(weights[:-1] / (1 - share), simple.params.components)
        split_and_merge = SplitAndMerge(shaped, rows, self.n_components)
        candidates = (
            split_and_merge.shaped(self.proposal.seeds, params),
            replace(self, rows=rows)._run(rng).params,
        )
        starts = []
        for candidate in candidates:
            params = Params.first(with_share(candidate.weights, share), candidate.components)
            params, bound = climb(shaped, self.rows, params, STEPS_BESIDE_BACKGROUND, background)
            starts.append(SampleStart(shaped, params, bound, background))
        return max(starts, key=lambda start: start.bound)

    def _simple(
        self, rng: np.random.Generator, watch: OnIteration, background: float | None
    ) -> SampleStart:
        seeds = self.proposal.seeds
        overseeding = Overseeding(seeds, self.rows, self.n_components, background)
        return SampleStart(seeds, *overseeding.run(rng, watch), background)

    def _affordable(self, shaped: ShapedFamily, rows: RowSource) -> bool:
        return shaped.affordable(rows.n_rows, SHAPED_PER_COMPONENT * self.n_components)


def _judged(family: Family, start: SampleStart, rows: RowSource) -> SampleStart:
    """Return a start with the bound that components of a family reach from it on a sample."""
    stats, about = start.partition(family, rows)
    if not stats.counts.any():  # the background has every row
        return replace(start, bound=-np.inf)
    params = Params.first(stats.counts / stats.counts.sum(), family.initial(stats, about))
    return replace(start, bound=climb(family, rows, params, JUDGED_STEPS)[1])
