"""What a mixture says of some features given the others: means, variances and quantiles."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, softmax, stdtr, stdtrit

from ..._typing import Array
from ..families.background import NO_BACKGROUND
from ..families.covariance import CovarianceType
from ..families.missing import conditional
from ..families.params import Params
from ..rows.blocks import DenseBlock
from ..rows.sources import make_rows
from .mixture import Mixture, Point

# Halvings of the interval from the least to the largest quantile of a component: the last is as
# narrow as the rounding of float64.
_HALVINGS = 60


def moments_and_quantiles(
    fitted: Point, features: Array, X: Array, levels: Array
) -> tuple[Array, Array, Array]:
    """Return means and variances (n, m) of features and their quantiles (n, m, q), given others.

    X (n, d) is nan where nothing is given, as in all columns of `features`. The background is left
    out.
    """
    weights = NO_BACKGROUND.weights_after(fitted.params)
    params = Params.first(weights, fitted.components)
    components = Point(Mixture.plain(fitted.family), params)
    rows = make_rows(X, None, unit=False, missing=True)
    predict = partial(_predict_block, components, features, levels)
    values = rows.per_row(predict, np.float64, len(features), 2 + len(levels))
    return values[..., 0], values[..., 1], values[..., 2:]


def _predict_block(point: Point, features: Array, levels: Array, block: DenseBlock) -> Array:
    """Return mean, variance and quantiles of each feature for the rows of a block, (n, m, 2+q)."""
    scores = point.scores(block)
    with np.errstate(divide="ignore"):
        log_joint = scores.log_density() + np.log(point.params.weights)
    nowhere = np.isneginf(log_joint.max(axis=1))
    log_joint[nowhere] = 0
    resp = softmax(log_joint, axis=1)
    resp[nowhere] = point.params.weights

    result = np.empty((len(resp), len(features), 2 + len(levels)))
    missing, pattern_of = np.unique(np.isnan(block.X), axis=0, return_inverse=True)
    for i, is_missing in enumerate(missing):
        members = np.flatnonzero(pattern_of.ravel() == i)
        given = np.flatnonzero(~is_missing)
        unknown = np.flatnonzero(is_missing)
        kind = point.family.type
        components = point.components
        values = block.X[np.ix_(members, given)].astype(np.float64)
        means, shapes = conditional(kind, components, unknown, given, values)
        means = np.broadcast_to(means, (len(members), len(components), len(unknown)))
        scales = _variances(kind, shapes, len(components), len(unknown))
        wanted = np.searchsorted(unknown, features)
        means = means[..., wanted]
        scales = scales[:, wanted]
        if scores.cache is None:
            dof = np.inf
        else:  # of Student-t components: the farther the given values, the wider
            dof = components.degrees_of_freedom[:, np.newaxis] + len(given)
            if len(given):
                scales = scales / scores.cache[members][..., np.newaxis]
        result[members] = _of_components(resp[members], means, np.sqrt(scales), dof, levels)
    return result


def _variances(kind: CovarianceType, shapes: Array, n_components: int, n_features: int) -> Array:
    """Return the variance of each feature under each component, (K, m)."""
    if kind.full:
        shapes = np.diagonal(shapes, axis1=-2, axis2=-1)
    elif shapes.ndim == 1:
        shapes = shapes[:, np.newaxis]
    return np.broadcast_to(shapes, (n_components, n_features))


def _of_components(
    resp: Array, means: Array, scales: Array, dof: Array | float, levels: Array
) -> Array:
    """Return mean, variance and quantiles, (n, m, 2+q), of means (n, K, m) and their scales."""
    shares = resp[..., np.newaxis]
    mean = (shares * means).sum(axis=1)
    factor: float | Array
    quantile: Callable[[float], Any]  # of a standard component
    distribution: Callable[[Array], Array]  # the shares of its rows below some values
    if np.ndim(dof) == 0:  # normal components
        factor = 1.0
        quantile = ndtri
        distribution = ndtr
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            # Of two or fewer degrees of freedom, no variance is finite.
            factor = np.where(dof > 2, dof / (dof - 2), np.inf)
        quantile = partial(stdtrit, dof)
        distribution = partial(stdtr, dof)
    spread = scales**2 * factor + (means - mean[:, np.newaxis]) ** 2
    variance = np.where(shares > 0, shares * spread, 0).sum(axis=1)

    quantiles = []
    for level in levels:
        of_components = means + scales * quantile(level)
        # Between the least and the largest of the components': there the shares below cross it.
        reached = np.where(shares > 0, of_components, np.inf)
        low = reached.min(axis=1)
        high = np.where(shares > 0, of_components, -np.inf).max(axis=1)
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            z = (middle[:, np.newaxis] - means) / scales
            below = (shares * distribution(z)).sum(axis=1)
            low = np.where(below < level, middle, low)
            high = np.where(below < level, high, middle)
        quantiles.append(high)
    return np.stack([mean, variance, *quantiles], axis=-1)
