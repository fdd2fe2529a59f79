"""Gaussian components: densities, moments and estimates."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Family
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
class BaseGaussian(Family):
    """Gaussian components with full, tied, diagonal or spherical covariances.

    Rows are taken in float64, whatever they are stored in: products of float32 features are
    wrong for clusters ten standard deviations apart. Scores of float32 rows under diagonal
    covariances alone are taken in float32, by differences, where all means lie within 16
    standard deviations of their centre and there are at most 128 features, but for rows that
    are further than that from every mean: rounding moves a mean by a millionth of a standard
    deviation, and a responsibility by less than 1e-4.

    Parameters
    ----------
    dim : int
        Number of features.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}
        Name of the type.
    reg_covar : float
        Added to the diagonals.
    fixed : bool
        Whether covariances stay as they are.
    scale : float
        Mean variance of the data's features, the covariance of components that have none yet.
    """

    components_class: ClassVar[type] = GaussianComponents

    dim: int
    covariance_type: str
    reg_covar: float = 0.0
    fixed: bool = False
    scale: float = 1.0

    @property
    def type(self) -> CovarianceType:
        """What is particular to the type of covariance."""
        return COVARIANCE_TYPES[self.covariance_type]

    @property
    def min_rows(self) -> int:
        """One row more than features span a covariance."""
        return self.dim + 1

    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of means and covariances."""
        n_means = n_components * self.dim
        return n_means + (0 if self.fixed else self.type.n_parameters(n_components, self.dim))

    def sample(
        self, components: GaussianComponents, counts: Array, rng: np.random.RandomState
    ) -> Array:
        """Draw ``counts[k]`` rows from each component k in turn."""
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
        """Return the family of which hard EM with equal weights is k-means."""
        return BaseGaussian(self.dim, "spherical", fixed=True, scale=self.scale)

    def from_centres(self, centres: Array) -> GaussianComponents:
        """Return components at centres (K, d) with the data's scale."""
        return self.components(centres, self.scale * self.type.identity(*centres.shape))

    def centres(self, components: GaussianComponents) -> Array:
        """Return the means, (K, d)."""
        return components.means

    def distances(self, block: DenseBlock, centres: Array) -> Array:
        """Return squared distances in units of the data's variance, (n, m)."""
        return squared_distances(block.X, centres, np.full(len(centres), 1 / self.scale))

    def scores(self, block: DenseBlock, components: GaussianComponents) -> Scores:
        """Return the log-densities of the rows of a block."""
        products = self.type.scores(block.X, components)
        return Scores(products, components.log_det - 0.5 * self.dim * np.log(2 * np.pi))

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: GaussianComponents,
        cache: None = None,
    ) -> tuple[Array, ...]:
        """Return first and second moments about the components' origins."""
        return self.type.moments(block.X, responsibilities, components)

    def origins(self, components: GaussianComponents) -> Array:
        """Return the points (K, d) that moments are about."""
        return components.origins

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        """Return the statistics about other points (K, d)."""
        assert origins is not None and stats.origins is not None
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
        """Return the maximum likelihood components, and which are broken.

        An empty component keeps its parameters, and so does a broken one, whose covariance
        would be singular. Where `means` are given, covariances are about them.
        """
        empty = stats.counts <= 0
        sample_means = self.sample_means(stats, components)
        means = sample_means if means is None else means
        if self.fixed:
            return self.components(means, components.covariances), np.zeros_like(empty)
        covariances = self._covariances(stats, components.covariances)
        if means is not sample_means:
            covariances = covariances + self.type.scatter(stats.counts, means - sample_means)
        covariances = self.type.replaced(covariances, empty, by=components.covariances)
        fresh = self.components(means, covariances)
        broken = np.isnan(fresh.log_det)
        if broken.any() and self.reg_covar > 0:  # then by rounding alone
            definite = self.type.regularized(covariances, 8 * self.dim * self._rounding(stats))
            covariances = self.type.replaced(covariances, broken, by=definite)
            fresh = self.components(means, covariances)
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
        covariances = self.type.replaced(covariances, broken, by=components.covariances)
        return self.components(means, covariances), broken

    def reseed(self, components: GaussianComponents, k: int, row: Array) -> GaussianComponents:
        """Move component k to a row, with the mean covariance of all."""
        means = components.means.copy()
        means[k] = row
        covariances = components.covariances
        average = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        moved = np.arange(len(means)) == k
        return self.components(means, self.type.replaced(covariances, moved, by=average))

    def continued_by(self, fresh: Family) -> Family:
        """Return the family for a fit that goes on: there is nothing to take along."""
        assert isinstance(fresh, BaseGaussian)
        if fresh.covariance_type != self.covariance_type:
            raise ValueError(
                f"The fitted mixture has covariance_type={self.covariance_type!r}, and "
                f"covariance_type is {fresh.covariance_type!r} now: set it back, or start afresh "
                "with a clone of the mixture or warm_start=False."
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
        if self.fixed:
            means = means if centres is None else centres
            return self.components(means, components.covariances)
        covariances = self._covariances(stats, components.covariances)
        of_data = self.type.of_data(stats.counts, means, covariances)
        if centres is not None:
            fresh = self.components(centres, of_data)
        else:
            fresh = self.components(means, covariances)
            lost = np.isnan(fresh.log_det) | (stats.counts <= 0)
            if np.isnan(fresh.log_det).all():
                fresh = self.components(means, of_data)
            elif lost.any():
                fresh = self.components(means, self.type.replaced(covariances, lost, by=of_data))
        if np.isnan(fresh.log_det).any():
            raise ValueError(
                "The covariance of the data is singular: the rows lie in a subspace. Increase "
                f"reg_covar (now {self.reg_covar}) or choose a simpler covariance_type. {_FAR}"
            )
        return fresh

    def _covariances(self, stats: Statistics, old: Array) -> Array:
        """Return covariances; the old ones where moments have lost their digits.

        Moments about a point far from the rows cancel, by old standard deviations and by new
        ones. A mean that has come from there is at the rows now, so the next step knows
        better, and the bound does not fall where a covariance waits for it.
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
    first: Array = stats.moments[0] / np.where(stats.counts > 0, stats.counts, 1.0)[:, None]
    return first
