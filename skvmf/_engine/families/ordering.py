"""The constraint that Gaussian components are in order: along one feature, with a least gap.

See Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics of
Gaussian mixture models", section 2.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..._typing import Array
from .covariance import CovarianceType
from .family import Constraint
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .isotonic import keep_order, project
from .ordered_scales import ScaleOrder
from .params import Params
from .statistics import Statistics, select_statistics


@dataclass(frozen=True)
class Ordering(Constraint):
    """Ascending means or standard deviations, or both, with gaps of at least the clearance."""

    order_of: Literal["means", "scales", "both"]
    feature: int  # along which components are in order
    clearance: float
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
        """Return what sorts means (K, d), or the covariances that go with them if they do."""
        self.check(means.shape[1])
        values = means[:, self.feature]
        if self.order_of == "scales":
            if covariances is None:  # all alike
                return np.arange(len(means))
            # The root of a square is the number itself: equal ones stay where they are.
            values = np.sqrt(self.covariance_type.along(covariances, len(means), self.feature))
        return np.argsort(values, kind="stable")

    def apart(self, means: Array, non_empty: Array) -> Array:
        """Return sorted means with the clearance."""
        if self.order_of == "scales":
            return means
        moved = means.copy()
        values = moved[:, self.feature]
        if non_empty.any():
            equal_weights = np.ones(non_empty.sum())
            values[non_empty] = project(values[non_empty], equal_weights, self.clearance)
        values[:] = keep_order(values, non_empty, self.clearance)
        return moved

    def apply(
        self,
        family: Gaussian,
        params: Params,
        weights: Array | None = None,
        shapes: Array | None = None,
    ) -> Params:
        """Return first parameters in order and apart; what is given is in that order."""
        kind = self.covariance_type
        order = self.order(params.components)
        means = params.components.means[order]
        covariances = kind.select(params.components.covariances, order)
        if shapes is not None:
            covariances = shapes
        if weights is None:
            params = params.reordered(order, params.components)
        non_empty = params.component_weights > 0
        means = self.apart(means, non_empty)
        if self.order_of != "means":
            scales = ScaleOrder(self.feature, self.clearance)
            covariances = scales.apart(kind, covariances, non_empty)
        return replace(params, components=family.components(means, covariances))

    def sort(
        self, family: Gaussian, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        components = params.components
        order = self.order(components)
        if (np.diff(order) > 0).all():
            return params, stats
        covariances = self.covariance_type.select(components.covariances, order)
        params = params.reordered(order, family.components(components.means[order], covariances))
        if stats is not None:
            stats = select_statistics(family, stats, order)
        return params, stats
