"""The Gaussian family: what a component in the plane is."""

from dataclasses import dataclass

import numpy as np

from .._kernels.gaussian import gap_norms
from .covariances import COVARIANCE_TYPES, NEAR, CovarianceType, Shape
from .posterior import Shares
from .products import feature_product
from .rows import Array, DenseChunk
from .statistics import Statistics


@dataclass(frozen=True)
class Gaussian:
    """Gaussian components with full, tied, diagonal or spherical covariances.

    Rows are taken in float64, whatever they are stored in: products of float32 features are
    wrong for clusters ten standard deviations apart. Scores of float32 rows under diagonal
    covariances alone are taken in float32, by differences, where all means lie within 16
    standard deviations of their centre and there are at most 128 features: rounding moves a
    mean by a millionth of a standard deviation, and a score by less than 1e-4.

    Parameters
    ----------
    dim : int
        Number of features.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}
        Shape of the covariances.
    reg_covar : float
        Added to the diagonals.
    fixed : bool
        Whether covariances stay as they are.
    scale : float
        Mean variance of the data's features, the covariance of components that have none yet.
    """

    dim: int
    covariance_type: str
    reg_covar: float = 0.0
    fixed: bool = False
    scale: float = 1.0

    @property
    def _type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @property
    def min_rows(self) -> int:
        """One row more than features span a covariance."""
        return self.dim + 1

    def components(self, means: Array, covariances: Array) -> Shape:
        """Derive all arrays from means (K, d) and covariances."""
        cholesky = self._type.cholesky(covariances)
        log_det = np.broadcast_to(self._type.log_det(cholesky, self.dim), len(means))
        centre = means.mean(axis=0)
        spread = self._type.spread(cholesky, means - centre)
        origins = np.tile(centre, (len(means), 1)) if spread < NEAR else means
        return Shape(means, covariances, cholesky, log_det, origins, spread)

    def kmeans(self) -> "Gaussian":
        """Return the family of which hard EM with equal weights is k-means."""
        return Gaussian(self.dim, "spherical", fixed=True, scale=self.scale)

    def from_centres(self, centres: Array) -> Shape:
        """Return components at centres (K, d) with the data's scale."""
        K, d = centres.shape
        identities = {
            "full": np.tile(np.eye(d), (K, 1, 1)),
            "tied": np.eye(d),
            "diag": np.ones((K, d)),
            "spherical": np.ones(K),
        }
        return self.components(centres, self.scale * identities[self.covariance_type])

    def centres(self, components: Shape) -> Array:
        """Return the means, (K, d)."""
        return components.means

    def distances(self, chunk: DenseChunk, centres: Array) -> Array:
        """Return squared distances in units of the data's variance, (n, m)."""
        gaps = centres - centres[0]
        matrix = np.vstack([-2 * gaps.T, np.ones(len(gaps))])
        distances = feature_product(gap_norms, chunk.X, centres[0], matrix)
        distances += np.einsum("md,md->m", gaps, gaps)
        np.maximum(distances, 0, out=distances)
        distances /= self.scale
        return distances

    def scores(self, chunk: DenseChunk, components: Shape) -> tuple[Array, Array, Array]:
        """Return (n, K) scores, (n,) slopes, (K,) biases: log p = slopes * scores + bias."""
        scores = self._type.scores(chunk.X, components)
        bias = components.log_det - 0.5 * self.dim * np.log(2 * np.pi)
        return scores, chunk.scales, bias

    def moments(self, chunk: DenseChunk, shares: Shares, components: Shape) -> tuple[Array, ...]:
        """Return first and second moments about the components' origins."""
        return self._type.moments(chunk.X, shares, components)

    def sample_means(self, stats: Statistics, components: Shape) -> Array:
        """Return the weighted means of the rows (K, d); an empty component stays."""
        empty = stats.counts <= 0
        counts = np.where(empty, 1.0, stats.counts)
        means = components.origins + stats.moments[0] / counts[:, None]
        means[empty] = components.means[empty]
        return means

    def maximize(
        self, stats: Statistics, components: Shape, means: Array | None = None
    ) -> tuple[Shape, Array]:
        """Return the maximum likelihood components, and which are broken.

        An empty component keeps its parameters, and so does a broken one, whose covariance
        would be singular. Where `means` are given, covariances are about them.
        """
        empty = stats.counts <= 0
        sample_means = self.sample_means(stats, components)
        means = sample_means if means is None else means
        if self.fixed:
            return self.components(means, components.covariances), np.zeros_like(empty)
        counts = np.where(empty, 1.0, stats.counts)
        covariances = self._covariances(counts, stats.moments[0] / counts[:, None], stats)
        if means is not sample_means:
            covariances += self._type.scatter(stats.counts, means - sample_means)
        if self.covariance_type != "tied":
            covariances[empty] = components.covariances[empty]
        fresh = self.components(means, covariances)
        broken = np.isnan(fresh.log_det)
        if not broken.any():
            return fresh, broken
        if broken[~empty].all():
            raise ValueError(
                "Every covariance is singular: the rows of each component lie in a subspace. "
                f"Increase reg_covar (now {self.reg_covar}), reduce n_components, or choose a "
                "simpler covariance_type."
            )
        means[broken] = components.means[broken]
        covariances[broken] = components.covariances[broken]
        return self.components(means, covariances), broken

    def reseed(self, components: Shape, k: int, row: Array) -> Shape:
        """Move component k to a row, with the mean covariance of all."""
        means = components.means.copy()
        means[k] = row
        covariances = components.covariances
        if self.covariance_type != "tied":
            covariances = covariances.copy()
            covariances[k] = covariances.mean(axis=0)
        return self.components(means, covariances)

    def log_prior(self, components: Shape) -> float:
        """Return 0: `reg_covar` is no prior."""
        return 0.0

    def anchored(self, stats: Statistics) -> "Gaussian":
        """Return the family itself: nothing in it depends on a first partition."""
        return self

    def refreshed(self, fresh: "Gaussian") -> "Gaussian":
        """Return the family for a fit that goes on: there is nothing to take along."""
        if fresh.covariance_type != self.covariance_type:
            raise ValueError(
                f"The fit to go on from has covariance_type={self.covariance_type!r}, not "
                f"{fresh.covariance_type!r}. Set warm_start=False to start afresh."
            )
        return fresh

    def start(self, stats: Statistics, components: Shape, centres: Array | None = None) -> Shape:
        """Make first components from a partition whose moments are about `components`.

        `centres` (K, d) overrides the means, and then covariances are that of all rows; so
        is a covariance that the partition leaves empty or singular.
        """
        empty = stats.counts <= 0
        counts = np.where(empty, 1.0, stats.counts)
        first = stats.moments[0] / counts[:, None]
        means = components.origins + first
        if self.fixed:
            means = means if centres is None else centres
            return self.components(means, components.covariances)
        covariances = self._covariances(counts, first, stats)
        of_data = self._type.of_data(stats.counts, means, covariances)
        if centres is not None:
            return self.components(centres, of_data)
        fresh = self.components(means, covariances)
        lost = np.isnan(fresh.log_det) | empty
        if lost.any():
            if self.covariance_type == "tied":
                covariances = of_data
            else:
                covariances[lost] = of_data[lost]
            fresh = self.components(means, covariances)
        if np.isnan(fresh.log_det).any():
            raise ValueError(
                "The covariance of the data is singular: the rows lie in a subspace. Increase "
                f"reg_covar (now {self.reg_covar}) or choose a simpler covariance_type."
            )
        return fresh

    def _covariances(self, counts: Array, first: Array, stats: Statistics) -> Array:
        """Return covariances of sums of moments; `first` is per unit of count already."""
        second = stats.moments[1]
        if self.covariance_type == "tied":
            second = second / stats.counts.sum()
            counts = stats.counts
        else:
            second = second / counts.reshape((-1,) + (1,) * (second.ndim - 1))
        return self._type.covariances(counts, first, second, self.reg_covar)
