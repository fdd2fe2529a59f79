"""Gaussian components: densities, moments and estimates."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily, Family
from ..contracts.responsibilities import Responsibilities, Scores
from ..contracts.statistics import Statistics
from ..data.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES
from .covariance_type import CovarianceType
from .gaussian_products import MAX_COMMON_SPREAD, GaussianComponents, squared_distances

_EPS = float(np.finfo(np.float64).eps)
_FAR = (
    "If a few rows lie far from all others, no reg_covar helps: leave them out, set "
    "background=True, or take a StudentTMixture."
)


@dataclass(frozen=True)
class BaseGaussian(Family[GaussianComponents]):
    """Gaussian components with full, tied, diagonal or spherical covariances.

    Rows are taken in float64: products of float32 features are wrong for clusters ten standard
    deviations apart. Scores of float32 rows under diagonal covariances alone are taken in float32,
    by differences, where that moves a mean by a millionth of a standard deviation, and a
    responsibility by less than 1e-4: see `GaussianComponents.single_precision`.
    """

    components_class: ClassVar[type] = GaussianComponents

    dim: int
    covariance_type: str
    reg_covar: float = 0.0  # added to the diagonals
    fixed_covariances: bool = False
    fixed_means: bool = False
    scale: float = 1.0  # mean variance of the features: that of components that have none yet

    @property
    def type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @property
    def min_rows(self) -> int:
        """One row more than features span a covariance."""
        return self.dim + 1

    def n_parameters(self, n_components: int) -> int:
        n_means = 0 if self.fixed_means else n_components * self.dim
        if self.fixed_covariances:
            return n_means
        return n_means + self.type.n_parameters(n_components, self.dim)

    def sample(
        self, components: GaussianComponents, counts: Array, rng: np.random.RandomState
    ) -> Array:
        return self.type.draw(components.means, components.covariances, counts, rng)

    def components(self, means: Array, covariances: Array) -> GaussianComponents:
        """Derive all arrays from means (K, d) and covariances."""
        cholesky = self.type.cholesky(covariances)
        log_det = np.broadcast_to(self.type.log_det(cholesky, self.dim), len(means))
        centre = means.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # inf and nan are not near
            spread = self.type.spread(cholesky, means - centre)
        origins = np.tile(centre, (len(means), 1)) if spread < MAX_COMMON_SPREAD else means
        return GaussianComponents(means, covariances, cholesky, log_det, origins, spread)

    def kmeans(self) -> "BaseGaussian":
        return BaseGaussian(self.dim, "spherical", fixed_covariances=True, scale=self.scale)

    def from_centres(self, centres: Array) -> GaussianComponents:
        """Return components at centres (K, d) with the data's scale."""
        return self.components(centres, self.scale * self.type.identity(*centres.shape))

    def reshaped(self, components: GaussianComponents, shapes: Array) -> GaussianComponents:
        return self.components(components.means, shapes)

    def centres(self, components: GaussianComponents) -> Array:
        return components.means

    def distances(self, block: DenseBlock, centres: Array) -> Array:
        """Return squared distances in units of the data's variance, (n, m)."""
        return squared_distances(block.X, centres, np.full(len(centres), 1 / self.scale))

    def scores(self, block: DenseBlock, components: GaussianComponents) -> Scores:
        products = self.type.scores(block.X, components)
        return Scores(products, components.log_det - 0.5 * self.dim * np.log(2 * np.pi))

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: GaussianComponents,
        cache: None = None,
    ) -> tuple[Array, ...]:
        return self.type.moments(block.X, responsibilities, components)

    def origins(self, components: GaussianComponents) -> Array:
        return components.origins

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        assert origins is not None
        assert stats.origins is not None
        shifts = origins - stats.origins
        first, second = stats.moments
        moved = self.type.moved(stats.counts, first, second, shifts)
        return replace(
            stats, moments=(first - stats.counts[:, None] * shifts, moved), origins=origins
        )

    def sample_means(self, stats: Statistics, components: GaussianComponents) -> Array:
        """Return the weighted means of the rows (K, d); an empty component stays."""
        assert stats.origins is not None
        means = stats.origins + _first(stats)
        empty = stats.counts <= 0
        means[empty] = components.means[empty]
        return means

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the maximum likelihood components, and which have singular covariances.

        If `means` are given, covariances are about them.
        """
        empty = stats.counts <= 0
        sample_means = self.sample_means(stats, components)
        if means is None:
            means = components.means if self.fixed_means else sample_means
        if self.fixed_covariances:
            return self.components(means, components.covariances), np.zeros_like(empty)
        covariances = self._covariances(stats, components.covariances)
        if means is not sample_means:
            covariances = covariances + self.type.scatter(stats.counts, means - sample_means)
        covariances = self.type.replaced(covariances, empty, by=components.covariances)
        fresh = self._regular_components(means, covariances, stats)
        broken = np.isnan(fresh.log_det)
        if not broken.any():
            return fresh, broken
        if broken[~empty].all():
            raise ValueError(
                "Every covariance is singular: the rows of each component lie in a subspace. "
                f"Increase reg_covar (now {self.reg_covar}), reduce n_components, or choose a "
                f"simpler covariance_type. {_FAR}"
            )
        means = np.where(broken[:, None], components.means, means)
        covariances = self.type.replaced(fresh.covariances, broken, by=components.covariances)
        return self.components(means, covariances), broken

    def reseed(self, components: GaussianComponents, k: int, row: Array) -> GaussianComponents:
        """Move component k to a row, with the mean covariance of all."""
        if self.fixed_means:
            return components
        means = components.means.copy()
        means[k] = row
        covariances = components.covariances
        if self.fixed_covariances:
            return self.components(means, covariances)
        average = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        moved = np.arange(len(means)) == k
        return self.components(means, self.type.replaced(covariances, moved, by=average))

    def continued_by(self, fresh: AnyFamily) -> AnyFamily:
        """Return the new family, after a check of its type of covariance."""
        assert isinstance(fresh, BaseGaussian)
        if fresh.covariance_type != self.covariance_type:
            raise ValueError(
                f"The fitted mixture has covariance_type={self.covariance_type!r}, and "
                f"covariance_type is {fresh.covariance_type!r} now: set it back, or start from "
                "scratch with a clone of the mixture."
            )
        return fresh

    def initial(
        self, stats: Statistics, components: GaussianComponents, centres: Array | None = None
    ) -> GaussianComponents:
        """Make first components from a partition whose moments are about `components`.

        `centres` (K, d) overrides the means, and then covariances are that of all rows; so
        is a covariance that the partition leaves empty or singular.
        """
        assert stats.origins is not None
        means = stats.origins + _first(stats)
        if self.fixed_covariances:
            means = means if centres is None else centres
            return self.components(means, components.covariances)
        covariances = self._covariances(stats, components.covariances)
        of_data = self.type.of_data(stats.counts, means, covariances)
        if centres is not None:
            fresh = self.components(centres, of_data)
        else:
            fresh = self._regular_components(means, covariances, stats)
            lost = np.isnan(fresh.log_det) | (stats.counts <= 0)
            if np.isnan(fresh.log_det).all():
                fresh = self.components(means, of_data)
            elif lost.any():
                covariances = self.type.replaced(fresh.covariances, lost, by=of_data)
                fresh = self.components(means, covariances)
        if np.isnan(fresh.log_det).any():
            raise ValueError(
                "The covariance of the data is singular: the rows lie in a subspace. Increase "
                f"reg_covar (now {self.reg_covar}) or choose a simpler covariance_type. {_FAR}"
            )
        return fresh

    def _regular_components(
        self, means: Array, covariances: Array, stats: Statistics
    ) -> GaussianComponents:
        """Return components; covariances that are singular by rounding alone grow by that much."""
        fresh = self.components(means, covariances)
        singular = np.isnan(fresh.log_det)
        if singular.any() and self.reg_covar > 0:  # else the rows may lie in a subspace
            regular = self.type.regularized(covariances, 8 * self.dim * self._rounding(stats))
            covariances = self.type.replaced(covariances, singular, by=regular)
            fresh = self.components(means, covariances)
        return fresh

    def _covariances(self, stats: Statistics, old: Array) -> Array:
        """Return covariances; the old ones where moments have lost their digits.

        Moments about a point far from the rows cancel. A mean that has come from there is at the
        rows now, so the next step knows better, and the bound does not fall meanwhile.
        """
        kind, first = self.type, _first(stats)
        second = kind.per_count(stats.moments[1], stats.counts)
        estimate = kind.estimate(stats.counts, first, second)
        covariances = kind.regularized(estimate, self.reg_covar)
        negligible = np.maximum(1e-6 * kind.variances(covariances), 1e-12 * kind.variances(old))
        return kind.with_fallback(covariances, self._rounding(stats) > negligible, old)

    def _rounding(self, stats: Statistics) -> Array:
        """Return what moments about points that are not the means lose of variances."""
        return _EPS * self.type.variances(self.type.scatter(stats.counts, _first(stats)))


def _first(stats: Statistics) -> Array:
    """Return first moments per unit of count."""
    return stats.moments[0] / np.where(stats.counts > 0, stats.counts, 1.0)[:, None]
