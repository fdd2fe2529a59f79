"""Gradients of diagonal Gaussian mixtures, of which Fisher vectors are made."""

from collections.abc import Sequence

import numpy as np

from ..._kernels import fisher as kernels
from ..._typing import Array
from ..contracts.gradients import (
    Bags,
    Gradients,
    ParameterBlock,
    VectorResponsibilities,
    repeat_columns,
)
from .gaussian_products import GaussianComponents


class DiagonalGradients(Gradients):
    """Gradients in means, variances and weights of diagonal Gaussians.

    With z = (x - mu)/sigma and responsibilities g, statistics are sum g z, sum g (z^2 - 1) and
    N - w T; their variances per vector are w, 2 w and w [1]_.

    References
    ----------
    .. [1] Sanchez, Perronnin, Mensink and Verbeek, "Image classification with the Fisher
       vector: theory and practice", IJCV 105, 2013, eq. 16-18.
    """

    names = {"means": "mean", "variances": "variance", "weights": "weight"}

    def __init__(self, weights: Array, components: GaussianComponents, *, tangent: bool) -> None:
        self._weights, self._means = weights, components.means
        self._variances = components.covariances
        K, d = self._variances.shape
        _, each = repeat_columns(weights, weights, d)
        self.blocks = {
            "means": ParameterBlock(1 / np.sqrt(self._variances), each),
            "variances": ParameterBlock(0.5 / self._variances, 2 * each),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""
        n, (K, d) = len(bags[0]) - 1, self._means.shape
        counts, first, second = np.empty((n, K)), np.empty((n, K, d)), np.empty((n, K, d))
        add = kernels.packed_moment_sums if responsibilities.packed else kernels.moment_sums
        add(bags, responsibilities.resp, responsibilities.table, self._means, counts, first, second)
        sizes = counts.sum(axis=1)
        first /= np.sqrt(self._variances)
        statistics = {"means": first}
        if "variances" in kinds:
            with np.errstate(over="ignore"):  # beyond the largest float it is taken for that
                second /= self._variances
            second -= counts[:, :, None]
            statistics["variances"] = second
        if "weights" in kinds:
            statistics["weights"] = counts - sizes[:, None] * self._weights
        return statistics, sizes
