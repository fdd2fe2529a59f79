"""Rows with missing values: scores and moments by what is observed of them.

Missing values are integrated out (Ghahramani and Jordan, "Supervised learning from incomplete data
via an EM approach", NIPS 1994; for Student-t Liu and Rubin, Statistica Sinica 5, 1995). Each
component fills them with their conditional means, and second moments grow by the conditional
covariances, so that all other parts of EM see moments of whole rows.
"""

from typing import Any, NamedTuple

import numpy as np

from ..._kernels import missing as kernels
from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType, inverses
from .gaussian_products import GaussianComponents, full_moments, full_scores
from .responsibilities import DenseResponsibilities

FULL = COVARIANCE_TYPES["full"]
_LOG_2PI = float(np.log(2 * np.pi))
# From so many multiplications on, rows of one pattern in a block are taken as whole rows of fewer
# features: to derive components of these features costs less then.
MIN_PRODUCTS = 2**19
MAX_PATTERNS = 64  # whose components are kept for all blocks of a step: each has K d^2 numbers


class _Pattern(NamedTuple):
    """Components as rows see them that lack the same features."""

    observed: Array  # the numbers of p features
    marginal: GaussianComponents  # of these features
    extension: Array  # (K, d, p): how gaps of all features follow from observed ones
    conditional: Array  # (K, d, d): covariances of what is missing, zero elsewhere


class ObservedRows:
    """The rows of a block, of which values are missing, beside some components."""

    def __init__(
        self, kind: CovarianceType, block: DenseBlock, components: GaussianComponents
    ) -> None:
        missing = block.missing
        assert missing is not None
        self._kind = kind
        self._components = components
        self._rows = missing
        if kind.full:
            self._precisions, self._roots = components.for_missing
            K, d = components.means.shape
            first, after, n_missing = missing.patterns[:, :3].T
            is_frequent = ((after - first) * (K * d * d) >= MIN_PRODUCTS) & (n_missing < d)
            self._frequent = [slice(*rows) for rows in missing.patterns[is_frequent, :2]]
            self._others = np.ascontiguousarray(missing.patterns[~is_frequent])

    def scores(self, units: Array | None = None) -> tuple[Array, Array]:
        """Return minus half the squared distances of what is observed (n, K), and what they lack.

        That is the log-normalizer of a normal density of the observed features less that of all, in
        units (d,) if they are given.
        """
        components = self._components
        shape = len(self._rows.X), len(components)
        scores = np.empty(shape)
        log_dets = np.zeros(shape)  # of the precisions of missing features
        if self._kind.full:
            self._full_scores(units, scores, log_dets)
            for rows in self._frequent:
                pattern = self._pattern(rows)
                observed = pattern.observed
                scores[rows] = full_scores(self._rows.X[rows][:, observed], pattern.marginal)
                units_of_observed = None if units is None else units[observed]
                log_det = FULL.log_det(pattern.marginal.cholesky, len(observed), units_of_observed)
                log_dets[rows] = 2 * (components.log_det - log_det)
        else:
            scales = self._by_feature(components.cholesky)
            kernels.diagonal_scores(self._rows.X, components.means, scales, scores)
            scales = scales if units is None else scales * units
            log_dets = np.dot(self._rows.mask, 2 * np.log(scales).T)
        log_dets = self._as_given(log_dets)
        return self._as_given(scores), 0.5 * (_LOG_2PI * self._rows.n_missing[:, None] - log_dets)

    def _full_scores(self, units: Array | None, scores: Array, log_dets: Array) -> None:
        """Set the scores and determinants of rows whose patterns are not frequent.

        The kernel gets rows in the powers of two next to the units, which changes no bit of scores:
        so determinants, too, have the same bits in units that differ by powers of two.
        """
        X, patterns, means, precisions, work = self._arguments(self._others)
        roots = self._roots
        if units is not None:
            mantissas, exponents = np.frexp(units)
            powers = np.ldexp(1.0, exponents)
            X = X / powers
            means = means / powers
            roots = roots * powers
            precisions = precisions * np.outer(powers, powers)
        kernels.full_scores(X, patterns, means, precisions, work, roots, scores, log_dets)
        if units is not None:
            log_dets += 2 * (self._rows.mask @ np.log(mantissas))[:, None]

    def moments(self, weights: Array, shares: Array) -> tuple[Array, Array]:
        """Return centred moments by `weights` (n, K), conditional covariances by `shares`."""
        kind = self._kind
        components = self._components
        K, d = components.means.shape
        weights = weights[self._rows.order]
        shares = shares[self._rows.order]
        if kind.full:
            both = np.empty((K, d + 1, d))
            kernels.full_moments(*self._arguments(self._others), weights, shares, both)
            second, first = both[:, :d], both[:, d]
            for rows in self._frequent:
                self._add_moments(rows, weights[rows], shares[rows], first, second)
        else:
            first, second = np.zeros((K, d)), np.zeros((K, d))
            kernels.diagonal_moments(self._rows.X, components.means, weights, first, second)
            second += np.dot(shares.T, self._rows.mask) * self._by_feature(components.covariances)
        if kind.shared:
            second = second.sum(axis=0)
        elif kind.name == "spherical":
            second = second.sum(axis=1)
        # So far they are about the means: about these, conditional covariances just add.
        counts = np.dot(np.ones(len(weights)), weights)
        shifts = components.centred_at - components.means
        return first - counts[:, None] * shifts, kind.moved(counts, first, second, shifts)

    def conditional_means(self, resp: Array) -> Array:
        """Return the rows (n, d), missing values replaced by means, by responsibilities (n, K)."""
        resp = resp[self._rows.order].astype(np.float64)
        if self._kind.full:
            filled = np.zeros_like(self._rows.X)
            kernels.add_full_means(*self._arguments(self._rows.patterns), resp, filled)
        else:
            filled = np.dot(resp, self._components.means)
        return self._as_given(np.where(self._rows.mask, filled, self._rows.X))

    def _arguments(self, patterns: Array) -> tuple[Any, ...]:
        """Return the first arguments of the kernels for full covariances."""
        d = self._rows.X.shape[1]
        work = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
        return self._rows.X, patterns, self._components.means, self._precisions, work

    def _pattern(self, rows: slice) -> _Pattern:
        """Return the components as rows of one pattern see them."""
        is_missing = self._rows.mask[rows.start]
        by_pattern = self._components.by_pattern
        key = is_missing.tobytes()
        pattern: _Pattern | None = by_pattern.get(key)
        if pattern is None:
            pattern = self._new_pattern(np.flatnonzero(~is_missing), np.flatnonzero(is_missing))
            if len(by_pattern) < MAX_PATTERNS:
                by_pattern[key] = pattern
        return pattern

    def _new_pattern(self, observed: Array, missing: Array) -> _Pattern:
        components = self._components
        K, d = components.means.shape
        covariances = np.broadcast_to(components.covariances, (K, d, d))
        marginal = FULL.components(
            components.means[:, observed], covariances[:, observed[:, None], observed]
        )
        # By precisions P the missing features have the covariance P_mm^-1 given the observed ones,
        # and the conditional mean -P_mm^-1 P_mo x_o.
        of_missing = inverses(self._precisions[:, missing[:, None], missing])
        extension = np.zeros((K, d, len(observed)))
        extension[:, observed, np.arange(len(observed))] = 1
        extension[:, missing] = -of_missing @ self._precisions[:, missing[:, None], observed]
        conditional = np.zeros((K, d, d))
        conditional[:, missing[:, None], missing] = of_missing
        return _Pattern(observed, marginal, extension, conditional)

    def _add_moments(
        self, rows: slice, weights: Array, shares: Array, first: Array, second: Array
    ) -> None:
        """Add the moments about the means of rows of one pattern."""
        pattern = self._pattern(rows)
        marginal = pattern.marginal
        X = self._rows.X[rows][:, pattern.observed]
        observed_first, observed_second = full_moments(X, DenseResponsibilities(weights), marginal)
        ones = np.ones(len(weights))
        counts = np.dot(ones, weights)
        shifts = marginal.means - marginal.centred_at
        observed_second = FULL.moved(counts, observed_first, observed_second, shifts)
        observed_first = observed_first - counts[:, None] * shifts
        first += (pattern.extension @ observed_first[:, :, None])[:, :, 0]
        second += pattern.extension @ observed_second @ np.swapaxes(pattern.extension, 1, 2)
        second += np.dot(ones, shares)[:, None, None] * pattern.conditional

    def _as_given(self, rows: Array) -> Array:
        """Return rows in the order of the block."""
        given = np.empty_like(rows)
        given[self._rows.order] = rows
        return given

    def _by_feature(self, covariances: Array) -> Array:
        """Return variances, or their inverse roots, for each feature, (K, d)."""
        variances = self._kind.variances(covariances)
        return np.ascontiguousarray(np.broadcast_to(variances, self._components.means.shape))


def conditional(
    kind: CovarianceType, components: GaussianComponents, wanted: Array, given: Array, values: Array
) -> tuple[Array, Array]:
    """Return means and covariances of wanted features, given the values of all others or none.

    Values are (p,), or (n, p) of many rows, to each of which belong means then.
    """
    means = components.means[:, wanted]
    covariances = components.covariances
    if not kind.full:
        return means, covariances if covariances.ndim == 1 else covariances[:, wanted]
    if len(given) == 0:
        return means, covariances[..., wanted[:, None], wanted]
    precisions = kind.each_precision(components.cholesky, *components.means.shape)
    covariances = FULL.precisions(FULL.cholesky(precisions[:, wanted[:, None], wanted]))
    gaps = (values[..., None, :] - components.means[:, given])[..., None]
    pulls = precisions[:, wanted[:, None], given] @ gaps
    means = means - (covariances @ pulls)[..., 0]
    return means, covariances[0] if kind.shared else covariances
