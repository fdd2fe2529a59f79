"""Rows: dense or CSR data as fixed, weighted blocks, and sums over them.

Blocks depend on the shape of the data alone, so that sums do not depend on the number of
threads. On the sphere rows are scaled to unit length as they are read: the data is not copied.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from .._kernels import sparse as sparse_kernels
from .._kernels import sphere as sphere_kernels
from .chunks import Array, Chunk, Columns, DenseChunk, SparseChunk
from .contracts import RowSource
from .threads import block_sum

Part = TypeVar("Part")

EVEN_BELOW = 16  # blocks

# Inside these norms a product with unscaled rows can neither over- nor underflow.
_SAFE_NORMS = {"f": (1e-12, 1e12), "d": (1e-100, 1e100)}


class _Smallest:
    """The rows with the smallest keys, as many as are asked for; they add."""

    def __init__(self, size: int, keys: Array, rows: Array, weights: Array) -> None:
        if len(keys) > size:
            chosen = np.argpartition(keys, size - 1)[:size]
            keys, rows, weights = keys[chosen], rows[chosen], weights[chosen]
        self._size, self.keys, self.rows, self.weights = size, keys, rows, weights

    def __iadd__(self, other: "_Smallest") -> "_Smallest":
        return _Smallest(
            self._size,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weights, other.weights]),
        )


class Rows(RowSource):
    """Weighted rows of an array in fixed blocks.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Finite float32 or float64.
    weights : ndarray of shape (n_samples,) or None
        Float64; None is one each.
    unit : bool
        Whether the family sees rows of unit length. Zero rows keep length zero, scale zero
        and weight zero.
    width : int
        How many numbers a row brings along in a step beside its features, such as one a
        component: blocks are so small that both fit in some megabytes.
    """

    def __init__(self, X: Any, weights: Array | None, *, unit: bool, width: int = 1) -> None:
        self.n_rows, self.n_features = X.shape
        self.dtype: np.dtype[Any] = X.dtype
        self._X = X
        self._weights = None if weights is None else _of_ordinary_size(weights)
        size = block_rows(self.n_rows, self._most_rows(width))
        starts = range(0, self.n_rows, size)
        self._spans = [slice(start, min(start + size, self.n_rows)) for start in starts]
        self._scales = np.ones(self.n_rows) if unit else None
        self._unsafe: set[int] = set()
        if self._scales is not None:
            block_sum(self._measure, range(len(self._spans)))

    @cached_property
    def has_direction(self) -> Array:
        """Rows that are not zero; every row where `unit` is False."""
        if self._scales is None:
            return np.ones(self.n_rows, dtype=bool)
        nonzero: Array = self._scales != 0
        return nonzero

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the rows that count."""
        return float(self.sampling_weights().sum())

    @property
    def found_ordinary(self) -> bool:
        """Whether all rows were measured, and found finite and of ordinary length."""
        return self._scales is not None and not self._unsafe

    def fold(self, function: Callable[[Any], Part]) -> Part:
        """Add ``function(chunk)`` over the blocks."""
        return block_sum(lambda i: function(self._chunk(i)), range(len(self._spans))).total()

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        """Call ``function(chunk, span)``, which writes the answer for the rows of `span`."""

        def write(i: int) -> int:
            function(self._chunk(i), self._spans[i])
            return 0

        block_sum(write, range(len(self._spans)))

    def draw(self, size: int, seed: int) -> tuple[Array, Array]:
        """Draw rows by weight without putting back; return their numbers, and weights for them.

        A reservoir: each row has a key, Exp(1) over its weight, and the smallest are drawn
        (Efraimidis and Spirakis, Information Processing Letters 97, 2006); keys come from a
        stream that the seed and the number of the block's first row begin.
        """

        def keys(chunk: Chunk) -> _Smallest:
            drawn = np.random.default_rng((seed, chunk.start)).exponential(size=len(chunk.weights))
            rows = np.flatnonzero(chunk.weights > 0)
            own = chunk.weights[rows]
            return _Smallest(size + 1, drawn[rows] / own, rows + chunk.start, own)

        found = self.fold(keys)
        if len(found.keys) > size:
            next_key = found.keys.max()
            inside = found.keys < next_key
            found = _Smallest(size, found.keys[inside], found.rows[inside], found.weights[inside])
            weights = found.weights / -np.expm1(-found.weights * next_key)
        else:
            weights = found.weights
        order = np.argsort(found.rows)
        weights = weights[order]
        return found.rows[order], weights * (weights.sum() / (weights @ weights))

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> "Rows":
        """Return some rows with other weights as rows of their own, without a copy if all.

        Unit rows may be had in single precision, which is a copy unless they are.
        """
        whole, unit = len(indices) == self.n_rows, self._scales is not None  # in ascending order
        if single and unit and self.dtype != np.float32:
            rows = self._in_single(indices)
        else:
            rows = self._X if whole else self._X[indices]
        own = None if (weights == weights[0]).all() else weights
        return make_rows(rows, own, unit=unit, width=width, columns=True)

    def sampling_weights(self) -> Array:
        """Return the weight with which each row may be drawn: none for a zero row."""
        if self._weights is None:
            return self.has_direction
        return self._weights * self.has_direction

    @abstractmethod
    def _most_rows(self, width: int) -> int:
        """Return the largest number of rows in a block."""

    @abstractmethod
    def _in_single(self, indices: Array) -> Any:
        """Return some unit rows in single precision."""

    @abstractmethod
    def _measure(self, i: int) -> int:
        """Fill in the scales of block i; note it as unsafe where a norm is extreme."""

    @abstractmethod
    def _chunk(self, i: int) -> Chunk:
        """Build block i."""

    def _span_weights(self, span: slice) -> tuple[Array, Array | None]:
        n = span.stop - span.start
        weights = np.ones(n) if self._weights is None else self._weights[span]
        if self._scales is None:
            return weights, None
        scales = self._scales[span]
        return np.where(scales == 0, 0.0, weights), scales

    def _note_unsafe(self, i: int, scales: Array) -> None:
        if (scales < 0).any():
            self._unsafe.add(i)
            scales[scales < 0] = 1.0


class DenseRows(Rows):
    """Rows of a dense array of any memory order; blocks are made contiguous one at a time."""

    def _most_rows(self, width: int) -> int:
        return max(256, min(4096, 2**21 // max(int(self.n_features), width)))

    def take(self, indices: Array) -> Array:
        """Return some rows as the family sees them, dense float64."""
        rows = np.ascontiguousarray(self._X[indices], dtype=np.float64)
        if self._scales is not None:
            sphere_kernels.normalize_rows(rows)
        return rows

    def _in_single(self, indices: Array) -> Array:
        assert self._scales is not None
        rows = np.empty((len(indices), self.n_features), dtype=np.float32)
        for start in range(0, len(rows), 1024):  # whatever is in double precision is small
            some = indices[start : start + 1024]
            rows[start : start + 1024] = self._X[some] * self._scales[some, np.newaxis]
        return rows

    def mean_variance(self) -> float:
        """Return the weighted variance of the features, averaged over them."""
        first_row = np.argmax(self.sampling_weights() > 0)
        pivot = self._X[first_row].astype(np.float64)  # offsets do not cancel about a row

        def sums(chunk: DenseChunk) -> Array:
            gaps = chunk.X - pivot
            weighted = gaps * chunk.weights[:, None]
            return np.vstack([weighted.sum(axis=0), np.einsum("nd,nd->d", weighted, gaps)])

        first, second = self.fold(sums) / self.total_weight
        return float(np.mean(np.maximum(second - first**2, 0)))

    def _measure(self, i: int) -> int:
        assert self._scales is not None
        span = self._spans[i]
        scales = self._scales[span]
        X = np.ascontiguousarray(self._X[span])
        sphere_kernels.row_scales(X, *_SAFE_NORMS[self.dtype.char], scales)
        self._note_unsafe(i, scales)
        return 0

    def _chunk(self, i: int) -> DenseChunk:
        span = self._spans[i]
        X = np.ascontiguousarray(self._X[span])
        weights, scales = self._span_weights(span)
        if i in self._unsafe:
            assert scales is not None
            X = np.array(X)
            sphere_kernels.normalize_rows(X)
            scales = (scales != 0).astype(np.float64)
        return DenseChunk(X, weights, scales, span.start)


class SparseRows(Rows):
    """Rows of a CSR matrix; `columns=True` keeps one copy by columns for the M-step."""

    def __init__(
        self,
        X: Any,
        weights: Array | None,
        *,
        unit: bool,
        width: int = 1,
        columns: bool = False,
    ) -> None:
        X = sparse.csr_array(X)
        check_structure(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        super().__init__(X, weights, unit=unit, width=width)
        if self._unsafe:
            self._X = sparse.csr_array((X.data.copy(), X.indices, X.indptr), shape=X.shape)
            sparse_kernels.csr_normalize(X.indptr, self._X.data)
            assert self._scales is not None
            self._scales = (self._scales != 0).astype(np.float64)
        self._spare: list[Array] = []
        self._columns: list[Columns] | None = None
        if columns:
            self._columns = [self._by_columns(i) for i in range(len(self._spans))]

    def _most_rows(self, width: int) -> int:
        # Few blocks, as each brings a part of n_features x K to add; at most 2^16 rows, as row
        # numbers are uint16.
        return max(256, min(16384, 2**23 // width))

    def take(self, indices: Array) -> Array:
        """Return some rows as the family sees them, dense float64."""
        rows = np.ascontiguousarray(self._X[indices].toarray(), dtype=np.float64)
        if self._scales is not None:
            sphere_kernels.normalize_rows(rows)
        return rows

    def _in_single(self, indices: Array) -> sparse.csr_array:
        assert self._scales is not None
        rows = self._X[indices]
        data = rows.data * np.repeat(self._scales[indices], np.diff(rows.indptr))
        parts = data.astype(np.float32), rows.indices, rows.indptr
        return sparse.csr_array(parts, shape=rows.shape)

    def _measure(self, i: int) -> int:
        assert self._scales is not None
        span = self._spans[i]
        scales = self._scales[span]
        indptr = self._X.indptr[span.start : span.stop + 1]
        sparse_kernels.csr_row_scales(indptr, self._X.data, *_SAFE_NORMS[self.dtype.char], scales)
        self._note_unsafe(i, scales)
        return 0

    def _by_columns(self, i: int) -> Columns:
        span = self._spans[i]
        indptr = self._X.indptr[span.start : span.stop + 1]
        n_entries = int(indptr[-1] - indptr[0])
        columns = Columns(
            np.empty(self.n_features + 1, dtype=np.int64),
            np.empty(n_entries, dtype=np.uint16),
            np.empty(n_entries, dtype=self.dtype),
        )
        sparse_kernels.csr_columns(
            indptr,
            self._X.indices,
            self._X.data,
            columns.ptr,
            columns.rows,
            columns.values,
        )
        return columns

    def _chunk(self, i: int) -> SparseChunk:
        span = self._spans[i]
        weights, scales = self._span_weights(span)
        return SparseChunk(
            self._X.indptr[span.start : span.stop + 1],
            self._X.indices,
            self._X.data,
            self.n_features,
            weights,
            scales,
            span.start,
            None if self._columns is None else self._columns[i],
            self._spare,
        )


def block_rows(n_rows: int, most: int) -> int:
    """Return the number of rows in a block, a power of two and no more than `most`.

    Then large pieces of the data that begin at such numbers hold whole blocks. Below 16 blocks
    they are cut evenly instead, so that threads have equal work.
    """
    size = 1 << (most.bit_length() - 1)
    n_blocks = -(-n_rows // size)
    return size if n_blocks >= EVEN_BELOW else -(-n_rows // n_blocks)


def make_rows(
    X: Any, weights: Array | None, *, unit: bool, width: int = 1, columns: bool = False
) -> Rows:
    """Wrap validated dense or CSR data."""
    if sparse.issparse(X):
        return SparseRows(X, weights, unit=unit, width=width, columns=columns)
    return DenseRows(X, weights, unit=unit, width=width)


def check_structure(X: Any) -> None:
    """Refuse pointers or column numbers that lead out of the arrays of a CSR matrix.

    SciPy does not look at them where a matrix is put together from its three arrays.
    """
    fault = sparse_kernels.csr_fault(X.indptr, X.indices, len(X.data), X.shape[1])
    if fault != sparse_kernels.SOUND:
        pointers = fault == sparse_kernels.BAD_POINTERS
        what = "indptr falls or leads" if pointers else "column numbers in indices lead"
        raise ValueError(
            f"X is no sound CSR matrix: {what} outside its {len(X.data)} entries and "
            f"{X.shape[1]} columns. X.check_format() says more."
        )


def _of_ordinary_size(weights: Array) -> Array:
    """Return weights whose largest is between 1e-20 and 1e20.

    Beyond, a prior that counts single rows decides all or nothing anyway, and products with
    weights would leave the range of floats. A weight of zero stays zero.
    """
    low, high = 1e-20, 1e20
    largest = float(weights.max())
    if largest == 0 or low <= largest <= high:
        return weights
    ordinary: Array = weights / largest * min(max(largest, low), high)
    return ordinary
