"""The components that starts are made of: directions of one concentration, and balls."""

from dataclasses import dataclass

import numpy as np

from .chunks import Array
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .merging import BallMerging, DirectionMerging, Merging
from .seeding import Seeding
from .statistics import Statistics
from .vonmises_fisher import DirectionalComponents, VonMisesFisher


class DirectionSeeding(Seeding):
    """Von Mises-Fisher components of one concentration.

    Parameters
    ----------
    family : VonMisesFisher
        The family to start; its prior has no say here.
    """

    def __init__(self, family: VonMisesFisher) -> None:
        self.family: VonMisesFisher = family.kmeans()

    def at(self, points: Array, like: DirectionalComponents | None = None) -> DirectionalComponents:
        """Return components in the directions of unit points (M, d)."""
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


@dataclass(frozen=True)
class Balls(Gaussian):
    """Spherical Gaussians whose variances have some pseudo-rows of the pooled variance."""

    n_pseudo: float = 0.0

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the components, none of them broken."""
        empty = stats.counts <= 0
        variances = np.where(empty, 0.0, self._covariances(stats, components.covariances))
        pooled = max(stats.counts @ variances / stats.counts.sum(), 1e-12 * self.scale)
        return self.shrunk(
            self.sample_means(stats, components), variances, stats.counts, pooled
        ), np.zeros_like(empty)

    def shrunk(
        self, means: Array, variances: Array, counts: Array, pooled: float
    ) -> GaussianComponents:
        """Return components with the pseudo-rows taken in."""
        weighted = counts * variances + self.n_pseudo * pooled
        return self.components(means, weighted / (counts + self.n_pseudo))


class BallSeeding(Seeding):
    """Spherical Gaussians, each of its own variance.

    Parameters
    ----------
    family : Gaussian
        The family to start; its `scale` is the data's.
    """

    def __init__(self, family: Gaussian) -> None:
        n_pseudo = 1 + 8 / family.dim
        self.family: Balls = Balls(family.dim, "spherical", scale=family.scale, n_pseudo=n_pseudo)

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
