"""Blocks of rows as a family sees them, and how large they are."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..._typing import Array
from .buffers import BufferPool

EVEN_BELOW = 16  # blocks


class _Block:
    """Base class of dense and sparse blocks."""

    weights: Array
    scales: Array | None

    @property
    def factors(self) -> Array:
        """The factors of responsibilities (n,): the rows' weights times their scales."""
        return self.weights if self.scales is None else self.weights * self.scales

    @property
    def has_direction(self) -> Array:
        """Rows that the family can see: all but zero rows on the sphere."""
        if self.scales is None:
            return np.ones(len(self.weights), dtype=bool)
        nonzero: Array = self.scales != 0
        return nonzero


@dataclass(frozen=True)
class DenseBlock(_Block):
    """Some rows of a dense matrix.

    The family sees ``scales[:, None] * X``, or X where `scales` is None. `start` is the number
    of the first row. `copied` says that X is a copy, which may be filled again.
    """

    X: Array
    weights: Array
    scales: Array | None
    start: int
    buffers: BufferPool = field(default_factory=BufferPool)
    copied: bool = False

    def release(self) -> None:
        """Say that the rows are needed no more: a copy goes back where it was taken from."""
        if self.copied:
            self.buffers.give("rows", self.X)

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
class SparseBlock(_Block):
    """Some rows of a CSR matrix, and where a fit needs them, their columns."""

    indptr: Array
    indices: Array
    data: Array
    n_features: int
    weights: Array
    scales: Array | None
    start: int
    columns: Columns | None
    buffers: BufferPool

    def release(self) -> None:
        """Say that the rows are needed no more; they belong to the data."""

    def row(self, n: int) -> Array:
        """Return one row as the family sees it, in float64."""
        dense = np.zeros(self.n_features)
        span = slice(self.indptr[n], self.indptr[n + 1])
        dense[self.indices[span]] = self.data[span]
        return dense if self.scales is None else dense * self.scales[n]


Block: TypeAlias = DenseBlock | SparseBlock


def block_rows(n_rows: int, n_features: int, *, is_sparse: bool, width: int = 1) -> int:
    """Return the number of rows in a block.

    It is a power of two: large pieces of the data that begin at such numbers hold whole blocks.
    Below 16 blocks they are cut evenly instead, so that threads have equal work. `width` is how
    many numbers a row brings along in a step beside its features, such as one per component: both
    fit in some megabytes.
    """
    if is_sparse:
        # Few blocks, as each brings n_features x K numbers to add; at most 2^16 rows, as row
        # numbers are uint16.
        most = max(256, min(16384, 2**23 // width))
    else:
        most = max(256, min(4096, 2**21 // max(int(n_features), width)))
    size = 1 << (most.bit_length() - 1)
    n_blocks = -(-n_rows // size)
    return size if n_blocks >= EVEN_BELOW else -(-n_rows // n_blocks)
