"""The mode of the modified Dirichlet, by the two algorithms of Tu.

Parameters come as what they exceed 1 by, alpha - 1: beside a 1 small ones would be lost. Both
algorithms want at least one excess above 0 and n * floor < 1. Then the mode is unique:
x = max(floor, excess / m), with m such that x sums to 1. Excesses are divided by the largest
before they are added: their sum may be beyond the floats.

References
----------
Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger
sparsity", section 2.1.
"""

from ._jit import kernel


@kernel
def mode_by_rounds(excess, floor, x):
    """Algorithm 1: share out in proportion to the excess; hold on the floor what falls below.

    Entries of x are negative while they are free. The largest excess is never held: in exact
    arithmetic it cannot fall below the floor. A round that holds nothing more is the last.
    """
    largest, n_held = 0, 0
    for i in range(x.shape[0]):
        largest = i if excess[i] > excess[largest] else largest
        x[i] = floor if excess[i] <= 0 else -1.0
        n_held += excess[i] <= 0
    previous = -1
    while n_held > previous:  # it rises, to n at most
        previous, total = n_held, 0.0
        for i in range(x.shape[0]):
            total += excess[i] / excess[largest] if x[i] < 0 else 0.0
        rest = (1 - floor * previous) / total
        for i in range(x.shape[0]):
            if x[i] < 0 and excess[i] / excess[largest] * rest < floor and i != largest:
                x[i] = floor
                n_held += 1
    for i in range(x.shape[0]):
        x[i] = excess[i] / excess[largest] * rest if x[i] < 0 else x[i]


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
        share = max(excess[order[first - 1]], 0.0) / largest
        if share == 0 or share * (1 - floor * (first - 1)) < floor * (total + share):
            break
        first, total = first - 1, total + share
    rest = (1 - floor * first) / total
    for i in range(n):
        x[order[i]] = excess[order[i]] / largest * rest if i >= first else floor
