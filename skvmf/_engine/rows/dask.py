"""Rows of a Dask array: its workers sum over blocks, with the bits of rows in memory.

Chunks of any lengths stay in place, in memory, on disk or not yet computed. A task sums over all
blocks that begin in some chunks, and sums are added along the tree of blocks, so that bits depend
neither on chunks nor on workers. Workers keep scales, 8 bytes per row, and CSR by columns.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import getitem
from typing import Any, TypeAlias
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.core import flatten
from scipy import sparse

from ..._typing import Array, Function, Matrix
from . import dask_tasks
from .blocks import block_rows, has_truncated_steps, span_rows
from .parallel import Part
from .reading import as_seen, read_as, stacked
from .sources import RowSource, Span, make_rows
from .weights import weight_unit

Graph: TypeAlias = dict[Any, Any]  # of tasks by their keys

# The client adds so few sums itself, and sends parameters along with so few tasks: a task between
# would take longer. More sums are added by tasks, some at a time, and parameters travel once, as a
# task's result.
MAX_DIRECT_SUMS = 4
SUMS_PER_TASK = 8


class _NewFunction(partial[Any]):
    """A function that Dask takes as new: it cannot hash closures, and hashes parameters slowly."""

    def __dask_tokenize__(self) -> str:
        return uuid4().hex


class DaskRows(RowSource):
    """Weighted rows of a Dask array.

    X has known chunks, one along the features, of dense blocks, or of CSR ones by its meta; the
    weights have the same chunks. The other arguments are those of `make_rows`.
    """

    def __init__(
        self,
        X: da.Array,
        weights: da.Array | None,
        *,
        unit: bool,
        width: int = 1,
        columns: bool = False,
        missing: bool = False,
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.is_sparse = sparse.issparse(X._meta)
        self.dtype = read_as(X.dtype)
        if self.is_sparse and X.dtype.char not in "fd":
            self.dtype = np.dtype(np.float64)
        shape = self.n_rows, self.n_features
        self._size = block_rows(*shape, is_sparse=self.is_sparse, width=width)
        self._blocks_per_span = 1
        if has_truncated_steps(self.n_rows, width) and not self.is_sparse:
            self._blocks_per_span = span_rows(*shape, width) // self._size
        self._no_blocks = dask_tasks.TaskBlocks(
            shape, X.dtype, self.is_sparse, unit, self._size, columns, missing=missing
        )
        self._chunks = list(flatten(X.__dask_keys__()))
        self._ends = np.cumsum(X.chunks[0], dtype=int)
        self._starts = self._ends - X.chunks[0]
        futures = _persisted(X, self._chunks)
        if futures is None:
            # Once here, as each sum sends the graph again. Futures have nothing to optimize.
            (X,) = dask.optimize(X)
        self._graph = dict(X.__dask_graph__())
        if futures:
            self._get = futures[0].client.get
        else:
            self._get = get_scheduler(collections=[X])
        self._client: Any = getattr(self._get, "__self__", None)  # of a cluster
        self._measure(weights, self._groups(futures), is_persisted=futures is not None)

    def _groups(self, futures: list[Any] | None) -> Iterator[tuple[list[int], dict[int, int]]]:
        """Yield the blocks of each task, and of which chunks it reads how many rows.

        A task for each thread of a worker takes all blocks that begin in chunks that it holds; of
        chunks that nobody holds, each has a task.
        """
        homes: list[Any] = list(range(len(self._chunks)))
        n_threads: dict[Any, int] = {}
        if futures:
            where = self._client.who_has(futures)
            n_threads = self._client.nthreads()
            homes = [min(where.get(future.key) or [""]) for future in futures]
        # Blocks begin and end at these rows.
        edges = np.append(np.arange(0, self.n_rows, self._size), self.n_rows)
        first_chunks = np.searchsorted(self._ends, edges[:-1], "right").tolist()  # of blocks
        last_chunks = np.searchsorted(self._ends, edges[1:] - 1, "right").tolist()
        at_home: dict[Any, list[int]] = {}
        for number in range(len(first_chunks)):
            # Where the first block of its span is: a span is never cut.
            chunk = first_chunks[number - number % self._blocks_per_span]
            at_home.setdefault(homes[chunk], []).append(number)
        for home, numbers_at_home in sorted(at_home.items()):
            numbers = np.asarray(numbers_at_home)
            spans = numbers // self._blocks_per_span
            for spans_of_task in np.array_split(np.unique(spans), n_threads.get(home, 1)):
                if len(spans_of_task) == 0:  # there are more threads than spans
                    continue
                group = numbers[np.isin(spans, spans_of_task)].tolist()
                n_rows: dict[int, int] = {}
                for number in group:
                    for chunk in range(first_chunks[number], last_chunks[number] + 1):
                        stop = self._ends[chunk]
                        if homes[chunk] != home:  # its other rows need not be sent
                            stop = min(stop, edges[number + 1])
                        n_rows[chunk] = int(stop - self._starts[chunk])
                yield group, n_rows

    def _measure(self, weights: da.Array | None, groups: Iterator[Any], is_persisted: bool) -> None:
        """Let workers read all rows once, and keep what later tasks need."""
        token = uuid4().hex
        tasks: Graph = {}
        weight_chunks: list[Any] = []
        if weights is not None:
            tasks |= dict(weights.__dask_graph__())
            weight_chunks = list(flatten(weights.__dask_keys__()))
        self._owners = np.empty(-(-self.n_rows // self._size), dtype=int)  # tasks of blocks
        self._states: list[Any] = []  # keys of what tasks keep
        self._sources: list[list[Any]] = []  # keys of the chunks that tasks read
        beginnings: Graph = {}  # of chunks that a task reads no more of
        for i, (numbers, n_rows) in enumerate(groups):
            sources = []
            for chunk, n in n_rows.items():
                source = self._chunks[chunk]
                if n < self._ends[chunk] - self._starts[chunk]:
                    source = f"skvmf-rows-{token}", chunk, n
                    beginnings[source] = dask_tasks.first_rows, self._chunks[chunk], n
                sources.append(source)
            blocks = replace(
                self._no_blocks,
                numbers=numbers,
                starts=self._starts[list(n_rows)].tolist(),
                lengths=list(n_rows.values()),
            )
            own_weights = []
            if weight_chunks:
                own_weights = [weight_chunks[chunk] for chunk in n_rows]
            state = f"skvmf-measure-{token}", i
            tasks[state] = dask_tasks.measure, blocks, sources, own_weights
            self._owners[numbers] = i
            self._sources.append(sources)
            self._states.append(state)
        to_keep = self._states
        if is_persisted:
            # Beginnings of chunks would be sent to other workers for each sum. Where X is lazy they
            # stay so: nobody asked workers to hold rows.
            to_keep = [*to_keep, *beginnings]
        self._graph |= beginnings
        _, self._on_workers = self._compute(self._graph | tasks, [], to_keep)
        self._graph |= self._on_workers
        self._set_extremes(token)

    def _set_extremes(self, token: str) -> None:
        """Ask workers for what all rows have in common."""
        tasks: Graph = {
            (f"skvmf-extremes-{token}", i): (dask_tasks.extremes, state)
            for i, state in enumerate(self._states)
        }
        results, _ = self._compute(self._on_workers | tasks, list(tasks))
        largest, missing, min_weight, max_weight, max_counted = np.transpose(results)
        self.largest = float(largest.max())
        self.incomplete = bool(missing.any())
        self.weight_range = float(min_weight.min()), float(max_weight.max())
        self._largest_weight = float(max_counted.max())
        self.weight_unit = weight_unit(self._largest_weight)

    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        total, _ = self._added(*self._tasks(dask_tasks.sum_blocks, function))
        return total

    def map_reduce_weights(self, function: Callable[[int, Array], Part]) -> Part:
        total, _ = self._added(*self._tasks(dask_tasks.sum_weights, function, read=False))
        return total

    def noting_labels(self, function: Callable[..., Part]) -> tuple[Part, Any]:
        return self._added_and_kept(dask_tasks.sum_noting_labels, function)

    def map_reduce_spans(
        self, function: Callable[[Span], Part], labels: Any, size: int, relabels: bool
    ) -> tuple[Part, Any]:
        assert size == self._blocks_per_span * self._size
        run = partial(dask_tasks.sum_spans, size)
        total, new_labels = self._added_and_kept(run, function, labels, relabels)
        return total, new_labels or labels

    def _tasks(
        self, run: Function, function: Function, labels: Graph | None = None, read: bool = True
    ) -> tuple[Graph, list[Any]]:
        """Return a graph of tasks that sum a function over their blocks, and the tasks' keys."""
        token = uuid4().hex
        tasks: Graph
        sources: list[list[Any]]
        if read:
            tasks = dict(self._graph)
            sources = self._sources
        else:
            tasks = dict(self._on_workers)
            sources = [[]] * len(self._states)
        parameters: Any = _NewFunction(function)
        if len(sources) > MAX_DIRECT_SUMS:
            tasks[f"skvmf-parameters-{token}"] = parameters
            parameters = f"skvmf-parameters-{token}"
        keys: list[Any] = [(f"skvmf-sum-{token}", i) for i in range(len(sources))]
        for key, state, chunks in zip(keys, self._states, sources, strict=True):
            tasks[key] = run, parameters, self._largest_weight, state, chunks
        if labels:
            tasks |= labels
            for key, labels_of_task in zip(keys, labels, strict=True):
                tasks[key] = (*tasks[key], labels_of_task)
        return tasks, keys

    def _added_and_kept(
        self, run: Function, function: Function, labels: Graph | None = None, keep: bool = True
    ) -> tuple[Any, Graph]:
        """Sum a function by tasks that return labels, too, which workers may keep."""
        tasks, pairs = self._tasks(run, function, labels)
        sums = _picked(pairs, 0)
        labels_after = _picked(pairs, 1) if keep else {}
        return self._added(tasks | sums | labels_after, list(sums), list(labels_after))

    def _added(
        self, tasks: Graph, keys: list[Any], to_keep: Sequence[Any] = ()
    ) -> tuple[Any, Graph]:
        """Return the total of some tasks' sums, and others' results, which workers keep."""
        # A run of blocks is a few sums, whatever its length; scattered ones are a sum for each.
        in_runs = np.count_nonzero(np.diff(self._owners)) < len(keys)
        max_direct = 1
        if in_runs:
            max_direct = MAX_DIRECT_SUMS
        token, _ = keys[0]
        level = 0
        while len(keys) > max_direct:
            level += 1
            parts = [keys[i : i + SUMS_PER_TASK] for i in range(0, len(keys), SUMS_PER_TASK)]
            keys = [f"skvmf-add-{level}-{token}-{i}" for i in range(len(parts))]
            tasks |= {key: (dask_tasks.add, part) for key, part in zip(keys, parts, strict=True)}
        sums, on_workers = self._compute(tasks, keys, to_keep)
        return dask_tasks.add(sums).total(), on_workers  # a copy: sums may be read-only or shared

    def for_each(self, function: Callable[[Any, slice], None]) -> None:
        """Raise a TypeError: workers cannot write to an array of the client's."""
        raise TypeError(
            "This needs an array in memory, and got a Dask array: give a sample of its rows, or "
            "X.compute() if they fit into memory."
        )

    def subset(self, indices: Array, weights: Array, width: int, single: bool = False) -> RowSource:
        kind = self._no_blocks
        rows = make_rows(
            self._taken(indices), None, unit=kind.unit, width=width, missing=kind.missing
        )
        return rows.subset(np.arange(len(indices)), weights, width, single)

    def take(self, indices: Array) -> Array:
        return as_seen(self._taken(indices), unit=self._no_blocks.unit)

    def _taken(self, indices: Array) -> Matrix:
        """Return some rows as they are stored."""
        numbers, inverse = np.unique(indices, return_inverse=True)
        owners = self._owners[numbers // self._size]
        token = uuid4().hex
        tasks: Graph = {}
        for i in np.unique(owners).tolist():
            own = numbers[owners == i]
            task = dask_tasks.take, own, self._states[i], self._sources[i]
            tasks[f"skvmf-take-{token}", i] = task
        parts, _ = self._compute(self._graph | tasks, list(tasks))
        positions = np.argsort(np.argsort(owners, kind="stable"))  # of numbers, by their tasks
        return stacked(parts)[positions[inverse]]

    def _compute(
        self, graph: Graph, keys: list[Any], to_keep: Sequence[Any] = ()
    ) -> tuple[list[Any], Graph]:
        """Return the results of some tasks, and those that workers keep: futures, by their keys."""
        stays_there = bool(to_keep) and self._client is not None
        options = {}
        if stays_there:
            options["sync"] = False
        quiet = {}
        if self._client:  # Dask finds the parameters of many components large
            quiet["distributed.admin.large-graph-warning-threshold"] = "1GB"
        try:
            with dask.config.set(quiet):
                results = list(self._get(graph, [*keys, *to_keep], **options))
                wanted = results[: len(keys)]
                if stays_there:
                    wanted = self._client.gather(wanted)
                return wanted, dict(zip(to_keep, results[len(keys) :], strict=True))
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise RuntimeError(
                f"Workers that read {self._rows_of(error.args[:1])} died again and again, most "
                "likely of too little memory: give them more, or X smaller chunks (X.rechunk), or "
                "let fewer threads share a worker."
            ) from error

    def _rows_of(self, key: Any) -> str:
        """Say which rows a task reads: one of these, which has a name and a number, or a chunk."""
        match key:
            case ((str(name), int(i)),) if name.startswith("skvmf-"):
                numbers = np.flatnonzero(self._owners == i)
                start = numbers[0] * self._size
                stop = (numbers[-1] + 1) * self._size
            case ((str(), int(i), int()),) if i < len(self._ends):
                start = self._starts[i]
                stop = self._ends[i]
            case _:
                return "some rows of X"
        return f"rows {start} to {min(stop, self.n_rows) - 1} of X"


def _picked(pairs: list[Any], number: int) -> Graph:
    """Return tasks that pick the first or the second of what tasks return, by these tasks' keys."""
    return {(f"{name}-{number}", i): (getitem, (name, i), number) for name, i in pairs}


def _persisted(X: da.Array, keys: list[Any]) -> list[Any] | None:
    """Return the futures that are an array's chunks, if a cluster holds them all."""
    graph = dict(X.__dask_graph__())
    futures: list[Any] = [getattr(graph.get(key), "value", graph.get(key)) for key in keys]
    if not all(hasattr(future, "client") for future in futures):
        return None
    from distributed import wait

    is_lost = any(future.status in ("cancelled", "lost") for future in futures)
    if is_lost or futures[0].client.status != "running":
        raise RuntimeError(
            "X was persisted by a client that is closed or has lost it: its rows are gone. Make X "
            "again, and persist it with a client that lives as long as the fit."
        )
    wait(futures)
    return futures
