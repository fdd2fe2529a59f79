"""The constraint that Gaussian components are in order: along one feature, with a least gap.

See Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics of
Gaussian mixture models", section 2.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ..._typing import Array
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .covariance import CovarianceType
from .family import Constraint
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .isotonic import keep_order, project
from .ordered_scales import ScaleOrder
from .params import Params
from .statistics import Statistics, select_statistics

# How many standard errors the values of two classes may be in the wrong order by: that of equal
# ones are in one of 700 pairs.
MAX_ERRORS = 3.0


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
        if self.order_of == "scales" and covariances is None:  # all alike
            return np.arange(len(means))
        return np.argsort(self._values(means, covariances), kind="stable")

    def _values(self, means: Array, covariances: Any) -> Array:
        """Return what is in order: means or standard deviations along the feature, (K,)."""
        if self.order_of != "scales":
            values: Array = means[:, self.feature]
            return values
        # The root of a square is the number itself: equal ones stay where they are.
        return ScaleOrder(self.feature).scales(self.covariance_type, covariances, len(means))

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
        classes: Array | None = None,
    ) -> Params:
        """Return first parameters in order and apart; what is given is in that order.

        The components of known classes keep their numbers. Others are put in order between them:
        the one with the least value gets the least number that is left, and is moved between the
        neighbours that it then has.
        """
        kind = self.covariance_type
        components = params.components
        order = self.order(components)
        if classes is not None:
            order = self._order_beside(components, classes)
        means = components.means[order]
        covariances = kind.select(components.covariances, order)
        if classes is not None and self.order_of == "scales":
            scales = ScaleOrder(self.feature)
            values = _between(scales.scales(kind, covariances, len(means)), classes)
            covariances = scales.resized(kind, covariances, values)
        elif classes is not None:
            means[:, self.feature] = _between(means[:, self.feature], classes)
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

    def _order_beside(self, components: GaussianComponents, classes: Array) -> Array:
        """Return the order (K,) of components of which those of `classes` stay where they are."""
        K = len(components)
        order = np.arange(K)
        free = np.setdiff1d(order, classes)
        values = self._values(components.means, components.covariances)
        order[free] = free[np.argsort(values[free], kind="stable")]
        return order

    def refuse_known(self, known: Array, rows: RowSource, params: Params) -> None:
        """Refuse known labels if the order of two classes is the other one, beyond chance.

        The values of a class are the mean, or the standard deviation, of its known rows along the
        feature. By chance they are `MAX_ERRORS` standard errors apart.
        """
        components = params.components
        K = len(components)
        centres = components.means[:, self.feature]
        sums = rows.map_reduce(partial(_sums_by_class, known, centres, self.feature))
        sums[:, params.component_weights == 0] = 0  # their rows count as unknown
        counts, first, second = sums
        divisors = np.where(counts > 0, counts, 1.0)
        values = centres + first / divisors
        scales = ScaleOrder(self.feature).scales(self.covariance_type, components.covariances, K)
        squared_errors = scales**2 / divisors
        if self.order_of == "scales":
            # The logarithm of a standard deviation of n rows has a variance of about 1/2(n - 1).
            variances = second / divisors - (first / divisors) ** 2
            counts = np.where(variances > 0, np.maximum(counts - 1, 0), 0.0)
            values = 0.5 * np.log(np.where(counts > 0, variances, 1.0))
            squared_errors = 0.5 / np.where(counts > 0, counts, 1.0)
        classes = np.flatnonzero(counts > 0)
        for i, k in enumerate(classes):
            earlier = classes[:i]
            errors = np.sqrt(squared_errors[earlier] + squared_errors[k])
            contradicting = values[earlier] - values[k] > MAX_ERRORS * errors
            if contradicting.any():
                what = "standard deviation" if self.order_of == "scales" else "mean"
                raise ValueError(
                    "known_labels contradict the order of the components: along feature "
                    f"{self.feature}, the {what} of the rows of class {k} is below that of class "
                    f"{earlier[contradicting][0]}. Number the classes in the order of these "
                    f"{what}s."
                )

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


def _between(values: Array, classes: Array) -> Array:
    """Return values (K,) of which all but those of classes are moved between these."""
    if len(classes) == 0:
        return values
    moved = values.copy()
    in_order = project(values[classes], np.ones(len(classes)), 0.0)
    next_class = np.searchsorted(classes, np.arange(len(values)))
    least = np.append(-np.inf, in_order)[next_class]
    largest = np.append(in_order, np.inf)[next_class]
    free = np.setdiff1d(np.arange(len(values)), classes)
    moved[free] = np.clip(values, least, largest)[free]
    moved[classes] = in_order
    return moved


def _sums_by_class(known: Array, centres: Array, feature: int, block: DenseBlock) -> Array:
    """Return counts and sums about centres (K,) of the rows of known classes, (3, K)."""
    K = len(centres)
    labels = known[block.start : block.start + len(block.weights)]
    values = block.X[:, feature].astype(np.float64)
    rows = (labels >= 0) & (labels < K) & ~np.isnan(values)
    labels = labels[rows]
    gaps = values[rows] - centres[labels]
    weights = block.weights[rows]
    powers = [weights, weights * gaps, weights * gaps**2]
    return np.array([np.bincount(labels, weights=each, minlength=K) for each in powers])
