"""What the workers of a Dask cluster do with rows: measure them, sum over them, take some.

A task reads rows of some chunks, its sources. Each of its blocks is an ordinary `Rows`; one that
begins in one chunk and ends in another is put together as it is read.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from ..._typing import Array, DType, Function, Matrix
from .blocks import Block, BufferPool
from .parallel import BlockSum, LazyItems, map_reduce
from .reading import canonical, stacked
from .sources import DenseRows, Labels, Measures, Rows, Span, SparseRows, joined
from .weights import in_units


@dataclass(eq=False)
class TaskBlocks:
    """The blocks of a task, and once they are measured, what workers keep of them: not the rows.

    The task reads `lengths` rows of its sources, which begin at the rows `starts` of the data.
    Sources that are not `valid` are made so each time.
    """

    shape: tuple[int, int]  # of the whole data
    dtype: DType
    is_sparse: bool
    unit: bool
    size: int
    keeps_columns: bool  # whether CSR rows are kept by columns, too
    numbers: Sequence[int] = ()
    starts: Sequence[int] = ()
    lengths: Sequence[int] = ()
    valid: Sequence[bool] = ()
    weights: Sequence[Array] = ()
    measures: Sequence[Measures] = ()
    missing: bool = False

    def rows(self, i: int, sources: list[Any], largest_weight: float, buffers: BufferPool) -> Rows:
        """Return block i, without sources for weights alone."""
        start, _ = self.span(i)
        weights = None
        if self.weights:
            weights = in_units(self.weights[i], largest_weight)
        measures = None
        if self.measures:
            measures = self.measures[i]
        kind: type[Rows] = SparseRows if self.is_sparse else DenseRows
        return kind(
            self._matrix(i, sources),
            weights,
            unit=self.unit,
            size=self.size,
            start=start,
            measures=measures,
            buffers=buffers,
            missing=self.missing,
        )

    def _matrix(self, i: int, sources: list[Any]) -> Any:
        """Return the rows of block i, or what has no more than their shape and type."""
        start, stop = self.span(i)
        X = SimpleNamespace(shape=(stop - start, self.shape[1]), dtype=self.dtype)
        if not sources:
            return X
        parts = self.parts(i)
        if self.is_sparse and len(parts) == 1:
            # SciPy would copy a slice of rows; only the pointers are needed.
            number, inside = parts[0]
            source = sources[number]
            X.dtype = source.dtype
            X.indptr = source.indptr[inside.start : inside.stop + 1]
            X.indices = source.indices
            X.data = source.data
            return X
        return stacked([sources[number][inside] for number, inside in parts])

    def span(self, i: int) -> tuple[int, int]:
        """Return the number of the first row of block i, and of the first after it."""
        start = self.numbers[i] * self.size
        return start, min(start + self.size, self.shape[0])

    def parts(self, i: int) -> list[tuple[int, slice]]:
        """Return the sources in which block i lies, and which of their rows those are."""
        start, stop = self.span(i)
        first = bisect_right(self.starts, start) - 1
        parts = []
        for number in range(first, bisect_left(self.starts, stop)):
            begins = self.starts[number]
            ends = min(stop - begins, self.lengths[number])
            parts.append((number, slice(max(start - begins, 0), ends)))
        return parts

    def ready(self, sources: list[Any]) -> list[Any]:
        """Return sources as rows are read from them: those that will do as they are."""
        pairs = zip(sources, self.valid or len(sources) * [False], strict=True)
        return [source if valid else _prepared(source) for source, valid in pairs]

    def check(self, source: Any, length: int) -> None:
        """Refuse a chunk that differs from the array's meta."""
        shape = length, self.shape[1]
        as_expected = (
            sparse.issparse(source) == self.is_sparse
            and source.shape == shape
            and source.dtype == self.dtype
        )
        if not as_expected:
            raise ValueError(
                f"A chunk of X is a {type(source).__name__} of the shape {source.shape} and the "
                f"type {source.dtype}, and the array says {'CSR' if self.is_sparse else 'dense'}, "
                f"{shape} and {self.dtype}: build the array with the right chunks and meta, such "
                "as meta=scipy.sparse.csr_array((0, 0))."
            )


def _prepared(source: Any) -> Any:
    """Return a chunk as rows are read from it; the chunk itself where it will do."""
    if not sparse.issparse(source):
        return source
    rows = canonical(source)
    if rows.dtype.char not in "fd":
        rows = rows.astype(np.float64)
    arrays = rows.data, rows.indices, rows.indptr
    if not all(array.flags.aligned for array in arrays):  # as it came over a wire
        aligned = tuple(np.require(array, requirements=["A"]) for array in arrays)
        rows = sparse.csr_array(aligned, shape=rows.shape)
    return source if source.format == "csr" and np.shares_memory(rows.data, source.data) else rows


# The tasks. Their arguments are what the client sends, and results of other tasks.


def first_rows(source: Matrix, n_rows: int) -> Matrix:
    """Return a copy, so that a worker need not keep the rows after them."""
    return source[:n_rows].copy()


def measure(blocks: TaskBlocks, sources: list[Any], weights: list[Array]) -> TaskBlocks:
    """Read all rows once; return what later tasks need."""
    for source, length in zip(sources, blocks.lengths, strict=True):
        blocks.check(source, length)
    ready = blocks.ready(sources)
    buffers = BufferPool()

    def measured(i: int) -> list[Measures]:
        rows = blocks.rows(i, ready, 1.0, buffers)
        if blocks.keeps_columns and isinstance(rows, SparseRows):
            rows.keep_columns()
        return [rows.measured()]

    indices = range(len(blocks.numbers))
    of_blocks: list[Array] = []
    if weights:
        parts = [[weights[n][inside] for n, inside in blocks.parts(i)] for i in indices]
        of_blocks = list(map(stacked, parts))
    return replace(
        blocks,
        valid=[mine is theirs for mine, theirs in zip(ready, sources, strict=True)],
        weights=of_blocks,
        measures=map_reduce(measured, indices, blocks.numbers).total(),
    )


def extremes(blocks: TaskBlocks) -> tuple[float, bool, float, float, float]:
    """Return the extremes of blocks that are measured.

    They are the largest magnitude of a value, whether values are missing, the least and the largest
    weight, and the largest of rows that count: zero rows on the sphere do not.
    """
    largest = max(float(measures.largest.max()) for measures in blocks.measures)
    missing = any(measures.missing for measures in blocks.measures)
    if not blocks.weights:
        return largest, missing, 1.0, 1.0, 1.0
    max_counted = []
    for weights, measures in zip(blocks.weights, blocks.measures, strict=True):
        if measures.scales is not None:
            weights = np.where(measures.scales == 0, 0.0, weights)
        max_counted.append(weights.max())
    weights = np.concatenate(blocks.weights)
    return largest, missing, weights.min(), weights.max(), np.max(max_counted)


def sum_blocks(
    function: Function, largest_weight: float, blocks: TaskBlocks, sources: list[Any]
) -> BlockSum[Any]:
    """Sum ``function(block)`` over blocks."""
    ready = blocks.ready(sources)
    buffers = BufferPool()

    def block(i: int) -> Block:
        return blocks.rows(i, ready, largest_weight, buffers).block(0)

    return map_reduce(function, LazyItems(block, len(blocks.numbers)), blocks.numbers)


def sum_weights(
    function: Function, largest_weight: float, blocks: TaskBlocks, sources: list[Any]
) -> BlockSum[Any]:
    """Sum ``function(start, weights)`` over blocks; there are no sources, as no rows are read."""
    buffers = BufferPool()

    def of_block(i: int) -> Any:
        return blocks.rows(i, sources, largest_weight, buffers).map_reduce_weights(function)

    return map_reduce(of_block, range(len(blocks.numbers)), blocks.numbers)


def sum_noting_labels(
    function: Function, largest_weight: float, blocks: TaskBlocks, sources: list[Any]
) -> tuple[BlockSum[Any], Array]:
    """Return a sum over blocks, and the labels that the function notes."""
    labels = Labels()
    total = sum_blocks(partial(function, labels=labels), largest_weight, blocks, sources)
    return total, joined(labels)


def sum_spans(
    size: int,
    function: Function,
    largest_weight: float,
    blocks: TaskBlocks,
    sources: list[Any],
    labels: Array,
) -> tuple[BlockSum[Any], Array]:
    """Return a sum over spans of whole blocks, and the labels that the function leaves."""
    ready = blocks.ready(sources)
    labels = labels.copy()  # they are another task's result, which may be read again
    total = BlockSum[Any]()
    first = 0
    span_numbers = np.asarray(blocks.numbers) * blocks.size // size
    for number in np.unique(span_numbers).tolist():
        of_number = np.flatnonzero(span_numbers == number).tolist()
        span = _as_one_block(blocks, of_number, number, size)
        rows = span.rows(0, ready, largest_weight, BufferPool())
        start, stop = span.span(0)
        own_labels = labels[first : first + stop - start]
        total.add(number, function(Span(start, rows, 0, rows.sampling_weights(), own_labels)))
        first += stop - start
    return total, labels


def _as_one_block(blocks: TaskBlocks, indices: list[int], number: int, size: int) -> TaskBlocks:
    """Return some blocks, which are a span, as a single one of another size."""
    weights = []
    if blocks.weights:
        weights = [stacked([blocks.weights[i] for i in indices])]
    scales: Any = [blocks.measures[i].scales for i in indices]
    scales = None if scales[0] is None else stacked(scales)
    measures = Measures(scales, largest=np.zeros(1), unsafe=set())
    return replace(blocks, size=size, numbers=[number], weights=weights, measures=[measures])


def add(sums: list[BlockSum[Any]]) -> BlockSum[Any]:
    """Return the sum of sums, which stay as they are: a task may be run again."""
    total: BlockSum[Any] = BlockSum()
    for one in sums:
        total.join(one)
    return total


def take(indices: Array, blocks: TaskBlocks, sources: list[Any]) -> Any:
    """Return some rows, whose numbers rise, as they are stored."""
    ready = blocks.ready(sources)
    numbers = np.searchsorted(blocks.starts, indices, "right") - 1
    inside = indices - np.asarray(blocks.starts)[numbers]
    return stacked([ready[n][inside[numbers == n]] for n in np.unique(numbers)])
