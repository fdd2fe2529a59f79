"""What a merge of two clusters loses in log-likelihood, for each family of components."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from .covariance import TINY, CovarianceType, per_component, sum_over_components
from .family import MergeCost

# Clusters up to which all pairs are compared, and the products of their sums are kept: 32 MiB.
MAX_PAIRED = 2048


@dataclass(eq=False)
class _SumMergeCost(MergeCost):
    """Clusters that are known by the sums of their rows and by the numbers of rows."""

    sums: Array  # (M, d)
    counts: Array  # (M,), positive

    def __post_init__(self) -> None:
        self.sums = self.sums.copy()
        self.counts = self.counts.astype(np.float64)
        self.dim = self.sums.shape[1]
        self._squares = np.einsum("md,md->m", self.sums, self.sums)

    @cached_property
    def _products(self) -> Array | None:
        """The products of all pairs of sums, to which merges add; None where there are too many."""
        return self.sums @ self.sums.T if len(self.sums) <= MAX_PAIRED else None

    def points(self) -> Array:
        return self.sums / self.counts[:, None]

    def merge(self, i: int, j: int) -> None:
        if self._products is not None:
            self._products[i] += self._products[j]
            self._products[:, i] += self._products[:, j]
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]
        self._squares[i] = self.sums[i] @ self.sums[i]
        self._apart[i] = self._alone(np.array([i]))[0]

    @cached_property
    def _apart(self) -> Array:
        """The values of all clusters, (M,), to which merges add."""
        return self._alone(slice(None))

    @abstractmethod
    def _alone(self, clusters: Array | slice) -> Array:
        """Return what losses compare, log-likelihoods up to a constant, of some clusters."""

    @abstractmethod
    def losses(self, i: int | Array, clusters: Array | slice = slice(None)) -> Array:
        """Return the losses of cluster i with some, or for i (m, 1) of m clusters with them."""

    def all_losses(self) -> Array:
        clusters = np.arange(len(self.counts))
        return self.losses(clusters[:, None], clusters)

    def _joint_squares(self, i: int | Array, clusters: Array | slice) -> Array:
        """Return the squared lengths of the sums of cluster i with each of some clusters."""
        known = self._products
        products = self.sums[clusters] @ self.sums[i] if known is None else known[i, clusters]
        return np.maximum(self._squares[clusters] + self._squares[i] + 2 * products, 0)


@dataclass(eq=False)
class DirectionMergeCost(_SumMergeCost):
    """Directions of one concentration kappa, or each of its own with n0 pseudo-rows of length r0.

    The log-likelihood of n rows with the sum R is, up to n times `log_normalizer`, kappa |R| or
    (n + n0) psi((|R| + n0 r0) / (n + n0)), for the negative entropy psi.
    """

    log_normalizer: float
    concentration: float | None = None
    n_pseudo: float = 0.0
    pseudo_length: float = 0.0

    def points(self) -> Array:
        lengths: Array = np.sqrt(self._squares)[:, None]
        return self.sums / np.where(lengths > 0, lengths, 1.0)

    def losses(self, i: int | Array, clusters: Array | slice = slice(None)) -> Array:
        n = self.counts
        apart = self._apart
        joint = self._values(n[clusters] + n[i], self._joint_squares(i, clusters))
        return apart[clusters] + apart[i] - joint - self._of_pseudo

    def _alone(self, clusters: Array | slice) -> Array:
        return self._values(self.counts[clusters], self._squares[clusters])

    @cached_property
    def _of_pseudo(self) -> Array:
        """The value of pseudo-rows, which count twice apart, and once jointly."""
        return self._values(np.zeros(1), np.zeros(1))

    def log_likelihoods(self) -> Array:
        return self._values(self.counts, self._squares) + self.counts * self.log_normalizer

    def _values(self, n: Array, squares: Array) -> Array:
        """Return log-likelihoods up to n times a constant, with squared lengths of the sums."""
        lengths: Array = np.sqrt(squares)
        if self.concentration is not None:
            return self.concentration * lengths
        total = n + self.n_pseudo
        lengths += self.n_pseudo * self.pseudo_length
        means = np.divide(lengths, total, out=np.zeros_like(total), where=total > 0)
        # At a length of 1, of a single row, the negative entropy is infinite.
        return total * vmf.negentropy(np.minimum(means, 1 - 1e-12), self.dim)


@dataclass(eq=False)
class SphericalMergeCost(_SumMergeCost):
    """Spherical Gaussians with n0 pseudo-observations of the pooled variance each.

    The log-likelihood of n rows of scatter S is, up to what all clusters have in common, -d/2
    (n + n0) log((S + n0 d pooled) / ((n + n0) d)). Sums of rows and squared lengths (M,) are about
    `centre`.
    """

    row_squares: Array
    centre: Array
    n_pseudo: float
    pooled: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.row_squares = self.row_squares.astype(np.float64)

    def merge(self, i: int, j: int) -> None:
        self.row_squares[i] += self.row_squares[j]
        super().merge(i, j)

    def losses(self, i: int | Array, clusters: Array | slice = slice(None)) -> Array:
        n = self.counts
        squares = self.row_squares
        apart = self._apart
        joint = self._joint_squares(i, clusters)
        together = self._costs(n[clusters] + n[i], squares[clusters] + squares[i], joint)
        of_pseudo = 0.5 * self.dim * self.n_pseudo * np.log(self.pooled)
        return together - apart[clusters] - apart[i] + of_pseudo

    def _alone(self, clusters: Array | slice) -> Array:
        """Return minus the log-likelihoods."""
        return self._costs(
            self.counts[clusters], self.row_squares[clusters], self._squares[clusters]
        )

    def log_likelihoods(self) -> Array:
        scatter = np.maximum(self.row_squares - self._squares / self.counts, 0)
        pseudo = self.n_pseudo * self.dim * self.pooled
        variances = (scatter + pseudo) / ((self.counts + self.n_pseudo) * self.dim)
        log_dets = self.counts * self.dim * np.log(2 * np.pi * variances)
        return -0.5 * (log_dets + scatter / variances)

    def _costs(self, n: Array, row_squares: Array, squares: Array) -> Array:
        """Return minus the log-likelihoods, up to what all clusters have in common."""
        d = self.dim
        total = n + self.n_pseudo
        scatter = np.maximum(row_squares - squares / n, 0) + self.n_pseudo * d * self.pooled
        return 0.5 * d * total * np.log(scatter / (total * d))


@dataclass(eq=False)
class EllipticalMergeCost(MergeCost):
    """Gaussian components by their means and covariances, with pseudo-observations.

    Those have the shape of the pooled covariance and the size of the component's own. The
    log-likelihood of n rows is, up to what all clusters have in common, -n/2 log det C; with one
    covariance for all, merging a and b loses n_a n_b / (n_a + n_b) |m_a - m_b|^2 / 2.
    """

    counts: Array  # (M,), positive
    means: Array  # (M, d); times U, for the precision U U' of all, if `covariances` is None
    covariances: Array | None  # None is one for all
    kind: CovarianceType

    def __post_init__(self) -> None:
        self.counts = self.counts.astype(np.float64)
        self.means = self.means.copy()
        self.dim = self.means.shape[1]
        if self.covariances is not None:
            self.covariances = self.covariances.copy()
            self._n_pseudo = self.kind.pseudo_rows(self.dim)
            # Of unit size, as it is multiplied by each cluster's own. Zero where none has extent.
            pooled = sum_over_components(self.counts, self.covariances) / self.counts.sum()
            self._shape = pooled / max(self.kind.sizes(pooled[np.newaxis])[0], TINY)

    def points(self) -> Array:
        if self.covariances is None:
            return self.means
        variances = self.kind.variances(self._shape[np.newaxis])
        return self.means / np.sqrt(np.maximum(variances, TINY))

    def losses(self, i: int, clusters: Array | slice = slice(None)) -> Array:
        n, n_i = self.counts[clusters], self.counts[i]
        if self.covariances is None:
            gaps = self.means[clusters] - self.means[i]
            return 0.5 * n * (n_i / (n + n_i)) * np.einsum("md,md->m", gaps, gaps)
        apart = n * self._log_det(n, self.covariances[clusters])
        of_i = n_i * self._log_det(self.counts[[i]], self.covariances[[i]])
        joint = (n + n_i) * self._log_det(n + n_i, self._joint_covariances(i, clusters))
        return 0.5 * (joint - apart - of_i)

    def merge(self, i: int, j: int) -> None:
        n_i, n_j = self.counts[i], self.counts[j]
        if self.covariances is not None:
            self.covariances[i] = self._joint_covariances(i, np.array([j]))[0]
        self.means[i] = (n_i * self.means[i] + n_j * self.means[j]) / (n_i + n_j)
        self.counts[i] += n_j

    def _joint_covariances(self, i: int, clusters: Array | slice) -> Array:
        """Return the covariances of cluster i merged with each of some clusters."""
        assert self.covariances is not None
        gaps = self.means[clusters] - self.means[i]
        fraction = self.counts[i] / (self.counts[clusters] + self.counts[i])
        return self.kind.merged(fraction, self.covariances[clusters], self.covariances[i], gaps)

    def _log_det(self, n: Array, covariances: Array) -> Array:
        """Return log-determinants (M,) of covariances with their pseudo-observations."""
        pseudo = per_component(self._n_pseudo / (n + self._n_pseudo), covariances)
        sizes = per_component(self.kind.sizes(covariances), covariances)
        shrunk = (1 - pseudo) * covariances
        shrunk += pseudo * sizes * self._shape
        if covariances.ndim == 3:
            _, log_dets = np.linalg.slogdet(shrunk)
        else:
            logs = np.log(np.maximum(shrunk, TINY))
            log_dets = logs.sum(axis=1) if covariances.ndim == 2 else self.dim * logs
        # Covariances whose values have vanished have a finite loss, too.
        return np.maximum(log_dets, self.dim * np.log(TINY))
