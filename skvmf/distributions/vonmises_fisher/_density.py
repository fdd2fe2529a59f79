"""Density, entropy and covariance of the von Mises-Fisher distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Array, Values
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
) -> Values:
    """Return the log-density with respect to surface area.

    The distribution is given by `mu` and `kappa`, or by `mean`. See section 1 of Nonnenmacher and
    Sahani; the form used, (kappa - Phi(kappa)) - kappa ||x - m||^2/2 - log area, does not cancel
    for high concentrations.

    Parameters
    ----------
    x : array_like of shape (..., d)
        Points on the unit sphere.
    mu : array_like of shape (..., d), default=None
        Mean direction, of unit length. Leading axes broadcast against those of `x`.
    kappa : float or array_like of shape (...), default=None
        Concentration, from 0 to 1e150.
    mean : array_like of shape (..., d), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    float or ndarray of float64
        One value per point.

    Raises
    ------
    ValueError
        If points or directions are not of unit length, a mean is not inside the unit ball, kappa
        is negative or above 1e150, the numbers of coordinates differ, or neither `mean` nor both
        `mu` and `kappa` are given.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import logpdf
    >>> logpdf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 0.0, 0.0], 2.0).round(6)
    array([-1.126244, -3.126244])
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


def entropy(kappa: ArrayLike, dim: ArrayLike) -> Values:
    """Return the differential entropy with respect to surface area.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, from 0 to 1e150.
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.

    Returns
    -------
    float or ndarray of float64
        log area - psi(A(kappa)): minus the expected log-density.

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
) -> tuple[Values, Values]:
    """Return the two eigenvalues of the covariance: along the mean and across it.

    The trace along + (d - 1) across is 1 - r^2. See sections 2.1 and 2.4 of Nonnenmacher and
    Sahani.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.
    complement : float or array_like, default=None
        1 - r, if it is known more precisely than by subtraction.

    Returns
    -------
    along : float or ndarray of float64
        1/psi''(r), the variance along the mean.
    across : float or ndarray of float64
        r/psi'(r), the variance in each of the d - 1 directions across it.

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
    """Return the covariance matrix for a mean parameter.

    See section 2.4 of Nonnenmacher and Sahani.

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameter, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        across (I - m m^T) + along m m^T for direction m, with `variance_eigenvalues`.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import variance_function
    >>> variance_function([0.0, 0.0])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    direction, lengths = split(mean)
    return axial(direction, *variance_eigenvalues(lengths, direction.shape[-1]))


def axial(direction: Array, along: Array, across: Array) -> Array:
    """Return matrices with the given eigenvalues along and across directions."""
    outer = direction[..., :, np.newaxis] * direction[..., np.newaxis, :]
    matrix: Array = (along - across)[..., np.newaxis, np.newaxis] * outer
    diagonal = np.arange(direction.shape[-1])
    matrix[..., diagonal, diagonal] += across[..., np.newaxis]
    return matrix


def parameters(
    mu: ArrayLike | None, kappa: ArrayLike | None, mean: ArrayLike | None
) -> tuple[Array, Values]:
    """Return mean direction and concentration from either parametrization."""
    if mean is None and mu is not None and kappa is not None:
        return unit_rows(mu, "mu"), checked_kappa(kappa)
    if mean is None or mu is not None or kappa is not None:
        raise ValueError("Give mu and kappa, or mean alone.")
    direction, lengths = split(mean)
    return direction, concentration(lengths, direction.shape[-1])


def split(mean: ArrayLike) -> tuple[Array, Array]:
    """Return directions (the first axis for zero) and lengths of mean parameters."""
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
    """Scale rows to unit length; they must have it to single precision."""
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] < 2:
        raise ValueError(f"{name} must have at least two coordinates, not shape {rows.shape}.")
    squares = np.einsum("...i,...i->...", rows, rows)
    if not np.all(np.abs(squares - 1) < _UNIT_TOLERANCE):
        raise ValueError(f"{name} must be finite and of unit length: scale each row by its norm.")
    return np.asarray(rows / np.sqrt(squares)[..., np.newaxis])
