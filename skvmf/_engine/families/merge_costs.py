"""What fitted components lose when two become one: the measures that a path goes down by.

Each is minus the change of the log-likelihood of the components' own rows, which a union
explains by one component of the family with their moments.
"""

from dataclasses import dataclass

import numpy as np

from ...distributions import vonmises_fisher as vmf
from ..data.blocks import Array
from ..initialization.agglomerate import chance_gain
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
