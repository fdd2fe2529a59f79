"""Rows of a Dask array: bit-identical blocks and sums, computed by its workers.

Chunks of any lengths stay in place, in memory, on disk or not yet computed. A block that begins in
one chunk and ends in another borrows the head of that one, and is put together as it is read. A
task sums over all blocks that begin in some chunks, and what it returns is added along the tree of
blocks, so that bits depend neither on chunks nor on workers. Scales, 8 bytes per row, and a copy of
CSR by columns are kept.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import uuid4

import dask
import numpy as np
from dask.core import flatten
from scipy import sparse

from .._typing import Array, DType, Function, Matrix
from .blocks import BufferPool, block_rows
from .parallel import BlockSum, map_reduce
from .rows import (
    DenseRows,
    Measures,
    Rows,
    RowSource,
    SparseRows,
    as_seen,
    canonical,
    in_units,
    make_rows,
    read_as,
    weight_unit,
)

# The tasks of Dask's workers: sums over blocks that lie in pieces of several chunks.


AnySum: TypeAlias = BlockSum[Any]
Piece: TypeAlias = tuple[int, int, int]  # a source's number, and the rows of it: start and stop


@dataclass(frozen=True)
class Cut:
    """Whole blocks that begin in one chunk: the rows from `start` on, as pieces of chunks."""

    start: int
    pieces: tuple[Piece, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(stop - start for _, start, stop in self.pieces)


def cut(lengths: Sequence[int], size: int) -> list[Cut]:
    """Return the blocks of `size` rows that begin in each chunk, where any do."""
    ends = np.cumsum(lengths).tolist()
    starts = [end - length for end, length in zip(ends, lengths, strict=True)]
    cuts = []
    for number in range(len(lengths)):
        row = first = -(-starts[number] // size) * size
        stop = min(-(-ends[number] // size) * size, ends[-1])
        pieces, lender = [], number
        while row < stop:
            upto = min(stop, ends[lender])
            if row < upto:
                pieces.append((lender, row - starts[lender], upto - starts[lender]))
                row = upto
            lender += 1
        if pieces:
            cuts.append(Cut(first, tuple(pieces)))
    return cuts


def count_pieces(cuts: list[Cut], size: int) -> int:
    """Return the number of pieces of the sum over some blocks: many, if they are scattered."""
    total: BlockSum[int] = BlockSum()
    for one in cuts:
        for start in range(0, one.n_rows, size):
            total.add((one.start + start) // size, 0)
    return len(total)


@dataclass(frozen=True)
class Format:
    """The type of all chunks, and how their rows become blocks."""

    n_features: int
    dtype: DType
    is_sparse: bool
    unit: bool
    size: int
    columns: bool


@dataclass
class State:
    """The weights and measures of the blocks of a task, without rows.

    `valid` holds for each source whether it may be taken as it is.
    """

    format: Format
    cuts: list[Cut]
    weights: list[Array | None]
    measures: list[Measures]
    valid: list[bool]


@dataclass(frozen=True)
class Summary:
    """A summary of a state: the largest value, and the range of the weights.

    A nan in any of them is one here, which Python's `min` and `max` would not see.
    """

    largest: float
    least_weight: float
    largest_weight: float

    @classmethod
    def of(cls, parts: "list[Summary]") -> "Summary":
        """Return the summary of several states."""
        return cls(
            float(np.max([part.largest for part in parts])),
            float(np.min([part.least_weight for part in parts])),
            float(np.max([part.largest_weight for part in parts])),
        )


class Stack:
    """Pieces of arrays that `Rows` reads like one array, without a copy."""

    def __init__(self, pieces: list[tuple[Matrix, int, int]], n_features: int) -> None:
        self._pieces = pieces
        self._ends = np.cumsum([stop - start for _, start, stop in pieces])
        self.shape = (int(self._ends[-1]), n_features)
        self.dtype = pieces[0][0].dtype

    def within(self, span: slice) -> list[tuple[Matrix, int, int]]:
        """Return the arrays that hold some rows, and which of theirs those are."""
        parts = []
        first = int(np.searchsorted(self._ends, span.start, side="right"))
        for (array, start, stop), end in zip(self._pieces[first:], self._ends[first:], strict=True):
            offset = stop - int(end)  # from numbers here to the array's own
            parts.append((array, max(span.start + offset, start), min(span.stop + offset, stop)))
            if end >= span.stop:
                break
        return parts

    def take(self, indices: Array) -> list[Matrix]:
        """Return some rows, whose numbers rise, in as many parts as they lie in."""
        parts, first = [], 0
        for (array, start, _), end in zip(self._pieces, self._ends.tolist(), strict=True):
            inside = indices[(indices >= first) & (indices < end)]
            if len(inside):
                parts.append(array[inside - first + start])
            first = end
        return parts


class _StackedDenseRows(DenseRows):
    """Dense rows in pieces."""

    def _parts(self, span: slice) -> list[Array]:
        return [array[start:stop] for array, start, stop in self._X.within(span)]


class _StackedSparseRows(SparseRows):
    """CSR rows in pieces."""

    def _read(self, span: slice) -> tuple[Array, Array, Array]:
        parts = self._X.within(span)
        if len(parts) == 1:
            X, start, stop = parts[0]
            return X.indptr[start : stop + 1], X.indices, X.data
        whole = sparse.vstack([X[start:stop] for X, start, stop in parts], "csr")
        return whole.indptr, whole.indices, whole.data


def measure(
    sources: list[Matrix],
    weights: list[Array | None],
    lengths: list[int],
    cuts: list[Cut],
    how: Format,
) -> State:
    """Read all rows of some blocks once; return the state that later tasks need.

    Sources whose numbers of rows are not `lengths` are refused.
    """
    for source, length in zip(sources, lengths, strict=True):
        _check(source, length, how)
    ready = [_prepared(source, how) for source in sources]
    valid = [mine is theirs for mine, theirs in zip(ready, sources, strict=True)]
    state = State(how, cuts, [], [], valid)
    for one in cuts:
        parts = [weights[number] for number, *_ in one.pieces]
        whole = None
        if parts[0] is not None:
            pieces = zip(parts, one.pieces, strict=True)
            spans = [part[a:b] for part, (_, a, b) in pieces if part is not None]
            whole = spans[0] if len(spans) == 1 else np.concatenate(spans)
            whole = whole.astype(np.float64, copy=False)
        state.weights.append(whole)
    state.measures = [rows.measures for rows in _rows(state, ready, 0.0)]
    return state


def summary(state: State) -> Summary:
    """Return what the client has to know."""
    parts = []
    for measures, weights in zip(state.measures, state.weights, strict=True):
        weights = np.ones(1) if weights is None else weights
        parts.append(Summary(measures.largest.max(), weights.min(), weights.max()))
    return Summary.of(parts)


class Carried:
    """A function of blocks, or of starts and weights, as data; with the largest weight of all."""

    def __init__(self, function: Function, largest_weight: float) -> None:
        self.function, self.largest_weight = function, largest_weight


def carry(what: Carried) -> Carried:
    """Return the argument: as a task of its own, so that parameters travel once."""
    return what


def sum_rows(what: Carried, sources: list[Matrix], state: State) -> AnySum:
    """Sum a function of blocks over those of some sources."""
    cuts = _rows(state, _taken(sources, state), what.largest_weight)
    blocks = [(rows, i) for rows in cuts for i in range(len(rows.numbers))]
    numbers = [number for rows in cuts for number in rows.numbers]
    return map_reduce(lambda block: what.function(block[0].block(block[1])), blocks, numbers)


def sum_weights(what: Carried, state: State) -> AnySum:
    """Sum a function of starts and weights over some blocks; rows are not read."""
    total: AnySum = BlockSum()
    for rows in _rows(state, None, what.largest_weight):
        total.absorb(rows.sum_weights(what.function))
    return total


def add(sums: list[AnySum]) -> AnySum:
    """Return the sum of sums, which stay as they are: a task may be run again."""
    total: AnySum = BlockSum()
    for one in sums:
        total.join(one)
    return total


def take(sources: list[Matrix], state: State, wanted: list[tuple[int, Array]]) -> Matrix:
    """Return some rows of some cuts as they are stored, those of each in order."""
    sources, parts = _taken(sources, state), []
    for i, indices in wanted:
        parts += _stack(state, sources, i).take(indices)
    return sparse.vstack(parts, "csr") if state.format.is_sparse else np.concatenate(parts)


def head(source: Matrix, n_rows: int) -> Matrix:
    """Return a copy of the first rows of a chunk."""
    return source[:n_rows].copy()


def _rows(state: State, sources: list[Matrix] | None, largest_weight: float) -> list[Rows]:
    """Return the rows of each cut, measured now if they have not been; without sources unread."""
    how, buffers = state.format, BufferPool()
    cuts: list[Rows] = []
    for i, one in enumerate(state.cuts):
        weights = state.weights[i]
        if weights is not None:
            weights = in_units(weights, largest_weight)
        if sources is None:  # weights alone are asked for
            X: Any = SimpleNamespace(shape=(one.n_rows, how.n_features), dtype=how.dtype)
        else:
            X = _stack(state, sources, i)
        measures = state.measures[i] if state.measures else None
        kind = _StackedSparseRows if how.is_sparse else _StackedDenseRows
        rows = kind(
            X,
            weights,
            unit=how.unit,
            size=how.size,
            start=one.start,
            measures=measures,
            buffers=buffers,
        )
        if how.columns and measures is None and isinstance(rows, SparseRows):
            rows.keep_columns()
        cuts.append(rows)
    return cuts


def _stack(state: State, sources: list[Matrix], i: int) -> Stack:
    pieces = [(sources[number], start, stop) for number, start, stop in state.cuts[i].pieces]
    return Stack(pieces, state.format.n_features)


def _taken(sources: list[Matrix], state: State) -> list[Matrix]:
    """Return chunks as rows are read from them."""
    pairs = zip(sources, state.valid, strict=True)
    return [source if valid else _prepared(source, state.format) for source, valid in pairs]


def _prepared(source: Matrix, how: Format) -> Matrix:
    """Return a chunk as rows are read from it; the chunk itself where it will do."""
    if not how.is_sparse or isinstance(source, np.ndarray):
        return source
    rows = canonical(source)
    if rows.dtype.char not in "fd":
        rows = rows.astype(np.float64)
    parts = rows.data, rows.indices, rows.indptr
    if not all(part.flags.aligned for part in parts):  # as it came over a wire
        parts = tuple(np.require(part, requirements=["A"]) for part in parts)
        rows = sparse.csr_array(parts, shape=rows.shape)
    same = source.format == "csr" and np.shares_memory(rows.data, source.data)
    return source if same and len(rows.data) == len(source.data) else rows


def _check(source: Matrix, length: int, how: Format) -> None:
    """Refuse a chunk that differs from the array's meta."""
    is_sparse = sparse.issparse(source)
    kind = type(source).__name__
    if is_sparse != how.is_sparse:
        raise ValueError(
            f"A chunk of X is a {kind}, and the array's meta says that chunks are "
            f"{'sparse' if how.is_sparse else 'dense'}: build the array with the right meta, such "
            "as meta=scipy.sparse.csr_array((0, 0))."
        )
    expected = (length, how.n_features)
    if source.shape != expected or source.dtype != how.dtype:
        raise ValueError(
            f"A chunk of X has the shape {source.shape} and the type {source.dtype}, and the array "
            f"says {expected} and {how.dtype}: build the array with the right meta and "
            "chunks."
        )


# Rows of a Dask array: bit-identical blocks and sums, computed by its workers.


if TYPE_CHECKING:
    import dask.array as da
    from dask.delayed import Delayed
    from distributed import Client, Future

    Task: TypeAlias = Delayed | Future

Part = TypeVar("Part")

SUMS_PER_TASK = 8  # that one task adds
MAX_DIRECT_TASKS = 4  # without a task between them and the client
MAX_PIECES_PER_SUM = 8  # on average; more are added by workers before the client gets them


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
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        is_sparse = sparse.issparse(X._meta)
        wide = is_sparse and X.dtype.char not in "fd"
        self.dtype = np.dtype(np.float64) if wide else read_as(X.dtype)
        size = block_rows(self.n_rows, self.n_features, is_sparse=is_sparse, width=width)
        self._format = Format(self.n_features, X.dtype, is_sparse, unit, size, columns)
        self._tasks = _Futures.of(X, weights) or _Delayed(X, weights)
        self._groups = [
            _Group(self._tasks, cuts) for cuts in self._tasks.grouped(cut(X.chunks[0], size))
        ]
        self._n_pieces = sum(count_pieces(group.cuts, size) for group in self._groups)
        self._measure()

    def _measure(self) -> None:
        """Let workers read all rows once, and keep the measures next to them."""
        call, token = self._tasks.call, uuid4().hex
        states = [
            call("measure", token, i, measure, *group.given, self._format)
            for i, group in enumerate(self._groups)
        ]
        self._states = self._tasks.persisted(states)
        summaries = self._results(
            [call("summary", token, i, summary, state) for i, state in enumerate(self._states)]
        )
        self._summary = Summary.of(summaries)
        self.weight_unit = weight_unit(self._summary.largest_weight)

    @property
    def largest(self) -> float:
        return self._summary.largest

    @property
    def weight_range(self) -> tuple[float, float]:
        """The least and the largest weight as it was given."""
        return self._summary.least_weight, self._summary.largest_weight

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        sources = [group.sources for group in self._groups]
        return self._sum(function, sum_rows, sources)

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        return self._sum(function, sum_weights)

    def _sum(self, function: Function, task: Function, *args: list[list["Task"]]) -> Any:
        """Sum a function by a task per group, which gets the group's `args` and its state."""
        token, what = uuid4().hex, Carried(function, self._summary.largest_weight)
        if len(self._groups) > MAX_DIRECT_TASKS:  # parameters travel once, as a task's result
            what = self._tasks.call("parameters", token, 0, carry, what)
        sums = [
            self._tasks.call(_name(function), token, i, task, what, *of_group)
            for i, of_group in enumerate(zip(*args, self._states, strict=True))
        ]
        return self._total(sums, token)

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        """Raise a TypeError: workers cannot write to an array of the client's."""
        raise TypeError(
            "This needs an array in memory, and got a Dask array: give a sample of its rows, or "
            "X.compute() if they fit into memory."
        )

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        """Return some rows with other weights as rows in the client's memory."""
        rows = make_rows(self._taken(indices), None, unit=self._format.unit, width=width)
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        return as_seen(self._taken(indices), unit=self._format.unit)

    def _taken(self, indices: Array) -> Matrix:
        """Return some rows as they are stored."""
        numbers, places = np.unique(indices, return_inverse=True)
        parts, order, token = [], [], uuid4().hex
        for i, (group, state) in enumerate(zip(self._groups, self._states, strict=True)):
            wanted = [
                (k, numbers[(numbers >= part.start) & (numbers < part.start + part.n_rows)])
                for k, part in enumerate(group.cuts)
            ]
            wanted = [(k, rows) for k, rows in wanted if len(rows)]
            if wanted:
                order += [rows for _, rows in wanted]
                local = [(k, rows - group.cuts[k].start) for k, rows in wanted]
                parts.append(self._tasks.call("take", token, i, take, group.sources, state, local))
        results = self._results(parts)
        rows = sparse.vstack(results, "csr") if self._format.is_sparse else np.concatenate(results)
        return rows[np.argsort(np.concatenate(order))[places]]

    def _total(self, sums: list["Task"], token: str) -> Any:
        level, few = 0, MAX_DIRECT_TASKS if self._n_pieces <= MAX_PIECES_PER_SUM * len(sums) else 1
        while len(sums) > few:
            level += 1
            starts = range(0, len(sums), SUMS_PER_TASK)
            sums = [
                self._tasks.call(f"add-{level}", token, i, add, sums[i : i + SUMS_PER_TASK])
                for i in starts
            ]
        return add(self._results(sums)).total()  # a copy: what came may be read-only, or shared

    def _results(self, tasks: list["Task"]) -> list[Any]:
        try:
            return self._tasks.results(tasks)
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise RuntimeError(f"{self._what_died(error)}") from error

    def _what_died(self, error: Exception) -> str:
        """Return an error message with the rows that workers died of: those of a task or chunk."""
        task = error.args[0] if error.args else ""
        number = str(task).rpartition("-")[2]
        where, start, stop = "some rows of X", 0, 0
        if isinstance(task, tuple) and len(task) == 3 and task[1] < len(self._tasks.lengths):
            start = sum(self._tasks.lengths[: task[1]])
            stop = start + self._tasks.lengths[task[1]]
        elif number.isdigit() and int(number) < len(self._groups):
            cuts = self._groups[int(number)].cuts
            start, stop = cuts[0].start, cuts[-1].start + cuts[-1].n_rows
        if start < stop:
            where = f"rows {start} to {stop - 1} of X"
        return (
            f"Workers that read {where} died again and again, most likely of too little memory: "
            "give them more, or X smaller chunks (X.rechunk), or let fewer threads share a worker."
        )


def _quiet() -> AbstractContextManager[object]:
    """Keep Dask from warning of the parameters of many components, which it finds large."""
    loaded = "distributed" in sys.modules  # else it would miss its own settings
    threshold = {"distributed.admin.large-graph-warning-threshold": "1GB"}
    return dask.config.set(threshold if loaded else {})


def _name(function: Function) -> str:
    """Return the name of a sum on the dashboard."""
    name: str = getattr(getattr(function, "func", function), "__name__", "sum")
    return name.strip("_").replace("_", "-")


class _Group:
    """Some cuts that one task reads, with the sources that it needs for that.

    A source is a chunk, or the head of one that another group has.
    """

    def __init__(self, tasks: "_Delayed | _Futures", cuts: list[Cut]) -> None:
        self.cuts = cuts
        chunks = {one.pieces[0][0] for one in cuts}
        places: dict[tuple[int, int], int] = {}
        self.sources: list[Task] = []
        weights: list[Task | None] = []

        def place(chunk: int, stop: int) -> int:
            whole = chunk in chunks or stop == tasks.lengths[chunk]
            key = chunk, tasks.lengths[chunk] if whole else stop
            if key not in places:
                places[key] = len(self.sources)
                source = tasks.chunks[chunk]
                if not whole:
                    source = tasks.call("head", uuid4().hex, chunk, head, source, stop)
                self.sources.append(source)
                weights.append(None if tasks.weights is None else tasks.weights[chunk])
            return places[key]

        local = [
            Cut(
                one.start,
                tuple((place(chunk, stop), start, stop) for chunk, start, stop in one.pieces),
            )
            for one in cuts
        ]
        self.given = self.sources, weights, [length for _, length in places], local


class _Delayed:
    """Tasks for whichever scheduler is current: threads, one thread, or a cluster's."""

    def __init__(self, X: "da.Array", weights: "da.Array | None") -> None:
        self.lengths = list(map(int, X.chunks[0]))
        self.chunks = X.to_delayed().ravel().tolist()
        self.weights = None if weights is None else weights.to_delayed().ravel().tolist()

    def grouped(self, cuts: list[Cut]) -> list[list[Cut]]:
        """Return the cuts that go together: each alone."""
        return [[one] for one in cuts]

    def call(self, name: str, token: str, i: int, function: Function, *args: object) -> "Task":
        """Return a task."""
        task = dask.delayed(function, pure=False, traverse=False)
        return task(*args, dask_key_name=f"skvmf-{name}-{token}-{i}")

    def persisted(self, tasks: list["Task"]) -> list["Task"]:
        """Compute tasks, and leave their results on the workers."""
        with _quiet():
            return list(dask.persist(*tasks))

    def results(self, tasks: list["Task"]) -> list[Any]:
        """Return the results of tasks."""
        with _quiet():
            return list(dask.compute(*tasks, optimize_graph=False))


class _Futures:
    """Tasks for a cluster that holds the chunks: one a thread takes all that its worker has."""

    def __init__(
        self,
        client: "Client",
        X: "da.Array",
        chunks: list["Future"],
        weights: list["Future"] | None,
    ) -> None:
        self.lengths = list(map(int, X.chunks[0]))
        self.chunks, self.weights, self._client = chunks, weights, client

    @classmethod
    def of(cls, X: "da.Array", weights: "da.Array | None") -> "_Futures | None":
        """Return tasks for the cluster that holds all chunks, where one does."""
        chunks = _held(X)
        if chunks is None:
            return None
        client = chunks[0].client
        held = None if weights is None else _held(client.persist(weights))
        _wait(chunks)
        return cls(client, X, chunks, held)

    def grouped(self, cuts: list[Cut]) -> list[list[Cut]]:
        """Return the cuts that go together: those of a worker, for each of its threads."""
        where = self._client.who_has(self.chunks)
        n_threads = self._client.nthreads()
        of_worker: dict[str, list[Cut]] = {}
        for one in cuts:
            holders = where.get(self.chunks[one.pieces[0][0]].key) or [""]
            of_worker.setdefault(min(holders), []).append(one)
        groups = []
        for worker, held in sorted(of_worker.items()):
            n = min(n_threads.get(worker, 1), len(held))
            edges = [round(i * len(held) / n) for i in range(n + 1)]
            groups += [held[a:b] for a, b in itertools.pairwise(edges)]
        return groups

    def call(self, name: str, token: str, i: int, function: Function, *args: object) -> "Task":
        """Begin a task."""
        with _quiet():
            return self._client.submit(function, *args, key=f"skvmf-{name}-{token}-{i}", pure=False)

    def persisted(self, tasks: list["Task"]) -> list["Task"]:
        """Return tasks, whose results stay on the workers as long as these exist."""
        return tasks

    def results(self, tasks: list["Task"]) -> list[Any]:
        """Return the results of tasks, or raise the exception of the first that failed."""
        return list(self._client.gather(tasks))


def _held(X: "da.Array") -> list["Future"] | None:
    """Return the futures that are an array's chunks, in order, where a cluster holds them all."""
    graph = X.__dask_graph__()
    futures = []
    for key in flatten(X.__dask_keys__()):
        future = graph.get(key)
        future = getattr(future, "value", future)  # of a node that is data
        if not hasattr(future, "client"):
            return None
        futures.append(future)
    return futures


def _wait(chunks: list["Future"]) -> None:
    """Wait until chunks are there; refuse those of a client that is gone."""
    from distributed import wait

    client = chunks[0].client
    lost = client.status != "running" or any(one.status in ("cancelled", "lost") for one in chunks)
    if lost:
        raise RuntimeError(
            "X was persisted by a client that is closed or has lost it: its rows are gone. Make X "
            "again, and persist it with a client that lives as long as the fit."
        )
    wait(chunks)
    for one in chunks:
        if one.status == "error":
            one.result()
