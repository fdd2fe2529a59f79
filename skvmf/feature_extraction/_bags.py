"""Bags of vectors: counts of words that have a vector each, or arrays of vectors."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import sparse

from .._typing import Array, DType
from ..distributions._arguments import checked_array
from ..mixture._validation import holds_texts

BLOCK_BYTES = 2**21  # of lists of arrays put together at a time: memory is filled again, not fresh


@dataclass(frozen=True)
class Bags:
    """Bag n holds row ``indices[j]`` of `table`, if in `used`, ``data[j]`` times for each j."""

    indptr: Array
    indices: Array
    data: Array
    table: Array
    used: Array | None = None

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def from_counts(cls, counts: Any, table: Array, present: Array) -> "Bags":
        """Count the rows of a table; those outside `present` are left out."""
        counts = sparse.csr_array(counts)
        used = np.zeros(len(table), dtype=bool)
        used[counts.indices] = True
        used &= present
        return cls(counts.indptr, counts.indices, counts.data, table, used)

    @classmethod
    def from_arrays(cls, arrays: Sequence[Array], dtype: npt.DTypeLike) -> "Bags":
        """Concatenate arrays to a table in which each row counts once."""
        table = np.concatenate(arrays, dtype=dtype)
        indptr = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
        return cls(indptr, np.arange(len(table)), np.ones(len(table)), table)


def refuse_texts(X: object) -> None:
    """Refuse texts, and texts split into words: counts or vectors are expected."""
    first = X[0] if isinstance(X, list | tuple) and len(X) > 0 else None
    if holds_texts(X) or holds_texts(first):
        raise ValueError(
            "X holds texts, and Fisher vectors are made of counts of words or of arrays of "
            "vectors. Count the words first: sklearn.feature_extraction.text.CountVectorizer"
            "(vocabulary=words) can be a step of a Pipeline before this one; for texts that are "
            "lists of words it takes analyzer=list. Words and embeddings come from "
            "skvmf.feature_extraction.embedding_table."
        )


def are_arrays(X: object) -> TypeGuard[Sequence[Array]]:
    """Whether X holds arrays of vectors, and is not a matrix of counts or a list of lists."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object and _hold_vectors(X))
    return isinstance(X, list | tuple) and _hold_vectors(X)


def _hold_vectors(items: Iterable[ArrayLike]) -> bool:
    return any(
        (hasattr(item, "__array__") and np.ndim(item) > 0)
        or (isinstance(item, list | tuple) and len(item) > 0 and _is_row(item[0]))
        for item in items
    )


def _is_row(item: ArrayLike) -> bool:
    return isinstance(item, list | tuple) or np.ndim(item) > 0


class BagList:
    """Checked arrays of vectors, concatenated block by block; (0,) is the shape of an empty bag."""

    def __init__(self, X: Sequence[ArrayLike], n_dims: int | None = None) -> None:
        arrays = [_as_array(x, i) for i, x in enumerate(X)]
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
        self.dtype: DType = np.dtype(np.float32 if single and filled else np.float64)
        self.n_dims = n_dims
        empty = np.empty((0, n_dims), dtype=self.dtype)
        self._arrays = [filled.get(i, empty) for i in range(len(arrays))]

    def __len__(self) -> int:
        return len(self._arrays)

    def check_finite(self) -> None:
        """Raise a ValueError that names the first bag with nan or inf."""
        for i, array in enumerate(self._arrays):
            if not np.isfinite(array).all():
                raise ValueError(f"X[{i}] contains nan or inf: leave such vectors out.")

    def table(self) -> Array:
        return np.concatenate(self._arrays, dtype=self.dtype)

    def blocks(self) -> Iterator[tuple[slice, Bags]]:
        n_rows = max(1, BLOCK_BYTES // (self.n_dims * self.dtype.itemsize))
        ends = np.cumsum([len(array) for array in self._arrays])
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + n_rows, side="right")))
            yield slice(start, stop), Bags.from_arrays(self._arrays[start:stop], self.dtype)
            start = stop


def _as_array(x: Any, i: int) -> Array:
    """Return bag i as an array of numbers of two dimensions, or an empty one."""
    array = checked_array(x, f"X[{i}]")
    if array.ndim != 2 and array.shape != (0,):
        raise ValueError(
            f"X[{i}] has {array.ndim} dimensions: a bag is an array of shape (n_vectors, "
            "n_dims). A single vector is a bag as vector[None]."
        )
    return array
