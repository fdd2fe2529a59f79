"""A start that finds the optimum where there is one: too many components on a sample, merged.

Over-seeding and pruning goes back to Dasgupta and Schulman, "A probabilistic analysis of EM
for mixtures of separated, spherical Gaussians", JMLR 8, 2007; here components are merged, by
what their union loses (Ward, 1963). Waves of further seeds at rows that are badly explained,
merged again, find what is still missing, in the spirit of split-and-merge EM (Ueda et al.,
Neural Computation 12, 2000) and breathing k-means (Fritzke, 2020).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .chunks import Array, Chunk
from .contracts import Family, RowSource
from .em import OnIteration, ignore
from .initialization import partition_statistics, share_labels
from .merging import GRAM_PARTS, Merging, merge
from .mixture import MixtureModel
from .posterior import FenchelYoungPosterior
from .priors import ModifiedDirichlet
from .statistics import Params, Statistics
from .updates import FixedWeights

FIRST = 4  # times as many components as asked for begin
MORE = 2  # times as many are added by a wave
STEPS = 3  # of EM before components are merged, and after
WAVES = 4  # of further seeds, at most
ENOUGH = 1e-2  # gain of the bound below which no further wave is made


class Seeding(ABC):
    """What a family brings to the start: simpler components, and how they merge.

    `family` is that of the components: with few parameters each, so that a few rows will do.
    """

    family: Family

    @abstractmethod
    def at(self, points: Array, like: Any = None) -> Any:
        """Return components at points (M, d), of a size like that of others, or of any."""

    @abstractmethod
    def joined(self, components: Any, others: Any) -> Any:
        """Return components and others."""

    @abstractmethod
    def peaks(self, components: Any) -> Array:
        """Return the largest log-density of each component, (M,)."""

    @abstractmethod
    def merging(self, stats: Statistics, kept: Array, components: Any) -> Merging:
        """Return the parts `kept` of a partition, ready to be merged."""

    @abstractmethod
    def fitted(self, parts: Merging, left: Array) -> Any:
        """Return the components of the parts that are left."""


@dataclass(frozen=True)
class Waves:
    """Seeds, merges and further waves on a sample.

    Parameters
    ----------
    seeding : Seeding
        The components and their merging.
    rows : RowSource
        The sample.
    n_components : int
        How many components are to be left.
    """

    seeding: Seeding
    rows: RowSource
    n_components: int

    def run(self, rng: np.random.Generator, watch: OnIteration = ignore) -> tuple[Params, float]:
        """Return parameters of `n_components` components, and their bound on the sample.

        ``watch(n_waves, bounds, params)`` is called after each wave, and may stop them.
        """
        K, weights = self.n_components, self.rows.sampling_weights().astype(np.float64)
        params = self._first(self._draw(weights, min(self._n_first(), self._n_drawable), rng))
        params, bound = self._settled(params)
        bounds = [bound]
        stop = watch(0, bounds, params)
        while not stop and len(bounds) <= WAVES and self._n_drawable > 2 * K > 2:
            chances = weights * np.maximum(self._misfit(params), 0) ** 2
            if not chances.any():
                break
            more, bound = self._settled(self._extended(params, self._draw(chances, MORE * K, rng)))
            gain = bound - bounds[-1]
            if gain > 0:
                params = more
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, params)
            if gain < ENOUGH and len(bounds) > 2:
                break
        return params, bounds[-1]

    @property
    def _n_drawable(self) -> int:
        return int(np.count_nonzero(self.rows.sampling_weights()))

    def _n_first(self) -> int:
        K = self.n_components
        return min(FIRST * K, max(2 * K, GRAM_PARTS))

    def _draw(self, weights: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw rows (m, d) by weight, without putting back."""
        keys = np.full(len(weights), np.inf)
        drawable = weights > 0
        with np.errstate(over="ignore"):  # of rows that are next to never drawn
            keys[drawable] = rng.exponential(size=int(drawable.sum())) / weights[drawable]
        size = min(size, int(drawable.sum()))
        return self.rows.take(np.sort(np.argpartition(keys, size - 1)[:size]))

    def _first(self, points: Array) -> Params:
        """Return components at points, of the size of the parts that are nearest to them."""
        params = _equal(self.seeding.at(points), len(points))
        stats = self._by_label(params)
        kept = np.flatnonzero(stats.counts > 0)
        parts = self.seeding.merging(stats, kept, params.components)
        like = self.seeding.fitted(parts, np.arange(len(kept)))
        return _equal(self.seeding.at(points, like), len(points))

    def _extended(self, params: Params, points: Array) -> Params:
        more = self.seeding.at(points, params.components)
        components = self.seeding.joined(params.components, more)
        weights = np.append(params.weights, np.full(len(points), 1 / self.n_components))
        return Params.first(weights / weights.sum(), components)

    def _settled(self, params: Params) -> tuple[Params, float]:
        """Return what some steps, merging and some steps more make of components."""
        for _ in range(STEPS):
            params, _ = self._step(params)
        stats = self._by_label(params)
        K = self.n_components
        one_row = 1.0001 * self.rows.total_weight / self._n_drawable
        kept = np.flatnonzero(stats.counts > one_row)
        if len(kept) < K:
            kept = np.sort(np.argsort(-stats.counts, kind="stable")[:K])
            kept = kept[stats.counts[kept] > 0]
        parts = self.seeding.merging(stats, kept, params.components)
        left = merge(parts, min(K, len(kept)))
        weights = parts.counts[left] / parts.counts[left].sum()
        params = self._filled(Params.first(weights, self.seeding.fitted(parts, left)))
        for _ in range(STEPS):
            params, bound = self._step(params)
        return params, bound

    def _filled(self, params: Params) -> Params:
        """Add components without rows where rows are too few or too much alike for all."""
        missing = self.n_components - len(params.weights)
        if missing == 0:
            return params
        row = np.argmax(self.rows.sampling_weights() > 0)
        points = self.rows.take(np.full(missing, row))
        more = self.seeding.at(points, params.components)
        components = self.seeding.joined(params.components, more)
        return Params.first(np.append(params.weights, np.zeros(missing)), components)

    def _step(self, params: Params) -> tuple[Params, float]:
        """Return parameters after a step of EM, and the bound of those before."""
        model = self._model()
        stats = self.rows.fold(partial(model.expect, params))
        components, _ = self.seeding.family.maximize(stats, params.components)
        weights = stats.counts / stats.counts.sum()
        return Params.first(weights, components), model.lower_bound(stats, params)

    def _model(self) -> MixtureModel:
        flat = ModifiedDirichlet()
        return MixtureModel(self.seeding.family, FenchelYoungPosterior(), flat, FixedWeights())

    def _labels(self, params: Params) -> tuple[Array, Array]:
        """Return the component of each row, and how far its density there is below the peak."""
        labels = np.empty(self.rows.n_rows, dtype=np.int32)
        shortfalls = np.empty(self.rows.n_rows)
        posterior, model = FenchelYoungPosterior(temperature=0), self._model()
        with np.errstate(divide="ignore"):
            offsets = np.log(params.weights) + self.seeding.peaks(params.components)

        def write(chunk: Chunk, span: slice) -> None:
            scores = model.scores(params, chunk)
            labels[span], _, values = posterior.label(scores, params.weights, chunk.weights)
            shortfalls[span] = offsets[labels[span]] - values

        self.rows.for_each(write)
        return labels, shortfalls

    def _misfit(self, params: Params) -> Array:
        """Return by how much rows are explained worse than half of the rows are, (n,)."""
        _, shortfalls = self._labels(params)
        misfit: Array = shortfalls - np.median(shortfalls)
        return misfit

    def _by_label(self, params: Params) -> Statistics:
        labels, _ = self._labels(params)
        family, M = self.seeding.family, len(params.weights)
        centres = family.centres(params.components)
        stats, _ = partition_statistics(
            family, self.rows, centres, partial(share_labels, labels, M)
        )
        return stats


def _equal(components: Any, n_components: int) -> Params:
    return Params.first(np.full(n_components, 1 / n_components), components)
