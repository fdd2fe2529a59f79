"""The prior that "Add a prior" builds: no component has more than a given weight."""

from dataclasses import dataclass

import numpy as np

from skvmf.families import ModifiedDirichlet


@dataclass(frozen=True)
class CappedWeights(ModifiedDirichlet):
    """Weights of at most `cap`, all of them equally likely.

    The cap is the same share for each where fewer than 1 / cap components are left.
    """

    cap: float = 1.0

    @property
    def flat(self):
        return self.cap >= 1

    def log_density(self, weights):
        allowed = self._cap_of(weights) * (1 + 1e-9)
        return 0.0 if weights.max() <= allowed else -np.inf

    def clip(self, weights):
        return self.mode(weights)

    def mode(self, counts):
        cap, weights = self._cap_of(counts), counts / counts.sum()
        held = np.zeros(len(counts), dtype=bool)
        while (weights > cap * (1 + 1e-12)).any():
            held |= weights > cap
            left = 1 - cap * held.sum()  # what the others share in proportion to their counts
            weights = np.where(held, cap, left * counts / counts[~held].sum())
        return weights

    def _cap_of(self, weights):
        return max(self.cap, 1 / np.count_nonzero(weights))
