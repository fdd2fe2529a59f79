"""Criteria for the number of components; the smallest value wins."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from .._typing import Array, warn

CriterionName: TypeAlias = Literal["slope", "bic", "icl", "held_out"]
CRITERIA = frozenset(get_args(CriterionName))
Criterion: TypeAlias = CriterionName | Callable[[dict[str, Any]], Any]

_FAR_TOO_MANY = 2 / 3  # of max_components, from which components are far too many
_MIN_PENALTY = 1.5  # nats per parameter
_TOO_FEW = 1 / 10  # of max_components, up to which a choice by the slope needs a second look


def slope_criterion(results: dict[str, Array], max_components: int) -> Array:
    """Return twice the penalised negative log-likelihood for each number of components.

    The penalty per parameter is twice the slope of the log-likelihood from two thirds of
    `max_components` on (Birge and Massart, Probability Theory and Related Fields 138, 2007). It
    is at least that of AIC3 (Bozdogan, in "Proceedings of the first US/Japan conference on the
    frontiers of statistical modeling", 1994), because a path does not find all that additional
    components could gain.
    """
    p, L = results["n_parameters"], results["log_likelihood"]
    large = _far_too_many(results, max_components)
    slope = np.polyfit(p[large], L[large], 1)[0] if len(np.unique(p[large])) > 1 else 0.0
    return 2 * (max(2 * slope, _MIN_PENALTY) * p - L)


def warn_without_slope(results: dict[str, Array], max_components: int) -> None:
    """Warn if too few components are left to estimate the slope."""
    K = results["n_components"]
    large = _far_too_many(results, max_components)
    if len(K) > 1 and K.max() < max_components and np.count_nonzero(large) < 2:
        warn(
            f"criterion='slope' could not estimate a slope and used the penalty of AIC3: of "
            f"max_components={max_components}, only {K.max()} were left after pruning. Raise "
            "weight_concentration_prior, or choose another criterion.",
            UserWarning,
        )


def warn_of_short_path(results: dict[str, Array], max_components: int) -> None:
    """Warn if the slope rejects what the likelihood asks for up to the end of the path."""
    K = results["n_components"]
    chosen = K[np.argmin(results["slope"])]
    if chosen <= _TOO_FEW * max_components and np.argmin(results["bic"]) == len(K) - 1:
        warn(
            f"criterion='slope' chose {chosen} of up to {max_components} components, but 'bic' "
            f"{K.max()}: the last components help as much as the first ones, so the slope cannot "
            "tell which are needed. Raise max_components, or choose a number from results_.",
            UserWarning,
        )


def _far_too_many(results: dict[str, Array], max_components: int) -> Array:
    """Return which numbers of components are in the upper third."""
    return results["n_components"] >= _FAR_TOO_MANY * max_components
