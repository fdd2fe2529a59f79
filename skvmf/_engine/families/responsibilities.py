"""Responsibilities of components for the rows of a block: dense, one component a row, or packed."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._kernels.rows import pack_rows
from ..._typing import Array

_BLOCK_SIZE = 2**16  # entries to compare with 0: to count booleans is ten times as fast as floats
_SAMPLING_STEP = 32  # one row in so many tells whether responsibilities are dense


@dataclass(frozen=True)
class DenseResponsibilities:
    """Each component's responsibility for each row, times the row's factor, (n, K)."""

    resp: Array

    def denser_than(self, fraction: float) -> bool:
        """Whether more than a fraction is not zero, and one in each row: estimated from a few."""
        if self.resp.shape[1] * fraction < 1:
            return True
        some = self.resp[::_SAMPLING_STEP]
        return bool(np.count_nonzero(some != 0) > fraction * some.size)

    def packed(self) -> "SparseResponsibilities":
        """Return the non-zeros of each row."""
        n, K = self.resp.shape
        n_rows = max(1, _BLOCK_SIZE // K)
        parts = (self.resp[start : start + n_rows] for start in range(0, n, n_rows))
        m = sum(int(np.count_nonzero(part != 0)) for part in parts)
        ends = np.empty(n, dtype=np.int64)
        columns, values = np.empty(m + 1, dtype=np.int32), np.empty(m + 1, self.resp.dtype)
        pack_rows(self.resp, ends, columns, values)
        return SparseResponsibilities(ends, columns[:m], values[:m])

    def largest(self) -> Array:
        """Return the component most responsible for each row, (n,)."""
        return self.resp.argmax(axis=1)

    def first_components(self, n_components: int) -> "DenseResponsibilities":
        """Leave out the components from a number on."""
        if n_components == self.resp.shape[1]:
            return self
        return DenseResponsibilities(np.ascontiguousarray(self.resp[:, :n_components]))


@dataclass(frozen=True)
class HardResponsibilities:
    """The component of each row, (n,) int32, and the row's factor, (n,)."""

    labels: Array
    factors: Array

    def packed(self) -> "SparseResponsibilities":
        """Return the same as one non-zero per row, or none if its factor is zero."""
        kept = self.factors != 0
        return SparseResponsibilities(np.cumsum(kept), self.labels[kept], self.factors[kept])

    def largest(self) -> Array:
        """Return the component of each row, (n,)."""
        return self.labels

    def first_components(self, n_components: int) -> "HardResponsibilities":
        """Leave out the components from a number on: their rows go to the first, with factor 0."""
        beyond = self.labels >= n_components
        if not beyond.any():
            return self
        labels = np.where(beyond, 0, self.labels).astype(np.int32)
        return HardResponsibilities(labels, np.where(beyond, 0.0, self.factors))


@dataclass(frozen=True)
class SparseResponsibilities:
    """Non-zero responsibilities, row after row: those of row n end before ``ends[n]``."""

    ends: Array
    columns: Array
    values: Array


Responsibilities: TypeAlias = DenseResponsibilities | HardResponsibilities


def as_dense(responsibilities: Responsibilities, n_components: int) -> Array:
    """Return an (n, K) array."""
    if isinstance(responsibilities, DenseResponsibilities):
        return responsibilities.resp
    labels, factors = responsibilities.labels, responsibilities.factors
    resp = np.zeros((len(labels), n_components))
    resp[np.arange(len(labels)), labels] = factors
    return resp
