"""Numbers in ascending order, one per component, with a least gap between neighbours.

Components without rows do not count in the order: they lie between their neighbours.
"""

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._typing import Array


def project(values: Array, weights: Array, clearance: float) -> Array:
    """Return the nearest values (K,) that have the clearance; those out of reach stay as they are.

    Nearest in weighted squares: isotonic regression of what is left of the values when each has
    stepped back by the clearances before it.
    """
    steps = clearance * np.arange(len(values))
    stepped = values - steps
    ordered: Array = isotonic_regression(stepped, sample_weight=weights)
    # The average of equal values is that value, to the last digit.
    lower = np.minimum.accumulate(stepped[::-1])[::-1]
    ordered = np.clip(ordered, lower, np.maximum.accumulate(stepped))
    return np.where(ordered == stepped, values, ordered + steps)


def keep_order(values: Array, non_empty: Array, clearance: float) -> Array:
    """Return values in order to the last digit: others lie between `non_empty` neighbours.

    These have the clearance, by moving up where rounding took it.
    """
    ordered = values.copy()
    with_gaps = values[non_empty]
    for k in range(1, len(with_gaps)):
        least = with_gaps[k - 1] + clearance
        if least - with_gaps[k - 1] < clearance:
            least = np.nextafter(least, np.inf)
        with_gaps[k] = max(with_gaps[k], least)
    ordered[non_empty] = with_gaps
    floor = np.maximum.accumulate(np.where(non_empty, ordered, -np.inf))
    ceiling = np.minimum.accumulate(np.where(non_empty, ordered, np.inf)[::-1])[::-1]
    ordered[~non_empty] = np.clip(ordered, floor, ceiling)[~non_empty]
    return ordered


def insert(values: Array, non_empty: Array, k: int, value: float, clearance: float) -> Array:
    """Return values with value k as near to another as its neighbours allow; they make a gap."""
    floor = max(values[:k][non_empty[:k]], default=-np.inf) + clearance
    ceiling = min(values[k + 1 :][non_empty[k + 1 :]], default=np.inf) - clearance
    if floor > ceiling:
        # The neighbours are too near each other: it goes between them, and they step back.
        floor = ceiling = (floor + ceiling) / 2
    moved = values.copy()
    moved[k] = np.clip(value, floor, ceiling)
    in_order = non_empty.copy()
    in_order[k] = True
    moved[in_order] = project(moved[in_order], np.ones(in_order.sum()), clearance)
    return keep_order(moved, in_order, clearance)
