"""Components of Gaussian mixtures that are kept in order along one feature."""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.constraint import Constraint
from ..contracts.start import Start
from ..contracts.statistics import Params, Statistics
from ..families.covariance_type import CovarianceType
from ..families.gaussian import Gaussian
from ..families.gaussian_products import GaussianComponents
from .coordinates import Coordinates, RelativeCoordinates
from .ordered_scales import ScaleOrder

_OFF_THE_BOUND = 1e-2  # standard deviations by which a gradient's start clears its bound


@dataclass(frozen=True)
class Ordering(Constraint):
    """Ascending means or standard deviations, with gaps of at least the clearance."""

    feature: int  # along which components are in order
    by_scales: bool  # whether they are sorted by standard deviations rather than by means
    coordinates: Coordinates  # of the means; relative ones keep means apart
    scale_order: ScaleOrder | None  # that a fit keeps, if there is one
    covariance_type: CovarianceType

    def check(self, n_features: int) -> None:
        """Refuse a feature that the rows do not have."""
        if self.feature >= n_features:
            raise ValueError(
                f"ordering_feature={self.feature} is out of range: there are {n_features} "
                "features, counted from 0."
            )

    def order(self, components: GaussianComponents) -> Array:
        return self.argsort(components.means, components.covariances)

    def argsort(self, means: Array, covariances: Array | None) -> Array:
        """Return what sorts means (K, d), or the covariances that go with them."""
        self.check(means.shape[1])
        values = means[:, self.feature]
        if self.by_scales:
            assert covariances is not None
            values = self.covariance_type.along(covariances, len(means), self.feature)
        return np.argsort(values, kind="stable")

    def apart(self, means: Array, scale: float) -> Array:
        """Return sorted means with the clearance, and with more than that for a gradient."""
        coordinates = self.coordinates
        if not isinstance(coordinates, RelativeCoordinates):
            return means
        wide, values = coordinates, means.copy()
        if coordinates.squared:
            wide = replace(wide, clearance=wide.clearance + _OFF_THE_BOUND * scale**0.5)
        values[:, self.feature] = wide.project(values[:, self.feature], np.ones(len(values)))
        return coordinates.keep_order(values, np.ones(len(values), dtype=bool))

    def apply(self, family: Gaussian, params: Params, start: Start | None = None) -> Params:
        """Return first parameters in order and apart, with what a start gives of them."""
        order, kind = self.order(params.components), self.covariance_type
        means = self.apart(params.components.means[order], family.scale)
        covariances = kind.select(params.components.covariances, order)
        weights = params.reordered(order, params.components).weights
        if start is not None:  # in the order of the components
            if start.shapes is not None:
                covariances = start.shapes
            if start.weights is not None:
                weights = params.weights
        if self.scale_order is not None:
            covariances = self.scale_order.apart(kind, covariances, len(means))
        first = Params.first(weights, family.components(means, covariances))
        return first if start is not None and start.weights is None else first.pruned()

    def sort(
        self, family: Gaussian, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and their statistics with components in ascending order."""
        order, components = self.order(params.components), params.components
        if (np.diff(order) > 0).all():
            return params, stats
        covariances = self.covariance_type.select(components.covariances, order)
        params = params.reordered(order, family.components(components.means[order], covariances))
        if stats is not None:
            assert stats.origins is not None
            first, second = stats.moments
            stats = replace(
                stats,
                counts=np.append(stats.counts[order], stats.counts[len(order) :]),
                moments=(first[order], self.covariance_type.select(second, order)),
                origins=stats.origins[order],
            )
        return params, stats
