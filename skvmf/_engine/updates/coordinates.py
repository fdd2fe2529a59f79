"""Coordinates of the means: absolute, or a reference and ordered gaps along one feature.

See Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics of
Gaussian mixture models", section 2.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._typing import Array


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
