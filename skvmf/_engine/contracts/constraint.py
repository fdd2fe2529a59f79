"""What components must fulfil beyond their family's bounds: an order, gaps, known parameters."""

from dataclasses import replace
from typing import Any

from ..._typing import Array
from .model_parts import AnyFamily
from .start import Start
from .statistics import Params, Statistics


class Constraint:
    """No constraint; subclasses override what they constrain.

    The update keeps a constraint from step to step. This object establishes it for parameters of
    a start or an earlier fit, and puts components into the order in which a fit publishes them.
    """

    def apply(self, family: Any, params: Params, start: Start | None = None) -> Params:
        """Return first parameters that fulfil the constraint, with what a start gives of them."""
        if start is None or start.shapes is None:
            return params
        return replace(params, components=family.reshaped(params.components, start.shapes))

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
