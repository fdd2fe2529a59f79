"""The four types of covariance, each an object that knows what differs between them.

Covariances of K components of d features are (K, d, d) where `full`, (d, d) where `tied`,
(K, d) where `diag` and (K,) where `spherical`. Precisions have the same shape.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ..._typing import Array
from ..contracts.gradients import GradientsType
from ..contracts.responsibilities import Responsibilities
from . import gaussian_products as products
from .gaussian_gradients import DiagonalGradients
from .gaussian_products import GaussianComponents

TINY = float(np.finfo(np.float64).tiny)  # variance below which floats lose their digits
MAX_PAIRS_DIM = 256  # features beyond which products of pairs are no faster than BLAS


class CovarianceType(ABC):
    """What differs between the types.

    `name` is scikit-learn's, `definite` what covariances must be, in words, `shared` whether
    all components have the same, and `gradients` what Fisher vectors are made of, where there
    are any.
    """

    name: str
    definite: str
    shared = False
    gradients: GradientsType | None = None

    # Shapes and conversions.

    @abstractmethod
    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances of K components of d features."""

    @abstractmethod
    def identity(self, K: int, d: int) -> Array:
        """Return unit covariances."""

    @abstractmethod
    def as_full(self, covariances: Array, K: int, d: int) -> Array:
        """Return covariances or precisions as K matrices (K, d, d)."""

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
        """Return how many rows of a pooled covariance keep that of a few rows sound."""
        return 2 + 8 / d

    @abstractmethod
    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        """Return K precisions, as matrices (K, d, d) or, where those are diagonal, (K, d)."""

    @abstractmethod
    def is_definite(self, matrices: Array) -> bool:
        """Return whether matrices can be covariances; `cholesky` finds out what is left."""

    def n_parameters(self, K: int, d: int) -> int:
        """Return the number of free parameters of K covariances."""
        return int(np.prod(self.shape(K, d)))

    def select(self, covariances: Array, index: Any) -> Array:
        """Return the covariances of some components, in the order of an index."""
        selected: Array = covariances[index]
        return selected

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

    @abstractmethod
    def scores(self, X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""

    # Estimates. First moments are (K, d); second moments have the shape of the covariances.

    @abstractmethod
    def moments(
        self, X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first and second moments about the origins."""

    @abstractmethod
    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide second moments by the counts that they are sums over; 0 counts as 1."""

    @abstractmethod
    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the covariances of moments per unit of count."""

    @abstractmethod
    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the diagonals, or one to each entry of them."""

    @abstractmethod
    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return what covariances gain about points `gaps` (K, d) away from the means."""

    def united(self, share: Array, covariances: Array, others: Array, gaps: Array) -> Array:
        """Return the covariances of pairs taken together, for types that share none.

        The second of a pair has a part `share` (K,) of the rows; means are `gaps` (K, d) apart.
        """
        part = share.reshape((-1,) + (1,) * (covariances.ndim - 1))
        within: Array = (1 - part) * covariances + part * others
        between: Array = part * (1 - part) * self.scatter(np.ones(len(gaps)), gaps)
        return within + between

    @abstractmethod
    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return second moments about points moved by `shifts` (K, d); moments are sums."""

    @abstractmethod
    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, in this shape for every component."""


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
        """Return matrices with what the feature explains taken times the ratio of variances."""
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


class Full(_Square):
    """Each component has its own covariance, (K, d, d)."""

    name = "full"

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K, d, d)."""
        return K, d, d

    def identity(self, K: int, d: int) -> Array:
        """Return K identity matrices."""
        return np.tile(np.eye(d), (K, 1, 1))

    def as_full(self, covariances: Array, K: int, d: int) -> Array:
        """Return the matrices themselves."""
        return covariances

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

    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = np.log(np.diagonal(cholesky, axis1=1, axis2=2)).sum(axis=1)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        if offsets.shape[1] > MAX_PAIRS_DIM:
            return np.inf
        white = np.einsum("kd,kde->ke", offsets, cholesky)
        return float(np.linalg.norm(white, axis=1).max())

    def scores(self, X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        return products.full_scores(X, components)

    def moments(
        self, X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first (K, d) and second (K, d, d) moments about the origins."""
        return products.full_moments(X, responsibilities, components)

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide each matrix by its count."""
        per_count: Array = second / _positive(counts)[:, None, None]
        return per_count

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the covariances of moments per unit of count."""
        covariances: Array = second - first[:, :, None] * first[:, None, :]
        return covariances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K, d, d) of the gaps."""
        squares: Array = gaps[:, :, None] * gaps[:, None, :]
        return squares

    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return second moments (K, d, d) about points moved by `shifts` (K, d)."""
        cross = first[:, :, None] * shifts[:, None, :]
        squares = shifts[:, :, None] * shifts[:, None, :] * counts[:, None, None]
        moved: Array = second - cross - np.swapaxes(cross, 1, 2) + squares
        return moved

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, K times."""
        responsibilities = counts / counts.sum()
        pooled = np.einsum("k,kde->de", responsibilities, covariances) + _between(
            responsibilities, means
        )
        return np.tile(pooled, (len(means), 1, 1))


class Tied(_Square):
    """All components share one covariance, (d, d)."""

    name = "tied"
    shared = True

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (d, d)."""
        return d, d

    def identity(self, K: int, d: int) -> Array:
        """Return the identity matrix."""
        return np.eye(d)

    def as_full(self, covariances: Array, K: int, d: int) -> Array:
        """Return the matrix K times."""
        return np.tile(covariances, (K, 1, 1))

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

    def log_det(self, cholesky: Array, d: int) -> Array:
        """Return the log-determinant (1,) of the Cholesky factor."""
        return np.array([np.log(np.diagonal(cholesky)).sum()])

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        return float(np.linalg.norm(offsets @ cholesky, axis=1).max())

    def scores(self, X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        return products.tied_scores(X, components)

    def moments(
        self, X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first (K, d) moments and the sum (d, d) of the second about the origins."""
        return products.tied_moments(X, responsibilities, components)

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide the sum by the sum of the counts."""
        per_count: Array = second / counts.sum()
        return per_count

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the pooled covariance of moments per unit of count."""
        responsibilities = counts / counts.sum()
        covariance: Array = second - np.dot((first * responsibilities[:, None]).T, first)
        return covariance

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the pooled squares (d, d) of the gaps."""
        squares: Array = np.dot((gaps * (counts / counts.sum())[:, None]).T, gaps)
        return squares

    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return the sum (d, d) of second moments about points moved by `shifts` (K, d)."""
        cross = first.T @ shifts
        moved: Array = second - cross - cross.T + (shifts * counts[:, None]).T @ shifts
        return moved

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows."""
        pooled: Array = covariances + _between(counts / counts.sum(), means)
        return pooled


class _Axes(CovarianceType):
    """Variances along the features."""

    definite = "positive"

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

    def as_full(self, covariances: Array, K: int, d: int) -> Array:
        """Return diagonal matrices."""
        matrices: Array = np.eye(d) * np.reshape(covariances, (K, -1))[:, :, None]
        return matrices

    def is_definite(self, matrices: Array) -> bool:
        """Return whether variances are positive."""
        return bool((matrices > 0).all())

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a variance is not positive."""
        return _inverse_root(covariances)

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the variances."""
        regularized: Array = covariances + reg
        return regularized

    def _correlate(self, normal: Array, covariances: Array, k: int) -> Array:
        correlated: Array = normal * np.sqrt(covariances[k])
        return correlated


class Diagonal(_Axes):
    """Each component has its own variance along each feature, (K, d)."""

    name = "diag"
    gradients = DiagonalGradients

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K, d)."""
        return K, d

    def identity(self, K: int, d: int) -> Array:
        """Return ones."""
        return np.ones((K, d))

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

    def scores(self, X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        return products.diagonal_scores(X, components)

    def moments(
        self, X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first and second moments (K, d) about the origins."""
        return products.diagonal_moments(X, responsibilities, components)

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide each row by its count."""
        per_count: Array = second / _positive(counts)[:, None]
        return per_count

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the variances of moments per unit of count."""
        return _difference(second, first**2)

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K, d) of the gaps."""
        squares: Array = gaps**2
        return squares

    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return second moments (K, d) about points moved by `shifts` (K, d)."""
        moved: Array = second - 2 * first * shifts + counts[:, None] * shifts**2
        return moved

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the variances of all rows, K times."""
        responsibilities = counts / counts.sum()
        pooled = responsibilities @ covariances + np.diagonal(_between(responsibilities, means))
        return np.tile(pooled, (len(means), 1))


class Spherical(_Axes):
    """Each component has one variance for all features, (K,)."""

    name = "spherical"

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return (K,)."""
        return (K,)

    def identity(self, K: int, d: int) -> Array:
        """Return ones."""
        return np.ones(K)

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

    def scores(self, X: Array, components: GaussianComponents) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        return products.spherical_scores(X, components)

    def moments(
        self, X: Array, responsibilities: Responsibilities, components: GaussianComponents
    ) -> tuple[Array, Array]:
        """Return first moments (K, d) and summed second moments (K,) about the origins."""
        return products.spherical_moments(X, responsibilities, components)

    def per_count(self, second: Array, counts: Array) -> Array:
        """Divide each sum by its count."""
        per_count: Array = second / _positive(counts)
        return per_count

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the variances of moments per unit of count, averaged over features."""
        squares = np.einsum("kd,kd->k", first, first)
        variances: Array = _difference(second, squares) / first.shape[1]
        return variances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K,) of the gaps, averaged over features."""
        squares: Array = np.mean(gaps**2, axis=1)
        return squares

    def moved(self, counts: Array, first: Array, second: Array, shifts: Array) -> Array:
        """Return summed second moments (K,) about points moved by `shifts` (K, d)."""
        cross = np.einsum("kd,kd->k", first, shifts)
        moved: Array = second - 2 * cross + counts * np.einsum("kd,kd->k", shifts, shifts)
        return moved

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the mean variance of all rows, K times."""
        responsibilities = counts / counts.sum()
        pooled = (
            responsibilities @ covariances
            + np.trace(_between(responsibilities, means)) / means.shape[1]
        )
        return np.full(len(means), pooled)


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    kind.name: kind for kind in (Full(), Tied(), Diagonal(), Spherical())
}


def _positive(counts: Array) -> Array:
    return np.where(counts > 0, counts, 1.0)


def _precision_cholesky(covariance: Array) -> Array:
    """Return U with inverse covariance U U', or nan where there is none."""
    d = len(covariance)
    lower, failed = lapack.dpotrf(covariance, lower=True, clean=True)
    rounding = 4 * d * np.finfo(float).eps * np.diagonal(covariance)
    if failed or (np.diagonal(lower) ** 2 <= np.maximum(rounding, TINY)).any():
        return np.full((d, d), np.nan)
    factor: Array = lapack.dtrtri(lower, lower=True)[0]
    return factor.T


def _between(responsibilities: Array, means: Array) -> Array:
    """Return the covariance (d, d) of the means."""
    gaps = means - responsibilities @ means
    between: Array = np.dot((gaps * responsibilities[:, None]).T, gaps)
    return between


def _inverse_root(variances: Array) -> Array:
    positive = variances >= TINY
    roots: Array = np.where(positive, 1 / np.sqrt(np.where(positive, variances, 1)), np.nan)
    return roots


def _difference(second: Array, squares: Array) -> Array:
    """Return second - squares, and 0 where rounding is all that is left."""
    variances: Array = second - squares
    variances[variances <= 8 * np.finfo(float).eps * second] = 0
    return variances
