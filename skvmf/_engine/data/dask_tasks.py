"""The tasks of Dask's workers: sums over blocks that lie in pieces of several chunks.

Chunks of any lengths stay as they are. A block that begins in one chunk and ends in another
borrows the head of that one, and is put together as it is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ..._typing import Array, DType, Function, Matrix
from ..parallel.map_reduce import map_reduce
from ..parallel.tree_sum import BlockSum
from .blocks import BufferPool
from .rows import DenseRows, Measures, Rows, SparseRows
from .validation import canonical, of_ordinary_size

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
            weights = of_ordinary_size(weights, largest_weight)
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
