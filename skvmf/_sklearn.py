"""All private or version-dependent names of scikit-learn that are used."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator as _BaseEstimator
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.validation import _check_sample_weight, validate_data

Method = TypeVar("Method", bound=Callable[..., Any])
SITE = "https://skvmf.github.io/skvmf"

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's mixin: an estimator without callbacks."""

    def _with_callbacks(method: Method) -> Method:
        return method


class BaseEstimator(_BaseEstimator):
    """scikit-learn's, with a link from its picture in notebooks to its page on our site."""

    _doc_link_module = "skvmf"
    _doc_link_template = SITE + "/generated/{page}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        name, package = type(self).__name__, type(self).__module__.partition("._")[0]
        short = hasattr(sys.modules["skvmf"], name)  # `skvmf.mixture`'s are listed in `skvmf`
        return {"page": f"skvmf.{name}" if short else f"{package}.{name}"}


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Decorate a fit: validate the parameters before, with scikit-learn's configuration."""
    decorate: Callable[[Method], Method] = _fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorate


class CallbackTasks:
    """The tasks of one fit as scikit-learn's callbacks see them, the fit itself first.

    Parameters
    ----------
    estimator : estimator instance
        The estimator that is fitted.
    data : dict
        What callbacks may ask for: X, y, metadata.
    max_subtasks : int
        Number of stages at most.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], max_subtasks: int) -> None:
        self._estimator = estimator
        self._data = data
        self._open: list[Any] = []  # tasks that have begun, each inside the one before
        self._enter(estimator._init_callback_context(max_subtasks=max_subtasks))

    def begin(self, name: str, max_subtasks: int | None) -> None:
        """Begin a task inside the innermost open one."""
        self._enter(self._open[-1].subcontext(task_name=name, max_subtasks=max_subtasks))

    def end(self, depth: int, attributes: Any = None) -> bool:
        """End the task at a depth and those inside it, all of them even if a callback raises.

        `attributes` are those of an estimator fitted so far, or return them. Returns whether
        a callback asks to stop.
        """
        if len(self._open) <= depth:
            return False
        try:
            self.end(depth + 1)
        finally:
            stop: bool = self._open.pop().call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        return stop

    def _enter(self, task: Any) -> None:
        self._open.append(task)
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)


def callback_tasks(estimator: Any, data: dict[str, Any], max_subtasks: int) -> CallbackTasks | None:
    """Return the tasks of a fit for the estimator's callbacks; None if it has none."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    return CallbackTasks(estimator, data, max_subtasks)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Decorate a method: it is there only where `check(estimator)` says so."""
    decorate: Callable[[Method], Method] = _available_if(check)
    return decorate


def with_callbacks(method: Method) -> Method:
    """Decorate a fit: tear callbacks down after it, where scikit-learn has them."""
    decorated: Method = _with_callbacks(method)
    return decorated


def check_sample_weight(sample_weight: Any, X: Any) -> Any:
    """Validate non-negative float64 sample weights with a positive sum; None stays None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(
        sample_weight, X, dtype="float64", ensure_non_negative=True, copy=False
    )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("Sample weights are too large: their sum overflows. Scale them down.")
    if not weights.any():
        raise ValueError("Sample weights are all zero: at least one row must have weight.")
    return weights


__all__ = [
    "SITE",
    "BaseEstimator",
    "CallbackSupportMixin",
    "Interval",
    "StrOptions",
    "available_if",
    "callback_tasks",
    "check_sample_weight",
    "fit_context",
    "safe_indexing",
    "validate_data",
    "with_callbacks",
]
