"""What is refused before a fit: rows and parameters that do not go together."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._engine.data.base import RowSource
from .._engine.data.rows import MAX_MAGNITUDE
from .._engine.em.fitted import FittedMixture
from .._typing import Array
from .._warnings import warn

_DISTINCT_SAMPLE = 1000  # rows among which distinct ones are counted


def check_enough_rows(rows: RowSource, n_components: int, *, first_batch: bool = False) -> None:
    """Refuse rows that cannot be fitted with any parameters."""
    advice = "use fewer components"
    if first_batch:
        advice = (
            "partial_fit finds its first components in the first batch, which should have about "
            "100 rows per component"
        )
    if rows.n_rows < n_components:
        raise ValueError(
            f"Expected n_samples >= n_components but got n_components = {n_components},"
            f" n_samples = {rows.n_rows}: {advice}."
        )
    if rows.total_weight == 0:
        raise ValueError(
            "All rows with positive weight are zero: a zero row has no direction, so "
            "there is nothing to fit. Remove empty rows or check the preprocessing."
        )


def warn_if_few_distinct(rows: RowSource, labels: Array, n_components: int) -> None:
    """Warn if there are fewer distinct rows than components, as far as a sample tells."""
    n_rows_each = np.bincount(labels[labels >= 0], minlength=n_components)
    if n_rows_each.all():
        return
    indices, _ = rows.draw(min(rows.n_rows, max(_DISTINCT_SAMPLE, 10 * n_components)), seed=0)
    n_distinct = len(np.unique(rows.take(indices), axis=0))
    if n_distinct < n_components:
        warn(
            f"There are fewer distinct rows ({n_distinct} among {len(indices)}) than "
            f"n_components={n_components}: components are empty or equal. Use fewer components, "
            "or check the data for duplicates.",
            ConvergenceWarning,
        )


def check_warm_start(fitted: FittedMixture, n_components: int) -> None:
    """Refuse to continue from a fit with another number of components."""
    if fitted.n_components != n_components:
        raise ValueError(
            f"warm_start: the fitted mixture has {fitted.n_components} components, "
            f"n_components is {n_components}. Set warm_start=False to start from scratch."
        )


def check_stream_continues(name: str, before: object, now: object) -> None:
    """Refuse a parameter, given by name, that a stream cannot change."""
    if now != before:
        raise ValueError(
            f"partial_fit continues with {name}={before}, and {name} is {now} now: set it "
            "back, or start from scratch with a clone of the mixture."
        )


def refuse_overflow(largest: float, holder: str) -> None:
    """Refuse rows or means of such a magnitude that their squares overflow."""
    if largest > MAX_MAGNITUDE:
        raise ValueError(
            f"{holder} values up to {largest:.3g}, whose squares overflow. Rescale "
            "the features, for example with sklearn.preprocessing.StandardScaler."
        )
