"""Components with a mean and a matrix of some covariance type: what families of them share."""

from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType
from .family import AnyFamily, Family, MergeCost
from .gaussian_products import GaussianComponents, squared_distances
from .merge_costs import EllipticalMergeCost
from .statistics import Statistics

# Units have 24 digits of two: rounding of the sums that they are taken from, as by other weights of
# the same ratio, changes none of them, and no bit of what a start does.
UNIT_PRECISION = 2.0**24

Shape = TypeVar("Shape", bound=GaussianComponents)


@dataclass(frozen=True, eq=False)
class Elliptical(Family[Shape]):
    """Components with a mean and a matrix of some covariance type."""

    dim: int
    covariance_type: str
    reg_covar: float = 0.0  # added to the diagonals
    fixed_covariances: bool = False
    fixed_means: bool = False
    scale: float = 1.0  # mean variance of the features: that of components that have none yet
    units: Array | None = None  # spread of each feature, (d,); None if it does not matter
    divided: bool = False  # whether rows are divided by the units

    def with_units(self, variances: Array) -> Self:
        """Return the family for features of such variances (d,).

        The best full, tied and diagonal covariances do not depend on the units of features, so
        starts divide by their spread. Constant features stay as they are, and so do all where
        covariances are spherical: there units matter.
        """
        if self.covariance_type == "spherical":
            return self
        mantissas, exponents = np.frexp(np.sqrt(np.where(variances > 0, variances, 1.0)))
        mantissas = np.rint(mantissas * UNIT_PRECISION) / UNIT_PRECISION
        return replace(self, units=np.ldexp(mantissas, exponents))

    def in_units(self, units: Array) -> Self:
        """Return the family for rows divided by units (d,) in which their mean variance is 1."""
        return replace(self, units=units, divided=True, scale=1.0)

    def log_units(self, block: DenseBlock) -> Any:
        """Return one number for whole rows; if values are missing, that of each row's own (n,)."""
        if self.units is None or self.divided:
            return 0.0
        logs = np.log(self.units)
        if block.missing is None:
            return logs.sum()
        return ~np.isnan(block.X) @ logs

    @property
    def regularization(self) -> float | Array:
        """What is added to the diagonals, in the units of the rows."""
        if self.units is None or not self.divided:
            return self.reg_covar
        return self.reg_covar / self.units**2

    @property
    def units_of_density(self) -> Array | None:
        """Units that log-densities are taken in, beside those of the rows."""
        return None if self.divided else self.units

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
        return replace(new, units=self.units)  # in which the components' log-densities are

    def merge_cost(self, stats: Statistics, components: Shape, numbers: Array) -> MergeCost:
        counts = stats.counts[numbers]
        means = components.means[numbers]
        if self.type.shared:
            return EllipticalMergeCost(counts, means @ components.cholesky, None, self.type)
        covariances = components.covariances[numbers]
        if self.units_of_density is not None:  # the size of a component is that in all features
            means = means / self.units_of_density
            covariances = self.type.in_other_units(covariances, 1 / self.units_of_density)
        return EllipticalMergeCost(counts, means, covariances, self.type)
