"""What merging components costs: log-likelihood, for directions and for Gaussian components."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..contracts.model_parts import MergeCost
from .covariance import COVARIANCE_TYPES
from .covariance_type import CovarianceType

MAX_PRODUCTS = 4096  # parts up to which the products of all pairs of sums are kept: 128 MiB


class _SumMergeCost(MergeCost):
    """Parts that are known by the sums (M, d) of their rows and by the numbers of rows (M,)."""

    def __init__(self, sums: Array, counts: Array) -> None:
        self.sums, self.counts = sums.copy(), counts.astype(np.float64)
        self.dim = sums.shape[1]
        self._squares = np.einsum("md,md->m", sums, sums)

    @cached_property
    def _products(self) -> Array | None:
        return self.sums @ self.sums.T if len(self.sums) <= MAX_PRODUCTS else None

    def merge(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not used any more."""
        if self._products is not None:
            self._products[i] += self._products[j]
            self._products[:, i] += self._products[:, j]
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]
        self._squares[i] = self.sums[i] @ self.sums[i]

    def _joint_squares(self, i: int) -> Array:
        """Return the squared lengths (M,) of the sums of part i with each part."""
        products = self.sums @ self.sums[i] if self._products is None else self._products[i]
        squares: Array = np.maximum(self._squares + self._squares[i] + 2 * products, 0)
        return squares


class DirectionMergeCost(_SumMergeCost):
    """Directions of one concentration, or each of its own with the prior's pseudo-observations.

    The log-likelihood of n rows with the sum R is, up to n times a constant, kappa |R| or
    (n + n0) psi((|R| + n0 r0) / (n + n0)), for the negative entropy psi.

    Parameters
    ----------
    sums : ndarray of shape (M, d)
        Sums of the rows of each part.
    counts : ndarray of shape (M,)
        Numbers of rows, positive.
    log_normalizer : float
        That constant.
    concentration : float or None
        The concentration kappa of all parts; None gives each its own.
    n_pseudo, pseudo_length : float
        Number n0 and resultant length r0 of the pseudo-observations.
    """

    def __init__(
        self,
        sums: Array,
        counts: Array,
        log_normalizer: float,
        *,
        concentration: float | None = None,
        n_pseudo: float = 0.0,
        pseudo_length: float = 0.0,
    ) -> None:
        super().__init__(sums, counts)
        self._log_normalizer, self._concentration = log_normalizer, concentration
        self._n_pseudo, self._pseudo_length = n_pseudo, pseudo_length

    def losses(self, i: int) -> Array:
        """Return the log-likelihood (M,) that is lost where part i is merged with each part."""
        n = self.counts
        single = self._values(n, self._squares)
        of_pseudo = self._values(np.zeros(1), np.zeros(1))
        joint = self._values(n + n[i], self._joint_squares(i))
        losses: Array = single + single[i] - joint - of_pseudo
        return losses

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood (M,) of the rows of each part."""
        return self._values(self.counts, self._squares) + self.counts * self._log_normalizer

    def _values(self, n: Array, squares: Array) -> Array:
        """Return log-likelihoods up to n times a constant, with squared lengths of the sums."""
        lengths: Array = np.sqrt(squares)
        if self._concentration is not None:
            return self._concentration * lengths
        total = n + self._n_pseudo
        lengths += self._n_pseudo * self._pseudo_length
        means = np.divide(lengths, total, out=np.zeros_like(total), where=total > 0)
        values: Array = total * vmf.negentropy(np.minimum(means, 1 - 1e-12), self.dim)
        return values


class SphericalMergeCost(_SumMergeCost):
    """Spherical Gaussians with n0 pseudo-observations of the pooled variance each.

    The log-likelihood of n rows with the scatter S about their mean is, up to what all parts have
    in common, -d/2 (n + n0) log((S + n0 d pooled) / ((n + n0) d)).

    Parameters
    ----------
    sums, squares : ndarray of shape (M, d) and (M,)
        Sums of the rows of each part, and of their squared lengths, about `centre`.
    counts : ndarray of shape (M,)
        Numbers of rows, positive.
    centre : ndarray of shape (d,)
        See `sums`.
    n_pseudo : float
        The number n0.
    pooled : float
        The pooled variance of a feature.
    """

    def __init__(
        self,
        sums: Array,
        squares: Array,
        counts: Array,
        centre: Array,
        n_pseudo: float,
        pooled: float,
    ) -> None:
        super().__init__(sums, counts)
        self.row_squares, self.centre = squares.astype(np.float64), centre
        self._n_pseudo, self.pooled = n_pseudo, pooled

    def merge(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not used any more."""
        super().merge(i, j)
        self.row_squares[i] += self.row_squares[j]

    def losses(self, i: int) -> Array:
        """Return the log-likelihood (M,) that is lost where part i is merged with each part."""
        n, squares = self.counts, self.row_squares
        single = self._costs(n, squares, self._squares)
        joint = self._costs(n + n[i], squares + squares[i], self._joint_squares(i))
        of_pseudo = 0.5 * self.dim * self._n_pseudo * np.log(self.pooled)
        losses: Array = joint - single - single[i] + of_pseudo
        return losses

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood (M,) of the rows of each part."""
        scatter = np.maximum(self.row_squares - self._squares / self.counts, 0)
        pseudo = self._n_pseudo * self.dim * self.pooled
        variances = (scatter + pseudo) / ((self.counts + self._n_pseudo) * self.dim)
        constants = self.counts * self.dim * np.log(2 * np.pi * variances)
        log_likelihoods: Array = -0.5 * (constants + scatter / variances)
        return log_likelihoods

    def _costs(self, n: Array, row_squares: Array, squares: Array) -> Array:
        """Return minus the log-likelihoods, up to what all parts have in common."""
        d, n_pseudo = self.dim, self._n_pseudo
        scatter = np.maximum(row_squares - squares / n, 0) + n_pseudo * d * self.pooled
        costs: Array = 0.5 * d * (n + n_pseudo) * np.log(scatter / ((n + n_pseudo) * d))
        return costs


@dataclass
class EllipticalMergeCost(MergeCost):
    """Gaussian components by their means and covariances, with pseudo-observations.

    Those have the shape of the pooled covariance and the size of the component's own, so that
    parts of few rows do not seem to be worth more than they are. The log-likelihood of n rows
    is, up to what all parts have in common, -n/2 log det C; where all components have one
    covariance, merging a and b loses n_a n_b / (n_a + n_b) times half the squared distance of
    their means.

    Parameters
    ----------
    counts : ndarray of shape (M,)
        Numbers of rows, positive.
    means : ndarray of shape (M, d)
        The means; in units of the covariance where it is the same for all.
    covariances : ndarray of shape (M, d, d), (M, d) or (M,), or None
        The covariances; None is one for all.
    kind : CovarianceType
        Their type.
    """

    counts: Array
    means: Array
    covariances: Array | None
    kind: CovarianceType

    def __post_init__(self) -> None:
        self.counts, self.means = self.counts.astype(np.float64), self.means.copy()
        self.dim = self.means.shape[1]
        if self.covariances is not None:
            self.covariances = self.covariances.copy()
            self._n_pseudo = self.kind.pseudo_rows(self.dim)
            pooled = np.tensordot(self.counts, self.covariances, axes=1) / self.counts.sum()
            self._shape = pooled / self.kind.sizes(pooled[np.newaxis])[0]

    @classmethod
    def of_one_covariance(
        cls, counts: Array, means: Array, cholesky: Array
    ) -> "EllipticalMergeCost":
        """Take components whose precision is U U', for an upper triangular U (d, d)."""
        return cls(counts, means @ cholesky, None, COVARIANCE_TYPES["tied"])

    def losses(self, i: int) -> Array:
        """Return the log-likelihood (M,) that is lost where part i is merged with each part."""
        n, n_i = self.counts, self.counts[i]
        gaps = self.means - self.means[i]
        if self.covariances is None:
            losses: Array = 0.5 * n * (n_i / (n + n_i)) * np.einsum("md,md->m", gaps, gaps)
            return losses
        single = n * self._log_det(n, self.covariances)
        joint = (n + n_i) * self._log_det(n + n_i, self._joint_covariances(i, gaps))
        losses = 0.5 * (joint - single - single[i])
        return losses

    def merge(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not used any more."""
        n_i, n_j = self.counts[i], self.counts[j]
        if self.covariances is not None:
            self.covariances[i] = self._joint_covariances(i, self.means - self.means[i])[j]
        self.means[i] = (n_i * self.means[i] + n_j * self.means[j]) / (n_i + n_j)
        self.counts[i] += n_j

    def _joint_covariances(self, i: int, gaps: Array) -> Array:
        """Return the covariances of part i merged with each part."""
        assert self.covariances is not None
        fraction = self.counts[i] / (self.counts + self.counts[i])
        return self.kind.merged(fraction, self.covariances, self.covariances[i], gaps)

    def _log_det(self, n: Array, covariances: Array) -> Array:
        """Return log-determinants (M,) of covariances with their pseudo-observations."""
        axes = (-1,) + (1,) * (covariances.ndim - 1)
        pseudo = (self._n_pseudo / (n + self._n_pseudo)).reshape(axes)
        shrunk = (1 - pseudo) * covariances
        shrunk += pseudo * self.kind.sizes(covariances).reshape(axes) * self._shape
        if covariances.ndim == 3:
            log_det: Array = np.linalg.slogdet(shrunk)[1]
        elif covariances.ndim == 2:
            log_det = np.log(shrunk).sum(axis=1)
        else:
            log_det = self.dim * np.log(shrunk)
        return log_det
