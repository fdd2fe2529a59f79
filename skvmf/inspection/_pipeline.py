"""Pipelines whose last step is a mixture: what the mixture sees."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def split_pipeline(estimator: Any, X: Any) -> tuple[Any, Any, list[str] | None]:
    """Return the last step of a pipeline, rows as it sees them, and names of their features.

    Any other estimator is returned as it is, with its rows and without names.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, X, None
    before = estimator[:-1]
    if len(before.steps) == 0:
        return estimator[-1], X, None
    check_is_fitted(before)
    names = None
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):
        # A step, such as a function, need not know what its columns are.
        names = None
    if X is not None:
        X = before.transform(X)
    return estimator[-1], X, names
