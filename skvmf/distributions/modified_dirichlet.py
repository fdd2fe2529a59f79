"""The modified Dirichlet distribution: any real parameters, and a floor for every entry.

mDir(x; alpha, floor) is proportional to prod_i x_i^(alpha_i - 1) on the part of the simplex where
every x_i is at least `floor`, the paper's epsilon. It is conjugate to the multinomial as the
Dirichlet is; negative parameters make it prefer sparse x more strongly. A floor is in [0, 1/n], and
positive if any alpha is not; parameters are at most 1e300 in absolute value. Functions raise a
ValueError for others, and where shapes do not agree.

Normalizer and draws are nested integrals. The last k entries of a point, divided by their sum s,
are a point of the smaller simplex with the floor floor/s. The integral over them is a function of
that number alone, and integrals over 1, 2, ... entries follow from each other: each is tabulated
for the next (derived here).

Functions cite sections of Tu, "Modified Dirichlet distribution: allowing negative parameters to
induce stronger sparsity".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import betaln, logit, logsumexp, xlogy

from .._docstrings import add_shared_parameters
from .._kernels import simplex as dirichlet
from .._typing import Array, Values
from ._arguments import RandomState, checked_array, checked_generator, checked_number, checked_size

MAX_PARAMETER = 1e300  # times the log of the smallest float, and summed, it is still a float


def checked_sizes(alpha: Array, name: str) -> Array:
    """Return parameters, or raise a ValueError that names them if densities would overflow."""
    if not np.all(np.abs(alpha) <= MAX_PARAMETER):  # nor for nan
        raise ValueError(f"{name} must be finite, and at most {MAX_PARAMETER:g} in absolute value.")
    return alpha


def modes(excess: Array, floor: float, *, by_sorting: bool = False) -> Array:
    """Return the most probable point for each vector along the last axis.

    `excess` of shape (..., n) is alpha - 1 + counts: in alpha itself, counts below 1e-16 would be
    lost. If no excess is above 0, the first largest takes all but the floors. `by_sorting` uses
    Algorithm 2 of Tu in place of Algorithm 1.
    """
    n = excess.shape[-1]
    if n * floor >= 1:
        return np.full(excess.shape, 1 / n)
    x = np.empty(excess.shape)
    vectors, points = np.ascontiguousarray(excess).reshape(-1, n), x.reshape(-1, n)
    dirichlet.mode_by_rounds(vectors, floor, points)
    if by_sorting:  # other rows have nothing to sort
        for i in np.flatnonzero(vectors.max(axis=-1) > 0):
            dirichlet.mode_by_sorting(vectors[i], np.argsort(vectors[i]), floor, points[i])
    return x


Inner: TypeAlias = Callable[[Array], Array]  # the log-integral over the other entries by floor

_NODES, _NODE_WEIGHTS = legendre.leggauss(16)
_TO_SERIES = np.linalg.inv(legendre.legvander(_NODES, len(_NODES) - 1))
_DEGREE = 20  # of the series of a piece
_PIECES = (8, 32, 128, 512)  # tried one after the other
_TAIL = 1e-11  # what the last coefficients may be of the largest
_BLOCK = 4096  # integrals at a time: memory


@dataclass(frozen=True)
class Table:
    """The log-integral over k entries by their floor, from the smallest to 1/k.

    Chebyshev series in log floor of that minus (k - 1) log(1 - k floor), which is analytic.
    """

    k: int
    edges: Array
    series: Array

    def __call__(self, floor: Array) -> Array:
        k, depth = self.k, -np.log(np.maximum(self.k * floor, 1e-300))
        piece = np.searchsorted(self.edges, depth, side="right") - 1
        piece = np.clip(piece, 0, len(self.edges) - 2)
        low, high = self.edges[piece], self.edges[piece + 1]
        u = np.clip((2 * depth - low - high) / (high - low), -1, 1)
        smooth = chebyshev.chebval(u, self.series[:, piece], tensor=False)
        return np.asarray(smooth + (k - 1) * np.log(np.maximum(-np.expm1(-depth), 1e-300)))


def _exact_inner(alpha: Array) -> Inner | None:
    """Return the log-integral over one or two entries as a function of their floors."""
    if len(alpha) == 1:
        return None
    return lambda floors: _log_integrals(alpha, floors.ravel(), None).reshape(floors.shape)


def tables(alpha: Array, floor: float) -> list[Table | None]:
    inner: list[Table | None] = [None]  # of one entry the integral is 1
    for k in range(2, len(alpha)):
        inner.append(_tabulated(alpha[-k:], floor, inner[-1]))
    return inner


def draws(alpha: Array, floor: float, size: int, rng: Generator) -> Array:
    """Return points of the simplex: entry by entry, each given those before it."""
    n, left = len(alpha), np.ones(size)
    x = np.empty((size, n))
    inner = [table and _splined(table, floor) for table in tables(alpha, floor)]
    for i in range(n - 1):
        fraction = _first_entries(alpha[i:], floor / left, inner[n - i - 2], rng)
        x[:, i] = left * fraction
        left = left - x[:, i]
    x[:, -1] = left
    return np.maximum(x, floor)


def _splined(table: Table, floor: float) -> Inner:
    """Return a table as a spline, ten times faster and accurate enough to draw from."""
    depth = -np.log(table.k * floor) * np.linspace(0, 1, 4000) ** 2
    smooth = table(np.exp(-depth) / table.k)
    smooth[1:] -= (table.k - 1) * np.log(-np.expm1(-depth[1:]))
    smooth[0] = smooth[1]
    spline = CubicSpline(depth, smooth)

    def evaluate(floor: Array) -> Array:
        deep = np.clip(-np.log(np.maximum(table.k * floor, 1e-300)), 1e-300, depth[-1])
        return np.asarray(spline(deep) + (table.k - 1) * np.log(-np.expm1(-deep)))

    return evaluate


def _tabulated(alpha: Array, floor: float, inner: Table | None) -> Table:
    """Return the table of an integral, in as many pieces as its series need."""
    k = len(alpha)
    u, deepest = chebyshev.chebpts1(_DEGREE + 1), -np.log(k * floor)
    for pieces in _PIECES:
        edges = deepest * np.linspace(0, 1, pieces + 1) ** 2  # shorter at large floors
        depth = 0.5 * ((1 - u)[:, np.newaxis] * edges[:-1] + (1 + u)[:, np.newaxis] * edges[1:])
        values = _log_integrals(alpha, np.exp(-depth.ravel()) / k, inner).reshape(depth.shape)
        smooth = values - (k - 1) * np.log(-np.expm1(-depth))
        series = chebyshev.chebfit(u, smooth, _DEGREE)
        if np.abs(series[-2:]).max() <= _TAIL * max(1.0, np.abs(series).max()):
            break
    return Table(k, edges, series)


def _log_integrals(alpha: Array, floors: Array, inner: Inner | None) -> Array:
    """Return log-integrals over the first entry, for a vector of floors."""
    blocks = []
    for start in range(0, len(floors), _BLOCK):
        _, half, log_f = _integrand(alpha, floors[start : start + _BLOCK], inner)
        terms = log_f + np.log(_NODE_WEIGHTS) + np.log(half)[..., np.newaxis]
        blocks.append(logsumexp(terms, axis=(1, 2)))
    return np.concatenate(blocks)


def _integrand(alpha: Array, floors: Array, inner: Inner | None) -> tuple[Array, Array, Array]:
    """Return panels of t = logit(first entry): edges, half lengths, and log-integrands at nodes."""
    k, rest = len(alpha), np.sum(alpha[1:])
    low, high = logit(floors), -logit((k - 1) * floors)
    high = np.maximum(high, low + 1e-15)

    def evaluate(t: Array) -> Array:
        log_x, log_rest = -np.logaddexp(0, -t), -np.logaddexp(0, t)
        log_f: Array = alpha[0] * log_x + rest * log_rest
        if inner is None:
            return log_f
        above = floors.reshape(-1, *[1] * (t.ndim - 1)) * np.exp(-log_rest)
        return np.asarray(log_f + inner(above))

    peak = 0.5 * (low + high)
    for _ in range(4):
        edges = _panels(low, peak, high)
        highest = evaluate(edges).argmax(axis=1)[:, np.newaxis]
        peak = np.take_along_axis(edges, highest, axis=1)[:, 0]
    edges = _panels(low, peak, high)
    half, middle = 0.5 * np.diff(edges, axis=-1), 0.5 * (edges[:, 1:] + edges[:, :-1])
    log_f = evaluate(middle[..., np.newaxis] + half[..., np.newaxis] * _NODES)
    return edges, np.maximum(half, 1e-300), log_f


def _panels(low: Array, peak: Array, high: Array) -> Array:
    """Return edges that are dense at both ends and on both sides of the peak."""
    grades = 0.4 ** np.arange(20, 0, -1)
    parts = []
    for left, right in ((low, peak), (peak, high)):
        length = (right - left)[:, np.newaxis]
        parts += [left[:, np.newaxis] + np.r_[0, grades] * length]
        parts += [right[:, np.newaxis] - grades[::-1] * length]
    return np.concatenate([*parts, high[:, np.newaxis]], axis=1)


def _first_entries(alpha: Array, floors: Array, inner: Inner | None, rng: Generator) -> Array:
    """Draw the first entry of points with given floors: a panel, then a place in it."""
    blocks = [np.empty(0)]  # where no point is asked for
    for start in range(0, len(floors), _BLOCK):
        edges, half, log_f = _integrand(alpha, floors[start : start + _BLOCK], inner)
        density = np.exp(log_f - log_f.max(axis=(1, 2), keepdims=True))
        masses = (density @ _NODE_WEIGHTS) * half
        sums = np.cumsum(masses, axis=1)
        rows = np.arange(len(edges))
        target = rng.random(len(edges)) * sums[:, -1]
        panel = np.minimum((sums < target[:, np.newaxis]).sum(axis=1), masses.shape[1] - 1)
        before = sums[rows, panel] - masses[rows, panel]
        part = (target - before) / half[rows, panel]
        series = legendre.legint(_TO_SERIES @ density[rows, panel].T, lbnd=-1)  # that increase
        low, high = np.full(len(part), -1.0), np.ones(len(part))
        for _ in range(50):
            middle = 0.5 * (low + high)
            below = legendre.legval(middle, series, tensor=False) < part
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        u = 0.5 * (low + high)
        left, right = edges[rows, panel], edges[rows, panel + 1]
        t = 0.5 * ((1 - u) * left + (1 + u) * right)
        blocks.append(1 / (1 + np.exp(-t)))
    return np.concatenate(blocks)


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

    Returns
    -------
    float or ndarray of shape (...,)
        The log-density with respect to the first n - 1 coordinates; -inf below the floor.

    Raises
    ------
    ValueError
        If points do not sum to 1 or do not fit alpha, an entry is 0 with its alpha below 1, or
        alpha or floor are out of range.

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

    Returns
    -------
    float
        The log of the integral of prod_i x_i^(alpha_i - 1) over the first n - 1 coordinates.

    Notes
    -----
    Errors are below 1e-13 for n <= 3, and below 1e-8 relative to the logarithm for n > 3, which
    takes 0.05 to 0.1 seconds per entry with a floor.

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
    if len(alpha) == 1:
        return 0.0
    # All alphas are >= 1 where the floor is 0, and what is cut off at 1e-20 is negligible.
    inner = _exact_inner(alpha[1:]) if len(alpha) <= 3 else tables(_moderate(alpha), floor)[-1]
    return float(_log_integrals(alpha, np.array([max(floor, 1e-20)]), inner)[0])


def mean(alpha: ArrayLike, floor: float) -> Array:
    """Return the expectation of a point.

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
    size : int, tuple of int or None, default=1
        Number of points, or their shape; None is one point without an axis for it.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; None is NumPy's global state.

    Returns
    -------
    ndarray of shape (size, n), size + (n,) or (n,)
        Points of the simplex, with no entry below the floor.

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


_OF_FUNCTIONS = {  # what functions take that do not describe it
    "alpha": """alpha : array_like of shape (n,)
    Parameters, any real numbers up to 1e300 in absolute value (1e4 for n > 3 with a floor).""",
    "floor": """floor : float
    Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.""",
}
for _name in __all__:
    add_shared_parameters(globals()[_name], _OF_FUNCTIONS)
