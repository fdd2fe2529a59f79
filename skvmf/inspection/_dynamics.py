"""Averaged learning dynamics of a mixture of two unit Gaussians on the line."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.utils import Bunch

from .._engine.ordered import AbsoluteCoordinates, RelativeCoordinates
from .._typing import Array
from ._components import GaussianComponents, box_edges, box_nodes, read_active_components

_REACH = 12  # standard deviations, beyond which densities are below 1e-31
_BLOCK = 2**20  # entries of an array of nodes by points
_MAX_NODES = 2**20


def expected_gradient(
    means: ArrayLike,
    truth: Any,
    *,
    weight: float = 0.5,
    coordinates: Literal["absolute", "relative"] = "absolute",
) -> Bunch:
    """Return the expected gradient of the log-density of v N(mu_1, 1) + (1 - v) N(mu_2, 1).

    The expectation is over rows of the truth: it is the average motion of gradient ascent [1]_. In
    relative coordinates (v, mu_1, Delta = mu_2 - mu_1), the velocity of (mu_1, mu_2) is the
    absolute gradient times [[1, 1], [1, 2]]: longer on average, and shorter by half along mu_2 -
    mu_1. Integrals by the trapezoidal rule are accurate to about 12 digits. The paper's polynomials
    still contain x, over which the expectation is taken, and are not used.

    Parameters
    ----------
    means : array-like of shape (..., 2)
        The points (mu_1, mu_2), such as a grid, in either coordinates.
    truth : estimator or tuple
        The distribution of rows: a fitted Gaussian mixture of one feature, with its background, or
        its weights (K,), means (K,) and, unless they are one, variances (K,).
    weight : float, default=0.5
        The weight v of the first component, between 0 and 1.
    coordinates : {'absolute', 'relative'}, default='absolute'
        The coordinates of the gradient.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        The entries are

        gradient : ndarray of shape (..., 2)
            With respect to (mu_1, mu_2), or to (mu_1, Delta).
        velocity : ndarray of shape (..., 2)
            The resulting motion of (mu_1, mu_2).
        weight_gradient : ndarray of shape (...)
            With respect to v, the same in both coordinates.

    Raises
    ------
    ValueError
        If the truth is not a Gaussian mixture of one feature, means are not finite or not of shape
        (..., 2), or `weight` is not between 0 and 1.

    See Also
    --------
    park_ozeki_coordinates : The same dynamics in difference and common mean.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", section 3.1 and appendix D.

    Examples
    --------
    >>> from skvmf.inspection import expected_gradient
    >>> truth = [0.5, 0.5], [0.0, 0.0]
    >>> expected_gradient([1.0, 1.0], truth, coordinates="relative").velocity.round(6)
    array([-1. , -1.5])
    """
    means = np.asarray(means, dtype=np.float64)
    if means.shape[-1:] != (2,) or not np.isfinite(means).all():
        raise ValueError(f"means should be finite and of shape (..., 2), got {means.shape}.")
    if not 0 < weight < 1:
        raise ValueError(f"weight should be between 0 and 1, got {weight}.")
    charts: dict[str, Any] = {"absolute": AbsoluteCoordinates(), "relative": RelativeCoordinates()}
    if coordinates not in charts:
        raise ValueError(f"coordinates should be 'absolute' or 'relative', got {coordinates!r}.")
    components = _on_the_line(truth)
    points = means.reshape(-1, 2)
    gradients = _gradients(points, components, weight)
    jacobian = charts[coordinates].jacobian(np.zeros((2, 1)))
    pulled = gradients[:, 1:] @ jacobian
    return Bunch(
        gradient=pulled.reshape(means.shape),
        velocity=(pulled @ jacobian.T).reshape(means.shape),
        weight_gradient=gradients[:, 0].reshape(means.shape[:-1]),
    )


def park_ozeki_coordinates(
    means: ArrayLike,
    *,
    weight: float = 0.5,
    coordinates: Literal["absolute", "relative"] = "absolute",
) -> Bunch:
    """Return (v, u, w), the coordinates of Park and Ozeki for the dynamics near the overlap.

    In absolute coordinates u = mu_1 - mu_2, in relative ones u = Delta = mu_2 - mu_1; w is the
    common mean v mu_1 + (1 - v) mu_2 in both. Gradient ascent in the means moves (v, u, w) with
    velocity J g, for the Jacobian J and the gradient g, or J J' times the gradient with respect to
    (v, u, w). See Esser and Nielsen, as for :func:`expected_gradient`.

    Parameters
    ----------
    means : array-like of shape (..., 2)
        The points (mu_1, mu_2), in either coordinates.
    weight : float, default=0.5
        The weight v of the first component.
    coordinates : {'absolute', 'relative'}, default='absolute'
        The coordinates of the Jacobian.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        The entries are

        position : ndarray of shape (..., 3)
            v, u and w.
        jacobian : ndarray of shape (..., 3, 3)
            Their derivatives with respect to (v, mu_1, mu_2), or to (v, mu_1, Delta). In relative
            coordinates the last row is (-Delta, 1, 1 - v); the paper prints another.

    Raises
    ------
    ValueError
        If means are not finite or not of shape (..., 2), or `weight` is not between 0 and 1.

    Examples
    --------
    >>> from skvmf.inspection import park_ozeki_coordinates
    >>> park_ozeki_coordinates([1.0, 3.0]).position
    array([ 0.5, -2. ,  2. ])
    """
    means = np.asarray(means, dtype=np.float64)
    if means.shape[-1:] != (2,) or not np.isfinite(means).all():
        raise ValueError(f"means should be finite and of shape (..., 2), got {means.shape}.")
    if not 0 <= weight <= 1:
        raise ValueError(f"weight should be between 0 and 1, got {weight}.")
    first, second = means[..., 0], means[..., 1]
    v, zero, one = (np.full(first.shape, value) for value in (weight, 0.0, 1.0))
    gap = first - second
    common = weight * first + (1 - weight) * second
    if coordinates == "absolute":
        u, rows = gap, [[one, zero, zero], [zero, one, -one], [gap, v, 1 - v]]
    elif coordinates == "relative":
        u, rows = -gap, [[one, zero, zero], [zero, zero, one], [gap, one, 1 - v]]
    else:
        raise ValueError(f"coordinates should be 'absolute' or 'relative', got {coordinates!r}.")
    jacobian = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return Bunch(position=np.stack([v, u, common], axis=-1), jacobian=jacobian)


def _on_the_line(truth: Any) -> GaussianComponents:
    components = read_active_components(truth)
    if not isinstance(components, GaussianComponents):
        raise ValueError(
            "The dynamics are those of Gaussian components on the line; components of "
            f"{type(truth).__name__} lie on a sphere."
        )
    if components.means.shape[1] != 1:
        raise ValueError(
            "The dynamics are those of one feature, which can be drawn and integrated; the truth "
            f"has {components.means.shape[1]}. Give a mixture of a single feature."
        )
    return components


def _gradients(points: Array, truth: GaussianComponents, weight: float) -> Array:
    """Return the expected gradients (n, 3) with respect to v, mu_1 and mu_2 at points (n, 2)."""
    nodes, masses = _nodes(truth, np.abs(points[:, 0] - points[:, 1]).max(initial=0))
    gradients = np.empty((len(points), 3))
    size = max(1, _BLOCK // len(nodes))
    for start in range(0, len(points), size):
        first, second = (column[:, np.newaxis] for column in points[start : start + size].T)
        log_ratio = 0.5 * ((nodes - second) ** 2 - (nodes - first) ** 2)
        first_resp = expit(log_ratio + logit(weight))
        second_resp = expit(-log_ratio - logit(weight))
        gradients[start : start + size] = np.column_stack(
            [
                (first_resp / weight - second_resp / (1 - weight)) @ masses,
                (first_resp * (nodes - first)) @ masses,
                (second_resp * (nodes - second)) @ masses,
            ]
        )
    return gradients


def _nodes(truth: GaussianComponents, widest: float) -> tuple[Array, Array]:
    """Return nodes and masses of the trapezoidal rule over each component of the truth.

    Responsibilities change over 1 / gap, with poles pi / gap off the real line, so that the error
    is exp(-2 pi^2 / (gap step)).
    """
    nodes, masses = [], []
    for weight, mean, variance in zip(
        truth.weights, truth.means[:, 0], truth.covariances[:, 0, 0], strict=True
    ):
        scale = np.sqrt(variance)
        step = min(0.1, 0.5 / max(widest, 1)) / max(scale, 1)
        n_nodes = 2 * _REACH / step
        if n_nodes > _MAX_NODES:
            raise ValueError(
                f"The truth is too wide, or the means too far apart, for unit Gaussians: one of "
                f"its components has the standard deviation {scale:.3g}, and two means a gap of "
                f"{widest:.3g}. Rescale the feature."
            )
        standard, step = np.linspace(-_REACH, _REACH, int(n_nodes) + 2, retstep=True)
        nodes.append(mean + scale * standard)
        masses.append(weight * step * np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi))
    for low, high in box_edges(truth):
        length = 4 * min(0.1, 0.5 / max(widest, 1))
        if (high - low) / length > _MAX_NODES / 16:
            raise ValueError(
                f"The box of the background is too wide for unit Gaussians: from {low:.3g} to "
                f"{high:.3g}. Rescale the feature."
            )
        own, shares = box_nodes(low, high, length)
        nodes.append(own)
        masses.append(truth.background_weight * shares)
    return np.concatenate(nodes), np.concatenate(masses)
