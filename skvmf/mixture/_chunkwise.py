"""Dask arrays without Dask: what is asked of them before it is imported."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy.typing as npt

from .._sklearn import check_sample_weight

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask array or frame, or an xarray array of one."""
    return getattr(X, "__dask_graph__", lambda: None)() is not None


def checked_row_weights(sample_weight: Any, X: Any) -> Any:
    """Return the weights of validated rows, as rows of their kind take them; None stays None."""
    if sample_weight is not None and is_lazy(X):
        from ._dask import checked_weights

        return checked_weights(sample_weight, X)
    if is_lazy(sample_weight):
        sample_weight = sample_weight.compute()
    return check_sample_weight(sample_weight, X)


def chunkwise(
    dtype: npt.DTypeLike | None = None, *, wide: bool = False, is_sparse: bool = False
) -> Callable[[Method], Method]:
    """Decorate a prediction: of a Dask array it is one too, made chunk by chunk when asked for.

    `dtype` is what it returns, None the type that rows are read in; `wide` says whether it has
    a column for each component, `is_sparse` whether it returns CSR.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Any, X: Any) -> Any:
            if not is_lazy(X):
                return method(self, X)
            from ._dask import per_row

            return per_row(self, method.__name__, X, dtype, wide, is_sparse)

        return predict  # type: ignore[return-value]

    return decorate
