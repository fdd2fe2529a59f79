"""Updates of Gaussian standard deviations that are in order along one feature.

With fractions n_k of the weight and means given, what of the bound depends on the standard
deviations sigma along a feature is the sum of -n_k (log sigma_k + S_k / 2 sigma_k^2), where S_k are
mean squared deviations; how other features depend on this one is at its best for any sigma (derived
here). See Esser and Nielsen, "On the influence of enforcing model identifiability on learning
dynamics of Gaussian mixture models", section 3.1: sigma_2 = sigma_1 + Delta_sigma.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from ..._typing import Array
from .covariance import CovarianceType, per_component
from .family import Update
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .isotonic import insert, keep_order, project
from .statistics import Statistics

_MAX_HALVINGS = 60  # of a step, to the last digit
_MAX_STEPS = 2000  # halvings from the largest to the smallest float, and as many to digits
_MAX_RATIO = 1e100  # of standard deviations, whose square is a float


@dataclass(frozen=True)
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
        """Return all moved up where an order from the middle leaves the first no width."""
        least: float = scales.min()
        return (moved - moved.min()) + least if moved.min() < least / 2 else moved

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
            unit = np.ldexp(1.0, np.frexp(best[non_empty].max())[1])  # no power of them overflows
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
