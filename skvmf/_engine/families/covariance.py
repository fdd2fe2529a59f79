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
from .gaussian_gradients import DiagonalGradients

TINY = float(np.finfo(np.float64).tiny)  # variance below which floats lose their digits
MAX_PAIRS_DIM = 256  # features beyond which products of pairs are no faster than BLAS


class _Square(CovarianceType):
    """Matrices."""

    definite = "symmetric and positive definite"

    def inverse(self, covariances: Array) -> Array:
        """Return the inverse matrices."""
        inverses: Array = np.linalg.inv(covariances)
        return inverses

    def precisions(self, cholesky: Array) -> Array:
        """Return U U'."""
        precisions: Array = cholesky @ np.swapaxes(cholesky, -1, -2)
        return precisions

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        """Return the matrices (K, d, d)."""
        return np.broadcast_to(self.precisions(cholesky), (K, d, d))

    def is_definite(self, matrices: Array) -> bool:
        """Return whether matrices are symmetric."""
        return bool(np.allclose(matrices, np.swapaxes(matrices, -1, -2)))

    def variances(self, covariances: Array) -> Array:
        """Return the diagonals."""
        diagonals: Array = np.einsum("...dd->...d", covariances)
        return diagonals

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return matrices with the part that the feature explains scaled by ratios of variances."""
        before = covariances[..., feature, feature]
        slopes = covariances[..., feature] / before[..., None]
        gains = (variances - before)[..., None, None]
        stretched: Array = covariances + gains * (slopes[..., :, None] * slopes[..., None, :])
        stretched[..., feature, feature] = variances
        return stretched

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the diagonals, or one to each entry of them."""
        regularized = np.array(covariances)
        np.einsum("...dd->...d", regularized)[...] += reg
        return regularized

    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinants (K,) or (1,) of the Cholesky factors."""
        return np.atleast_1d(np.log(self.variances(cholesky)).sum(axis=-1))

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the covariances."""
        return second - self.outer(first, first, self._fractions(counts))

    def _transposed(self, matrices: Array) -> Array:
        return np.swapaxes(matrices, -1, -2)


class Full(_Square):
    """Each component has its own covariance, (K, d, d)."""

    name = "full"
    scores = staticmethod(products.full_scores)
    moments = staticmethod(products.full_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K, d, d)."""
        return K, d, d

    def identity(self, K: int, d: int) -> Array:
        """Return K identity matrices."""
        return np.tile(np.eye(d), (K, 1, 1))

    def n_parameters(self, K: int, d: int) -> int:
        """Return the number of entries of K triangles."""
        return K * d * (d + 1) // 2

    def pseudo_rows(self, d: int) -> float:
        """Return one more than makes a matrix of rows alone regular, and one for the mean."""
        return d + 2.0

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        root: Array = np.linalg.cholesky(covariances[k]) if len(normal) else covariances[k]
        return normal @ root.T

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a covariance is singular."""
        return np.array([_precision_cholesky(covariance) for covariance in covariances])

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        if offsets.shape[1] > MAX_PAIRS_DIM:
            return np.inf
        white = np.einsum("kd,kde->ke", offsets, cholesky)
        return float(np.linalg.norm(white, axis=1).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return w_k a_k b_k', (K, d, d)."""
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
        """Return (d, d)."""
        return d, d

    def identity(self, K: int, d: int) -> Array:
        """Return the identity matrix."""
        return np.eye(d)

    def n_parameters(self, K: int, d: int) -> int:
        """Return the number of entries of one triangle."""
        return d * (d + 1) // 2

    def select(self, covariances: Array, index: Any) -> Array:
        """Return the one covariance of all."""
        return covariances

    def replaced(self, covariances: Array, where: Array, by: Array) -> Array:
        """Return the one covariance of all."""
        return covariances

    def with_fallback(self, covariances: Array, lost: Array, old: Array) -> Array:
        """Return the covariance, or the old one where any of its variances is lost."""
        return old if lost.any() else covariances

    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        """Return rows of each component in turn."""
        return super().draw(means, np.linalg.cholesky(covariances), counts, rng)

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        return normal @ covariances.T

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where the covariance is singular."""
        return _precision_cholesky(covariances)

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        return float(np.linalg.norm(offsets @ cholesky, axis=1).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the sum (d, d) of w_k a_k b_k'."""
        outer: Array = (a * weights[:, np.newaxis]).T @ b
        return outer

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide the sum by the sum of the counts."""
        per_count: Array = second / counts.sum()
        return per_count

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows."""
        about_mean: Array = covariances + self.scatter(
            counts, means - counts / counts.sum() @ means
        )
        return about_mean

    def _fractions(self, counts: Array) -> Array:
        fractions: Array = counts / counts.sum()
        return fractions


class _Axes(CovarianceType):
    """Variances along the features."""

    definite = "positive"

    def identity(self, K: int, d: int) -> Array:
        """Return ones."""
        return np.ones(self.shape(K, d))

    def inverse(self, covariances: Array) -> Array:
        """Return the reciprocals."""
        inverses: Array = 1 / covariances
        return inverses

    def precisions(self, cholesky: Array) -> Array:
        """Return the squares of the inverse standard deviations."""
        precisions: Array = cholesky**2
        return precisions

    def variances(self, covariances: Array) -> Array:
        """Return the variances themselves."""
        return covariances

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        """Return the diagonals (K, d)."""
        return np.broadcast_to(self.precisions(cholesky).reshape(K, -1), (K, d))

    def is_definite(self, matrices: Array) -> bool:
        """Return whether variances are positive."""
        return bool((matrices > 0).all())

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a variance is not positive."""
        positive = covariances >= TINY
        roots = 1 / np.sqrt(np.where(positive, covariances, 1))
        return np.where(positive, roots, np.nan)

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the variances."""
        regularized: Array = covariances + reg
        return regularized

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the variances, 0 where rounding is all that is left of the moments."""
        variances = second - self.outer(first, first, self._fractions(counts))
        variances[variances <= 8 * np.finfo(float).eps * second] = 0
        return variances

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        correlated: Array = normal * np.sqrt(covariances[k])
        return correlated


class Diagonal(_Axes):
    """Each component has its own variance along each feature, (K, d)."""

    name = "diag"
    gradients = DiagonalGradients
    scores = staticmethod(products.diagonal_scores)
    moments = staticmethod(products.diagonal_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K, d)."""
        return K, d

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return the variances with those along one feature replaced."""
        stretched = covariances.copy()
        stretched[:, feature] = variances
        return stretched

    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = np.log(cholesky).sum(axis=1)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest offset (K, d) in standard deviations."""
        return float(np.abs(offsets * cholesky).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the diagonals (K, d) of w_k a_k b_k'."""
        outer: Array = a * b * weights[:, np.newaxis]
        return outer


class Spherical(_Axes):
    """Each component has one variance for all features, (K,)."""

    name = "spherical"
    scores = staticmethod(products.spherical_scores)
    moments = staticmethod(products.spherical_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K,)."""
        return (K,)

    def along(self, covariances: Array, K: int, feature: int) -> Array:
        """Return the variances, which are the same along all features."""
        return covariances

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return the other variances."""
        return variances

    def sizes(self, covariances: Array) -> Array:
        """Return the variances themselves."""
        return covariances

    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = d * np.log(cholesky)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        return float((np.linalg.norm(offsets, axis=1) * cholesky).max())

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the traces (K,) of w_k a_k b_k'."""
        outer: Array = np.einsum("kd,kd->k", a, b) * weights
        return outer

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the mean variance of the features."""
        variances: Array = super().estimate(counts, first, second) / first.shape[1]
        return variances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K,) of the gaps, averaged over features."""
        scatter: Array = super().scatter(counts, gaps) / gaps.shape[1]
        return scatter


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    kind.name: kind for kind in (Full(), Tied(), Diagonal(), Spherical())
}


def _precision_cholesky(covariance: Array) -> Array:
    """Return U with inverse covariance U U', or nan where there is none."""
    d = len(covariance)
    lower, failed = lapack.dpotrf(covariance, lower=True, clean=True)
    rounding = 4 * d * np.finfo(float).eps * np.diagonal(covariance)
    if failed or (np.diagonal(lower) ** 2 <= np.maximum(rounding, TINY)).any():
        return np.full((d, d), np.nan)
    factor: Array = lapack.dtrtri(lower, lower=True)[0]
    return factor.T
