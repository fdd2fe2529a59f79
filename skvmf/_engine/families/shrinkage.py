"""Gaussians that pseudo-rows keep sound, so that a start may have more than rows can tell."""

from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ..contracts.statistics import Statistics
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents

LEAST_ROWS = 8  # of a component that takes a shape of its own


@dataclass(frozen=True)
class ShrunkSpherical(Gaussian):
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


@dataclass(frozen=True)
class ShrunkGaussian(Gaussian):
    """Gaussians of any shape with some pseudo-rows, of the pooled shape and of their own size."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: Gaussian) -> "ShrunkGaussian":
        """Return the family with the pseudo-rows that its type of covariance asks for."""
        n_pseudo = family.type.pseudo_rows(family.dim)
        return cls(
            family.dim,
            family.covariance_type,
            family.reg_covar,
            scale=family.scale,
            n_pseudo=n_pseudo,
        )

    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether so many rows tell the covariances of so many components."""
        n_parameters = self.type.n_parameters(n_components, self.dim)
        return n_rows >= max(LEAST_ROWS * n_components, 2 * n_parameters / self.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the components, none of them broken."""
        counts, kind = stats.counts, self.type
        own = self._covariances(stats, components.covariances)
        pooled = own if kind.shared else np.tensordot(counts / counts.sum(), own, 1)
        floor = max(1e-9 * float(np.mean(kind.variances(pooled))), 1e-12 * self.scale)
        pooled = kind.regularized(pooled, floor)
        covariances = pooled if kind.shared else self._shrunk(own, counts, pooled)
        found = self.components(self.sample_means(stats, components), covariances)
        return found, np.zeros(len(counts), dtype=bool)

    def _shrunk(self, covariances: Array, counts: Array, pooled: Array) -> Array:
        """Return covariances with the pseudo-rows taken in, each in its component's size."""
        total = counts + self.n_pseudo
        ratios = self.type.variances(covariances) / self.type.variances(pooled)
        ratios = ratios.reshape(len(counts), -1).mean(axis=1)
        n_of_size = 1 + 2 / self.dim
        sizes = (counts * ratios + n_of_size) / (counts + n_of_size)
        a, b = (
            part.reshape((-1,) + (1,) * (covariances.ndim - 1))
            for part in (counts / total, self.n_pseudo * sizes / total)
        )
        shrunk: Array = a * covariances + b * pooled
        return shrunk
