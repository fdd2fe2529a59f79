"""Scores, which a family gives a posterior, and responsibilities, which it gets back."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..._kernels.rows import pack_rows
from ..._typing import Array

_BLOCK_SIZE = 2**16  # entries to compare with 0: to count booleans is ten times as fast as floats
_SAMPLING_STEP = 32  # one row in so many tells whether responsibilities are dense


@dataclass(frozen=True)
class Scores:
    """Log-densities as matrix products leave them: slopes[:, None] * products + bias."""

    products: Array  # (n, K) of float32 or float64; a posterior works in it, so it is used up
    bias: Array  # (K,)
    slopes: Array | None = None  # (n,); None is one, and what families without row scales have
    cache: Any = None  # what the family's moments ask for again; no posterior looks at it

    def log_density(self) -> Array:
        """Return the log-density of each row under each component, (n, K)."""
        products = self.products if self.slopes is None else self.products * self.slopes[:, None]
        return products + self.bias

    def with_component(self, log_density: float) -> "Scores":
        """Add a last component that has the same log-density everywhere."""
        zeros = np.zeros((len(self.products), 1), dtype=self.products.dtype)
        bias = np.append(self.bias, log_density)
        return replace(self, products=np.hstack([self.products, zeros]), bias=bias)


@dataclass(frozen=True)
class DenseResponsibilities:
    """Each component's responsibility for each row, times the row's factor, (n, K)."""

    resp: Array

    @cached_property
    def n_positive(self) -> int:
        """How many responsibilities are not zero."""
        n, K = self.resp.shape
        n_rows = max(1, _BLOCK_SIZE // K)
        parts = (self.resp[start : start + n_rows] for start in range(0, n, n_rows))
        return sum(int(np.count_nonzero(part != 0)) for part in parts)

    def denser_than(self, fraction: float) -> bool:
        """Whether more than a fraction of the entries is not zero, estimated from some rows.

        One in each row is not more.
        """
        if self.resp.shape[1] * fraction < 1:
            return True
        some = self.resp[::_SAMPLING_STEP]
        return bool(np.count_nonzero(some != 0) > fraction * some.size)

    def packed(self) -> "SparseResponsibilities":
        """Return the non-zeros of each row."""
        ends, m = np.empty(len(self.resp), dtype=np.int64), self.n_positive
        columns, values = np.empty(m + 1, dtype=np.int32), np.empty(m + 1, self.resp.dtype)
        pack_rows(self.resp, ends, columns, values)
        return SparseResponsibilities(ends, columns[:m], values[:m])

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

    def first_components(self, n_components: int) -> "HardResponsibilities":
        """Leave out the components from a number on: their rows go to the first for nothing."""
        lost = self.labels >= n_components
        if not lost.any():
            return self
        labels = np.where(lost, 0, self.labels).astype(np.int32)
        return HardResponsibilities(labels, np.where(lost, 0.0, self.factors))


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
    resp = np.zeros((len(responsibilities.labels), n_components))
    np.put_along_axis(
        resp, responsibilities.labels[:, None], responsibilities.factors[:, None], axis=1
    )
    return resp
