"""Gaussians whose covariances are shrunk to the pooled one, for starts with many components."""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import SeedFamily, ShapedFamily
from ..contracts.statistics import Statistics
from .covariance_type import per_component
from .gaussian_base import BaseGaussian
from .gaussian_products import GaussianComponents
from .merge_costs import SphericalMergeCost

MIN_ROWS_PER_COMPONENT = 8  # with a covariance of its own


@dataclass(frozen=True)
class ShrunkSpherical(BaseGaussian, SeedFamily[GaussianComponents]):
    """Spherical Gaussians with n0 pseudo-observations each of the pooled variance."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: BaseGaussian) -> "ShrunkSpherical":
        """Return the family for the same data with n0 = 1 + 8/d."""
        return cls(family.dim, "spherical", scale=family.scale, n_pseudo=1 + 8 / family.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
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
        return self.components(
            np.vstack([components.means, others.means]),
            np.append(components.covariances, others.covariances),
        )

    def peaks(self, components: GaussianComponents) -> Array:
        return components.log_det - 0.5 * self.dim * np.log(2 * np.pi)

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
class ShrunkGaussian(BaseGaussian, ShapedFamily[GaussianComponents]):
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
        n_parameters = self.type.n_parameters(n_components, self.dim)
        return n_rows >= max(MIN_ROWS_PER_COMPONENT * n_components, 2 * n_parameters / self.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        counts, kind = stats.counts, self.type
        covariances = self._covariances(stats, components.covariances)
        pooled = covariances
        if not kind.shared:
            pooled = np.tensordot(counts / counts.sum(), covariances, 1)
        floor = max(1e-9 * float(np.mean(kind.variances(pooled))), 1e-12 * self.scale)
        pooled = kind.regularized(pooled, floor)
        shrunk = pooled if kind.shared else self._shrunk(covariances, counts, pooled)
        result = self.components(self.sample_means(stats, components), shrunk)
        singular = np.isnan(result.log_det)
        if singular.any():  # by rounding, beside a row very far away: then a sphere of its size
            unit = kind.identity(*result.means.shape)
            sizes = np.maximum(kind.sizes(shrunk), floor)  # rounding can take them below zero
            spheres = unit * (sizes[0] if kind.shared else per_component(sizes, unit))
            covariances = spheres if kind.shared else kind.replaced(shrunk, singular, spheres)
            result = self.components(result.means, covariances)
        return result, np.zeros(len(counts), dtype=bool)

    def sizes(self, components: GaussianComponents) -> Array:
        return np.broadcast_to(self.type.sizes(components.covariances), len(components.means))

    def split(self, components: GaussianComponents, steps: Array) -> GaussianComponents:
        twice = np.tile(np.arange(len(steps)), 2)
        means = np.vstack([components.means - steps, components.means + steps])
        return self.components(means, self.type.select(components.covariances, twice))

    def merge_pairs(
        self, components: GaussianComponents, weights: Array, pairs: Array
    ) -> list[GaussianComponents]:
        kind, (a, b) = self.type, pairs.T
        total = weights[a] + weights[b]
        fractions = np.where(total > 0, weights[a] / np.where(total > 0, total, 1.0), 0.5)
        gaps = components.means[a] - components.means[b]
        means = components.means[b] + fractions[:, None] * gaps
        covariances = kind.select(components.covariances, a)
        if not kind.shared:
            others = kind.select(components.covariances, b)
            covariances = kind.merged(1 - fractions, covariances, others, gaps)
        merged = self.components(means, covariances)
        return [self._single(merged, k) for k in range(len(pairs))]

    def _single(self, components: GaussianComponents, k: int) -> GaussianComponents:
        """Return one of some components."""
        kind, part = self.type, slice(k, k + 1)
        covariance = kind.select(components.covariances, part)
        cholesky = kind.select(components.cholesky, part)
        mean = components.means[part]
        return GaussianComponents(mean, covariance, cholesky, components.log_det[part], mean, 0.0)

    def merge_statistics(
        self, stats: Statistics, components: GaussianComponents, pairs: Array
    ) -> tuple[Statistics, GaussianComponents]:
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
        total = counts + self.n_pseudo
        of_rows, of_pseudo = counts / total, self.n_pseudo * sizes / total
        shrunk: Array = per_component(of_rows, covariances) * covariances
        shrunk += per_component(of_pseudo, covariances) * pooled
        return shrunk
