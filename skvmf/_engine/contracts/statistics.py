"""The parameters of a mixture and the statistics of a step of EM."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from ..._typing import Array, Attributes
from ..data.blocks import BufferPool


class Components(Protocol):
    """The parameters of K components; what else they are is their family's business."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Params:
    """The parameters of a mixture, and what has happened to its components in this fit."""

    weights: Array  # (K,) or (K + 1,): that of a background is the last
    components: Any  # of the family; their number is ``len(components)``
    reseeded: Array  # as long as the weights: moved to a row or pruned, which happens once
    on_floor: Array  # as long as the weights: of the least weight that the prior allows

    @classmethod
    def first(cls, weights: Array, components: Components) -> "Params":
        """Begin a fit: nothing has happened."""
        nowhere = np.zeros(len(weights), dtype=bool)
        return cls(weights, components, nowhere, nowhere)

    @classmethod
    def from_dict(cls, components_class: Callable[..., Components], values: Attributes) -> "Params":
        """Return the parameters of `to_dict`."""
        components = components_class(**values["components"])
        return cls(values["weights"], components, values["reseeded"], values["on_floor"])

    def to_dict(self) -> Attributes:
        """Return the arrays by name, those of the components in a dict of their own."""
        return as_dict(self) | {"components": as_dict(self.components)}

    @property
    def n_components(self) -> int:
        """The number of components K, without the background."""
        return len(self.components)

    @property
    def component_weights(self) -> Array:
        """The weights of the components, (K,)."""
        return self.weights[: self.n_components]

    @property
    def conditional_weights(self) -> Array:
        """The weights of the components for rows that are not of the background, (K,)."""
        if len(self.weights) == self.n_components:
            return self.weights
        total = max(float(self.component_weights.sum()), float(np.finfo(np.float64).tiny))
        return self.component_weights / total

    @property
    def background_weight(self) -> float:
        """The weight of the background; 0 without one."""
        return float(self.weights[self.n_components :].sum())

    def pruned(self) -> "Params":
        """Take components without weight as pruned: they are not re-seeded."""
        return replace(self, reseeded=self.reseeded | (self.weights == 0))

    def with_components(self, components: Components, counts: Array) -> "Params":
        """Return first parameters with other components, weighted by their counts (K,).

        The weight of a background stays as it is.
        """
        rest = self.weights[self.n_components :]
        weights = np.append((1 - rest.sum()) * counts / counts.sum(), rest)
        return Params.first(weights, components)

    def reordered(self, order: Array, components: Components) -> "Params":
        """Return the same with components in another order; they are given in that order."""
        index = np.append(order, np.arange(self.n_components, len(self.weights)))
        return Params(self.weights[index], components, self.reseeded[index], self.on_floor[index])


def as_dict(part: Any) -> Attributes:
    """Return a dataclass's fields; unlike `asdict`, without copies."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


@dataclass
class Statistics:
    """Sums over blocks of rows that an M-step needs.

    `value` is the weighted sum of the rows' posterior values, `total` the sum of weights,
    `counts` (K,) and the tuple `moments` are the family's, about the points `origins` (K, d)
    or about zero. `worst_value` and `worst_row` are the least likely row's, the first on
    ties. The first moments of what has been added go to `buffers`, to be filled again.
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

    def __getstate__(self) -> Attributes:
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
        """Leave out the counts beyond those of the family's components: the background's."""
        if n_components == len(self.counts):
            return self
        return replace(self, counts=self.counts[:n_components])
