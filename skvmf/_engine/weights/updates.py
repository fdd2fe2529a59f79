"""How statistics move parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contracts.model_parts import Family, Posterior, Prior, Update, WeightUpdate
from ..contracts.statistics import Statistics
from ..data.blocks import Array


def alive_components(stats: Statistics) -> Array:
    """Return which components (K,) have rows, beyond what rounding leaves."""
    alive: Array = stats.counts > 10 * np.finfo(np.float64).eps * stats.counts.sum()
    return alive


@dataclass(frozen=True)
class ClosedForm(Update):
    """Components that maximize the penalised expected log-likelihood: EM."""

    def __call__(self, family: Family, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return the family's maximum, and which components are broken."""
        return family.maximize(stats, components)

    def reseed(self, family: Family, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row."""
        return family.reseed(components, k, row)


@dataclass(frozen=True)
class MapWeights(WeightUpdate):
    """Weights at the mode of their posterior.

    For a Tsallis posterior and a prior that is not flat the mode is only a good guess: the
    old weights stay where new ones would lower the bound (the guard is derived here).
    """

    def __call__(self, posterior: Posterior, prior: Prior, counts: Array, weights: Array) -> Array:
        """Return the weights for the next step."""
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
        """Return the weights for the next step."""
        return weights
