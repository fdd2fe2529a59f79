"""Blocks of rows as a family sees them, their size, and the arrays that they use again."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..._typing import Array, warn

MAX_ARRAYS_PER_USE = 16  # that a pool keeps; more are dropped, or a pool might hold all memory

# The rows of a block have some megabytes of features, or of numbers of a step, which stay in the
# processor's caches; but they are not so few that calls cost more than what they compute.
MIN_BLOCK_ROWS = 256
MAX_DENSE_ROWS = 4096
MAX_SPARSE_ROWS = 16384  # less than 2^16, as row numbers in columns are uint16
MAX_DENSE_ENTRIES = 2**21
MAX_SPARSE_ENTRIES = 2**23
# Below so many blocks all are of even size, so that no thread waits for a last one that is full.
MIN_BLOCKS_OF_POWERS = 16
# Of so many components the sums take longer to add than scores that leave the caches: the fewer
# blocks, the fewer sums.
MANY_COMPONENTS = 4096
MAX_ROWS_OF_MANY = 1024

# In the same time truncated steps gain more than exact ones at 8,000 components, and as much at
# 2,000. They want rows enough for each component, and take many at once.
TRUNCATED_FROM = 4000  # components
MIN_ROWS = 20  # for each component
SPAN_ROWS = 16  # for each component, that a step takes together


class BufferPool:
    """Arrays to be filled again, as fresh pages cost as much as some sums, or made once for all.

    Arrays are kept by use, and dropped where another shape or type is asked for.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, list[Array]] = {}
        self._cached: dict[str, tuple[Any, Array]] = {}

    def acquire(self, use: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
        """Return an uninitialized array."""
        try:  # as another thread may take the last one after a look
            array = self._arrays.setdefault(use, []).pop()
        except IndexError:
            return np.empty(shape, dtype)
        if array.shape == shape and array.dtype == dtype:
            return array
        return np.empty(shape, dtype)

    def release(self, use: str, array: Array) -> None:
        """Take an array back, to be acquired again."""
        arrays = self._arrays.get(use)
        if arrays is not None and len(arrays) < MAX_ARRAYS_PER_USE:
            arrays.append(array)

    def cached(self, use: str, owner: Any, make: Callable[[], Array]) -> Array:
        """Return what `make` returned for the same owner before, or else call it."""
        cached_owner, array = self._cached.get(use, (None, None))
        if array is None or cached_owner is not owner:
            array = make()
            self._cached[use] = owner, array
        return array


class _Block:
    """Base class of dense and sparse blocks."""

    start: int
    weights: Array
    scales: Array | None
    buffers: BufferPool
    target: Array | None

    @property
    def span(self) -> slice:
        """Where the rows of the block are among all."""
        return slice(self.start, self.start + len(self.weights))

    def empty_scores(self, n_components: int, dtype: npt.DTypeLike) -> Array:
        """Return an array (n, K) to be filled: the target if it fits, which saves a copy."""
        shape = len(self.weights), n_components
        if self.target is not None and self.target.shape == shape and self.target.dtype == dtype:
            return self.target
        return self.buffers.acquire("scores", shape, dtype)

    @property
    def factors(self) -> Array:
        """The factors of responsibilities (n,): the rows' weights times their scales."""
        return self.weights if self.scales is None else self.weights * self.scales

    @property
    def has_direction(self) -> Array:
        """Rows that the family can see: all but zero rows on the sphere."""
        return np.ones(len(self.weights), bool) if self.scales is None else self.scales != 0


@dataclass(frozen=True, eq=False)
class Missing:
    """The rows of a block of which values are missing, in an order by pattern."""

    order: Array  # (n,): rows that lack the same features follow each other
    X: Array  # in that order, float64
    mask: Array  # in that order, (n, d)
    patterns: Array  # (p, 3 + d): first row, the first after it, how many are missing, and these
    n_missing: Array  # (n,): how many features each row lacks, in the order of the block

    @classmethod
    def of(cls, X: Array, buffers: BufferPool) -> "Missing":
        """Find what is missing in rows."""
        mask = np.isnan(X)
        packed = np.packbits(mask, axis=1)  # eight features are compared at once
        order = np.lexsort(packed.T)
        packed = packed[order]
        # Booleans are counted by products, which is faster than by sums.
        changes = np.dot(packed[1:] != packed[:-1], np.ones(packed.shape[1]))
        n_missing = np.dot(mask, np.ones(X.shape[1])).astype(np.intp)
        starts = np.append(0, 1 + np.flatnonzero(changes))
        stops = np.append(starts[1:], len(X))
        ordered = buffers.acquire("ordered", X.shape)
        # With mode="clip" the result is written in place.
        np.take(X.astype(np.float64, copy=False), order, axis=0, out=ordered, mode="clip")
        mask = mask[order]
        missing_first = np.argsort(~mask[starts], axis=1, kind="stable")
        patterns = np.column_stack([starts, stops, n_missing[order[starts]], missing_first])
        return cls(order, ordered, mask, patterns, n_missing)


@dataclass(frozen=True, eq=False)
class DenseBlock(_Block):
    """Some rows of a dense matrix: the family sees ``scales[:, None] * X``, or X without scales.

    `start` is the number of the first row; `copied`, whether X is a copy that may be filled again;
    `target`, where a caller wants one number per row and component; `missing` is None without nan.
    """

    X: Array
    weights: Array
    scales: Array | None
    start: int
    buffers: BufferPool = field(default_factory=BufferPool)
    copied: bool = False
    target: Array | None = None
    missing: Missing | None = None

    def release(self) -> None:
        """Say that the rows are needed no more: a copy goes back where it was taken from."""
        if self.missing is not None:
            self.buffers.release("ordered", self.missing.X)
        if self.copied:
            self.buffers.release("rows", self.X)

    def row(self, n: int) -> Array:
        """Return one row as the family sees it, in float64."""
        row: Array = self.X[n].astype(np.float64)
        return row if self.scales is None else row * self.scales[n]


# The columns of a CSR block: pointers, row numbers, which count within the block, and values.
Columns: TypeAlias = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class SparseBlock(_Block):
    """Some rows of a CSR matrix, with their columns where a fit needs them; fields as above."""

    indptr: Array
    indices: Array
    data: Array
    n_features: int
    weights: Array
    scales: Array | None
    start: int
    columns: Columns | None
    buffers: BufferPool
    target: Array | None = None

    def release(self) -> None:
        """Say that the rows are needed no more; they belong to the data."""

    def row(self, n: int) -> Array:
        row = np.zeros(self.n_features)
        entries = slice(self.indptr[n], self.indptr[n + 1])
        row[self.indices[entries]] = self.data[entries]
        return row if self.scales is None else row * self.scales[n]


Block: TypeAlias = DenseBlock | SparseBlock


def block_rows(n_rows: int, n_features: int, *, is_sparse: bool, width: int = 1) -> int:
    """Return the number of rows in a block: a power of two, or an even cut into fewer than 16.

    `width` is how many numbers per row a step needs in addition to its features, such as one per
    component: both fit in some megabytes.
    """
    if is_sparse:  # few blocks, as each brings n_features x K numbers to add
        most = min(MAX_SPARSE_ROWS, MAX_SPARSE_ENTRIES // int(width))
    elif width >= MANY_COMPONENTS:
        most = min(MAX_ROWS_OF_MANY, MAX_SPARSE_ENTRIES // int(width))
    else:
        most = min(MAX_DENSE_ROWS, MAX_DENSE_ENTRIES // max(int(n_features), int(width)))
    most = max(most, MIN_BLOCK_ROWS)
    size = 1 << (most.bit_length() - 1)  # chunks of a Dask array are then often whole blocks
    n_blocks = -(-n_rows // size)
    if n_blocks >= MIN_BLOCKS_OF_POWERS:
        return size
    return -(-n_rows // n_blocks)


def has_truncated_steps(n_rows: int, n_components: int) -> bool:
    """Whether iterations have truncated steps, if the mixture and its rows can."""
    return n_components >= TRUNCATED_FROM and n_rows >= MIN_ROWS * n_components


def span_rows(n_rows: int, n_features: int, n_components: int) -> int:
    """Return the number of dense rows in whole blocks that a truncated step takes together."""
    size = block_rows(n_rows, n_features, is_sparse=False, width=n_components)
    return size * max(1, SPAN_ROWS * n_components // size)


def warn_if_too_large(n_bytes: float, what: str, advice: str) -> None:
    """Warn before something takes more memory than there is."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # of a system that does not say
        return
    if n_bytes > memory > 0:
        sizes = f"{n_bytes / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g}"
        warn(f"{what} about {sizes}. {advice}", UserWarning)
