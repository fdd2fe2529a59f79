"""Rows as fixed, weighted blocks of dense or CSR data, and sums over them.

Rows are read block by block, and there they are scaled to unit length or converted: the data is not
copied. A first pass finds all that has to be known before; where each block is read once, as
predictions do, a block is measured just before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._kernels import rows as row_kernels
from ..._kernels.rows import widen
from ..._typing import Array, DType, Matrix
from .blocks import Block, BufferPool, Columns, DenseBlock, Missing, SparseBlock, block_rows
from .parallel import BlockSum, LazyItems, Part, for_each, map_reduce
from .reading import as_seen, canonical, largest_magnitude, read_as, refuse_non_finite
from .weights import in_units, reservoir, weight_unit

Labels = dict[int, Array]  # int32, of some rows each, by the number of the first

# Variances below count as none. What families take for the least variance of a feature, a
# trillionth of that of all, is then a float with all digits.
_LEAST_VARIANCE = 1e-280
# The part of a mean square below which a variance is rounding.
_ROUNDING = 1e-15


class RowSource(ABC):
    """A source of rows: fixed weighted blocks, and sums over them.

    Blocks depend only on the data's shape and the number of components, and how they are added only
    on their numbers (see `BlockSum`): sums are bit-identical whoever reads the blocks.
    """

    n_rows: int
    n_features: int
    dtype: DType
    """What rows are stored in, float32 or float64."""
    largest: float
    """The largest magnitude of a value; 0 where the family sees rows of unit length."""
    weight_unit: float = 1.0
    """What a weight of 1 stands for: weights of extreme size are counted in units."""
    incomplete: bool = False
    """Whether values are missing: they are nan."""
    is_sparse: bool = False
    """Whether rows are sparse."""

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the rows that count."""
        return self.map_reduce_weights(_sum)

    @abstractmethod
    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        """Add ``function(block)`` over the blocks with ``+=``."""

    def noting_labels(self, function: Callable[..., Part]) -> tuple[Part, Any]:
        """Add ``function(block, labels=labels)``; return labels of all rows, too.

        They stay where the rows are: only `map_reduce_spans` takes them.
        """
        labels = Labels()
        total = self.map_reduce(partial(function, labels=labels))
        return total, joined(labels)

    def map_reduce_spans(
        self, function: Callable[["Span"], Part], labels: Any, size: int, relabels: bool
    ) -> tuple[Part, Any]:
        """Add ``function(span)`` over spans of `size` rows; return labels as it leaves them.

        `relabels` is whether it overwrites labels.
        """
        total: BlockSum[Part] = BlockSum()
        weights = self.sampling_weights()
        for i, start in enumerate(range(0, self.n_rows, size)):
            rows = slice(start, start + size)
            total.add(i, function(Span(start, self, start, weights[rows], labels[rows])))
        return total.total(), labels

    @abstractmethod
    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        """Add ``function(start, weights)`` over the blocks; rows are not read.

        `start` is the number of the first row, and rows that the family cannot see, zero rows
        on the sphere, weigh nothing.
        """

    @abstractmethod
    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        """Call ``function(block, span)``, which writes the answer for the rows of `span`."""

    def per_row(self, function: Callable[[Any], Array], dtype: npt.DTypeLike, *shape: int) -> Array:
        """Return ``function(block)`` of all blocks, one below the other.

        The result has `n_rows` rows of the given shape. A function may write its answer into
        ``block.target``, which is its part of the result, and return that: it is not copied.
        """
        values = np.empty((self.n_rows, *shape), dtype=dtype)

        def write(block: Any, span: slice) -> None:
            target = values[span]
            answer = function(replace(block, target=target))
            if answer is not target:
                target[...] = answer

        self.for_each(write)
        return values

    def sampling_weights(self) -> Array:
        """Return the weight (n_rows,) to draw each row in memory with: none for a zero row."""
        raise NotImplementedError

    @cached_property
    def first_row(self) -> Array:
        """The first row that counts, (1, d): moments about it do not cancel as those about 0.

        A value that is missing there is the least one.
        """
        first = min(self.map_reduce_weights(_first_number))
        row = self.take(np.array([first]))
        if np.isnan(row).any():
            least, _ = self.extent(slice(None))
            least = np.where(least < np.inf, least, 0)  # of a feature that all rows lack
            row = np.where(np.isnan(row), least, row)
        return row

    def mean_variance(self) -> float:
        """Return the weighted variance of dense rows, the mean of all features; 0 if tiny."""
        return float(np.mean(self.variances()))

    def variances(self) -> Array:
        """Return the weighted variance of each feature of dense rows, (d,); 0 if tiny."""
        sums = self.map_reduce(partial(_sums_about, self.first_row[0]))
        total: Any = self.total_weight
        if self.incomplete:
            total = self.map_reduce(_observed_weights)
        first, second = sums / np.maximum(total, _LEAST_VARIANCE)
        variances = second - first**2
        by_one_row = np.flatnonzero(variances <= _ROUNDING * second)
        if len(by_one_row):
            # The others weigh next to nothing, and differ from it nevertheless.
            low, high = self.extent(by_one_row)
            ranges = np.where(high > low, high - low, 0.0)
            variances[by_one_row] = np.maximum(
                variances[by_one_row], (0.5 * _ROUNDING * ranges) ** 2
            )
        return np.where(variances > _LEAST_VARIANCE, variances, 0.0)

    def extent(self, features: Any) -> tuple[Array, Array]:
        """Return the least and the largest values (m,) of features in the dense rows that count."""
        lows, highs = zip(*self.map_reduce(partial(_extent_of, features)), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def compact(self, means: Array | None = None) -> "tuple[RowSource, Array] | None":
        """Return the same rows without columns that are empty, and the numbers of the others.

        Columns in use by `means` (K, d) stay, too. None if that is not worth it.
        """
        return None

    def draw(self, size: int, seed: int) -> tuple[Array, Array]:
        """Draw rows by weight without putting back; return their numbers, and weights for them.

        The draw depends on the seed and the blocks alone. Sums with these weights estimate sums
        over all rows.
        """
        return self.map_reduce_weights(partial(reservoir, size + 1, seed)).sample()

    def draw_in_order(self, size: int, seed: int) -> Array:
        """Return the numbers of rows drawn one after the other by weight, without putting back."""
        return self.map_reduce_weights(partial(reservoir, size, seed)).in_order()

    @abstractmethod
    def subset(
        self, indices: Array, weights: Array, width: int, single: bool = False
    ) -> "RowSource":
        """Return some rows with other weights; unit rows may be had in single precision."""

    @abstractmethod
    def take(self, indices: Array) -> Array:
        """Return some rows as the family sees them, dense float64."""


@dataclass(frozen=True, eq=False)
class Span:
    """Many rows next to each other, with labels that a function overwrites."""

    start: int  # the number of the first row in the data
    rows: RowSource  # that the span is a part of
    first: int  # the number of the first row in `rows`
    weights: Array  # of the span
    labels: Array  # of the span

    def subset(self, numbers: Array, width: int) -> RowSource:
        """Return some of the rows, by numbers from zero."""
        return self.rows.subset(self.first + numbers, self.weights[numbers], width)


def joined(labels: Labels) -> Array:
    """Return labels in the order of rows."""
    return np.concatenate([labels[start] for start in sorted(labels)])


def _sum(start: int, weights: Array) -> float:
    return float(weights.sum())


def _first_number(start: int, weights: Array) -> list[int]:
    """Return the number of the first row of a block that counts, if there is one."""
    return [start + int(n) for n in np.flatnonzero(weights > 0)[:1]]


def _extent_of(features: Any, block: DenseBlock) -> list[tuple[Array, Array]]:
    """Return the least and the largest values (m,) of features, in a list: lists add."""
    X = block.X[block.weights > 0][:, features].astype(np.float64)
    low = np.fmin.reduce(X, axis=0, initial=np.inf)
    high = np.fmax.reduce(X, axis=0, initial=-np.inf)
    return [(low, high)]


def _sums_about(pivot: Array, block: DenseBlock) -> Array:
    """Return the sums of a block's weighted gaps to a row, and of their squares, (2, d)."""
    gaps = block.X - pivot
    if block.missing is not None:
        gaps[np.isnan(gaps)] = 0
    weighted = gaps * block.weights[:, None]
    return np.vstack([weighted.sum(axis=0), np.einsum("nd,nd->d", weighted, gaps)])


def _observed_weights(block: DenseBlock) -> Array:
    """Return the weights of the rows that have each feature, (d,)."""
    return block.weights @ ~np.isnan(block.X)


# Inside these norms a product with unscaled rows can neither over- nor underflow, by type.
_SAFE_NORMS = {"f": (1e-12, 1e12), "d": (1e-100, 1e100)}
MAX_MAGNITUDE = 1e100  # larger rows are moved in, so that their squares stay finite
# Fits go without empty columns where at least three in four are empty. The numbers of columns are
# copied for that, which has to save more than it costs.
MIN_COLUMNS_PER_USED = 4
_CONVERTED_ROWS = 1024  # at once, so that what is in double precision is small


@dataclass(eq=False)
class Measures:
    """Results of the first pass over rows.

    `scales` (n,) bring rows to unit length; None if they stay as they are. `largest` are the
    largest magnitudes of the blocks, 0 where rows are scaled. The blocks in `unsafe` have lengths
    or values that are none of ordinary size. `columns` are copies of CSR blocks by columns. The
    blocks in `missing` have missing values.
    """

    scales: Array | None
    largest: Array
    unsafe: set[int]
    columns: list[Columns] | None = None
    missing: set[int] = field(default_factory=set)


class Rows(RowSource):
    """Weighted rows of an array in fixed blocks.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        Rows of one of the types in `READABLE`; CSR of float32 or float64.
    weights : ndarray of shape (n_samples,) or None
        Weights of the rows; None is one for each.
    unit : bool
        Whether the family sees rows of unit length. Zero rows then have scale zero and weight zero.
    size : int
        Rows of a block.
    start : int, default=0
        The number of the first row in the data that these rows are a part of.
    measures : Measures, default=None
        The results of an earlier pass. Without them rows are read, and nan and infinity refused.
    buffers : BufferPool, default=None
        Arrays to be used again.
    ahead : bool, default=True
        Whether all blocks are read at once; else each as it is first asked for, while the processor
        has it at hand. The attribute `largest` is then not known.
    missing : bool, default=False
        Whether nan is a missing value.
    """

    def __init__(
        self,
        X: Matrix,
        weights: Array | None,
        *,
        unit: bool,
        size: int,
        start: int = 0,
        measures: Measures | None = None,
        buffers: BufferPool | None = None,
        ahead: bool = True,
        missing: bool = False,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.dtype = read_as(X.dtype)
        self._X = X
        self._weights = weights
        self._start = start
        self._missing = missing
        self._buffers = BufferPool() if buffers is None else buffers
        starts = range(0, self.n_rows, size)
        self._spans = [slice(start, min(start + size, self.n_rows)) for start in starts]
        # Blocks are counted in the whole data: sums over parts of it then add up to its own.
        self.numbers = range(start // size, start // size + len(self._spans))
        self._unmeasured: set[int] = set()
        if measures is None:
            self._unmeasured.update(range(len(self._spans)))
            scales = np.ones(self.n_rows) if unit else None
            measures = Measures(scales, np.zeros(len(self._spans)), set())
        self._measures = measures
        if ahead:
            measures = self.measured()
            self.largest = float(measures.largest.max(initial=0))
            self.incomplete = len(measures.missing) > 0

    def measured(self) -> Measures:
        """Return the results of the first pass; blocks that have not been read are read now."""
        if self._unmeasured:
            for_each(self._measure_once, sorted(self._unmeasured))
        return self._measures

    def _measure_once(self, i: int) -> None:
        if i in self._unmeasured:
            self._measure(i)
            self._unmeasured.discard(i)

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        blocks = LazyItems(self.block, len(self._spans))
        return map_reduce(function, blocks, self.numbers).total()

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        self.measured()

        def of_block(i: int) -> Part:
            weights, _ = self._weights_and_scales(i)
            return function(self._start + self._spans[i].start, weights)

        return map_reduce(of_block, range(len(self._spans)), self.numbers).total()

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        def call(i: int) -> None:
            function(self.block(i), self._spans[i])

        map_reduce(call, range(len(self._spans)))  # of no parts

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> "Rows":
        """Return some rows with other weights, without a copy if all keep their precision."""
        unit = self.measured().scales is not None
        if single and unit and self.dtype != np.float32:
            rows = self._in_single(indices)
        elif len(indices) == self.n_rows:  # all, as they are in ascending order
            rows = self._X
        else:
            rows = self._X[indices]
        new_weights: Array | None = weights
        if (weights == 1).all():  # as of most draws: without weights blocks make their own ones
            new_weights = None
        return make_rows(
            rows, new_weights, unit=unit, width=width, columns=True, missing=self._missing
        )

    def take(self, indices: Array) -> Array:
        return as_seen(self._X[indices], unit=self.measured().scales is not None)

    def count_in_units(self, weights: Array) -> None:
        """Give weights the unit of the largest: that of a zero row, once it is seen, is none."""
        # Before rows are read nobody knows which ones are zero.
        counted = weights if self._unmeasured else self.sampling_weights()
        largest = float(counted.max())
        self._weights = in_units(weights, largest)
        self.weight_unit = weight_unit(largest)

    def sampling_weights(self) -> Array:
        scales = self.measured().scales
        weights = self._weights
        if weights is None:
            weights = np.ones(self.n_rows)
        if scales is not None:
            weights = np.where(scales == 0, 0.0, weights)
        return weights

    @abstractmethod
    def _in_single(self, indices: Array) -> Matrix:
        """Return some unit rows in single precision."""

    @abstractmethod
    def _measure(self, i: int) -> None:
        """Set the measures of block i."""

    @abstractmethod
    def block(self, i: int) -> Block:
        """Build block i of these; the data counts it as ``numbers[i]``."""

    def _weights_and_scales(self, i: int) -> tuple[Array, Array | None]:
        self._measure_once(i)
        span = self._spans[i]
        if self._measures.scales is None:
            if self._weights is None:
                return np.ones(span.stop - span.start), None
            return self._weights[span], None
        scales = self._measures.scales[span]
        weights = (scales != 0).astype(np.float64)
        if self._weights is not None:
            weights *= self._weights[span]
        return weights, scales


def _mark_extreme(scales: Array) -> bool:
    """Return whether scales of -1 mark rows of extreme length, and set those to 1."""
    extreme = scales < 0
    scales[extreme] = 1.0
    return bool(extreme.any())


class DenseRows(Rows):
    """Rows of a dense array of any memory order; blocks are made contiguous one at a time."""

    def _in_single(self, indices: Array) -> Array:
        rows = np.empty((len(indices), self.n_features), dtype=np.float32)
        for start in range(0, len(rows), _CONVERTED_ROWS):
            stop = start + _CONVERTED_ROWS
            rows[start:stop] = self.take(indices[start:stop])
        return rows

    def _read(self, span: slice) -> tuple[Array, bool]:
        """Return some rows, and whether they are a copy, into pages that were used before."""
        X: Array = self._X[span]
        if X.dtype == self.dtype and X.flags.c_contiguous and X.flags.aligned:
            return X, False
        rows = self._buffers.acquire("rows", X.shape, self.dtype)
        if X.dtype == np.float16:
            # By their bits, which is many times as fast as what NumPy does.
            halves = np.require(X, requirements=["C", "A"])
            widen(halves.view(np.int16).reshape(-1), rows.reshape(-1))
        else:
            rows[...] = X
        return rows, True

    def _measure(self, i: int) -> None:
        measures = self._measures
        span = self._spans[i]
        X, copied = self._read(span)
        advice = ""
        if measures.scales is not None:
            scales = measures.scales[span]
            row_kernels.row_scales(X, *_SAFE_NORMS[self.dtype.char], scales)
            unsafe = _mark_extreme(scales)
        else:
            advice = "set missing_values='marginal', or "
            largest = largest_magnitude(X)
            if self._missing and np.isnan(largest):
                measures.missing.add(i)
                largest = largest_magnitude(X[~np.isnan(X)])
            measures.largest[i] = largest
            unsafe = not largest <= MAX_MAGNITUDE  # nan is not, either
        if unsafe:
            measures.unsafe.add(i)
            numbers = self._start + np.arange(span.start, span.stop)
            values = X
            if i in measures.missing:
                values = np.where(np.isnan(X), 0, X)
            refuse_non_finite(values, np.broadcast_to(numbers[:, None], X.shape), advice)
        if copied:
            self._buffers.release("rows", X)

    def block(self, i: int) -> DenseBlock:
        X, copied = self._read(self._spans[i])
        weights, scales = self._weights_and_scales(i)
        if i in self._measures.unsafe:
            # Products with these would over- or underflow: rows are scaled in a copy.
            if not copied:
                X = np.array(X)
                copied = True
            if scales is None:
                largest = np.fmax.reduce(np.abs(X), axis=1, keepdims=True)
                X *= MAX_MAGNITUDE / np.fmax(largest, MAX_MAGNITUDE)
            else:
                row_kernels.normalize_rows(X)
                scales = np.empty(len(X))  # of float32 rows: their lengths are rounded
                row_kernels.row_scales(X, *_SAFE_NORMS[self.dtype.char], scales)
        missing = None
        if i in self._measures.missing:
            missing = Missing.of(X, self._buffers)
        start = self._start + self._spans[i].start
        return DenseBlock(X, weights, scales, start, self._buffers, copied, missing=missing)


class SparseRows(Rows):
    """Rows of a CSR matrix."""

    _X: sparse.csr_array
    is_sparse = True

    def keep_columns(self) -> None:
        """Keep a copy by columns, from which sums over rows are faster."""
        self.measured().columns = [self._by_columns(i) for i in range(len(self._spans))]

    def compact(self, means: Array | None = None) -> "tuple[SparseRows, Array] | None":
        X = self._X
        used = np.zeros(self.n_features, dtype=bool)
        used[X.indices] = True
        if means is not None:
            used |= means.any(axis=0)
        columns = np.flatnonzero(used)
        if MIN_COLUMNS_PER_USED * len(columns) > self.n_features:
            return None
        indices = (np.cumsum(used, dtype=X.indices.dtype) - 1)[X.indices]
        few = sparse.csr_array((X.data, indices, X.indptr), shape=(self.n_rows, len(columns)))
        measures = self.measured()
        rows = SparseRows(
            few,
            self._weights,
            unit=measures.scales is not None,
            size=self._spans[0].stop,
            measures=replace(measures, columns=None),
        )
        if measures.columns is not None:
            rows.keep_columns()
        return rows, columns

    def _in_single(self, indices: Array) -> sparse.csr_array:
        rows = self._X[indices]
        data = rows.data.astype(np.float64)
        row_kernels.csr_normalize(rows.indptr, data)
        parts = data.astype(np.float32), rows.indices, rows.indptr
        return sparse.csr_array(parts, shape=rows.shape)

    def _read(self, span: slice) -> tuple[Array, Array, Array]:
        """Return pointers (n + 1,), column numbers and values; the pointers may begin anywhere."""
        return self._X.indptr[span.start : span.stop + 1], self._X.indices, self._X.data

    def _measure(self, i: int) -> None:
        measures = self._measures
        span = self._spans[i]
        indptr, _, data = self._read(span)
        data = data[: indptr[-1]]
        values = data[indptr[0] :]
        largest = largest_magnitude(values)
        if not np.isfinite(largest):
            numbers = np.repeat(np.arange(span.start, span.stop), np.diff(indptr))
            refuse_non_finite(values, self._start + numbers)
        if measures.scales is None:
            measures.largest[i] = largest
            return
        scales = measures.scales[span]
        row_kernels.csr_row_scales(indptr, data, *_SAFE_NORMS[self.dtype.char], scales)
        if _mark_extreme(scales):
            measures.unsafe.add(i)

    def _by_columns(self, i: int) -> Columns:
        indptr, indices, data, _ = self._safe(i)
        used = slice(indptr[0], indptr[-1])
        shape = len(indptr) - 1, self.n_features
        block = sparse.csr_array((data[used], indices[used], indptr - indptr[0]), shape=shape)
        turned = block.tocsc()
        # A block has at most 2^16 rows: see `block_rows`.
        rows = turned.indices.astype(np.uint16)
        return turned.indptr.astype(np.int64), rows, turned.data

    def _safe(self, i: int) -> tuple[Array, Array, Array, bool]:
        """Return a block's arrays, and whether rows were scaled as they are extreme."""
        self._measure_once(i)
        indptr, indices, data = self._read(self._spans[i])
        if i not in self._measures.unsafe:
            return indptr, indices, data, False
        # Products with these would over- or underflow: rows are scaled in a copy.
        used = slice(indptr[0], indptr[-1])
        indptr = indptr - indptr[0]
        data = data[used].copy()
        row_kernels.csr_normalize(indptr, data)
        return indptr, indices[used], data, True

    def block(self, i: int) -> SparseBlock:
        indptr, indices, data, extreme = self._safe(i)
        weights, scales = self._weights_and_scales(i)
        if extreme:
            scales = np.empty(len(weights))
            row_kernels.csr_row_scales(indptr, data, *_SAFE_NORMS[self.dtype.char], scales)
        columns = None
        if self._measures.columns is not None:
            columns = self._measures.columns[i]
        return SparseBlock(
            indptr,
            indices,
            data,
            self.n_features,
            weights,
            scales,
            self._start + self._spans[i].start,
            columns,
            self._buffers,
        )


def make_rows(
    X: Matrix,
    weights: Array | None,
    *,
    unit: bool,
    width: int = 1,
    columns: bool = False,
    ahead: bool = True,
    missing: bool = False,
) -> Rows:
    """Wrap dense or CSR data as blocks of rows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features), float32 or float64
        Finite rows; they are not copied.
    weights : ndarray of shape (n_samples,) or None
        Weights of the rows; None is one for each.
    unit : bool
        Whether rows are scaled to unit length as they are read.
    width : int, default=1
        Numbers that a row needs beside its own, such as that of components: a block of many has
        fewer rows.
    columns : bool, default=False
        Whether to keep a copy of sparse data by columns.
    ahead : bool, default=True
        Whether all blocks are measured at once; else each is measured as it is read.
    missing : bool, default=False
        Whether NaN stands for a missing value.

    Returns
    -------
    RowSource
        The rows in blocks.
    """
    is_sparse = sparse.issparse(X)
    size = block_rows(*X.shape, is_sparse=is_sparse, width=width)
    # Kernels take each entry for a value of its own: duplicates are added up before.
    kind: type[Rows] = DenseRows
    if is_sparse:
        kind = SparseRows
        X = canonical(X)
    rows = kind(X, weights, unit=unit, size=size, ahead=ahead, missing=missing)
    if weights is not None:
        rows.count_in_units(weights)
    if columns and isinstance(rows, SparseRows):
        rows.keep_columns()
    return rows
