"""Scalar functions of the concentration: log-partition and mean resultant length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ..._kernels import vonmises_fisher as exact
from ..._kernels.vonmises_fisher_tables import expansions
from ..._typing import Array, Values
from ._arguments import by_dimension, checked_dims, checked_kappa


def log_sphere_area(dim: ArrayLike) -> Values:
    """Return the logarithm of the surface area of the unit sphere.

    Parameters
    ----------
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.

    Returns
    -------
    float or ndarray of float64
        log(2 pi^(d/2) / Gamma(d/2)).

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_sphere_area
    >>> print(round(log_sphere_area(2), 6))  # log(2 pi)
    1.837877
    """
    half = 0.5 * checked_dims(dim)
    return (np.log(2) + half * np.log(np.pi) - gammaln(half))[()]


def log_partition(kappa: ArrayLike, dim: ArrayLike) -> Values:
    """Return the log-partition function Phi with respect to the uniform measure.

    The log-density with respect to surface area is kappa m.x - Phi(kappa) - `log_sphere_area`. See
    section 1 of Nonnenmacher and Sahani. The relative error is below 1e-14.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, from 0 to 1e150.
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.

    Returns
    -------
    float or ndarray of float64
        Phi(kappa) = log E exp(kappa x_1) = log 0F1(; d/2; kappa^2/4) for x uniform on the sphere.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_partition
    >>> print(round(log_partition(1.0, 3), 6))  # log(sinh(1))
    0.161439
    """
    return _log_partition(kappa, dim, deficit=False)


def log_partition_deficit(kappa: ArrayLike, dim: ArrayLike) -> Values:
    """Return kappa - Phi(kappa), without the cancellation of that difference.

    This is the log-density at the mean direction, with respect to the uniform measure.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, from 0 to 1e150.
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.

    Returns
    -------
    float or ndarray of float64
        kappa - Phi(kappa), with Phi the `log_partition`.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_partition_deficit
    >>> print(round(log_partition_deficit(1e12, 3), 6))  # log(2 kappa)
    28.324168
    """
    return _log_partition(kappa, dim, deficit=True)


def mean_resultant_length(kappa: ArrayLike, dim: ArrayLike, *, complement: bool = False) -> Values:
    """Return the mean resultant length A(kappa), the length of the mean parameter.

    See section 1 of Nonnenmacher and Sahani.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, from 0 to 1e150.
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.
    complement : bool, default=False
        Return 1 - A(kappa), to full relative accuracy, instead.

    Returns
    -------
    float or ndarray of float64
        A(kappa) = I_{d/2}(kappa)/I_{d/2-1}(kappa) in [0, 1], or one minus it.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import mean_resultant_length
    >>> print(round(mean_resultant_length(1.0, 3), 6))  # coth(1) - 1
    0.313035
    """

    def evaluate(d: int, out: Array, kappa: Array) -> None:
        exact.mean_resultant_length(kappa, d, expansions(d).gap, bool(complement), out)

    return by_dimension(evaluate, dim, checked_kappa(kappa))


def _log_partition(kappa: ArrayLike, dim: ArrayLike, deficit: bool) -> Values:
    def evaluate(d: int, out: Array, kappa: Array) -> None:
        table = expansions(d)
        exact.log_partition(kappa, d, table.tail, table.constant, deficit, out)

    return by_dimension(evaluate, dim, checked_kappa(kappa))
