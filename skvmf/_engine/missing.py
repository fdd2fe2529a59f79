"""Rows with missing values: scores and moments by what is observed of them.

Missing values are integrated out (Ghahramani and Jordan, "Supervised learning from incomplete data
via an EM approach", NIPS 1994; for Student-t Liu and Rubin, Statistica Sinica 5, 1995). Each
component fills them with their conditional means, and second moments grow by the conditional
covariances, so that all other parts of EM see moments of whole rows.
"""

from dataclasses import replace

import numpy as np

from .._kernels.missing import fill_gaps
from .._typing import Array
from .blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType
from .products import GaussianComponents, full_scores

FULL = COVARIANCE_TYPES["full"]
_LOG_2PI = float(np.log(2 * np.pi))


class FilledRows:
    """The rows of a block, in the order of their patterns, as each component fills them."""

    def __init__(
        self, kind: CovarianceType, block: DenseBlock, components: GaussianComponents
    ) -> None:
        assert block.missing is not None
        self._kind, self._components, self.order = kind, components, block.missing.order
        self._X, self._mask = block.X.astype(np.float64), block.missing.mask

    def gaps(self, k: int, rows: Array, shares: Array) -> tuple[Array, Array, Array]:
        """Return gaps of rows from mean k (n, d), zero or conditional means where missing.

        Also returns the log-determinants (n,) of the missing features' conditional precisions, and
        the sum of the conditional covariances, weighted by `shares` (n,).
        """
        X, mean, root = self._X[rows], self._components.means[k], self._root(k)
        if self._kind.full:
            gaps, logs, scatter = np.empty_like(X), np.empty(len(X)), np.zeros_like(root)
            fill_gaps(X, mean, np.dot(root, root.T), shares, gaps, logs, scatter)
            return gaps, logs, scatter
        mask = self._mask[rows]
        logs = np.dot(mask, np.broadcast_to(2 * np.log(root), mean.shape))
        return np.where(mask, 0, X - mean), logs, np.dot(shares, mask) / root**2

    def scores(self) -> tuple[Array, Array]:
        """Return minus half the squared distances of what is observed (n, K), and what they lack.

        That is the log-normalizer of a normal density of the observed features less that of all.
        """
        scores, K = np.empty((len(self._X), len(self._components))), len(self._components)
        logs, shares = np.empty_like(scores), np.zeros(len(scores))
        for k in range(K):
            gaps, logs[self.order, k], _ = self.gaps(k, self.order, shares)
            scores[self.order, k] = self._scores(k, gaps)
        n_missing = np.count_nonzero(self._mask, axis=1)[:, None]
        return scores, 0.5 * (_LOG_2PI * n_missing - logs)

    def moments(self, weights: Array, shares: Array) -> tuple[Array, Array]:
        """Return moments about the origins by `weights` (n, K), covariances by responsibilities."""
        kind, components = self._kind, self._components
        K, d = components.means.shape
        first, second = np.zeros((K, d)), np.zeros(kind.shape(K, d))
        for k in range(K):
            rows = self.order[weights[self.order, k] > 0]
            own = weights[rows, k]
            gaps, _, total = self.gaps(k, rows, shares[rows, k])
            first[k] = np.dot(own, gaps)
            total += np.dot((gaps * own[:, None]).T, gaps) if kind.full else np.dot(own, gaps**2)
            if kind.shared:
                second += total
            else:
                second[k] = total.sum() if kind.name == "spherical" else total
        counts, shifts = weights.sum(axis=0), components.origins - components.means
        return first - counts[:, None] * shifts, kind.moved(counts, first, second, shifts)

    def conditional_means(self, resp: Array) -> Array:
        """Return the rows (n, d), missing values replaced by means, by responsibilities (n, K)."""
        filled, shares = np.zeros_like(self._X), np.zeros(len(self._X))
        for k, mean in enumerate(self._components.means):
            gaps = self.gaps(k, self.order, shares)[0]
            filled[self.order] += resp[self.order, k, None] * (gaps + mean)
        return np.where(self._mask, filled, self._X)

    def _root(self, k: int) -> Array:
        root: Array = self._kind.select(self._components.cholesky, k)
        return root

    def _scores(self, k: int, gaps: Array) -> Array:
        """Return minus half the squared lengths of gaps that are filled, (n,)."""
        root = self._root(k)
        if not self._kind.full:
            return -0.5 * np.square(gaps * root).sum(axis=1)
        centre = np.zeros((1, len(root)))
        alone = replace(self._components, means=centre, cholesky=root[np.newaxis])
        return full_scores(gaps, alone)[:, 0]


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
