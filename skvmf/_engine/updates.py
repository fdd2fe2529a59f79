"""How statistics move parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .posterior import FenchelYoungPosterior
from .priors import ModifiedDirichlet
from .rows import Array
from .statistics import Statistics


@dataclass(frozen=True)
class ClosedForm:
    """Components that maximize the penalised expected log-likelihood: EM."""

    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return the family's maximum, and which components are broken."""
        better: tuple[Any, Array] = family.maximize(stats, components)
        return better

    def reseed(self, family: Any, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row."""
        return family.reseed(components, k, row)


@dataclass(frozen=True)
class MapWeights:
    """Weights at the mode of their posterior.

    For a Tsallis posterior and a prior that is not flat the mode is only a good guess: the
    old weights stay where new ones would lower the bound (the guard is derived here).
    """

    def __call__(
        self,
        posterior: FenchelYoungPosterior,
        prior: ModifiedDirichlet,
        counts: Array,
        weights: Array,
    ) -> Array:
        """Return the weights for the next step."""
        better = prior.mode(counts)
        exact = prior.flat or not posterior.tsallis
        if exact or not np.array_equal(better > 0, weights > 0):
            return better

        def bound(weights: Array) -> float:
            """Return what of the bound depends on the weights, the shares being given."""
            return posterior.weight_value(counts, weights) + prior.log_density(weights)

        return better if bound(better) >= bound(weights) else weights


@dataclass(frozen=True)
class FixedWeights:
    """Weights that stay as they are."""

    def __call__(
        self,
        posterior: FenchelYoungPosterior,
        prior: ModifiedDirichlet,
        counts: Array,
        weights: Array,
    ) -> Array:
        """Return the weights for the next step."""
        return weights
