"""Density, entropy and covariance of the von Mises-Fisher distribution."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Array
from ._arguments import checked_kappa
from ._maps import log_partition_deficit, log_sphere_area, mean_resultant_length
from ._negentropy import concentration, negentropy

_UNIT_TOLERANCE = 1e-5  # of a squared length: float32 rows pass


def logpdf(
    x: ArrayLike,
    mu: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
) -> Any:
    """Return the log-density with respect to surface area.

    The distribution is given by `mu` and `kappa`, or by `mean`.

    Parameters
    ----------
    x : array_like of shape (..., d)
        Points on the unit sphere; float32 and float64 are both computed in float64.
    mu : array_like of shape (..., d), default=None
        Mean direction, of unit length. Leading axes broadcast against those of `x`.
    kappa : float or array_like of shape (...), default=None
        Concentration, at least 0.
    mean : array_like of shape (..., d), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    float or ndarray of float64
        One value for each point.

    Raises
    ------
    ValueError
        If points or mean direction are not of unit length, dimensions differ, the parameters
        are incomplete or outside their range.

    Notes
    -----
    Computed as (kappa - Phi(kappa)) - kappa ||x - m||^2/2 - log area, which does not cancel
    when the distribution is concentrated (derived here).

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf.distributions.vonmises_fisher import logpdf
    >>> logpdf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 0.0, 0.0], 2.0).round(6)
    array([-1.126244, -3.126244])
    >>> print(np.exp(logpdf([0.0, 1.0], mean=[0.0, 0.0])).round(6))  # 1/(2 pi)
    0.159155
    """
    points = unit_rows(x, "x")
    direction, kappas = parameters(mu, kappa, mean)
    d = points.shape[-1]
    if direction.shape[-1] != d:
        raise ValueError(f"x has {d} coordinates, the parameters have {direction.shape[-1]}.")
    gap = points - direction
    half_squares = 0.5 * np.einsum("...i,...i->...", gap, gap)
    top = log_partition_deficit(kappas, d) - log_sphere_area(d)
    return (top - kappas * half_squares)[()]


def entropy(kappa: ArrayLike, dim: ArrayLike) -> Any:
    """Return the differential entropy with respect to surface area.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, at least 0.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `kappa`.

    Returns
    -------
    float or ndarray of float64
        log area - psi(A(kappa)): minus the expected log-density.

    Raises
    ------
    ValueError
        If a concentration is negative, not finite or above 1e150, or a dimension is no
        integer from 2 to 1e15.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import entropy
    >>> print(round(entropy(0.0, 3), 6))  # log(4 pi)
    2.531024
    """
    rest = np.asarray(kappa) * mean_resultant_length(kappa, dim, complement=True)
    return log_sphere_area(dim) - (log_partition_deficit(kappa, dim) - rest)


def variance_eigenvalues(
    r: ArrayLike, dim: ArrayLike, *, complement: ArrayLike | None = None
) -> tuple[Any, Any]:
    """Return the two eigenvalues of the covariance: along the mean and across it.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1), the length of the mean parameter.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `r`.
    complement : float or array_like, default=None
        1 - r, if it is known more precisely than by subtraction.

    Returns
    -------
    along : float or ndarray of float64
        1/psi''(r), the variance along the mean.
    across : float or ndarray of float64
        r/psi'(r), the variance in each of the d - 1 directions across it.

    Raises
    ------
    ValueError
        If r is outside [0, 1) or does not go with its complement, or a dimension is no
        integer from 2 to 1e15.

    Notes
    -----
    The trace is along + (d - 1) across = 1 - r^2, because all mass is on the sphere.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", sections 2.1 and 2.4.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import variance_eigenvalues
    >>> along, across = variance_eigenvalues(0.8, 3)
    >>> print(round(along + 2 * across, 12))  # 1 - 0.8^2
    0.36
    """
    along = 1.0 / negentropy(r, dim, order=2, complement=complement)
    lengths = np.asarray(r, dtype=np.float64)
    rest = 1 - lengths if complement is None else np.asarray(complement, dtype=np.float64)
    return along, (rest * (1 + lengths) - along) / (np.asarray(dim) - 1.0)


def variance_function(mean: ArrayLike) -> Array:
    """Return the covariance matrix of the distribution with a given mean parameter.

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameter, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        across (I - m m^T) + along m m^T for direction m, with `variance_eigenvalues`.

    Raises
    ------
    ValueError
        If the mean is not inside the unit ball or has fewer than two coordinates.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf.distributions.vonmises_fisher import variance_function
    >>> variance_function(np.zeros(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    direction, lengths = split(mean)
    d = direction.shape[-1]
    along, across = (np.asarray(v)[..., np.newaxis] for v in variance_eigenvalues(lengths, d))
    covariance: Array = ((along - across) * direction)[..., np.newaxis] * direction[
        ..., np.newaxis, :
    ]
    diagonal = np.arange(d)
    covariance[..., diagonal, diagonal] += across
    return covariance


def parameters(
    mu: ArrayLike | None, kappa: ArrayLike | None, mean: ArrayLike | None
) -> tuple[Array, Any]:
    """Return mean direction and concentration from either parametrization."""
    if mean is None and mu is not None and kappa is not None:
        return unit_rows(mu, "mu"), checked_kappa(kappa)
    if mean is None or mu is not None or kappa is not None:
        raise ValueError("Give mu and kappa, or mean alone.")
    direction, lengths = split(mean)
    return direction, concentration(lengths, direction.shape[-1])


def split(mean: ArrayLike) -> tuple[Array, Array]:
    """Return direction and length of mean parameters; the first axis is zero's direction."""
    means = np.asarray(mean, dtype=np.float64)
    if means.ndim == 0 or means.shape[-1] < 2:
        raise ValueError(f"mean must have at least two coordinates, not shape {means.shape}.")
    lengths = np.linalg.norm(means, axis=-1)
    if not np.all(lengths < 1):
        raise ValueError("mean, the mean parameter, must be finite and inside the unit ball.")
    direction = means / np.where(lengths > 0, lengths, 1.0)[..., np.newaxis]
    direction[lengths == 0, 0] = 1.0
    return direction, lengths


def unit_rows(x: ArrayLike, name: str) -> Array:
    """Return rows of unit length to the last digit; they must be so to single precision."""
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] < 2:
        raise ValueError(f"{name} must have at least two coordinates, not shape {rows.shape}.")
    squares = np.einsum("...i,...i->...", rows, rows)
    if not np.all(np.abs(squares - 1) < _UNIT_TOLERANCE):
        raise ValueError(f"{name} must be finite and of unit length: scale each row by its norm.")
    return np.asarray(rows / np.sqrt(squares)[..., np.newaxis])
