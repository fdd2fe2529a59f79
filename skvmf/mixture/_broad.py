"""A broad component that swallows rows of all kinds: the failure of free concentrations."""

import numpy as np

from .._typing import Array
from .._warnings import warn

# Measured: on texts and embeddings the broad component has 2.5 to 6 times the average weight, more
# than twice that of the next, and .15 to .35 of the others' concentration. Among clusters that are
# there, also very unequal ones, the largest has .65 or more.
_TIMES_AVERAGE, _TIMES_NEXT, _OF_OTHERS = 2.5, 2.0, 0.4


def broad_component(weights: Array, concentrations: Array) -> int | None:
    """Return the component that is by far the largest and the broadest, if there is one."""
    active = np.flatnonzero(weights)
    if len(active) < 3:
        return None
    order = active[np.argsort(weights[active])]
    largest, others = int(order[-1]), order[:-1]
    typical = _weighted_median(concentrations[others], weights[others])
    is_large = (
        weights[largest] > _TIMES_AVERAGE * weights[active].mean()
        and weights[largest] > _TIMES_NEXT * weights[others].max()
    )
    least = min(_OF_OTHERS * typical, concentrations[others].min())
    return largest if is_large and concentrations[largest] < least else None


def warn_if_broad(weights: Array, concentrations: Array) -> None:
    """Warn if free concentrations have let one broad component take most rows."""
    broad = broad_component(weights, concentrations)
    if broad is not None:
        warn(
            f"Component {broad} is by far the broadest and holds {weights[broad]:.0%} of the "
            "rows, as happens with free concentrations in many dimensions. Unless there is such "
            "a cluster, use concentration_type='tied' or a larger concentration_prior; if these "
            "rows are outliers, use background=True.",
            UserWarning,
        )


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, cumulative[-1] / 2)])
