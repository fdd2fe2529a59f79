"""Merging parts of a sample: greedily, the pair whose union loses least beyond chance.

Ward's method (Journal of the American Statistical Association 58, 1963), with the loss of
log-likelihood in place of squares. A part that is one cloud of rows gains by being cut in two,
too, and the more the more rows and features it has; what it gains so is taken off (derived
here), or large components would be cut while small neighbours are joined.
"""

import numpy as np

from ..._typing import Array
from ..families.merge_costs import Merging, Rest


def merge(parts: Merging, n_parts: int, rest: Rest | None = None) -> Array:
    """Join parts until there are so many; return which are left, in ascending order.

    Where there is a rest a part that is no more than chance is given up to it instead.
    """
    M = len(parts.counts)
    alive, stale = np.ones(M, dtype=bool), np.zeros(M, dtype=bool)
    best, nearest = np.full(M, np.inf), np.zeros(M, dtype=np.intp)

    def look(i: int) -> Array:
        excess = np.where(alive, parts.excess(i), np.inf)
        excess[i] = np.inf
        nearest[i] = excess.argmin()
        best[i], stale[i] = excess[nearest[i]], False
        return excess

    def cheapest() -> int:
        """Return the part whose union with its nearest loses least.

        A part whose nearest is gone may lose more than is noted, never less.
        """
        i = int(best.argmin())
        while stale[i]:
            look(i)
            i = int(best.argmin())
        return i

    def remove(i: int) -> None:
        alive[i], best[i] = False, np.inf
        stale[alive & (nearest == i)] = True

    def given_up() -> int | None:
        """Return a part that the rest has as well, once no two are one cut by chance."""
        if rest is None or best[cheapest()] < 0:
            return None
        excess = np.where(alive, parts.excess_in(rest), np.inf)
        i = int(excess.argmin())
        return i if excess[i] < 0 else None

    for i in range(M):
        look(i)
    for _ in range(M - n_parts):
        lost = given_up()
        if rest is not None and lost is not None:
            rest.count += float(parts.counts[lost])
            remove(lost)
            continue
        i = cheapest()
        j = int(nearest[i])
        parts.join(i, j)
        stale[alive & (nearest == i)] = True
        remove(j)
        excess = look(i)
        closer = alive & (excess < best)
        closer[i] = False
        best[closer], nearest[closer], stale[closer] = excess[closer], i, False
    return np.flatnonzero(alive)
