"""Weights of rows: the unit that they are counted in, and rows drawn by weight.

Each row has a key, Exp(1) over its weight, and the smallest win (Efraimidis and Spirakis,
Information Processing Letters 97, 2006). Keys come from a stream that the seed and the number of
the block's first row begin, so that a draw depends on neither threads nor workers.
"""

import numpy as np

from ..._typing import Array

# Between these largest weights products with weights stay in the range of floats. Beyond, a prior
# that counts single rows decides all or nothing anyway.
_MIN_LARGEST = 1e-20
_MAX_LARGEST = 1e20


def weight_unit(largest: float) -> float:
    """Return the unit in which the largest weight of all rows is between 1e-20 and 1e20."""
    if largest == 0:
        return 1.0
    return largest / min(max(largest, _MIN_LARGEST), _MAX_LARGEST)


def in_units(weights: Array, largest: float) -> Array:
    """Return weights in the unit that belongs to the largest; a weight of zero stays zero.

    The largest is that of rows that count. Zero rows of directions do not, so theirs may be larger
    by any factor, and are brought down to it.
    """
    unit = weight_unit(largest)
    if unit == 1:
        return weights
    return np.minimum(weights, largest) / largest * (largest / unit)


class Reservoir:
    """The rows with the smallest keys, as many as are asked for; reservoirs add."""

    def __init__(self, size: int, keys: Array, rows: Array, weights: Array) -> None:
        if len(keys) > size:
            smallest = np.argpartition(keys, size - 1)[:size]
            keys, rows, weights = keys[smallest], rows[smallest], weights[smallest]
        self._size = size
        self.keys = keys
        self.rows = rows
        self.weights = weights

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

        If there are fewer than the reservoir holds, all keep their own weights, up to a factor.
        Sums over the rows with the weights estimate sums over all, up to a factor: they add up to
        as many rows as equal weights would be worth.
        """
        rows, weights = self.rows, self.weights
        if len(rows) == self._size:
            last = self.keys.max()
            before_last = self.keys < last
            rows, weights = rows[before_last], weights[before_last]
            # Over the probability that a row is drawn before the last one.
            weights = weights / -np.expm1(-weights * last)
        order = np.argsort(rows)
        rows, weights = rows[order], weights[order]
        if (weights == weights[:1]).all():
            return rows, np.ones(len(rows))
        return rows, weights * (weights.sum() / (weights @ weights))


def reservoir(size: int, seed: int, start: int, weights: Array) -> Reservoir:
    """Return the rows of a block that its first row's number and their weights let win."""
    drawn = np.random.default_rng((seed, start)).exponential(size=len(weights))
    rows = np.flatnonzero(weights > 0)
    weights = weights[rows]
    with np.errstate(over="ignore"):  # of rows that are next to never drawn
        keys = drawn[rows] / weights
    return Reservoir(size, keys, rows + start, weights)
