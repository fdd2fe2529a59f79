"""What a step hands round: parameters one way, statistics the other."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import Array
from ..data.buffers import BufferPool


@dataclass(frozen=True)
class Params:
    """Weights and the family's components, and what has befallen components in this fit.

    `reseeded` marks those that have been moved to a row or pruned, which happens once;
    `on_floor` those whose weight is the least that the weight prior allows. There may be one
    weight more than components: the background's.
    """

    weights: Array
    components: Any
    reseeded: Array
    on_floor: Array

    @classmethod
    def first(cls, weights: Array, components: Any) -> "Params":
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
    `counts` (K,) and the tuple `moments` are the family's, about the points `origins` (K, d)
    or about zero. `worst_value` and `worst_row` are the least likely row's, the first on
    ties. The first moments of what has been added go to `spare`, as sums to be filled again.
    """

    value: float
    total: float
    counts: Array
    moments: tuple[Array, ...]
    origins: Array | None
    worst_value: float
    worst_row: Array
    buffers: BufferPool | None = None

    def __iadd__(self, other: "Statistics") -> "Statistics":
        self.value += other.value
        self.total += other.total
        self.counts += other.counts
        for mine, theirs in zip(self.moments, other.moments, strict=True):
            mine += theirs
        if other.worst_value < self.worst_value:
            self.worst_value, self.worst_row = other.worst_value, other.worst_row
        if other.buffers is not None:
            other.buffers.give("sums", other.moments[0])
        return self

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"buffers": None}  # is of use only where the blocks are

    def scaled(self, factor: float) -> "Statistics":
        """Return the statistics of the same rows with their weights multiplied."""
        return replace(
            self,
            value=factor * self.value,
            total=factor * self.total,
            counts=factor * self.counts,
            moments=tuple(factor * moment for moment in self.moments),
            buffers=None,
        )

    def first_components(self, n_components: int) -> "Statistics":
        """Leave out the counts of what has a weight and is no component of the family."""
        if n_components == len(self.counts):
            return self
        return replace(self, counts=self.counts[:n_components])
