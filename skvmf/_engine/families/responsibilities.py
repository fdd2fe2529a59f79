"""Responsibilities of components for the rows of a block: dense, one component a row, or packed."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._kernels.rows import pack_rows
from ..._typing import Array

# Non-zeros are counted as booleans, which is ten times as fast as to count floats: of so many
# entries at a time, which stay in the cache.
_COUNTED_ENTRIES = 2**16
_SAMPLING_STEP = 32  # one row in so many tells whether responsibilities are dense

# Responsibilities of a component that are smaller than its largest one in the block by this factor
# change its sums by less than their rounding: those of all 4,096 rows of a block by 4e-15.
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class DenseResponsibilities:
    """Each component's responsibility for each row, times the row's factor, (n, K)."""

    resp: Array

    def denser_than(self, fraction: float) -> bool:
        """Whether more than a fraction is not zero, and one in each row: estimated from a few."""
        if self.resp.shape[1] * fraction < 1:
            return True
        sample = self.resp[::_SAMPLING_STEP]
        return bool(np.count_nonzero(sample != 0) > fraction * sample.size)

    def without_negligible(self) -> "DenseResponsibilities":
        """Return the same with zeros in place of what changes no sum of rows beyond rounding."""
        counted = self.resp > _NEGLIGIBLE * self.resp.max(axis=0, initial=0)
        return DenseResponsibilities(np.where(counted, self.resp, 0))

    def packed(self) -> "SparseResponsibilities":
        """Return the non-zeros of each row."""
        n, K = self.resp.shape
        n_rows = max(1, _COUNTED_ENTRIES // K)
        parts = (self.resp[start : start + n_rows] for start in range(0, n, n_rows))
        m = sum(int(np.count_nonzero(part != 0)) for part in parts)
        ends = np.empty(n, dtype=np.int64)
        columns = np.empty(m + 1, dtype=np.int32)  # the last entries are scrap
        values = np.empty(m + 1, self.resp.dtype)
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


@dataclass(frozen=True, eq=False)
class HardResponsibilities:
    """The component of each row, (n,) int32, and the row's factor, (n,)."""

    labels: Array
    factors: Array

    def packed(self) -> "SparseResponsibilities":
        """Return the same as one non-zero per row, or none if its factor is zero."""
        non_zero = self.factors != 0
        return SparseResponsibilities(
            np.cumsum(non_zero), self.labels[non_zero], self.factors[non_zero]
        )

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


@dataclass(frozen=True, eq=False)
class SparseResponsibilities:
    """Non-zero responsibilities, row after row: those of row n end before ``ends[n]``."""

    ends: Array
    columns: Array
    values: Array


Responsibilities: TypeAlias = DenseResponsibilities | HardResponsibilities


def as_dense(responsibilities: Responsibilities, n_components: int) -> Array:
    """Return responsibilities as an array.

    Parameters
    ----------
    responsibilities : DenseResponsibilities or HardResponsibilities
        What a family's `moments` are given. They carry the weights and the scales of the rows.
    n_components : int
        The number of components K.

    Returns
    -------
    ndarray of shape (n, K)
        The responsibility of each component for each row.
    """
    if isinstance(responsibilities, DenseResponsibilities):
        return responsibilities.resp
    n = len(responsibilities.labels)
    resp = np.zeros((n, n_components))
    resp[np.arange(n), responsibilities.labels] = responsibilities.factors
    return resp
