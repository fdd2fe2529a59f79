"""Dask arrays as rows: their validation, and predictions chunk by chunk.

Dask is optional: only what gets a Dask collection imports this file.
"""

from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.array.dispatch import concatenate_lookup
from dask.delayed import Delayed
from numpy.typing import ArrayLike
from scipy import sparse

from .._engine.rows.dask import DaskRows
from .._engine.rows.reading import READABLE, read_as
from .._sklearn import check_sample_weight
from .._typing import MatrixLike


def _stacked(blocks: Any, axis: int = 0) -> Any:
    """Put sparse blocks together."""
    stack = sparse.hstack if axis else sparse.vstack
    return sparse.csr_array(stack(blocks, format="csr"))


# Dask knew sparse matrices long before it knew sparse arrays, which `responsibilities` returns.
concatenate_lookup.register(sparse.sparray, _stacked)


def checked_rows(X: MatrixLike) -> tuple[da.Array, Any]:
    """Return rows as a Dask array of known chunks, one along the features, and a row like them.

    xarray's arrays and Dask's frames are unwrapped. The row is a frame if the rows have the names
    of their features, for scikit-learn to validate.
    """
    is_frame = hasattr(X, "to_dask_array")  # xarray may have columns, too
    names = getattr(X, "columns", None) if is_frame else None
    rows = _unwrapped(X, "X")
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead: {rows.shape}.")
    _refuse_unknown(rows, "X")
    n_rows, n_features = rows.shape
    if n_rows == 0 or n_features == 0:
        raise ValueError(
            f"Found array with {n_rows} sample(s) and {n_features} feature(s): at least one of "
            "each is required."
        )
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"X should hold numbers, and its meta says {rows.dtype}: use X.astype.")
    if isinstance(rows._meta, np.ma.MaskedArray):
        raise ValueError(
            "X is a Dask array of masked arrays: with missing_values='marginal' give "
            "X.map_blocks(lambda block: block.astype(float).filled(np.nan)), else fill masked "
            "values in first."
        )
    row: Any = np.zeros((1, n_features))
    if names is not None:
        import pandas as pd

        row = pd.DataFrame(row, columns=list(names))
    return _in_one_column(rows), row


def _unwrapped(X: object, name: str) -> da.Array:
    if isinstance(X, da.Array):
        return X
    if isinstance(X, Delayed):  # which seems to have any attribute
        raise ValueError(
            f"{name} is a Delayed, of unknown shape and type: give a dask.array, such as "
            f"dask.array.from_delayed({name}, shape=..., dtype=...)."
        )
    if hasattr(X, "to_dask_array"):  # a data frame, of any lengths
        return X.to_dask_array(lengths=True)
    inner = getattr(X, "data", None)  # xarray's
    if isinstance(inner, da.Array):
        return inner
    raise ValueError(
        f"{name} is a Dask collection of the type {type(X).__name__}: give a dask.array of rows."
    )


def _in_one_column(X: da.Array) -> da.Array:
    """Return rows of a type that is read, in chunks of whole rows."""
    n_columns_of_chunks = len(X.chunks[1])
    if not sparse.issparse(X._meta):
        if X.dtype not in READABLE:
            X = X.astype(np.float64)
        return X if n_columns_of_chunks == 1 else X.rechunk({1: -1})
    if n_columns_of_chunks > 1:  # Dask cannot put sparse chunks side by side
        raise ValueError(
            f"X has {len(X.chunks[1])} chunks along the features: sparse rows should have one. "
            "Build X of blocks of whole rows."
        )
    return X


def _refuse_unknown(X: da.Array, name: str) -> None:
    if np.isnan(np.array(X.shape, dtype=float)).any():
        raise ValueError(
            f"{name} has chunks of unknown sizes, as from a filter or a data frame: call "
            f"{name}.compute_chunk_sizes() first."
        )


def _checked_weights(sample_weight: ArrayLike, X: da.Array) -> da.Array:
    """Return sample weights as a Dask array of float64 in the chunks of X."""
    if not hasattr(sample_weight, "__dask_graph__"):
        weights = check_sample_weight(sample_weight, X)
        return da.from_array(weights, chunks=(X.chunks[0],))
    weights = _unwrapped(sample_weight, "sample_weight")
    _refuse_unknown(weights, "sample_weight")
    if weights.shape != X.shape[:1]:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {X.shape[:1]}.")
    return weights.astype(np.float64).rechunk((X.chunks[0],))


def make_lazy_rows(X: da.Array, sample_weight: ArrayLike | None, **options: Any) -> DaskRows:
    """Wrap validated rows, and refuse weights that are none."""
    weights = None
    if sample_weight is not None:
        weights = _checked_weights(sample_weight, X)
    rows = DaskRows(X, weights, **options)  # which measures the weights, too
    least, largest = rows.weight_range
    if not np.isfinite([least, largest]).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if least < 0:
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if largest == 0:
        raise ValueError("Sample weights are all zero: at least one row must have weight.")
    return rows


def mapped(
    estimator: object,
    method: str,
    X: da.Array,
    dtype: npt.DTypeLike | None = None,
    width: int | None = None,
    is_sparse: bool = False,
) -> da.Array:
    """Return what a method returns for validated rows, lazily: `width` numbers per row, or one.

    `estimator` has the method and is sent to workers. A `dtype` of None is the one that rows are
    read in.
    """
    if dtype is None:
        dtype = read_as(X.dtype)
        if sparse.issparse(X._meta) and X.dtype.char not in "fd":
            dtype = np.float64  # as which other CSR is read
    meta: Any
    shape: dict[str, Any]
    if width is None:
        meta = np.empty(0, dtype=dtype)
        shape = {"chunks": (X.chunks[0],), "drop_axis": 1}
    else:
        meta = np.empty((0, width), dtype=dtype)
        shape = {"chunks": (X.chunks[0], (width,))}
    if is_sparse:
        meta = sparse.csr_array(meta)
    # The estimator is sent to a worker once, and not hashed: each call has a graph of its own.
    model = dask.delayed(estimator, pure=False, traverse=False)
    name = f"skvmf-{method.strip('_').replace('_', '-')}-{uuid4().hex}"
    return X.map_blocks(_of_block, model, method, meta, name=name, dtype=dtype, meta=meta, **shape)


def _of_block(block: Any, model: object, method: str, nothing: Any) -> Any:
    """Return what a method returns for the rows of a chunk, and `nothing` for no rows."""
    return getattr(model, method)(block) if block.shape[0] else nothing
