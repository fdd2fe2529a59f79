"""The modified Dirichlet distribution: any real parameters, and a floor under every entry.

mDir(x; alpha, floor) is proportional to prod_i x_i^(alpha_i - 1) on the part of the simplex
where every x_i is at least `floor`, the paper's epsilon. It is conjugate to the multinomial as
the Dirichlet is; negative parameters make it prefer sparse x more strongly.

References
----------
Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger
sparsity".
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, logit, logsumexp, xlogy

from ._arguments import checked_array, checked_number
from ._modified_dirichlet import Array, checked_sizes, modes

__all__ = ["log_kernel", "log_normalizer", "logpdf", "mode", "posterior"]


def log_kernel(x: ArrayLike, alpha: ArrayLike) -> Any:
    """Return the logarithm of the density without its normalizer.

    Parameters
    ----------
    x : array_like of shape (..., n)
        Points of the simplex; not checked.
    alpha : float or array_like of shape (n,)
        Parameters, any real numbers.

    Returns
    -------
    float or ndarray of shape (...,)
        The value of sum_i (alpha_i - 1) log x_i, where 0 log 0 is 0.

    Raises
    ------
    ValueError
        If an alpha is not finite or above 1e300 in size.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import log_kernel
    >>> print(log_kernel([0.5, 0.5], [1.0, 1.0]))
    0.0
    """
    sizes = checked_sizes(np.asarray(alpha, dtype=np.float64), "alpha")
    return np.sum(xlogy(sizes - 1, x), axis=-1)


def logpdf(x: ArrayLike, alpha: ArrayLike, floor: float) -> Any:
    """Return the log-density, normalized for n <= 3 only.

    Parameters
    ----------
    x : array_like of shape (..., n)
        Points of the simplex: they sum to 1.
    alpha : array_like of shape (n,)
        Parameters, any real numbers.
    floor : float
        The least value of an entry, in [0, 1/n]; positive if any alpha is not. With a floor
        of 0 this is the Dirichlet.

    Returns
    -------
    float or ndarray of shape (...,)
        The log-density with respect to the first n - 1 coordinates; -inf below the floor. For
        n > 3 the normalizer has no known form and is left out: differences of values for the
        same `alpha` and `floor` are all that can be used.

    Raises
    ------
    ValueError
        If the points do not sum to 1 or do not have one entry for each alpha, an alpha is not
        finite or above 1e300 in size, the floor is out of range, or an entry is 0 where its
        alpha is below 1.

    See Also
    --------
    log_normalizer : The normalizer, for n <= 3.

    References
    ----------
    .. [1] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.

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
    if len(alpha) <= 3:
        value = value - log_normalizer(alpha, floor)
    return np.where(inside, value, -np.inf)[()]


def mode(alpha: ArrayLike, floor: float, method: str = "rounds") -> Array:
    """Return the most probable point.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers.
    floor : float
        The least value of an entry, in [0, 1/n]; positive where an alpha is below 1.
    method : {"rounds", "sorting"}, default="rounds"
        "rounds" is Algorithm 1 of the paper: linear in practice, quadratic at worst.
        "sorting" is Algorithm 2, corrected: n log n.

    Returns
    -------
    ndarray of shape (n,)
        The mode. Where no alpha is above 1 a vertex is most probable: all entries are at
        the floor except that of the largest alpha, the first where several are largest.

    Raises
    ------
    ValueError
        If an alpha is not finite or above 1e300 in size, the floor is out of range, or the method
        is unknown.

    Notes
    -----
    As printed, Algorithm 2 is wrong wherever two entries are above the floor; here each entry
    keeps the sum that it had when it was accepted.

    References
    ----------
    .. [1] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.1.

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
    """Return the parameters after multinomial counts: the floor stays as it was.

    Parameters
    ----------
    alpha : float or array_like of shape (n,)
        Parameters of the prior, any real numbers.
    counts : array_like of shape (n,)
        Counts, not negative; they need not be whole numbers.

    Returns
    -------
    ndarray of shape (n,)
        The sum alpha + counts.

    Raises
    ------
    ValueError
        If a count is negative, alpha or the sum is not finite or above 1e300 in size, or the
        shapes do not agree.

    References
    ----------
    .. [1] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.

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
    """Return the logarithm of the normalizer, by integration, for n <= 3.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers; n is 1, 2 or 3.
    floor : float
        The least value of an entry, in [0, 1/n]; positive if any alpha is not. With a floor
        of 0 the normalizer is the Dirichlet's, the beta function.

    Returns
    -------
    float
        The log of the integral of prod_i x_i^(alpha_i - 1) over the first n - 1 coordinates.

    Raises
    ------
    ValueError
        If n > 3, an alpha is not finite or above 1e300 in size, or the floor is out of range.

    Examples
    --------
    >>> from skvmf.distributions.modified_dirichlet import log_normalizer
    >>> print(round(log_normalizer([2.0, 1.0], 0.0), 12))  # log(1 / 2)
    -0.69314718056
    """
    alpha, floor = _checked(alpha, floor)
    if len(alpha) > 3:
        raise ValueError(f"The normalizer is known for n <= 3 only, got n = {len(alpha)}.")
    if floor == 0 and np.any(alpha < 1):  # the integrand is infinite at the border
        ascending = np.sort(alpha)
        return float(betaln(ascending[1:], np.cumsum(ascending)[:-1]).sum())
    return float(_log_integral(alpha, np.array(floor)))


def _log_integral(alpha: Array, floor: Array) -> Array:
    """Integrate over the first coordinate; the others, rescaled to sum 1, see the floor rise.

    In t = logit(x) the integrand x^(alpha_1) (1 - x)^(alpha_2 + ... + alpha_n) is smooth. One
    peak inside and one at each end are allowed for: the panels shrink towards all three.
    """
    n, rest = len(alpha), np.sum(alpha[1:])
    if n == 1:
        return np.zeros_like(floor)
    low, high = logit(_never_zero(floor)), -logit(_never_zero((n - 1) * floor))
    high = np.maximum(high, low)  # where one point is left, rounding may exchange them

    def log_terms(peak: Array) -> tuple[Array, Array]:
        t, weights = _graded_rule(low, peak, high)
        log_x, log_rest = -np.logaddexp(0, -t), -np.logaddexp(0, t)
        inner = _log_integral(alpha[1:], floor[..., None] * np.exp(-log_rest)) if n == 3 else 0.0
        with np.errstate(divide="ignore"):
            return t, alpha[0] * log_x + rest * log_rest + inner + np.log(weights)

    peak = 0.5 * (low + high)
    for _ in range(2):
        t, terms = log_terms(peak)
        found = np.argmax(terms, axis=-1)[..., None]
        peak = np.take_along_axis(t, found, axis=-1)[..., 0]
    return np.asarray(logsumexp(log_terms(peak)[1], axis=-1))


def _never_zero(floor: Array) -> Array:
    """Stand off a floor of 0: all alphas are >= 1 then, and what is cut off is negligible."""
    return np.where(floor > 0, floor, 1e-20)


def _graded_rule(low: Array, peak: Array, high: Array) -> tuple[Array, Array]:
    """Return nodes and weights of a composite Gauss rule; one more axis than the arguments."""
    grades = 0.4 ** np.arange(20, 0, -1)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    breaks = []
    for left, right in ((low, peak), (peak, high)):
        length = np.asarray(right - left)[..., None]
        breaks += [left[..., None] + np.r_[0, grades] * length]
        breaks += [right[..., None] - grades[::-1] * length]
    edges = np.concatenate([*breaks, high[..., None]], axis=-1)
    half, middle = 0.5 * np.diff(edges, axis=-1), 0.5 * (edges[..., 1:] + edges[..., :-1])
    t = middle[..., None] + half[..., None] * nodes
    shape = (*t.shape[:-2], -1)
    return t.reshape(shape), (half[..., None] * weights).reshape(shape)


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
