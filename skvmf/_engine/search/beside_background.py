"""The search beside a background: simple components first, which leave it the rows of outliers.

Components with covariances then start among the rows that are left, from the simple ones and from
scratch, and the better of both are returned.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ..em.loop import OnIteration
from ..em.mixture import Point
from ..families.gaussian import ShrunkGaussian
from ..families.responsibilities import as_dense
from ..rows.blocks import Block
from .overseeding import SEEDS_PER_COMPONENT, Overseeding
from .regions import overseeded
from .sample import FoundStart, FreePoint, Rescoring, Sample, best_of
from .split_and_merge import SplitAndMerge

# Steps of EM with the background, of components that started without it: they are then compared.
STEPS_BESIDE = 3

# Rows count where the components together have more than this fraction of the most they have.
MIN_RELATIVE_WEIGHT = 1e-3

Afresh = Callable[[Sample, np.random.Generator], FreePoint | None]


@dataclass(frozen=True, eq=False)
class BesideBackground:
    """A search beside a background, for components with covariances."""

    search: Overseeding  # for simple components, with the background
    family: ShrunkGaussian
    rescored: Rescoring | None = None  # what the best of both is chosen after

    def run(self, rng: np.random.Generator, watch: OnIteration, afresh: Afresh) -> FoundStart:
        """Return components with covariances; the simple ones, if there are too few rows.

        ``afresh(sample, rng)`` returns components with covariances that start from scratch, or
        None for too few rows.
        """
        stopped = False

        def after_round(n_rounds: int, bounds: list[float], point: Point) -> bool:
            nonlocal stopped
            stopped = stopped or watch(n_rounds, bounds, point)
            return stopped

        simple = overseeded(self.search, rng, after_round)
        background_weight = simple.point.params.background_weight
        if stopped or background_weight == 1:
            return simple
        sample = self._rows_of_components(simple.point)
        K = self.search.n_components
        split_and_merge = SplitAndMerge(self.family, sample, K)
        simple_alone = FreePoint.of(
            simple.point.family,
            simple.point.weights / (1 - background_weight),
            simple.point.components,
        )
        from_scratch = afresh(sample, rng)
        if from_scratch is None:
            return simple
        candidates = [split_and_merge.with_covariances(simple_alone), from_scratch]
        starts = [self._beside(candidate, background_weight) for candidate in candidates]
        return best_of(starts, self.rescored)

    def _beside(self, point: FreePoint, background_weight: float) -> FoundStart:
        """Return components after some steps beside the background, and their bound."""
        background = self.search.background
        weights = background.add_weight(point.weights, background_weight)
        beside = FreePoint.of(self.family, weights, point.components, background)
        return FoundStart(*self.search.sample.em(beside, STEPS_BESIDE))

    def _rows_of_components(self, point: Point) -> Sample:
        """Return rows weighted by what the components have of them; all, if they have none."""
        K = point.n_components
        sample = self.search.sample

        def weigh(block: Block) -> list[Array]:
            resp = point.assign(block).of_components(K)
            return [as_dense(resp, K).sum(axis=1)]

        weights = np.concatenate(sample.rows.map_reduce(weigh))
        some = np.flatnonzero(weights > MIN_RELATIVE_WEIGHT * weights.max())
        if len(some) == 0:
            return sample
        return sample.some(some, SEEDS_PER_COMPONENT * K, weights)
