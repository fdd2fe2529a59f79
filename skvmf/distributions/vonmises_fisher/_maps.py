"""Scalar functions of the concentration: log-partition and mean resultant length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ..._kernels import vonmises_fisher as exact
from ..._kernels.vonmises_fisher_tables import expansions
from ..._typing import Array, Values

_MAX_ARGUMENT = 1e150  # its square is still finite
_MAX_DIM = 10**15  # floats tell integers apart up to ten times as much
_ROUNDING = 1e-12  # what the limits give way, for values that were computed


def by_dimension(evaluate: Callable[..., None], dim: ArrayLike, *arguments: Array) -> Values:
    """Broadcast, then call ``evaluate(d, out, *flat arguments)`` once per dimension."""
    dims = checked_dims(dim)
    shape = np.broadcast_shapes(dims.shape, *(x.shape for x in arguments))
    out = np.empty(shape)
    flat = [_flat(x, shape) for x in arguments]
    if dims.ndim == 0:
        evaluate(int(dims), out.reshape(-1), *flat)
        return out[()]
    every = np.broadcast_to(dims, shape).reshape(-1)
    order = np.argsort(every, kind="stable")
    distinct, starts = np.unique(every[order], return_index=True)
    for d, rows in zip(distinct, np.split(order, starts[1:]), strict=False):  # none: one empty
        part = np.empty(len(rows))
        evaluate(int(d), part, *(x[rows] for x in flat))
        out.reshape(-1)[rows] = part
    return out


def _flat(values: Array, shape: tuple[int, ...]) -> Array:
    """Return a 1-D array that every kernel accepts: one compiled signature for all."""
    if values.shape != shape:
        values = np.broadcast_to(values, shape)
    flat = np.require(values, np.float64, ["C", "A", "E"])
    if not (flat.flags.owndata and flat.flags.writeable):  # NumPy 1 warns if asked of lent ones
        flat = flat.copy()
    return flat.reshape(-1)


def checked_dims(dim: ArrayLike) -> Array:
    dims = np.asarray(dim)
    if dims.dtype.kind in "iu":
        whole = dims.astype(np.int64, copy=False)
    elif dims.dtype.kind == "f" and np.all(dims == np.floor(dims)) and np.all(np.isfinite(dims)):
        whole = dims.astype(np.int64)
    else:
        raise ValueError(f"dim must be an integer of at least 2, not {dim!r}.")
    if whole.size and whole.min() < 2:
        raise ValueError(f"dim must be an integer of at least 2; the smallest is {whole.min()}.")
    if whole.size and whole.max() > _MAX_DIM:
        raise ValueError(f"dim must be at most 1e15; the largest is {whole.max()}.")
    return whole


def checked_kappa(kappa: ArrayLike) -> Array:
    values = np.asarray(kappa, dtype=np.float64)
    if values.size and not (values.min() >= 0 and values.max() <= _MAX_ARGUMENT * (1 + _ROUNDING)):
        raise ValueError(
            "kappa, the concentration, must be finite, at least 0 and at most 1e150; "
            f"its values are within [{values.min()}, {values.max()}]."
        )
    return values


def checked_lengths(
    r: ArrayLike, complement: ArrayLike | None, dim: ArrayLike
) -> tuple[Array, ...]:
    """Return (r,) or (r, 1 - r) after checking that they are in range and fit together."""
    least = 0.5 * (checked_dims(dim) - 1.0) / _MAX_ARGUMENT  # kappa is (d - 1)/(2 (1 - r)) there
    lengths = np.asarray(r, dtype=np.float64)
    if lengths.size == 0:
        return (lengths,)
    low, high = lengths.min(), lengths.max()
    if complement is None:
        if not (low >= 0 and high < 1):
            raise ValueError(
                "r, the mean resultant length, must be at least 0 and less than 1; "
                f"its values are within [{low}, {high}]."
            )
        return (lengths,)
    rest = np.asarray(complement, dtype=np.float64)
    q_low, q_high = rest.min(), rest.max()
    if not (low >= 0 and high <= 1 and q_low > 0 and q_high <= 1):
        raise ValueError(
            "r must be at least 0 and less than 1 and its complement 1 - r above 0; they are "
            f"within [{low}, {high}] and [{q_low}, {q_high}]."
        )
    if abs(high + q_low - 1) > 1e-6 or abs(low + q_high - 1) > 1e-6:
        raise ValueError(
            f"complement must be 1 - r: r is within [{low}, {high}], "
            f"complement within [{q_low}, {q_high}]."
        )
    if np.any(rest < least * (1 - _ROUNDING)):
        raise ValueError(
            "complement, 1 - r, must be at least (dim - 1)/2 * 1e-150, that of a concentration of "
            f"1e150; its values are within [{q_low}, {q_high}]."
        )
    return lengths, rest


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
    """Return the mean resultant length A(kappa) (Nonnenmacher and Sahani, section 1).

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
        A(kappa) = I_{d/2}(kappa)/I_{d/2-1}(kappa) in [0, 1], the length of the mean parameter, or
        one minus it.

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


def log_affinities(directions: Array, concentrations: Array, i: int, others: Array) -> Array:
    """Return the logarithms (n,) of the Bhattacharyya coefficients of one distribution with others.

    Phi(R) - (Phi(kappa_i) + Phi(kappa_j)) / 2 for half the length R of the sum of the natural
    parameters, in a form without cancellation (derived here).
    """
    own, kappa, dim = concentrations[i], concentrations[others], directions.shape[1]
    sums = kappa + own
    squared_gaps = kappa * own * ((directions[others] - directions[i]) ** 2).sum(axis=1)
    R = np.sqrt(np.maximum(sums**2 - squared_gaps, 0)) / 2
    peaks = log_partition_deficit(kappa, dim) + log_partition_deficit(own, dim)
    totals = np.maximum(2 * R + sums, np.finfo(np.float64).tiny)
    deficits = peaks / 2 - log_partition_deficit(R, dim)
    return np.minimum(deficits - 0.5 * squared_gaps / totals, 0)
