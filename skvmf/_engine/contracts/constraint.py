"""What components must fulfil beyond their family's bounds: an order, gaps, known parameters."""

from dataclasses import replace
from typing import Any, Protocol

from ..._typing import Array
from .model_parts import AnyFamily
from .statistics import Params, Statistics


class Given(Protocol):
    """What the user gives of the first parameters; None stands for what is not given."""

    @property
    def weights(self) -> Array | None:
        """First weights, (K,)."""

    @property
    def shapes(self) -> Array | None:
        """First covariances, scale matrices or concentrations."""


class Constraint:
    """No constraint; subclasses override what they constrain.

    The update keeps a constraint from step to step. This object establishes it for parameters of
    a start or an earlier fit, and puts components into the order in which a fit publishes them.
    """

    def apply(self, family: Any, params: Params, given: Given | None = None) -> Params:
        """Return first parameters that fulfil the constraint, with what the user has given."""
        if given is None or given.shapes is None:
            return params
        return replace(params, components=family.reshaped(params.components, given.shapes))

    def order(self, components: Any) -> Array | None:
        """Return the order (K,) in which components are kept; None leaves them as they are."""
        return None

    def sort(
        self, family: Any, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and their statistics with components in the order to keep."""
        return params, stats

    def convert(self, family: AnyFamily, components: Any) -> Any:
        """Return components of an earlier fit as this fit may have them."""
        return components
