"""The background as users give it: whether there is one, its weight and its box."""

import numpy as np
from numpy.typing import ArrayLike

from .._engine.families.background import NO_BACKGROUND, Background
from .._typing import Array
from ..distributions._arguments import checked_array
from ._checks import refuse_overflow
from ._given import checked_weights


def with_background(background_weight: ArrayLike, params: dict[str, object]) -> dict[str, object]:
    """Return constructor parameters that say whether there is a background."""
    given = bool(np.any(np.not_equal(background_weight, 0)))
    if given and not params.get("background", True):
        raise ValueError(
            f"background=False contradicts background_weight={background_weight!r}: leave out one "
            "of them."
        )
    return {"background": given} | params


def checked_weights_beside(
    weights: ArrayLike, n_components: int, background_weight: ArrayLike
) -> Array:
    """Return weights followed by that of a background, or raise a ValueError."""
    weights = checked_array(weights, "weights").astype(np.float64)
    share = checked_array(background_weight, "background_weight").astype(np.float64)
    if weights.shape != (n_components,) or share.shape != ():
        raise ValueError(
            f"weights should have the shape ({n_components},) and background_weight be a number, "
            f"got shapes {weights.shape} and {share.shape}."
        )
    together = "weights and background_weight together"
    return checked_weights(np.append(weights, share), n_components + 1, together)


def background_in(bounds: ArrayLike | None, d: int, background: bool) -> Background:
    """Return the background in the given box, or none, or raise a ValueError."""
    if background:
        if bounds is None:
            raise ValueError("A background needs background_bounds, the corners of its box.")
        return Background.in_box(_checked_bounds(bounds, d))
    if bounds is not None:
        raise ValueError("background_bounds needs a background: give background_weight, too.")
    return NO_BACKGROUND


def _checked_bounds(bounds: ArrayLike | None, d: int) -> Array:
    """Return the corners (2, d) of a box of finite, positive volume, or raise a ValueError."""
    checked: Array = checked_array(bounds, "background_bounds").astype(np.float64)
    if checked.shape != (2, d) or not np.isfinite(checked).all():
        raise ValueError(
            f"background_bounds should be finite and of shape {(2, d)}, got {checked.shape}."
        )
    refuse_overflow(np.abs(checked).max(), "background_bounds holds")
    if not (checked[0] < checked[1]).all():
        raise ValueError(
            "background_bounds should be the least corner of a box and then the largest; along "
            f"feature {np.argmin(checked[0] < checked[1])} it has no width."
        )
    return checked
