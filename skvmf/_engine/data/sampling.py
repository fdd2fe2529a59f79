"""Weighted sampling of rows: a reservoir that any number of readers may fill, in any order.

Each row has a key, Exp(1) over its weight, and the smallest win (Efraimidis and Spirakis,
Information Processing Letters 97, 2006). Keys come from a stream that the seed and the number
of the block's first row begin.
"""

import numpy as np

from ..._typing import Array


class Reservoir:
    """The rows with the smallest keys, as many as are asked for; reservoirs add."""

    def __init__(self, size: int, keys: Array, rows: Array, weights: Array) -> None:
        if len(keys) > size:
            chosen = np.argpartition(keys, size - 1)[:size]
            keys, rows, weights = keys[chosen], rows[chosen], weights[chosen]
        self._size, self.keys, self.rows, self.weights = size, keys, rows, weights

    def __iadd__(self, other: "Reservoir") -> "Reservoir":
        return Reservoir(
            self._size,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weights, other.weights]),
        )

    def in_order(self) -> Array:
        """Return the numbers of the rows in the order in which they were drawn."""
        return self.rows[np.lexsort([self.rows, self.keys])]

    def sample(self) -> tuple[Array, Array]:
        """Return the numbers of all rows but the last drawn, and weights for them.

        If there are fewer than the reservoir holds, all are returned with their own weights.
        Weights make sums over the rows estimate sums over all, and add up to as many rows as
        those with equal weights would be worth.
        """
        rows, weights = self.rows, self.weights
        if len(rows) == self._size:
            last = self.keys.max()
            inside = self.keys < last
            rows, weights = rows[inside], weights[inside]
            weights = weights / -np.expm1(-weights * last)
        order = np.argsort(rows)
        weights = weights[order]
        if (weights == weights[:1]).all():
            return rows[order], np.ones(len(rows))
        return rows[order], weights * (weights.sum() / (weights @ weights))


def reservoir(size: int, seed: int, start: int, weights: Array) -> Reservoir:
    """Return the rows of a block that its first row's number and their weights let win."""
    drawn = np.random.default_rng((seed, start)).exponential(size=len(weights))
    rows = np.flatnonzero(weights > 0)
    weights = weights[rows]
    with np.errstate(over="ignore"):  # of rows that are next to never drawn
        return Reservoir(size, drawn[rows] / weights, rows + start, weights)


def first_row(start: int, weights: Array) -> list[int]:
    """Return the number of the first row of a block that counts, if there is one."""
    return [start + int(n) for n in np.flatnonzero(weights > 0)[:1]]
