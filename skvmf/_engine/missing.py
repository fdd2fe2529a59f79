"""Rows with missing values: scores and moments by what is observed of them.

Missing values are integrated out (Ghahramani and Jordan, "Supervised learning from incomplete data
via an EM approach", NIPS 1994; for Student-t Liu and Rubin, Statistica Sinica 5, 1995). Each
component fills them with their conditional means, and second moments grow by the conditional
covariances, so that all other parts of EM see moments of whole rows.
"""

import numpy as np

from .._kernels import missing as kernels
from .._typing import Array
from .blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType
from .products import GaussianComponents

FULL = COVARIANCE_TYPES["full"]
_LOG_2PI = float(np.log(2 * np.pi))


class ObservedRows:
    """The rows of a block, of which values are missing, beside some components."""

    def __init__(
        self, kind: CovarianceType, block: DenseBlock, components: GaussianComponents
    ) -> None:
        assert block.missing is not None
        self._kind, self._components, self._order = kind, components, block.missing.order
        self._X = block.X[self._order].astype(np.float64)
        self._mask = block.missing.mask[self._order].astype(np.float64)
        K, d = components.means.shape
        if kind.full:
            precisions = np.ascontiguousarray(kind.each_precision(components.cholesky, K, d))
            self._arguments = self._X, block.missing.starts, components.means, precisions

    def scores(self) -> tuple[Array, Array]:
        """Return minus half the squared distances of what is observed (n, K), and what they lack.

        That is the log-normalizer of a normal density of the observed features less that of all.
        """
        (K, d), components = self._components.means.shape, self._components
        scores, logs = np.empty((2, len(self._X), K))
        if self._kind.full:
            roots = np.swapaxes(np.broadcast_to(components.cholesky, (K, d, d)), 1, 2)
            kernels.full_scores(*self._arguments, np.ascontiguousarray(roots), scores, logs)
        else:
            scales = self._by_feature(components.cholesky)
            kernels.diagonal_scores(self._X, components.means, scales, scores)
            logs = np.dot(self._mask, 2 * np.log(scales).T)
        n_missing = self._mask.sum(axis=1)[:, None]
        return self._as_given(scores), self._as_given(0.5 * (_LOG_2PI * n_missing - logs))

    def moments(self, weights: Array, shares: Array) -> tuple[Array, Array]:
        """Return moments about the origins by `weights` (n, K), covariances by responsibilities."""
        kind, components = self._kind, self._components
        K, d = components.means.shape
        weights, shares = weights[self._order], shares[self._order]
        first, second = np.zeros((K, d)), np.zeros((K, d, d) if kind.full else (K, d))
        if kind.full:
            kernels.full_moments(*self._arguments, weights, shares, first, second)
        else:
            kernels.diagonal_moments(self._X, components.means, weights, first, second)
            second += np.dot(shares.T, self._mask) * self._by_feature(components.covariances)
        if kind.shared:
            second = second.sum(axis=0)
        elif kind.name == "spherical":
            second = second.sum(axis=1)
        counts, shifts = weights.sum(axis=0), components.origins - components.means
        return first - counts[:, None] * shifts, kind.moved(counts, first, second, shifts)

    def conditional_means(self, resp: Array) -> Array:
        """Return the rows (n, d), missing values replaced by means, by responsibilities (n, K)."""
        filled, resp = np.zeros_like(self._X), resp[self._order].astype(np.float64)
        if self._kind.full:
            kernels.add_full_means(*self._arguments, resp, filled)
        else:
            filled = np.dot(resp, self._components.means)
        return self._as_given(np.where(self._mask, filled, self._X))

    def _as_given(self, rows: Array) -> Array:
        """Return rows in the order of the block."""
        given = np.empty_like(rows)
        given[self._order] = rows
        return given

    def _by_feature(self, covariances: Array) -> Array:
        """Return variances, or their inverse roots, for each feature, (K, d)."""
        variances = self._kind.variances(covariances)
        return np.ascontiguousarray(np.broadcast_to(variances, self._components.means.shape))


def conditional(
    kind: CovarianceType, components: GaussianComponents, kept: Array, given: Array, values: Array
) -> tuple[Array, Array]:
    """Return means and covariances of features, given the values of all others or none."""
    means, covariances = components.means[:, kept], components.covariances
    if not kind.full:
        return means, covariances if covariances.ndim == 1 else covariances[:, kept]
    if len(given) == 0:
        return means, covariances[..., kept[:, None], kept]
    precisions = kind.each_precision(components.cholesky, *components.means.shape)
    covariances = FULL.precisions(FULL.cholesky(precisions[:, kept[:, None], kept]))
    pulls = precisions[:, kept[:, None], given] @ (values - components.means[:, given])[:, :, None]
    return means - (covariances @ pulls)[:, :, 0], covariances[0] if kind.shared else covariances
