"""The prior on the weights of a mixture."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._typing import Array
from ...distributions.modified_dirichlet import checked_sizes, modes


@dataclass(frozen=True, eq=False)
class ModifiedDirichlet:
    """The modified Dirichlet on the weights; flat if alpha is 1 and the floor is zero.

    A weight of zero marks a pruned component: it has left the mixture, and counts in the density as
    if it rested on the floor, so that pruning does not change what is compared. See Tu, "Modified
    Dirichlet distribution", EMNLP 2016, section 2.

    Parameters
    ----------
    alpha : float or ndarray of shape (K,), default=1.0
        Any real, up to 1e300 in size: beyond, log-densities overflow.
    floor : float, default=0.0
        The least weight in the mixture; positive where an alpha is below 1.
    """

    alpha: float | Array = 1.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        checked_sizes(np.asarray(self.alpha), "weight_concentration_prior")

    @property
    def flat(self) -> bool:
        """Whether weights are simply proportions."""
        return self.floor == 0 and self._uniform

    @cached_property
    def _uniform(self) -> bool:
        """Whether all weights are as likely: every alpha is 1."""
        return bool(np.all(self.alpha == 1))

    def log_density(self, weights: Array) -> float:
        """Return the unnormalised log-density of the weights."""
        if self._uniform:
            return 0.0
        is_counted = (weights > 0) | (self.floor > 0)
        counted = np.where(is_counted, np.maximum(weights, self.floor), 1.0)
        return float(np.sum((self.alpha - 1) * np.log(counted)))

    def clip(self, weights: Array) -> Array:
        """Return the weights raised to the floor, except pruned ones; as they are if none is below.

        Dividing them by their sum again would round them, and a fit that continues would begin
        elsewhere.
        """
        if np.all((weights >= self.floor) | (weights == 0)):
            return weights
        return ModifiedDirichlet(1.0, self.floor).mode(weights)

    def mode(self, counts: Array) -> Array:
        """Return weights that maximize counts @ log(weights) + log-density: 0 for a count of 0."""
        if self.flat:
            return counts / counts.sum()
        has_rows = counts > 0
        alpha = np.broadcast_to(self.alpha, counts.shape)[has_rows]
        weights = np.zeros(len(counts))
        weights[has_rows] = modes(alpha - 1 + counts[has_rows], self.floor)
        return weights


FLAT = ModifiedDirichlet()
