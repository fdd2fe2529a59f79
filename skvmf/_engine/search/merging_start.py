"""Starts by merging on a sample: overseeding, then split-and-merge with covariances."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture, Point
from ..em.truncated import near_groups
from ..families.background import NO_BACKGROUND, Background
from ..families.family import Proposal
from ..families.gaussian import ShrunkGaussian
from .beside_background import BesideBackground
from .outliers import inliers
from .overseeding import SEEDS_PER_COMPONENT, Overseeding
from .regions import overseeded
from .sample import FoundStart, FreePoint, Rescoring, Sample, best_of
from .split_and_merge import SplitAndMerge

# For each component to be left, so many simple ones get covariances, and so many seeds are drawn
# for each of those: merging twice as many finds long clusters, more costs the square.
WITH_COVARIANCES_PER_COMPONENT = 2
SEEDS_PER_WITH_COVARIANCES = 2

# Near components that get covariances together at most, where many do: merging takes the square.
GROUP_SIZE = 64

# Steps of EM of the family under which two starts are compared: as many as their own last steps.
RESCORING_STEPS = 3

# A background that takes outliers where the proposal has none begins this far below the modes, in
# squared standard deviations plus d: no row of a normal component is as far.
OUTLIER_SQUARED_DISTANCE = 200


@dataclass(frozen=True, eq=False)
class MergingStart:
    """A start by merging on a sample."""

    proposal: Proposal  # how the family's components are found
    sample: Sample
    n_components: int  # to be left
    watch: OnIteration = ignore  # is called after each round, and returns whether to stop
    background: Background = NO_BACKGROUND
    rescored: Rescoring | None = None  # what the best of several starts is chosen after

    def run(self, rng: np.random.Generator) -> FoundStart:
        """Return the best components, with covariances if rows suffice, and maybe a background."""
        backgrounds = [self.background]
        family = None  # that rescores two starts
        if self.proposal.alternative is not None and len(self.background) == 0:
            background, family = self.proposal.alternative(self.sample.rows)
            backgrounds.append(background)
        near, outlier_weight = self._without_outliers(backgrounds)
        starts = []
        for background in backgrounds:
            start = replace(near, background=background)._run(rng)
            if outlier_weight > 0:
                start = near._with_outliers(start, outlier_weight)
            if family is not None:
                start = start.rescored(Mixture.plain(family), self.sample, RESCORING_STEPS)
            starts.append(start)
        return best_of(starts, self.rescored)

    def _run(self, rng: np.random.Generator) -> FoundStart:
        """Return components beside one background."""
        search = Overseeding(self.proposal.seeds, self.sample, self.n_components, self.background)
        family = self._family_with_covariances(self.sample)
        if family is None:
            return overseeded(search, rng, self.watch)
        if len(self.background) > 0:
            beside = BesideBackground(search, family, self.rescored)
            return beside.run(rng, self.watch, self._afresh)
        if search.in_regions:
            return self._in_groups(family, search, rng)
        return self._with_covariances(family, rng)

    def _afresh(self, sample: Sample, rng: np.random.Generator) -> FreePoint | None:
        """Return components with covariances for rows of their own; None if those are too few."""
        family = self._family_with_covariances(sample)
        if family is None:
            return None
        found = replace(self, sample=sample)._with_covariances(family, rng)
        return FreePoint(found.point.mixture, found.point.params)

    # Rows far from all others.

    def _without_outliers(self, backgrounds: list[Background]) -> tuple["MergingStart", float]:
        """Return the same among rows that are not far from all others, and the others' weight."""
        proposal_for_scale = self.proposal.trimmed
        if proposal_for_scale is None or not any(map(len, backgrounds)):
            return self, 0.0
        weights = self.sample.weights
        far = weights > 0
        far[inliers(self.sample)] = False
        if not far.any():
            return self, 0.0
        near = np.flatnonzero(~far & (weights > 0))
        sample = self.sample.some(near, SEEDS_PER_COMPONENT * self.n_components)
        scale = sample.rows.mean_variance()
        if scale == 0:  # the rows are equal
            return self, 0.0
        outlier_weight = float(weights[far].sum() / weights.sum())
        proposal = proposal_for_scale(scale)
        return replace(self, proposal=proposal, sample=sample), outlier_weight

    def _with_outliers(self, start: FoundStart, outlier_weight: float) -> FoundStart:
        """Return a start with a background that has the rows which were left out."""
        point = start.point
        background = point.background
        if len(background) == 0:
            mode = float(self.proposal.seeds.peaks(point.components).min())
            background = Background((mode - 0.5 * (point.family.dim + OUTLIER_SQUARED_DISTANCE),))
        weight = max(outlier_weight, point.params.background_weight)
        weights = background.add_weight(point.params.conditional_weights, weight)
        point = FreePoint.of(point.family, weights, point.components, background)
        return FoundStart(point, start.bound)

    # Components with covariances.

    def _family_with_covariances(self, sample: Sample) -> ShrunkGaussian | None:
        """Return the family of components with covariances, None if rows do not suffice."""
        family: ShrunkGaussian | None = self.proposal.shaped
        n_components = WITH_COVARIANCES_PER_COMPONENT * self.n_components
        if family is None or not family.affordable(sample.rows.n_rows, n_components):
            return None
        return family

    def _with_covariances(self, family: ShrunkGaussian, rng: np.random.Generator) -> FoundStart:
        """Return components with covariances that start from simple ones, without a background."""
        stopped = False

        def after_seeding(n_rounds: int, bounds: list[float], point: Point) -> bool:
            nonlocal stopped
            stopped = self.watch(n_rounds, bounds, point)
            return True

        def after_split(n_splits: int, bounds: list[float], point: Point) -> bool:
            return self.watch(1 + n_splits, bounds, point) or stopped

        search = Overseeding(
            self.proposal.seeds,
            self.sample,
            WITH_COVARIANCES_PER_COMPONENT * self.n_components,
            seeds_per_component=SEEDS_PER_WITH_COVARIANCES,
        )
        simple = overseeded(search, rng, after_seeding).point
        split_and_merge = SplitAndMerge(family, self.sample, self.n_components)
        return split_and_merge.run(split_and_merge.with_covariances(simple), rng, after_split)

    def _in_groups(
        self, family: ShrunkGaussian, search: Overseeding, rng: np.random.Generator
    ) -> FoundStart:
        """Return many components: from groups of near ones, then split and merged among all."""
        simple = overseeded(search, rng, self.watch).point
        labels = self.sample.label(simple).labels
        tasks = []
        for group in near_groups(simple.centres, GROUP_SIZE):
            numbers = np.flatnonzero(np.isin(labels, group) & (self.sample.weights > 0))
            sample = self.sample.some(numbers, SEEDS_PER_COMPONENT * len(group))
            tasks.append(replace(self, sample=sample, n_components=len(group), watch=ignore))
        if None in [task._family_with_covariances(task.sample) for task in tasks]:
            return self._with_covariances(family, rng)
        points = [task._with_covariances(family, rng).point for task in tasks]
        counts = np.array([task.sample.total_weight for task in tasks])
        matrices: Any = [point.components.covariances for point in points]
        if family.type.shared:
            matrices = np.average(matrices, 0, counts)
        else:
            matrices = np.concatenate(matrices)
        means = np.concatenate([point.components.means for point in points])
        weights = np.concatenate(
            [count * point.weights for count, point in zip(counts, points, strict=True)]
        )
        split_and_merge = SplitAndMerge(family, self.sample, self.n_components)
        first = split_and_merge.point(weights / weights.sum(), family.components(means, matrices))

        def watch(n_splits: int, bounds: list[float], point: Point) -> bool:
            return self.watch(1 + n_splits, bounds, point) or n_splits == 1

        return split_and_merge.run(first, rng, watch)
