"""The four shapes of a covariance: scores and moments of each, where it is exact and fast.

Where the means lie within `NEAR` standard deviations of each other, products with features
about one common origin are exact enough (they lose the square of that ratio, four digits of
sixteen) and several times faster; elsewhere differences from each mean are taken. The choice
depends on the parameters alone, so it is the same for every number of threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg

from .._kernels.gaussian import (
    difference_moments,
    difference_scores,
    gap_norms,
    gap_products,
    gap_squares,
    single_scores,
)
from .posterior import DenseShares, Shares, dense_resp
from .products import TILE, feature_product, feature_sums, tiles
from .rows import Array

NEAR = 100.0
CLOSE = 16.0  # up to which float32 rows are scored in float32
SINGLE_DIM = 128  # up to as many features: errors grow with their number
SINGLE = (1e-30, 1e30)  # sizes of what keeps its digits in float32
PACK = 1 / 8  # density of shares below which visiting the positive ones alone is cheaper
MAX_PAIRS_DIM = 64  # features beyond which all products of pairs no longer stay there


@dataclass(frozen=True)
class Shape:
    """Components with covariances of one shape, and what scoring needs, derived once a step.

    `cholesky` is scikit-learn's precisions_cholesky_: upper triangular U with precision U U'.
    Moments are taken about `origins` (K, d): one common point where `near`, else the means.
    `spread` is the largest distance of a mean from the common point in standard deviations.
    """

    means: Array
    covariances: Array
    cholesky: Array
    log_det: Array
    origins: Array
    spread: float

    @property
    def near(self) -> bool:
        """Whether features about the common origin are exact enough."""
        return self.spread < NEAR

    @property
    def close(self) -> bool:
        """Whether differences taken in float32 are exact enough for rows in float32."""
        if self.means.shape[1] > SINGLE_DIM or not self.spread < CLOSE:
            return False
        low, high = SINGLE
        scales = (self.cholesky > low) & (self.cholesky < high)
        return bool(scales.all() and (np.abs(self.origins[0]) < high).all())


class CovarianceType(Protocol):
    """What differs between the four shapes."""

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a covariance is singular."""

    def log_det(self, cholesky: Array, dim: int) -> Array:
        """Return the log-determinants (K,) or (1,) of the Cholesky factors."""

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first (K, d) and second moments about the origins."""

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the covariances of moments; `first` and `second` are per unit of count."""

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return what covariances gain about points `gaps` (K, d) away from the means."""

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, in this shape for every component."""


def component_rows(
    shares: Shares, n_components: int, tile: slice
) -> Iterator[tuple[int, Array | slice, Array]]:
    """Yield each component with the rows of the tile that it shares in, and their shares.

    Rows without a share are left out where that saves half the work: sparse posteriors make
    this step cheaper.
    """
    if isinstance(shares, DenseShares):
        for k, share in enumerate(np.ascontiguousarray(shares.resp[tile].T)):
            rows = np.flatnonzero(share)
            if 2 * len(rows) > len(share):
                yield k, slice(None), share
            elif len(rows):
                yield k, rows, share[rows]
        return
    labels, factors = shares.columns[tile, 0], shares.values[tile, 0]
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_components))
    for k in range(n_components):
        rows = order[ends[k - 1] if k else 0 : ends[k]]
        if len(rows):
            yield k, rows, factors[rows]


def weighted_gaps(X: Array, shares: Shares, origins: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield component, differences from its origin, and the same times its shares, by tiles."""
    K, d = origins.shape
    gaps, weighted = np.empty((TILE, d)), np.empty((TILE, d))
    for tile in tiles(len(X)):
        rows_of_tile = X[tile]
        for k, rows, share in component_rows(shares, K, tile):
            n = len(share)
            np.subtract(rows_of_tile[rows], origins[k], out=gaps[:n])
            np.multiply(gaps[:n], share[:, None], out=weighted[:n])
            yield k, gaps[:n], weighted[:n]


class Full:
    """Each component has its own covariance, (K, d, d)."""

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a covariance is singular."""
        return np.array([_precision_cholesky(covariance) for covariance in covariances])

    def log_det(self, cholesky: Array, dim: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = np.log(np.diagonal(cholesky, axis1=1, axis2=2)).sum(axis=1)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        if offsets.shape[1] > MAX_PAIRS_DIM:
            return np.inf
        white = np.einsum("kd,kde->ke", offsets, cholesky)
        return float(np.linalg.norm(white, axis=1).max())

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        K, d = shape.means.shape
        squares = np.empty((K, len(X)))
        gaps, white = np.empty((TILE, d)), np.empty((TILE, d))
        for tile in tiles(len(X)):
            n = tile.stop - tile.start
            for k in range(K):
                np.subtract(X[tile], shape.means[k], out=gaps[:n])
                np.dot(gaps[:n], shape.cholesky[k], out=white[:n])
                np.einsum("nd,nd->n", white[:n], white[:n], out=squares[k, tile])
        squares *= -0.5
        scores: Array = np.ascontiguousarray(squares.T)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first (K, d) and second (K, d, d) moments about the origins.

        Products of pairs are made once for all components; where most shares are zero, or
        the means are far apart, each component takes its own rows.
        """
        K, d = shape.means.shape
        first, second = np.zeros((K, d)), np.zeros((K, d, d))
        if shape.near and isinstance(shares, DenseShares) and shares.denser_than(PACK):
            size = d + d * (d + 1) // 2
            both = feature_sums(gap_products, X, shape.origins[0], shares, (K, size))
            upper = np.triu_indices(d)
            second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = both[:, d:]
            return both[:, :d], second
        for k, gaps, weighted in weighted_gaps(X, shares, shape.origins):
            first[k] += weighted.sum(axis=0)
            second[k] += np.dot(weighted.T, gaps)
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the covariances of moments per unit of count."""
        covariances: Array = second - first[:, :, None] * first[:, None, :]
        np.einsum("kdd->kd", covariances)[...] += reg
        return covariances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K, d, d) of the gaps."""
        squares: Array = gaps[:, :, None] * gaps[:, None, :]
        return squares

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows, K times."""
        shares = counts / counts.sum()
        pooled = np.einsum("k,kde->de", shares, covariances) + _between(shares, means)
        return np.tile(pooled, (len(means), 1, 1))


class Tied:
    """All components share one covariance, (d, d)."""

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where the covariance is singular."""
        return _precision_cholesky(covariances)

    def log_det(self, cholesky: Array, dim: int) -> Array:
        """Return the log-determinant (1,) of the Cholesky factor."""
        return np.array([np.log(np.diagonal(cholesky)).sum()])

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        return float(np.linalg.norm(offsets @ cholesky, axis=1).max())

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        origin = shape.means.mean(axis=0)
        white = np.dot(X - origin, shape.cholesky)
        centres = np.dot(shape.means - origin, shape.cholesky)
        if shape.near:
            scores: Array = np.dot(white, centres.T)
            scores -= 0.5 * np.einsum("nd,nd->n", white, white)[:, None]
            scores -= 0.5 * np.einsum("kd,kd->k", centres, centres)
            return scores
        scores = np.empty((len(X), len(centres)))
        columns = np.ascontiguousarray(centres.T)
        difference_scores(white, columns, np.ones_like(columns), scores)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first (K, d) moments and the sum (d, d) of the second about the origins."""
        K, d = shape.means.shape
        if shape.near:
            gaps = X - shape.origins[0]
            resp = dense_resp(shares, K)
            return np.dot(resp.T, gaps), np.dot((gaps * resp.sum(axis=1)[:, None]).T, gaps)
        first, second = np.zeros((K, d)), np.zeros((d, d))
        for k, gaps, weighted in weighted_gaps(X, shares, shape.origins):
            first[k] += weighted.sum(axis=0)
            second += np.dot(weighted.T, gaps)
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the pooled covariance of moments per unit of count."""
        shares = counts / counts.sum()
        covariance: Array = second - np.dot((first * shares[:, None]).T, first)
        covariance.flat[:: len(covariance) + 1] += reg
        return covariance

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the pooled squares (d, d) of the gaps."""
        squares: Array = np.dot((gaps * (counts / counts.sum())[:, None]).T, gaps)
        return squares

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the covariance of all rows."""
        pooled: Array = covariances + _between(counts / counts.sum(), means)
        return pooled


class Diagonal:
    """Each component has its own variance along each feature, (K, d)."""

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a variance is not positive."""
        return _inverse_root(covariances)

    def log_det(self, cholesky: Array, dim: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = np.log(cholesky).sum(axis=1)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest offset (K, d) in standard deviations."""
        return float(np.abs(offsets * cholesky).max())

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        if X.dtype == np.float32 and shape.close:
            single = _single_scores(X, shape)
            if single is not None:
                return single
        if shape.near:
            precisions = shape.cholesky**2
            centres = shape.means - shape.origins[0]
            matrix = np.vstack([(precisions * centres).T, -0.5 * precisions.T])
            scores: Array = feature_product(gap_squares, X, shape.origins[0], matrix)
            scores -= 0.5 * np.einsum("kd,kd,kd->k", centres, centres, precisions)
            return scores
        scores = np.empty((len(X), len(shape.means)))
        columns = np.ascontiguousarray(shape.means.T)
        difference_scores(X, columns, np.ascontiguousarray(shape.cholesky.T), scores)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first and second moments (K, d) about the origins."""
        K, d = shape.means.shape
        if shape.near:
            both = feature_sums(gap_squares, X, shape.origins[0], shares, (K, 2 * d))
            return both[:, :d], both[:, d:]
        first, second = np.zeros((K, d)), np.zeros((K, d))
        difference_moments(X, shape.origins, dense_resp(shares, K), first, second)
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the variances of moments per unit of count."""
        variances: Array = _difference(second, first**2) + reg
        return variances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K, d) of the gaps."""
        return gaps**2

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the variances of all rows, K times."""
        shares = counts / counts.sum()
        pooled = shares @ covariances + np.diagonal(_between(shares, means))
        return np.tile(pooled, (len(means), 1))


class Spherical:
    """Each component has one variance for all features, (K,)."""

    def cholesky(self, covariances: Array) -> Array:
        """Return precisions_cholesky_; nan where a variance is not positive."""
        return _inverse_root(covariances)

    def log_det(self, cholesky: Array, dim: int) -> Array:
        """Return the log-determinants (K,) of the Cholesky factors."""
        total: Array = dim * np.log(cholesky)
        return total

    def spread(self, cholesky: Array, offsets: Array) -> float:
        """Return the largest length of offsets (K, d) in standard deviations."""
        return float((np.linalg.norm(offsets, axis=1) * cholesky).max())

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        if shape.near:
            precisions = shape.cholesky**2
            centres = shape.means - shape.origins[0]
            matrix = np.vstack([(precisions[:, None] * centres).T, -0.5 * precisions])
            scores: Array = feature_product(gap_norms, X, shape.origins[0], matrix)
            scores -= 0.5 * np.einsum("kd,kd->k", centres, centres) * precisions
            return scores
        scores = np.empty((len(X), len(shape.means)))
        columns = np.ascontiguousarray(shape.means.T)
        difference_scores(X, columns, np.tile(shape.cholesky, (len(columns), 1)), scores)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first moments (K, d) and summed second moments (K,) about the origins."""
        K, d = shape.means.shape
        if shape.near:
            both = feature_sums(gap_norms, X, shape.origins[0], shares, (K, d + 1))
            return both[:, :d], both[:, d]
        first, second = np.zeros((K, d)), np.zeros((K, d))
        difference_moments(X, shape.origins, dense_resp(shares, K), first, second)
        return first, second.sum(axis=1)

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the variances of moments per unit of count, averaged over features."""
        squares = np.einsum("kd,kd->k", first, first)
        variances: Array = _difference(second, squares) / first.shape[1] + reg
        return variances

    def scatter(self, counts: Array, gaps: Array) -> Array:
        """Return the squares (K,) of the gaps, averaged over features."""
        squares: Array = np.mean(gaps**2, axis=1)
        return squares

    def of_data(self, counts: Array, means: Array, covariances: Array) -> Array:
        """Return the mean variance of all rows, K times."""
        shares = counts / counts.sum()
        pooled = shares @ covariances + np.trace(_between(shares, means)) / means.shape[1]
        return np.full(len(means), pooled)


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    "full": Full(),
    "tied": Tied(),
    "diag": Diagonal(),
    "spherical": Spherical(),
}


def _precision_cholesky(covariance: Array) -> Array:
    """Return U with inverse covariance U U', or nan where there is none."""
    d = len(covariance)
    try:
        lower = linalg.cholesky(covariance, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return np.full((d, d), np.nan)
    rounding = 4 * d * np.finfo(float).eps * np.diagonal(covariance)
    if (np.diagonal(lower) ** 2 <= rounding).any():
        return np.full((d, d), np.nan)
    factor: Array = linalg.solve_triangular(lower, np.eye(d), lower=True, check_finite=False)
    return factor.T


def _between(shares: Array, means: Array) -> Array:
    """Return the covariance (d, d) of the means."""
    gaps = means - shares @ means
    between: Array = np.dot((gaps * shares[:, None]).T, gaps)
    return between


def _inverse_root(variances: Array) -> Array:
    positive = variances > 0
    roots: Array = np.where(positive, 1 / np.sqrt(np.where(positive, variances, 1)), np.nan)
    return roots


def _difference(second: Array, squares: Array) -> Array:
    """Return second - squares, and 0 where rounding is all that is left."""
    variances: Array = second - squares
    variances[variances <= 8 * np.finfo(float).eps * second] = 0
    return variances


def _single_scores(X: Array, shape: Shape) -> Array | None:
    """Return the scores of float32 rows under diagonal covariances in float32, if they fit."""
    origin = shape.origins[0].astype(np.float32)
    scales = shape.cholesky.astype(np.float32)
    shifts = ((shape.means - origin) * scales).astype(np.float32)
    scores = np.empty((len(X), len(scales)), dtype=np.float32)
    return scores if single_scores(X, origin, scales, shifts, scores) else None
