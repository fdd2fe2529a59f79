"""Axes, labels and colours; matplotlib is imported on use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._sklearn import num_samples
from .._typing import Array, MatrixLike
from ..mixture._validation import in_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def get_axes(ax: "Axes | None", projection: str | None = None) -> "Axes":
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skvmf.plotting needs matplotlib. Install it with: pip install 'skvmf[plotting]'"
        ) from error
    if ax is not None:
        return ax
    return plt.subplots(subplot_kw={"projection": projection}, layout="constrained")[1]


def labels_of(predict: Callable[[MatrixLike], Array], X: MatrixLike, labels: Any) -> Array:
    chosen = predict(X) if labels is None else np.asarray(in_memory(labels))
    n_rows = num_samples(X)
    if chosen.shape != (n_rows,):
        raise ValueError(f"labels should be of shape ({n_rows},), got {chosen.shape}.")
    return chosen


def row_colours(labels: Array) -> list[str]:
    """Return each row's colour: that of its component or class, and grey for outliers."""
    values, numbers = np.unique(labels, return_inverse=True)
    shown = values if labels.dtype.kind in "biuf" else np.arange(len(values))  # names of classes
    colours = ["0.7" if label < 0 else component_colour(int(label)) for label in shown]
    return [colours[i] for i in numbers]


def component_colour(k: int | np.integer[Any]) -> str:
    """Return the colour of a component: of matplotlib's cycle, and darker in its second round."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex, to_rgb

    colour = to_rgb(f"C{k}")
    second = k // len(rcParams["axes.prop_cycle"]) % 2
    return to_hex([part / 2 for part in colour] if second else colour)
