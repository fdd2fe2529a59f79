"""Parameters that users give, checked before any work: weights, means, partitions, labels."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._engine.em.mixture import Point
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.families.vonmises_fisher import MAX_CONCENTRATION
from .._engine.rows.sources import MAX_MAGNITUDE, RowSource
from .._engine.search.partitions import Assignment, assign_labels, assign_responsibilities
from .._typing import Array
from ..distributions._arguments import checked_array


def checked_weights(weights: ArrayLike, n_components: int, name: str) -> Array:
    """Return weights as float64 that sum to one, or raise a ValueError that names them."""
    weights = checked_array(weights, name).astype(np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {weights.shape}.")
    # As near to one as weights of float32, or with seven printed digits, come.
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(
            f"{name} should be non-negative and sum to 1, "
            f"got minimum {weights.min():.5g} and sum {weights.sum():.5g}."
        )
    return weights / weights.sum()


def checked_means(means: ArrayLike, name: str, shape: tuple[int, int] | None = None) -> Array:
    """Return means as finite float64, (n_components, n_features), or raise a ValueError."""
    means = checked_array(means, name).astype(np.float64)
    if means.ndim != 2 or means.size == 0 or shape not in (None, means.shape):
        expected = "(n_components, n_features)" if shape is None else shape
        raise ValueError(f"{name} should have the shape {expected}, got {means.shape}.")
    if not np.isfinite(means).all():
        raise ValueError(f"{name} contains nan or inf: give finite means.")
    return means


def checked_directions(means: Array, name: str) -> Array:
    """Return means at unit length, or raise a ValueError."""
    # The largest value is divided out first: squares then neither over- nor underflow.
    largest = np.abs(means).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError(f"{name} contains a zero row, which has no direction.")
    means = means / largest
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def checked_concentrations(concentrations: ArrayLike | None, n_components: int, name: str) -> Array:
    """Return concentrations (n_components,) as float64, or raise a ValueError."""
    kappa = checked_array(concentrations, name).astype(np.float64)
    if kappa.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {kappa.shape}.")
    if not ((kappa >= 0) & (kappa <= MAX_CONCENTRATION)).all():
        raise ValueError(f"{name} should be from 0 to {MAX_CONCENTRATION:g}, got {kappa}.")
    return kappa


def refuse_unequal(kappa: Array, tied: bool) -> None:
    """Refuse concentrations that differ where all components share one."""
    # Concentrations of one resultant length differ by rounding, in float32 by so much.
    if tied and np.ptp(kappa) > 1e-5 * kappa.max():
        raise ValueError(f"concentration_type='tied' needs one concentration, got {kappa}.")


def _weight_of(responsibilities: Array, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows per component."""
    return np.asarray(weights @ responsibilities[start : start + len(weights)])


def checked_partition(
    partition: ArrayLike, rows: RowSource, n_components: int, background: bool
) -> Assignment:
    """Return how `init_params`, labels or responsibilities, assigns the rows of a block.

    Responsibilities may have any scale: they are divided by the largest. With a background, rows
    with the label -1 belong to no component.
    """
    given = checked_array(partition, "init_params")
    least_label = -1 if background else 0
    shape = (rows.n_rows, n_components)
    if given.shape == shape[:1]:
        are_labels = np.isin(given, np.arange(least_label, n_components)).all()
        if are_labels and rows.map_reduce_weights(partial(_weight_of, given >= 0)).any():
            return partial(assign_labels, given.astype(np.int32), n_components)
    elif given.shape == shape and given.any() and np.isfinite(given).all() and given.min() >= 0:
        resp = (given / given.max()).astype(rows.dtype)
        if rows.map_reduce_weights(partial(_weight_of, resp)).any():
            return partial(assign_responsibilities, resp)
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from {least_label} to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )


def _weight_by_label(labels: Array, n_labels: int, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows for each label from -1 on."""
    labels = labels[start : start + len(weights)] + 1
    return np.bincount(labels, weights=weights, minlength=n_labels + 1)


def checked_known_labels(
    known_labels: ArrayLike, rows: RowSource, mixture: Any, *, begins: bool
) -> Array | None:
    """Return labels as `Mixture.known` has them, None if no row's is known.

    Where a fit begins, each class needs a weight: that of its rows, and that of `weights_init`.
    """
    K = int(mixture.n_components)
    least_label = -2 if mixture.background else -1
    try:
        given = checked_array(known_labels, "known_labels")
    except ValueError as error:
        if not _are_names(known_labels):
            raise
        raise ValueError(
            "known_labels should be numbers of components, and holds names. With a list of the "
            "classes, of which component k is to be classes[k]: known_labels = "
            "[classes.index(name) if name in classes else -1 for name in names]."
        ) from error
    are_labels = np.isin(given, np.arange(least_label, K))
    if given.shape != (rows.n_rows,) or not are_labels.all():
        reason = f"got shape {given.shape}"
        if given.shape == (rows.n_rows,):
            reason = f"got {given[~are_labels][0]:g}"
            if given.min() == -2 and not mixture.background:
                reason += "; -2, an outlier, needs background=True"
        raise ValueError(
            f"known_labels should be integers from {least_label} to n_components - 1 = {K - 1}, "
            f"one for each of the {rows.n_rows} rows, -1 where it is not known: {reason}."
        )
    labels = np.where(given == -2, K, given).astype(np.int32)
    if (labels < 0).all():
        return None
    if begins:
        _refuse_classes_without_weight(labels, rows, K, mixture.weights_init)
    return labels


def _are_names(labels: ArrayLike) -> bool:
    """Whether some labels are texts."""
    given = np.asarray(labels)
    return given.dtype.kind in "UST" or any(isinstance(label, str) for label in given.ravel())


def _refuse_classes_without_weight(
    labels: Array, rows: RowSource, n_components: int, weights_init: ArrayLike | None
) -> None:
    """Refuse known classes that no row with a weight begins."""
    by_label = rows.map_reduce_weights(partial(_weight_by_label, labels, n_components + 1))
    weights = by_label[1 : n_components + 1]  # without rows of no class, and of the background
    if weights_init is not None:
        weights = weights * checked_weights(weights_init, n_components, "weights_init")
    for k in np.unique(labels[(labels >= 0) & (labels < n_components)]):
        if weights[k] == 0:
            raise ValueError(
                f"known_labels has rows of class {k}, and they weigh nothing: give one of them "
                "a sample_weight, a direction and the component a weight, or set them to -1."
            )


# What does not go together with the fit there is.


def checked_features(mixture: Any, features: Any) -> Array:
    """Return the numbers of distinct features, given by number, by name or by a mask."""
    check_is_fitted(mixture)
    d = mixture._fitted.family.dim
    given = np.asarray([features] if isinstance(features, str) else features)
    names = getattr(mixture, "feature_names_in_", np.empty(0)).tolist()
    if given.dtype == bool and given.shape == (d,):
        given = np.flatnonzero(given)
    if given.dtype.kind in "OU" and given.ndim == 1 and set(given.tolist()) <= set(names):
        given = np.array([names.index(name) for name in given.tolist()])
    are_distinct = given.ndim == 1 and 0 < len(set(given.tolist())) == len(given)
    if given.dtype.kind not in "iu" or not are_distinct or given.min() < 0 or given.max() >= d:
        raise ValueError(
            f"features should be distinct numbers from 0 to {d - 1}, names that fit has seen, or a "
            f"mask of {d} booleans with some that are true, got {features!r}."
        )
    return given


def check_warm_start(fitted: Point, mixture: Any) -> None:
    """Refuse to continue with fewer components, or with more if parameters are fixed."""
    before = fitted.n_components
    now = mixture.n_components
    if now < before:
        advice = "Merge components with skvmf.ComponentPath"
    elif now > before and {"weights", "means"} & set(mixture.fixed):
        advice = f"fixed={mixture.fixed!r} leaves new components no place: change it"
    else:
        return
    raise ValueError(
        f"warm_start: the fitted mixture has {before} components, n_components is {now}. "
        f"{advice}, or set warm_start=False to start from scratch."
    )


def check_stream_continues(fitted: Point, mixture: Any) -> None:
    """Refuse changes of parameters that a stream cannot follow."""
    of_fit = {"n_components": fitted.n_components, "background": len(fitted.background) > 0}
    for name, before in of_fit.items():
        now = getattr(mixture, name)
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


# The background as users give it: whether there is one, its weight and its box.


def with_background(background_weight: ArrayLike, params: dict[str, object]) -> dict[str, object]:
    """Return constructor parameters that say whether there is a background."""
    background = bool(np.any(np.not_equal(background_weight, 0)))
    if background and not params.get("background", True):
        raise ValueError(
            f"background=False contradicts background_weight={background_weight!r}: leave out one "
            "of them."
        )
    return {"background": background} | params


def checked_weights_and_background(
    weights: ArrayLike, n_components: int, background_weight: ArrayLike | None
) -> Array:
    """Return weights, followed by that of a background if there is one, or raise a ValueError."""
    if background_weight is None:
        return checked_weights(weights, n_components, "weights")
    weights = checked_array(weights, "weights").astype(np.float64)
    share = checked_array(background_weight, "background_weight").astype(np.float64)
    if weights.shape != (n_components,) or share.shape != ():
        raise ValueError(
            f"weights should have the shape ({n_components},) and background_weight be a number, "
            f"got shapes {weights.shape} and {share.shape}."
        )
    together = np.append(weights, share)
    return checked_weights(together, n_components + 1, "weights and background_weight together")


def background_in(bounds: ArrayLike | None, d: int, background: bool) -> Background:
    """Return the background in the box of given corners (2, d), or none, or raise a ValueError."""
    if bounds is None:
        if background:
            raise ValueError("A background needs background_bounds, the corners of its box.")
        return NO_BACKGROUND
    if not background:
        raise ValueError("background_bounds needs a background: give background_weight, too.")
    corners = checked_array(bounds, "background_bounds").astype(np.float64)
    if corners.shape != (2, d) or not np.isfinite(corners).all():
        raise ValueError(
            f"background_bounds should be finite and of shape {(2, d)}, got {corners.shape}."
        )
    refuse_overflow(np.abs(corners).max(), "background_bounds holds")
    has_width = corners[0] < corners[1]
    if not has_width.all():
        raise ValueError(
            "background_bounds should be the least corner of a box and then the largest; along "
            f"feature {np.argmin(has_width)} it has no width."
        )
    return Background.in_box(corners)
