"""Gaussians whose covariances are shrunk to the pooled one, for starts with many components."""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import SeedFamily, ShapedFamily
from ..contracts.statistics import Statistics
from .gaussian_base import BaseGaussian
from .gaussian_products import GaussianComponents
from .merge_costs import SphericalMergeCost

MIN_ROWS_PER_COMPONENT = 8  # with a covariance of its own


@dataclass(frozen=True)
class ShrunkSpherical(BaseGaussian, SeedFamily):
    """Spherical Gaussians with n0 pseudo-observations each of the pooled variance."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: BaseGaussian) -> "ShrunkSpherical":
        """Return the family for the same data with n0 = 1 + 8/d."""
        return cls(family.dim, "spherical", scale=family.scale, n_pseudo=1 + 8 / family.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the components, none of them broken."""
        empty = stats.counts <= 0
        variances = np.where(empty, 0.0, self._covariances(stats, components.covariances))
        pooled = max(stats.counts @ variances / stats.counts.sum(), 1e-12 * self.scale)
        means = self.sample_means(stats, components)
        return self._shrunk(means, variances, stats.counts, pooled), np.zeros_like(empty)

    def place(self, points: Array, like: GaussianComponents | None = None) -> GaussianComponents:
        """Return components at points (M, d), of the median variance of others."""
        variance = self.scale if like is None else float(np.median(like.covariances))
        return self.components(points, np.full(len(points), variance))

    def append(
        self, components: GaussianComponents, others: GaussianComponents
    ) -> GaussianComponents:
        """Return components followed by others."""
        return self.components(
            np.vstack([components.means, others.means]),
            np.append(components.covariances, others.covariances),
        )

    def peaks(self, components: GaussianComponents) -> Array:
        """Return the log-densities at the means."""
        peaks: Array = components.log_det - 0.5 * self.dim * np.log(2 * np.pi)
        return peaks

    def merge_cost(
        self, stats: Statistics, components: GaussianComponents, parts: Array
    ) -> SphericalMergeCost:
        """Return what merging components costs, by sums about the mean of all means."""
        centre = components.means.mean(axis=0)
        moved = self.recenter(stats, np.tile(centre, (len(stats.counts), 1)))
        counts, sums, squares = stats.counts[parts], *(part[parts] for part in moved.moments)
        scatter = np.maximum(squares - np.einsum("kd,kd->k", sums, sums) / counts, 0)
        pooled = max(scatter.sum() / (counts.sum() * self.dim), 1e-12 * self.scale)
        return SphericalMergeCost(sums, squares, counts, centre, self.n_pseudo, float(pooled))

    def fit_parts(self, cost: SphericalMergeCost, parts: Array) -> GaussianComponents:
        """Return the components of parts, by number."""
        counts, means = cost.counts[parts], cost.sums[parts] / cost.counts[parts, None]
        squares = np.einsum("kd,kd->k", means, means)
        variances = np.maximum(cost.row_squares[parts] / counts - squares, 0) / self.dim
        return self._shrunk(cost.centre + means, variances, counts, cost.pooled)

    def _shrunk(
        self, means: Array, variances: Array, counts: Array, pooled: float
    ) -> GaussianComponents:
        """Return components with the variances (n s^2 + n0 pooled) / (n + n0)."""
        weighted = counts * variances + self.n_pseudo * pooled
        return self.components(means, weighted / (counts + self.n_pseudo))


@dataclass(frozen=True)
class ShrunkGaussian(BaseGaussian, ShapedFamily):
    """Gaussians with n0 pseudo-observations each, of the pooled shape and of their own size."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: BaseGaussian) -> "ShrunkGaussian":
        """Return the family with the n0 that its type of covariance asks for."""
        return cls(
            family.dim,
            family.covariance_type,
            family.reg_covar,
            scale=family.scale,
            n_pseudo=family.type.pseudo_rows(family.dim),
        )

    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether so many rows suffice to estimate the covariances."""
        n_parameters = self.type.n_parameters(n_components, self.dim)
        return n_rows >= max(MIN_ROWS_PER_COMPONENT * n_components, 2 * n_parameters / self.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the components, none of them broken."""
        counts, kind = stats.counts, self.type
        covariances = self._covariances(stats, components.covariances)
        pooled = covariances
        if not kind.shared:
            pooled = np.tensordot(counts / counts.sum(), covariances, 1)
        floor = max(1e-9 * float(np.mean(kind.variances(pooled))), 1e-12 * self.scale)
        pooled = kind.regularized(pooled, floor)
        shrunk = pooled if kind.shared else self._shrunk(covariances, counts, pooled)
        result = self.components(self.sample_means(stats, components), shrunk)
        if np.isnan(result.log_det).any():  # by rounding, beside a row very far away
            result = self._spherical_where_broken(result)
        return result, np.zeros(len(counts), dtype=bool)

    def _spherical_where_broken(self, components: GaussianComponents) -> GaussianComponents:
        """Return components with multiples of the identity for covariances that are singular."""
        means, kind = components.means, self.type
        sizes, unit = kind.sizes(components.covariances), kind.identity(*means.shape)
        if kind.shared:
            return self.components(means, unit * sizes[0])
        spherical = unit * sizes.reshape((-1,) + (1,) * (unit.ndim - 1))
        broken = np.isnan(components.log_det)
        return self.components(means, kind.replaced(components.covariances, broken, spherical))

    def sizes(self, components: GaussianComponents) -> Array:
        """Return the mean variance of each component, (K,)."""
        return np.broadcast_to(self.type.sizes(components.covariances), len(components.means))

    def split(self, components: GaussianComponents, steps: Array) -> GaussianComponents:
        """Return components moved by -steps (K, d), followed by the same moved by steps."""
        twice = np.tile(np.arange(len(steps)), 2)
        means = np.vstack([components.means - steps, components.means + steps])
        return self.components(means, self.type.select(components.covariances, twice))

    def merge_pair(
        self, components: GaussianComponents, weights: Array, a: int, b: int
    ) -> GaussianComponents:
        """Return one component with the mean and covariance of two with such weights (K,)."""
        kind, total = self.type, weights[a] + weights[b]
        fraction = weights[a] / total if total > 0 else 0.5
        gap = components.means[[a]] - components.means[[b]]
        mean = components.means[[b]] + fraction * gap
        covariance = kind.select(components.covariances, [a])
        if not kind.shared:
            other = kind.select(components.covariances, [b])
            covariance = kind.merged(np.array([1 - fraction]), covariance, other, gap)
        return self.components(mean, covariance)

    def merge_statistics(
        self, stats: Statistics, components: GaussianComponents, pairs: Array
    ) -> tuple[Statistics, GaussianComponents]:
        """Add the statistics of the second component of each pair (m, 2) to those of the first."""
        kind, (a, b) = self.type, pairs.T
        assert stats.origins is not None
        origins = stats.origins.copy()
        origins[b] = origins[a]
        stats = self.recenter(stats, origins)
        counts, (first, second) = stats.counts, stats.moments
        for sums in (counts, first) if kind.shared else (counts, first, second):
            sums[a] += sums[b]
        left = np.delete(np.arange(len(counts)), b)
        moments = (first[left], kind.select(second, left))
        covariances = kind.select(components.covariances, left)
        return (
            replace(stats, counts=counts[left], moments=moments, origins=origins[left]),
            self.components(components.means[left], covariances),
        )

    def _shrunk(self, covariances: Array, counts: Array, pooled: Array) -> Array:
        """Return (n C + n0 s pooled) / (n + n0), with C's own size s in units of the pooled one.

        The size has 1 + 2/d pseudo-observations of 1.
        """
        ratios = self.type.variances(covariances) / self.type.variances(pooled)
        ratios = ratios.reshape(len(counts), -1).mean(axis=1)
        n_of_size = 1 + 2 / self.dim
        sizes = (counts * ratios + n_of_size) / (counts + n_of_size)
        a, b = (
            part.reshape((-1,) + (1,) * (covariances.ndim - 1))
            for part in (
                counts / (counts + self.n_pseudo),
                self.n_pseudo * sizes / (counts + self.n_pseudo),
            )
        )
        shrunk: Array = a * covariances + b * pooled
        return shrunk
