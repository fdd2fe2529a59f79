"""Limits on the sizes of components: offsets of log-weights, and labels that keep the limits.

The E-step under limits maximizes the sum over rows of <q, s> and the entropy of q, where s are
log-densities plus log-weights, while the count of each component stays within the limits. Its dual
has no limits: each component has an offset, the price of a place in it, which is subtracted from s
and is 0 where no limit is reached. (Banerjee and Ghosh, "Frequency-sensitive competitive learning
for scalable balanced clustering on high-dimensional hyperspheres", IEEE Transactions on Neural
Networks 15(3), 2004, find such prices for directions row by row.) The dual is solved on the
components with the largest scores of each row, its candidates.
"""

from dataclasses import dataclass

import numpy as np

from ..._kernels.simplex import count_candidates, largest_rows
from ..._typing import Array
from ..families.family import Scores

# Of so many components a row may choose in the dual: a pass over these costs a hundredth of one
# over 1,000 components, and a row outside the limits finds room in one of them.
N_CANDIDATES = 24

# A fit accepts offsets that leave this fraction of the weight of all rows outside the limits: these
# rows move at the end. An ascent stops at a fifth of that, so that the next step of EM does not
# break the limits at once.
TOLERANCE = 0.005
_AIM = 0.2

# Resilient propagation: a step grows while its component stays on one side of its limit, and is
# halved where it comes to the other (Riedmiller and Braun, IEEE International Conference on Neural
# Networks, 1993, whose factors are 1.2 and .5; offsets have far to go). 20 steps are enough for
# 60,000 sentences in 1,000 components, the largest of seven times the mean size; on small cases
# with limits that leave no room, 100 are within .4 % of the best labels.
_GROWTH = 1.3
_SHRINKAGE = 0.5
_MAX_STEPS = 100

# Sums of weights are rounded: limits are kept up to this fraction.
_ROUNDING = 1e-9

_LEAST_SCORE = -1e30  # of a candidate without a density, compared with the best one


@dataclass(frozen=True)
class SizeLimits:
    """The least and the largest weight of the rows of a component, in the unit of the rows."""

    least: float
    most: float
    tolerance: float  # weight of the rows that may be outside before some move

    def outside(self, counts: Array) -> float:
        """Return the weight of rows above and below the limits."""
        above = np.maximum(counts - self.most, 0).sum()
        return float(above + np.maximum(self.least - counts, 0).sum())

    def wider(self, weight: float) -> "SizeLimits":
        """Return limits that are a weight further apart on either side."""
        return SizeLimits(self.least - weight, self.most + weight, self.tolerance)

    def kept(self, sizes: Array) -> bool:
        """Return whether all sizes are within the limits, but for rounding."""
        return self.outside(sizes) <= _ROUNDING * sizes.sum()

    def broken(self, counts: Array) -> bool:
        """Return whether more is outside the limits than what may move at the end."""
        return self.outside(counts) > self.tolerance

    def value(self, offsets: Array) -> float:
        """Return what the Lagrangian adds to the value of the rows: offsets times their limits."""
        return float(np.where(offsets > 0, self.most, self.least) @ offsets)

    def unused(self, counts: Array, offsets: Array) -> float:
        """Return the weight of places that have a price, although there is room."""
        room = np.where(offsets > 0, self.most - counts, counts - self.least)
        return float(np.maximum(room, 0)[offsets != 0].sum())

    def shift(self, offsets: Array, total: float) -> float:
        """Return what to add to all offsets, for the least Lagrangian of rows of a total weight.

        Counts do not change by that, and moves of one offset do not find it. The derivative is
        what limits ask for, the upper ones of positive offsets and the lower ones of others, less
        the total: it rises at each offset.
        """
        n_positive = int(np.count_nonzero(offsets > 0))
        n_not_negative = int(np.count_nonzero(offsets >= 0))
        K = len(offsets)
        places = self.least * K + (self.most - self.least) * np.arange(K + 1)  # by positive ones
        if places[n_positive] <= total <= places[n_not_negative]:
            return 0.0
        n_needed = int(np.clip(np.searchsorted(places, total), 1, K))
        return -float(np.sort(offsets)[K - n_needed])

    def directions(self, counts: Array, offsets: Array) -> Array:
        """Return whether each offset should rise (1), fall (-1) or stay (0)."""
        above = (counts > self.most) | ((offsets < 0) & (counts > self.least))
        below = (counts < self.least) | ((offsets > 0) & (counts < self.most))
        return above.astype(int) - below.astype(int)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The components with the largest scores of each row."""

    components: Array  # (n, m) int32
    scores: Array  # log-densities plus log-weights, less a reference of the row, (n, m) float32
    weights: Array  # of the rows, (n,)
    n_components: int

    @classmethod
    def best(
        cls, scores: Scores, offsets: Array, weights: Array, labels: Array | None = None
    ) -> "Candidates":
        """Return the best components of some rows by scores (n, K), which are less offsets.

        The reference of a row is its largest score, or that of its label, if labels are given.
        """
        products = scores.unnormalized
        n, K = products.shape
        bias = (scores.bias - scores.bias.max()).astype(products.dtype)  # float32 keeps differences
        slopes = np.ones(n, products.dtype)
        if scores.slopes is not None:
            slopes = scores.slopes.astype(products.dtype)
        components = np.empty((n, min(N_CANDIDATES, K)), dtype=np.int32)
        best = np.empty(components.shape, dtype=products.dtype)
        largest_rows(products, slopes, bias, components, best)
        best += offsets.astype(best.dtype)[components]
        reference = best.max(axis=1)
        if labels is not None:
            own = products[np.arange(n), labels]
            reference = slopes * own + bias[labels] + offsets[labels]
        with np.errstate(invalid="ignore"):  # of rows without a density anywhere
            best -= reference[:, None]
        best = np.nan_to_num(np.maximum(best, _LEAST_SCORE), nan=0.0)
        return cls(components, best.astype(np.float32), weights, K)

    def counts(self, offsets: Array, temperature: float) -> Array:
        """Return the weighted counts of the components (K,), hard at a temperature of 0."""
        counts = np.zeros(self.n_components)
        single = offsets.astype(np.float32)
        count_candidates(
            self.components, self.scores, self.weights, single, float(temperature), counts
        )
        return counts

    def labels(self, offsets: Array) -> Array:
        """Return the component with the largest score of each row, (n,)."""
        scores = self.scores - offsets.astype(np.float32)[self.components]
        best = scores.argmax(axis=1)[:, None]
        return np.take_along_axis(self.components, best, axis=1)[:, 0].astype(np.int64)

    def scores_of(self, labels: Array) -> Array:
        """Return the score of each row's component; -inf where that is no candidate."""
        own = self.components == labels[:, None]
        return np.where(own, self.scores, -np.inf).max(axis=1)

    @property
    def reach(self) -> float:
        """How far offsets may move: beyond, others than the candidates may be the best of a row."""
        if self.scores.shape[1] == self.n_components:
            return np.inf
        spreads = self.scores.max(axis=1) - self.scores.min(axis=1)
        return float(np.median(spreads))

    @property
    def typical_gap(self) -> float:
        """The median gap between the two largest scores of a row."""
        if self.scores.shape[1] == 1:
            return 0.0
        second = np.partition(self.scores, -2, axis=1)[:, -2]
        return float(np.median(-second))


def ascend(
    candidates: Candidates,
    limits: SizeLimits,
    offsets: Array,
    temperature: float,
    exact: bool = False,
) -> Array:
    """Return offsets (K,) with which counts are within the limits, or the best that are found.

    An offset rises where a count is above its limit, falls where it is below, and goes no further
    than 0 where no limit is reached. None moves further than the candidates reach. `exact` goes on
    while that gains.
    """
    total = float(candidates.weights.sum())
    lowest = offsets - candidates.reach
    highest = offsets + candidates.reach
    # First steps are a part of a gap, as one that is too short grows fast. Where all scores are
    # equal any length will do.
    gap = max(candidates.typical_gap, temperature, 1e-3)
    steps = np.full(len(offsets), gap / 4)
    last = np.zeros(len(offsets), dtype=int)
    aim = 0.0 if exact else _AIM * limits.tolerance
    best_rank = np.inf, np.inf
    best = offsets
    for _ in range(_MAX_STEPS):
        shift = limits.shift(offsets, total)
        offsets = offsets + shift
        lowest += shift
        highest += shift
        counts = candidates.counts(offsets, temperature)
        outside = max(limits.outside(counts), _AIM * limits.tolerance)
        # For hard counts within the limits this is what is lost against the best.
        rank = outside, abs(limits.value(offsets) - float(offsets @ counts))
        if rank < best_rank:
            best_rank = rank
            best = offsets
        if limits.outside(counts) <= aim and limits.unused(counts, offsets) <= 2 * aim:
            break
        directions = limits.directions(counts, offsets)
        turns = directions * last
        steps = steps * np.where(turns > 0, _GROWTH, np.where(turns < 0, _SHRINKAGE, 1.0))
        moved = offsets + directions * steps
        offsets = np.clip(np.where(moved * offsets < 0, 0.0, moved), lowest, highest)
        last = directions
    least_outside, _ = best_rank
    if least_outside <= limits.tolerance:
        return best
    return offsets  # the farthest: from there, other components are candidates


def move_rows(labels: Array, own: Array, candidates: Candidates, limits: SizeLimits) -> Array:
    """Return labels (n,) after rows have moved until components keep the limits.

    Rows leave components above the limit for candidates with room, and enter those below it from
    others that can spare them, in the order of what a move loses. A row stays where no candidate
    has room. `own` (n,) are the scores of the labels.
    """
    weights = candidates.weights
    sizes = np.bincount(labels, weights, candidates.n_components)
    most = limits.most * (1 + _ROUNDING)
    least = limits.least * (1 - _ROUNDING)
    leaves = (sizes > most)[labels][:, None] & (sizes < most)[candidates.components]
    enters = (sizes < least)[candidates.components]
    is_move = (candidates.components != labels[:, None]) & (weights > 0)[:, None]
    rows, places = np.nonzero((leaves | enters) & is_move)
    losses = own[rows] - candidates.scores[rows, places]
    order = np.argsort(losses, kind="stable")
    targets = candidates.components[rows, places][order].tolist()
    labels = labels.copy()
    has_moved = np.zeros(len(labels), dtype=bool)
    for row, target in zip(rows[order].tolist(), targets, strict=True):
        source = labels[row]
        weight = weights[row]
        helps = sizes[source] > most or sizes[target] < least
        has_room = sizes[source] - weight >= least and sizes[target] + weight <= most
        if helps and has_room and not has_moved[row]:
            labels[row] = target
            has_moved[row] = True
            sizes[source] -= weight
            sizes[target] += weight
    return labels
