"""All private or version-dependent names of scikit-learn that are used."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    validate_data,
)
from sklearn.utils.validation import _num_samples as num_samples

from . import _citation
from ._docstrings import complete_docstring
from ._typing import Array, warn
from ._version import __version__

# mypy does not know this condition, and takes a name's first definition.
if os.name == "mypy":  # noqa: SIM102
    # scikit-learn brings no types: to mypy, a class that derives from one without types has all
    # attributes, so that it would find no mistake in the name of a method or an attribute.
    if TYPE_CHECKING:

        class DensityMixin: ...

        class MetaEstimatorMixin: ...

        class TransformerMixin:
            def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
            def set_output(self, *, transform: str | None = None) -> Self: ...

        class ClassNamePrefixFeaturesOutMixin:
            def get_feature_names_out(self, input_features: Any = None) -> Any: ...

        class CallbackSupportMixin:
            def set_callbacks(self, *callbacks: Any) -> Self: ...

        class _BaseEstimator:
            def get_params(self, deep: bool = True) -> dict[str, Any]: ...
            def set_params(self, **params: Any) -> Self: ...
            def set_fit_request(self, **requests: bool | str | None) -> Self: ...
            def set_partial_fit_request(self, **requests: bool | str | None) -> Self: ...
            def set_score_request(self, **requests: bool | str | None) -> Self: ...
            def get_metadata_routing(self) -> Any: ...
            def _validate_params(self) -> None: ...
            def __sklearn_tags__(self) -> Any: ...
            def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
            def __getstate__(self) -> dict[str, Any]: ...
            def __setstate__(self, state: dict[str, Any]) -> None: ...


from sklearn.base import BaseEstimator as _BaseEstimator  # type: ignore[no-redef]
from sklearn.base import (  # type: ignore[no-redef]
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    MetaEstimatorMixin,
    TransformerMixin,
)

try:
    from sklearn.callback import CallbackSupportMixin  # type: ignore[no-redef]
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's mixin: an estimator without callbacks."""

    def _with_callbacks(method: Any) -> Any:
        return method


Method = TypeVar("Method", bound=Callable[..., Any])


class _Decorator(Protocol):
    def __call__(self, method: Method, /) -> Method: ...


# scikit-learn's decorators, with types.
available_if: Callable[[Callable[[Any], bool]], _Decorator] = _available_if
fit_context: Callable[..., _Decorator] = _fit_context
with_callbacks: _Decorator = _with_callbacks

SITE = "https://skvmf.github.io/skvmf"
# How the attributes begin that scikit-learn needs to tear down callbacks.
CALLBACK_STATE = "_callback_", "_skl_callbacks"


class SomeOf(StrOptions):
    """A tuple or list of some of a set of texts, as a constraint of a parameter."""

    def is_satisfied_by(self, value: object) -> bool:
        return isinstance(value, tuple | list) and all(map(super().is_satisfied_by, value))

    def __str__(self) -> str:
        return f"a tuple or list of some of {sorted(self.options)}"


class BaseEstimator(_BaseEstimator):
    """scikit-learn's, with a link to its page on our site, and with our version in pickles."""

    _doc_link_module = "skvmf"
    _doc_link_template = SITE + "/generated/{page}.html"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        complete_docstring(cls)

    def _check_ready(self) -> None:
        """Check that there was a fit, and the parameters set since then."""
        check_is_fitted(self)
        self._validate_params()

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        name = type(self).__name__
        package = type(self).__module__.partition("._")[0]
        # The reference lists mixtures and Fisher vectors as users import them.
        if package in ("skvmf.mixture", "skvmf.feature_extraction"):
            package = "skvmf"
        return {"page": f"{package}.{name}"}

    def citation(self) -> str:
        """Return what to cite: the methods that the parameters use, and this package.

        Returns
        -------
        bibtex : str
            BibTeX entries, with those of the estimators inside this one.
        """
        return "\n\n".join(_citation.entries(self).values()).replace("VERSION", __version__)

    def __getstate__(self) -> dict[str, Any]:
        return dict(super().__getstate__()) | {"_skvmf_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        before = state.pop("_skvmf_version", "unknown")
        if before.split(".")[:2] != __version__.split(".")[:2]:
            warn(
                f"This {type(self).__name__} was pickled with skvmf {before}, and this is "
                f"{__version__}: fitted attributes may be missing or mean something else. Fit it "
                "again.",
                UserWarning,
            )
        super().__setstate__(state)


class RowsEstimator(BaseEstimator):
    """An estimator that is fitted to rows of features.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names seen in `fit`, if X has them.
    """


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Leave the estimator as it was if the body fails or is interrupted.

    Attributes are kept by name: a body assigns new arrays, it does not write into old ones. What
    scikit-learn needs to tear down callbacks afterwards stays.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        of_callbacks = {
            name: value
            for name, value in vars(estimator).items()
            if name.startswith(CALLBACK_STATE)
        }
        object.__setattr__(estimator, "__dict__", before | of_callbacks)
        raise


class CallbackTasks:
    """A fit's tasks, itself first, as the estimator's callbacks see them; none without callbacks.

    `data` is what callbacks may ask for.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], max_subtasks: int) -> None:
        self._estimator = estimator
        self._data = data
        # Tasks that have begun, each inside the one before.
        self._open: list[Any] = []
        if getattr(estimator, "_skl_callbacks", None):
            self._enter(estimator._init_callback_context(max_subtasks=max_subtasks))

    def begin(self, name: str, max_subtasks: int | None) -> None:
        if self._open:
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


# Those of a fit that callbacks do not see.
NO_TASKS = CallbackTasks(None, {}, 0)


def outputs_frames(transformer: object) -> bool:
    """Return whether `set_output` asks a transformer for data frames."""
    return bool(_get_output_config("transform", transformer)["dense"] != "default")


def as_frame(transformer: object, values: Array, X: object, columns: Any) -> Any:
    """Return values as the frame that `set_output` asks for, with the index of X if it has one."""
    adapter = ADAPTERS_MANAGER.adapters[_get_output_config("transform", transformer)["dense"]]
    return adapter.create_container(values, X, columns)


def check_rows(X: object, **options: object) -> Any:
    """Validate rows as `check_array` does, without warnings where the largest floats are added."""
    with np.errstate(over="ignore", invalid="ignore"):
        return check_array(X, **options)


def refuse_mask(values: object, name: str) -> None:
    """Refuse masked values, which NumPy and scikit-learn would take as if they were not masked."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array, and {int(values.mask.sum())} of its values are masked: "
            f"give {name}.filled(value) with the value that they should have, or leave their rows "
            "out."
        )


def check_sample_weight(sample_weight: ArrayLike | None, X: object) -> Any:
    """Validate non-negative float64 sample weights with a positive sum; None stays None."""
    if sample_weight is None:
        return None
    refuse_mask(sample_weight, "sample_weight")
    options = {"dtype": "float64", "ensure_non_negative": True, "copy": False}
    weights = _check_sample_weight(sample_weight, X, **options)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("Sample weights are too large: their sum overflows. Scale them down.")
    if not weights.any():
        raise ValueError("Sample weights are all zero: at least one row must have weight.")
    return weights


# What is handed on as it is.
__all__ = [
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "DensityMixin",
    "Interval",
    "MetaEstimatorMixin",
    "StrOptions",
    "TransformerMixin",
    "num_samples",
    "safe_indexing",
    "validate_data",
    "validate_parameter_constraints",
]
