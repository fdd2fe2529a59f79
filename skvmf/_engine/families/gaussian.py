"""The Gaussian family: its components, what merging them costs, starts and Fisher vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._kernels import fisher as kernels
from ..._typing import Array
from ..contracts.gradients import (
    Bags,
    Gradients,
    GradientsType,
    ParameterBlock,
    VectorResponsibilities,
    repeat_columns,
)
from ..contracts.model_parts import Proposal
from ..contracts.statistics import Statistics
from .gaussian_base import BaseGaussian
from .gaussian_products import GaussianComponents
from .merge_costs import EllipticalMergeCost
from .shrinkage import ShrunkGaussian, ShrunkSpherical


@dataclass(frozen=True)
class Gaussian(BaseGaussian):
    """Gaussian components with full, tied, diagonal or spherical covariances."""

    def merge_cost(
        self, stats: Statistics, components: GaussianComponents, parts: Array
    ) -> EllipticalMergeCost:
        """Return what merging components costs, by their means and covariances."""
        counts, means = stats.counts[parts], components.means[parts]
        if self.type.shared:
            return EllipticalMergeCost.of_one_covariance(counts, means, components.cholesky)
        return EllipticalMergeCost(counts, means, components.covariances[parts], self.type)

    def proposal(self) -> Proposal:
        """Start with spherical Gaussians, and give them covariances where rows suffice."""
        return Proposal(
            ShrunkSpherical.of(self),
            None if self.fixed_covariances else ShrunkGaussian.of(self),
            trimmed=lambda scale: replace(self, scale=scale).proposal(),
        )

    @property
    def gradients(self) -> GradientsType:
        """Return what Fisher vectors are made of, for diagonal covariances."""
        if self.covariance_type != "diag":
            raise ValueError(
                f"Gaussian components with covariance_type={self.covariance_type!r} have no "
                "Fisher vectors: use covariance_type='diag'."
            )
        return DiagonalGradients


class DiagonalGradients(Gradients):
    """Gradients in means, variances and weights of diagonal Gaussians.

    With z = (x - mu)/sigma and responsibilities g, statistics are sum g z, sum g (z^2 - 1) and
    N - w T; their variances per vector are w, 2 w and w (Sanchez, Perronnin, Mensink and Verbeek,
    "Image classification with the Fisher vector", IJCV 105, 2013, eq. 16-18).
    """

    names: ClassVar[dict[str, str]] = {
        "means": "mean",
        "variances": "variance",
        "weights": "weight",
    }

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
