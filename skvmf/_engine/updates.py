"""How statistics move parameters."""

from dataclasses import dataclass

from .mixture import MixtureModel, Params, Statistics
from .rows import Array


@dataclass(frozen=True)
class MapWeights:
    """Weights at the mode of their posterior."""

    def __call__(self, model: MixtureModel, stats: Statistics, params: Params) -> Array:
        """Return the weights for the next step."""
        return model.weight_prior.mode(stats.counts)


@dataclass(frozen=True)
class FixedWeights:
    """Weights that stay as they are."""

    def __call__(self, model: MixtureModel, stats: Statistics, params: Params) -> Array:
        """Return the weights for the next step."""
        return params.weights
