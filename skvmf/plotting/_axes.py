"""Axes, labels and colours; matplotlib is imported on use."""

from collections.abc import Sequence
from typing import Any

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


def row_colours(labels: Array) -> list[str]:
    """Return a colour for each row: that of its component, and grey for outliers."""
    return ["0.7" if label < 0 else f"C{label % 10}" for label in labels]
