"""Fitted attributes: what predictions are made of, read-only, and as arrays in a pickle."""

import inspect
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from .._engine.contracts.model_parts import Family
from .._engine.contracts.statistics import Params, Statistics, as_dict
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.families.background import Background
from .._typing import Array
from .._version import stamp, unstamp


class FittedAttributes:
    """Keeps the attributes that follow from a fit's parameters in step with them.

    `_family_class` is what a pickle's arrays become again. Attributes that a class annotates are
    parameters of the fit: only a fit or `from_parameters` may set them.
    """

    weights_: Array
    background_weight_: float
    n_active_components_: int
    effective_n_components_: float

    _fitted: FittedMixture
    _memory: Statistics | None
    _family_class: ClassVar[type[Family]]

    @classmethod
    @cache
    def _fitted_parameters(cls) -> frozenset[str]:
        """Return the names of the attributes that predictions are made of."""
        names = (name for base in cls.__mro__ for name in inspect.get_annotations(base))
        return frozenset(name for name in names if name.endswith("_"))

    def _attributes(self, fitted: FittedMixture, result: EMResult | None = None) -> dict[str, Any]:
        raise NotImplementedError

    def _publish(
        self,
        fitted: FittedMixture,
        memory: Statistics | None = None,
        result: EMResult | None = None,
        **others: Any,
    ) -> None:
        """Set the fit, what is remembered of its rows, and all its attributes, in one step."""
        attributes = self._attributes(fitted, result)
        own = {name: _read_only(value) for name, value in attributes.items()}
        own["weight_seen_"] = 0.0 if memory is None else float(memory.total)
        if memory is not None:
            memory = replace(memory, buffers=None)
        published = vars(self) | own | others | {"_fitted": fitted, "_memory": memory}
        object.__setattr__(self, "__dict__", published)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_fitted":  # as callbacks do for the estimator of an iteration
            self._publish(value)
            return
        if name in self._fitted_parameters() and value is not vars(self).get(name):
            raise AttributeError(
                f"{name} is what a fit has found, and predictions are not made of what it is set "
                f"to: build a mixture of given parameters with {type(self).__name__}"
                ".from_parameters."
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        fitted, memory = state.pop("_fitted", None), state.pop("_memory", None)
        if fitted is not None:
            kept = {k: v for k, v in state.items() if k not in self._fitted_parameters()}
            # Labels of a Dask array are its graph, or a cluster's, and stay with it.
            state = {k: v for k, v in kept.items() if not hasattr(v, "__dask_graph__")}
            params, background = fitted.params, fitted.background
            state["_fit"] = {
                "family": as_dict(fitted.family),
                "components": as_dict(params.components),
                "weights": params.weights,
                "reseeded": params.reseeded,
                "on_floor": params.on_floor,
                "background": None if background is None else as_dict(background),
                "memory": None if memory is None else as_dict(memory),
            }
        return stamp(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = unstamp(state, type(self).__name__)
        fit = state.pop("_fit", None)
        super().__setstate__(state)  # type: ignore[misc]
        if fit is not None:
            family = self._family_class(**fit["family"])
            components = family.components_class(**fit["components"])
            params = Params(fit["weights"], components, fit["reseeded"], fit["on_floor"])
            background = fit["background"]
            background = None if background is None else Background(**background)
            memory = fit.get("memory")
            memory = None if memory is None else Statistics(**memory)
            self._publish(FittedMixture(family, params, background), memory)


def _read_only(value: Any) -> Any:
    """Return an array as one that cannot be written to; the engine's own stays as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
