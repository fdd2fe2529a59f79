"""Scalar functions of the concentration, and of the mean resultant length.

In small dimensions the latter, concentration and negative entropy, are polynomials in cells, fitted
once. With a = (d - 1)/2, w = r^2 and y = (1 + w)/(1 - w), which is at least one,

    kappa = 2 a r/(1 - r^2) (1 + g(y)/y),
    psi = log(1 + w)/2 - a log(1 - w) + a integral from 1 to y of (g(z) - 1/(2a))/(z (z + 1)) dz,

where g and the integral are smooth. A cell spans a quarter of a power of two, so that the leading
bits of y number it. The singularities of g are complex, and further from every cell than its
length: fifteen powers reach the last digit. With h = g/y the second derivative of psi is (1 + h)/(h
(1 - r^2)), from which the samples of g have all their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ..._kernels import negentropy as routes
from ..._kernels import vonmises_fisher as exact
from ..._kernels.vonmises_fisher import MIN_EXPANDED, MIN_EXPANDED_INVERSE, expansions
from ..._typing import Array, Values

# The largest concentration: its square is still finite.
_MAX_ARGUMENT = 1e150

# Floats tell integers apart up to ten times as much.
_MAX_DIM = 10**15

# What limits give way, for values that were computed.
_ROUNDING = 1e-12


def by_dimension(evaluate: Callable[..., None], dim: ArrayLike, *arguments: Array) -> Values:
    """Broadcast, then call ``evaluate(d, out, *flat arguments)`` once per dimension."""
    dims = checked_dims(dim)
    shape = np.broadcast_shapes(dims.shape, *(x.shape for x in arguments))
    out = np.empty(shape)
    flat = [_flat(x, shape) for x in arguments]
    if dims.ndim == 0:
        evaluate(int(dims), out.reshape(-1), *flat)
        return out[()]
    all_dims = np.broadcast_to(dims, shape).reshape(-1)
    order = np.argsort(all_dims, kind="stable")
    distinct, starts = np.unique(all_dims[order], return_index=True)
    # Not strict: of no entries there is still one part, an empty one.
    for d, rows in zip(distinct, np.split(order, starts[1:]), strict=False):
        part = np.empty(len(rows))
        evaluate(int(d), part, *(x[rows] for x in flat))
        out.reshape(-1)[rows] = part
    return out


def _flat(values: Array, shape: tuple[int, ...]) -> Array:
    """Return a 1-D array that every kernel accepts: one compiled signature for all."""
    if values.shape != shape:
        values = np.broadcast_to(values, shape)
    flags = values.flags
    # Ownership first: NumPy 1 warns if one asks of broadcast arrays whether they are writeable.
    fits = flags.owndata and flags.writeable and flags.c_contiguous and flags.aligned
    if not (fits and values.dtype == np.float64):
        values = np.array(values, dtype=np.float64, order="C")
    return values.reshape(-1)


def checked_dims(dim: ArrayLike) -> Array:
    """Return dimensions as int64; raise a ValueError unless all are integers in range."""
    dims = np.asarray(dim)
    if dims.ndim == 0 and dims.dtype == np.int64 and 2 <= dims.item() <= _MAX_DIM:
        return dims  # as mixtures ask: minima of arrays take longer
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
    """Return concentrations as float64, or raise a ValueError if they are out of range."""
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
    # As r tends to 1, kappa is (d - 1)/(2 (1 - r)).
    min_complement = 0.5 * (checked_dims(dim) - 1.0) / _MAX_ARGUMENT
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
    complements = np.asarray(complement, dtype=np.float64)
    q_low, q_high = complements.min(), complements.max()
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
    if np.any(complements < min_complement * (1 - _ROUNDING)):
        raise ValueError(
            "complement, 1 - r, must be at least (dim - 1)/2 * 1e-150, that of a concentration of "
            f"1e150; its values are within [{q_low}, {q_high}]."
        )
    return lengths, complements


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
    return by_dimension(partial(_log_partition, deficit=False), dim, checked_kappa(kappa))


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
    return by_dimension(partial(_log_partition, deficit=True), dim, checked_kappa(kappa))


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


def _log_partition(d: int, out: Array, kappa: Array, *, deficit: bool) -> None:
    table = expansions(d)
    exact.log_partition(kappa, d, table.tail, table.constant, deficit, out)


def log_affinities(directions: Array, concentrations: Array, i: int, others: Array) -> Array:
    """Return the logarithms (n,) of the Bhattacharyya coefficients of one distribution with others.

    Phi(R) - (Phi(kappa_i) + Phi(kappa_j)) / 2 for half the length R of the sum of the natural
    parameters, in a form without cancellation (derived here).
    """
    dim = directions.shape[1]
    kappa_i = concentrations[i]
    kappa_j = concentrations[others]
    sums = kappa_j + kappa_i
    squared_gaps = kappa_j * kappa_i * ((directions[others] - directions[i]) ** 2).sum(axis=1)
    R = np.sqrt(np.maximum(sums**2 - squared_gaps, 0)) / 2
    # Phi is kappa less its deficit, and R less half the sum of both kappas is
    # -squared_gaps / (2 (2 R + sums)).
    peaks = log_partition_deficit(kappa_j, dim) + log_partition_deficit(kappa_i, dim)
    deficits = peaks / 2 - log_partition_deficit(R, dim)
    # Not zero, if both kappas are.
    totals = np.maximum(2 * R + sums, np.finfo(np.float64).tiny)
    return np.minimum(deficits - 0.5 * squared_gaps / totals, 0)


# Nodes of interpolation in a cell: fifteen powers reach the last digit.
_N_NODES = 15
_NODES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_N_NODES) + 0.5) / _N_NODES)


@lru_cache(maxsize=256)
def inverse_cells(dim: int) -> np.ndarray:
    """Return ascending coefficients of g and of the integral in y minus the start of its cell.

    The shape is (2, n_cells, 16). If the expansions reach everywhere there are no cells.
    """
    a = 0.5 * (dim - 1)
    if a >= MIN_EXPANDED:
        return np.empty((2, 0, _N_NODES + 1))
    # y is below MIN_EXPANDED_INVERSE/(2a), at most 90, and the largest cell may start there.
    octaves = 2.0 ** np.arange(7)[:, np.newaxis]
    starts = (octaves * [1, 1.25, 1.5, 1.75]).ravel()
    lengths = np.repeat(0.25 * octaves, 4)
    n_cells = np.count_nonzero(starts <= MIN_EXPANDED_INVERSE / (2 * a) * (1 + _ROUNDING))
    starts = starts[:n_cells, np.newaxis]
    lengths = lengths[:n_cells, np.newaxis]

    # Interpolate g and the integrand in relative positions, which are near the nodes of Chebyshev:
    # nothing is magnified.
    y, g = _samples(dim, starts + lengths * _NODES)
    values = np.stack([g, a * (g - 0.5 / a) / (y * (y + 1))], axis=2)
    powers = np.arange(_N_NODES)
    positions = (y - starts) / lengths
    terms = np.linalg.solve(positions[:, :, np.newaxis] ** powers, values)

    cells = np.zeros((2, n_cells, _N_NODES + 1))
    cells[0, :, :-1] = terms[:, :, 0] / lengths**powers
    integral = terms[:, :, 1] * lengths / (powers + 1)
    cells[1, :, 1:] = integral / lengths ** (powers + 1)
    # A cell's integral starts with those of all cells before it.
    cells[1, 1:, 0] = np.cumsum(integral.sum(axis=1))[:-1]
    # Beside y = 1 the integral is of second order.
    cells[1, 0, 1] = 0.0
    return cells


def _samples(dim: int, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points y near those given, and g there, from the concentration at them."""
    a = 0.5 * (dim - 1)
    gap = expansions(dim).gap
    # The value at both ends.
    g = np.full_like(near, 0.5 / a)
    r, q = np.empty((2, near.size))
    # After one round the points for d = 2 miss by a fifth of a cell, after two by 0.003.
    for _ in range(3):
        kappa = (a * np.sqrt((near - 1) * (near + 1)) * (1 + g / near)).ravel()
        exact.mean_resultant_length(kappa, dim, gap, False, r)
        exact.mean_resultant_length(kappa, dim, gap, True, q)
        vee = q * (1 + r)
        y = (1 + r * r) / vee
        # From psi'' = 1/A', whose digits are all good.
        g = (y / (vee / _slope(kappa, 0.5 * dim) - 1)).reshape(near.shape)
    return y.reshape(near.shape), g


def _slope(kappa: np.ndarray, n: float) -> np.ndarray:
    """Return A'(kappa): series of positive terms, for it and for the square of 0F1(; n; z)."""
    z = 0.25 * kappa * kappa
    term = np.full_like(z, 0.5 / n)
    power = np.ones_like(z)
    above = term.copy()
    below = power.copy()
    k = 0.0
    # Each term is less than half the last once k^2 > 8 z.
    while np.any(term > 1e-17 * above):
        power = power * z / ((k + 1) * (n + k))
        below += power
        term = term * z * (2 * n - 1 + 2 * k) * (2 * n + 2 * k)
        term /= (2 * n + k) * (k + 1) * (n + k) * (n + k + 1)
        above += term
        k += 1
    return above / (below * below)


Method: TypeAlias = Literal["exact", "ode", "rational", "refined", "banerjee", "newton"]

# An empty complement tells kernels to compute 1 - r.
_NOT_GIVEN = np.empty(0)

# The local error relative to psi' and psi, which leaves what `negentropy` promises.
_ODE_TOLERANCE = 1e-12


def concentration(
    r: ArrayLike, dim: ArrayLike, *, complement: ArrayLike | None = None, method: Method = "exact"
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
    psi'(r); psi(0) = 0. Its second derivative is the inverse variance along the mean. See
    Nonnenmacher and Sahani, sections 2.2-2.5 and appendix A.4.

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
        - "banerjee": the approximation of Banerjee et al., JMLR 6, 2005; about 0.17/d.
        - "newton": root finding on the Perron continued fraction in natural parameters; relative
          error up to 1e-15/(1 - r).

    Returns
    -------
    float or ndarray of float64
        psi(r), psi'(r) = kappa or psi''(r) = 1/A'(kappa).

    Raises
    ------
    ValueError
        If r, its complement or `dim` are out of range, or the method does not offer the order.

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
        raise ValueError('method="refined" has no closed antiderivative: order 0 needs "rational".')
    lengths = checked_lengths(r, complement, dim)
    if method == "newton" and order == 0:
        return _legendre(dim, *lengths)
    return by_dimension(partial(_ROUTES[method], order=order), dim, *lengths)


def _exact(d: int, out: Array, r: Array, q: Array = _NOT_GIVEN, *, order: int) -> None:
    table = expansions(d)
    exact.negentropy(r, q, d, table.excess, table.inverse_tail, inverse_cells(d), order, out)


def exact_functions(r: Array, q: Array, dim: int) -> tuple[Array, Array, Array]:
    """Return kappa, Phi(kappa) and kappa - Phi(kappa) of r and q = 1 - r, all (n,).

    Nothing is checked: steps of mixtures ask for those of a few components, where checks take most
    of the time.
    """
    kappa = np.empty(len(r))
    log_partition = np.empty(len(r))
    deficit = np.empty(len(r))
    _exact(dim, kappa, r, q, order=1)
    _log_partition(dim, log_partition, kappa, deficit=False)
    _log_partition(dim, deficit, kappa, deficit=True)
    return kappa, log_partition, deficit


def _ode(d: int, out: Array, r: Array, q: Array = _NOT_GIVEN, *, order: int) -> None:
    series, checkpoints = _trajectory(d)
    routes.ode(r, q, d, series, checkpoints, order, out)


@lru_cache(maxsize=64)
def _trajectory(d: int) -> tuple[Array, Array]:
    """Solve the ODE once for a dimension; later calls start at its checkpoints."""
    series = np.empty(8)
    routes.start_series(d, series)
    # d = 2 takes most, 1657.
    checkpoints = np.empty((4000, 3))
    n_checkpoints = routes.solve(d, series, _ODE_TOLERANCE, checkpoints)
    assert n_checkpoints > 0
    return series, checkpoints[:n_checkpoints].copy()


def _newton(d: int, out: Array, r: Array, q: Array = _NOT_GIVEN, *, order: int) -> None:
    routes.newton(r, q, d, order, out)


def _closed_form(
    d: int, out: Array, r: Array, q: Array = _NOT_GIVEN, *, order: int, refinement: int
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
    if q is None:
        q = 1 - r
    kappa = concentration(r, dim, complement=q, method="newton")
    near = log_partition_deficit(kappa, dim) - kappa * q
    return np.where(r > 0.5, near, kappa * r - log_partition(kappa, dim))[()]
