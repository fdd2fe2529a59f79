"""The mode of the modified Dirichlet, by the two algorithms of Tu.

Parameters come as what they exceed 1 by, alpha - 1: added to 1, small ones would be lost. Both
algorithms want at least one excess above 0 and n * floor < 1. Then the mode is unique:
x = max(floor, excess / m), with m such that x sums to 1. Excesses are divided by the largest
before they are added: their sum may be beyond the floats.

References
----------
Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger
sparsity", section 2.1.
"""

import numpy as np

from ._jit import Array, kernel


def mode_by_rounds(excess: Array, floor: float) -> Array:
    """Algorithm 1: distribute in proportion to the excess; hold on the floor what falls below.

    Returns the modes (m, n) of m vectors at once. The largest excess is never held: in exact
    arithmetic it cannot fall below the floor. A round that holds nothing more is the last.
    """
    largest = excess.argmax(axis=1)[:, None]
    relative = np.maximum(excess, 0) / np.take_along_axis(excess, largest, axis=1)
    held = excess <= 0
    while True:  # each round but the last holds more
        rest = 1 - floor * held.sum(axis=1, keepdims=True)
        points = rest / np.where(held, 0, relative).sum(axis=1, keepdims=True) * relative
        below = (points < floor) & ~held
        np.put_along_axis(below, largest, False, axis=1)
        if not below.any():
            modes: Array = np.where(held, floor, points)
            return modes
        held |= below


@kernel
def mode_by_sorting(excess, order, floor, x):
    """Algorithm 2, corrected: free the entries from the largest down while they pass the floor.

    As printed, the algorithm fails wherever two entries are free or an alpha below 1 meets an
    alpha above. Here entry i of the ascending `order` is free where its excess is above 0 and
    excess_i (1 - i floor) >= floor sum_(j >= i) excess_j.
    """
    n = x.shape[0]
    largest = excess[order[n - 1]]
    first, total = n - 1, 1.0
    while first > 0:  # it falls
        relative = max(excess[order[first - 1]], 0.0) / largest
        if relative == 0 or relative * (1 - floor * (first - 1)) < floor * (total + relative):
            break
        first, total = first - 1, total + relative
    rest = (1 - floor * first) / total
    for i in range(n):
        x[order[i]] = excess[order[i]] / largest * rest if i >= first else floor
