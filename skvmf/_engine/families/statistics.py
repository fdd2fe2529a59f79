"""Sums over rows that an M-step needs."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array, Attributes
from ..rows.blocks import BufferPool

# Up to this share of all, a sum of responsibilities is rounding: nothing belongs to the component.
ROUNDING_OF_COUNTS = 10 * float(np.finfo(np.float64).eps)


@dataclass(eq=False)
class Statistics:
    """Sums over blocks of rows that an M-step needs.

    Moments are a plain tuple of arrays: who adds, scales or stores them needs no family's class.

    Parameters
    ----------
    value : float
        The weighted sum of the rows' posterior values.
    total : float
        The sum of the rows' weights.
    counts : ndarray of shape (K,)
        The sum of responsibilities of each component, followed by those of a background.
    moments : tuple of ndarray
        What the family's `moments` returned, added over all blocks.
    centred_at : ndarray of shape (K, d) or None
        The points that moments are centred at; None is zero.
    worst_values : ndarray of shape (m,)
        Values of the least likely rows, first on ties: one, or as many as may be empty.
    worst_rows : ndarray of shape (m,), int64
        The numbers of these rows.
    buffers : BufferPool, default=None
        Where arrays of first moments go once they are added.
    log_units : float, default=0.0
        By how much the value is lower than one in units of the features' spread.
    unit : float, default=1.0
        What a weight of 1 stands for (`RowSource.weight_unit`). Statistics that are added have
        the same.
    """

    value: float
    total: float
    counts: Array
    moments: tuple[Array, ...]
    centred_at: Array | None
    worst_values: Array = field(default_factory=partial(np.empty, 0))
    worst_rows: Array = field(default_factory=partial(np.empty, 0, np.int64))
    buffers: BufferPool | None = None
    log_units: float = 0.0
    unit: float = 1.0

    def __iadd__(self, other: "Statistics") -> "Statistics":
        self.value += other.value
        self.total += other.total
        self.log_units += other.log_units
        self.counts += other.counts
        for mine, theirs in zip(self.moments, other.moments, strict=True):
            mine += theirs
        # As many rows as the longer of both lists has: one of them may know more empty components.
        values = np.append(self.worst_values, other.worst_values)
        worst = np.argsort(values, kind="stable")
        worst = worst[: max(len(self.worst_values), len(other.worst_values))]
        self.worst_values = values[worst]
        self.worst_rows = np.concatenate([self.worst_rows, other.worst_rows])[worst]
        if other.buffers is not None:
            other.buffers.release("sums", other.moments[0])
        return self

    def __getstate__(self) -> Attributes:
        return vars(self) | {"buffers": None}  # is of use only where the blocks are

    @property
    def non_empty(self) -> Array:
        """Which components (K,) have rows: counts above rounding."""
        return self.counts > ROUNDING_OF_COUNTS * self.counts.sum()

    def in_unit(self, unit: float) -> "Statistics":
        """Return the statistics with weights in another unit."""
        return self if unit == self.unit else replace(self.scaled(self.unit / unit), unit=unit)

    def scaled(self, factor: float) -> "Statistics":
        """Return the statistics of the same rows with their weights multiplied."""
        return replace(
            self,
            value=factor * self.value,
            total=factor * self.total,
            log_units=factor * self.log_units,
            counts=factor * self.counts,
            moments=tuple(factor * moment for moment in self.moments),
            buffers=None,
        )

    def first_components(self, n_components: int) -> "Statistics":
        """Leave out the counts beyond those of the family's components: the background's."""
        if n_components == len(self.counts):
            return self
        return replace(self, counts=self.counts[:n_components])


def select_statistics(family: Any, stats: Statistics, numbers: Array) -> Statistics:
    """Return the statistics of some components, by their numbers; -1 is one without rows."""
    K = stats.moments[0].shape[family.component_axes[0]]
    has_rows = numbers >= 0

    def choose(sums: Array, axis: int | None) -> Array:
        if axis is None:  # of all components together
            return sums
        shape = np.ones(sums.ndim, dtype=int)
        shape[axis] = -1
        return np.take(sums, numbers, axis=axis) * has_rows.reshape(shape)

    return replace(
        stats,
        counts=np.append(choose(stats.counts[:K], 0), stats.counts[K:]),
        moments=tuple(map(choose, stats.moments, family.component_axes)),
        centred_at=None if stats.centred_at is None else stats.centred_at[numbers],
    )
