"""Scalar functions of the concentration: log-partition and mean resultant length."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ..._kernels import vonmises_fisher as exact
from ..._kernels.vonmises_fisher_tables import expansions
from ..._typing import Array
from ._arguments import by_dimension, checked_dims, checked_kappa


def log_sphere_area(dim: ArrayLike) -> Any:
    """Return the logarithm of the surface area of the unit sphere.

    Parameters
    ----------
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2.

    Returns
    -------
    float or ndarray of float64
        log(2 pi^(d/2) / Gamma(d/2)).

    Raises
    ------
    ValueError
        If a dimension is not an integer from 2 to 1e15.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_sphere_area
    >>> print(round(log_sphere_area(2), 6))  # log(2 pi)
    1.837877
    """
    half = 0.5 * checked_dims(dim)
    return (np.log(2) + half * np.log(np.pi) - gammaln(half))[()]


def log_partition(kappa: ArrayLike, dim: ArrayLike) -> Any:
    """Return the log-partition function Phi with respect to the uniform measure.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, at least 0.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `kappa`.

    Returns
    -------
    float or ndarray of float64
        Phi(kappa) = log E exp(kappa x_1) for x uniform on the unit sphere; Phi(0) = 0.

    Raises
    ------
    ValueError
        If a concentration is negative, not finite or above 1e150, or a dimension is no
        integer from 2 to 1e15.

    Notes
    -----
    With n = d/2, Phi = log 0F1(; n; kappa^2/4). The relative error is below 1e-14. The
    log-density with respect to surface area is kappa m.x - Phi(kappa) - `log_sphere_area`.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 1. The expansions used are derived here; see the
       user guide.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_partition
    >>> print(round(log_partition(1.0, 3), 6))  # log(sinh(1))
    0.161439
    """
    return _log_partition(kappa, dim, deficit=False)


def log_partition_deficit(kappa: ArrayLike, dim: ArrayLike) -> Any:
    """Return kappa - Phi(kappa), without the cancellation of that difference.

    This is the log-density at the mean direction, with respect to the uniform measure.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, at least 0.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `kappa`.

    Returns
    -------
    float or ndarray of float64
        kappa - Phi(kappa), with Phi the `log_partition`.

    Raises
    ------
    ValueError
        If a concentration is negative, not finite or above 1e150, or a dimension is no
        integer from 2 to 1e15.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_partition_deficit
    >>> print(round(log_partition_deficit(1e12, 3), 6))  # log(2 kappa)
    28.324168
    """
    return _log_partition(kappa, dim, deficit=True)


def mean_resultant_length(kappa: ArrayLike, dim: ArrayLike, *, complement: bool = False) -> Any:
    """Return the mean resultant length A(kappa), the length of the mean parameter.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, at least 0.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `kappa`.
    complement : bool, default=False
        Return 1 - A(kappa), to full relative accuracy, instead.

    Returns
    -------
    float or ndarray of float64
        A(kappa) = I_{d/2}(kappa)/I_{d/2-1}(kappa) in [0, 1], or one minus it.

    Raises
    ------
    ValueError
        If a concentration is negative, not finite or above 1e150, or a dimension is no
        integer from 2 to 1e15.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 1.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import mean_resultant_length
    >>> print(round(mean_resultant_length(1.0, 3), 6))  # coth(1) - 1
    0.313035
    >>> print(round(1e9 * mean_resultant_length(1e9, 1000, complement=True), 6))
    499.499875
    """

    def evaluate(d: int, out: Array, kappa: Array) -> None:
        exact.mean_resultant_length(kappa, d, expansions(d).gap, bool(complement), out)

    return by_dimension(evaluate, dim, checked_kappa(kappa))


def _log_partition(kappa: ArrayLike, dim: ArrayLike, deficit: bool) -> Any:
    def evaluate(d: int, out: Array, kappa: Array) -> None:
        table = expansions(d)
        exact.log_partition(kappa, d, table.tail, table.constant, deficit, out)

    return by_dimension(evaluate, dim, checked_kappa(kappa))
