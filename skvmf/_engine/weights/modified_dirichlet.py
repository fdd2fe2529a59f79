"""The modified Dirichlet prior on the weights."""

from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ...distributions.modified_dirichlet._mode import checked_sizes, modes
from ..contracts.model_parts import Prior


@dataclass(frozen=True)
class ModifiedDirichlet(Prior):
    """The modified Dirichlet on the weights; flat if alpha is 1 and the floor is zero.

    A weight of zero marks a pruned component: it has left the mixture, and counts in the
    density as if it rested on the floor, so that pruning does not change what is compared. See Tu,
    "Modified Dirichlet distribution: allowing negative parameters to induce stronger sparsity",
    section 2.
    """

    alpha: float | Array = 1.0  # any real, up to 1e300 in size: beyond, log-densities overflow
    floor: float = 0.0  # least weight in the mixture; positive where an alpha is below 1

    def __post_init__(self) -> None:
        checked_sizes(np.asarray(self.alpha), "weight_concentration_prior")

    @property
    def flat(self) -> bool:
        return self.floor == 0 and bool(np.all(self.alpha == 1))

    def log_density(self, weights: Array) -> float:
        if np.all(self.alpha == 1):
            return 0.0
        alive = (weights > 0) | (self.floor > 0)
        held = np.where(alive, np.maximum(weights, self.floor), 1.0)
        return float(np.sum((self.alpha - 1) * np.log(held)))

    def lift(self, weights: Array) -> Array:
        """Return the weights raised to the floor, except pruned ones.

        If none is below, they are returned as they are: to divide them by their sum again would
        round them, and a fit that continues would begin with other weights.
        """
        if np.all((weights >= self.floor) | (weights == 0)):
            return weights
        return ModifiedDirichlet(1.0, self.floor).mode(weights)

    def mode(self, counts: Array) -> Array:
        """Return the weights that maximize sum of counts * log weights + log-density.

        A component without counts is pruned: its weight is zero.
        """
        if self.flat:
            return counts / counts.sum()
        alive = counts > 0
        alpha = np.broadcast_to(self.alpha, counts.shape)[alive]
        weights = np.zeros(len(counts))
        weights[alive] = modes(alpha - 1 + counts[alive], self.floor)
        return weights
