"""Greedy merging: at each step the pair that loses least log-likelihood beyond chance.

This is Ward's method (Journal of the American Statistical Association 58, 1963) with losses of
log-likelihood in place of squares. Cutting one cluster in two gains log-likelihood, too: by
chance, and the more, the more rows and features it has. `chance_gain` is taken off the losses
(derived here), or large clusters would be cut while small neighbours are merged.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri, xlogy

from ..._typing import Array
from ..contracts.model_parts import MergeCost
from ..families.background import NO_BACKGROUND, Background

_PLACES = 2**14  # per unit of the root of p


@dataclass
class OtherRows:
    """The number of rows that belong to no part, and the background that they belong to."""

    count: float = 0.0
    background: Background = NO_BACKGROUND

    def excess(self, cost: MergeCost) -> Array:
        """Return what giving each part (M,) to the background loses, beyond chance.

        Chance is the largest of as many halved chi-squares as there are rows (Laurent and
        Massart, Annals of Statistics 28, 2000, lemma 1): a component that is put anywhere into
        the background gains nothing on average, and one that is fitted there gains so much.
        """
        excess = np.full(len(cost.counts), np.inf)
        for log_density in self.background.log_densities:
            n, others = cost.counts, self.count
            apart = cost.log_likelihoods() + xlogy(n, n) + xlogy(others, others)
            together = n * log_density + xlogy(n + others, n + others)
            n_places = np.log(n.sum() + others)
            excess = apart - together - (np.sqrt(cost.dim / 2) + np.sqrt(n_places)) ** 2
        return excess


_NO_ROWS = OtherRows()


def merge_greedily(
    cost: MergeCost, n_parts: int, others: OtherRows = _NO_ROWS
) -> tuple[Array, list[tuple[int, int, float]]]:
    """Merge parts until so many are left.

    Once no pair loses less than chance, a part that gains no more than chance is added to
    `others`. Returns the numbers of the parts that are left, ascending, and each merge of a part j
    into a part i as (i, j, loss).
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

        If the nearest is gone, merging costs at least what is noted.
        """
        i = int(least.argmin())
        while stale[i]:
            update(i)
            i = int(least.argmin())
        return i

    def remove(i: int) -> None:
        alive[i], least[i] = False, np.inf
        stale[alive & (nearest == i)] = True

    for i in range(M):
        update(i)
    for _ in range(M - n_parts):
        i = cheapest()
        if least[i] >= 0:
            excess = np.where(alive, others.excess(cost), np.inf)
            part = int(excess.argmin())
            if excess[part] < 0:
                others.count += float(cost.counts[part])
                remove(part)
                continue
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
    about sqrt(dim / 2) to its root. Quantiles take long: roots of gains are interpolated.
    """
    n = a + b
    roots, steps = _roots_of_gains()
    places = np.sqrt(np.minimum(a, b) / n) * _PLACES
    below = np.asarray(places).astype(np.intp)
    return (np.sqrt(dim / 2) + np.sqrt(n) * (roots[below] + (places - below) * steps[below])) ** 2


@cache
def _roots_of_gains() -> tuple[Array, Array]:
    """Return the roots of phi(z)^2 / (2 p (1 - p)) for p up to a half, and their differences."""
    p = (np.arange(int(_PLACES * np.sqrt(0.5)) + 3) / _PLACES) ** 2
    p = np.clip(p, 1e-12, 0.5)
    roots = np.exp(-0.5 * ndtri(p) ** 2) / np.sqrt(4 * np.pi * p * (1 - p))
    return roots, np.diff(roots)
