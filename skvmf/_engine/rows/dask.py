"""Rows of a Dask array: its workers sum over blocks, with the bits of rows in memory.

Chunks of any lengths stay in place, in memory, on disk or not yet computed. Each block is an
ordinary `Rows`; one that begins in one chunk and ends in another is put together as it is read. A
task sums over all blocks that begin in some chunks, and sums are added along the tree of blocks, so
that bits depend neither on chunks nor on workers. Workers keep scales, 8 bytes per row, and a copy
of CSR by columns.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import getitem
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import uuid4

import dask
import numpy as np
from dask.base import get_scheduler
from dask.core import flatten
from scipy import sparse

from ..._typing import Array, DType, Function, Matrix
from .blocks import BufferPool, block_rows, has_truncated_steps, span_rows
from .parallel import BlockSum, map_reduce
from .sources import (
    DenseRows,
    Labels,
    Measures,
    Rows,
    RowSource,
    Span,
    SparseRows,
    as_seen,
    canonical,
    in_units,
    joined,
    make_rows,
    read_as,
    weight_unit,
)

if TYPE_CHECKING:
    import dask.array as da

Part = TypeVar("Part")
Graph: TypeAlias = dict[Any, Any]  # of tasks by their keys
SUMS_PER_TASK = 8  # that one task adds
MAX_DIRECT_SUMS = 4  # of runs of blocks, which the client adds


@dataclass
class _Blocks:
    """The blocks of a task, and once they are measured, what workers keep of them: not the rows.

    The task reads `lengths` rows of some chunks, its sources, which begin at the rows `starts` of
    the data. Sources that are not `valid` are made so each time.
    """

    shape: tuple[int, int]
    dtype: DType
    is_sparse: bool
    unit: bool
    size: int
    columns: bool
    numbers: Sequence[int] = ()
    starts: Sequence[int] = ()
    lengths: Sequence[int] = ()
    valid: Sequence[bool] = ()
    weights: Sequence[Array] = ()
    measures: Sequence[Measures] = ()
    missing: bool = False

    def rows(self, i: int, sources: list[Any], most: float, buffers: BufferPool) -> Rows:
        """Return block i, without sources for weights alone; `most` is the largest weight."""
        start, stop = self.span(i)
        X: Any = SimpleNamespace(shape=(stop - start, self.shape[1]), dtype=self.dtype)
        parts = self.parts(i) if sources else []
        if self.is_sparse and len(parts) == 1:  # which SciPy would copy
            source, inside = sources[parts[0][0]], parts[0][1]
            X.dtype, X.indices, X.data = source.dtype, source.indices, source.data
            X.indptr = source.indptr[inside.start : inside.stop + 1]
        elif sources:
            X = _stacked([sources[number][inside] for number, inside in parts])
        return (SparseRows if self.is_sparse else DenseRows)(
            X,
            in_units(self.weights[i], most) if self.weights else None,
            unit=self.unit,
            size=self.size,
            start=start,
            measures=self.measures[i] if self.measures else None,
            buffers=buffers,
            missing=self.missing,
        )

    def span(self, i: int) -> tuple[int, int]:
        """Return the number of the first row of block i, and of the first after it."""
        start = self.numbers[i] * self.size
        return start, min(start + self.size, self.shape[0])

    def parts(self, i: int) -> list[tuple[int, slice]]:
        """Return the sources in which block i lies, and which of their rows those are."""
        start, stop = self.span(i)
        numbers = range(bisect_right(self.starts, start) - 1, bisect_left(self.starts, stop))
        inside = [(n, max(start - self.starts[n], 0), stop - self.starts[n]) for n in numbers]
        return [(n, slice(a, min(b, self.lengths[n]))) for n, a, b in inside]

    def ready(self, sources: list[Any]) -> list[Any]:
        """Return sources as rows are read from them: those that will do as they are."""
        pairs = zip(sources, self.valid or len(sources) * [False], strict=True)
        return [source if valid else _prepared(source) for source, valid in pairs]

    def check(self, source: Any, length: int) -> None:
        """Refuse a chunk that differs from the array's meta."""
        expected = self.is_sparse, (length, self.shape[1]), self.dtype
        if (sparse.issparse(source), source.shape, source.dtype) != expected:
            raise ValueError(
                f"A chunk of X is a {type(source).__name__} of the shape {source.shape} and the "
                f"type {source.dtype}, and the array says {'CSR' if self.is_sparse else 'dense'}, "
                f"{expected[1]} and {self.dtype}: build the array with the right chunks and meta, "
                "such as meta=scipy.sparse.csr_array((0, 0))."
            )


def _prepared(source: Any) -> Any:
    """Return a chunk as rows are read from it; the chunk itself where it will do."""
    if not sparse.issparse(source):
        return source
    rows = canonical(source)
    if rows.dtype.char not in "fd":
        rows = rows.astype(np.float64)
    parts = rows.data, rows.indices, rows.indptr
    if not all(part.flags.aligned for part in parts):  # as it came over a wire
        parts = tuple(np.require(part, requirements=["A"]) for part in parts)
        rows = sparse.csr_array(parts, shape=rows.shape)
    return source if source.format == "csr" and np.shares_memory(rows.data, source.data) else rows


def _stacked(parts: list[Any]) -> Any:
    """Return rows below one another; one part is not copied."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, "csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def _measure(blocks: _Blocks, sources: list[Any], weights: list[Array]) -> _Blocks:
    """Read all rows once; return what later tasks need."""
    for source, length in zip(sources, blocks.lengths, strict=True):
        blocks.check(source, length)
    ready, buffers = blocks.ready(sources), BufferPool()

    def measured(i: int) -> list[Measures]:
        rows = blocks.rows(i, ready, 1.0, buffers)
        if blocks.columns and isinstance(rows, SparseRows):
            rows.keep_columns()
        return [rows.measured()]

    blocks_here = range(len(blocks.numbers))
    measures = map_reduce(measured, blocks_here, blocks.numbers).total()
    valid = [mine is theirs for mine, theirs in zip(ready, sources, strict=True)]
    own = []
    if weights:
        own = [_stacked([weights[n][span] for n, span in blocks.parts(i)]) for i in blocks_here]
    return replace(blocks, valid=valid, weights=own, measures=measures)


def _extremes(blocks: _Blocks) -> Array:
    """Return the largest magnitude, if values miss, minus the least and the largest weight.

    The last is the largest weight of a row that counts.
    """
    largest = np.max([mine.largest.max() for mine in blocks.measures])
    missing = any(mine.missing for mine in blocks.measures)
    if not blocks.weights:
        return np.array([largest, missing, -1, 1, 1])
    both = zip(blocks.weights, blocks.measures, strict=True)
    counted = [w if m.scales is None else np.where(m.scales == 0, 0.0, w) for w, m in both]
    weights = np.concatenate(blocks.weights)
    return np.array(
        [largest, missing, -weights.min(), weights.max(), np.max(list(map(np.max, counted)))]
    )


def _sum(method: str, function: Function, most: float, blocks: _Blocks, sources: Any) -> Any:
    """Sum a function by a method of rows over blocks."""
    ready, buffers = blocks.ready(sources) if sources else [], BufferPool()

    def of_block(i: int) -> Any:
        return getattr(blocks.rows(i, ready, most, buffers), method)(function)

    return map_reduce(of_block, range(len(blocks.numbers)), blocks.numbers)


def _note_labels(function: Function, most: float, blocks: _Blocks, sources: Any) -> Any:
    """Return a sum over blocks, and the labels that the function notes."""
    labels = Labels()
    total = _sum("map_reduce", partial(function, labels=labels), most, blocks, sources)
    return total, joined(labels)


def _sum_spans(
    size: int, function: Function, most: float, blocks: _Blocks, sources: Any, labels: Array
) -> Any:
    """Return a sum over spans of whole blocks, and the labels that the function leaves."""
    ready, labels, first, total = blocks.ready(sources), labels.copy(), 0, BlockSum[Any]()
    numbers = np.asarray(blocks.numbers) * blocks.size // size
    for number in np.unique(numbers).tolist():
        here = np.flatnonzero(numbers == number).tolist()
        weights = [_stacked([blocks.weights[i] for i in here])] if blocks.weights else []
        scales = [blocks.measures[i].scales for i in here]
        measures = Measures(None if scales[0] is None else _stacked(scales), np.zeros(1), set())
        own = replace(blocks, size=size, numbers=[number], weights=weights, measures=[measures])
        rows, (start, stop) = own.rows(0, ready, most, BufferPool()), own.span(0)
        of_span = labels[first : first + stop - start]
        total.add(number, function(Span(start, rows, 0, rows.sampling_weights(), of_span)))
        first += stop - start
    return total, labels


class _NewFunction(partial[Any]):
    """A function that Dask takes as new: it cannot hash closures, and hashes parameters slowly."""

    def __dask_tokenize__(self) -> str:
        return uuid4().hex


def _add(sums: list[BlockSum[Any]]) -> BlockSum[Any]:
    """Return the sum of sums, which stay as they are: a task may be run again."""
    total: BlockSum[Any] = BlockSum()
    for one in sums:
        total.join(one)
    return total


def _take(indices: Array, blocks: _Blocks, sources: list[Any]) -> Any:
    """Return some rows, whose numbers rise, as they are stored."""
    ready, numbers = blocks.ready(sources), np.searchsorted(blocks.starts, indices, "right") - 1
    inside = indices - np.asarray(blocks.starts)[numbers]
    return _stacked([ready[n][inside[numbers == n]] for n in np.unique(numbers)])


def _first_rows(source: Matrix, n_rows: int) -> Matrix:
    return source[:n_rows].copy()


class DaskRows(RowSource):
    """Weighted rows of a Dask array.

    X has known chunks, one along the features, of dense blocks, or of CSR ones by its meta; the
    weights have the same chunks. The other arguments are those of `make_rows`.
    """

    def __init__(
        self,
        X: "da.Array",
        weights: "da.Array | None",
        *,
        unit: bool,
        width: int = 1,
        columns: bool = False,
        missing: bool = False,
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.is_sparse = is_sparse = sparse.issparse(X._meta)
        wide = is_sparse and X.dtype.char not in "fd"
        self.dtype = np.dtype(np.float64) if wide else read_as(X.dtype)
        shape = self.n_rows, self.n_features
        self._size = block_rows(*shape, is_sparse=is_sparse, width=width)
        self._per_span = 1
        if has_truncated_steps(self.n_rows, width) and not is_sparse:
            self._per_span = span_rows(*shape, width) // self._size
        self._blocks = _Blocks(  # none yet
            shape, X.dtype, is_sparse, unit, self._size, columns, missing=missing
        )
        self._chunks = list(flatten(X.__dask_keys__()))
        self._ends = np.cumsum(X.chunks[0], dtype=int)
        self._starts = self._ends - X.chunks[0]
        futures = _held(X, self._chunks)
        if futures is None:
            (X,) = dask.optimize(X)
        self._graph = dict(X.__dask_graph__())
        self._get = futures[0].client.get if futures else get_scheduler(collections=[X])
        self._client: Any = getattr(self._get, "__self__", None)  # of a cluster
        self._measure(weights, self._groups(futures), held=futures is not None)

    def _groups(self, futures: list[Any] | None) -> Iterator[tuple[list[int], dict[int, int]]]:
        """Yield the blocks of each task, and of which chunks it reads how many rows.

        A task for each thread of a worker takes all blocks that begin in chunks that it holds; of
        chunks that nobody holds, each has a task.
        """
        homes: list[Any] = list(range(len(self._chunks)))
        n_threads: dict[Any, int] = {}
        if futures:
            where, n_threads = self._client.who_has(futures), self._client.nthreads()
            homes = [min(where.get(future.key) or [""]) for future in futures]
        edges = np.append(np.arange(0, self.n_rows, self._size), self.n_rows)
        first = np.searchsorted(self._ends, edges[:-1], "right").tolist()  # chunks of blocks
        last = np.searchsorted(self._ends, edges[1:] - 1, "right").tolist()
        at_home: dict[Any, list[int]] = {}
        for number in range(len(first)):  # with the first block of its span
            chunk = first[number - number % self._per_span]
            at_home.setdefault(homes[chunk], []).append(number)
        for home, own in sorted(at_home.items()):
            numbers, together = np.asarray(own), np.asarray(own) // self._per_span
            firsts = np.array_split(np.unique(together), n_threads.get(home, 1))
            for group in (numbers[np.isin(together, part)] for part in firsts if len(part)):
                n_rows: dict[int, int] = {}
                for number in group.tolist():
                    for chunk in range(first[number], last[number] + 1):
                        stop = self._ends[chunk]
                        if homes[chunk] != home:
                            stop = min(stop, edges[number + 1])
                        n_rows[chunk] = int(stop - self._starts[chunk])
                yield group.tolist(), n_rows

    def _measure(self, weights: "da.Array | None", groups: Iterator[Any], held: bool) -> None:
        """Let workers read all rows once, and keep what later tasks need."""
        token, own = uuid4().hex, None
        tasks: Graph = {}
        if weights is not None:
            own, tasks = list(flatten(weights.__dask_keys__())), dict(weights.__dask_graph__())
        self._owners = np.empty(-(-self.n_rows // self._size), dtype=int)  # of blocks
        self._states, self._sources = [], []
        parts: Graph = {}
        for i, (numbers, n_rows) in enumerate(groups):
            sources = []
            for chunk, n in n_rows.items():
                sources.append(self._chunks[chunk])
                if n < self._ends[chunk] - self._starts[chunk]:
                    sources[-1] = f"skvmf-rows-{token}", chunk, n
                    parts[sources[-1]] = _first_rows, self._chunks[chunk], n
            starts, lengths = self._starts[list(n_rows)].tolist(), list(n_rows.values())
            blocks = replace(self._blocks, numbers=numbers, starts=starts, lengths=lengths)
            of_chunks = [own[chunk] for chunk in n_rows] if own else []
            self._owners[numbers] = i
            self._sources.append(sources)
            self._states.append((f"skvmf-measure-{token}", i))
            tasks[self._states[i]] = _measure, blocks, sources, of_chunks
        kept = self._states + (list(parts) if held else [])
        self._graph |= parts
        self._kept = self._compute(self._graph | tasks, [], kept)[1]
        self._graph |= self._kept
        tasks = {(f"skvmf-extremes-{token}", i): (_extremes, s) for i, s in enumerate(self._states)}
        extremes = np.max(self._compute(self._kept | tasks, list(tasks))[0], axis=0)
        self.largest, missing, least, most, self._most = (extremes * [1, 1, -1, 1, 1]).tolist()
        self.incomplete, self.weight_range = bool(missing), (least, most)
        self.weight_unit = weight_unit(self._most)

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        tasks = self._tasks(partial(_sum, "map_reduce"), function)
        return self._added(*tasks)[0]

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        tasks = self._tasks(partial(_sum, "map_reduce_weights"), function, read=False)
        return self._added(*tasks)[0]

    def noting_labels(self, function: Callable[..., Part]) -> tuple[Part, Any]:
        return self._added_and_kept(_note_labels, function)

    def map_reduce_spans(
        self, function: Callable[[Span], Part], labels: Any, size: int, relabels: bool
    ) -> tuple[Part, Any]:
        assert size == self._per_span * self._size
        total, kept = self._added_and_kept(partial(_sum_spans, size), function, labels, relabels)
        return total, kept or labels

    def _tasks(
        self, run: Function, function: Function, labels: Graph | None = None, read: bool = True
    ) -> tuple[Graph, list[Any]]:
        """Return a graph of tasks that sum a function over their blocks, and the tasks' keys."""
        token, sources = uuid4().hex, self._sources if read else [[]] * len(self._states)
        tasks: Graph = (self._graph if read else self._kept) | (labels or {})
        parameters: Any = _NewFunction(function)
        if len(sources) > MAX_DIRECT_SUMS:  # as a task's result they travel once
            tasks[f"skvmf-parameters-{token}"] = parameters
            parameters = f"skvmf-parameters-{token}"
        keys: list[Any] = [(f"skvmf-sum-{token}", i) for i in range(len(sources))]
        given = [[label] for label in labels] if labels else [[]] * len(keys)
        for key, state, own, more in zip(keys, self._states, sources, given, strict=True):
            tasks[key] = run, parameters, self._most, state, own, *more
        return tasks, keys

    def _added_and_kept(
        self, run: Function, function: Function, labels: Graph | None = None, keep: bool = True
    ) -> tuple[Any, Graph]:
        """Sum a function by tasks that return labels, too, which workers may keep."""
        tasks, both = self._tasks(run, function, labels)
        parts = [[(f"{name}-{part}", i) for name, i in both] for part in range(1 + keep)]
        for part, keys in enumerate(parts):
            tasks |= {key: (getitem, pair, part) for key, pair in zip(keys, both, strict=True)}
        return self._added(tasks, *parts)

    def _added(self, tasks: Graph, keys: list[Any], kept: Sequence[Any] = ()) -> tuple[Any, Graph]:
        """Return the total of some tasks' sums, and others' results, which workers keep."""
        runs = np.count_nonzero(np.diff(self._owners)) < len(keys)
        few = MAX_DIRECT_SUMS if runs else 1  # sums of scattered blocks are large
        (token, _), level = keys[0], 0
        while len(keys) > few:
            level += 1
            parts = [keys[i : i + SUMS_PER_TASK] for i in range(0, len(keys), SUMS_PER_TASK)]
            keys = [f"skvmf-add-{level}-{token}-{i}" for i in range(len(parts))]
            tasks |= {key: (_add, part) for key, part in zip(keys, parts, strict=True)}
        sums, results = self._compute(tasks, keys, kept)
        return _add(sums).total(), results  # a copy: sums may be read-only, or shared

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        """Raise a TypeError: workers cannot write to an array of the client's."""
        raise TypeError(
            "This needs an array in memory, and got a Dask array: give a sample of its rows, or "
            "X.compute() if they fit into memory."
        )

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        options: Any = {"unit": self._blocks.unit, "missing": self._blocks.missing}
        rows = make_rows(self._taken(indices), None, width=width, **options)
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        return as_seen(self._taken(indices), unit=self._blocks.unit)

    def _taken(self, indices: Array) -> Matrix:
        """Return some rows as they are stored."""
        numbers, places = np.unique(indices, return_inverse=True)
        owners, token = self._owners[numbers // self._size], uuid4().hex
        tasks = {
            (f"skvmf-take-{token}", i): (
                _take, numbers[owners == i], self._states[i], self._sources[i]
            )
            for i in np.unique(owners).tolist()
        }  # fmt: skip
        rows = _stacked(self._compute(self._graph | tasks, list(tasks))[0])
        return rows[np.argsort(np.argsort(owners, kind="stable"))[places]]

    def _compute(
        self, graph: Graph, keys: list[Any], kept: Sequence[Any] = ()
    ) -> tuple[list[Any], Graph]:
        """Return the results of some tasks, and those that workers keep: futures, by their keys."""
        options = {"sync": False} if kept and self._client else {}
        # Dask finds the parameters of many components large.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1GB"} if self._client else {}
        try:
            with dask.config.set(quiet):
                results = list(self._get(graph, [*keys, *kept], **options))
                own, others = results[: len(keys)], results[len(keys) :]
                if options:
                    own = self._client.gather(own)
                return own, dict(zip(kept, others, strict=True))
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise RuntimeError(
                f"Workers that read {self._rows_of(error.args[:1])} died again and again, most "
                "likely of too little memory: give them more, or X smaller chunks (X.rechunk), or "
                "let fewer threads share a worker."
            ) from error

    def _rows_of(self, key: Any) -> str:
        match key:
            case ((str(name), int(i)),) if name.startswith("skvmf-"):
                numbers = np.flatnonzero(self._owners == i)
                start, stop = numbers[0] * self._size, (numbers[-1] + 1) * self._size
            case ((str(), int(i), int()),) if i < len(self._ends):
                start, stop = self._starts[i], self._ends[i]
            case _:
                return "some rows of X"
        return f"rows {start} to {min(stop, self.n_rows) - 1} of X"


def _held(X: "da.Array", keys: list[Any]) -> list[Any] | None:
    """Return the futures that are an array's chunks, if a cluster holds them all."""
    graph = dict(X.__dask_graph__())
    futures: list[Any] = [getattr(graph.get(key), "value", graph.get(key)) for key in keys]
    if not all(hasattr(future, "client") for future in futures):
        return None
    from distributed import wait

    gone = any(future.status in ("cancelled", "lost") for future in futures)
    if gone or futures[0].client.status != "running":
        raise RuntimeError(
            "X was persisted by a client that is closed or has lost it: its rows are gone. Make X "
            "again, and persist it with a client that lives as long as the fit."
        )
    wait(futures)
    return futures
