"""The units in which starts look at features: their spread within clusters, before any is found.

Features with the same spread may differ in how much of it lies between clusters. In units of the
whole spread one that tells all clusters apart counts no more than one of noise. The spread within
clusters is that of near rows, where near is measured in the same units: so it is a fixed point, as
in Art, Gnanadesikan and Kettenring, "Data-based metrics for cluster analysis", Utilitas Mathematica
21A, 1982. They take the nearest of all pairs of rows; here these are each row's own nearest, so
that clusters of any density count.
"""

import numpy as np
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..rows.changed import divided
from ..rows.sources import RowSource
from .imputed import MIN_WHOLE_ROWS, imputed, whole_rows

# Rows that are compared with each other, and more of many components: so many for each, up to a
# limit. With 200, units are off by 5 to 10 % (17 kinds of data), in some milliseconds; 600 halve
# that, in nine times as long.
N_COMPARED = 200
N_COMPARED_PER_COMPONENT = 4
MAX_COMPARED = 1000

# A row's nearest rows are half as many as there are rows for each component: so they are mostly of
# its own cluster. A quarter is noisy where rows are few; as many as a cluster has, reach others.
NEAR_SHARE = 0.5

# Rounds of near rows and their spread. Most units settle after three, those that matter most
# (iris, a single feature that tells clusters apart) after five.
N_ROUNDS = 5

# The first units exaggerate what each feature shows alone: from milder ones, rounds of near rows do
# not find a feature that tells clusters apart among others that are noise. With the power 1 it
# was missed where five clusters were 6 to 10 standard deviations apart, among 5 to 19 features of
# noise; with 3 it was found. Of other data, rounds lead from either to the same units.
FIRST_POWER = 3

# The least variance of a feature among near rows, of the largest: features that are constant there,
# as labels of classes are, would be all that counts. With 1e-2 clusters 100 standard deviations
# apart in one of 30 features were missed in 6 of 8 sets.
MIN_RATIO = 1e-4

# Features that vary less count as constant: squares of differences would underflow.
LEAST_RANGE = 1e-100

# Units keep eight binary digits: rounding of sums changes none of them in most cases.
RATIO_PRECISION = 2.0**8


def units_of_clusters(spread: Array, rows: RowSource, n_components: int) -> Array:
    """Return the spread of each feature (d,) within clusters, from its spread in all rows."""
    return spread * _spread_within_clusters(divided(rows, spread), n_components)


def _spread_within_clusters(rows: RowSource, n_components: int) -> Array:
    """Return the spread of each feature (d,) within clusters, as a part of that of all rows.

    The mean variance of features in such units is 1.
    """
    values, weights = _distinct(*_compared_rows(rows, n_components))
    n_near = max(round(NEAR_SHARE * len(values) / n_components), 1)
    varies = np.ptp(values, axis=0) > LEAST_RANGE
    if n_near >= len(values) or not varies.any():
        return np.ones(rows.n_features)
    # Products of far rows round their differences away. What is subtracted is a value that a
    # row has: so a shift that is exact changes nothing.
    values = values[:, varies]
    values = values - np.sort(values, axis=0)[len(values) // 2]
    ratios = _least_spacings(values, max(n_near // 2, 1)) ** FIRST_POWER
    for _ in range(N_ROUNDS):
        ratios = np.maximum(ratios, MIN_RATIO * ratios.max())
        within = _variance_of_near_rows(values / np.sqrt(ratios), weights, n_near)
        if not within.any():  # near rows differ by rounding alone
            break
        ratios = within * ratios
    ratios = np.maximum(ratios, MIN_RATIO * ratios.max())
    of_all = np.full(rows.n_features, ratios.max())  # a constant feature has no other
    of_all[varies] = ratios
    spread = np.sqrt(of_all * np.mean(1 / of_all))
    mantissas, exponents = np.frexp(spread)
    return np.ldexp(np.rint(mantissas * RATIO_PRECISION) / RATIO_PRECISION, exponents)


def _compared_rows(rows: RowSource, n_components: int) -> tuple[Array, Array]:
    """Return some rows without missing values, as dense float64, and their weights."""
    size = min(max(N_COMPARED, N_COMPARED_PER_COMPONENT * n_components), MAX_COMPARED)
    if rows.incomplete:
        whole, _ = whole_rows(rows, size)
        if whole is not None and whole.n_rows >= MIN_WHOLE_ROWS * n_components:
            rows = whole
        else:
            rows = imputed(rows)
    numbers, weights = rows.draw(size, 0)  # one sample for all starts: units are of the data
    return rows.take(numbers), weights


def _distinct(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return distinct rows and the sums of their weights: copies would be all that is near."""
    distinct, numbers = np.unique(values, axis=0, return_inverse=True)
    return distinct, np.bincount(numbers.ravel(), weights=weights)


def _least_spacings(values: Array, step: int) -> Array:
    """Return the median square distance of values `step` ranks apart, (d,), of the largest one.

    Distances between clusters are few, so that it is small for a feature that tells clusters apart.
    Of features that mostly repeat values, as counts do, ranks tell nothing: they have the median of
    the other features.
    """
    ordered = np.sort(values, axis=0)
    spacings = np.median((ordered[step:] - ordered[:-step]) ** 2, axis=0)
    repeats = spacings == 0
    if repeats.all():
        return np.ones(len(spacings))
    spacings[repeats] = np.median(spacings[~repeats])
    relative: Array = spacings / spacings.max()
    return relative


def _variance_of_near_rows(values: Array, weights: Array, n_near: int) -> Array:
    """Return the variance of each feature (d,), by differences of rows and their nearest rows."""
    distances = cdist(values, values, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    farthest = np.partition(distances, n_near - 1, axis=1)[:, [n_near - 1]]
    pairs = (distances <= farthest) * weights[:, None]
    squares = pairs.sum(axis=1) @ values**2 + pairs.sum(axis=0) @ values**2
    squares -= 2 * np.einsum("nd,nd->d", values, pairs @ values)
    variances: Array = np.maximum(squares, 0) / (2 * pairs.sum())
    return variances
