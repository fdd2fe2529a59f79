"""Covariance types: full, tied, diagonal and spherical.

Covariances of K components of d features are (K, d, d) where `full`, (d, d) where `tied`,
(K, d) where `diag` and (K,) where `spherical`. Precisions and second moments have the same
shape; the second moments of the spherical type are sums over the features.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._typing import Array
from . import products
from .contracts import Responsibilities
from .products import GaussianComponents

# The abstract type of covariance: methods of each type, and others that follow from them.


class CovarianceType(ABC):
    """Methods that depend on the type of covariance.

    `name` is scikit-learn's, `definite` what covariances must be, in words, and `shared` whether
    all components have the same.
    """

    name: str
    definite: str
    shared = False

    # Shapes and conversions.

    @abstractmethod
    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances of K components of d features."""

    @abstractmethod
    def identity(self, K: int, d: int) -> Array:
        """Return unit covariances."""

    @abstractmethod
    def inverse(self, covariances: Array) -> Array:
        """Return the precisions; raises LinAlgError where a matrix has none."""

    @abstractmethod
    def precisions(self, cholesky: Array) -> Array:
        """Return the precisions of precisions_cholesky_."""

    @abstractmethod
    def variances(self, covariances: Array) -> Array:
        """Return the diagonals, as far as components and features differ in them."""

    def along(self, covariances: Array, K: int, feature: int) -> Array:
        """Return the variances (K,) of the components along a feature."""
        return np.broadcast_to(self.variances(covariances)[..., feature], K)

    @abstractmethod
    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return covariances with other variances (K,) along a feature, in a type that has K.

        How other features depend on this one stays, and what is left of them.
        """

    def sizes(self, covariances: Array) -> Array:
        """Return the mean variance of each component, (K,), or of all, (1,)."""
        sizes: Array = self.variances(covariances).mean(axis=-1)
        return np.atleast_1d(sizes)

    def pseudo_rows(self, d: int) -> float:
        """Return how many pseudo-rows with the pooled covariance shrink that of a few rows."""
        return 2 + 8 / d

    @abstractmethod
    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        """Return K precisions, as matrices (K, d, d) or, where those are diagonal, (K, d)."""

    @abstractmethod
    def is_definite(self, matrices: Array) -> bool:
        """Return whether matrices can be covariances; `cholesky` tests the rest."""

    def n_parameters(self, K: int, d: int) -> int:
        """Return the number of free parameters of K covariances."""
        return int(np.prod(self.shape(K, d)))

    def select(self, covariances: Array, index: Any) -> Array:
        """Return the covariances of some components, in the order of an index."""
        return covariances[index]

    def replaced(self, covariances: Array, where: Array, by: Array) -> Array:
        """Return covariances with those of the components `where` (K,) taken from others."""
        result = covariances.copy()
        result[where] = by[where]
        return result

    def with_fallback(self, covariances: Array, lost: Array, old: Array) -> Array:
        """Return covariances, the old ones where any of the `variances` is lost."""
        where = np.asarray(lost.reshape(len(lost), -1).any(axis=1))
        return self.replaced(covariances, where, by=old)

    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        """Return rows of each component in turn, ``counts[k]`` of component k."""
        return np.vstack(
            [
                mean + self._correlate(rng.standard_normal((count, len(mean))), covariances, k)
                for k, (mean, count) in enumerate(zip(means, counts, strict=True))
            ]
        )

    @abstractmethod
    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        """Give standard normal rows the covariance of component k."""

    # Densities.

    @abstractmethod
    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a covariance is singular."""

    @abstractmethod
    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinants (K,) or (1,) of the Cholesky factors."""

    @abstractmethod
    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""

    @staticmethod
    @abstractmethod
    def scores(X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""

    # Estimates. First moments are (K, d); second moments have the shape of the covariances.

    @staticmethod
    @abstractmethod
    def moments(
        X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first and second moments about the origins, as sums over rows."""

    @abstractmethod
    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return w_k a_k b_k' in the form of second moments, for a and b (K, d) and w (K,)."""

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide second moments by the counts that they are sums over; 0 counts as 1."""
        return second / per_component(np.where(counts > 0, counts, 1.0), second)

    @abstractmethod
    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the covariances of moments per unit of count: second less `outer` of first."""

    @abstractmethod
    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the diagonals, or one to each entry of them."""

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return by how much covariances grow about points `gaps` (K, d) away from the means."""
        return self.outer(gaps, gaps, self._fractions(counts))

    def merged(self, fraction: Array, covariances: Array, others: Array, gaps: Array) -> Array:
        """Return the covariances of merged pairs, for types that share none.

        The second of a pair has a fraction (K,) of the rows; means are `gaps` (K, d) apart.
        """
        part = per_component(fraction, covariances)
        within: Array = (1 - part) * covariances + part * others
        between: Array = part * (1 - part) * self.scatter(np.ones(len(gaps)), gaps)
        return within + between

    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return second moments about points moved by `shifts` (K, d); moments are sums.

        With M = sum x x' and m = sum x, sum (x - s)(x - s)' = M - (m s' + s m') + n s s'.
        """
        cross = self.outer(first, shifts, np.ones(len(first)))
        about: Array = second - (cross + self._transposed(cross))
        return about + self.outer(shifts, shifts, counts)

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, in this shape for every component."""
        fractions = counts / counts.sum()
        about_mean = covariances + self.scatter(counts, means - fractions @ means)
        return np.repeat(np.tensordot(fractions, about_mean, 1)[np.newaxis], len(means), axis=0)

    def _fractions(self, counts: Array) -> Array:
        """Return the part (K,) that each component has in its covariance: all of it."""
        return np.ones(len(counts))

    def _transposed(self, matrices: Array) -> Array:
        """Return the transposes, for types whose covariances are matrices."""
        return matrices


def per_component(numbers: Array, covariances: Array) -> Array:
    """Return numbers (K,) in a shape that multiplies covariances (K, ...)."""
    return numbers.reshape((-1,) + (1,) * (covariances.ndim - 1))


# The four types of covariance: full, tied, diagonal and spherical.


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
        """Return whether matrices are symmetric, at any units of the features."""
        roots = np.sqrt(np.maximum(self.variances(matrices), 0))
        gaps = np.abs(matrices / 2 - np.swapaxes(matrices, -1, -2) / 2)
        return bool((gaps <= 1e-5 * roots[..., :, None] * roots[..., None, :]).all())

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
