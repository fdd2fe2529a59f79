"""The four types of covariance: full, tied, diagonal and spherical.

Covariances of K components of d features are (K, d, d) where `full`, (d, d) where `tied`,
(K, d) where `diag` and (K,) where `spherical`. Precisions and second moments have the same
shape; the second moments of the spherical type are sums over the features.
"""

from typing import Any

import numpy as np
from scipy.linalg import lapack

from ..._typing import Array
from . import gaussian_products as products
from .covariance_type import CovarianceType

TINY = float(np.finfo(np.float64).tiny)  # variance below which floats lose their digits
MAX_PAIRS_DIM = 256  # features beyond which products of pairs are no faster than BLAS


class _Square(CovarianceType):
    """Matrices."""

    definite = "symmetric and positive definite"

    def inverse(self, covariances: Array) -> Array:
        return np.linalg.inv(covariances)

    def precisions(self, cholesky: Array) -> Array:
        return cholesky @ np.swapaxes(cholesky, -1, -2)

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        return np.broadcast_to(self.precisions(cholesky), (K, d, d))

    def is_definite(self, matrices: Array) -> bool:
        return bool(np.allclose(matrices, np.swapaxes(matrices, -1, -2)))

    def variances(self, covariances: Array) -> Array:
        return np.einsum("...dd->...d", covariances)

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return matrices with the part that the feature explains scaled by ratios of variances."""
        before = covariances[..., feature, feature]
        slopes = covariances[..., feature] / before[..., None]
        gains = (variances - before)[..., None, None]
        stretched: Array = covariances + gains * (slopes[..., :, None] * slopes[..., None, :])
        stretched[..., feature, feature] = variances
        return stretched

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        regularized = np.array(covariances)
        np.einsum("...dd->...d", regularized)[...] += reg
        return regularized

    def log_det(self, cholesky: Array, d: int) -> Array:
        return np.atleast_1d(np.log(self.variances(cholesky)).sum(axis=-1))

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        return second - self.outer(first, first, self._fractions(counts))

    def _transposed(self, matrices: Array) -> Array:
        return np.swapaxes(matrices, -1, -2)


class Full(_Square):
    """Each component has its own covariance, (K, d, d)."""

    name = "full"
    scores = staticmethod(products.full_scores)
    moments = staticmethod(products.full_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d, d

    def identity(self, K: int, d: int) -> Array:
        return np.tile(np.eye(d), (K, 1, 1))

    def n_parameters(self, K: int, d: int) -> int:
        return K * d * (d + 1) // 2

    def pseudo_rows(self, d: int) -> float:
        """Return one more than makes a matrix of rows alone regular, and one for the mean."""
        return d + 2.0

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        root: Array = np.linalg.cholesky(covariances[k]) if len(normal) else covariances[k]
        return normal @ root.T

    def cholesky(self, covariances: Array) -> Array:
        return np.array([_precision_cholesky(covariance) for covariance in covariances])

    def spread(self, cholesky: Array, offsets: Array) -> float:
        if offsets.shape[1] > MAX_PAIRS_DIM:
            return np.inf
        white = np.einsum("kd,kde->ke", offsets, cholesky)
        return float(np.linalg.norm(white, axis=1).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        outer: Array = a[:, :, np.newaxis] * b[:, np.newaxis, :]
        outer *= weights[:, np.newaxis, np.newaxis]
        return outer


class Tied(_Square):
    """All components share one covariance, (d, d)."""

    name = "tied"
    shared = True
    scores = staticmethod(products.tied_scores)
    moments = staticmethod(products.tied_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return d, d

    def identity(self, K: int, d: int) -> Array:
        return np.eye(d)

    def n_parameters(self, K: int, d: int) -> int:
        return d * (d + 1) // 2

    def select(self, covariances: Array, index: Any) -> Array:
        return covariances

    def replaced(self, covariances: Array, where: Array, by: Array) -> Array:
        return covariances

    def with_fallback(self, covariances: Array, lost: Array, old: Array) -> Array:
        """Return the covariance, or the old one where any of its variances is lost."""
        return old if lost.any() else covariances

    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        return super().draw(means, np.linalg.cholesky(covariances), counts, rng)

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        return normal @ covariances.T

    def cholesky(self, covariances: Array) -> Array:
        return _precision_cholesky(covariances)

    def spread(self, cholesky: Array, offsets: Array) -> float:
        return float(np.linalg.norm(offsets @ cholesky, axis=1).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the sum (d, d) of w_k a_k b_k'."""
        return (a * weights[:, np.newaxis]).T @ b

    def per_count(self, second: Array, counts: Array) -> Array:
        return second / counts.sum()

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        return covariances + self.scatter(counts, means - counts / counts.sum() @ means)

    def _fractions(self, counts: Array) -> Array:
        return counts / counts.sum()


class _Axes(CovarianceType):
    """Variances along the features."""

    definite = "positive"

    def identity(self, K: int, d: int) -> Array:
        return np.ones(self.shape(K, d))

    def inverse(self, covariances: Array) -> Array:
        return 1 / covariances

    def precisions(self, cholesky: Array) -> Array:
        return cholesky**2

    def variances(self, covariances: Array) -> Array:
        return covariances

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        return np.broadcast_to(self.precisions(cholesky).reshape(K, -1), (K, d))

    def is_definite(self, matrices: Array) -> bool:
        return bool((matrices > 0).all())

    def cholesky(self, covariances: Array) -> Array:
        positive = covariances >= TINY
        roots = 1 / np.sqrt(np.where(positive, covariances, 1))
        return np.where(positive, roots, np.nan)

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        return covariances + reg

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the variances, 0 where rounding is all that is left of the moments."""
        variances = second - self.outer(first, first, self._fractions(counts))
        variances[variances <= 8 * np.finfo(float).eps * second] = 0
        return variances

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        return normal * np.sqrt(covariances[k])


class Diagonal(_Axes):
    """Each component has its own variance along each feature, (K, d)."""

    name = "diag"
    scores = staticmethod(products.diagonal_scores)
    moments = staticmethod(products.diagonal_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        stretched = covariances.copy()
        stretched[:, feature] = variances
        return stretched

    def log_det(self, cholesky: Array, d: int) -> Array:
        return np.log(cholesky).sum(axis=1)

    def spread(self, cholesky: Array, offsets: Array) -> float:
        return float(np.abs(offsets * cholesky).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the diagonals (K, d) of w_k a_k b_k'."""
        return a * b * weights[:, np.newaxis]


class Spherical(_Axes):
    """Each component has one variance for all features, (K,)."""

    name = "spherical"
    scores = staticmethod(products.spherical_scores)
    moments = staticmethod(products.spherical_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return (K,)

    def along(self, covariances: Array, K: int, feature: int) -> Array:
        return covariances

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        return variances

    def sizes(self, covariances: Array) -> Array:
        return covariances

    def log_det(self, cholesky: Array, d: int) -> Array:
        return d * np.log(cholesky)

    def spread(self, cholesky: Array, offsets: Array) -> float:
        return float((np.linalg.norm(offsets, axis=1) * cholesky).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the traces (K,) of w_k a_k b_k'."""
        return np.einsum("kd,kd->k", a, b) * weights

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        return super().estimate(counts, first, second) / first.shape[1]

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K,) of the gaps, averaged over features."""
        return super().scatter(counts, gaps) / gaps.shape[1]


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    kind.name: kind for kind in (Full(), Tied(), Diagonal(), Spherical())
}


def _precision_cholesky(covariance: Array) -> Array:
    """Return U with inverse covariance U U', or nan if it is singular."""
    d = len(covariance)
    lower, failed = lapack.dpotrf(covariance, lower=True, clean=True)
    rounding = 4 * d * np.finfo(float).eps * np.diagonal(covariance)
    if failed or (np.diagonal(lower) ** 2 <= np.maximum(rounding, TINY)).any():
        return np.full((d, d), np.nan)
    factor: Array = lapack.dtrtri(lower, lower=True)[0]
    return factor.T
