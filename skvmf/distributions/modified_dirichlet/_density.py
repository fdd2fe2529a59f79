"""The modified Dirichlet distribution: any real parameters, and a floor for every entry.

mDir(x; alpha, floor) is proportional to prod_i x_i^(alpha_i - 1) on the part of the simplex where
every x_i is at least `floor`, the paper's epsilon. It is conjugate to the multinomial as the
Dirichlet is; negative parameters make it prefer sparse x more strongly. A floor is in [0, 1/n], and
positive if any alpha is not; parameters are at most 1e300 in absolute value. Functions raise a
ValueError for others.

References
----------
Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger sparsity".
Functions cite its sections.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, xlogy

from ..._typing import Array, Values
from .._arguments import checked_array, checked_number
from .._random import RandomState, checked_generator, checked_size
from ._integrals import draws, log_integral
from ._mode import checked_sizes, modes

__all__ = ["log_kernel", "log_normalizer", "logpdf", "mean", "mode", "posterior", "rvs"]

_MAX_TABULATED = 1e4  # above, series of integrals over four entries and more lose digits


def log_kernel(x: ArrayLike, alpha: ArrayLike) -> Values:
    """Return the logarithm of the density without its normalizer.

    Parameters
    ----------
    x : array_like of shape (..., n)
        Points of the simplex; not checked.
    alpha : float or array_like of shape (n,)
        Parameters, any real numbers up to 1e300 in absolute value.

    Returns
    -------
    float or ndarray of shape (...,)
        sum_i (alpha_i - 1) log x_i, where 0 log 0 is 0.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import log_kernel
    >>> print(log_kernel([0.5, 0.5], [1.0, 1.0]))
    0.0
    """
    sizes = checked_sizes(np.asarray(alpha, dtype=np.float64), "alpha")
    return np.sum(xlogy(sizes - 1, x), axis=-1)


def logpdf(x: ArrayLike, alpha: ArrayLike, floor: float) -> Values:
    """Return the log-density (Tu, section 2).

    Parameters
    ----------
    x : array_like of shape (..., n)
        Points of the simplex: they sum to 1.
    alpha : array_like of shape (n,)
        Parameters, of a size that `log_normalizer` takes.
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.

    Returns
    -------
    float or ndarray of shape (...,)
        The log-density with respect to the first n - 1 coordinates; -inf below the floor.

    Raises
    ------
    ValueError
        If the points do not sum to 1 or do not have one entry per alpha, an entry is 0 with its
        alpha below 1, alpha is larger than `log_normalizer` takes, or floor is not between 0 and
        1/n.

    See Also
    --------
    log_kernel : The fast part, for many densities with the same parameters.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import logpdf
    >>> print(round(logpdf([0.25, 0.75], [2.0, 1.0], 0.0), 12))  # log(2 x)
    -0.69314718056
    """
    alpha, floor = _checked(alpha, floor)
    x = checked_array(x, "x")
    if x.ndim == 0 or x.shape[-1] != len(alpha):
        raise ValueError(f"x has shape {x.shape}; its last axis must have {len(alpha)} entries.")
    if not np.all(np.abs(x.sum(axis=-1) - 1) <= 1e-9):
        raise ValueError("Every point of x must sum to 1: divide by the sums first.")
    if floor == 0 and np.any((x == 0) & (alpha < 1)):
        raise ValueError("x holds a 0 where alpha is below 1: the density is infinite there.")
    inside = np.all(x >= floor, axis=-1)
    value = log_kernel(np.where(inside[..., None], x, 1.0), alpha)
    return np.where(inside, value - log_normalizer(alpha, floor), -np.inf)[()]


def mode(alpha: ArrayLike, floor: float, method: Literal["rounds", "sorting"] = "rounds") -> Array:
    """Return the most probable point (Tu, section 2.1).

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers up to 1e300 in absolute value.
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if an alpha is below 1.
    method : {"rounds", "sorting"}, default="rounds"
        "rounds" is Algorithm 1 of the paper: linear in practice, quadratic at worst. "sorting" is
        Algorithm 2 in n log n, corrected: as printed it is wrong for two or more entries above the
        floor. Here each entry keeps the sum that it had when it was accepted.

    Returns
    -------
    ndarray of shape (n,)
        The mode. If no alpha is above 1 it is a vertex: all entries are at the floor except that of
        the (first) largest alpha.

    Raises
    ------
    ValueError
        If alpha is above 1e300 in absolute value, floor is not between 0 and 1/n or is 0 with an
        alpha below 1, or the method is unknown.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import mode
    >>> mode([5.0, 3.0, -2.0], floor=0.1)
    array([0.6, 0.3, 0.1])
    """
    alpha, floor = _checked(alpha, floor)
    if floor == 0 and np.any(alpha < 1):
        raise ValueError(
            "With a floor of 0 every alpha must be at least 1: raise the floor to give alphas "
            "below 1 a mode."
        )
    if method not in ("rounds", "sorting"):
        raise ValueError(f"method must be 'rounds' or 'sorting', got {method!r}.")
    return modes(alpha - 1, floor, by_sorting=method == "sorting")


def posterior(alpha: ArrayLike, counts: ArrayLike) -> Array:
    """Return the parameters after multinomial counts; the floor does not change (Tu, section 2).

    Parameters
    ----------
    alpha : float or array_like of shape (n,)
        Parameters of the prior, any real numbers up to 1e300 in absolute value.
    counts : array_like of shape (n,)
        Counts, finite and not negative; they need not be integers.

    Returns
    -------
    ndarray of shape (n,)
        The sum alpha + counts.

    Raises
    ------
    ValueError
        If alpha is above 1e300 in absolute value, a count is negative or not finite, or the
        shapes do not agree.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import posterior
    >>> posterior(-1.0, [3, 0])
    array([ 2., -1.])
    """
    counts, prior = checked_array(counts, "counts"), checked_array(alpha, "alpha")
    if counts.ndim != 1 or prior.shape not in [(), counts.shape]:
        raise ValueError(
            "counts must be a vector and alpha a number or a vector as long, "
            f"got shapes {counts.shape} and {prior.shape}."
        )
    if not np.all((counts >= 0) & np.isfinite(counts)):
        raise ValueError("counts must be finite and not negative.")
    checked_sizes(prior, "alpha")
    return checked_sizes(np.add(prior, counts, dtype=np.float64), "alpha + counts")


def log_normalizer(alpha: ArrayLike, floor: float) -> float:
    """Return the logarithm of the normalizer, by integration.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers up to 1e300 in absolute value (1e4 for n > 3 with a floor).
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the beta function.

    Returns
    -------
    float
        The log of the integral of prod_i x_i^(alpha_i - 1) over the first n - 1 coordinates.

    Notes
    -----
    The integral over the last k entries is a function of the floor divided by their sum. It is
    tabulated for k = 2, 3, ..., each from the one before (derived here). For n > 3 with a floor
    this takes 0.05 to 0.1 seconds per entry. Errors are below 1e-13 for n <= 3, and below 1e-8
    relative to the logarithm for n > 3.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import log_normalizer
    >>> print(round(log_normalizer([2.0, 1.0], 0.0), 12))  # log(1 / 2)
    -0.69314718056
    """
    alpha, floor = _checked(alpha, floor)
    if floor == 0 and (len(alpha) > 3 or np.any(alpha < 1)):  # infinite at the border
        ascending = np.sort(alpha)
        return float(betaln(ascending[1:], np.cumsum(ascending)[:-1]).sum())
    if len(alpha) * floor >= 1:
        return -np.inf  # a point
    return log_integral(_moderate(alpha) if len(alpha) > 3 else alpha, floor)


def mean(alpha: ArrayLike, floor: float) -> Array:
    """Return the expectation of a point.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers; for n > 3 below 1e4 in absolute value.
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not.

    Returns
    -------
    ndarray of shape (n,)
        Entry i is the normalizer with one more in alpha_i, divided by the normalizer.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import mean
    >>> mean([-3.0, -3.0, -3.0, 2.0], floor=0.01).round(4)
    array([0.0149, 0.0149, 0.0149, 0.9552])
    """
    alpha, floor = _checked(alpha, floor)
    n = len(alpha)
    if n * floor >= 1:
        return np.full(n, 1 / n)
    distinct, which = np.unique(alpha, return_inverse=True)
    base = log_normalizer(alpha, floor)
    ratios = np.empty(len(distinct))
    for i in range(len(distinct)):
        more = alpha + (np.arange(n) == np.flatnonzero(which == i)[0])
        ratios[i] = log_normalizer(more, floor) - base
    expected = np.exp(ratios)[which]
    return np.asarray(expected / expected.sum())


def rvs(
    alpha: ArrayLike,
    floor: float,
    size: int | tuple[int, ...] | None = 1,
    random_state: RandomState = None,
) -> Array:
    """Draw random points, independent of each other.

    Each entry is drawn given those before it, with the integrals of `log_normalizer`; the
    distribution function is inverted to about 1e-9.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers up to 1e4 in absolute value.
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not.
    size : int, tuple of int or None, default=1
        Number of points, or their shape; None is one point without an axis for it.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; None is NumPy's global state.

    Returns
    -------
    ndarray of shape (size, n), size + (n,) or (n,)
        Points of the simplex, with no entry below the floor.

    Raises
    ------
    ValueError
        If alpha is above 1e4 in absolute value, floor is not between 0 and 1/n or is 0 with an
        alpha that is not positive, or `size` is negative.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import rvs
    >>> x = rvs([-2.0, -2.0, 3.0], floor=0.01, size=1000, random_state=0)
    >>> print(x.shape, x.min() >= 0.01)
    (1000, 3) True
    """
    alpha, floor = _checked(alpha, floor)
    shape, rng = checked_size(size), checked_generator(random_state)
    count, n = int(np.prod(shape, dtype=np.int64)), len(alpha)
    if n * floor >= 1:
        points = np.full((count, n), 1 / n)
    elif floor == 0:
        points = rng.dirichlet(alpha, size=count)
    else:
        points = draws(_moderate(alpha), floor, count, rng)
    return points.reshape(*shape, n)


def _moderate(alpha: Array) -> Array:
    """Return parameters, or raise a ValueError if tables of integrals would lose digits."""
    largest = np.abs(alpha).max()
    if largest > _MAX_TABULATED:
        raise ValueError(
            f"alpha must be between -1e4 and 1e4 here, got an absolute value of {largest:g}. "
            "log_kernel and mode have no such limit."
        )
    return alpha


def _checked(alpha: ArrayLike, floor: float) -> tuple[Array, float]:
    """Return valid parameters as an array and a float."""
    parameters = np.ascontiguousarray(checked_array(alpha, "alpha"), dtype=np.float64)
    if parameters.ndim != 1 or len(parameters) == 0:
        raise ValueError(f"alpha must be a vector, got the shape {parameters.shape}.")
    checked_sizes(parameters, "alpha")
    least = checked_number(floor, "floor")
    if not 0 <= least <= (1 + 1e-12) / len(parameters):
        raise ValueError(f"floor must be in [0, 1/{len(parameters)}], got {floor}.")
    if least == 0 and np.any(parameters <= 0):
        raise ValueError(
            "With a floor of 0 every alpha must be positive, or the density has no integral: "
            "raise the floor."
        )
    return parameters, least
