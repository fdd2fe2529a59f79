"""The Gaussian family: its components, what merging them costs, starts and Fisher vectors."""

from dataclasses import dataclass, replace

from ..._typing import Array
from ..contracts.gradients import GradientsType
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

    def proposal(self, background: bool) -> Proposal:
        """Start with spherical Gaussians, and give them covariances where rows suffice.

        Beside a background rows far from all others are left out.
        """
        return Proposal(
            ShrunkSpherical.of(self),
            None if self.fixed else ShrunkGaussian.of(self),
            trimmed=self._proposal_at_scale if background else None,
        )

    def _proposal_at_scale(self, scale: float) -> Proposal:
        return replace(self, scale=scale).proposal(False)

    @property
    def gradients(self) -> GradientsType:
        """Return what Fisher vectors are made of, for the types of covariance that have them."""
        gradients = self.type.gradients
        if gradients is None:
            raise ValueError(
                f"Gaussian components with covariance_type={self.covariance_type!r} have no "
                "Fisher vectors: use covariance_type='diag'."
            )
        return gradients
