"""Scalar functions of the von Mises-Fisher family: vectorised, validated, exact."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from .._kernels import negentropy as routes
from .._kernels import negentropy_newton as natural
from .._kernels import vonmises_fisher as exact
from .._kernels.vonmises_fisher_tables import expansions

Array = NDArray[np.float64]

_LARGEST = 1e150  # its square is still finite
_NONE_GIVEN = np.empty(0)
_ODE_TOLERANCE = 1e-12


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
        If a dimension is not an integer of at least 2.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import log_sphere_area
    >>> print(round(log_sphere_area(2), 6))  # log(2 pi)
    1.837877
    """
    half = 0.5 * _checked_dims(dim)
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
        If a concentration is negative, not finite or above 1e150, or a dimension is not an
        integer of at least 2.

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
        If a concentration is negative, not finite or above 1e150, or a dimension is not an
        integer of at least 2.

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
        If a concentration is negative, not finite or above 1e150, or a dimension is not an
        integer of at least 2.

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

    return _by_dimension(evaluate, dim, _checked_kappa(kappa))


def concentration(
    r: ArrayLike,
    dim: ArrayLike,
    *,
    complement: ArrayLike | None = None,
    method: str = "exact",
) -> Any:
    """Return the concentration whose mean resultant length is r: the inverse of A.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `r`.
    complement : float or array_like, default=None
        1 - r, where it is known better than the difference: kappa is about
        (d - 1)/(2 (1 - r)) for r near 1.
    method : str, default="exact"
        As in `negentropy`, of which this is order 1.

    Returns
    -------
    float or ndarray of float64
        kappa = psi'(r).

    Raises
    ------
    ValueError
        If r is outside [0, 1) or does not go with its complement, a dimension is not an integer
        of at least 2, or the method is unknown.

    See Also
    --------
    negentropy : The function of which this is the derivative.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import concentration, mean_resultant_length
    >>> r = mean_resultant_length([0.5, 20.0, 3e5], 300)
    >>> concentration(r, 300).round(9)
    array([5.e-01, 2.e+01, 3.e+05])
    """
    return negentropy(r, dim, order=1, complement=complement, method=method)


def negentropy(
    r: ArrayLike,
    dim: ArrayLike,
    *,
    order: int = 0,
    complement: ArrayLike | None = None,
    method: str = "exact",
) -> Any:
    """Return the negative entropy psi of the family at mean resultant length r.

    psi is the Legendre transform of the log-partition, psi(r) = kappa r - Phi(kappa) at
    kappa = psi'(r); psi(0) = 0. Its second derivative is the inverse variance along the mean.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `r`.
    order : {0, 1, 2}, default=0
        Order of the derivative.
    complement : float or array_like, default=None
        1 - r, where it is known better than the difference.
    method : str, default="exact"
        How:

        - "exact": uniform expansions, without iteration for d >= 65; relative error below
          1e-14 for every dimension.
        - "ode": the paper's differential equation, solved once for a dimension and kept;
          relative error below 1e-12, 1e-9 for order 2.
        - "rational": the paper's first refinement; relative error about 0.17/d^2. Closed
          forms, finite for every d >= 2.
        - "refined": the paper's second refinement, about 0.2/d^3; orders 1 and 2 only.
        - "banerjee": the approximation of Banerjee et al., about 0.17/d.
        - "newton": root finding on the Perron continued fraction, as with natural
          parameters; relative error about 1e-16/(1 - r).

    Returns
    -------
    float or ndarray of float64
        psi(r), psi'(r) = kappa or psi''(r) = 1/A'(kappa).

    Raises
    ------
    ValueError
        If r is outside [0, 1) or does not go with its complement, a dimension is not an integer
        of at least 2, the method is unknown or does not offer the order.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", sections 2.2-2.5 and appendix A.4.
    .. [2] A. Banerjee, I. Dhillon, J. Ghosh, S. Sra, "Clustering on the unit hypersphere using
       von Mises-Fisher distributions", JMLR 6, 2005.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import negentropy
    >>> negentropy([0.0, 0.5, 0.9], 100).round(4)
    array([ 0.    , 14.3521, 82.5037])
    >>> print(negentropy(0.0, 100, order=2))
    100.0
    """
    if order not in (0, 1, 2):
        raise ValueError(f"order is the order of the derivative, 0, 1 or 2, not {order!r}.")
    if method not in _ROUTES:
        raise ValueError(f"method must be one of {', '.join(_ROUTES)}, not {method!r}.")
    if method == "refined" and order == 0:
        raise ValueError(
            'method="refined" has no closed antiderivative: use "rational" for order 0.'
        )
    lengths = _checked_lengths(r, complement)
    if method == "newton" and order == 0:
        return _legendre(dim, *lengths)
    return _by_dimension(partial(_ROUTES[method], order=order), dim, *lengths)


def _exact(d: int, out: Array, r: Array, q: Array = _NONE_GIVEN, *, order: int) -> None:
    table = expansions(d)
    constant = table.inverse_constant
    exact.negentropy(r, q, d, table.excess, table.inverse_tail, constant, order, out)


def _ode(d: int, out: Array, r: Array, q: Array = _NONE_GIVEN, *, order: int) -> None:
    series, checkpoints = _trajectory(d)
    routes.ode(r, q, d, series, checkpoints, order, out)


@lru_cache(maxsize=64)
def _trajectory(d: int) -> tuple[Array, Array]:
    """Solve the ODE once for a dimension; later calls start at its checkpoints."""
    series = np.empty(8)
    routes.start_series(d, series)
    checkpoints = np.empty((4000, 3))  # d = 2 takes most, 1657
    n_checkpoints = routes.solve(d, series, _ODE_TOLERANCE, checkpoints)
    assert n_checkpoints > 0
    return series, checkpoints[:n_checkpoints].copy()


def _newton(d: int, out: Array, r: Array, q: Array = _NONE_GIVEN, *, order: int) -> None:
    natural.newton(r, q, d, order, out)


def _closed_form(
    d: int, out: Array, r: Array, q: Array = _NONE_GIVEN, *, order: int, refinement: int
) -> None:
    routes.closed_form(r, q, d, refinement, order, out)


_ROUTES: dict[str, Callable[..., None]] = {
    "exact": _exact,
    "ode": _ode,
    "rational": partial(_closed_form, refinement=1),
    "refined": partial(_closed_form, refinement=2),
    "banerjee": partial(_closed_form, refinement=0),
    "newton": _newton,
}


def _legendre(dim: ArrayLike, r: Array, q: Array | None = None) -> Any:
    """Return kappa r - Phi(kappa) in the form that does not cancel, kappa by root finding."""
    q = 1 - r if q is None else q
    kappa = concentration(r, dim, complement=q, method="newton")
    near = log_partition_deficit(kappa, dim) - kappa * q
    return np.where(r > 0.5, near, kappa * r - log_partition(kappa, dim))[()]


def _log_partition(kappa: ArrayLike, dim: ArrayLike, deficit: bool) -> Any:
    def evaluate(d: int, out: Array, kappa: Array) -> None:
        table = expansions(d)
        exact.log_partition(kappa, d, table.tail, table.constant, deficit, out)

    return _by_dimension(evaluate, dim, _checked_kappa(kappa))


def _by_dimension(evaluate: Callable[..., None], dim: ArrayLike, *arguments: Array) -> Any:
    """Broadcast, then call ``evaluate(d, out, *flat arguments)`` once for each dimension."""
    dims = _checked_dims(dim)
    shape = np.broadcast_shapes(dims.shape, *(x.shape for x in arguments))
    out = np.empty(shape)
    flat = [_flat(x, shape) for x in arguments]
    if dims.ndim == 0:
        evaluate(int(dims), out.reshape(-1), *flat)
        return out[()]
    distinct, groups = np.unique(np.broadcast_to(dims, shape), return_inverse=True)
    groups = groups.reshape(-1)
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=len(distinct)))
    for d, rows in zip(distinct, np.split(order, ends[:-1]), strict=True):
        part = np.empty(len(rows))
        evaluate(int(d), part, *(x[rows] for x in flat))
        out.reshape(-1)[rows] = part
    return out


def _flat(values: Array, shape: tuple[int, ...]) -> Array:
    """Return a 1-D array that every kernel accepts: one compiled signature for all."""
    if values.shape != shape:
        values = np.broadcast_to(values, shape)
    return np.require(values, np.float64, ["C", "A", "W", "E"]).reshape(-1)


def _checked_dims(dim: ArrayLike) -> NDArray[np.int64]:
    dims = np.asarray(dim)
    if dims.dtype.kind in "iu":
        whole = dims.astype(np.int64, copy=False)
    elif dims.dtype.kind == "f" and np.all(dims == np.floor(dims)) and np.all(np.isfinite(dims)):
        whole = dims.astype(np.int64)
    else:
        raise ValueError(f"dim must be an integer of at least 2, not {dim!r}.")
    if whole.size and whole.min() < 2:
        raise ValueError(f"dim must be an integer of at least 2; the smallest is {whole.min()}.")
    return whole


def _checked_kappa(kappa: ArrayLike) -> Array:
    values = np.asarray(kappa, dtype=np.float64)
    if values.size and not (values.min() >= 0 and values.max() <= _LARGEST):
        raise ValueError(
            "kappa, the concentration, must be finite, at least 0 and at most 1e150; "
            f"its values are within [{values.min()}, {values.max()}]."
        )
    return values


def _checked_lengths(r: ArrayLike, complement: ArrayLike | None) -> tuple[Array, ...]:
    """Return (r,) or (r, 1 - r) after checking their ranges and that they fit together."""
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
    return lengths, rest
