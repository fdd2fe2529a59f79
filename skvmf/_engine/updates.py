"""How statistics move parameters."""

from dataclasses import dataclass

import numpy as np

from .mixture import MixtureModel, Params, Statistics
from .rows import Array


@dataclass(frozen=True)
class MapWeights:
    """Weights at the mode of their posterior.

    For a Tsallis posterior and a prior that is not flat the mode is only a good guess: the
    old weights stay where new ones would lower the bound (the guard is derived here).
    """

    def __call__(self, model: MixtureModel, stats: Statistics, params: Params) -> Array:
        """Return the weights for the next step."""
        weights = model.weight_prior.mode(stats.counts)
        exact = model.weight_prior.flat or not model.posterior.tsallis
        if exact or not np.array_equal(weights > 0, params.weights > 0):
            return weights
        if self._bound(model, stats, weights) < self._bound(model, stats, params.weights):
            return params.weights
        return weights

    @staticmethod
    def _bound(model: MixtureModel, stats: Statistics, weights: Array) -> float:
        """Return what of the bound depends on the weights, the shares being given."""
        fit = model.posterior.weight_value(stats.counts, weights)
        return fit + model.weight_prior.log_density(weights)


@dataclass(frozen=True)
class FixedWeights:
    """Weights that stay as they are."""

    def __call__(self, model: MixtureModel, stats: Statistics, params: Params) -> Array:
        """Return the weights for the next step."""
        return params.weights
