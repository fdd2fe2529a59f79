"""Rows of a Dask array: bit-identical blocks and sums, computed by its workers.

Chunks stay in place, in memory, on disk or not yet computed. A task sums over all blocks that begin
in some chunks, and what it returns is added along the tree of blocks, so that bits depend neither
on chunks nor on workers. Scales, 8 bytes per row, and a copy of CSR by columns are kept.
"""

import itertools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import uuid4

import dask
import numpy as np
from dask.core import flatten
from scipy import sparse

from ..._typing import Array, Function, Matrix
from .base import RowSource
from .blocks import block_rows
from .dask_tasks import (
    Carried,
    Cut,
    Format,
    Summary,
    add,
    carry,
    count_pieces,
    cut,
    head,
    measure,
    sum_rows,
    sum_weights,
    summary,
    take,
)
from .rows import as_seen, make_rows
from .validation import read_as

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

    @property
    def largest(self) -> float:
        return self._summary.largest

    @property
    def weight_range(self) -> tuple[float, float]:
        """The least and the largest weight as it was given."""
        return self._summary.least_weight, self._summary.largest_weight

    @cached_property
    def _first_row(self) -> int:
        return super().first_row()

    def first_row(self) -> int:
        return self._first_row

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
