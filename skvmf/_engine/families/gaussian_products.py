"""Matrix products of Gaussian components: scores and moments of blocks of rows.

Scores are taken by differences from each mean, which are exact at any offset, and so are moments;
but if the means lie within `MAX_COMMON_SPREAD` standard deviations of their centre, these are about
one common origin, which is faster and loses four digits of sixteen at most.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._kernels import gaussian as score_kernels
from ..._kernels.gaussian import (
    BLOCK_FEATURES,
    BLOCK_ROWS,
    difference_moments,
    gap_norms,
    gap_products,
    gap_squares,
)
from ..._kernels.rows import add_dense_responsibilities, add_labelled_rows
from ..._typing import Array
from .responsibilities import DenseResponsibilities, Responsibilities, as_dense
from .tiles import MIN_TILE_ROWS, TILE_ROWS, aligned, tiles, work_rows

# Standard deviations from a mean to the common origin: moments about that lose the square of so
# much, four digits.
MAX_COMMON_SPREAD = 100.0
# Standard deviations up to which float32 rows are scored in float32: that moves a mean by a
# millionth of a standard deviation, and a responsibility by less than 1e-4.
MAX_SINGLE_SPREAD = 16.0
SINGLE_SCORE = -0.5 * MAX_SINGLE_SPREAD**2  # of a row that far from a mean
MAX_SINGLE_DIM = 128  # up to as many features: errors grow with their number
SINGLE_RANGE = (1e-30, 1e30)  # sizes of what keeps its digits in float32
MIN_DENSITY = 1 / 8  # of responsibilities; below, visiting the positive ones alone is cheaper
# From so many features on it is cheaper below this: with 64, products of pairs took 4.4 ms for 20
# components, of which a row counted in three, and those of each component's own rows 2.
MANY_FEATURES = 32
MIN_DENSITY_OF_MANY = 1 / 4
TILE_FEATURES = 2**16  # entries that stay in the processor's second cache
MAX_TILE_FEATURES = 2**19  # entries that stay in the third
TILE_GAPS = 2**17  # differences from a mean taken at once: calls cost as much as few of them


@dataclass(frozen=True, eq=False)
class GaussianComponents:
    """K Gaussian components, and arrays for scoring, derived once per step.

    `cholesky` is scikit-learn's precisions_cholesky_. Moments are `centred_at` (K, d): one
    common point, or the means if one is more than `MAX_COMMON_SPREAD` standard deviations
    (`spread`) off.
    """

    means: Array
    covariances: Array
    cholesky: Array
    log_det: Array
    centred_at: Array
    spread: float

    def __len__(self) -> int:
        return len(self.means)

    @property
    def common_origin(self) -> bool:
        """Whether features about one common origin are exact enough."""
        return self.spread < MAX_COMMON_SPREAD

    @property
    def single_precision(self) -> bool:
        """Whether differences taken in float32 are exact enough for rows in float32."""
        if self.means.shape[1] > MAX_SINGLE_DIM or not self.spread < MAX_SINGLE_SPREAD:
            return False
        low, high = SINGLE_RANGE
        scales = (self.cholesky > low) & (self.cholesky < high)
        return bool(scales.all() and (np.abs(self.centred_at[0]) < high).all())

    @cached_property
    def for_missing(self) -> tuple[Array, ...]:
        """Precisions and lower roots (K, d, d), of full or tied covariances."""
        K, d = self.means.shape
        roots = np.swapaxes(self.cholesky, -1, -2)
        both = self.cholesky @ roots, roots
        return tuple(np.ascontiguousarray(np.broadcast_to(each, (K, d, d))) for each in both)

    @cached_property
    def by_pattern(self) -> dict[bytes, Any]:
        """What scores of rows with missing values keep, by what is observed."""
        return {}

    @cached_property
    def for_full(self) -> tuple[Array, ...]:
        """Roots and means, as the scores of full covariances take them."""
        return _roots(self.cholesky), _in_fours(self.means)

    @cached_property
    def for_tied(self) -> tuple[Array, ...]:
        """An origin, the root, and whitened means about that origin."""
        origin = self.means.mean(axis=0)
        white = np.dot(self.means - origin, self.cholesky)
        return origin, _roots(self.cholesky), _in_fours(white)

    @cached_property
    def for_diagonal(self) -> tuple[Array, ...]:
        """An origin, means about it, and inverse standard deviations."""
        origin = np.zeros(self.means.shape[1])
        return origin, _in_fours(self.means), _in_fours(self.cholesky)

    @cached_property
    def for_diagonal_in_single(self) -> tuple[Array, ...] | None:
        """The same in float32, where that is exact enough for rows in float32."""
        if not self.single_precision:
            return None
        origin = self.centred_at[0].astype(np.float32)
        means = (self.means - origin).astype(np.float32)
        return origin, _in_fours(means), _in_fours(self.cholesky.astype(np.float32))


def feature_sums(
    features: Callable[..., None],
    X: Array,
    origin: Array,
    responsibilities: Responsibilities,
    size: tuple[int, int],
) -> Array:
    """Return sums (K, n_features) of features about an origin, weighted by responsibilities."""
    K, n_features = size
    sums = aligned(K + K % 2, n_features)  # components are summed in pairs,
    n_rows = min(max(MIN_TILE_ROWS, TILE_FEATURES // n_features), MAX_TILE_FEATURES // n_features)
    values = work_rows("features", max(4, n_rows // 4 * 4), n_features)  # and rows in fours
    for tile in tiles(len(X), len(values)):
        features(X[tile], origin, values)
        of_tile = values[: tile.stop - tile.start]
        if isinstance(responsibilities, DenseResponsibilities):
            add_dense_responsibilities(of_tile, responsibilities.resp[tile], sums)
        else:
            labels = responsibilities.labels[tile]
            add_labelled_rows(of_tile, labels, responsibilities.factors[tile], sums)
    return sums[:K, :n_features]


def component_rows(
    responsibilities: Responsibilities, n_components: int, tile: slice
) -> Iterator[tuple[int, Array | slice, Array]]:
    """Yield each component with its rows of the tile, without many zeros, and responsibilities."""
    if isinstance(responsibilities, DenseResponsibilities):
        for k, resp in enumerate(np.ascontiguousarray(responsibilities.resp[tile].T)):
            rows = np.flatnonzero(resp != 0)  # booleans are found ten times as fast
            # Of more than half the rows, products with zeros cost less than a copy without them.
            if 2 * len(rows) > len(resp):
                yield k, slice(None), resp
            elif len(rows):
                yield k, rows, resp[rows]
        return
    labels = responsibilities.labels[tile]
    factors = responsibilities.factors[tile]
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_components))
    for k, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            yield k, rows, factors[rows]


def moments_by_component(
    X: Array, responsibilities: Responsibilities, centred_at: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Yield component and first (d,) and second (d, d) moments about its origin, by tiles."""
    K, d = centred_at.shape
    n_rows = min(max(TILE_ROWS, TILE_GAPS // d), len(X))
    gaps, weighted = np.empty((n_rows, d)), np.empty((n_rows, d))
    for tile in tiles(len(X), n_rows):
        rows_of_tile = X[tile]
        for k, rows, resp in component_rows(responsibilities, K, tile):
            n = len(resp)
            np.subtract(rows_of_tile[rows], centred_at[k], out=gaps[:n])
            np.multiply(gaps[:n], resp[:, None], out=weighted[:n])
            yield k, np.dot(resp, gaps[:n]), np.dot(weighted[:n].T, gaps[:n])


def full_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    K, d = components.means.shape
    roots, means = components.for_full
    work = _work_space(2 * roots.shape[1] + 4, K)
    scores = np.empty((len(X), K))
    score_kernels.full_scores(X, np.zeros(d), roots, means, np.full(K, -0.5), *work, scores)
    return scores


def full_moments(
    X: Array, responsibilities: Responsibilities, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return centred first (K, d) and second (K, d, d) moments.

    Products of pairs are made once for all components; where most responsibilities are
    zero, or too small to count, or the means are far apart, each component takes its own rows.
    """
    K, d = components.means.shape
    least_density = MIN_DENSITY
    if d >= MANY_FEATURES:
        least_density = MIN_DENSITY_OF_MANY
        if isinstance(responsibilities, DenseResponsibilities):
            responsibilities = responsibilities.without_negligible()
    if (
        components.common_origin
        and isinstance(responsibilities, DenseResponsibilities)
        and responsibilities.denser_than(least_density)
    ):
        size = K, d + d * (d + 1) // 2
        both = feature_sums(gap_products, X, components.centred_at[0], responsibilities, size)
        return both[:, :d], both[:, d:].take(_index_of_pairs(d), axis=1)
    first, second = np.zeros((K, d)), np.zeros((K, d, d))
    for k, first_k, second_k in moments_by_component(X, responsibilities, components.centred_at):
        first[k] += first_k
        second[k] += second_k
    return first, second


@lru_cache(maxsize=1)  # of the fit that runs
def _index_of_pairs(d: int) -> Array:
    """Return where the product of features i and j is among those of pairs, (d, d)."""
    rows, columns = np.triu_indices(d)
    index = np.empty((d, d), dtype=np.intp)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index


def tied_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    K = len(components.means)
    origin, root, means = components.for_tied
    scores = np.empty((len(X), K))
    work = _work_space(2 * len(root), K)
    score_kernels.tied_scores(X, origin, root, means, np.full(K, -0.5), *work, scores)
    return scores


def tied_moments(
    X: Array, responsibilities: Responsibilities, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return centred first moments, (K, d), and the sum of the second, (d, d)."""
    K, d = components.means.shape
    if components.common_origin:
        gaps = X - components.centred_at[0]
        resp = as_dense(responsibilities, K)
        first = np.dot(resp.T, gaps)
        # Weighted by the roots of the rows' sums of responsibilities: one product does for all K.
        gaps *= np.sqrt(np.dot(resp, np.ones(K)))[:, None]
        return first, np.dot(gaps.T, gaps)
    first, second = np.zeros((K, d)), np.zeros((d, d))
    for k, first_k, second_k in moments_by_component(X, responsibilities, components.centred_at):
        first[k] += first_k
        second += second_k
    return first, second


def diagonal_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K).

    If they are taken in float32, rows far from all means are scored again in float64: of
    large scores single precision keeps too few digits to tell components apart.
    """
    single = components.for_diagonal_in_single if X.dtype == np.float32 else None
    if single is None:
        return _diagonal_scores(X, *components.for_diagonal)
    scores = _diagonal_scores(X, *single)
    if score_kernels.count_rows_below(scores, np.float32(SINGLE_SCORE)):
        outliers = ~(scores >= SINGLE_SCORE).any(axis=1)
        scores = scores.astype(np.float64)
        scores[outliers] = _diagonal_scores(X[outliers], *components.for_diagonal)
    return scores


def _diagonal_scores(X: Array, origin: Array, means: Array, scales: Array) -> Array:
    """Return scores of the type of the origin."""
    K = len(means)
    dtype = origin.dtype
    scores = np.empty((len(X), K), dtype)
    work = _work_space(BLOCK_FEATURES, K, dtype)
    factors = np.full(K, -0.5, dtype)
    score_kernels.diagonal_scores(X, origin, means, scales, factors, *work, scores)
    return scores


def diagonal_moments(
    X: Array, responsibilities: Responsibilities, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return centred first and second moments, (K, d)."""
    K, d = components.means.shape
    if components.common_origin:
        both = feature_sums(gap_squares, X, components.centred_at[0], responsibilities, (K, 2 * d))
        return both[:, :d], both[:, d:]
    first, second = np.zeros((K, d)), np.zeros((K, d))
    difference_moments(X, components.centred_at, as_dense(responsibilities, K), first, second)
    return first, second


def spherical_scores(X: Array, components: GaussianComponents) -> Array:
    """Return minus half the squared Mahalanobis distances, (n, K)."""
    return squared_distances(X, components.means, -0.5 * components.cholesky**2)


def squared_distances(X: Array, points: Array, factors: Array) -> Array:
    """Return squared distances (n, m) of rows from points (m, d), times a factor for each."""
    m, d = points.shape
    distances = np.empty((len(X), m))
    work = _work_space(BLOCK_FEATURES, m)
    score_kernels.spherical_scores(X, np.zeros(d), _in_fours(points), factors, *work, distances)
    return distances


def spherical_moments(
    X: Array, responsibilities: Responsibilities, components: GaussianComponents
) -> tuple[Array, Array]:
    """Return centred first moments, (K, d), and the second summed over features, (K,)."""
    if not components.common_origin:
        first, second = diagonal_moments(X, responsibilities, components)
        return first, second.sum(axis=1)
    K, d = components.means.shape
    both = feature_sums(gap_norms, X, components.centred_at[0], responsibilities, (K, d + 1))
    return both[:, :d], both[:, d]


def _work_space(
    n_columns: int, n_totals: int, dtype: npt.DTypeLike = np.float64
) -> tuple[Array, Array]:
    """Return work space for columns of features and of totals of a kernel's block of rows."""
    columns = work_rows("rows", 1, n_columns * BLOCK_ROWS, dtype)[0]
    totals = work_rows("totals", 1, n_totals * BLOCK_ROWS, dtype)[0]
    return columns, totals


def _in_fours(matrix: Array) -> Array:
    """Return a matrix (n, d) with zeros up to a multiple of four columns."""
    n, d = matrix.shape
    padded = np.zeros((n, _fours(d)), matrix.dtype)
    padded[:, :d] = matrix
    return padded


def _roots(cholesky: Array) -> Array:
    """Return the lower triangular transposes (..., D, D) of upper triangular matrices."""
    *shape, d = cholesky.shape[:-1]
    roots = np.zeros((*shape, _fours(d), _fours(d)))
    roots[..., :d, :d] = np.swapaxes(cholesky, -1, -2)
    return roots


def _fours(d: int) -> int:
    return -(-d // 4) * 4
