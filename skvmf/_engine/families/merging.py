"""Merging components: what a pair loses in log-likelihood, and greedy merging.

This is Ward's method (Journal of the American Statistical Association 58, 1963) with losses of
log-likelihood in place of squares. Cutting one cluster in two gains log-likelihood, too: by
chance, and the more, the more rows and features it has. `chance_gain` is taken off the losses
(derived here), or large clusters would be cut while small neighbours are merged.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, xlogy

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..rows.blocks import BufferPool
from ..rows.parallel import for_each
from .background import NO_BACKGROUND, Background
from .covariance import CovarianceType, per_component
from .family import MergeCost
from .products import TILE_ROWS, tiles

MAX_PAIRED = 2048  # parts up to which all pairs are compared; more are compared with their
NEAREST = 32  # nearest ones only
_MOST_DISTANCES, CHUNK = 2**24, 64  # of points, kept by a thread; of which one is the least


@dataclass
class _SumMergeCost(MergeCost):
    """Parts that are known by the sums of their rows and by the numbers of rows."""

    sums: Array  # (M, d)
    counts: Array  # (M,), positive

    def __post_init__(self) -> None:
        self.sums, self.counts = self.sums.copy(), self.counts.astype(np.float64)
        self.dim = self.sums.shape[1]
        self._squares = np.einsum("md,md->m", self.sums, self.sums)

    @cached_property
    def _products(self) -> Array | None:
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

    def _joint_squares(self, i: int, parts: Array | slice) -> Array:
        """Return the squared lengths of the sums of part i with each of some parts."""
        kept = self._products
        products = self.sums[parts] @ self.sums[i] if kept is None else kept[i, parts]
        return np.maximum(self._squares[parts] + self._squares[i] + 2 * products, 0)


@dataclass
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

    def losses(self, i: int, parts: Array | slice = slice(None)) -> Array:
        n = self.counts
        apart = self._values(n[parts], self._squares[parts])
        own, joint = self._values(n[[i]], self._squares[[i]]), self._joint_squares(i, parts)
        of_pseudo = self._values(np.zeros(1), np.zeros(1))
        return apart + own - self._values(n[parts] + n[i], joint) - of_pseudo

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
        return total * vmf.negentropy(np.minimum(means, 1 - 1e-12), self.dim)


@dataclass
class SphericalMergeCost(_SumMergeCost):
    """Spherical Gaussians with n0 pseudo-observations of the pooled variance each.

    The log-likelihood of n rows of scatter S is, up to what all parts have in common, -d/2 (n + n0)
    log((S + n0 d pooled) / ((n + n0) d)). Sums of rows and squared lengths (M,) are about `centre`.
    """

    row_squares: Array
    centre: Array
    n_pseudo: float
    pooled: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.row_squares = self.row_squares.astype(np.float64)

    def merge(self, i: int, j: int) -> None:
        super().merge(i, j)
        self.row_squares[i] += self.row_squares[j]

    def losses(self, i: int, parts: Array | slice = slice(None)) -> Array:
        n, squares, joint = self.counts, self.row_squares, self._joint_squares(i, parts)
        apart = self._costs(n[parts], squares[parts], self._squares[parts])
        own = self._costs(n[[i]], squares[[i]], self._squares[[i]])
        together = self._costs(n[parts] + n[i], squares[parts] + squares[i], joint)
        of_pseudo = 0.5 * self.dim * self.n_pseudo * np.log(self.pooled)
        return together - apart - own + of_pseudo

    def log_likelihoods(self) -> Array:
        scatter = np.maximum(self.row_squares - self._squares / self.counts, 0)
        pseudo = self.n_pseudo * self.dim * self.pooled
        variances = (scatter + pseudo) / ((self.counts + self.n_pseudo) * self.dim)
        constants = self.counts * self.dim * np.log(2 * np.pi * variances)
        return -0.5 * (constants + scatter / variances)

    def _costs(self, n: Array, row_squares: Array, squares: Array) -> Array:
        """Return minus the log-likelihoods, up to what all parts have in common."""
        d, n_pseudo = self.dim, self.n_pseudo
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
    means: Array  # (M, d); times U, for the precision U U', where the covariance is that of all
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

    def points(self) -> Array:
        if self.covariances is None:
            return self.means
        scales = self.kind.variances(self._shape[np.newaxis])
        return self.means / np.sqrt(scales)

    def losses(self, i: int, parts: Array | slice = slice(None)) -> Array:
        n, n_i = self.counts[parts], self.counts[i]
        if self.covariances is None:
            gaps = self.means[parts] - self.means[i]
            return 0.5 * n * (n_i / (n + n_i)) * np.einsum("md,md->m", gaps, gaps)
        apart = n * self._log_det(n, self.covariances[parts])
        own = n_i * self._log_det(self.counts[[i]], self.covariances[[i]])
        joint = (n + n_i) * self._log_det(n + n_i, self._joint_covariances(i, parts))
        return 0.5 * (joint - apart - own)

    def merge(self, i: int, j: int) -> None:
        n_i, n_j = self.counts[i], self.counts[j]
        if self.covariances is not None:
            self.covariances[i] = self._joint_covariances(i, np.array([j]))[0]
        self.means[i] = (n_i * self.means[i] + n_j * self.means[j]) / (n_i + n_j)
        self.counts[i] += n_j

    def _joint_covariances(self, i: int, parts: Array | slice) -> Array:
        """Return the covariances of part i merged with each of some parts."""
        assert self.covariances is not None
        n_i, gaps = self.counts[i], self.means[parts] - self.means[i]
        fraction = n_i / (self.counts[parts] + n_i)
        return self.kind.merged(fraction, self.covariances[parts], self.covariances[i], gaps)

    def _log_det(self, n: Array, covariances: Array) -> Array:
        """Return log-determinants (M,) of covariances with their pseudo-observations."""
        pseudo = per_component(self._n_pseudo / (n + self._n_pseudo), covariances)
        sizes = per_component(self.kind.sizes(covariances), covariances)
        shrunk = (1 - pseudo) * covariances
        shrunk += pseudo * sizes * self._shape
        if covariances.ndim == 3:
            return np.linalg.slogdet(shrunk)[1]
        return np.log(shrunk).sum(axis=1) if covariances.ndim == 2 else self.dim * np.log(shrunk)


_PLACES = 2**14  # per unit of the root of p


@dataclass
class OtherRows:
    """The number of rows that belong to no part, and the background that they belong to."""

    count: float = 0.0
    background: Background = NO_BACKGROUND

    def excess_losses(self, cost: MergeCost) -> Array:
        """Return what giving each part (M,) to the background loses, beyond chance.

        Chance is the largest of as many halved chi-squares as there are rows (Laurent and Massart,
        Annals of Statistics 28, 2000, lemma 1): what a component that is fitted anywhere gains on
        average.
        """
        excess = np.full(len(cost.counts), np.inf)
        for log_density in self.background.log_densities:
            n, others = cost.counts, self.count
            apart = cost.log_likelihoods() + xlogy(n, n) + xlogy(others, others)
            together = n * log_density + xlogy(n + others, n + others)
            n_places = np.log(n.sum() + others)
            excess = apart - together - (np.sqrt(cost.dim / 2) + np.sqrt(n_places)) ** 2
        return excess


_NO_ROWS = OtherRows()


class _CheapestMerges:
    """The parts that are left, and the merge of each that loses least beyond chance."""

    def __init__(self, cost: MergeCost) -> None:
        M, self.cost = len(cost.counts), cost
        self.alive, self._stale = np.ones(M, dtype=bool), np.zeros(M, dtype=bool)
        self.least, self.nearest = np.full(M, np.inf), np.zeros(M, dtype=np.intp)
        self._compare_all()

    def _compare_all(self) -> None:
        """Find the cheapest merge of each part, among all pairs or those of neighbours."""
        parts, self._neighbours = np.flatnonzero(self.alive), None
        if len(parts) > MAX_PAIRED:
            self._neighbours = _neighbours(self.cost.points(), parts)
        for i in parts.tolist():
            self._update(i)

    def _near(self, i: int) -> Array:
        known = self._neighbours
        parts = np.flatnonzero(self.alive) if known is None else known[i]
        return parts[self.alive[parts] & (parts != i)]

    def _update(self, i: int) -> tuple[Array, Array]:
        """Find the part that is cheapest to merge with part i; return all, and excess losses."""
        parts, self.least[i], self._stale[i] = self._near(i), np.inf, False
        if len(parts) == 0:
            return parts, np.empty(0)
        counts = self.cost.counts
        excess = self.cost.losses(i, parts) - chance_gain(counts[parts], counts[i], self.cost.dim)
        self.least[i], self.nearest[i] = excess.min(), parts[excess.argmin()]
        return parts, excess

    def first(self) -> int:
        """Return the part that is cheapest to merge; where its nearest is gone, look again."""
        i = int(self.least.argmin())
        while self._stale[i]:
            self._update(i)
            i = int(self.least.argmin())
        if self.least[i] == np.inf and self._neighbours is not None:  # no part has any left
            self._compare_all()
            return self.first()
        return i

    def remove(self, i: int) -> None:
        self.alive[i], self.least[i] = False, np.inf
        self._forget(i)

    def _forget(self, i: int) -> None:
        parts = self._near(i)
        self._stale[parts[self.nearest[parts] == i]] = True

    def join(self, i: int, j: int) -> None:
        """Add part j to part i, with its neighbours."""
        self.cost.merge(i, j)
        self._forget(i)
        self.remove(j)
        if self._neighbours is not None:
            lists = self._neighbours
            for part in np.setdiff1d(self._near(j), np.append(lists[i], i)).tolist():
                lists[part] = np.append(lists[part], i)
            lists[i] = np.union1d(self._near(i), self._near(j))
        parts, excess = self._update(i)
        closer = excess < self.least[parts]
        parts = parts[closer]
        self.least[parts], self.nearest[parts], self._stale[parts] = excess[closer], i, False


def merge_greedily(
    cost: MergeCost, n_parts: int, others: OtherRows = _NO_ROWS
) -> tuple[Array, list[tuple[int, int, float]]]:
    """Merge parts until so many are left; return their numbers, and merges as (i, j, loss).

    More than `MAX_PAIRED` parts are compared with their nearest ones only. Once no pair loses less
    than chance, a part that gains no more than chance is added to `others`.
    """
    cheapest, merges = _CheapestMerges(cost), []
    for _ in range(len(cost.counts) - n_parts):
        i = cheapest.first()
        if cheapest.least[i] >= 0:
            excess = np.where(cheapest.alive, others.excess_losses(cost), np.inf)
            part = int(excess.argmin())
            if excess[part] < 0:
                others.count += float(cost.counts[part])
                cheapest.remove(part)
                continue
        j = int(cheapest.nearest[i])
        chance = chance_gain(cost.counts[i], cost.counts[j], cost.dim)
        merges.append((i, j, float(cheapest.least[i] + chance)))
        cheapest.join(i, j)
    return np.flatnonzero(cheapest.alive), merges


def _neighbours(points: Array, parts: Array) -> list[Array]:
    """Return for some of the points (M, d) the nearest ones among them.

    If a point is one of the nearest of another, that is one of its own. Other points have none.
    """
    M, n_near = len(parts), min(NEAREST, len(parts) - 1)
    nearest = nearest_points(points[parts], points[parts], n_near, but_itself=True)
    pairs = np.repeat(np.arange(M), n_near), nearest.ravel()
    graph = csr_array((np.ones(nearest.size, dtype=bool), pairs), shape=(M, M))
    graph = csr_array(graph + graph.T)
    graph.sort_indices()
    lists = [np.empty(0, dtype=np.intp)] * (parts[-1] + 1)
    for part, near in zip(parts, np.split(graph.indices, graph.indptr[1:-1]), strict=True):
        lists[part] = parts[near]
    return lists


def nearest_points(points: Array, others: Array, n: int, *, but_itself: bool = False) -> Array:
    """Return the numbers of the n nearest of other points for each point, in float32.

    Points are scaled by a power of two: squares of far ones would overflow.
    """
    centre, (M, d) = others.mean(axis=0), others.shape
    points, others = points - centre, others - centre
    size = np.frexp(max(np.abs(points).max(), np.abs(others).max()))[1]
    points, others = np.ldexp(points, -size), np.ldexp(others, -size)
    nearest, buffers = np.empty((len(points), n), dtype=np.int32), BufferPool()
    # Squared distances, but for the points' own squares, are a product; what fills up is far away.
    left = np.ones((len(points), d + 1), np.float32)
    right = np.zeros((d + 1, -(-M // CHUNK) * CHUNK), np.float32)
    left[:, :d], right[:d, :M], right[d] = points, others.T, np.inf
    right[d, :M] = np.einsum("dm,dm->m", right[:d, :M], right[:d, :M])
    left[:, :d] *= -2

    def write(tile: slice) -> None:
        shape = len(left[tile]), right.shape[1]
        distances = np.dot(left[tile], right, out=buffers.acquire("distances", shape, np.float32))
        if but_itself:
            distances[np.arange(len(distances)), np.arange(len(points))[tile]] = np.inf
        nearest[tile] = _least(distances, n)
        buffers.release("distances", distances)

    for_each(write, tiles(len(points), max(1, min(TILE_ROWS, _MOST_DISTANCES // M))))
    return nearest


def _least(values: Array, n: int) -> Array:
    """Return the numbers of the n least in each row: they are in the n columns of chunks with such.

    A chunk is every m-th of `CHUNK` m values, so that few are compared with each other.
    """
    m = values.shape[1] // CHUNK
    if m <= n:
        return np.argpartition(values, n - 1, axis=1)[:, :n]
    least = values.reshape(len(values), CHUNK, m).min(axis=1)
    chunks = np.argpartition(least, n - 1, axis=1)[:, np.newaxis, :n]
    numbers = (chunks + m * np.arange(CHUNK)[:, np.newaxis]).reshape(len(values), -1)
    order = np.argpartition(np.take_along_axis(values, numbers, axis=1), n - 1, axis=1)[:, :n]
    return np.take_along_axis(numbers, order, axis=1)


def chance_gain(a: Array, b: Array, dim: int) -> Array:
    """Return what the best cut of one spherical cluster of a + b rows gains by chance, in nats.

    Cutting at a quantile of one direction gains n phi(z)^2 / (2 p (1 - p)), for n = a + b and the
    normal density phi at the quantile z of p = a / n; choosing the best of `dim` directions adds
    about sqrt(dim / 2) to its root. Quantiles take long: roots of gains are interpolated.
    """
    n = a + b
    roots, steps = _roots_of_gains()
    places = np.sqrt(np.minimum(a, b) / n) * _PLACES
    below = np.asarray(places).astype(np.intp)
    return (np.sqrt(dim / 2) + np.sqrt(n) * (roots[below] + (places - below) * steps[below])) ** 2


@cache
def _roots_of_gains() -> tuple[Array, Array]:
    """Return the roots of phi(z)^2 / (2 p (1 - p)) for p up to a half, and their differences."""
    p = (np.arange(int(_PLACES * np.sqrt(0.5)) + 3) / _PLACES) ** 2
    p = np.clip(p, 1e-12, 0.5)
    roots = np.exp(-0.5 * ndtri(p) ** 2) / np.sqrt(4 * np.pi * p * (1 - p))
    return roots, np.diff(roots)
