"""A block of rows as a family sees it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

MOST = 16  # arrays that are kept for one use


class Spare:
    """Arrays that nobody needs any more, to be filled again, and what all blocks need.

    Fresh pages cost as much as some sums do. Arrays are kept by what they were used for, where
    somebody has asked for such, and dropped where another shape or type is asked for.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, list[Array]] = {}
        self._made: dict[str, tuple[Any, Array]] = {}

    def empty(self, use: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
        """Return an array with anything in it."""
        try:
            array = self._arrays.setdefault(use, []).pop()
        except IndexError:
            return np.empty(shape, dtype)
        return array if array.shape == shape and array.dtype == dtype else np.empty(shape, dtype)

    def give(self, use: str, array: Array) -> None:
        """Take an array back."""
        kept = self._arrays.get(use)
        if kept is not None and len(kept) < MOST:
            kept.append(array)

    def once(self, use: str, owner: Any, make: Callable[[], Array]) -> Array:
        """Return what was made of the same owner, which does not change, or else make it."""
        made = self._made.get(use)
        if made is None or made[0] is not owner:
            made = self._made[use] = owner, make()
        return made[1]


class _Block:
    """What blocks of both kinds have."""

    weights: Array
    scales: Array | None

    @property
    def factors(self) -> Array:
        """What a row's share is multiplied by: its weight times its scale."""
        return self.weights if self.scales is None else self.weights * self.scales

    @property
    def has_direction(self) -> Array:
        """Rows that the family can see: all but zero rows on the sphere."""
        if self.scales is None:
            return np.ones(len(self.weights), dtype=bool)
        nonzero: Array = self.scales != 0
        return nonzero


@dataclass(frozen=True)
class DenseChunk(_Block):
    """Some rows of a dense matrix.

    The family sees ``scales[:, None] * X``, or X where `scales` is None. `start` is the number
    of the first row. `own` says that X is a copy, which may be filled again.
    """

    X: Array
    weights: Array
    scales: Array | None
    start: int
    spare: Spare = field(default_factory=Spare)
    own: bool = False

    def release(self) -> None:
        """Say that the rows are needed no more: a copy goes back where it was taken from."""
        if self.own:
            self.spare.give("rows", self.X)

    def row(self, n: int) -> Array:
        """Return one row as the family sees it, in float64."""
        row: Array = self.X[n].astype(np.float64)
        return row if self.scales is None else row * self.scales[n]


@dataclass(frozen=True)
class Columns:
    """The columns of a CSR block; row numbers count within the block."""

    ptr: Array
    rows: Array
    values: Array


@dataclass(frozen=True)
class SparseChunk(_Block):
    """Some rows of a CSR matrix, and where a fit needs them, their columns."""

    indptr: Array
    indices: Array
    data: Array
    n_features: int
    weights: Array
    scales: Array | None
    start: int
    columns: Columns | None
    spare: Spare

    def release(self) -> None:
        """Say that the rows are needed no more; they are the data's own."""

    def row(self, n: int) -> Array:
        """Return one row as the family sees it, in float64."""
        dense = np.zeros(self.n_features)
        span = slice(self.indptr[n], self.indptr[n + 1])
        dense[self.indices[span]] = self.data[span]
        return dense if self.scales is None else dense * self.scales[n]


Chunk: TypeAlias = DenseChunk | SparseChunk
