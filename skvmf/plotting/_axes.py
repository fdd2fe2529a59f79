"""Axes, labels and colours; matplotlib is imported on use."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import Array


def get_axes(ax: Any, projection: str | None = None) -> Any:
    """Return the axes given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skvmf.plotting needs matplotlib. Install it with: pip install 'skvmf[plotting]'"
        ) from error
    if ax is not None:
        return ax
    return plt.subplots(subplot_kw={"projection": projection})[1]


def feature_names(estimator: Any, features: Sequence[int]) -> list[str]:
    """Return names for some features of a fitted estimator."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"feature {i}" if names is None else names[i] for i in features]


def in_memory(X: Any) -> Any:
    """Return rows or labels in memory: those of a Dask array are made now."""
    return X.compute() if hasattr(X, "__dask_graph__") and hasattr(X, "compute") else X


def row_colours(labels: Array) -> list[str]:
    """Return a colour for each row: that of its component or class, and grey for outliers."""
    if labels.dtype.kind not in "biuf":  # names of classes
        labels = np.unique(labels, return_inverse=True)[1]
    return ["0.7" if label < 0 else f"C{label % 10}" for label in labels]
