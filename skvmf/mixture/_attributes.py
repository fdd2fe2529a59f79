"""Fitted attributes: read-only, in step with the fit, and plain arrays in a pickle."""

import inspect
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import entr

from .._engine.contracts.model_parts import AnyFamily
from .._engine.contracts.statistics import Params, Statistics, as_dict
from .._engine.em.fitted import FittedMixture
from .._engine.em.mixture_model import MixtureResult
from .._engine.families.background import Background
from .._typing import Array, Attributes
from ._hints import attribute_hint
from ._parameters import MixtureParameters


class FittedAttributes(MixtureParameters):
    """Fitted attributes of every mixture. Only a fit or `from_parameters` may set them.

    `_fitted` is the fit. Attributes that a class annotates follow from the fit's parameters:
    they are not part of a pickle, but computed again. `_family_class` restores the family.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Mixture weights; 0 for a pruned component. Together with `background_weight_` they sum
        to one.
    background_weight_ : float
        Weight of the background; 0 without one.
    converged_ : bool
        Whether the best start reached `tol`.
    n_iter_ : int
        EM steps of the best start, after the flat start.
    lower_bound_ : float
        Objective of the fit per unit of sample weight: the Fenchel-Young value, which is the
        log-likelihood for softmax responsibilities, plus the log-density of the priors.
    lower_bounds_ : list of float
        The bound at the start and after each step of the best start.
    labels_ : ndarray of shape (n_samples,)
        Most probable component of each row of the fit; -1 is the background. Pruned components
        have no rows. ``np.unique(labels_, return_inverse=True)[1]`` are labels without gaps;
        if the background has rows, it is the first of them.
    probabilities_ : ndarray of shape (n_samples,)
        Responsibility of that component, the largest one of the row; 0 if the label is -1.
    n_steps_ : int
        Calls of `partial_fit` since the last `fit`.
    weight_seen_ : float
        Weight of the rows that `fit` and `partial_fit` after it have seen.
    n_active_components_ : int
        Components with positive weight.
    effective_n_components_ : float
        Exponential of the entropy of the weights.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names seen in `fit`, if X has them.
    """

    weights_: Array
    background_weight_: float
    n_active_components_: int
    effective_n_components_: float

    if TYPE_CHECKING:  # not annotated when the program runs: they are part of a pickle
        converged_: bool
        n_iter_: int
        lower_bound_: float
        lower_bounds_: list[float]
        labels_: Array
        probabilities_: Array
        n_steps_: int
        weight_seen_: float
        n_features_in_: int
        feature_names_in_: Array

    _fitted: FittedMixture
    _memory: Statistics | None
    _family_class: ClassVar[type[AnyFamily]]
    _attribute_hints: ClassVar[dict[str, str]] = {  # for the names of other libraries
        **dict.fromkeys(
            ["cluster_centers_", "components_", "centroids"], "component means are in means_"
        ),
        "row_labels_": "the labels are in labels_",
        "outlier_scores_": "score_samples is low for outliers, and background=True labels them -1",
        "inertia_": "the objective is in lower_bound_, and score returns the mean log-density",
    }

    @classmethod
    @cache
    def _fitted_parameters(cls) -> frozenset[str]:
        """Return the names of the attributes that follow from the fit's parameters."""
        names = (name for base in cls.__mro__ for name in inspect.get_annotations(base))
        return frozenset(name for name in names if name.endswith("_"))

    def _attributes(self, fitted: FittedMixture, result: MixtureResult | None = None) -> Attributes:
        """Return the fitted attributes that follow from the parameters, or from a whole fit."""
        weights = fitted.weights
        if weights.any():
            weights = weights / weights.sum()
        attributes: dict[str, Any] = {
            "weights_": fitted.weights,
            "background_weight_": fitted.background_weight,
            "n_active_components_": int(np.count_nonzero(weights)),
            "effective_n_components_": float(np.exp(entr(weights).sum())) if weights.any() else 0.0,
        }
        if result is not None:
            attributes |= {
                "n_iter_": result.n_iter,
                "converged_": result.converged,
                "lower_bounds_": result.bounds,
                "lower_bound_": result.bounds[-1],
            }
        return attributes

    def _publish(
        self,
        fitted: FittedMixture,
        memory: Statistics | None = None,
        result: MixtureResult | None = None,
        **others: object,
    ) -> None:
        """Set the fit, the statistics of its rows and all its attributes, in one step."""
        attributes = self._attributes(fitted, result)
        read_only = {name: _read_only(value) for name, value in attributes.items()}
        read_only["weight_seen_"] = 0.0 if memory is None else float(memory.total)
        if memory is not None:
            memory = replace(memory, buffers=None)
        published = vars(self) | read_only | others | {"_fitted": fitted, "_memory": memory}
        object.__setattr__(self, "__dict__", published)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_fitted":  # as callbacks do for the estimator of an iteration
            self._publish(value)
            return
        if name in self._fitted_parameters() and value is not vars(self).get(name):
            raise AttributeError(
                f"{name} is a result of the fit and cannot be set. To predict with other "
                f"parameters, build a mixture with {type(self).__name__}.from_parameters."
            )
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # every attribute would then exist

        def __getattr__(self, name: str) -> Any:
            hint = self._attribute_hints.get(name) or attribute_hint(name, vars(self))
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message if hint is None else f"{message}: {hint}")

    def __getstate__(self) -> Attributes:
        state: dict[str, Any] = dict(super().__getstate__())
        fitted, memory = state.pop("_fitted", None), state.pop("_memory", None)
        if fitted is not None:
            others = {k: v for k, v in state.items() if k not in self._fitted_parameters()}
            # Labels of a Dask array are its graph, or a cluster's, and stay with it.
            state = {k: v for k, v in others.items() if not hasattr(v, "__dask_graph__")}
            state["_fit"] = fitted.params.to_dict() | {
                "family": as_dict(fitted.family),
                "background": as_dict(fitted.background),
                "memory": None if memory is None else as_dict(memory),
            }
        return state

    def __setstate__(self, state: Attributes) -> None:
        state = dict(state)
        fit = state.pop("_fit", None)
        super().__setstate__(state)
        if fit is not None:
            family = self._family_class(**fit["family"])
            params = Params.from_dict(family.components_class, fit)
            memory = None if fit["memory"] is None else Statistics(**fit["memory"])
            self._publish(FittedMixture(family, params, Background(**fit["background"])), memory)


def _read_only(value: Any) -> Any:
    """Return a view of an array that cannot be written to; the engine's own stays writable."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
