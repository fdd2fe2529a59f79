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

from .._kernels.gaussian import difference_moments, difference_scores
from .posterior import DenseShares, Shares, dense_resp
from .rows import Array

NEAR = 100.0


@dataclass(frozen=True)
class Shape:
    """Components with covariances of one shape, and what scoring needs, derived once a step.

    `cholesky` is scikit-learn's precisions_cholesky_: upper triangular U with precision U U'.
    Moments are taken about `origins` (K, d): one common point where `near`, else the means.
    """

    means: Array
    covariances: Array
    cholesky: Array
    log_det: Array
    origins: Array
    near: bool


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


def component_rows(shares: Shares, n_components: int) -> Iterator[tuple[int, Array | slice, Array]]:
    """Yield each component with the rows that it shares in, and their shares.

    Rows without a share are left out where that saves half the work: sparse posteriors make
    this step cheaper.
    """
    if isinstance(shares, DenseShares):
        for k, share in enumerate(np.ascontiguousarray(shares.resp.T)):
            rows = np.flatnonzero(share)
            if 2 * len(rows) > len(share):
                yield k, slice(None), share
            elif len(rows):
                yield k, rows, share[rows]
        return
    labels, factors = shares.columns[:, 0], shares.values[:, 0]
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_components))
    for k in range(n_components):
        rows = order[ends[k - 1] if k else 0 : ends[k]]
        if len(rows):
            yield k, rows, factors[rows]


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
        """Differences always: one product a component costs the same about its own mean."""
        return np.inf

    def scores(self, X: Array, shape: Shape) -> Array:
        """Return minus half the squared Mahalanobis distances, (n, K)."""
        scores = np.empty((len(shape.means), len(X)))
        gaps, white = np.empty_like(X), np.empty_like(X)
        for k, mean in enumerate(shape.means):
            np.subtract(X, mean, out=gaps)
            np.dot(gaps, shape.cholesky[k], out=white)
            np.einsum("nd,nd->n", white, white, out=scores[k])
        scores *= -0.5
        return np.ascontiguousarray(scores.T)

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first (K, d) and second (K, d, d) moments about the means."""
        K, d = shape.means.shape
        first, second = np.zeros((K, d)), np.zeros((K, d, d))
        for k, rows, share in component_rows(shares, K):
            gaps = X[rows] - shape.origins[k]
            weighted = gaps * share[:, None]
            first[k] = weighted.sum(axis=0)
            np.dot(weighted.T, gaps, out=second[k])
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the covariances of moments per unit of count."""
        covariances = second - first[:, :, None] * first[:, None, :]
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
            return _product_scores(white, centres, np.ones(len(centres)))
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
        for k, rows, share in component_rows(shares, K):
            gaps = X[rows] - shape.origins[k]
            weighted = gaps * share[:, None]
            first[k] = weighted.sum(axis=0)
            second += np.dot(weighted.T, gaps)
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the pooled covariance of moments per unit of count."""
        shares = counts / counts.sum()
        covariance = second - np.dot((first * shares[:, None]).T, first)
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
        if shape.near:
            features = _features(X, shape.origins[0])
            precisions = shape.cholesky**2
            centres = shape.means - shape.origins[0]
            matrix = np.vstack([(precisions * centres).T, -0.5 * precisions.T])
            scores: Array = np.dot(features, matrix)
            scores -= 0.5 * np.einsum("kd,kd,kd->k", centres, centres, precisions)
            return scores
        scores = np.empty((len(X), len(shape.means)))
        columns = np.ascontiguousarray(shape.means.T)
        difference_scores(X, columns, np.ascontiguousarray(shape.cholesky.T), scores)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first and second moments (K, d) about the origins."""
        K, d = shape.means.shape
        resp = dense_resp(shares, K)
        if shape.near:
            both = np.dot(resp.T, _features(X, shape.origins[0]))
            return both[:, :d], both[:, d:]
        first, second = np.zeros((K, d)), np.zeros((K, d))
        difference_moments(X, shape.origins, resp, first, second)
        return first, second

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the variances of moments per unit of count."""
        return _difference(second, first**2) + reg

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
            origin = shape.origins[0]
            return _product_scores(X - origin, shape.means - origin, shape.cholesky**2)
        scores = np.empty((len(X), len(shape.means)))
        columns = np.ascontiguousarray(shape.means.T)
        difference_scores(X, columns, np.tile(shape.cholesky, (len(columns), 1)), scores)
        return scores

    def moments(self, X: Array, shares: Shares, shape: Shape) -> tuple[Array, Array]:
        """Return first moments (K, d) and summed second moments (K,) about the origins."""
        K, d = shape.means.shape
        resp = dense_resp(shares, K)
        if shape.near:
            gaps = X - shape.origins[0]
            return np.dot(resp.T, gaps), np.dot(resp.T, np.einsum("nd,nd->n", gaps, gaps))
        first, second = np.zeros((K, d)), np.zeros((K, d))
        difference_moments(X, shape.origins, resp, first, second)
        return first, second.sum(axis=1)

    def covariances(self, counts: Array, first: Array, second: Array, reg: float) -> Array:
        """Return the variances of moments per unit of count, averaged over features."""
        squares = np.einsum("kd,kd->k", first, first)
        return _difference(second, squares) / first.shape[1] + reg

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
    variances = second - squares
    variances[variances <= 8 * np.finfo(float).eps * second] = 0
    return variances


def _features(X: Array, origin: Array) -> Array:
    """Return [x - c, (x - c)^2], (n, 2 d)."""
    n, d = X.shape
    features = np.empty((n, 2 * d))
    np.subtract(X, origin, out=features[:, :d])
    np.square(features[:, :d], out=features[:, d:])
    return features


def _product_scores(gaps: Array, centres: Array, precisions: Array) -> Array:
    """Return -p_k |gap - centre_k|^2 / 2 by one product, (n, K)."""
    scores: Array = np.dot(gaps, (centres * precisions[:, None]).T)
    scores -= 0.5 * np.outer(np.einsum("nd,nd->n", gaps, gaps), precisions)
    scores -= 0.5 * np.einsum("kd,kd->k", centres, centres) * precisions
    return scores
