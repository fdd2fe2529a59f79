"""Scores and moments of Gaussian components: where each is exact, and how it is fast.

Where the means lie within `NEAR` standard deviations of each other, products with features
about one common origin are exact enough (they lose the square of that ratio, four digits of
sixteen) and several times faster; elsewhere differences from each mean are taken. The choice
depends on the parameters alone, so it is the same for every number of threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._kernels.gaussian import (
    difference_moments,
    difference_scores,
    gap_norms,
    gap_products,
    gap_squares,
    single_scores,
    white_scores,
)
from .chunks import Array
from .products import FEW_ROWS, TILE, feature_product, feature_sums, tiles
from .shares import DenseShares, Shares, dense_resp

NEAR = 100.0
SINGLE_SPREAD = 16.0  # standard deviations up to which float32 rows are scored in float32
SINGLE_DIM = 128  # up to as many features: errors grow with their number
SINGLE = (1e-30, 1e30)  # sizes of what keeps its digits in float32
WHITE = 2**16  # numbers to whiten at once, which stay in the processor's second cache
PACK = 1 / 8  # density of shares below which visiting the positive ones alone is cheaper


@dataclass(frozen=True)
class GaussianComponents:
    """K Gaussian components, and what scoring needs, derived once a step.

    `cholesky` is scikit-learn's precisions_cholesky_: upper triangular U with precision U U'.
    Moments are taken about `origins` (K, d): one common point where `common_origin`, else the
    means. `spread` is the largest distance of a mean from that point in standard deviations.
    """

    means: Array
    covariances: Array
    cholesky: Array
    log_det: Array
    origins: Array
    spread: float

    @property
    def common_origin(self) -> bool:
        """Whether features about one common origin are exact enough."""
        return self.spread < NEAR

    @property
    def single_precision(self) -> bool:
        """Whether differences taken in float32 are exact enough for rows in float32."""
        if self.means.shape[1] > SINGLE_DIM or not self.spread < SINGLE_SPREAD:
            return False
        low, high = SINGLE
        scales = (self.cholesky > low) & (self.cholesky < high)
        return bool(scales.all() and (np.abs(self.origins[0]) < high).all())


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
    labels, factors = shares.labels[tile], shares.factors[tile]
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


def full_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K).

    About a common origin rows are whitened for many components by one product, and white
    means subtracted then: that loses no more than the spread, two digits.
    """
    if components.common_origin:
        return _white_scores(X, components)
    K, d = components.means.shape
    squares = np.empty((K, len(X)))
    gaps, white = np.empty((TILE, d)), np.empty((TILE, d))
    for tile in tiles(len(X)):
        n = tile.stop - tile.start
        for k in range(K):
            np.subtract(X[tile], components.means[k], out=gaps[:n])
            np.dot(gaps[:n], components.cholesky[k], out=white[:n])
            np.einsum("nd,nd->n", white[:n], white[:n], out=squares[k, tile])
    squares *= -0.5
    scores: Array = np.ascontiguousarray(squares.T)
    return scores


def _white_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared distances, by products for several components at once."""
    K, d = components.means.shape
    origin, scores = components.origins[0], np.empty((len(X), K))
    size = max(1, WHITE // d**2)
    for first in range(0, K, size):
        cholesky = components.cholesky[first : first + size]
        centres = components.means[first : first + size] - origin
        matrix = np.ascontiguousarray(cholesky.transpose(1, 2, 0)).reshape(d, -1)
        shifts = np.ascontiguousarray(np.einsum("ki,kij->jk", centres, cholesky))
        n_rows = max(FEW_ROWS, WHITE // matrix.shape[1])
        white = np.empty((n_rows, matrix.shape[1]))
        for tile in tiles(len(X), n_rows):
            n = tile.stop - tile.start
            np.dot(X[tile] - origin, matrix, out=white[:n])
            white_scores(white[:n].reshape(n, d, -1), shifts, first, scores[tile])
    return scores


def full_moments(X: Array, shares: Shares, components: GaussianComponents) -> tuple[Array, Array]:
    """Return first (K, d) and second (K, d, d) moments about the origins.

    Products of pairs are made once for all components; where most shares are zero, or
    the means are far apart, each component takes its own rows.
    """
    K, d = components.means.shape
    first, second = np.zeros((K, d)), np.zeros((K, d, d))
    if components.common_origin and isinstance(shares, DenseShares) and shares.denser_than(PACK):
        size = d + d * (d + 1) // 2
        both = feature_sums(gap_products, X, components.origins[0], shares, (K, size))
        upper = np.triu_indices(d)
        second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = both[:, d:]
        return both[:, :d], second
    for k, gaps, weighted in weighted_gaps(X, shares, components.origins):
        first[k] += weighted.sum(axis=0)
        second[k] += np.dot(weighted.T, gaps)
    return first, second


def tied_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    origin = components.means.mean(axis=0)
    white = np.dot(X - origin, components.cholesky)
    centres = np.dot(components.means - origin, components.cholesky)
    if components.common_origin:
        halves, constants = np.full(len(centres), -0.5), np.einsum("kd,kd->k", centres, centres)
        matrix = np.vstack([centres.T, halves, -0.5 * constants])
        return feature_product(gap_norms, white, np.zeros_like(origin), matrix)
    scores = np.empty((len(X), len(centres)))
    columns = np.ascontiguousarray(centres.T)
    difference_scores(white, columns, np.ones_like(columns), scores)
    return scores


def tied_moments(X: Array, shares: Shares, components: GaussianComponents) -> tuple[Array, Array]:
    """Return first (K, d) moments and the sum (d, d) of the second about the origins."""
    K, d = components.means.shape
    if components.common_origin:
        gaps = X - components.origins[0]
        resp = dense_resp(shares, K)
        first = np.dot(resp.T, gaps)
        gaps *= np.sqrt(np.dot(resp, np.ones(K)))[:, None]
        return first, np.dot(gaps.T, gaps)
    first, second = np.zeros((K, d)), np.zeros((d, d))
    for k, gaps, weighted in weighted_gaps(X, shares, components.origins):
        first[k] += weighted.sum(axis=0)
        second += np.dot(weighted.T, gaps)
    return first, second


def diagonal_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    if X.dtype == np.float32 and components.single_precision:
        single = _single_scores(X, components)
        if single is not None:
            return single
    if components.common_origin:
        precisions = components.cholesky**2
        centres = components.means - components.origins[0]
        constants = np.einsum("kd,kd,kd->k", centres, centres, precisions)
        matrix = np.vstack([(precisions * centres).T, -0.5 * precisions.T, -0.5 * constants])
        return feature_product(gap_squares, X, components.origins[0], matrix)
    scores = np.empty((len(X), len(components.means)))
    columns = np.ascontiguousarray(components.means.T)
    difference_scores(X, columns, np.ascontiguousarray(components.cholesky.T), scores)
    return scores


def diagonal_moments(
    X: Array, shares: Shares, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return first and second moments (K, d) about the origins."""
    K, d = components.means.shape
    if components.common_origin:
        both = feature_sums(gap_squares, X, components.origins[0], shares, (K, 2 * d))
        return both[:, :d], both[:, d:]
    first, second = np.zeros((K, d)), np.zeros((K, d))
    difference_moments(X, components.origins, dense_resp(shares, K), first, second)
    return first, second


def spherical_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    if components.common_origin:
        precisions = components.cholesky**2
        centres = components.means - components.origins[0]
        constants = np.einsum("kd,kd->k", centres, centres) * precisions
        matrix = np.vstack([(precisions[:, None] * centres).T, -0.5 * precisions, -0.5 * constants])
        return feature_product(gap_norms, X, components.origins[0], matrix)
    scores = np.empty((len(X), len(components.means)))
    columns = np.ascontiguousarray(components.means.T)
    difference_scores(X, columns, np.tile(components.cholesky, (len(columns), 1)), scores)
    return scores


def spherical_moments(
    X: Array, shares: Shares, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return first moments (K, d) and summed second moments (K,) about the origins."""
    K, d = components.means.shape
    if components.common_origin:
        both = feature_sums(gap_norms, X, components.origins[0], shares, (K, d + 1))
        return both[:, :d], both[:, d]
    first, second = np.zeros((K, d)), np.zeros((K, d))
    difference_moments(X, components.origins, dense_resp(shares, K), first, second)
    return first, second.sum(axis=1)


def _single_scores(X: Array, components: GaussianComponents) -> Array | None:
    """Return the scores of float32 rows under diagonal covariances in float32, if they fit."""
    origin = components.origins[0].astype(np.float32)
    scales = components.cholesky.astype(np.float32)
    shifts = ((components.means - origin) * scales).astype(np.float32)
    scores = np.empty((len(X), len(scales)), dtype=np.float32)
    return scores if single_scores(X, origin, scales, shifts, scores) else None
