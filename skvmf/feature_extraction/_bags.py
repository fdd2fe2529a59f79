"""Bags of vectors: a CSR matrix of counts over the rows of a table.

Documents come as counts of words that have a vector each, or as arrays of vectors. Either way
they become `Bags`, so that everything behind has one meaning.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

BLOCK_BYTES = 2**22  # vectors of lists of arrays are put together by so much at a time


@dataclass(frozen=True)
class Bags:
    """Bag n holds row ``indices[j]`` of `table` ``data[j]`` times, for j in its CSR row.

    Rows of `table` that are not in `used`, a boolean array, are left out; None is all of them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    table: np.ndarray
    used: np.ndarray | None = None

    def __len__(self):
        return len(self.indptr) - 1

    @classmethod
    def from_counts(cls, counts, table, present):
        """Count the rows of a table; those that are not in `present` are left out."""
        counts = sparse.csr_array(counts)
        used = np.zeros(len(table), dtype=bool)
        used[counts.indices] = True
        used &= present
        return cls(counts.indptr, counts.indices, counts.data, table, used)

    @classmethod
    def from_arrays(cls, arrays, dtype):
        """Put arrays together: the table is their concatenation, each row counts once."""
        table = np.concatenate(arrays, dtype=dtype)
        indptr = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
        return cls(indptr, np.arange(len(table)), np.ones(len(table)), table)


def are_arrays(X):
    """Tell a list of arrays of vectors from a matrix of counts, which may be a list of lists."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object and _hold_vectors(X))
    return isinstance(X, list | tuple) and _hold_vectors(X)


def _hold_vectors(items):
    return any(
        (hasattr(item, "__array__") and np.ndim(item) > 0)
        or (isinstance(item, list | tuple) and len(item) > 0 and np.ndim(item[0]) > 0)
        for item in items
    )


class BagList:
    """Checked arrays of vectors, put together block by block.

    Parameters
    ----------
    X : sequence of array-like of shape (n_vectors, n_dims)
        An array of shape (0,) is an empty bag.
    n_dims : int, default=None
        The dimension that the vectors must have; None takes what they have.
    """

    def __init__(self, X, n_dims=None):
        arrays = [np.asarray(x) for x in X]
        for i, array in enumerate(arrays):
            if array.ndim != 2 and array.shape != (0,):
                raise ValueError(
                    f"X[{i}] has {array.ndim} dimensions: a bag is an array of shape (n_vectors, "
                    "n_dims). A single vector is a bag as vector[None]."
                )
            if array.dtype.kind not in "biuf":
                raise ValueError(f"X[{i}] holds {array.dtype}, and vectors are numbers.")
        filled = {i: array for i, array in enumerate(arrays) if array.ndim == 2}
        expected = "the mixture was fitted on"
        if n_dims is None:
            if not any(len(array) for array in filled.values()):
                raise ValueError("Found 0 vectors: all bags are empty.")
            n_dims, expected = next(iter(filled.values())).shape[1], f"X[{next(iter(filled))}] has"
        for i, array in filled.items():
            if array.shape[1] != n_dims:
                raise ValueError(
                    f"X[{i}] has vectors of dimension {array.shape[1]}, and {expected} "
                    f"vectors of dimension {n_dims}."
                )
        single = all(array.dtype == np.float32 for array in filled.values())
        self.dtype = np.dtype(np.float32 if single and filled else np.float64)
        self.n_dims = n_dims
        empty = np.empty((0, n_dims), dtype=self.dtype)
        self._arrays = [filled.get(i, empty) for i in range(len(arrays))]

    def __len__(self):
        return len(self._arrays)

    def check_finite(self):
        """Raise a ValueError that names the first bag with nan or inf."""
        for i, array in enumerate(self._arrays):
            if not np.isfinite(array).all():
                raise ValueError(f"X[{i}] contains nan or inf: leave such vectors out.")

    def table(self):
        """Return all vectors, one after another."""
        return np.concatenate(self._arrays, dtype=self.dtype)

    def blocks(self):
        """Yield spans of bags with their `Bags`."""
        n_rows = max(1, BLOCK_BYTES // (self.n_dims * self.dtype.itemsize))
        ends = np.cumsum([len(array) for array in self._arrays])
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + n_rows, side="right")))
            yield slice(start, stop), Bags.from_arrays(self._arrays[start:stop], self.dtype)
            start = stop
