"""Components that maximize the expected log-likelihood in closed form."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Family, Update
from ..contracts.statistics import Statistics


def alive_components(stats: Statistics) -> Array:
    """Return which components (K,) have rows: counts above rounding."""
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
