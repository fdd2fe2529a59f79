"""Merging parts of a sample: greedily, the pair whose union loses least beyond chance.

Ward's method (Journal of the American Statistical Association 58, 1963), with the loss of
log-likelihood in place of squares. A part that is one cloud of rows gains by being cut in two,
too, and the more the more rows and features it has; what it gains so is taken off (derived
here), or large components would be cut while small neighbours are joined.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, xlogy

from ..data.blocks import Array

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


def merge(parts: Merging, n_parts: int, rest: Rest | None = None) -> Array:
    """Join parts until there are so many; return which are left, in ascending order.

    Where there is a rest a part that is no more than chance is given up to it instead.
    """
    M = len(parts.counts)
    alive, stale = np.ones(M, dtype=bool), np.zeros(M, dtype=bool)
    best, nearest = np.full(M, np.inf), np.zeros(M, dtype=np.intp)

    def look(i: int) -> Array:
        excess = np.where(alive, parts.excess(i), np.inf)
        excess[i] = np.inf
        nearest[i] = excess.argmin()
        best[i], stale[i] = excess[nearest[i]], False
        return excess

    def cheapest() -> int:
        """Return the part whose union with its nearest loses least.

        A part whose nearest is gone may lose more than is noted, never less.
        """
        i = int(best.argmin())
        while stale[i]:
            look(i)
            i = int(best.argmin())
        return i

    def remove(i: int) -> None:
        alive[i], best[i] = False, np.inf
        stale[alive & (nearest == i)] = True

    def given_up() -> int | None:
        """Return a part that the rest has as well, once no two are one cut by chance."""
        if rest is None or best[cheapest()] < 0:
            return None
        excess = np.where(alive, parts.excess_in(rest), np.inf)
        i = int(excess.argmin())
        return i if excess[i] < 0 else None

    for i in range(M):
        look(i)
    for _ in range(M - n_parts):
        lost = given_up()
        if rest is not None and lost is not None:
            rest.count += float(parts.counts[lost])
            remove(lost)
            continue
        i = cheapest()
        j = int(nearest[i])
        parts.join(i, j)
        stale[alive & (nearest == i)] = True
        remove(j)
        excess = look(i)
        closer = alive & (excess < best)
        closer[i] = False
        best[closer], nearest[closer], stale[closer] = excess[closer], i, False
    return np.flatnonzero(alive)
