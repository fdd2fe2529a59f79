"""The one door for private or version-dependent scikit-learn names."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn import base
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn import callback
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9 has no callbacks
    callback = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's mixin: an estimator without callbacks."""


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Validate the estimator's parameters before the method; types are kept."""
    return cast(
        Callable[[Method], Method],
        base._fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation),
    )


def with_callbacks(method: Method) -> Method:
    """Manage the callbacks of a fit, where scikit-learn has them; types are kept."""
    return method if callback is None else cast(Method, callback.with_callbacks(method))


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
