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

from .._kernels import simplex as dirichlet
from .._typing import Array, RandomState, Values
from ._arguments import checked_array, checked_generator, checked_number, checked_size

__all__ = ["log_kernel", "log_normalizer", "logpdf", "mean", "mode", "posterior", "rvs"]

# Times the log of the smallest float, and summed over entries, it is still a float.
MAX_PARAMETER = 1e300

# Above, series of integrals over four entries and more lose digits.
_MAX_TABULATED = 1e4

# A Gauss-Legendre rule for each panel of an integral, and the matrix that turns values at its nodes
# into coefficients of Legendre polynomials.
_NODES, _NODE_WEIGHTS = legendre.leggauss(16)
_TO_SERIES = np.linalg.inv(legendre.legvander(_NODES, len(_NODES) - 1))

# Panels of an integral at each end, and on each side of the peak, become shorter by a constant
# factor: the last is 0.4^20, 1e-8, of the whole.
_GRADES = 0.4 ** np.arange(20, 0, -1)

# A table has the first of these numbers of pieces at which the last coefficients of its Chebyshev
# series are small relative to the largest. More pieces cost time in proportion.
_N_PIECES = (8, 32, 128, 512)
_DEGREE = 20
_MAX_LAST_COEFFICIENT = 1e-11

# Knots of the splines that stand for tables in draws.
_N_KNOTS = 4000

# Halvings of an interval of length 2, which leave 2e-15.
_HALVINGS = 50

# Integrals that are computed at a time, which bounds the memory of their nodes: 82 panels of 16.
_BLOCK_SIZE = 4096

# Numbers that are divided by, or whose logarithm is taken, are not smaller.
_TINY = 1e-300

# The log-integral over other entries as a function of their floors.
LogIntegral: TypeAlias = Callable[[Array], Array]


def checked_sizes(alpha: Array, name: str) -> Array:
    """Return parameters, or raise a ValueError that names them if densities would overflow."""
    # Written so that nan is refused, too.
    if not np.all(np.abs(alpha) <= MAX_PARAMETER):
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
    vectors = np.ascontiguousarray(excess).reshape(-1, n)
    points = x.reshape(-1, n)
    dirichlet.mode_by_rounds(vectors, floor, points)
    if by_sorting:
        # Other rows have nothing to sort.
        for i in np.flatnonzero(vectors.max(axis=-1) > 0):
            dirichlet.mode_by_sorting(vectors[i], np.argsort(vectors[i]), floor, points[i])
    return x


@dataclass(frozen=True, eq=False)
class Table:
    """The log-integral over k entries by their floor, from the smallest to 1/k.

    Chebyshev series in log floor of that minus (k - 1) log(1 - k floor), which is analytic. A
    piece of the table is between two edges of the depth, -log(k floor).
    """

    k: int
    edges: Array
    series: Array

    def __call__(self, floor: Array) -> Array:
        depth = _depths(self.k, floor)
        piece = np.searchsorted(self.edges, depth, side="right") - 1
        piece = np.clip(piece, 0, len(self.edges) - 2)
        low, high = self.edges[piece], self.edges[piece + 1]
        u = np.clip((2 * depth - low - high) / (high - low), -1, 1)
        smooth = chebyshev.chebval(u, self.series[:, piece], tensor=False)
        return np.asarray(smooth + _log_volumes(self.k, depth))


def _depths(k: int, floor: Array) -> Array:
    """Return -log(k floor), which is 0 at the largest floor of k entries."""
    return -np.log(np.maximum(k * floor, _TINY))


def _log_volumes(k: int, depth: Array) -> Array:
    """Return (k - 1) log(1 - k floor), of the volume of a simplex above the floor."""
    return (k - 1) * np.log(np.maximum(-np.expm1(-depth), _TINY))


def _exact_log_integral(alpha: Array) -> LogIntegral | None:
    """Return the log-integral over one or two entries as a function of their floors."""
    if len(alpha) == 1:
        return None
    return lambda floors: _log_integrals(alpha, floors.ravel(), None).reshape(floors.shape)


def tables(alpha: Array, floor: float) -> list[Table | None]:
    """Return the tables for the last 1, 2, ... entries, all but the first."""
    # Of one entry the integral is 1.
    inner: list[Table | None] = [None]
    for k in range(2, len(alpha)):
        inner.append(_tabulated(alpha[-k:], floor, inner[-1]))
    return inner


def draws(alpha: Array, floor: float, size: int, rng: Generator) -> Array:
    """Return points of the simplex: entry by entry, each given those before it."""
    n = len(alpha)
    x = np.empty((size, n))
    inner = [None if table is None else _splined(table, floor) for table in tables(alpha, floor)]
    total = np.ones(size)
    for i in range(n - 1):
        fraction = _first_entries(alpha[i:], floor / total, inner[n - i - 2], rng)
        x[:, i] = total * fraction
        total = total - x[:, i]
    x[:, -1] = total
    return np.maximum(x, floor)


def _splined(table: Table, floor: float) -> LogIntegral:
    """Return a table as a spline, ten times faster and accurate enough to draw from."""
    # Knots are denser at large floors, as pieces are.
    depth = -np.log(table.k * floor) * np.linspace(0, 1, _N_KNOTS) ** 2
    smooth = table(np.exp(-depth) / table.k)
    smooth[1:] -= _log_volumes(table.k, depth[1:])
    # At the first knot the logarithm of the volume is infinite, and its difference nothing.
    smooth[0] = smooth[1]
    spline = CubicSpline(depth, smooth)

    def evaluate(floor: Array) -> Array:
        within = np.clip(_depths(table.k, floor), _TINY, depth[-1])
        return np.asarray(spline(within) + _log_volumes(table.k, within))

    return evaluate


def _tabulated(alpha: Array, floor: float, inner: Table | None) -> Table:
    """Return the table of an integral, in as many pieces as its series need."""
    k = len(alpha)
    u = chebyshev.chebpts1(_DEGREE + 1)
    deepest = -np.log(k * floor)
    for n_pieces in _N_PIECES:
        # Pieces are shorter at large floors.
        edges = deepest * np.linspace(0, 1, n_pieces + 1) ** 2
        depth = 0.5 * ((1 - u)[:, np.newaxis] * edges[:-1] + (1 + u)[:, np.newaxis] * edges[1:])
        values = _log_integrals(alpha, np.exp(-depth.ravel()) / k, inner).reshape(depth.shape)
        series = chebyshev.chebfit(u, values - _log_volumes(k, depth), _DEGREE)
        largest = max(1.0, np.abs(series).max())
        if np.abs(series[-2:]).max() <= _MAX_LAST_COEFFICIENT * largest:
            break
    return Table(k, edges, series)


def _log_integrals(alpha: Array, floors: Array, inner: LogIntegral | None) -> Array:
    """Return log-integrals over the first entry, for a vector of floors."""
    blocks = []
    for start in range(0, len(floors), _BLOCK_SIZE):
        _, half, log_f = _integrand(alpha, floors[start : start + _BLOCK_SIZE], inner)
        terms = log_f + np.log(_NODE_WEIGHTS) + np.log(half)[..., np.newaxis]
        blocks.append(logsumexp(terms, axis=(1, 2)))
    return np.concatenate(blocks)


def _integrand(
    alpha: Array, floors: Array, inner: LogIntegral | None
) -> tuple[Array, Array, Array]:
    """Return panels of t = logit(first entry): edges, half lengths, and log-integrands at nodes."""
    k = len(alpha)
    others = np.sum(alpha[1:])
    low = logit(floors)
    high = np.maximum(-logit((k - 1) * floors), low + 1e-15)

    def evaluate(t: Array) -> Array:
        log_x = -np.logaddexp(0, -t)
        log_total = -np.logaddexp(0, t)
        log_f: Array = alpha[0] * log_x + others * log_total
        if inner is None:
            return log_f
        # Divided by their total, the other entries have a higher floor.
        raised = floors.reshape(-1, *[1] * (t.ndim - 1)) * np.exp(-log_total)
        return np.asarray(log_f + inner(raised))

    # Each round looks for the peak among edges that are dense where the last one found it.
    peak = 0.5 * (low + high)
    for _ in range(4):
        edges = _panels(low, peak, high)
        highest = evaluate(edges).argmax(axis=1)[:, np.newaxis]
        peak = np.take_along_axis(edges, highest, axis=1)[:, 0]
    edges = _panels(low, peak, high)

    half = 0.5 * np.diff(edges, axis=-1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    log_f = evaluate(middle[..., np.newaxis] + half[..., np.newaxis] * _NODES)
    return edges, np.maximum(half, _TINY), log_f


def _panels(low: Array, peak: Array, high: Array) -> Array:
    """Return edges that are dense at both ends and on both sides of the peak."""
    parts = []
    for left, right in ((low, peak), (peak, high)):
        length = (right - left)[:, np.newaxis]
        parts += [left[:, np.newaxis] + np.r_[0, _GRADES] * length]
        parts += [right[:, np.newaxis] - _GRADES[::-1] * length]
    return np.concatenate([*parts, high[:, np.newaxis]], axis=1)


def _first_entries(alpha: Array, floors: Array, inner: LogIntegral | None, rng: Generator) -> Array:
    """Draw the first entry of points with given floors: a panel, then a position in it."""
    # One block even where no point is asked for.
    blocks = [np.empty(0)]
    for start in range(0, len(floors), _BLOCK_SIZE):
        edges, half, log_f = _integrand(alpha, floors[start : start + _BLOCK_SIZE], inner)
        density = np.exp(log_f - log_f.max(axis=(1, 2), keepdims=True))
        masses = (density @ _NODE_WEIGHTS) * half
        sums = np.cumsum(masses, axis=1)

        rows = np.arange(len(edges))
        target = rng.random(len(edges)) * sums[:, -1]
        panel = np.minimum((sums < target[:, np.newaxis]).sum(axis=1), masses.shape[1] - 1)
        before = sums[rows, panel] - masses[rows, panel]
        part = (target - before) / half[rows, panel]
        # Within the panel, the density is its Legendre series, which can be integrated.
        u = _inverse(_TO_SERIES @ density[rows, panel].T, part)

        left, right = edges[rows, panel], edges[rows, panel + 1]
        t = 0.5 * ((1 - u) * left + (1 + u) * right)
        blocks.append(1 / (1 + np.exp(-t)))
    return np.concatenate(blocks)


def _inverse(series: Array, part: Array) -> Array:
    """Return where the integrals from -1 of positive Legendre series (16, n) reach `part` (n,)."""
    integral = legendre.legint(series, lbnd=-1)
    low = np.full(len(part), -1.0)
    high = np.ones(len(part))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = legendre.legval(middle, integral, tensor=False) < part
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return 0.5 * (low + high)


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
        Parameters, any real numbers up to 1e300 in absolute value (1e4 for n > 3 with a floor).
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.

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
    counts = checked_array(counts, "counts")
    prior = checked_array(alpha, "alpha")
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
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.

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
    n = len(alpha)
    # The Dirichlet's formula, where the density is infinite at the border or integrals are nested.
    if floor == 0 and (n > 3 or np.any(alpha < 1)):
        ascending = np.sort(alpha)
        return float(betaln(ascending[1:], np.cumsum(ascending)[:-1]).sum())
    # The simplex above the floor is a point.
    if n * floor >= 1:
        return -np.inf
    if n == 1:
        return 0.0

    inner = _exact_log_integral(alpha[1:]) if n <= 3 else tables(_moderate(alpha), floor)[-1]
    # All alphas are >= 1 where the floor is 0, and what is cut off at 1e-20 is negligible.
    floors = np.array([max(floor, 1e-20)])
    return float(_log_integrals(alpha, floors, inner)[0])


def mean(alpha: ArrayLike, floor: float) -> Array:
    """Return the expectation of a point.

    Parameters
    ----------
    alpha : array_like of shape (n,)
        Parameters, any real numbers up to 1e300 in absolute value (1e4 for n > 3 with a floor).
    floor : float
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.

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
    # Entries of one alpha have one expectation.
    _, first, numbers = np.unique(alpha, return_index=True, return_inverse=True)
    base = log_normalizer(alpha, floor)
    raised = alpha + np.eye(n)[first]
    log_ratios = np.array([log_normalizer(each, floor) - base for each in raised])
    expected = np.exp(log_ratios)[numbers]
    # Rounding, too, leaves a point of the simplex.
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
        Minimum of an entry, in [0, 1/n]; positive if any alpha is not. 0 gives the Dirichlet.
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
    shape = checked_size(size)
    rng = checked_generator(random_state)
    n = len(alpha)
    n_points = int(np.prod(shape, dtype=np.int64))
    if n * floor >= 1:
        points = np.full((n_points, n), 1 / n)
    elif floor == 0:
        points = rng.dirichlet(alpha, size=n_points)
    else:
        points = draws(_moderate(alpha), floor, n_points, rng)
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
    """Return parameters as a vector of float64 and the floor as a float, both in range."""
    parameters = np.ascontiguousarray(checked_array(alpha, "alpha"), dtype=np.float64)
    if parameters.ndim != 1 or len(parameters) == 0:
        raise ValueError(f"alpha must be a vector, got the shape {parameters.shape}.")
    checked_sizes(parameters, "alpha")
    number = checked_number(floor, "floor")
    # A floor of 1/n may have been rounded.
    if not 0 <= number <= (1 + 1e-12) / len(parameters):
        raise ValueError(f"floor must be in [0, 1/{len(parameters)}], got {floor}.")
    if number == 0 and np.any(parameters <= 0):
        raise ValueError(
            "With a floor of 0 every alpha must be positive, or the density has no integral: "
            "raise the floor."
        )
    return parameters, number


# Parameters of functions that do not describe them.
