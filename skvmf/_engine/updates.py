"""How statistics move parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .rows import Array

if TYPE_CHECKING:
    from .mixture import Family, MixtureModel, Params, Statistics


@dataclass(frozen=True)
class ClosedForm:
    """Components that maximize the penalised expected log-likelihood: EM."""

    def __call__(self, family: Family, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return the family's maximum, and which components are broken."""
        return family.maximize(stats, components)

    def reseed(self, family: Family, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row."""
        return family.reseed(components, k, row)


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
