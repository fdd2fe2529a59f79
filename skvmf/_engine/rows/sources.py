"""Rows: dense or CSR data as fixed, weighted blocks, validation, sampling, and sums over them.

Rows are sampled by weight: each has a key, Exp(1) over its weight, and the smallest win (Efraimidis
and Spirakis, Information Processing Letters 97, 2006). Keys come from a stream that the seed and
the number of the block's first row begin.

Rows are read block by block, and there they are scaled to unit length or widened: the data is not
copied. A first pass finds all that has to be known before; where each block is read once, as
predictions do, a block is measured just before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._kernels import rows as row_kernels
from ..._kernels.rows import widen
from ..._typing import Array, DType, Matrix
from .blocks import Block, BufferPool, Columns, DenseBlock, Missing, SparseBlock, block_rows
from .parallel import BlockSum, for_each, map_reduce

_WIDE = [np.dtype(code) for code in "dqQlLiI"]
_NARROW = [np.dtype(code) for code in "fehHbB"]
READABLE = [order for dtype in _WIDE + _NARROW for order in (dtype, dtype.newbyteorder())]
"""The types of dense rows that are read block by block, as they are stored, in any byte order."""


def read_as(dtype: npt.DTypeLike) -> DType:
    """Return the type to compute in: float32 where that holds every number, else float64."""
    native = np.dtype(dtype).newbyteorder("=")
    return np.dtype(np.float32 if native in _NARROW else np.float64)


def refuse_non_finite(values: Array, numbers: Array, advice: str = "") -> None:
    """Raise a ValueError, with advice, for nan or infinity in the rows of such `numbers`."""
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    what = "NaN" if np.isnan(values).any() else f"infinity or a value too large for {values.dtype}"
    rows = np.unique(numbers[wrong])
    column = f", column {np.nonzero(wrong)[1][0]}" if values.ndim == 2 else ""
    where = f"row {rows[0]}{column}"
    if len(rows) > 1:
        where = f"{len(rows)} rows from {rows[0]}{column} to {rows[-1]}"
    raise ValueError(
        f"Input X contains {what}, in {where}: {advice if what == 'NaN' else ''}impute the "
        "values, for example with sklearn.impute.SimpleImputer, or keep only the rows "
        "np.isfinite(X).all(axis=1)."
    )


def check_structure(X: sparse.csr_array) -> None:
    """Refuse pointers or column numbers outside the arrays of a CSR matrix: SciPy does not look."""
    first, last = X.indptr[0], X.indptr[-1]
    n_entries, used = min(len(X.indices), len(X.data)), X.indices[max(first, 0) : max(last, 0)]
    if first < 0 or last > n_entries or (X.indptr[1:] < X.indptr[:-1]).any():
        what = "indptr falls or leads"
    elif used.size > 0 and not (used.min() >= 0 and used.max() < X.shape[1]):
        what = "column numbers in indices lead"
    else:
        return
    raise ValueError(
        f"X is not a valid CSR matrix: {what} outside its {len(X.data)} entries and "
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


def weight_unit(largest: float) -> float:
    """Return the unit in which the largest weight of all rows is between 1e-20 and 1e20.

    Beyond, a prior that counts single rows decides all or nothing anyway, and products with
    weights would leave the range of floats.
    """
    return 1.0 if largest == 0 else largest / min(max(largest, 1e-20), 1e20)


def in_units(weights: Array, largest: float) -> Array:
    """Return weights in the unit that belongs to the largest; a weight of zero stays zero."""
    unit = weight_unit(largest)
    return weights if unit == 1 else weights / largest * (largest / unit)


class Reservoir:
    """The rows with the smallest keys, as many as are asked for; reservoirs add."""

    def __init__(self, size: int, keys: Array, rows: Array, weights: Array) -> None:
        if len(keys) > size:
            chosen = np.argpartition(keys, size - 1)[:size]
            keys, rows, weights = keys[chosen], rows[chosen], weights[chosen]
        self._size, self.keys, self.rows, self.weights = size, keys, rows, weights

    def __iadd__(self, other: "Reservoir") -> "Reservoir":
        pairs = (self.keys, other.keys), (self.rows, other.rows), (self.weights, other.weights)
        return Reservoir(self._size, *map(np.concatenate, pairs))

    def in_order(self) -> Array:
        """Return the numbers of the rows in the order in which they were drawn."""
        return self.rows[np.lexsort([self.rows, self.keys])]

    def sample(self) -> tuple[Array, Array]:
        """Return the numbers of all rows but the last drawn, and weights for them.

        If there are fewer than the reservoir holds, all keep their own weights. Sums over the rows
        with the weights estimate sums over all; they add up to as many rows as equal weights would
        be worth.
        """
        rows, weights = self.rows, self.weights
        if len(rows) == self._size:
            last = self.keys.max()
            inside = self.keys < last
            rows, weights = rows[inside], weights[inside]
            weights = weights / -np.expm1(-weights * last)
        order = np.argsort(rows)
        weights = weights[order]
        if (weights == weights[:1]).all():
            return rows[order], np.ones(len(rows))
        return rows[order], weights * (weights.sum() / (weights @ weights))


def reservoir(size: int, seed: int, start: int, weights: Array) -> Reservoir:
    """Return the rows of a block that its first row's number and their weights let win."""
    drawn = np.random.default_rng((seed, start)).exponential(size=len(weights))
    rows = np.flatnonzero(weights > 0)
    weights = weights[rows]
    with np.errstate(over="ignore"):  # of rows that are next to never drawn
        return Reservoir(size, drawn[rows] / weights, rows + start, weights)


def _first_number(start: int, weights: Array) -> list[int]:
    """Return the number of the first row of a block that counts, if there is one."""
    return [start + int(n) for n in np.flatnonzero(weights > 0)[:1]]


Part = TypeVar("Part")
Labels = dict[int, Array]  # int32, of some rows each, by the number of the first
_LEAST_VARIANCE = 1e-280  # of which a trillionth is a float with all digits


class RowSource(ABC):
    """A source of rows: fixed weighted blocks, and sums over them.

    Blocks depend only on the data's shape and the number of components, and how they are added only
    on their numbers (`skvmf._engine.parallel`): sums are bit-identical whoever reads the blocks.
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
        row = self.take(np.array([min(self.map_reduce_weights(_first_number))]))
        if np.isnan(row).any():
            least, _ = self.extent(slice(None))
            row = np.where(np.isnan(row), np.where(least < np.inf, least, 0), row)
        return row

    def mean_variance(self) -> float:
        """Return the weighted variance of dense rows, the mean of all features; 0 if tiny."""
        return float(np.mean(self.variances()))

    def variances(self) -> Array:
        """Return the weighted variance of each feature of dense rows, (d,); 0 if tiny."""
        sums = self.map_reduce(partial(_sums_about, self.first_row[0]))
        total = self.map_reduce(_observed_weights) if self.incomplete else self.total_weight
        first, second = sums / np.maximum(total, _LEAST_VARIANCE)
        variances = second - first**2
        return np.where(variances > _LEAST_VARIANCE, variances, 0.0)

    def extent(self, features: Any) -> tuple[Array, Array]:
        """Return the least and the largest values (m,) of features in the dense rows that count."""
        extent = self.map_reduce(partial(_extent_of, features))
        return extent.low, extent.high

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


@dataclass(frozen=True)
class Span:
    """Many rows next to each other, with labels that a function overwrites."""

    start: int  # the number of the first in the data,
    rows: RowSource
    first: int  # and in these
    weights: Array
    labels: Array

    def subset(self, numbers: Array, width: int) -> RowSource:
        """Return some of the rows, by numbers from zero."""
        return self.rows.subset(self.first + numbers, self.weights[numbers], width)


def joined(labels: Labels) -> Array:
    """Return labels in the order of rows."""
    return np.concatenate([labels[start] for start in sorted(labels)])


@dataclass
class _Extent:
    """The least and the largest value of some features, each (m,); extents add."""

    low: Array
    high: Array

    def __iadd__(self, other: "_Extent") -> "_Extent":
        return _Extent(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _extent_of(features: Any, block: DenseBlock) -> _Extent:
    X = block.X[block.weights > 0][:, features].astype(np.float64)
    low = np.fmin.reduce(X, axis=0, initial=np.inf)
    return _Extent(low, np.fmax.reduce(X, axis=0, initial=-np.inf))


def _sum(start: int, weights: Array) -> float:
    return float(weights.sum())


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


# Inside these norms a product with unscaled rows can neither over- nor underflow.
_SAFE_NORMS = {"f": (1e-12, 1e12), "d": (1e-100, 1e100)}
MIN_EMPTY = 4  # columns for each that is in use, from which fits go without the empty ones
MAX_MAGNITUDE = 1e100  # larger rows are moved in, so that their squares stay finite


@dataclass
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
    """Weighted rows of an array in fixed blocks of `size` rows.

    X is of one of the types in `READABLE`, CSR of float32 or float64. If `unit`, the family sees
    rows of unit length; zero rows have scale zero and weight zero. `start` is the number of the
    first row in the data that these are a part of. `measures` are those of an earlier pass; without
    them rows are read, and nan and infinity refused: all blocks at once if `ahead`, else each as it
    is first read, while the processor has it at hand: then `largest` is not known. If `missing`,
    nan is a missing value.
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
        self._missing = missing
        self._buffers = BufferPool() if buffers is None else buffers
        self.n_rows, self.n_features = X.shape
        self.dtype = read_as(X.dtype)
        self._X, self._weights, self._start = X, weights, start
        starts = range(0, self.n_rows, size)
        self._spans = [slice(start, min(start + size, self.n_rows)) for start in starts]
        self.numbers = range(start // size, start // size + len(self._spans))
        self._unmeasured = set(range(len(self._spans))) if measures is None else set()
        if measures is None:
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
            for_each(self._measures_of, sorted(self._unmeasured))
        return self._measures

    def _measures_of(self, i: int) -> Measures:
        """Return measures that are known for block i."""
        if i in self._unmeasured:
            self._measure(i, self._measures)
            self._unmeasured.discard(i)
        return self._measures

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        blocks = range(len(self._spans))
        return map_reduce(lambda i: function(self.block(i)), blocks, self.numbers).total()

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        self.measured()
        return map_reduce(
            lambda i: function(self._start + self._spans[i].start, self._weights_and_scales(i)[0]),
            range(len(self._spans)),
            self.numbers,
        ).total()

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        for_each(lambda i: function(self.block(i), self._spans[i]), range(len(self._spans)))

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> "Rows":
        """Return some rows with other weights, without a copy if all keep their precision."""
        unit = self.measured().scales is not None
        whole = len(indices) == self.n_rows  # in ascending order
        if single and unit and self.dtype != np.float32:
            rows = self._in_single(indices)
        else:
            rows = self._X if whole else self._X[indices]
        own = None if (weights == 1).all() else weights
        return make_rows(rows, own, unit=unit, width=width, columns=True, missing=self._missing)

    def take(self, indices: Array) -> Array:
        return as_seen(self._X[indices], unit=self.measured().scales is not None)

    def count_in_units(self, weights: Array) -> None:
        """Give weights the unit of the largest: that of a zero row, once it is seen, is none."""
        largest = (weights if self._unmeasured else self.sampling_weights()).max()
        self._weights = in_units(weights, float(largest))
        self.weight_unit = weight_unit(float(largest))

    def sampling_weights(self) -> Array:
        scales = self.measured().scales
        weights = np.ones(self.n_rows) if self._weights is None else self._weights
        return weights if scales is None else np.where(scales == 0, 0.0, weights)

    @abstractmethod
    def _in_single(self, indices: Array) -> Matrix:
        """Return some unit rows in single precision."""

    @abstractmethod
    def _measure(self, i: int, measures: Measures) -> None:
        """Set the measures of block i."""

    @abstractmethod
    def block(self, i: int) -> Block:
        """Build block i of these; the data counts it as ``numbers[i]``."""

    def _weights_and_scales(self, i: int) -> tuple[Array, Array | None]:
        span, scales = self._spans[i], self._measures_of(i).scales
        if scales is None:
            ones = np.ones(span.stop - span.start)
            return ones if self._weights is None else self._weights[span], None
        weights = (scales[span] != 0).astype(np.float64)
        if self._weights is not None:
            weights *= self._weights[span]
        return weights, scales[span]

    def _note(self, i: int, measures: Measures, scales: Array) -> None:
        """Note the scales of a block, those of extreme rows being -1."""
        if (scales < 0).any():
            measures.unsafe.add(i)
            scales[scales < 0] = 1.0


class DenseRows(Rows):
    """Rows of a dense array of any memory order; blocks are made contiguous one at a time."""

    def _in_single(self, indices: Array) -> Array:
        rows = np.empty((len(indices), self.n_features), dtype=np.float32)
        for start in range(0, len(rows), 1024):  # whatever is in double precision is small
            rows[start : start + 1024] = self.take(indices[start : start + 1024])
        return rows

    def _read(self, span: slice) -> tuple[Array, bool]:
        """Return some rows, and whether they are a copy, into pages that were used before."""
        X: Array = self._X[span]
        if X.dtype == self.dtype and X.flags.c_contiguous and X.flags.aligned:
            return X, False
        rows = self._buffers.acquire("rows", X.shape, self.dtype)
        if X.dtype == np.float16:
            halves = np.require(X, requirements=["C", "A"])
            widen(halves.view(np.int16).reshape(-1), rows.reshape(-1))
        else:
            rows[...] = X
        return rows, True

    def _measure(self, i: int, measures: Measures) -> None:
        span = self._spans[i]
        X, copied = self._read(span)
        if measures.scales is not None:
            scales = measures.scales[span]
            row_kernels.row_scales(X, *_SAFE_NORMS[self.dtype.char], scales)
            self._note(i, measures, scales)
        else:
            largest = _largest(X)
            if self._missing and np.isnan(largest):
                measures.missing.add(i)
                largest = _largest(X[~np.isnan(X)])
            measures.largest[i] = largest
            if not largest <= MAX_MAGNITUDE:
                measures.unsafe.add(i)
        if i in measures.unsafe:
            numbers = self._start + np.arange(span.start, span.stop)
            values = np.where(np.isnan(X), 0, X) if i in measures.missing else X
            advice = "set missing_values='marginal', or " if measures.scales is None else ""
            refuse_non_finite(values, np.broadcast_to(numbers[:, None], X.shape), advice)
        if copied:
            self._buffers.release("rows", X)

    def block(self, i: int) -> DenseBlock:
        X, copied = self._read(self._spans[i])
        weights, scales = self._weights_and_scales(i)
        if i in self._measures_of(i).unsafe:
            X = X if copied else np.array(X)
            copied = True
            if scales is None:
                largest = np.fmax.reduce(np.abs(X), axis=1, keepdims=True)
                X *= MAX_MAGNITUDE / np.fmax(largest, MAX_MAGNITUDE)
            else:
                row_kernels.normalize_rows(X)
                scales = np.empty(len(X))  # of float32 rows: their lengths are rounded
                row_kernels.row_scales(X, *_SAFE_NORMS[self.dtype.char], scales)
        start = self._start + self._spans[i].start
        missing = Missing.of(X, self._buffers) if i in self._measures.missing else None
        return DenseBlock(X, weights, scales, start, self._buffers, copied, missing=missing)


class SparseRows(Rows):
    """Rows of a CSR matrix."""

    _X: sparse.csr_array
    is_sparse = True

    def keep_columns(self) -> None:
        """Keep a copy by columns, from which sums over rows are faster."""
        self.measured().columns = [self._by_columns(i) for i in range(len(self._spans))]

    def compact(self, means: Array | None = None) -> "tuple[SparseRows, Array] | None":
        X, used = self._X, np.zeros(self.n_features, dtype=bool)
        used[X.indices] = True
        if means is not None:
            used |= means.any(axis=0)
        columns = np.flatnonzero(used)
        if MIN_EMPTY * len(columns) > self.n_features:
            return None
        indices = (np.cumsum(used, dtype=X.indices.dtype) - 1)[X.indices]
        few = sparse.csr_array((X.data, indices, X.indptr), shape=(self.n_rows, len(columns)))
        unit, size = self.measured().scales is not None, self._spans[0].stop
        measures = replace(self.measured(), columns=None)
        rows = SparseRows(few, self._weights, unit=unit, size=size, measures=measures)
        if self.measured().columns is not None:
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

    def _measure(self, i: int, measures: Measures) -> None:
        span = self._spans[i]
        indptr, _, data = self._read(span)
        data = data[: indptr[-1]]
        largest = _largest(data[indptr[0] :])
        if not np.isfinite(largest):
            numbers = np.repeat(np.arange(span.start, span.stop), np.diff(indptr))
            refuse_non_finite(data[indptr[0] :], self._start + numbers)
        if measures.scales is not None:
            scales = measures.scales[span]
            row_kernels.csr_row_scales(indptr, data, *_SAFE_NORMS[self.dtype.char], scales)
            self._note(i, measures, scales)
        else:
            measures.largest[i] = largest

    def _by_columns(self, i: int) -> Columns:
        indptr, indices, data, _ = self._safe(i)
        used, shape = slice(indptr[0], indptr[-1]), (len(indptr) - 1, self.n_features)
        block = sparse.csr_array((data[used], indices[used], indptr - indptr[0]), shape=shape)
        turned = block.tocsc()
        ptr, rows = turned.indptr.astype(np.int64), turned.indices.astype(np.uint16)
        return Columns(ptr, rows, turned.data)

    def _safe(self, i: int) -> tuple[Array, Array, Array, bool]:
        """Return a block's arrays, and whether rows were scaled as they are extreme."""
        indptr, indices, data = self._read(self._spans[i])
        extreme = i in self._measures_of(i).unsafe
        if extreme:
            used = slice(indptr[0], indptr[-1])
            indptr, indices, data = indptr - indptr[0], indices[used], data[used].copy()
            row_kernels.csr_normalize(indptr, data)
        return indptr, indices, data, extreme

    def block(self, i: int) -> SparseBlock:
        indptr, indices, data, extreme = self._safe(i)
        weights, scales = self._weights_and_scales(i)
        if extreme:
            scales = np.empty(len(weights))
            row_kernels.csr_row_scales(indptr, data, *_SAFE_NORMS[self.dtype.char], scales)
        parts, start = (indptr, indices, data), self._start + self._spans[i].start
        columns = None if self._measures.columns is None else self._measures.columns[i]
        return SparseBlock(*parts, self.n_features, weights, scales, start, columns, self._buffers)


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
    """Wrap dense or CSR data; `columns` keeps a copy of sparse data by columns."""
    is_sparse = sparse.issparse(X)
    size = block_rows(*X.shape, is_sparse=is_sparse, width=width)
    X, kind = (canonical(X), SparseRows) if is_sparse else (X, DenseRows)
    rows = kind(X, weights, unit=unit, size=size, ahead=ahead, missing=missing)
    if weights is not None:
        rows.count_in_units(weights)
    if columns and isinstance(rows, SparseRows):
        rows.keep_columns()
    return rows


def as_seen(stored: Any, *, unit: bool) -> Array:
    """Return rows as the family sees them, dense float64."""
    stored = stored.toarray() if sparse.issparse(stored) else stored
    rows = np.ascontiguousarray(stored, dtype=np.float64)
    if unit:
        row_kernels.normalize_rows(rows)
    return rows


def _largest(values: Array) -> float:
    """Return the largest magnitude, nan if one is among them; 0 of nothing."""
    if values.size == 0:
        return 0.0
    return max(abs(float(values.max())), abs(float(values.min())))
