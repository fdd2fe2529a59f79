"""Greedy merging: at each step the pair that loses least log-likelihood beyond chance.

This is Ward's method (Journal of the American Statistical Association 58, 1963) with losses of
log-likelihood in place of squares. Cutting one cluster in two gains log-likelihood, too: by
chance, and the more, the more rows and features it has. `chance_gain` is taken off the losses
(derived here), or large clusters would be cut while small neighbours are merged.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, xlogy

from ..._typing import Array
from ..contracts.model_parts import MergeCost


@dataclass
class BackgroundRows:
    """Number of the rows that belong to no part, and their log-density, the same for all."""

    count: float
    log_density: float


def merge_greedily(
    cost: MergeCost, n_parts: int, background: BackgroundRows | None = None
) -> tuple[Array, list[tuple[int, int, float]]]:
    """Merge parts until so many are left.

    Beside a background, a part that gains no more than chance goes to it once no pair loses less
    than chance.

    Returns
    -------
    left : ndarray of shape (n_parts,)
        The numbers of the parts that are left, ascending.
    merges : list of (int, int, float)
        Each merge of a part j into a part i, as (i, j, loss).
    """
    M = len(cost.counts)
    alive, stale = np.ones(M, dtype=bool), np.zeros(M, dtype=bool)
    least, nearest = np.full(M, np.inf), np.zeros(M, dtype=np.intp)
    merges = []

    def update(i: int) -> Array:
        """Find the part that is cheapest to merge with part i; return all excess losses."""
        excess = cost.losses(i) - chance_gain(cost.counts, cost.counts[i], cost.dim)
        excess = np.where(alive, excess, np.inf)
        excess[i] = np.inf
        nearest[i] = excess.argmin()
        least[i], stale[i] = excess[nearest[i]], False
        return excess

    def cheapest() -> int:
        """Return the part that is cheapest to merge with its nearest.

        Where the nearest is gone, merging costs at least what is noted.
        """
        i = int(least.argmin())
        while stale[i]:
            update(i)
            i = int(least.argmin())
        return i

    def remove(i: int) -> None:
        alive[i], least[i] = False, np.inf
        stale[alive & (nearest == i)] = True

    def absorbed() -> int | None:
        """Return the part that the background explains best, if it does and no merge is due."""
        if background is None or least[cheapest()] < 0:
            return None
        excess = np.where(alive, _background_excess(cost, background), np.inf)
        i = int(excess.argmin())
        return i if excess[i] < 0 else None

    for i in range(M):
        update(i)
    for _ in range(M - n_parts):
        part = absorbed()
        if background is not None and part is not None:
            background.count += float(cost.counts[part])
            remove(part)
            continue
        i = cheapest()
        j = int(nearest[i])
        chance = chance_gain(cost.counts[i], cost.counts[j], cost.dim)
        merges.append((i, j, float(least[i] + chance)))
        cost.merge(i, j)
        stale[alive & (nearest == i)] = True
        remove(j)
        excess = update(i)
        closer = alive & (excess < least)
        closer[i] = False
        least[closer], nearest[closer], stale[closer] = excess[closer], i, False
    return np.flatnonzero(alive), merges


def chance_gain(a: Array, b: Array, dim: int) -> Array:
    """Return what the best cut of one spherical cluster of a + b rows gains by chance, in nats.

    Cutting at a quantile of one direction gains n phi(z)^2 / (2 p (1 - p)), for n = a + b and the
    normal density phi at the quantile z of p = a / n; choosing the best of `dim` directions adds
    about sqrt(dim / 2) to its root.
    """
    n = a + b
    p = np.clip(np.minimum(a, b) / n, 1e-12, 0.5)
    z = ndtri(p)
    along = n * np.exp(-(z**2)) / (4 * np.pi * p * (1 - p))
    gain: Array = (np.sqrt(dim / 2) + np.sqrt(along)) ** 2
    return gain


def _background_excess(cost: MergeCost, background: BackgroundRows) -> Array:
    """Return what giving each part (M,) to the background loses, beyond chance.

    Chance is the largest of as many halved chi-squares as there are rows (Laurent and Massart,
    Annals of Statistics 28, 2000, lemma 1): a component that is put anywhere into the background
    gains nothing on average, and one that is fitted there gains so much.
    """
    n, others = cost.counts, background.count
    apart = cost.log_likelihoods() + xlogy(n, n) + xlogy(others, others)
    together = n * background.log_density + xlogy(n + others, n + others)
    n_places = np.log(n.sum() + others)
    excess: Array = apart - together - (np.sqrt(cost.dim / 2) + np.sqrt(n_places)) ** 2
    return excess
