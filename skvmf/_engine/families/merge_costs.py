"""What merging components costs: log-likelihood, for directions and for Gaussian components."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..contracts.model_parts import MergeCost
from .covariance import COVARIANCE_TYPES
from .covariance_type import CovarianceType, per_component

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
        if self._products is not None:
            self._products[i] += self._products[j]
            self._products[:, i] += self._products[:, j]
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]
        self._squares[i] = self.sums[i] @ self.sums[i]

    def _joint_squares(self, i: int) -> Array:
        """Return the squared lengths (M,) of the sums of part i with each part."""
        products = self.sums @ self.sums[i] if self._products is None else self._products[i]
        return np.maximum(self._squares + self._squares[i] + 2 * products, 0)


class DirectionMergeCost(_SumMergeCost):
    """Directions of one concentration, or each of its own with the prior's pseudo-observations.

    The log-likelihood of n rows with the sum R is, up to n times a constant, kappa |R| or
    (n + n0) psi((|R| + n0 r0) / (n + n0)), for the negative entropy psi. The constant is
    `log_normalizer`; without a `concentration` kappa of all parts, each has its own; `n_pseudo` and
    `pseudo_length` are n0 and r0.
    """

    def __init__(
        self,
        sums: Array,
        counts: Array,
        log_normalizer: float,
        concentration: float | None = None,
        n_pseudo: float = 0.0,
        pseudo_length: float = 0.0,
    ) -> None:
        super().__init__(sums, counts)
        self._log_normalizer, self._concentration = log_normalizer, concentration
        self._n_pseudo, self._pseudo_length = n_pseudo, pseudo_length

    def losses(self, i: int) -> Array:
        n = self.counts
        single = self._values(n, self._squares)
        of_pseudo = self._values(np.zeros(1), np.zeros(1))
        joint = self._values(n + n[i], self._joint_squares(i))
        return single + single[i] - joint - of_pseudo

    def log_likelihoods(self) -> Array:
        return self._values(self.counts, self._squares) + self.counts * self._log_normalizer

    def _values(self, n: Array, squares: Array) -> Array:
        """Return log-likelihoods up to n times a constant, with squared lengths of the sums."""
        lengths: Array = np.sqrt(squares)
        if self._concentration is not None:
            return self._concentration * lengths
        total = n + self._n_pseudo
        lengths += self._n_pseudo * self._pseudo_length
        means = np.divide(lengths, total, out=np.zeros_like(total), where=total > 0)
        return total * vmf.negentropy(np.minimum(means, 1 - 1e-12), self.dim)


class SphericalMergeCost(_SumMergeCost):
    """Spherical Gaussians with n0 pseudo-observations of the pooled variance each.

    The log-likelihood of n rows with the scatter S about their mean is, up to what all parts have
    in common, -d/2 (n + n0) log((S + n0 d pooled) / ((n + n0) d)). Sums of rows and of their
    squared lengths (M,) are about `centre` (d,).
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
        super().merge(i, j)
        self.row_squares[i] += self.row_squares[j]

    def losses(self, i: int) -> Array:
        n, squares = self.counts, self.row_squares
        single = self._costs(n, squares, self._squares)
        joint = self._costs(n + n[i], squares + squares[i], self._joint_squares(i))
        of_pseudo = 0.5 * self.dim * self._n_pseudo * np.log(self.pooled)
        return joint - single - single[i] + of_pseudo

    def log_likelihoods(self) -> Array:
        scatter = np.maximum(self.row_squares - self._squares / self.counts, 0)
        pseudo = self._n_pseudo * self.dim * self.pooled
        variances = (scatter + pseudo) / ((self.counts + self._n_pseudo) * self.dim)
        constants = self.counts * self.dim * np.log(2 * np.pi * variances)
        return -0.5 * (constants + scatter / variances)

    def _costs(self, n: Array, row_squares: Array, squares: Array) -> Array:
        """Return minus the log-likelihoods, up to what all parts have in common."""
        d, n_pseudo = self.dim, self._n_pseudo
        scatter = np.maximum(row_squares - squares / n, 0) + n_pseudo * d * self.pooled
        return 0.5 * d * (n + n_pseudo) * np.log(scatter / ((n + n_pseudo) * d))


@dataclass
class EllipticalMergeCost(MergeCost):
    """Gaussian components by their means and covariances, with pseudo-observations.

    Those have the shape of the pooled covariance and the size of the component's own. The
    log-likelihood of n rows is, up to what all parts have in common, -n/2 log det C; with one
    covariance for all, merging a and b loses n_a n_b / (n_a + n_b) |m_a - m_b|^2 / 2.
    """

    counts: Array  # (M,), positive
    means: Array  # (M, d), in units of the covariance where it is the same for all
    covariances: Array | None  # None is one for all
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
        n, n_i = self.counts, self.counts[i]
        gaps = self.means - self.means[i]
        if self.covariances is None:
            return 0.5 * n * (n_i / (n + n_i)) * np.einsum("md,md->m", gaps, gaps)
        single = n * self._log_det(n, self.covariances)
        joint = (n + n_i) * self._log_det(n + n_i, self._joint_covariances(i, gaps))
        losses = 0.5 * (joint - single - single[i])
        return losses

    def merge(self, i: int, j: int) -> None:
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
        pseudo = per_component(self._n_pseudo / (n + self._n_pseudo), covariances)
        sizes = per_component(self.kind.sizes(covariances), covariances)
        shrunk = (1 - pseudo) * covariances
        shrunk += pseudo * sizes * self._shape
        if covariances.ndim == 3:
            return np.linalg.slogdet(shrunk)[1]
        return np.log(shrunk).sum(axis=1) if covariances.ndim == 2 else self.dim * np.log(shrunk)
