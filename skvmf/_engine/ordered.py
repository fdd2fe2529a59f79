"""Gaussian mixtures whose means or standard deviations are kept in order along one feature.

See Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics of
Gaussian mixture models", section 2.

With responsibilities and covariances given, what of the bound depends on the means is a concave
quadratic. An update raises it, and the family takes covariances about the new means; so the bound
never falls. See Esser and Nielsen, section 4.2 and algorithm 2.

With fractions n_k of the weight and means given, what of the bound depends on the standard
deviations sigma along a feature is the sum of -n_k (log sigma_k + S_k / 2 sigma_k^2), where S_k are
mean squared deviations; how other features depend on this one is at its best for any sigma (derived
here). See Esser and Nielsen, section 3.1: sigma_2 = sigma_1 + Delta_sigma.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from sklearn.isotonic import isotonic_regression

from .._typing import Array
from .contracts import Constraint, Params, Statistics, Update
from .covariance import CovarianceType, per_component
from .gaussian import Gaussian
from .products import GaussianComponents

# Coordinates of the means: absolute, or a reference and ordered gaps along one feature.


@dataclass(frozen=True)
class AbsoluteCoordinates:
    """The means themselves, in no order."""

    def from_means(self, means: Array) -> Array:
        return means

    def to_means(self, coordinates: Array) -> Array:
        return coordinates

    def jacobian(self, coordinates: Array) -> Array:
        return np.eye(coordinates.size)

    def pull_back(self, coordinates: Array, gradient: Array) -> Array:
        return gradient

    def keep_order(self, means: Array, alive: Array) -> Array:
        return means

    def place(self, means: Array, alive: Array, k: int, row: Array) -> Array:
        placed = means.copy()
        placed[k] = row
        return placed


@dataclass(frozen=True)
class RelativeCoordinates:
    """The first mean, and the gaps from each mean to the next.

    Along `feature` gaps are at least `clearance`, which keeps the means in order and away from
    the overlap of components. If `squared`, the coordinate along it is the root of what a gap has
    above the clearance. Any real number is then allowed, as gradient methods want it, at the price
    of a stationary point at 0.
    """

    feature: int = 0
    clearance: float = 0.0
    squared: bool = False

    def from_means(self, means: Array) -> Array:
        """Return the first mean and the gaps (K, d); roots are not negative."""
        coordinates: Array = np.diff(means, axis=0, prepend=0.0)
        if self.squared:
            excess = coordinates[1:, self.feature] - self.clearance
            coordinates[1:, self.feature] = np.sqrt(np.maximum(excess, 0))
        return coordinates

    def to_means(self, coordinates: Array) -> Array:
        """Return the means (K, d)."""
        gaps = np.array(coordinates)
        if self.squared:
            gaps[1:, self.feature] = gaps[1:, self.feature] ** 2 + self.clearance
        return np.cumsum(gaps, axis=0)

    def jacobian(self, coordinates: Array) -> Array:
        """Return d means / d coordinates (K d, K d): sums of gaps, times 2 delta for roots."""
        K, d = coordinates.shape
        jacobian: Array = np.kron(np.tri(K), np.eye(d))
        if self.squared:
            jacobian[:, d + self.feature :: d] *= 2 * coordinates[1:, self.feature]
        return jacobian

    def pull_back(self, coordinates: Array, gradient: Array) -> Array:
        """Return J'g (K, d): a gap moves all means after it."""
        pulled = np.cumsum(gradient[::-1], axis=0)[::-1].copy()
        if self.squared:
            pulled[1:, self.feature] *= 2 * coordinates[1:, self.feature]
        return pulled

    def project(self, values: Array, weights: Array) -> Array:
        """Return the nearest values (K,) along the feature that have the clearance.

        Nearest in weighted squares: isotonic regression of what is left of the values when
        each has stepped back by the clearances before it. Values out of reach of the others
        stay as they are.
        """
        steps = self.clearance * np.arange(len(values))
        stepped = values - steps
        ordered: Array = isotonic_regression(stepped, sample_weight=weights)
        # The average of equal values is that value, to the last digit.
        lower = np.minimum.accumulate(stepped[::-1])[::-1]
        ordered = np.clip(ordered, lower, np.maximum.accumulate(stepped))
        return np.where(ordered == stepped, values, ordered + steps)

    def keep_order(self, means: Array, alive: Array) -> Array:
        """Return means in order to the last digit.

        Those `alive` have the clearance, by moving up where rounding took it; the others lie
        between their neighbours.
        """
        ordered = means.copy()
        column = ordered[:, self.feature]
        values = column[alive]
        for k in range(1, len(values)):
            least = values[k - 1] + self.clearance
            if least - values[k - 1] < self.clearance:
                least = np.nextafter(least, np.inf)
            values[k] = max(values[k], least)
        column[alive] = values
        floor = np.maximum.accumulate(np.where(alive, column, -np.inf))
        ceiling = np.minimum.accumulate(np.where(alive, column, np.inf)[::-1])[::-1]
        column[~alive] = np.clip(column, floor, ceiling)[~alive]
        return ordered

    def place(self, means: Array, alive: Array, k: int, row: Array) -> Array:
        """Return means with mean k at the row, moved along the feature to between neighbours.

        If there is no gap between those alive, they make one.
        """
        column = means[:, self.feature]
        floor = max(column[:k][alive[:k]], default=-np.inf) + self.clearance
        ceiling = min(column[k + 1 :][alive[k + 1 :]], default=np.inf) - self.clearance
        if floor > ceiling:
            floor = ceiling = (floor + ceiling) / 2
        placed, present = means.copy(), alive.copy()
        placed[k], present[k] = row, True
        placed[k, self.feature] = np.clip(row[self.feature], floor, ceiling)
        room = self.project(placed[present, self.feature], np.ones(present.sum()))
        placed[present, self.feature] = room
        return self.keep_order(placed, present)


Coordinates: TypeAlias = AbsoluteCoordinates | RelativeCoordinates


def pull_back_information(jacobian: Array, information: Array) -> Array:
    """Return Fisher information J'IJ with respect to the coordinates."""
    return jacobian.T @ information @ jacobian


# Updates of ordered Gaussian means, and gradient ascent, from the statistics alone.


MAX_HALVINGS = 1100  # from the largest to the smallest float


def alive_components(stats: Statistics) -> Array:
    """Return which components (K,) have rows: counts above rounding."""
    return stats.counts > 10 * np.finfo(np.float64).eps * stats.counts.sum()


@dataclass(frozen=True)
class MeanObjective:
    """The bound as a function of the means: -sum_k (m_k - mu_k)' N_k P_k (m_k - mu_k) / 2 N."""

    best: Array  # the weighted means m_k of the rows, (K, d)
    precisions: Array  # N_k P_k / N, (K, d, d), or their diagonals, (K, d)

    def gradient(self, means: Array) -> Array:
        """Return the gradient at means (K, d)."""
        gaps = self.best - means
        axes = "kd,kd->kd" if self.precisions.ndim == 2 else "kde,ke->kd"
        return np.einsum(axes, self.precisions, gaps)

    def value(self, means: Array) -> float:
        """Return the value at means (K, d)."""
        return -0.5 * float(np.sum(self.gradient(means) * (self.best - means)))


def objective(family: Gaussian, stats: Statistics, components: GaussianComponents) -> MeanObjective:
    """Return the objective of the means for the covariances of the components."""
    precisions = family.type.each_precision(components.cholesky, *components.means.shape)
    fractions = per_component(stats.counts / stats.total, precisions)
    return MeanObjective(family.sample_means(stats, components), fractions * precisions)


@dataclass(frozen=True)
class MeanUpdate(Update):
    """Means first, within the order of the coordinates; then covariances about them.

    Components without rows do not count in the order: they lie between their neighbours.
    """

    coordinates: Coordinates

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        alive = alive_components(stats)
        target = objective(family, stats, components)
        of_alive = MeanObjective(target.best[alive], target.precisions[alive])
        means = components.means.copy()
        means[alive] = self.move(of_alive, means[alive])
        means = self.coordinates.keep_order(means, alive)
        fresh, broken = family.maximize(stats, components, means)
        if broken.any():  # these are back where they were
            means = self.coordinates.keep_order(fresh.means, alive & ~broken)
            fresh = family.components(means, fresh.covariances)
        return fresh, broken

    def reseed(
        self, family: Gaussian, components: GaussianComponents, alive: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, or as near to it as the order of those alive allows."""
        fresh = family.reseed(components, k, row)
        means = self.coordinates.place(components.means, alive, k, row)
        return family.components(means, fresh.covariances)

    @abstractmethod
    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return better means (K, d)."""


@dataclass(frozen=True)
class RelativeEM(MeanUpdate):
    """The exact M-step in relative coordinates: EM, if no gap is at its clearance.

    Along the ordering feature it is an isotonic regression of the weighted means with weights
    N_k / Sigma_k,ll; the other features follow by regression on this one (derived here).
    """

    coordinates: RelativeCoordinates

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return the best means that have the clearance."""
        feature = self.coordinates.feature
        columns = np.array([_covariance_column(P, feature) for P in target.precisions])
        best = target.best[:, feature]
        values = self.coordinates.project(best, 1 / columns[:, feature])
        slopes = columns / columns[:, feature, None]
        moved: Array = target.best + slopes * (values - best)[:, None]
        moved[:, feature] = values
        return moved


@dataclass(frozen=True)
class RelativeECM(MeanUpdate):
    """Conditional maximization: the reference mean first, then one gap after the other.

    The paper's algorithm 1, line 6, loses a sign and takes the wrong count; for K = 2 and unit
    variances it is mu_1 = (T_1 + T_2 - N_2 Delta) / (N_1 + N_2), with T_k the weighted sums of
    rows. A gap below its clearance is set to it, and the other features are solved for again.
    """

    coordinates: RelativeCoordinates

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return means after one conditional maximum each over the reference and the gaps."""
        feature, clearance = self.coordinates.feature, self.coordinates.clearance
        moved = means.copy()
        for k in range(len(moved)):  # a gap moves all means after it
            precision = target.precisions[k:].sum(axis=0)
            shift = _solve(precision, target.gradient(moved)[k:].sum(axis=0))
            if k > 0:
                gap = moved[k, feature] + shift[feature] - moved[k - 1, feature]
                if gap < clearance:
                    column = _covariance_column(precision, feature)
                    shift += column * ((clearance - gap) / column[feature])
            moved[k:] += shift
        return moved


@dataclass(frozen=True)
class GradientStep(MeanUpdate):
    """One step up the gradient of the bound per unit of weight; halved until the bound rises."""

    learning_rate: float

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return means after one step."""
        here = self.coordinates.from_means(means)
        gradient = self.coordinates.pull_back(here, target.gradient(means))
        rate, value = self.learning_rate, target.value(means)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(MAX_HALVINGS):
                moved = self.coordinates.to_means(here + rate * gradient)
                if target.value(moved) >= value:
                    return moved
                rate /= 2
        return means


def _solve(precision: Array, vector: Array) -> Array:
    """Solve for a vector (d,); the matrix (d, d) or its diagonal (d,) is positive."""
    return np.linalg.solve(precision, vector) if precision.ndim == 2 else vector / precision


def _covariance_column(precision: Array, feature: int) -> Array:
    """Return one column (d,) of the inverse."""
    return _solve(precision, np.eye(1, len(precision), feature)[0])


# Updates of Gaussian standard deviations that are in order along one feature.


_MAX_HALVINGS = 60  # to the last digit
_MAX_STEPS = 2000  # halvings from the largest to the smallest float, and as many to digits
_MAX_RATIO = 1e100  # ratio of standard deviations whose square is a float


@dataclass(frozen=True)
class ScaleObjective:
    """The bound as a function of standard deviations, per unit of weight."""

    fractions: Array  # n_k, of the weight
    best: Array  # the standard deviations that maximize it, the roots of S_k

    def slopes(self, scales: Array) -> Array:
        """Return the derivatives by each standard deviation."""
        with np.errstate(over="ignore"):
            ratios = np.minimum(self.best / scales, _MAX_RATIO)
            slopes: Array = self.fractions * (ratios**2 - 1) / scales
        return slopes

    def value(self, scales: Array) -> float:
        """Return the value, less than at the maximum."""
        ratios = np.minimum(self.best / scales, _MAX_RATIO)
        return float(np.sum(self.fractions * (np.log(ratios) + 0.5 * (1 - ratios**2))))

    def part(self, some: slice) -> "ScaleObjective":
        """Return the objective of some of the standard deviations."""
        return ScaleObjective(self.fractions[some], self.best[some])

    def moved_together(self, scales: Array) -> Array:
        """Return standard deviations, the least first, all moved by the same best amount."""
        here, gaps = scales[0], scales - scales[0]

        def slope(first: float) -> float:
            return float(self.slopes(first + gaps).sum())

        if slope(here) == 0:
            return scales
        low, high = here, max(here, np.max(self.best - gaps))
        if slope(here) < 0:
            high = here
            while slope(low) < 0:  # ends: the first term grows beyond all others
                low, high = low / 2, low
        if slope(high) >= 0:  # but for rounding, all are at their best there
            first = high
        else:
            first = brentq(slope, low, high, xtol=1e-300, rtol=1e-15, maxiter=_MAX_STEPS)
        value = self.value(scales)
        for _ in range(_MAX_HALVINGS):
            moved: Array = first + gaps
            if self.value(moved) >= value:
                return moved
            first = here + (first - here) / 2  # the root of another hill
        return scales


@dataclass(frozen=True)
class ScaleOrder:
    """Standard deviations along a feature in ascending order, with a least gap."""

    feature: int
    clearance: float = 0.0

    @property
    def coordinates(self) -> RelativeCoordinates:
        """The coordinates of standard deviations as a column (K, 1)."""
        return RelativeCoordinates(0, self.clearance)

    def scales(self, kind: CovarianceType, covariances: Array, K: int) -> Array:
        """Return the standard deviations (K,)."""
        return np.sqrt(kind.along(covariances, K, self.feature))

    def apart(self, kind: CovarianceType, covariances: Array, K: int) -> Array:
        """Return covariances whose components are wider or narrower, so that they are in order."""
        scales = self.scales(kind, covariances, K)
        moved = self._wide(self.coordinates.project(scales, np.ones(K)), scales)
        moved = self.coordinates.keep_order(moved[:, None], np.ones(K, dtype=bool))[:, 0]
        return self.resized(kind, covariances, moved)

    def place(self, scales: Array, alive: Array, k: int) -> Array:
        """Return standard deviations with that of k unchanged, or as near as the order allows."""
        placed = self.coordinates.place(scales[:, None], alive, k, scales[k : k + 1])[:, 0]
        present = alive | (np.arange(len(alive)) == k)
        return self.coordinates.keep_order(self._wide(placed, scales)[:, None], present)[:, 0]

    def resized(self, kind: CovarianceType, covariances: Array, moved: Array) -> Array:
        """Return covariances of the same shapes with other standard deviations."""
        scales = self.scales(kind, covariances, len(moved))
        ratios = per_component(moved / scales, covariances)
        sized = kind.stretched(covariances * ratios * ratios, self.feature, moved**2)
        return kind.replaced(covariances, moved != scales, by=sized)

    @staticmethod
    def _wide(moved: Array, scales: Array) -> Array:
        """Return all moved up where an order from the middle leaves the first no width."""
        least: float = scales.min()
        return (moved - moved.min()) + least if moved.min() < least / 2 else moved

    def conditional(self, target: ScaleObjective, scales: Array) -> Array:
        """Return the conditional maxima over the first, then over one gap after the other."""
        moved = scales.copy()
        for k in range(len(moved)):  # a gap moves all after it
            some = slice(k, None)
            fresh = target.part(some).moved_together(moved[some])
            if k > 0:
                short = moved[k - 1] + self.clearance - fresh[0]
                fresh += max(short, 0.0)
            moved[some] = fresh
        return moved

    def joint(self, target: ScaleObjective, scales: Array) -> Array:
        """Return the best standard deviations in order, by pooling adjacent violators.

        Without a clearance a pool has the weighted mean of its variances. With one, the sum over a
        pool may have several hills: where another one is lower, conditional maxima are left.
        """
        firsts: list[float] = []
        sizes: list[int] = []
        for k in range(len(scales)):
            firsts.append(float(target.best[k]))
            sizes.append(1)
            while len(sizes) > 1 and firsts[-1] < firsts[-2] + self.clearance * sizes[-2]:
                sizes[-2:] = [sizes[-2] + sizes[-1]]
                firsts[-2:] = [self._pooled(target.part(slice(k + 1 - sizes[-1], k + 1)))]
        pools = zip(firsts, sizes, strict=True)
        moved = np.concatenate([first + self.clearance * np.arange(size) for first, size in pools])
        if target.value(moved) < target.value(scales):
            return self.conditional(target, scales)
        return moved

    def _pooled(self, target: ScaleObjective) -> float:
        """Return the least of standard deviations that are as near as they may be."""
        squares = target.fractions @ target.best**2 / target.fractions.sum()
        first = np.sqrt(squares) * np.ones(1)
        if self.clearance == 0:
            return float(first[0])
        return float(target.moved_together(first + self.clearance * np.arange(len(target.best)))[0])


@dataclass(frozen=True)
class ScaleUpdate(Update):
    """Means by an update of theirs, covariances about them; then standard deviations in order.

    Components without rows do not count in the order: they lie between their neighbours.
    """

    means: Update
    order: ScaleOrder
    joint: bool = False  # whether all are moved at once rather than one after the other

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        fresh, broken = self.means(family, stats, components)
        alive = alive_components(stats) & ~broken
        kind, K = family.type, len(alive)
        best = self.order.scales(kind, fresh.covariances, K)
        here = self.order.scales(kind, components.covariances, K)
        moved = best.copy()
        if alive.any():
            unit = np.ldexp(1.0, np.frexp(best[alive].max())[1])  # no power of them overflows
            scaled = ScaleOrder(self.order.feature, self.order.clearance / unit)
            target = ScaleObjective(stats.counts[alive] / stats.total, best[alive] / unit)
            move = scaled.joint if self.joint else scaled.conditional
            moved[alive] = unit * move(target, here[alive] / unit)
        moved = self.order.coordinates.keep_order(moved[:, None], alive)[:, 0]
        changed = moved != best
        if not changed.any():
            return fresh, broken
        stretched = kind.stretched(fresh.covariances, self.order.feature, moved**2)
        covariances = kind.replaced(fresh.covariances, changed, by=stretched)
        ordered = family.components(fresh.means, covariances)
        if np.isnan(ordered.log_det).any():  # too thin for floats: the step waits
            ordered = family.components(fresh.means, components.covariances)
        return ordered, broken

    def reseed(
        self, family: Gaussian, components: GaussianComponents, alive: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, as wide as the order of those alive allows."""
        fresh = self.means.reseed(family, components, alive, k, row)
        scales = self.order.scales(family.type, fresh.covariances, len(alive))
        placed = self.order.place(scales, alive, k)
        return family.components(
            fresh.means, self.order.resized(family.type, fresh.covariances, placed)
        )


# Components of Gaussian mixtures that are kept in order along one feature.


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

    def apply(
        self,
        family: Gaussian,
        params: Params,
        weights: Array | None = None,
        shapes: Array | None = None,
    ) -> Params:
        """Return first parameters in order and apart; what is given is in that order."""
        order, kind = self.order(params.components), self.covariance_type
        means = self.apart(params.components.means[order], family.scale)
        covariances = kind.select(params.components.covariances, order)
        if shapes is not None:
            covariances = shapes
        if self.scale_order is not None:
            covariances = self.scale_order.apart(kind, covariances, len(means))
        kept = params.reordered(order, params.components) if weights is None else params
        return replace(kept, components=family.components(means, covariances))

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
