"""Covariance types: full, tied, diagonal and spherical.

Covariances of K components of d features are (K, d, d) where `full`, (d, d) where `tied`,
(K, d) where `diag` and (K,) where `spherical`. Precisions and second moments have the same
shape; the second moments of the spherical type are sums over the features.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lapack

from ..._typing import Array
from . import gaussian_products as products

TINY = float(np.finfo(np.float64).tiny)  # variance below which floats lose their digits
EPS = float(np.finfo(np.float64).eps)
# Features beyond which products of pairs, made once for all components, are no faster than products
# for each component.
MAX_PAIRS_DIM = 256


def per_component(numbers: Array, covariances: Array) -> Array:
    """Return numbers (K,) in a shape that multiplies covariances (K, ...)."""
    return numbers.reshape((-1,) + (1,) * (covariances.ndim - 1))


def sum_over_components(weights: Array, covariances: Array) -> Array:
    """Return the sum of covariances (K, ...), each times a weight (K,)."""
    flat = covariances.reshape(len(weights), -1)
    total: Array = (weights @ flat).reshape(covariances.shape[1:])
    return total


class CovarianceType(ABC):
    """What depends on the type of covariance; most follows from its shape and `outer`.

    `name` is scikit-learn's, `definite` what covariances must be, in words, `shared` whether all
    components have the same, and `full` whether they are matrices. `scores` and `moments` are the
    products of a block of rows.
    """

    name: ClassVar[str]
    definite: ClassVar[str]
    shared: ClassVar[bool] = False
    full: ClassVar[bool] = False
    scores: ClassVar[Callable[..., Array]]
    moments: ClassVar[Callable[..., tuple[Array, Array]]]

    @abstractmethod
    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances of K components of d features."""

    @abstractmethod
    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return w_k a_k b_k' in the form of second moments, for a and b (K, d) and w (K,)."""

    @abstractmethod
    def variances(self, covariances: Array) -> Array:
        """Return a view of the diagonals; the spherical type has one for all features."""

    @abstractmethod
    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a covariance is singular."""

    @abstractmethod
    def precisions(self, cholesky: Array) -> Array:
        """Return the precisions of precisions_cholesky_."""

    @abstractmethod
    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        """Return K precisions, as matrices (K, d, d) or, where those are diagonal, (K, d)."""

    @abstractmethod
    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""

    @abstractmethod
    def is_definite(self, matrices: Array) -> bool:
        """Return whether matrices can be covariances; `cholesky` tests the rest."""

    @abstractmethod
    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        """Return rows of each component in turn, ``counts[k]`` of component k."""

    @abstractmethod
    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return covariances with other variances (K,) along a feature, in a type that has K.

        How other features depend on this one stays, and what is left of them.
        """

    def components(
        self, means: Array, covariances: Array, units: Array | None = None
    ) -> products.GaussianComponents:
        """Derive all arrays from means (K, d) and covariances; log det in units (d,) if given.

        So it has the same bits for features in other units: their roots are divided by as much.
        """
        K, d = means.shape
        cholesky = self.cholesky(covariances)
        log_det = self.log_det(cholesky, d, units)
        if self.shared:
            log_det = np.full(K, log_det)
        centre = means.sum(axis=0) / K
        # Means that are infinite or nan in standard deviations are not near.
        with np.errstate(over="ignore", invalid="ignore"):
            spread = self.spread(cholesky, means - centre)
        centred_at = means
        if spread < products.MAX_COMMON_SPREAD:
            centred_at = np.repeat(centre[np.newaxis], K, axis=0)
        return products.GaussianComponents(
            means, covariances, cholesky, log_det, centred_at, spread
        )

    def log_det(self, cholesky: Array, d: int, units: Array | None = None) -> Array:
        """Return the logarithms of the determinants of roots, in units (d,) if given."""
        diagonals = self.variances(cholesky)
        if units is not None:
            diagonals = diagonals * units
        n_equal = d // diagonals.shape[-1]  # one variance for all features counts d times
        log_det: Array = n_equal * np.log(diagonals).sum(axis=-1)
        return log_det

    def in_other_units(self, covariances: Array, units: Array) -> Array:
        """Return covariances of features that are multiplied by units (d,)."""
        if self.full:
            return covariances * np.outer(units, units)
        return covariances * units**2

    def identity(self, K: int, d: int) -> Array:
        return self.regularized(np.zeros(self.shape(K, d)), 1.0)

    def n_parameters(self, K: int, d: int) -> int:
        return int(np.prod(self.shape(K, d)))

    def pseudo_rows(self, d: int) -> float:
        """Return how many pseudo-rows with the pooled covariance shrink that of a few rows."""
        # Two rows, and eight numbers: of few features a row tells little. More pseudo-rows draw all
        # components to one shape, fewer leave one of a few rows next to no width.
        return 2 + 8 / d

    def regularized(self, covariances: Array, reg: float | Array) -> Array:
        """Add a number to the diagonals, or one for each feature or entry of the `variances`."""
        regularized = np.array(covariances)
        self.variances(regularized)[...] += reg
        return regularized

    def along(self, covariances: Array, K: int, feature: int) -> Array:
        """Return the variances (K,) of the components along a feature."""
        return np.broadcast_to(self.variances(covariances)[..., feature], K)

    def sizes(self, covariances: Array) -> Array:
        """Return the mean variance of each component, (K,), or of all, (1,)."""
        return np.atleast_1d(self.variances(covariances).mean(axis=-1))

    def select(self, covariances: Array, index: Any) -> Array:
        """Return the covariances of some components, in the order of an index."""
        return covariances if self.shared else covariances[index]

    def replaced(self, covariances: Array, where: Array, by: Array) -> Array:
        """Return covariances with those of the components `where` (K,) taken from others."""
        if self.shared:
            return covariances
        result = covariances.copy()
        result[where] = by[where]
        return result

    # Estimates. First moments are (K, d); second moments have the shape of the covariances.

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the covariances of moments per unit of count: second less `outer` of first."""
        return second - self.outer(first, first, self._fractions(counts))

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
        moved: Array = second - (cross + self._transposed(cross))
        return moved + self.outer(shifts, shifts, counts)

    def _transposed(self, matrices: Array) -> Array:
        return matrices

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, in this shape for every component."""
        fractions = counts / counts.sum()
        about_mean_of_all = covariances + self.scatter(counts, means - fractions @ means)
        if self.shared:
            return about_mean_of_all
        # The mean of all rows' moments about it, whichever components they are of.
        pooled = sum_over_components(fractions, about_mean_of_all)
        return np.repeat(pooled[np.newaxis], len(means), axis=0)

    def _fractions(self, counts: Array) -> Array:
        """Return the fraction (K,) of each component in its covariance: 1 unless it is shared."""
        return counts / counts.sum() if self.shared else np.ones(len(counts))


class Full(CovarianceType):
    """Each component has its own covariance, (K, d, d)."""

    name = "full"
    definite = "symmetric and positive definite"
    full = True
    scores = staticmethod(products.full_scores)
    moments = staticmethod(products.full_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d, d

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        outer: Array = a[:, :, np.newaxis] * b[:, np.newaxis, :]
        outer *= weights[:, np.newaxis, np.newaxis]
        return outer

    def variances(self, covariances: Array) -> Array:
        return np.einsum("...dd->...d", covariances)

    def cholesky(self, covariances: Array) -> Array:
        return _precisions_cholesky(covariances)

    def precisions(self, cholesky: Array) -> Array:
        return cholesky @ self._transposed(cholesky)

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        return np.broadcast_to(self.precisions(cholesky), (K, d, d))

    def spread(self, cholesky: Array, offsets: Array) -> float:
        if not self.shared and offsets.shape[1] > MAX_PAIRS_DIM:
            return np.inf  # then moments are about the means
        white = (offsets[:, np.newaxis] @ cholesky)[:, 0]
        return float(np.sqrt((white**2).sum(axis=1).max()))

    def is_definite(self, matrices: Array) -> bool:
        """Return whether matrices are symmetric, at any units of the features."""
        roots = np.sqrt(np.maximum(self.variances(matrices), 0))
        gaps = np.abs(matrices / 2 - self._transposed(matrices) / 2)
        # A tolerance for matrices of float32, or with six printed digits.
        return bool((gaps <= 1e-5 * roots[..., :, None] * roots[..., None, :]).all())

    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        rows: Array = rng.standard_normal((counts.sum(), means.shape[1]))
        ends = np.cumsum(counts)
        for k in np.flatnonzero(counts):
            of_k = slice(ends[k] - counts[k], ends[k])
            root = np.linalg.cholesky(self.select(covariances, k))
            rows[of_k] = means[k] + rows[of_k] @ root.T
        return rows

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        """Return matrices with the part that the feature explains scaled by ratios of variances."""
        before = covariances[..., feature, feature]
        slopes = covariances[..., feature] / before[..., None]
        gains = (variances - before)[..., None, None]
        stretched: Array = covariances + gains * (slopes[..., :, None] * slopes[..., None, :])
        stretched[..., feature, feature] = variances
        return stretched

    def n_parameters(self, K: int, d: int) -> int:
        return super().n_parameters(K, d) // d * (d + 1) // 2

    def pseudo_rows(self, d: int) -> float:
        """Return d + 2: rows alone make a matrix regular from d + 1 on, about their mean."""
        return d + 2.0

    def _transposed(self, matrices: Array) -> Array:
        return np.swapaxes(matrices, -1, -2)


class Tied(Full):
    """All components share one covariance, (d, d)."""

    name = "tied"
    shared = True
    scores = staticmethod(products.tied_scores)
    moments = staticmethod(products.tied_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return d, d

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the sum (d, d) of w_k a_k b_k'."""
        return (a * weights[:, np.newaxis]).T @ b

    def cholesky(self, covariances: Array) -> Array:
        return _precisions_cholesky(covariances[np.newaxis])[0]


class Diagonal(CovarianceType):
    """Each component has its own variance along each feature, (K, d)."""

    name = "diag"
    definite = "positive"
    scores = staticmethod(products.diagonal_scores)
    moments = staticmethod(products.diagonal_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the diagonals (K, d) of w_k a_k b_k'."""
        return a * b * weights[:, np.newaxis]

    def variances(self, covariances: Array) -> Array:
        return covariances

    def cholesky(self, covariances: Array) -> Array:
        is_positive = covariances >= TINY
        roots = 1 / np.sqrt(np.where(is_positive, covariances, 1))
        return np.where(is_positive, roots, np.nan)

    def precisions(self, cholesky: Array) -> Array:
        return cholesky**2

    def each_precision(self, cholesky: Array, K: int, d: int) -> Array:
        return np.broadcast_to(self.variances(self.precisions(cholesky)), (K, d))

    def spread(self, cholesky: Array, offsets: Array) -> float:
        return float(np.abs(offsets * cholesky).max())

    def is_definite(self, matrices: Array) -> bool:
        return bool((matrices > 0).all())

    def draw(self, means: Array, covariances: Array, counts: Array, rng: Any) -> Array:
        rows: Array = rng.standard_normal((counts.sum(), means.shape[1]))
        rows *= np.repeat(np.sqrt(self.variances(covariances)), counts, axis=0)
        return rows + np.repeat(means, counts, axis=0)

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        stretched = covariances.copy()
        stretched[:, feature] = variances
        return stretched

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        """Return the variances, 0 where rounding is all that is left of the moments."""
        variances = super().estimate(counts, first, second)
        # Each of a few operations has rounded by half an EPS at most.
        variances[variances <= 8 * EPS * second] = 0
        return variances


class Spherical(Diagonal):
    """Each component has one variance for all features, (K,)."""

    name = "spherical"
    scores = staticmethod(products.spherical_scores)
    moments = staticmethod(products.spherical_moments)

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return (K,)

    def outer(self, a: Array, b: Array, weights: Array) -> Array:
        """Return the traces (K,) of w_k a_k b_k'."""
        return np.einsum("kd,kd->k", a, b) * weights

    def variances(self, covariances: Array) -> Array:
        return covariances[..., np.newaxis]

    def along(self, covariances: Array, K: int, feature: int) -> Array:
        return covariances

    def spread(self, cholesky: Array, offsets: Array) -> float:
        return float(np.sqrt(((offsets**2).sum(axis=1) * cholesky**2).max()))

    def stretched(self, covariances: Array, feature: int, variances: Array) -> Array:
        return variances

    def estimate(self, counts: Array, first: Array, second: Array) -> Array:
        return super().estimate(counts, first, second) / first.shape[1]

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K,) of the gaps, averaged over features."""
        return super().scatter(counts, gaps) / gaps.shape[1]


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    kind.name: kind for kind in (Full(), Tied(), Diagonal(), Spherical())
}


def near_unit_diagonal(matrices: Array) -> Array:
    """Return powers of two (..., d) that rows and columns times them have diagonals near one.

    LAPACK picks pivots by size. With these factors the picks, and all bits, are the same in units
    of features that differ by powers of two.
    """
    exponents = np.frexp(np.diagonal(matrices, axis1=-2, axis2=-1))[1]
    return np.ldexp(1.0, -exponents // 2)


def inverses(matrices: Array) -> Array:
    """Return the inverses of positive definite matrices (K, d, d)."""
    units = near_unit_diagonal(matrices)
    factors = units[:, :, None] * units[:, None, :]
    inverted: Array = np.linalg.inv(matrices * factors) * factors
    return inverted


def _precisions_cholesky(covariances: Array) -> Array:
    """Return U (K, d, d) with inverse covariances U U'; nan where one is singular.

    The pivots of all are tested together: for small matrices that is most of the work.
    """
    d = covariances.shape[-1]
    factors = [lapack.dpotrf(covariance, lower=True, clean=True) for covariance in covariances]
    failed = np.array([info != 0 for _, info in factors])
    roots = np.array([lower.diagonal() for lower, _ in factors])
    # What an attempt that failed has left need be no root, and its square may overflow.
    roots[failed] = 0
    pivots = roots**2
    # A pivot is what sums of d products leave of a variance: less than their rounding is none.
    rounding = 4 * d * EPS * np.diagonal(covariances, axis1=-2, axis2=-1)
    singular = failed | (pivots <= np.maximum(rounding, TINY)).any(axis=1)
    result = np.full(covariances.shape, np.nan)
    for k in np.flatnonzero(~singular).tolist():
        lower, _ = factors[k]
        result[k] = lapack.dtrtri(lower, lower=True)[0].T
    return result
