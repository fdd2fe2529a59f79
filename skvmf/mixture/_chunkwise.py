"""Dask arrays: what is needed before Dask is imported."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy.typing as npt
from numpy.typing import ArrayLike

from .._sklearn import check_sample_weight
from .._typing import Array, MatrixLike

if TYPE_CHECKING:
    import dask.array as da

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(X: object) -> "TypeGuard[da.Array]":
    """Return whether X is a Dask array or frame, or an xarray array of one."""
    return getattr(X, "__dask_graph__", lambda: None)() is not None


def in_memory(X: object) -> Any:
    """Return rows, labels or weights in memory, also those of a Dask array."""
    return X.compute() if is_lazy(X) else X


def checked_row_weights(
    sample_weight: ArrayLike | None, X: MatrixLike
) -> "Array | da.Array | None":
    """Return the weights of validated rows, as rows of their kind take them; None stays None."""
    if sample_weight is not None and is_lazy(X):
        from ._dask import checked_weights

        return checked_weights(sample_weight, X)
    return check_sample_weight(in_memory(sample_weight), X)


def chunkwise(
    dtype: npt.DTypeLike | None = None, *, wide: bool = False, is_sparse: bool = False
) -> Callable[[Method], Method]:
    """Decorate a prediction: of a Dask array it is one too, made chunk by chunk when asked for.

    `dtype` is what it returns, None the type that rows are read in; `wide` says whether it has
    a column for each component, `is_sparse` whether it returns CSR.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Any, X: MatrixLike) -> Any:
            if not is_lazy(X):
                return method(self, X)
            return self._predict_lazily(method.__name__, X, dtype, wide, is_sparse)

        return predict  # type: ignore[return-value]

    return decorate
