"""The components that starts are made of: directions of one concentration, and balls."""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..em.loop import OnIteration, ignore
from ..families.background import Background, with_share
from ..families.gaussian import Gaussian
from ..families.gaussian_products import GaussianComponents
from ..families.merge_costs import BallMerging, DirectionMerging, Merging
from ..families.shrinkage import ShrunkGaussian, ShrunkSpherical
from ..families.student_t import StudentT
from ..families.vonmises_fisher import VonMisesFisher
from ..families.vonmises_fisher_products import DirectionalComponents
from .base import Proposal, Start, plain_step
from .overseeding import Overseeding
from .split_and_merge import SplitAndMerge
from .trimming import rows_in_company

FACTOR = 2  # times as many balls as asked for take a shape of their own
FIRST = 2  # times as many as those begin
BESIDE_STEPS = 3  # of EM beside a background, of components that started alone
JUDGED_AFTER = 3  # steps of a family with heavy tails
BEYOND = 200  # squared standard deviations, beside the number of features, of rows too far away


class DirectionalProposal(Proposal):
    """Von Mises-Fisher components of one concentration.

    Parameters
    ----------
    family : VonMisesFisher
        The family to start; its prior has no say here.
    """

    def __init__(self, family: VonMisesFisher) -> None:
        self.family: VonMisesFisher = family.kmeans()

    def at(self, points: Array, like: DirectionalComponents | None = None) -> DirectionalComponents:
        """Return components in the directions of points (M, d)."""
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        length = np.array([0.5]) if like is None else like.lengths[:1]
        complement = np.array([0.5]) if like is None else like.complements[:1]
        return self.family.components(np.ascontiguousarray(points.T), length, complement)

    def joined(
        self, components: DirectionalComponents, others: DirectionalComponents
    ) -> DirectionalComponents:
        """Return components and others, of the concentration of the first."""
        directions = np.hstack([components.directions, others.directions])
        return self.family.components(
            directions, components.lengths[:1], components.complements[:1]
        )

    def peaks(self, components: DirectionalComponents) -> Array:
        """Return the log-density at each mean direction."""
        peaks: Array = components.concentrations + components.log_normalizers
        return peaks

    def merging(
        self, stats: Statistics, kept: Array, components: DirectionalComponents
    ) -> DirectionMerging:
        """Return the sums of the rows of each part."""
        sums = np.ascontiguousarray(stats.moments[0].T[kept])
        return DirectionMerging(
            sums,
            stats.counts[kept],
            float(components.concentrations[0]),
            float(components.log_normalizers[0]),
        )

    def fitted(self, parts: Merging, left: Array) -> DirectionalComponents:
        """Return the components of the parts, with their pooled resultant length."""
        sums, counts = parts.sums[left], parts.counts[left]
        norms = np.linalg.norm(sums, axis=1)
        directions = sums.T / np.where(norms > 0, norms, 1.0)
        directions[0, norms == 0] = 1.0
        length = np.array([min(norms.sum() / counts.sum(), 1.0)])
        return self.family.components(np.ascontiguousarray(directions), length, 1 - length)

    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> Start:
        """Return components of one concentration."""
        return Overseeding(self, rows, n_components, background).start(rng, watch)


@dataclass
class _Heard:
    """What watches the first stage of a start, and remembers whether it asked to stop."""

    watch: OnIteration
    stopped: bool = False

    def __call__(self, n_waves: int, bounds: list[float], params: Params) -> bool:
        """Watch."""
        self.stopped = self.watch(n_waves, bounds, params)
        return self.stopped


class SphericalProposal(Proposal):
    """Spherical Gaussians, each of its own variance.

    Parameters
    ----------
    family : Gaussian
        The family to start; its `scale` is the data's.
    """

    def __init__(self, family: Gaussian) -> None:
        n_pseudo = 1 + 8 / family.dim
        self._firm = None if family.fixed else ShrunkGaussian.of(family)
        self.family: ShrunkSpherical = ShrunkSpherical(
            family.dim, "spherical", scale=family.scale, n_pseudo=n_pseudo
        )

    def at(self, points: Array, like: GaussianComponents | None = None) -> GaussianComponents:
        """Return components at points (M, d), of the median variance of others."""
        variance = self.family.scale if like is None else float(np.median(like.covariances))
        return self.family.components(points, np.full(len(points), variance))

    def joined(
        self, components: GaussianComponents, others: GaussianComponents
    ) -> GaussianComponents:
        """Return components and others."""
        return self.family.components(
            np.vstack([components.means, others.means]),
            np.append(components.covariances, others.covariances),
        )

    def peaks(self, components: GaussianComponents) -> Array:
        """Return the log-density at each mean."""
        peaks: Array = components.log_det - 0.5 * self.family.dim * np.log(2 * np.pi)
        return peaks

    def merging(
        self, stats: Statistics, kept: Array, components: GaussianComponents
    ) -> BallMerging:
        """Return the sums of each part about one point."""
        centre = components.means.mean(axis=0)
        moved = self.family.recenter(stats, np.tile(centre, (len(stats.counts), 1)))
        counts, first, second = stats.counts[kept], moved.moments[0][kept], moved.moments[1][kept]
        scatter = np.maximum(second - np.einsum("kd,kd->k", first, first) / counts, 0)
        pooled = max(scatter.sum() / (counts.sum() * self.family.dim), 1e-12 * self.family.scale)
        return BallMerging(first, counts, second, centre, self.family.n_pseudo, float(pooled))

    def fitted(self, parts: Merging, left: Array) -> GaussianComponents:
        """Return the components of the parts."""
        assert isinstance(parts, BallMerging)
        counts, first = parts.counts[left], parts.sums[left] / parts.counts[left, None]
        squares = np.einsum("kd,kd->k", first, first)
        variances = np.maximum(parts.second[left] / counts - squares, 0) / self.family.dim
        return self.family.shrunk(parts.centre + first, variances, counts, parts.pooled)

    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> Start:
        """Return components of their own shapes, where rows are enough, else balls.

        Some more balls than are asked for take their shapes, and are joined.
        """
        many, firm = FACTOR * n_components, self._firm
        if firm is None or not firm.affordable(rows.n_rows, many):
            return Overseeding(self, rows, n_components, background).start(rng, watch)
        if background is not None:
            return self._start_beside(background, firm, rows, n_components, rng, watch)
        heard = _Heard(watch)

        def first(n_waves: int, bounds: list[float], params: Params) -> bool:
            heard(n_waves, bounds, params)
            return True

        def later(n_cuts: int, bounds: list[float], params: Params) -> bool:
            return watch(1 + n_cuts, bounds, params) or heard.stopped

        balls, _ = Overseeding(self, rows, many, first=FIRST).run(rng, first)
        joining = SplitAndMerge(firm, rows, n_components)
        params, bound = joining.run(joining.shaped(self.family, balls), rng, later)
        return Start(firm, params, bound)

    def _start_beside(
        self,
        background: float,
        firm: ShrunkGaussian,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration,
    ) -> Start:
        """Return what starts alone among the rows that balls have beside it, or those balls."""
        heard = _Heard(watch)
        balls = Overseeding(self, rows, n_components, background).start(rng, heard)
        own, share = balls.own_rows(rows), balls.params.weights[-1]
        if heard.stopped or share == 1 or not firm.affordable(own.n_rows, FACTOR * n_components):
            return balls
        simple = Params.first(balls.params.weights[:-1] / (1 - share), balls.params.components)
        shaped = SplitAndMerge(firm, own, n_components).shaped(self.family, simple)
        starts = []
        for found in (shaped, self.start(own, n_components, rng, watch).params):
            params = Params.first(with_share(found.weights, share), found.components)
            for _ in range(BESIDE_STEPS):
                params, bound = plain_step(firm, rows, params, background)
            starts.append(Start(firm, params, bound, background))
        return max(starts, key=lambda start: start.bound)


class TrimmedProposal(SphericalProposal):
    """Spherical Gaussians among rows that are not far from all others, beside a background.

    Parameters
    ----------
    family : Gaussian
        That of rows once they are weighed; its `scale` is the data's.
    """

    def __init__(self, family: Gaussian) -> None:
        super().__init__(family)
        self._gaussian = family

    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> Start:
        """Return components beside a background that has the rows too far from all of them."""
        near = self._near(rows, n_components)
        return self._start_near(near, n_components, rng, watch, background)

    def _near(
        self, rows: RowSource, n_components: int
    ) -> tuple[RowSource, SphericalProposal, float]:
        """Return the rows to look at, what starts there, and the share of those left out."""
        weights = rows.sampling_weights()
        far = weights > 0
        far[rows_in_company(self._gaussian, rows)] = False
        if far.any():
            kept = np.flatnonzero(~far & (weights > 0))
            near = rows.subset(kept, weights[kept], 4 * n_components)
            scale = near.mean_variance()
            if scale > 0:  # else the others are equal
                balls = SphericalProposal(replace(self._gaussian, scale=scale))
                return near, balls, float(weights[far].sum() / weights.sum())
        return rows, SphericalProposal(self._gaussian), 0.0

    def _start_near(
        self,
        near: tuple[RowSource, SphericalProposal, float],
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration,
        background: float | None,
    ) -> Start:
        rows, balls, share = near
        start = balls.start(rows, n_components, rng, watch, background)
        if share == 0:
            return start
        components, weights = start.params.components, start.params.weights
        if background is None:
            background = float(self.peaks(components).min()) - 0.5 * (self.family.dim + BEYOND)
        else:
            share = max(share, weights[-1])
            weights = weights[:-1] / (weights[:-1].sum() or 1.0)
        params = Params.first(with_share(weights, share), components)
        return Start(start.family, params, start.bound, background)


class HeavyTailedProposal(TrimmedProposal):
    """Spherical Gaussians that serve a family with heavy tails, which needs no background.

    Rows between clusters are nothing unlikely to it. Beside a background the start finds
    clusters among many such rows, without one it finds more of their shapes: both are tried.

    Parameters
    ----------
    family : StudentT
        The family to start.
    """

    def __init__(self, family: StudentT) -> None:
        super().__init__(family.gaussian)
        self._heavy = family

    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> Start:
        """Return the better of two starts for the sample, or the one beside a background."""
        if background is not None:
            return super().start(rows, n_components, rng, watch, background)
        near = self._near(rows, n_components)
        box = Background.around(rows, self._gaussian.reg_covar, self._gaussian.scale)
        starts = [
            self._start_near(near, n_components, rng, watch, beside)
            for beside in (None, box.log_density)
        ]
        return max((self._judged(start, rows) for start in starts), key=lambda start: start.bound)

    def _judged(self, start: Start, rows: RowSource) -> Start:
        """Return a start with the bound of the family's first components on the sample."""
        stats, about = start.partition(self._heavy, rows)
        if not stats.counts.any():  # the background has every row
            return replace(start, bound=-np.inf)
        first = self._heavy.initial(stats, about)
        params = Params.first(stats.counts / stats.counts.sum(), first)
        for _ in range(JUDGED_AFTER):
            params, bound = plain_step(self._heavy, rows, params)
        return replace(start, bound=bound)
