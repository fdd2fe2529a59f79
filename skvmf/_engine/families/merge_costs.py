"""What fitted components lose when two become one: the measures that a path goes down by.

Each is minus the change of the log-likelihood of the components' own rows, which a union
explains by one component of the family with their moments.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, xlogy

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from .covariance import COVARIANCE_TYPES, CovarianceType


class DirectionUnions:
    """Directions of one concentration, or each of its own with pseudo-rows of the family's prior.

    What the rows of a part, n with the sum R, have as log-likelihood at its best is kappa |R|
    or, for the negative entropy psi, (n + n0) psi((|R| + n0 r0) / (n + n0)), up to what all
    parts have in common.

    Parameters
    ----------
    sums : ndarray of shape (M, d)
        Sums of the parts' rows.
    counts : ndarray of shape (M,)
        Numbers of rows, positive.
    n_pseudo, pseudo_length : float
        The pseudo-rows n0 and their resultant length r0.
    concentration : float or None
        The concentration kappa of all parts; None is one of its own for each.
    """

    def __init__(
        self,
        sums: Array,
        counts: Array,
        n_pseudo: float = 0.0,
        pseudo_length: float = 0.0,
        *,
        concentration: float | None = None,
    ) -> None:
        self.sums, self.counts = sums.copy(), counts.astype(np.float64)
        self._n_pseudo, self._length, self._concentration = n_pseudo, pseudo_length, concentration

    def excess(self, i: int) -> Array:
        """Return what joining part i with each part (M,) loses, beyond chance."""
        n, dim = self.counts, self.sums.shape[1]
        squares = np.einsum("md,md->m", self.sums, self.sums)
        joint = np.maximum(squares + squares[i] + 2 * self.sums @ self.sums[i], 0)
        own = self._value(n, squares)
        nothing = self._value(np.zeros(1), np.zeros(1))
        loss = own + own[i] - self._value(n + n[i], joint) - nothing
        excess: Array = loss - chance_gain(n, n[i], dim)
        return excess

    def join(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not to be used any more."""
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]

    def _value(self, n: Array, squares: Array) -> Array:
        if self._concentration is not None:
            along: Array = self._concentration * np.sqrt(squares)
            return along
        total = n + self._n_pseudo
        sums = np.sqrt(squares) + self._n_pseudo * self._length
        lengths = np.divide(sums, total, out=np.zeros_like(total), where=total > 0)
        value: Array = total * vmf.negentropy(np.minimum(lengths, 1 - 1e-12), self.sums.shape[1])
        return value


@dataclass
class EllipticalUnions:
    """Gaussian-like components, by their means and covariances.

    Covariances (M, d, d), (M, d) or (M,) count with some pseudo-rows that have the pooled
    covariance's shape and their own size, so that parts of few rows do not seem to be worth
    more than they are; None is one covariance for all, in whose units the means are.
    """

    counts: Array
    means: Array
    covariances: Array | None
    kind: CovarianceType

    def __post_init__(self) -> None:
        self.counts, self.means = self.counts.astype(np.float64), self.means.copy()
        d = self.means.shape[1]
        if self.covariances is not None:
            self.covariances = self.covariances.copy()
            self._n_pseudo = self.kind.pseudo_rows(d)
            pooled = np.tensordot(self.counts, self.covariances, axes=1) / self.counts.sum()
            self._shape = pooled / self.kind.sizes(pooled[np.newaxis])[0]

    @classmethod
    def of_one_covariance(cls, counts: Array, means: Array, cholesky: Array) -> "EllipticalUnions":
        """Return components whose precision is U U', for an upper triangular U (d, d)."""
        return cls(counts, means @ cholesky, None, COVARIANCE_TYPES["tied"])

    def excess(self, i: int) -> Array:
        """Return what joining part i with each part (M,) loses, beyond chance."""
        n, m = self.counts, self.counts[i]
        gaps = self.means - self.means[i]
        if self.covariances is None:
            loss = 0.5 * n * (m / (n + m)) * np.einsum("md,md->m", gaps, gaps)
        else:
            own = n * self._log_det(n, self.covariances)
            joint = (n + m) * self._log_det(n + m, self._joint(i, gaps))
            loss = 0.5 * (joint - own - own[i])
        excess: Array = loss - chance_gain(n, m, self.means.shape[1])
        return excess

    def join(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not to be used any more."""
        n, m = self.counts[i], self.counts[j]
        if self.covariances is not None:
            self.covariances[i] = self._joint(i, self.means - self.means[i])[j]
        self.means[i] = (n * self.means[i] + m * self.means[j]) / (n + m)
        self.counts[i] += m

    def _joint(self, i: int, gaps: Array) -> Array:
        """Return the covariances of the unions of part i with each part."""
        assert self.covariances is not None
        share = self.counts[i] / (self.counts + self.counts[i])
        return self.kind.united(share, self.covariances, self.covariances[i], gaps)

    def _log_det(self, n: Array, covariances: Array) -> Array:
        """Return log-determinants (M,) of covariances with pseudo-rows."""
        axes = (-1,) + (1,) * (covariances.ndim - 1)
        pseudo = (self._n_pseudo / (n + self._n_pseudo)).reshape(axes)
        damped = (1 - pseudo) * covariances
        damped += pseudo * self.kind.sizes(covariances).reshape(axes) * self._shape
        if covariances.ndim == 3:
            log_det: Array = np.linalg.slogdet(damped)[1]
        elif covariances.ndim == 2:
            log_det = np.log(damped).sum(axis=1)
        else:
            log_det = self.means.shape[1] * np.log(damped)
        return log_det


GRAM_PARTS = 4096  # up to which products of all pairs of sums are kept, 128 MiB


class Merging(ABC):
    """Sums (M, D) and counts (M,) of parts, and what it costs to join two.

    Parameters
    ----------
    sums : ndarray of shape (M, D)
        What of the parts adds when they are joined.
    counts : ndarray of shape (M,)
        Numbers of rows, positive.
    dim : int
        Number of free directions in which a cloud of rows may be cut.
    """

    def __init__(self, sums: Array, counts: Array, dim: int) -> None:
        self.sums, self.counts = sums.copy(), counts.astype(np.float64)
        self._dim = dim
        self._squares = np.einsum("md,md->m", sums, sums)

    @cached_property
    def _gram(self) -> Array | None:
        return self.sums @ self.sums.T if len(self.sums) <= GRAM_PARTS else None

    def excess(self, i: int) -> Array:
        """Return what joining part i with each part (M,) loses, beyond chance."""
        products = self.sums @ self.sums[i] if self._gram is None else self._gram[i]
        both = np.maximum(self._squares + self._squares[i] + 2 * products, 0)
        return self.loss(i, both) - chance_gain(self.counts, self.counts[i], self._dim)

    def join(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not to be used any more."""
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]
        if self._gram is not None:
            self._gram[i] += self._gram[j]
            self._gram[:, i] += self._gram[:, j]
        self._squares[i] = self.sums[i] @ self.sums[i]

    @abstractmethod
    def loss(self, i: int, squares: Array) -> Array:
        """Return the loss of log-likelihood, with the squared lengths (M,) of joint sums."""

    @abstractmethod
    def log_likelihoods(self) -> Array:
        """Return the log-likelihood (M,) of the rows of each part under a component of its own."""

    def excess_in(self, rest: "Rest") -> Array:
        """Return what giving up each part (M,) to the rest of the rows loses, beyond chance.

        Chance is the largest of so many halved chi-squares as there are rows (Laurent and
        Massart, Annals of Statistics 28, 2000, lemma 1): a component that is put anywhere into
        the rest gains nothing on average, and one that is fitted there so much.
        """
        n, others = self.counts, rest.count
        apart = self.log_likelihoods() + xlogy(n, n) + xlogy(others, others)
        together = n * rest.log_density + xlogy(n + others, n + others)
        n_places = np.log(n.sum() + others)
        excess: Array = apart - together - (np.sqrt(self._dim / 2) + np.sqrt(n_places)) ** 2
        return excess


@dataclass
class Rest:
    """So many rows that belong to no part, and their log-density, the same for all."""

    count: float
    log_density: float


class DirectionMerging(Merging):
    """Directions of one concentration: kappa (|R_a| + |R_b| - |R_a + R_b|)."""

    def __init__(
        self, sums: Array, counts: Array, concentration: float, log_normalizer: float
    ) -> None:
        super().__init__(sums, counts, sums.shape[1])
        self._concentration, self._log_normalizer = concentration, log_normalizer

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood of each part (M,)."""
        along = self._concentration * np.sqrt(self._squares)
        likelihoods: Array = along + self.counts * self._log_normalizer
        return likelihoods

    def loss(self, i: int, squares: Array) -> Array:
        """Return the loss of log-likelihood (M,)."""
        lengths = np.sqrt(self._squares)
        loss: Array = self._concentration * (lengths[i] + lengths - np.sqrt(squares))
        return loss


class BallMerging(Merging):
    """Gaussians of own variance in all directions, with pseudo-rows of the pooled variance.

    Sums, and sums of squares (M,), are about the point `centre`.
    """

    def __init__(
        self,
        sums: Array,
        counts: Array,
        squares: Array,
        centre: Array,
        n_pseudo: float,
        pooled: float,
    ) -> None:
        super().__init__(sums, counts, sums.shape[1])
        self.second, self.centre = squares.astype(np.float64), centre
        self._n_pseudo, self.pooled = n_pseudo, pooled

    def join(self, i: int, j: int) -> None:
        """Add part j to part i."""
        super().join(i, j)
        self.second[i] += self.second[j]

    def loss(self, i: int, squares: Array) -> Array:
        """Return the loss of log-likelihood (M,)."""
        n, second = self.counts, self.second
        own = self._cost(n, second, self._squares)
        joint = self._cost(n + n[i], second + second[i], squares)
        extra = 0.5 * self._dim * self._n_pseudo * np.log(self.pooled)
        loss: Array = joint - own - own[i] + extra
        return loss

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood of each part (M,)."""
        scatter = np.maximum(self.second - self._squares / self.counts, 0)
        pseudo = self._n_pseudo * self._dim * self.pooled
        variances = (scatter + pseudo) / ((self.counts + self._n_pseudo) * self._dim)
        constants = self.counts * self._dim * np.log(2 * np.pi * variances)
        likelihoods: Array = -0.5 * (constants + scatter / variances)
        return likelihoods

    def _cost(self, n: Array, second: Array, squares: Array) -> Array:
        """Return minus the log-likelihood of parts, up to what all unions have in common."""
        d, n_pseudo = self._dim, self._n_pseudo
        scatter = np.maximum(second - squares / n, 0) + n_pseudo * d * self.pooled
        cost: Array = 0.5 * d * (n + n_pseudo) * np.log(scatter / ((n + n_pseudo) * d))
        return cost


def chance_gain(a: Array, b: Array, dim: int) -> Array:
    """Return what the best cut of one round cloud of a + b rows into a and b gains by chance.

    Cutting at a quantile of one direction gains n phi(z)^2 / (2 p (1 - p)) nats, for the normal
    density phi at the quantile z of p = a / n; choosing the best of `dim` directions adds to
    its root about sqrt(dim / 2).
    """
    n = a + b
    p = np.clip(np.minimum(a, b) / n, 1e-12, 0.5)
    z = ndtri(p)
    along = n * np.exp(-(z**2)) / (4 * np.pi * p * (1 - p))
    gain: Array = (np.sqrt(dim / 2) + np.sqrt(along)) ** 2
    return gain
