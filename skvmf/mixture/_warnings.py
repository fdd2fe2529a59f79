"""Warnings after a fit: what its result says about the rows or the parameters."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._engine.rows.sources import RowSource
from .._engine.search.kmeans import count_distinct
from .._typing import Array, warn


def warn_if_unfinished(mixture: Any, n_starts: int) -> None:
    """Warn if the best of so many starts has ended before it converged."""
    if mixture.converged_ or mixture.max_iter == 0:
        return
    subject = "The fit" if n_starts == 1 else f"The best of {n_starts} starts"
    warn(
        f"{subject} did not reach tol={mixture.tol} within max_iter={mixture.max_iter} "
        "iterations. Increase max_iter or tol, or check for degenerate data.",
        ConvergenceWarning,
    )


def has_empty_components(mixture: Any) -> bool:
    """Return whether no row has the label of some component, or a component has left."""
    if not isinstance(mixture.labels_, np.ndarray):  # those of a Dask array are not computed here
        return not mixture.weights_.all()
    labels = mixture.labels_[mixture.labels_ >= 0]
    return not np.bincount(labels, minlength=len(mixture.weights_)).all()


def warn_of_empty_components(mixture: Any, rows: RowSource, n_first: int) -> None:
    """Warn if rows are too few for the components, or `n_first` before the fit were more.

    A prior below 1 removes components on purpose.
    """
    in_memory = isinstance(mixture.labels_, np.ndarray)
    if in_memory and _warn_if_few_distinct(rows, len(mixture.weights_)):
        return
    n_left = np.count_nonzero(mixture.weights_)
    removes = np.any(mixture._fitted.mixture.weight_prior.alpha < 1)
    if n_left < n_first and not removes and mixture.max_iter > 0:
        warn(
            f"The fit ended with {n_left} of {n_first} components: the others have lost their rows "
            "twice, or theirs were too few to estimate them. Use fewer components, or another "
            "start.",
            ConvergenceWarning,
        )


# Rows that are drawn to count distinct ones: at least a thousand, of which few cost nothing, and
# ten for each component, so that as many distinct rows as components are seen if there are.
_MIN_DRAWN = 1000
_DRAWN_PER_COMPONENT = 10


def _warn_if_few_distinct(rows: RowSource, n_components: int) -> bool:
    """Warn, and say so, if there are fewer distinct rows than components in a sample."""
    n_drawn = min(rows.n_rows, max(_MIN_DRAWN, _DRAWN_PER_COMPONENT * n_components))
    numbers, weights = rows.draw(n_drawn, seed=0)
    n_distinct = count_distinct(rows.subset(numbers, weights, width=1))
    if n_distinct < n_components:
        warn(
            f"There are fewer distinct rows ({n_distinct} among {len(numbers)}) than "
            f"n_components={n_components}: components are empty or equal. Use fewer components, "
            "or check the data for duplicates.",
            ConvergenceWarning,
        )
    return n_distinct < n_components


# The mean of the rows' largest responsibilities should go this far from the largest weight to one.
# Measured: .05 and less if labels mean nothing any more, .25 and more if they still do.
_NEARLY_UNIFORM = 0.05


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
_TIMES_AVERAGE_WEIGHT = 2.5
_TIMES_NEXT_WEIGHT = 2.0
_PART_OF_TYPICAL_CONCENTRATION = 0.4
_MIN_COMPONENTS = 3  # with two, one is always the broader


def warn_if_broad(weights: Array, concentrations: Array) -> None:
    """Warn if free concentrations have let one broad component take most rows."""
    active = np.flatnonzero(weights)
    if len(active) < _MIN_COMPONENTS:
        return
    order = active[np.argsort(weights[active])]
    largest = int(order[-1])
    others = order[:-1]
    by_concentration = others[np.argsort(concentrations[others])]
    cumulative = np.cumsum(weights[by_concentration])  # the weighted median is typical
    typical = by_concentration[np.searchsorted(cumulative, cumulative[-1] / 2)]
    is_large = (
        weights[largest] > _TIMES_AVERAGE_WEIGHT * weights[active].mean()
        and weights[largest] > _TIMES_NEXT_WEIGHT * weights[others].max()
    )
    is_broad = (
        concentrations[largest] < _PART_OF_TYPICAL_CONCENTRATION * concentrations[typical]
        and concentrations[largest] < concentrations[others].min()
    )
    if is_large and is_broad:
        warn(
            f"Component {largest} is by far the broadest and holds {weights[largest]:.0%} of the "
            "rows, as happens with free concentrations in many dimensions. Unless there is such "
            "a cluster, use concentration_type='tied' or a larger concentration_prior; if these "
            "rows are outliers, use background=True.",
            UserWarning,
        )
