"""Other components than a fit has: one more for a batch of a stream, and other numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._engine.contracts import Params, Statistics
from .._engine.em import chosen_statistics
from .._engine.model import FittedMixture
from .._engine.rows import RowSource
from .._typing import Array
from ._validation import check_stream_continues


def continued_stream(
    mixture: Any, rows: RowSource, memory: Statistics | None, weight_seen: float
) -> tuple[FittedMixture, Statistics | None]:
    """Return the fit that a batch continues, and its memory; the batch may add a component.

    Raises `n_components` of the mixture with it.
    """
    fitted = mixture._fitted
    check_stream_continues("n_components", fitted.n_components, mixture.n_components)
    check_stream_continues("background", len(fitted.background) > 0, mixture.background)
    K = fitted.n_components
    if mixture.grow is None or K >= mixture.grow or rows.n_rows <= K or rows.total_weight == 0:
        return fitted, memory
    if {"weights", "means"} & set(mixture.fixed):
        raise ValueError(
            f"fixed={mixture.fixed!r} leaves new components no place: change it, or leave out grow."
        )
    larger = mixture._lean(fitted)
    larger.n_components, larger.init_params = K + 1, "merging"
    spec = larger._assembled(larger._family_on(rows, weight_seen), fitted.background)
    rng = check_random_state(mixture.random_state)
    grown = larger._start(rows).newcomer(spec, fitted, rows, rng)
    if grown is None:
        return fitted, memory
    mixture.n_components = K + 1
    if memory is not None:
        memory = chosen_statistics(fitted.family, memory, np.append(np.arange(K), -1))
    return grown, memory


def renumbered(mixture: Any, numbers: Array) -> Any:
    """Return a mixture of some components of another, by their numbers; -1 is a pruned one."""
    if mixture._constraint().order(mixture._fitted.params.components) is not None:
        raise ValueError(f"{type(mixture).__name__} sorts its components: they keep no numbers.")
    fitted, memory, kept = mixture._fitted, mixture._memory, numbers >= 0
    rest, chosen = fitted.params.weights[fitted.n_components :], np.where(kept, numbers, 0)
    weights = np.append(fitted.weights[chosen] * kept, rest)
    components = fitted.family.chosen(fitted.params.components, chosen)
    if memory is not None:
        memory = chosen_statistics(fitted.family, memory, numbers)
    params = Params.first(weights, components).pruned()
    result = mixture.__with_fit__(replace(fitted, params=params), memory)
    prior = np.asarray(mixture.weight_concentration_prior)
    if prior.ndim > 0:  # each stays with its component; one that is gone gets any
        result.weight_concentration_prior = prior[chosen]
    return result
