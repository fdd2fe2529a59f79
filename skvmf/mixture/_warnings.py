"""Warnings after a fit: what its result says about the rows or the parameters."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._engine.rows.sources import RowSource
from .._engine.search.partitions import count_distinct
from .._typing import Array, warn

_DISTINCT_SAMPLE = 1000  # rows among which distinct ones are counted


def warn_if_few_distinct(rows: RowSource, labels: Array, n_components: int) -> bool:
    """Warn, and say so, if there are fewer distinct rows than components in a sample."""
    n_rows_each = np.bincount(labels[labels >= 0], minlength=n_components)
    if n_rows_each.all():
        return False
    drawn = rows.draw(min(rows.n_rows, max(_DISTINCT_SAMPLE, 10 * n_components)), seed=0)
    n_distinct = count_distinct(rows.subset(*drawn, width=1))
    if n_distinct < n_components:
        warn(
            f"There are fewer distinct rows ({n_distinct} among {len(drawn[0])}) than "
            f"n_components={n_components}: components are empty or equal. Use fewer components, "
            "or check the data for duplicates.",
            ConvergenceWarning,
        )
    return n_distinct < n_components


def warn_if_fewer(n_left: int, n_first: int) -> None:
    """Warn if components that a fit began with have left, though no prior removes them."""
    if n_left < n_first:
        warn(
            f"The fit ended with {n_left} of {n_first} components: the others have lost their rows "
            "twice, or theirs were too few to estimate them. Use fewer components, or another "
            "start.",
            ConvergenceWarning,
        )


# The mean of the rows' largest responsibilities should go this far from the largest weight to one.
# Measured: .05 and less if labels mean nothing any more, .25 and more if they still do.
_NEARLY_UNIFORM = 0.05


def warn_if_unfinished(mixture: Any, warm: bool) -> None:
    """Warn if a fit has ended before it converged."""
    if not mixture.converged_ and mixture.max_iter > 0:
        n_starts = 1 if warm else mixture.n_init
        best = "The fit" if n_starts == 1 else f"The best of {n_starts} starts"
        warn(
            f"{best} did not reach tol={mixture.tol} within max_iter={mixture.max_iter} "
            "iterations. Increase max_iter or tol, or check for degenerate data.",
            ConvergenceWarning,
        )


def warn_if_uniform(temperature: float, probabilities: Array, weights: Array) -> None:
    """Warn if the rows' largest responsibilities are nearly the weights."""
    largest = weights.max()
    if float(probabilities.mean()) - largest < _NEARLY_UNIFORM * (1 - largest):
        warn(
            f"temperature={temperature} is far too large: all rows have nearly the same "
            "responsibilities, and all components are nearly equal. Use a lower one; 1 is low "
            "enough for any number of features.",
            UserWarning,
        )


# Measured: on texts and embeddings the broad component has 2.5 to 6 times the average weight, more
# than twice that of the next, and .15 to .35 of the others' concentration. Among clusters that are
# there, also very unequal ones, the largest has .65 or more.
_TIMES_AVERAGE, _TIMES_NEXT, _OF_OTHERS = 2.5, 2.0, 0.4


def warn_if_broad(weights: Array, concentrations: Array) -> None:
    """Warn if free concentrations have let one broad component take most rows."""
    active = np.flatnonzero(weights)
    if len(active) < 3:
        return
    order = active[np.argsort(weights[active])]
    largest, others = int(order[-1]), order[:-1]
    by_concentration = others[np.argsort(concentrations[others])]
    cumulative = np.cumsum(weights[by_concentration])  # the weighted median is typical
    middle = by_concentration[np.searchsorted(cumulative, cumulative[-1] / 2)]
    is_large = (
        weights[largest] > _TIMES_AVERAGE * weights[active].mean()
        and weights[largest] > _TIMES_NEXT * weights[others].max()
    )
    least = min(_OF_OTHERS * concentrations[middle], concentrations[others].min())
    if is_large and concentrations[largest] < least:
        warn(
            f"Component {largest} is by far the broadest and holds {weights[largest]:.0%} of the "
            "rows, as happens with free concentrations in many dimensions. Unless there is such "
            "a cluster, use concentration_type='tied' or a larger concentration_prior; if these "
            "rows are outliers, use background=True.",
            UserWarning,
        )
