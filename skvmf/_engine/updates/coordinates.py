"""Coordinates of the means: absolute, or a reference and ordered gaps along one feature.

References
----------
Esser and Nielsen, "On the influence of enforcing model identifiability on learning dynamics
of Gaussian mixture models", section 2.
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
        """Return the means."""
        return means

    def to_means(self, coordinates: Array) -> Array:
        """Return the means."""
        return coordinates

    def jacobian(self, coordinates: Array) -> Array:
        """Return the identity."""
        return np.eye(coordinates.size)

    def pull_back(self, coordinates: Array, gradient: Array) -> Array:
        """Return the gradient."""
        return gradient

    def keep_order(self, means: Array, alive: Array) -> Array:
        """Return the means."""
        return means

    def place(self, means: Array, alive: Array, k: int, row: Array) -> Array:
        """Return means with mean k at the row."""
        placed = means.copy()
        placed[k] = row
        return placed


@dataclass(frozen=True)
class RelativeCoordinates:
    """The first mean, and the gaps from each mean to the next.

    Along `feature` gaps are at least `clearance`, which keeps the means in order and away from
    the overlap of components.

    Parameters
    ----------
    feature : int
        The feature that orders the means.
    clearance : float
        The least gap along it, at least 0.
    squared : bool
        Whether the coordinate along it is the root of what a gap has above the clearance. Any
        real number is then allowed, as gradient methods want it, at the price of a stationary
        point at 0.
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
        ordered: Array = isotonic_regression(values - steps, sample_weight=weights)
        return np.where(ordered == values - steps, values, ordered + steps)

    def keep_order(self, means: Array, alive: Array) -> Array:
        """Return means in order to the last digit.

        Those `alive` have the clearance, by moving up where rounding took it; the others lie
        between their neighbours.
        """
        ordered = means.copy()
        column = ordered[:, self.feature]
        column[alive] = self._apart(column[alive])
        floor = np.maximum.accumulate(np.where(alive, column, -np.inf))
        ceiling = np.minimum.accumulate(np.where(alive, column, np.inf)[::-1])[::-1]
        column[~alive] = np.clip(column, floor, ceiling)[~alive]
        return ordered

    def place(self, means: Array, alive: Array, k: int, row: Array) -> Array:
        """Return means with mean k at the row, moved along the feature to between neighbours.

        Where there is no room between those alive, they make some.
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

    def _apart(self, values: Array) -> Array:
        apart = values.copy()
        for k in range(1, len(apart)):
            least = apart[k - 1] + self.clearance
            if least - apart[k - 1] < self.clearance:
                least = np.nextafter(least, np.inf)
            apart[k] = max(apart[k], least)
        return apart


Coordinates: TypeAlias = AbsoluteCoordinates | RelativeCoordinates


def pull_back_information(jacobian: Array, information: Array) -> Array:
    """Return Fisher information J'IJ with respect to the coordinates."""
    pulled: Array = jacobian.T @ information @ jacobian
    return pulled
