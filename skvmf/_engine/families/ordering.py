"""Gaussian components in order along one feature: the constraint, and the updates that keep it.

See Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics of
Gaussian mixture models", section 2; for the means section 4.2 and algorithm 2, for the scales
section 3.1: sigma_2 = sigma_1 + Delta_sigma.

With responsibilities and covariances given, what of the bound depends on the means is a concave
quadratic. An update raises it, and the family takes covariances about the new means; so the bound
never falls. With fractions n_k of the weight and means given, what depends on the standard
deviations sigma along a feature is the sum of -n_k (log sigma_k + S_k / 2 sigma_k^2), where S_k are
mean squared deviations; how other features depend on this one is at its best for any sigma (derived
here).
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from sklearn.isotonic import isotonic_regression

from ..._typing import Array
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .covariance import CovarianceType, near_unit_diagonal, per_component
from .family import Constraint, Update
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .params import Params
from .statistics import Statistics, select_statistics

# How many standard errors the values of two classes may be in the wrong order by: that of equal
# ones are in one of 700 pairs.
MAX_ERRORS = 3.0
_MAX_HALVINGS = 60  # of a step, to the last digit
_MAX_STEPS = 2000  # halvings from the largest to the smallest float, and as many to digits
_MAX_RATIO = 1e100  # of standard deviations, whose square is a float


# Numbers in ascending order, one per component, with a least gap between neighbours. Components
# without rows do not count in the order: they lie between their neighbours.


def project(values: Array, weights: Array, clearance: float) -> Array:
    """Return the nearest values (K,) that have the clearance; those out of reach stay as they are.

    Nearest in weighted squares: isotonic regression of what is left of the values when each has
    stepped back by the clearances before it. Values that have the clearance are returned as they
    are: a fit that goes on begins where the other one ended, to the last digit.
    """
    if (np.diff(values) >= clearance).all():
        return values
    steps = clearance * np.arange(len(values))
    stepped = values - steps
    ordered: Array = isotonic_regression(stepped, sample_weight=weights)
    # The average of equal values is that value, to the last digit.
    lower = np.minimum.accumulate(stepped[::-1])[::-1]
    ordered = np.clip(ordered, lower, np.maximum.accumulate(stepped))
    return np.where(ordered == stepped, values, ordered + steps)


def keep_order(values: Array, non_empty: Array, clearance: float) -> Array:
    """Return values in order to the last digit: others lie between `non_empty` neighbours.

    These have the clearance, by moving up where rounding took it.
    """
    ordered = values.copy()
    with_gaps = values[non_empty]
    for k in range(1, len(with_gaps)):
        least = with_gaps[k - 1] + clearance
        if least - with_gaps[k - 1] < clearance:
            least = np.nextafter(least, np.inf)
        with_gaps[k] = max(with_gaps[k], least)
    ordered[non_empty] = with_gaps
    floor = np.maximum.accumulate(np.where(non_empty, ordered, -np.inf))
    ceiling = np.minimum.accumulate(np.where(non_empty, ordered, np.inf)[::-1])[::-1]
    ordered[~non_empty] = np.clip(ordered, floor, ceiling)[~non_empty]
    return ordered


def insert(values: Array, non_empty: Array, k: int, value: float, clearance: float) -> Array:
    """Return values with value k as near to another as its neighbours allow; they make a gap."""
    floor = max(values[:k][non_empty[:k]], default=-np.inf) + clearance
    ceiling = min(values[k + 1 :][non_empty[k + 1 :]], default=np.inf) - clearance
    moved = values.copy()
    if floor <= ceiling:
        moved[k] = np.clip(value, floor, ceiling)
    else:  # the neighbours are too near each other: it goes between them, and they step back
        moved[k] = (floor + ceiling) / 2
    in_order = non_empty.copy()
    in_order[k] = True
    moved[in_order] = project(moved[in_order], np.ones(in_order.sum()), clearance)
    return keep_order(moved, in_order, clearance)


# Means in order, from the statistics alone.


@dataclass(frozen=True)
class MeanUpdate(Update):
    """Means first, in order along a feature; then covariances about them."""

    feature: int
    clearance: float = 0.0

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        non_empty = stats.non_empty
        precisions = family.type.each_precision(components.cholesky, *components.means.shape)
        precisions = per_component(stats.counts / stats.total, precisions) * precisions
        best = family.sample_means(stats, components)
        means = components.means.copy()
        means[non_empty] = self.move(best[non_empty], precisions[non_empty], means[non_empty])
        self._keep_order(means, non_empty)
        updated, singular = family.maximize(stats, components, means)
        if singular.any():  # these are back where they were
            means = updated.means.copy()
            self._keep_order(means, non_empty & ~singular)
            updated = family.components(means, updated.covariances)
        return updated, singular

    def _keep_order(self, means: Array, non_empty: Array) -> None:
        """Put means in order in place."""
        means[:, self.feature] = keep_order(means[:, self.feature], non_empty, self.clearance)

    def reseed(
        self, family: Gaussian, components: GaussianComponents, non_empty: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, or as near to it as the order of the others allows."""
        moved = family.reseed(components, k, row)
        means = components.means.copy()
        means[k] = row
        along = components.means[:, self.feature]
        means[:, self.feature] = insert(along, non_empty, k, row[self.feature], self.clearance)
        return family.components(means, moved.covariances)

    @abstractmethod
    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        """Return better means mu (K, d), by the bound -sum_k (m_k - mu_k)' Q_k (m_k - mu_k) / 2.

        `best` (K, d) are the weighted means m_k of the rows; `precisions` are Q_k = N_k P_k / N,
        (K, d, d), or their diagonals, (K, d).
        """


class RelativeEM(MeanUpdate):
    """The exact M-step in relative coordinates: EM, if no gap is at its clearance.

    Along the ordering feature it is an isotonic regression of the weighted means with weights
    N_k / Sigma_k,ll; the other features follow by regression on this one (derived here).
    """

    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        feature = self.feature
        columns = np.array([_covariance_column(P, feature) for P in precisions])
        values = project(best[:, feature], 1 / columns[:, feature], self.clearance)
        slopes = columns / columns[:, feature, None]
        moved: Array = best + slopes * (values - best[:, feature])[:, None]
        moved[:, feature] = values
        return moved


class RelativeECM(MeanUpdate):
    """Conditional maximization: the reference mean first, then one gap after the other.

    The paper's algorithm 1, line 6, loses a sign and takes the wrong count; for K = 2 and unit
    variances it is mu_1 = (T_1 + T_2 - N_2 Delta) / (N_1 + N_2), with T_k the weighted sums of
    rows. A gap below its clearance is set to it, and the other features are solved for again.
    """

    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        """Return means after one conditional maximum each over the reference and the gaps."""
        feature = self.feature
        moved = means.copy()
        axes = "kd,kd->kd" if precisions.ndim == 2 else "kde,ke->kd"
        for k in range(len(moved)):  # a gap moves all means after it
            precision = precisions[k:].sum(axis=0)
            gradients = np.einsum(axes, precisions, best - moved)
            shift = _solve(precision, gradients[k:].sum(axis=0))
            if k > 0:
                gap = moved[k, feature] + shift[feature] - moved[k - 1, feature]
                if gap < self.clearance:
                    column = _covariance_column(precision, feature)
                    shift += column * ((self.clearance - gap) / column[feature])
            moved[k:] += shift
        return moved


def _solve(precision: Array, vector: Array) -> Array:
    """Solve for a vector (d,); the matrix (d, d) or its diagonal (d,) is positive."""
    if precision.ndim == 1:
        return vector / precision
    units = near_unit_diagonal(precision)
    return np.linalg.solve(precision * np.outer(units, units), vector * units) * units


def _covariance_column(precision: Array, feature: int) -> Array:
    """Return one column (d,) of the inverse."""
    return _solve(precision, np.eye(1, len(precision), feature)[0])


# Standard deviations in order.


@dataclass(frozen=True, eq=False)
class ScaleObjective:
    """The bound as a function of standard deviations, per unit of weight."""

    fractions: Array  # n_k, of the weight
    best: Array  # the standard deviations that maximize it, the roots of S_k

    def slopes(self, scales: Array) -> Array:
        with np.errstate(over="ignore"):
            ratios = np.minimum(self.best / scales, _MAX_RATIO)
            slopes: Array = self.fractions * (ratios**2 - 1) / scales
        return slopes

    def value(self, scales: Array) -> float:
        """Return the value, less than at the maximum."""
        ratios = np.minimum(self.best / scales, _MAX_RATIO)
        return float(np.sum(self.fractions * (np.log(ratios) + 0.5 * (1 - ratios**2))))

    def part(self, some: slice) -> "ScaleObjective":
        return ScaleObjective(self.fractions[some], self.best[some])

    def moved_together(self, scales: Array) -> Array:
        """Return standard deviations, the least first, all moved by the same best amount."""
        here = scales[0]
        gaps = scales - here

        def slope(first: float) -> float:
            return float(self.slopes(first + gaps).sum())

        at_start = slope(here)
        if at_start == 0:
            return scales
        low = here
        high = max(here, np.max(self.best - gaps))
        if at_start < 0:
            high = here
            while slope(low) < 0:  # ends: the first term grows beyond all others
                high = low
                low = low / 2
        if slope(high) >= 0:  # but for rounding, all are at their best there
            first = high
        else:
            # To the last digit, however small the root is.
            first = brentq(slope, low, high, xtol=1e-300, rtol=1e-15, maxiter=_MAX_STEPS)
        # The sum may have several hills: halve the step until it is no lower than at the start.
        value = self.value(scales)
        for _ in range(_MAX_HALVINGS):
            moved: Array = first + gaps
            if self.value(moved) >= value:
                return moved
            first = here + (first - here) / 2
        return scales


@dataclass(frozen=True)
class ScaleOrder:
    """Standard deviations along a feature in ascending order, with a least gap."""

    feature: int
    clearance: float = 0.0

    def scales(self, kind: CovarianceType, covariances: Array, K: int) -> Array:
        return np.sqrt(kind.along(covariances, K, self.feature))

    def apart(self, kind: CovarianceType, covariances: Array, non_empty: Array) -> Array:
        """Return covariances whose components are wider or narrower, so that they are in order."""
        moved = self.scales(kind, covariances, len(non_empty))
        if non_empty.any():
            scales = moved[non_empty]
            in_order = project(scales, np.ones(len(scales)), self.clearance)
            moved[non_empty] = self._wide(in_order, scales)
        return self.resized(kind, covariances, keep_order(moved, non_empty, self.clearance))

    def insert(self, scales: Array, non_empty: Array, k: int) -> Array:
        """Return standard deviations with that of k unchanged, or as near as the order allows."""
        moved = self._wide(insert(scales, non_empty, k, scales[k], self.clearance), scales)
        in_order = non_empty | (np.arange(len(non_empty)) == k)
        return keep_order(moved, in_order, self.clearance)

    def resized(self, kind: CovarianceType, covariances: Array, moved: Array) -> Array:
        """Return covariances of the same shapes with other standard deviations."""
        scales = self.scales(kind, covariances, len(moved))
        ratios = per_component(moved / scales, covariances)
        sized = kind.stretched(covariances * ratios * ratios, self.feature, moved**2)
        return kind.replaced(covariances, moved != scales, by=sized)

    @staticmethod
    def _wide(moved: Array, scales: Array) -> Array:
        """Return all moved up where an order from the middle leaves the first next to no width."""
        least: float = scales.min()
        if moved.min() >= least / 2:
            return moved
        return (moved - moved.min()) + least

    def conditional(self, target: ScaleObjective, scales: Array) -> Array:
        """Return the conditional maxima over the first, then over one gap after the other."""
        moved = scales.copy()
        for k in range(len(moved)):  # a gap moves all after it
            from_k = slice(k, None)
            best = target.part(from_k).moved_together(moved[from_k])
            if k > 0:
                missing = moved[k - 1] + self.clearance - best[0]
                best += max(missing, 0.0)
            moved[from_k] = best
        return moved

    def joint(self, target: ScaleObjective, scales: Array) -> Array:
        """Return the best standard deviations in order, by pooling adjacent violators.

        Without a clearance a pool has the weighted mean of its variances. With one, the sum over a
        pool may have several hills: where another one is lower, conditional maxima are left.
        """
        firsts: list[float] = []  # of pools
        sizes: list[int] = []
        for k in range(len(scales)):
            firsts.append(float(target.best[k]))
            sizes.append(1)
            while len(sizes) > 1 and firsts[-1] < firsts[-2] + self.clearance * sizes[-2]:
                # The last two pools become one, up to k.
                n_last = sizes.pop()
                sizes[-1] += n_last
                firsts.pop()
                firsts[-1] = self._pooled(target.part(slice(k + 1 - sizes[-1], k + 1)))
        pools = zip(firsts, sizes, strict=True)
        moved = np.concatenate([first + self.clearance * np.arange(size) for first, size in pools])
        if target.value(moved) < target.value(scales):
            return self.conditional(target, scales)
        return moved

    def _pooled(self, target: ScaleObjective) -> float:
        """Return the least of standard deviations that are as near as they may be."""
        squares = target.fractions @ target.best**2 / target.fractions.sum()
        first = np.sqrt(squares)
        if self.clearance == 0:
            return float(first)
        scales = first + self.clearance * np.arange(len(target.best))
        return float(target.moved_together(scales)[0])


@dataclass(frozen=True)
class ScaleUpdate(Update):
    """Means by an update of theirs, covariances about them; then standard deviations in order."""

    means: Update
    order: ScaleOrder
    joint: bool = False  # whether all are moved at once rather than one after the other

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        updated, singular = self.means(family, stats, components)
        kind = family.type
        non_empty = stats.non_empty & ~singular
        K = len(non_empty)
        best = self.order.scales(kind, updated.covariances, K)
        moved = best.copy()
        if non_empty.any():
            before = self.order.scales(kind, components.covariances, K)
            _, exponent = np.frexp(best[non_empty].max())
            unit = np.ldexp(1.0, exponent)  # in which no power of them overflows
            in_units = ScaleOrder(self.order.feature, self.order.clearance / unit)
            fractions = stats.counts[non_empty] / stats.total
            target = ScaleObjective(fractions, best[non_empty] / unit)
            move = in_units.joint if self.joint else in_units.conditional
            moved[non_empty] = unit * move(target, before[non_empty] / unit)
        moved = keep_order(moved, non_empty, self.order.clearance)
        changed = moved != best
        if not changed.any():
            return updated, singular
        stretched = kind.stretched(updated.covariances, self.order.feature, moved**2)
        covariances = kind.replaced(updated.covariances, changed, by=stretched)
        ordered = family.components(updated.means, covariances)
        if np.isnan(ordered.log_det).any():  # too thin for floats: the step waits
            ordered = family.components(updated.means, components.covariances)
        return ordered, singular

    def reseed(
        self, family: Gaussian, components: GaussianComponents, non_empty: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, as wide as the order of the others allows."""
        moved = self.means.reseed(family, components, non_empty, k, row)
        scales = self.order.scales(family.type, moved.covariances, len(non_empty))
        in_order = self.order.insert(scales, non_empty, k)
        covariances = self.order.resized(family.type, moved.covariances, in_order)
        return family.components(moved.means, covariances)


# The constraint.


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
        first = family.components(means, covariances)
        if np.isnan(first.log_det).any():
            raise ValueError(
                "Covariances that are put in order are singular but for rounding: the rows of a "
                f"component lie in a subspace. Increase reg_covar (now {family.reg_covar}) or "
                "choose a simpler covariance_type."
            )
        return replace(params, components=first)

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
    labels = known[block.span]
    values = block.X[:, feature].astype(np.float64)
    rows = (labels >= 0) & (labels < K) & ~np.isnan(values)
    labels = labels[rows]
    gaps = values[rows] - centres[labels]
    weights = block.weights[rows]
    powers = [weights, weights * gaps, weights * gaps**2]
    sums = [np.bincount(labels, weights=each, minlength=K) for each in powers]
    # Where a block has no row of a known class, these are integers.
    return np.array(sums, dtype=np.float64)
