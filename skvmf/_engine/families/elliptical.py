"""Components with a mean and a matrix of some covariance type: what families of them share."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType
from .family import AnyFamily, Family, MergeCost
from .gaussian_products import GaussianComponents, squared_distances
from .merge_costs import EllipticalMergeCost
from .statistics import Statistics

Shape = TypeVar("Shape", bound=GaussianComponents)


@dataclass(frozen=True)
class Elliptical(Family[Shape]):
    """Components with a mean and a matrix of some covariance type."""

    dim: int
    covariance_type: str
    reg_covar: float = 0.0  # added to the diagonals
    fixed_covariances: bool = False
    fixed_means: bool = False
    scale: float = 1.0  # mean variance of the features: that of components that have none yet

    @property
    def type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @property
    def min_rows(self) -> int:
        """About a mean d + 1 rows span all dimensions."""
        return self.dim + 1

    def n_parameters(self, n_components: int) -> int:
        n_means = 0 if self.fixed_means else n_components * self.dim
        if self.fixed_covariances:
            return n_means
        return n_means + self.type.n_parameters(n_components, self.dim)

    @property
    def component_axes(self) -> tuple[int | None, ...]:
        """A shared covariance takes one sum of second moments."""
        return 0, None if self.type.shared else 0

    def centres(self, components: Shape) -> Array:
        return components.means

    def distances(self, block: DenseBlock, centres: Array) -> Array:
        """Return squared distances in units of the data's variance, (n, m)."""
        return squared_distances(block.X, centres, np.full(len(centres), 1 / self.scale))

    def centred_at(self, components: Shape) -> Array:
        return components.centred_at

    def continued_by(self, new: AnyFamily) -> AnyFamily:
        """Return the new family, after a check of its type of covariance."""
        assert isinstance(new, Elliptical)
        if new.covariance_type != self.covariance_type:
            raise ValueError(
                f"The fitted mixture has covariance_type={self.covariance_type!r}, and "
                f"covariance_type is {new.covariance_type!r} now: set it back, or start from "
                "scratch with a clone of the mixture."
            )
        return new

    def merge_cost(self, stats: Statistics, components: Shape, numbers: Array) -> MergeCost:
        counts = stats.counts[numbers]
        means = components.means[numbers]
        if self.type.shared:
            return EllipticalMergeCost(counts, means @ components.cholesky, None, self.type)
        return EllipticalMergeCost(counts, means, components.covariances[numbers], self.type)
