"""What speaks for a number of components; the smallest value wins."""

from typing import Any

import numpy as np

from .._typing import Array
from .._warnings import warn

CRITERIA = frozenset({"slope", "bic", "icl", "held_out"})


_LARGE = 2 / 3  # of max_components, from which components are far too many
_LEAST = 1.5  # nats a parameter


def slope_criterion(results: dict[str, Any], max_components: int) -> Array:
    """Return twice the penalised negative log-likelihood for each number of components.

    A parameter costs twice what one gains where components are far too many: the slope of
    the log-likelihood from two thirds of `max_components` on (Birge and Massart, Probability
    Theory and Related Fields 138, 2007). It costs at least what it does in AIC3 (Bozdogan, in
    "Proceedings of the first US/Japan conference on the frontiers of statistical modeling",
    1994), because a path does not find all that one could gain by too many.
    """
    p, L = results["n_parameters"], results["log_likelihood"]
    large = _far_too_many(results, max_components)
    slope = np.polyfit(p[large], L[large], 1)[0] if len(np.unique(p[large])) > 1 else 0.0
    criterion: Array = 2 * (max(2 * slope, _LEAST) * p - L)
    return criterion


def warn_without_slope(results: dict[str, Any], max_components: int) -> None:
    """Warn where components have left until no slope of far too many is to be seen."""
    K = results["n_components"]
    if len(K) > 1 and K.max() < max_components and not _far_too_many(results, max_components).any():
        warn(
            f"criterion='slope' chose by the penalty of AIC3: the path begins with {K.max()} of "
            f"max_components={max_components}, as others have left the mixture, so that there is "
            "no slope where components are far too many. Raise weight_concentration_prior, or "
            "choose another criterion.",
            UserWarning,
        )


def _far_too_many(results: dict[str, Any], max_components: int) -> Array:
    """Return which numbers of components are in the upper third."""
    large: Array = results["n_components"] >= _LARGE * max_components
    return large
