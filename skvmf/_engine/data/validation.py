"""Validation of rows: finite, of valid CSR structure, of a type that arithmetic is done in."""

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._kernels import sparse as sparse_kernels
from ..._typing import Array, DType, Matrix

_WIDE = [np.float64, np.int64, np.uint64, np.int32, np.uint32]
_NARROW = [np.float32, np.float16, np.int16, np.uint16, np.int8, np.uint8]
READABLE = _WIDE + _NARROW
"""The types of dense rows that are read block by block, as they are stored."""


def read_as(dtype: npt.DTypeLike) -> DType:
    """Return the type to compute in: float32 where that holds every number, else float64."""
    return np.dtype(np.float32 if np.dtype(dtype) in _NARROW else np.float64)


def refuse_non_finite(values: Array, numbers: Array) -> None:
    """Raise a ValueError for nan or infinity; `numbers` are those of the values' rows."""
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    what = "NaN" if np.isnan(values).any() else f"infinity or a value too large for {values.dtype}"
    rows = np.unique(numbers[wrong])
    where = f"row {rows[0]}"
    if len(rows) > 1:
        where = f"{len(rows)} rows from {rows[0]} to {rows[-1]}"
    raise ValueError(
        f"Input X contains {what}, in {where}: impute the values, for example with "
        "sklearn.impute.SimpleImputer, or keep only the rows np.isfinite(X).all(axis=1)."
    )


def check_structure(X: sparse.csr_array) -> None:
    """Refuse pointers or column numbers that lead out of the arrays of a CSR matrix.

    SciPy does not look at them where a matrix is put together from its three arrays.
    """
    fault = sparse_kernels.csr_fault(X.indptr, X.indices, len(X.data), X.shape[1])
    if fault != sparse_kernels.VALID:
        pointers = fault == sparse_kernels.BAD_POINTERS
        what = "indptr falls or leads" if pointers else "column numbers in indices lead"
        raise ValueError(
            f"X is not a valid CSR matrix: {what} outside its {len(X.data)} entries and "
            f"{X.shape[1]} columns. X.check_format() says more."
        )


def canonical(X: Matrix) -> sparse.csr_array:
    """Return a valid CSR matrix without duplicates, the columns of each row in order."""
    rows = sparse.csr_array(X)
    check_structure(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def of_ordinary_size(weights: Array, largest: float) -> Array:
    """Return weights whose largest, of all rows, is between 1e-20 and 1e20.

    Beyond, a prior that counts single rows decides all or nothing anyway, and products with
    weights would leave the range of floats. A weight of zero stays zero.
    """
    low, high = 1e-20, 1e20
    if largest == 0 or low <= largest <= high:
        return weights
    return weights / largest * min(max(largest, low), high)
