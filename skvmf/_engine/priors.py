"""How proportions are chosen: the prior on the weights."""

from dataclasses import dataclass

from .rows import Array


@dataclass(frozen=True)
class ModifiedDirichlet:
    """The flat prior."""

    def log_density(self, weights: Array) -> float:
        """Return the unnormalised log-density of the weights."""
        return 0.0

    def mode(self, counts: Array) -> Array:
        """Return the weights that maximize sum of counts * log weights + log-density."""
        weights: Array = counts / counts.sum()
        return weights
