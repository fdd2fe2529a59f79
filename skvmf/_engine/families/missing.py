"""Rows with missing values: scores and moments by what is observed of them.

Missing values are integrated out (Ghahramani and Jordan, "Supervised learning from incomplete data
via an EM approach", NIPS 1994; for Student-t Liu and Rubin, Statistica Sinica 5, 1995). Each
component fills them with their conditional means, and second moments grow by the conditional
covariances, so that all other parts of EM see moments of whole rows.
"""

import numpy as np

from ..._kernels import missing as kernels
from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType
from .products import GaussianComponents, full_moments, full_scores
from .responsibilities import DenseResponsibilities

FULL = COVARIANCE_TYPES["full"]
_LOG_2PI = float(np.log(2 * np.pi))
MIN_PRODUCTS = 2**19  # of a pattern in a block, from which its rows are taken as whole ones
MAX_KEPT = 64  # patterns whose components are kept for all blocks of a step


class ObservedRows:
    """The rows of a block, of which values are missing, beside some components."""

    def __init__(
        self, kind: CovarianceType, block: DenseBlock, components: GaussianComponents
    ) -> None:
        missing = block.missing
        assert missing is not None
        self._kind, self._components = kind, components
        self._X, self._mask, self._order = missing.X, missing.mask, missing.order
        self._n_missing, self._patterns = missing.n_missing, missing.patterns
        K, d = components.means.shape
        if kind.full:
            if (kept := components.by_pattern.get(b"")) is None:
                roots = np.swapaxes(np.broadcast_to(components.cholesky, (K, d, d)), 1, 2)
                precisions = kind.each_precision(components.cholesky, K, d)
                kept = np.ascontiguousarray(precisions), np.ascontiguousarray(roots)
                components.by_pattern[b""] = kept
            self._precisions, self._roots = kept
            first, after, lacking = self._patterns[:, :3].T
            often = ((after - first) * (K * d * d) >= MIN_PRODUCTS) & (lacking < d)
            self._often = [slice(*pattern) for pattern in self._patterns[often, :2]]
            self._rest = np.ascontiguousarray(self._patterns[~often])

    def scores(self, units: Array | None = None) -> tuple[Array, Array]:
        """Return minus half the squared distances of what is observed (n, K), and what they lack.

        That is the log-normalizer of a normal density of the observed features less that of all, in
        units (d,) if they are given.
        """
        components = self._components
        scores, logs = np.empty((2, len(self._X), len(components)))
        if self._kind.full:
            kernels.full_scores(*self._arguments(self._rest), self._roots, scores, logs)
            if units is not None:
                logs += 2 * (self._mask @ np.log(units))[:, None]
            for rows in self._often:
                seen, part, *_ = self._part(rows)
                scores[rows] = full_scores(self._X[rows][:, seen], part)
                logs[rows] = 2 * (components.log_det - part.log_det)
                if units is not None:  # which the part's determinant lacks
                    logs[rows] -= 2 * np.log(units[seen]).sum()
        else:
            scales = self._by_feature(components.cholesky)
            kernels.diagonal_scores(self._X, components.means, scales, scores)
            logs = np.dot(self._mask, 2 * np.log(scales if units is None else scales * units).T)
        lacking = 0.5 * (_LOG_2PI * self._n_missing[:, None] - self._as_given(logs))
        return self._as_given(scores), lacking

    def moments(self, weights: Array, shares: Array) -> tuple[Array, Array]:
        """Return moments about the origins by `weights` (n, K), covariances by responsibilities."""
        kind, components = self._kind, self._components
        K, d = components.means.shape
        weights, shares = weights[self._order], shares[self._order]
        if kind.full:
            moments = np.empty((K, d + 1, d))
            kernels.full_moments(*self._arguments(self._rest), weights, shares, moments)
            second, first = moments[:, :d], moments[:, d]
            for rows in self._often:
                self._add_moments(rows, weights[rows], shares[rows], first, second)
        else:
            first, second = np.zeros((2, K, d))
            kernels.diagonal_moments(self._X, components.means, weights, first, second)
            second += np.dot(shares.T, self._mask) * self._by_feature(components.covariances)
        if kind.shared:
            second = second.sum(axis=0)
        elif kind.name == "spherical":
            second = second.sum(axis=1)
        counts = np.dot(np.ones(len(weights)), weights)
        shifts = components.origins - components.means
        return first - counts[:, None] * shifts, kind.moved(counts, first, second, shifts)

    def conditional_means(self, resp: Array) -> Array:
        """Return the rows (n, d), missing values replaced by means, by responsibilities (n, K)."""
        filled, resp = np.zeros_like(self._X), resp[self._order].astype(np.float64)
        if self._kind.full:
            kernels.add_full_means(*self._arguments(self._patterns), resp, filled)
        else:
            filled = np.dot(resp, self._components.means)
        return self._as_given(np.where(self._mask, filled, self._X))

    def _arguments(self, patterns: Array) -> tuple[Array, ...]:
        """Return the first arguments of the kernels for full covariances."""
        d = self._X.shape[1]
        work = np.empty((2 * d + 2, d))
        return self._X, patterns, self._components.means, self._precisions, work

    def _part(self, rows: slice) -> tuple[Array, GaussianComponents, Array, Array]:
        """Return what is observed of rows of one pattern, and components of these features.

        Also returns how whole gaps follow from observed ones, (K, d, p), and the conditional
        covariances of what is missing, zero elsewhere, (K, d, d).
        """
        gone, components = self._mask[rows.start], self._components
        kept = components.by_pattern.get(key := gone.tobytes())
        if kept is None:
            (K, d), seen, lost = components.means.shape, np.flatnonzero(~gone), np.flatnonzero(gone)
            covariances = np.broadcast_to(components.covariances, (K, d, d))
            own = covariances[:, seen[:, None], seen]
            part = FULL.components(components.means[:, seen], own)
            lift, rest = np.zeros((K, d, len(seen))), np.zeros((K, d, d))
            own = np.linalg.inv(self._precisions[:, lost[:, None], lost])
            lift[:, seen, np.arange(len(seen))] = 1
            lift[:, lost] = -own @ self._precisions[:, lost[:, None], seen]
            rest[:, lost[:, None], lost] = own
            kept = seen, part, lift, rest
            if len(components.by_pattern) < MAX_KEPT:
                components.by_pattern[key] = kept
        return kept

    def _add_moments(
        self, rows: slice, weights: Array, shares: Array, first: Array, second: Array
    ) -> None:
        """Add the moments about the means of rows of one pattern."""
        seen, part, lift, rest = self._part(rows)
        one, two = full_moments(self._X[rows][:, seen], DenseResponsibilities(weights), part)
        ones, shifts = np.ones(len(weights)), part.means - part.origins
        counts = np.dot(ones, weights)
        two = FULL.moved(counts, one, two, shifts)
        one = one - counts[:, None] * shifts
        first += (lift @ one[:, :, None])[:, :, 0]
        second += lift @ two @ np.swapaxes(lift, 1, 2)
        second += np.dot(ones, shares)[:, None, None] * rest

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
