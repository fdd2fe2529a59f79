"""The abstract type of covariance: methods of each type, and others that follow from them."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.responsibilities import Responsibilities
from .gaussian_products import GaussianComponents


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
