"""A start that finds the optimum where there is one: too many components on a sample, merged.

Over-seeding and pruning goes back to Dasgupta and Schulman, "A probabilistic analysis of EM
for mixtures of separated, spherical Gaussians", JMLR 8, 2007; here components are merged, by
what their union loses (Ward, 1963). Waves of further seeds at rows that are badly explained,
merged again, find what is still missing, in the spirit of split-and-merge EM (Ueda et al.,
Neural Computation 12, 2000) and breathing k-means (Fritzke, 2020).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .background import FIRST_SHARE, with_share
from .chunks import Array, Chunk
from .contracts import Family, RowSource
from .em import OnIteration, ignore
from .initialization import partition_statistics, share_labels
from .merging import GRAM_PARTS, Merging, Rest, merge
from .mixture import MixtureModel
from .posterior import FenchelYoungPosterior
from .priors import ModifiedDirichlet
from .shares import Shares
from .statistics import Params, Statistics
from .updates import FixedWeights

FIRST = 4  # times as many components as asked for begin
MORE = 2  # times as many are added by a wave
BEFORE, AFTER = 2, 3  # steps of EM before components are merged, and after
WAVES = 4  # of further seeds, at most
ENOUGH = 1e-2  # gain of the bound below which no further wave is made
BESIDE = 2  # times as many seeds for a wave where half of them come from a background
SPACING = 4  # rows of a background for each seed of a wave, at least
MOST = 0.99  # of the rows that a background begins with
_TINY = float(np.finfo(np.float64).tiny)


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

    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> "Start":
        """Return what a sample says of so many components, beside a background or alone."""
        params, bound = Waves(self, rows, n_components, background).run(rng, watch)
        return Start(self.family, params, bound, background)


@dataclass(frozen=True)
class Start:
    """Parameters of a family's components, and their bound on the sample.

    Beside a background, of a log-density that is the same everywhere, the last weight is its.
    """

    family: Family
    params: Params
    bound: float
    background: float | None = None

    def partition(self, family: Family, rows: RowSource) -> tuple[Statistics, Any]:
        """Return what `partition_statistics` does of rows shared out by these components."""
        centres = self.family.centres(self.params.components)
        share = share_by(self.family, self.params, self.background)
        return partition_statistics(family, rows, centres, share)


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
    background : float or None
        The log-density of what rows may belong to beside components; its weight is the last.
    first : int
        Times as many begin.
    """

    seeding: Seeding
    rows: RowSource
    n_components: int
    background: float | None = None
    first: int = FIRST

    def run(self, rng: np.random.Generator, watch: OnIteration = ignore) -> tuple[Params, float]:
        """Return parameters of `n_components` components, and their bound on the sample.

        ``watch(n_waves, bounds, params)`` is called after each wave, and may stop them.
        """
        K, weights = self.n_components, self.rows.sampling_weights().astype(np.float64)
        params = self._first(self._draw(weights, min(self._n_first(), self._n_drawable), rng))
        params, bound = self._settled(params)
        bounds = [bound]
        stop = watch(0, bounds, params)
        beside = self.background is not None
        n_seeds, goes_on = MORE * K * (BESIDE if beside else 1), K > 1 or beside
        while goes_on and not stop and len(bounds) <= WAVES and self._n_drawable > 2 * K:
            chances = self._chances(params, n_seeds)
            if not chances.any():
                break
            seeds = self._draw(chances, n_seeds, rng)
            more, bound = self._settled(self._extended(params, seeds))
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
        K, least = self.n_components, 0 if self.background is None else BESIDE * FIRST
        return max(min(self.first * K, max(2 * K, GRAM_PARTS)), least)

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
        M = len(points)
        params = self._params(np.ones(M), self.seeding.at(points), 0.0)
        stats = self._by_label(params)
        kept = np.flatnonzero(stats.counts > 0)
        parts = self.seeding.merging(stats, kept, params.components)
        like = self.seeding.fitted(parts, np.arange(len(kept)))
        return self._params(np.ones(M), self.seeding.at(points, like), FIRST_SHARE)

    def _extended(self, params: Params, points: Array) -> Params:
        more, K = self.seeding.at(points, params.components), self.n_components
        components = self.seeding.joined(params.components, more)
        weights = np.append(params.weights[:K], np.full(len(points), 1 / K))
        return self._params(weights, components, params.weights[-1])

    def _settled(self, params: Params) -> tuple[Params, float]:
        """Return what some steps, merging and some steps more make of components."""
        params = self._gathered(params)
        for _ in range(BEFORE):
            params, _ = self._step(params)
        stats = self._by_label(params)
        if not stats.counts.any():  # the background has every row
            stats = self._without_background()._by_label(self._alone(params))
        parts = self._parts(stats, params)
        rest = self._rest(stats, parts)
        left = merge(parts, min(self.n_components, len(parts.counts)), rest)
        share = 0.0 if rest is None else max(rest.count / stats.total, params.weights[-1])
        found = self._filled(parts.counts[left], self.seeding.fitted(parts, left))
        params = self._params(*found, share)
        for _ in range(AFTER):
            params, bound = self._step(params)
        return params, bound

    def _filled(self, weights: Array, components: Any) -> tuple[Array, Any]:
        """Add components without rows where rows are too few or too much alike for all."""
        missing = self.n_components - len(weights)
        if missing == 0:
            return weights, components
        row = np.argmax(self.rows.sampling_weights() > 0)
        points = self.rows.take(np.full(missing, row))
        more = self.seeding.at(points, components)
        return np.append(weights, np.zeros(missing)), self.seeding.joined(components, more)

    def _step(self, params: Params) -> tuple[Params, float]:
        return plain_step(self.seeding.family, self.rows, params, self.background)

    def _gathered(self, params: Params) -> Params:
        """Return what a step of EM among the components alone makes of those with more than a row.

        A component at a single row is too far from the others to win them from a background.
        """
        alone = self._alone(params)
        expect = partial(plain_model(self.seeding.family).expect, alone)
        parts = self._parts(self.rows.fold(expect), alone)
        components = self.seeding.fitted(parts, np.arange(len(parts.counts)))
        return self._params(parts.counts, components, params.weights[-1])

    def _parts(self, stats: Statistics, params: Params) -> Merging:
        """Return the parts of a partition but those of a single row, if enough are left."""
        one_row = 1.0001 * self.rows.total_weight / self._n_drawable
        kept = np.flatnonzero(stats.counts > one_row)
        if len(kept) < self.n_components:
            kept = np.sort(np.argsort(-stats.counts, kind="stable")[: self.n_components])
            kept = kept[stats.counts[kept] > 0]
        return self.seeding.merging(stats, kept, params.components)

    def _without_background(self) -> "Waves":
        return replace(self, background=None)

    def _alone(self, params: Params) -> Params:
        weights = params.weights[: self._n_components(params)]
        return Params.first(weights / weights.sum(), params.components)

    def _params(self, weights: Array, components: Any, share: float) -> Params:
        """Return parameters with weights in these proportions, and a share for the background."""
        weights = weights / weights.sum()
        if self.background is not None:
            weights = with_share(weights, min(share, MOST))
        return Params.first(weights, components)

    def _n_components(self, params: Params) -> int:
        return len(params.weights) - (self.background is not None)

    def _rest(self, stats: Statistics, parts: Merging) -> Rest | None:
        """Return the rows of the background, and of what is too small to be kept."""
        if self.background is None:
            return None
        others = float(stats.total - parts.counts.sum())
        return Rest(max(others, 0.0), self.background)

    def _labels(self, params: Params) -> tuple[Array, Array]:
        """Return the component of each row, and how far its density there is below the peak.

        The label of the background is -1, and its peak everywhere.
        """
        labels = np.empty(self.rows.n_rows, dtype=np.int32)
        shortfalls = np.empty(self.rows.n_rows)
        posterior = FenchelYoungPosterior(temperature=0)
        model = plain_model(self.seeding.family, self.background)
        peaks, K = self.seeding.peaks(params.components), self._n_components(params)
        if self.background is not None:
            peaks = np.append(peaks, self.background)
        with np.errstate(divide="ignore"):
            offsets = np.log(params.weights) + peaks

        def write(chunk: Chunk, span: slice) -> None:
            scores = model.scores(params, chunk)
            labels[span], _, values = posterior.label(scores, params.weights, chunk.weights)
            shortfalls[span] = offsets[labels[span]] - values
            labels[span][labels[span] == K] = -1

        self.rows.for_each(write)
        return labels, shortfalls

    def _chances(self, params: Params, n_seeds: int) -> Array:
        """Return the chances (n,) of rows to be seeds: by how much they are explained worse.

        That is, than half of the rows are, squared. Rows of the background, where whole
        components may lie hidden, have as much of a chance together as all others, or so much
        that one in some of them is drawn: among seeds alone none would have a row to itself.
        """
        weights = self.rows.sampling_weights().astype(np.float64)
        labels, shortfalls = self._labels(params)
        own = labels >= 0
        if own.all():
            return weights * _squares(shortfalls - np.median(shortfalls))
        chances = np.where(own, weights, 0.0)
        if own.any():
            chances *= _squares(np.where(own, shortfalls - np.median(shortfalls[own]), 0.0))
        others = np.where(own, 0.0, weights)
        likely = min(1.0, float(np.count_nonzero(others)) / (SPACING * n_seeds))
        chances /= max(chances.sum(), _TINY)
        chances += likely * others / max(others.sum(), _TINY)
        return chances

    def _by_label(self, params: Params) -> Statistics:
        labels, _ = self._labels(params)
        family, M = self.seeding.family, self._n_components(params)
        centres = family.centres(params.components)
        stats, _ = partition_statistics(
            family, self.rows, centres, partial(share_labels, labels, M)
        )
        return stats


def _squares(excess: Array) -> Array:
    """Return the squares of what is positive, in parts of the largest: they are finite."""
    positive = np.maximum(excess, 0)
    squares: Array = (positive / (positive.max() or 1.0)) ** 2
    return squares


def plain_model(family: Family, background: float | None = None) -> MixtureModel:
    """Return a mixture with soft shares and no prior."""
    return MixtureModel(
        family, FenchelYoungPosterior(), ModifiedDirichlet(), FixedWeights(), background=background
    )


def plain_step(
    family: Family, rows: RowSource, params: Params, background: float | None = None
) -> tuple[Params, float]:
    """Return parameters after a step of EM, and the bound of those before."""
    model = plain_model(family, background)
    stats = rows.fold(partial(model.expect, params))
    own = stats.of_first(len(params.weights) - (background is not None))
    components = params.components
    if own.counts.any():  # else the background has every row
        components, _ = family.maximize(own, components)
    after = Params.first(stats.counts / stats.counts.sum(), components)
    return after, model.lower_bound(stats, params)


def share_by(
    family: Family, params: Params, background: float | None = None
) -> Callable[[Chunk], tuple[Shares, Array]]:
    """Return what shares out a block among components by some parameters."""
    model = plain_model(family, background)
    K = len(params.weights) - (background is not None)

    def share(chunk: Chunk) -> tuple[Shares, Array]:
        scores = model.scores(params, chunk)
        shares, counts, _ = model.posterior.assign(
            scores, params.weights, chunk.weights, chunk.scales
        )
        return shares.of_first(K), counts[:K]

    return share
