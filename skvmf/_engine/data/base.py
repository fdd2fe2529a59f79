"""The contract of data sources: weighted blocks of rows, and sums over them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..._typing import Array, DType
from .blocks import DenseBlock
from .sampling import first_row, reservoir

Part = TypeVar("Part")
_LEAST_VARIANCE = 1e-280  # of which a trillionth is a float with all digits


class RowSource(ABC):
    """A source of rows: fixed weighted blocks, and sums over them.

    Blocks depend on the data's shape alone, and how they are added on their numbers alone
    (`skvmf._engine.parallel.map_reduce`): sums are bit-identical whoever reads the blocks.
    """

    n_rows: int
    n_features: int
    dtype: DType
    """What rows are stored in, float32 or float64."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest magnitude of a value; 0 where the family sees rows of unit length."""

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the rows that count."""
        return self.map_reduce_weights(_sum)

    @abstractmethod
    def map_reduce(self, function: Callable[[Any], Part]) -> Part:
        """Add ``function(block)`` over the blocks with ``+=``."""

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
        """Return the weight (n_rows,) with which each row may be drawn: none for a zero row.

        For rows in memory, such as a sample.
        """
        raise NotImplementedError

    def first_row(self) -> int:
        """Return the number of the first row that counts."""
        return min(self.map_reduce_weights(first_row))

    def mean_variance(self) -> float:
        """Return the weighted variance of the features, averaged over them, of dense rows.

        Rows whose squares underflow count as equal: parts of such a variance would be lost.
        """
        pivot = self.take(np.array([self.first_row()]))[0]  # offsets do not cancel about a row
        first, second = self.map_reduce(partial(_sums_about, pivot)) / self.total_weight
        variance = float(np.mean(np.maximum(second - first**2, 0)))
        return variance if variance > _LEAST_VARIANCE else 0.0

    def extent(self, features: Any) -> tuple[Array, Array]:
        """Return the least and the largest values (m,) of features in the dense rows that count."""
        extent = self.map_reduce(partial(_extent_of, features))
        return extent.low, extent.high

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
        """Return some rows with other weights as a source of their own.

        Unit rows may be had in single precision.
        """

    @abstractmethod
    def take(self, indices: Array) -> Array:
        """Return some rows as the family sees them, dense float64."""


@dataclass
class _Extent:
    """The least and the largest value of some features, each (m,); extents add."""

    low: Array
    high: Array

    def __iadd__(self, other: "_Extent") -> "_Extent":
        return _Extent(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _extent_of(features: Any, block: DenseBlock) -> _Extent:
    X = block.X[block.weights > 0][:, features].astype(np.float64)
    return _Extent(X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf))


def _sum(start: int, weights: Array) -> float:
    return float(weights.sum())


def _sums_about(pivot: Array, block: DenseBlock) -> Array:
    """Return the sums of a block's weighted gaps to a row, and of their squares, (2, d)."""
    gaps = block.X - pivot
    weighted = gaps * block.weights[:, None]
    return np.vstack([weighted.sum(axis=0), np.einsum("nd,nd->d", weighted, gaps)])
