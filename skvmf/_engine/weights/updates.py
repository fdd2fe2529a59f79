"""How the responsibilities of components become mixture weights."""

from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Posterior, Prior, WeightUpdate


@dataclass(frozen=True)
class MapWeights(WeightUpdate):
    """Weights at the mode of their posterior.

    For a Tsallis posterior and a prior that is not flat the mode is only a good guess: the
    old weights stay where new ones would lower the bound (the guard is derived here).
    """

    def __call__(self, posterior: Posterior, prior: Prior, counts: Array, weights: Array) -> Array:
        better = prior.mode(counts)
        old = posterior.weight_value(counts, weights)
        if old is None or prior.flat or not np.array_equal(better > 0, weights > 0):
            return better
        new = posterior.weight_value(counts, better)
        assert new is not None
        gained = new + prior.log_density(better) >= old + prior.log_density(weights)
        return better if gained else weights


@dataclass(frozen=True)
class FixedWeights(WeightUpdate):
    """Weights that stay as they are."""

    def __call__(self, posterior: Posterior, prior: Prior, counts: Array, weights: Array) -> Array:
        return weights
