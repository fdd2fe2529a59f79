"""The parameters of a mixture: weights, components, and what has happened to them in a fit."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from ..._typing import Array, Attributes


class Components(Protocol):
    """The parameters of K components; only their family knows more of them."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Params:
    """The parameters of a mixture, and what has happened to its components in this fit."""

    weights: Array  # (K,) or (K + 1,): that of a background is the last
    components: Any  # of the family; their number is ``len(components)``
    moved_or_pruned: Array  # as long as the weights: moved to a row or pruned, which happens once
    on_floor: Array  # as long as the weights: of the least weight that the prior allows
    offsets: Array | None = None  # as long as the weights: subtracted from log-weights; None is 0

    @classmethod
    def first(cls, weights: Array, components: Components) -> "Params":
        """Return parameters of a fit that has not re-seeded or pruned any component."""
        nowhere = np.zeros(len(weights), dtype=bool)
        return cls(weights, components, nowhere, nowhere)

    @classmethod
    def from_dict(cls, components_class: Callable[..., Components], values: Attributes) -> "Params":
        """Return the parameters of `to_dict`."""
        components = components_class(**values["components"])
        return cls(
            values["weights"],
            components,
            values["reseeded"],
            values["on_floor"],
            values.get("offsets"),
        )

    def to_dict(self) -> Attributes:
        """Return the arrays by name, those of the components in a dict of their own.

        The names are those of files: they stay.
        """
        return {
            "weights": self.weights,
            "components": as_dict(self.components),
            "reseeded": self.moved_or_pruned,
            "on_floor": self.on_floor,
            "offsets": self.offsets,
        }

    @property
    def n_components(self) -> int:
        return len(self.components)

    @property
    def component_weights(self) -> Array:
        return self.weights[: self.n_components]

    @property
    def conditional_weights(self) -> Array:
        """The weights of the components for rows that are not of the background, (K,)."""
        if len(self.weights) == self.n_components:
            return self.weights
        # Where the background has every row, all are 0.
        total = max(float(self.component_weights.sum()), float(np.finfo(np.float64).tiny))
        return self.component_weights / total

    @property
    def background_weight(self) -> float:
        return float(self.weights[self.n_components :].sum())

    def pruned(self) -> "Params":
        """Take components without weight as pruned: they are not re-seeded."""
        return replace(self, moved_or_pruned=self.moved_or_pruned | (self.weights == 0))

    def reordered(self, order: Array, components: Components) -> "Params":
        """Return the same with components in another order; they are given in that order."""
        # The background's weight stays the last.
        index = np.append(order, np.arange(self.n_components, len(self.weights)))
        return Params(
            self.weights[index],
            components,
            self.moved_or_pruned[index],
            self.on_floor[index],
            None if self.offsets is None else self.offsets[index],
        )


def as_dict(part: Any) -> Attributes:
    """Return a dataclass's fields; unlike `asdict`, without copies."""
    return {each.name: getattr(part, each.name) for each in fields(part)}


C = TypeVar("C", bound=Components)  # the components of a family
