"""The one door for private or version-dependent scikit-learn names."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's mixin: an estimator without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


def check_sample_weight(sample_weight: Any, X: Any) -> Any:
    """Validate non-negative float64 sample weights with a positive sum; None stays None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(
        sample_weight, X, dtype="float64", ensure_non_negative=True, copy=False
    )
    if not np.isfinite(weights.sum()):
        raise ValueError("Sample weights are too large: their sum overflows. Scale them down.")
    if not weights.any():
        raise ValueError("Sample weights are all zero: at least one row must have weight.")
    return weights


__all__ = [
    "CallbackSupportMixin",
    "Interval",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "validate_data",
    "with_callbacks",
]
