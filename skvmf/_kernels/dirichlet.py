"""The mode of the modified Dirichlet, by the two algorithms of Tu.

Both want at least one alpha above 1 and n * floor < 1. Then the mode is unique:
x = max(floor, (alpha - 1) / m), with m such that x sums to 1.

References
----------
Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger
sparsity", section 2.1.
"""

from ._jit import kernel


@kernel
def mode_by_rounds(alpha, floor, x):
    """Algorithm 1: share out in proportion to alpha - 1; hold on the floor what falls below.

    Entries of x are negative while they are free. The largest alpha is never held: in exact
    arithmetic it cannot fall below the floor.
    """
    largest, n_held = 0, 0
    for i in range(x.shape[0]):
        largest = i if alpha[i] > alpha[largest] else largest
        x[i] = floor if alpha[i] <= 1 else -1.0
        n_held += alpha[i] <= 1
    previous = -1
    while n_held > previous:  # it rises, to n at most
        previous, total = n_held, 0.0
        for i in range(x.shape[0]):
            total += alpha[i] - 1 if x[i] < 0 else 0.0
        rest = (1 - floor * previous) / total
        for i in range(x.shape[0]):
            if x[i] < 0 and (alpha[i] - 1) * rest < floor and i != largest:
                x[i] = floor
                n_held += 1
    for i in range(x.shape[0]):
        x[i] = (alpha[i] - 1) * rest if x[i] < 0 else x[i]


@kernel
def mode_by_sorting(alpha, order, floor, x):
    """Algorithm 2, corrected: free the entries from the largest down while they pass the floor.

    As printed, the algorithm fails wherever two entries are free or an alpha below 1 meets an
    alpha above. Here entry i of the ascending `order` is free where
    (alpha_i - 1) (1 - i floor) >= floor sum_(j >= i) (alpha_j - 1), alpha_i > 1.
    """
    n = x.shape[0]
    first, total = n - 1, alpha[order[n - 1]] - 1
    while first > 0:  # it falls
        excess = alpha[order[first - 1]] - 1
        if excess <= 0 or excess * (1 - floor * (first - 1)) < floor * (total + excess):
            break
        first, total = first - 1, total + excess
    rest = (1 - floor * first) / total
    for i in range(n):
        x[order[i]] = (alpha[order[i]] - 1) * rest if i >= first else floor
