"""Scalar functions of the mean resultant length: concentration and negative entropy."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..._kernels import negentropy as routes
from ..._kernels import negentropy_newton as natural
from ..._kernels import vonmises_fisher as exact
from ..._kernels.vonmises_fisher_tables import expansions
from ..._typing import Array, Values
from ._arguments import by_dimension, checked_lengths
from ._cells import inverse_cells
from ._maps import log_partition, log_partition_deficit

Method: TypeAlias = Literal["exact", "ode", "rational", "refined", "banerjee", "newton"]

_NONE_GIVEN = np.empty(0)
_ODE_TOLERANCE = 1e-12


def concentration(
    r: ArrayLike,
    dim: ArrayLike,
    *,
    complement: ArrayLike | None = None,
    method: Method = "exact",
) -> Values:
    """Return the concentration kappa = psi'(r) of mean resultant length r: the inverse of A.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.
    complement : float or array_like, default=None
        1 - r, if it is known more precisely than by subtraction: kappa is about (d - 1)/(2 (1 - r))
        for r near 1, and must not be above 1e150.
    method : {"exact", "ode", "rational", "refined", "banerjee", "newton"}, default="exact"
        As in `negentropy`, whose derivative this is.

    Returns
    -------
    float or ndarray of float64
        The concentration.

    Raises
    ------
    ValueError
        If r is not in [0, 1) or does not fit its complement, `dim` is not from 2 to 1e15, or the
        method is unknown.

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
    method: Method = "exact",
) -> Values:
    """Return the negative entropy psi of the family at mean resultant length r.

    psi is the Legendre transform of the log-partition, psi(r) = kappa r - Phi(kappa) at kappa =
    psi'(r); psi(0) = 0. Its second derivative is the inverse variance along the mean.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.
    order : {0, 1, 2}, default=0
        Order of the derivative.
    complement : float or array_like, default=None
        1 - r, if it is known more precisely than by subtraction.
    method : {"exact", "ode", "rational", "refined", "banerjee", "newton"}, default="exact"
        How to compute it:

        - "exact": uniform expansions; for d < 65 and small concentrations polynomials, fitted once
          per dimension. No iteration; relative error below 1e-14 everywhere.
        - "ode": the paper's differential equation, solved once per dimension; relative error below
          1e-12, 1e-9 for order 2.
        - "rational": the paper's first refinement; relative error about 0.17/d^2. Closed forms,
          finite for every d >= 2.
        - "refined": the paper's second refinement, about 0.2/d^3; orders 1 and 2 only.
        - "banerjee": the approximation of [2]_, about 0.17/d.
        - "newton": root finding on the Perron continued fraction in natural parameters; relative
          error up to 1e-15/(1 - r).

    Returns
    -------
    float or ndarray of float64
        psi(r), psi'(r) = kappa or psi''(r) = 1/A'(kappa).

    Raises
    ------
    ValueError
        If r is not in [0, 1) or does not fit its complement, `dim` is not from 2 to 1e15, or the
        method is unknown or does not offer the order.

    References
    ----------
    .. [1] Nonnenmacher and Sahani, "A solution for the mean parametrization of the von Mises-Fisher
       distribution", sections 2.2-2.5 and appendix A.4.
    .. [2] Banerjee, Dhillon, Ghosh and Sra, "Clustering on the unit hypersphere using von
       Mises-Fisher distributions", JMLR 6, 2005.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import negentropy
    >>> negentropy([0.0, 0.5, 0.9], 100).round(4)
    array([ 0.    , 14.3521, 82.5037])
    """
    if order not in (0, 1, 2):
        raise ValueError(f"order is the order of the derivative, 0, 1 or 2, not {order!r}.")
    if method not in _ROUTES:
        raise ValueError(f"method must be one of {', '.join(_ROUTES)}, not {method!r}.")
    if method == "refined" and order == 0:
        raise ValueError(
            'method="refined" has no closed antiderivative: use "rational" for order 0.'
        )
    lengths = checked_lengths(r, complement, dim)
    if method == "newton" and order == 0:
        return _legendre(dim, *lengths)
    return by_dimension(partial(_ROUTES[method], order=order), dim, *lengths)


def _exact(d: int, out: Array, r: Array, q: Array = _NONE_GIVEN, *, order: int) -> None:
    table = expansions(d)
    exact.negentropy(r, q, d, table.excess, table.inverse_tail, inverse_cells(d), order, out)


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


def _legendre(dim: ArrayLike, r: Array, q: Array | None = None) -> Values:
    """Return kappa r - Phi(kappa) in the form that does not cancel, kappa by root finding."""
    q = 1 - r if q is None else q
    kappa = concentration(r, dim, complement=q, method="newton")
    near = log_partition_deficit(kappa, dim) - kappa * q
    return np.where(r > 0.5, near, kappa * r - log_partition(kappa, dim))[()]
