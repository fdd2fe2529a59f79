"""What passes between the answers of a mixture: parameters one way, statistics the other."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .rows import Array


@dataclass(frozen=True)
class Params:
    """Weights and the family's components, and what has befallen components in this fit.

    `reseeded` marks those that were moved to a row, `resting` those whose weight is on the
    floor of the weight prior.
    """

    weights: Array
    components: Any
    reseeded: Array
    resting: Array

    @classmethod
    def start(cls, weights: Array, components: Any) -> "Params":
        """Begin a fit: nothing has happened."""
        nowhere = np.zeros(len(weights), dtype=bool)
        return cls(weights, components, nowhere, nowhere)

    def pruned(self) -> "Params":
        """Take components without weight as pruned: they are not re-seeded."""
        return replace(self, reseeded=self.reseeded | (self.weights == 0))


@dataclass
class Statistics:
    """What blocks of rows add up to.

    `value` is the weighted sum of the rows' posterior values, `total` the sum of weights,
    `counts` (K,) and the tuple `moments` are the family's. `worst_value` and `worst_row` are
    the least likely row's, the first on ties. The first moments of what has been added go to
    `spare`, to be filled again.
    """

    value: float
    total: float
    counts: Array
    moments: tuple[Array, ...]
    worst_value: float
    worst_row: Array
    spare: list[Array] | None = None

    def __iadd__(self, other: "Statistics") -> "Statistics":
        self.value += other.value
        self.total += other.total
        self.counts += other.counts
        for mine, theirs in zip(self.moments, other.moments, strict=True):
            mine += theirs
        if other.worst_value < self.worst_value:
            self.worst_value, self.worst_row = other.worst_value, other.worst_row
        if other.spare is not None:
            other.spare.append(other.moments[0])
        return self
