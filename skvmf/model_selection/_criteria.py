"""What speaks for a number of components; the smallest value wins."""

from typing import Any

import numpy as np

from .._engine.chunks import Array

CRITERIA = frozenset({"slope", "bic", "icl", "held_out"})


def slope_criterion(results: dict[str, Any], n_samples: float) -> Array:
    """Return twice the penalised negative log-likelihood for each number of components.

    A parameter costs twice what one gains where components are far too many: the slope of
    the log-likelihood over the larger half of the path (Birge and Massart, Probability Theory
    and Related Fields 138, 2007). It costs at least what it does in BIC.
    """
    K, p, L = (results[name] for name in ("n_components", "n_parameters", "log_likelihood"))
    large = K >= K.max() / 2
    slope = np.polyfit(p[large], L[large], 1)[0] if np.ptp(p[large]) > 0 else 0.0
    cost = max(2 * slope, 0.5 * np.log(max(n_samples, 1)))
    criterion: Array = 2 * (cost * p - L)
    return criterion
