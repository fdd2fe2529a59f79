"""Waves of seeds on a sample, merged: what finds the optimum where there is one.

Over-seeding and pruning goes back to Dasgupta and Schulman, "A probabilistic analysis of EM
for mixtures of separated, spherical Gaussians", JMLR 8, 2007; here components are merged, by
what their union loses (Ward, 1963). Waves of further seeds at rows that are badly explained,
merged again, find what is still missing, in the spirit of split-and-merge EM (Ueda et al.,
Neural Computation 12, 2000) and breathing k-means (Fritzke, 2020). A wave looks only at the
rows that its seeds explain better than the components that are there: so many components
cost what some steps of EM with them cost.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..data.blocks import Block
from ..em.loop import OnIteration, ignore
from ..families.background import FIRST_SHARE, with_share
from ..families.merge_costs import GRAM_PARTS, Merging, Rest
from ..posteriors.fenchel_young import FenchelYoungPosterior
from .agglomerate import merge
from .base import Proposal, Start, plain_model, plain_step
from .partitions import partition_statistics, share_labels

FIRST = 4  # times as many components as asked for begin
MORE = 2  # times as many are added by a wave
BEFORE, AFTER = 3, 3  # steps of EM before components are merged, and after
FEW, LEAST = 25, 10_000  # rows a component, and rows, among which the first are merged
INWARDS = 2 / 3  # of the way from a row to its component every second seed of a wave goes
WAVES = 4  # of further seeds, at most
ENOUGH = 1e-2  # gain of the bound below which no further wave is made
LAST, STILL = 10, 1e-3  # steps of EM at the end, at most, and what each of them is to gain
BESIDE = 2  # times as many seeds for a wave where half of them come from a background
SPACING = 4  # rows of a background for each seed of a wave, at least
MOST = 0.99  # of the rows that a background begins with
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Nearest:
    """Of each row the likeliest component, its score, and how far below its peak it is there.

    The label of the background is -1, and its peak everywhere.
    """

    labels: Array
    scores: Array
    shortfalls: Array


@dataclass(frozen=True)
class Overseeding:
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

    seeding: Proposal
    rows: RowSource
    n_components: int
    background: float | None = None
    first: int = FIRST

    def run(self, rng: np.random.Generator, watch: OnIteration = ignore) -> tuple[Params, float]:
        """Return parameters of `n_components` components, and their bound on the sample.

        ``watch(n_waves, bounds, params)`` is called after each wave, and may stop them.
        """
        params, bound = self._begun(rng)
        bounds = [bound]
        stop = watch(0, bounds, params)
        several = self.n_components > 1 or self.background is not None
        goes_on = several and self._n_drawable > 2 * self.n_components
        while goes_on and not stop and len(bounds) <= WAVES:
            found = self._wave(params, rng)
            if found is None:
                break
            more, bound = found
            gain = bound - bounds[-1]
            if gain > 0:
                params = more
            bounds.append(max(bound, bounds[-1]))
            stop = watch(len(bounds) - 1, bounds, params)
            if gain < ENOUGH and len(bounds) > 2:
                break
        return (params, bounds[-1]) if stop else self._settled(params, bounds[-1])

    def start(self, rng: np.random.Generator, watch: OnIteration = ignore) -> Start:
        """Return what the waves say of so many components."""
        params, bound = self.run(rng, watch)
        return Start(self.seeding.family, params, bound, self.background)

    @property
    def _n_drawable(self) -> int:
        return int(np.count_nonzero(self.rows.sampling_weights()))

    def _begun(self, rng: np.random.Generator) -> tuple[Params, float]:
        """Return what the first seeds become, and their bound."""
        few = self._among_few(rng)
        weights = few.rows.sampling_weights().astype(np.float64)
        points = few.rows.take(few._draw(weights, min(few._n_first(), few._n_drawable), rng))
        params = few._grown(few.rows, few._sized(points), np.ones(len(points)))
        return self._climbed(few._merged(params, few._nearest(params).labels))

    def _among_few(self, rng: np.random.Generator) -> "Overseeding":
        """Return the same on as many rows as tell the first components."""
        drawable = np.flatnonzero(self.rows.sampling_weights())
        size = max(FEW * self.n_components, LEAST)
        if len(drawable) <= size or self.background is not None:  # clusters may be small
            return self
        return self._at(np.sort(rng.choice(drawable, size, replace=False)), self._n_first())

    def _at(self, indices: Array, width: int) -> "Overseeding":
        """Return the same on some of the rows, each with `width` numbers beside it in a step."""
        weights = self.rows.sampling_weights()[indices]
        return replace(self, rows=self.rows.subset(indices, weights, width))

    def _n_first(self) -> int:
        K, least = self.n_components, 0 if self.background is None else BESIDE * FIRST
        return max(min(self.first * K, max(2 * K, GRAM_PARTS)), least)

    def _draw(self, weights: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw rows by weight, without putting back."""
        keys = np.full(len(weights), np.inf)
        drawable = weights > 0
        with np.errstate(over="ignore"):  # of rows that are next to never drawn
            keys[drawable] = rng.exponential(size=int(drawable.sum())) / weights[drawable]
        size = min(size, int(drawable.sum()))
        return np.sort(np.argpartition(keys, size - 1)[:size])

    def _sized(self, points: Array) -> Any:
        """Return components at points, of the size of the parts that are nearest to them."""
        M = len(points)
        params = self._params(np.ones(M), self.seeding.at(points), 0.0)
        stats = self._by_label(params, self._nearest(params).labels)
        kept = np.flatnonzero(stats.counts > 0)
        parts = self.seeding.merging(stats, kept, params.components)
        return self.seeding.at(points, self._fitted(parts))

    def _wave(self, params: Params, rng: np.random.Generator) -> tuple[Params, float] | None:
        """Return what further seeds and merging make of components, and the bound, if anything."""
        own, K = self._nearest(params), self.n_components
        n_seeds = MORE * K * (1 if self.background is None else BESIDE)
        chances = self._chances(own, n_seeds)
        if not chances.any():
            return None
        drawn = self._draw(chances, n_seeds, rng)
        seeds = self.seeding.at(self._points(drawn, own, params), params.components)
        won = self._won(seeds, len(drawn), own, np.flatnonzero(chances))
        if len(won) == 0:
            return None
        local = self._at(won, K + len(drawn))
        counts = np.full(len(drawn), self.rows.total_weight / K)
        grown = self._grown(local.rows, seeds, counts, params)
        own.labels[won] = local._nearest(grown).labels
        return self._climbed(self._merged(grown, own.labels))

    def _points(self, drawn: Array, own: _Nearest, params: Params) -> Array:
        """Return rows, and for every second a point between it and what has it.

        Where two clusters share a component, the others of a cluster are nearer to that
        component than to any single one of them, but not nearer than to such a point.
        """
        points, labels = self.rows.take(drawn), own.labels[drawn]
        between = (np.arange(len(drawn)) % 2 == 1) & (labels >= 0)
        centres = self.seeding.family.centres(params.components)[labels[between]]
        points[between] += INWARDS * (centres - points[between])
        return points

    def _won(self, seeds: Any, n_seeds: int, own: _Nearest, doubtful: Array) -> Array:
        """Return which of some rows seeds explain better than what has them, or the background."""
        alone = replace(self._at(doubtful, n_seeds), background=None)
        scores = alone._nearest(alone._params(np.ones(n_seeds), seeds, 0.0)).scores
        scores += np.log(n_seeds / self.n_components)
        won: Array = doubtful[(scores > own.scores[doubtful]) | (own.labels[doubtful] < 0)]
        return won

    def _grown(
        self, rows: RowSource, seeds: Any, counts: Array, old: Params | None = None
    ) -> Params:
        """Return old components beside seeds, after some steps of EM that move the seeds only.

        Seeds with no more than a row are dropped. In the first step no background is there: a
        component at a single row is too far from the others to win them from it.
        """
        n_old = 0 if old is None else self.n_components
        share = FIRST_SHARE if old is None else float(old.weights[-1])
        for step in range(BEFORE):
            params = self._beside(old, seeds, counts, share)
            background = self.background if step > 0 else None
            params = params if step > 0 else self._alone(params)
            stats = rows.map_reduce(
                partial(plain_model(self.seeding.family, background).expect, params)
            )
            if background is not None:
                share = stats.counts[-1] / self.rows.total_weight
            stats = stats.first_components(n_old + len(counts))
            kept = n_old + self._more_than_a_row(stats.counts[n_old:], self.n_components - n_old)
            if old is not None and len(kept) == 0:
                return old
            parts = self.seeding.merging(stats, kept, params.components)
            seeds, counts = self._fitted(parts), parts.counts
        return self._beside(old, seeds, counts, share)

    def _beside(self, old: Params | None, seeds: Any, counts: Array, share: float) -> Params:
        """Return parameters of components, if there are some, and of seeds with so many rows."""
        if old is None:
            return self._params(counts, seeds, share)
        old_counts = old.weights[: self.n_components] * self.rows.total_weight
        components = self.seeding.joined(old.components, seeds)
        return self._params(np.append(old_counts, counts), components, share)

    def _merged(self, params: Params, labels: Array) -> Params:
        """Return as many components as are to be left, of rows with labels among many."""
        stats = self._by_label(params, labels)
        if not stats.counts.any():  # the background has every row
            alone = replace(self, background=None)
            stats = self._by_label(params, alone._nearest(self._alone(params)).labels)
        kept = self._more_than_a_row(stats.counts, self.n_components)
        parts = self.seeding.merging(stats, kept, params.components)
        rest = self._rest(stats, parts)
        left = merge(parts, min(self.n_components, len(parts.counts)), rest)
        share = 0.0 if rest is None else max(rest.count / stats.total, params.weights[-1])
        return self._params(*self._filled(parts.counts[left], self._fitted(parts, left)), share)

    def _climbed(self, params: Params) -> tuple[Params, float]:
        """Return parameters after some steps of EM, and the bound before the last."""
        for _ in range(AFTER):
            params, bound = self._step(params)
        return params, bound

    def _settled(self, params: Params, bound: float) -> tuple[Params, float]:
        """Return parameters after steps of EM that still gain: on all rows they cost more."""
        for _ in range(LAST):
            params, after = self._step(params)
            if after - bound < STILL:
                break
            bound = after
        return params, max(bound, after)

    def _step(self, params: Params) -> tuple[Params, float]:
        return plain_step(self.seeding.family, self.rows, params, self.background)

    def _fitted(self, parts: Merging, left: Array | None = None) -> Any:
        """Return the components of parts, or of those that are left."""
        return self.seeding.fitted(parts, np.arange(len(parts.counts)) if left is None else left)

    def _filled(self, weights: Array, components: Any) -> tuple[Array, Any]:
        """Add components without rows where rows are too few or too much alike for all."""
        missing = self.n_components - len(weights)
        if missing == 0:
            return weights, components
        row = np.argmax(self.rows.sampling_weights() > 0)
        points = self.rows.take(np.full(missing, row))
        more = self.seeding.at(points, components)
        return np.append(weights, np.zeros(missing)), self.seeding.joined(components, more)

    def _more_than_a_row(self, counts: Array, least: int) -> Array:
        """Return which components have more than a row, or the largest if those are too few."""
        one_row = 1.0001 * self.rows.total_weight / self._n_drawable
        kept = np.flatnonzero(counts > one_row)
        if len(kept) < least:
            kept = np.sort(np.argsort(-counts, kind="stable")[:least])
            kept = kept[counts[kept] > 0]
        return kept

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

    def _nearest(self, params: Params) -> _Nearest:
        """Return which component each row of the sample belongs to."""
        n = self.rows.n_rows
        labels, scores, shortfalls = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
        posterior = FenchelYoungPosterior(temperature=0)
        model = plain_model(self.seeding.family, self.background)
        peaks, K = self.seeding.peaks(params.components), self._n_components(params)
        if self.background is not None:
            peaks = np.append(peaks, self.background)
        with np.errstate(divide="ignore"):
            offsets = np.log(params.weights) + peaks

        def write(block: Block, span: slice) -> None:
            own = model.scores(params, block)
            labels[span], _, scores[span] = posterior.label(own, params.weights, block.weights)
            shortfalls[span] = offsets[labels[span]] - scores[span]
            labels[span][labels[span] == K] = -1

        self.rows.for_each(write)
        return _Nearest(labels, scores, shortfalls)

    def _chances(self, own: _Nearest, n_seeds: int) -> Array:
        """Return the chances (n,) of rows to be seeds: by how much they are explained worse.

        That is, than half of the rows are, squared. Rows of the background, where whole
        components may lie hidden, have as much of a chance together as all others, or so much
        that one in some of them is drawn: among seeds alone none would have a row to itself.
        """
        weights = self.rows.sampling_weights().astype(np.float64)
        inside, shortfalls = own.labels >= 0, own.shortfalls
        if inside.all():
            return weights * _squares(shortfalls - np.median(shortfalls))
        chances = np.where(inside, weights, 0.0)
        if inside.any():
            excess = np.where(inside, shortfalls - np.median(shortfalls[inside]), 0.0)
            chances *= _squares(excess)
        others = np.where(inside, 0.0, weights)
        likely = min(1.0, float(np.count_nonzero(others)) / (SPACING * n_seeds))
        chances /= max(chances.sum(), _TINY)
        chances += likely * others / max(others.sum(), _TINY)
        return chances

    def _by_label(self, params: Params, labels: Array) -> Statistics:
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
