"""How data is read: the type it is computed in, and what is refused or put in order first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._kernels import rows as row_kernels
from ..._typing import Array, DType, Matrix

# Every number of a narrow type is one of float32, too. Those of wide types are not.
_WIDE = [np.dtype(code) for code in "dqQlLiI"]
_NARROW = [np.dtype(code) for code in "fehHbB"]
# The types of dense rows that are read block by block, as they are stored, in any byte order.
READABLE = [order for dtype in _WIDE + _NARROW for order in (dtype, dtype.newbyteorder())]


def read_as(dtype: npt.DTypeLike) -> DType:
    """Return the type to compute in: float32 where that holds every number, else float64."""
    is_narrow = np.dtype(dtype).newbyteorder("=") in _NARROW
    return np.dtype(np.float32 if is_narrow else np.float64)


def refuse_non_finite(values: Array, numbers: Array, advice: str = "") -> None:
    """Raise a ValueError for nan or infinity in the rows of such `numbers`.

    `advice` on missing values is given where there is a nan.
    """
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    what = "NaN"
    if not np.isnan(values).any():
        what = f"infinity or a value too large for {values.dtype}"
        advice = ""
    column = ""
    if values.ndim == 2:
        column = f", column {np.nonzero(wrong)[1][0]}"
    rows = np.unique(numbers[wrong])
    where = f"row {rows[0]}{column}"
    if len(rows) > 1:
        where = f"{len(rows)} rows from {rows[0]}{column} to {rows[-1]}"
    raise ValueError(
        f"Input X contains {what}, in {where}: {advice}impute the values, for example with "
        "sklearn.impute.SimpleImputer, or keep only the rows np.isfinite(X).all(axis=1)."
    )


def check_structure(X: sparse.csr_array) -> None:
    """Refuse pointers or column numbers outside the arrays of a CSR matrix: SciPy does not look."""
    first, last = X.indptr[0], X.indptr[-1]
    n_entries = min(len(X.indices), len(X.data))
    if first < 0 or last > n_entries or (X.indptr[1:] < X.indptr[:-1]).any():
        raise ValueError(
            f"X is not a valid CSR matrix: indptr falls, or leads outside its {n_entries} "
            "entries. X.check_format() says more."
        )
    used = X.indices[first:last]
    if used.size > 0 and (used.min() < 0 or used.max() >= X.shape[1]):
        raise ValueError(
            "X is not a valid CSR matrix: column numbers in indices lead outside its "
            f"{X.shape[1]} columns. X.check_format() says more."
        )


def canonical(X: Matrix) -> sparse.csr_array:
    """Return a valid CSR matrix without duplicates, the columns of each row in order."""
    rows = sparse.csr_array(X, dtype=X.dtype.newbyteorder("="))
    check_structure(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def as_seen(stored: Any, *, unit: bool) -> Array:
    """Return rows as the family sees them, dense float64."""
    if sparse.issparse(stored):
        stored = stored.toarray()
    rows = np.ascontiguousarray(stored, dtype=np.float64)
    if unit:
        row_kernels.normalize_rows(rows)
    return rows


def largest_magnitude(values: Array) -> float:
    """Return the largest magnitude, nan if one is among them; 0 of nothing."""
    if values.size == 0:
        return 0.0
    return max(abs(float(values.max())), abs(float(values.min())))


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows below one another, CSR if any are; one part is not copied."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, "csr")
    return np.concatenate(parts)
