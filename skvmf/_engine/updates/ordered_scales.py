"""Updates of Gaussian standard deviations that are in order along one feature.

With fractions n_k of the weight and means given, what of the bound depends on the standard
deviations sigma along a feature is the sum of -n_k (log sigma_k + S_k / 2 sigma_k^2), where S_k are
mean squared deviations; how other features depend on this one is at its best for any sigma (derived
here). See Esser and Nielsen, section 3.1: sigma_2 = sigma_1 + Delta_sigma.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from ..._typing import Array
from ..contracts.model_parts import Update
from ..contracts.statistics import Statistics
from ..families.covariance_type import CovarianceType, per_component
from ..families.gaussian import Gaussian
from ..families.gaussian_products import GaussianComponents
from .coordinates import RelativeCoordinates
from .ordered_means import alive_components

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
