"""Normalizer and draws of the modified Dirichlet, by nested integrals.

The last k entries of a point, divided by their sum s, are a point of the smaller simplex with the
floor floor/s. The integral over them is a function of that number alone, and integrals over 1, 2,
... entries follow from each other: each is tabulated for the next (derived here).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.interpolate import CubicSpline
from scipy.special import logit, logsumexp

from ..._typing import Array

Inner: TypeAlias = Callable[[Array], Array]  # the log-integral over the other entries by floor

_NODES, _NODE_WEIGHTS = legendre.leggauss(16)
_TO_SERIES = np.linalg.inv(legendre.legvander(_NODES, len(_NODES) - 1))
_DEGREE = 20  # of the series of a piece
_PIECES = (8, 32, 128, 512)  # tried one after the other
_TAIL = 1e-11  # what the last coefficients may be of the largest
_BLOCK = 4096  # integrals at a time: memory


@dataclass(frozen=True)
class Table:
    """The logarithm of the integral over k entries by their floor, from the smallest to 1/k.

    Chebyshev series in log floor of the logarithm minus (k - 1) log(1 - k floor), which is
    analytic.
    """

    k: int
    edges: Array
    series: Array

    def __call__(self, floor: Array) -> Array:
        """Return the log-integrals for floors."""
        k, depth = self.k, -np.log(np.maximum(self.k * floor, 1e-300))
        piece = np.searchsorted(self.edges, depth, side="right") - 1
        piece = np.clip(piece, 0, len(self.edges) - 2)
        low, high = self.edges[piece], self.edges[piece + 1]
        u = np.clip((2 * depth - low - high) / (high - low), -1, 1)
        smooth = chebyshev.chebval(u, self.series[:, piece], tensor=False)
        return np.asarray(smooth + (k - 1) * np.log(np.maximum(-np.expm1(-depth), 1e-300)))


def log_integral(alpha: Array, floor: float) -> float:
    """Return the log-integral over the simplex above the floor, in its first n - 1 coordinates."""
    if len(alpha) == 1:
        return 0.0
    # All alphas are >= 1 where the floor is 0, and what is cut off at 1e-20 is negligible.
    inner = _exact_inner(alpha[1:]) if len(alpha) <= 3 else tables(alpha, floor)[-1]
    return float(_log_integrals(alpha, np.array([max(floor, 1e-20)]), inner)[0])


def _exact_inner(alpha: Array) -> Inner | None:
    """Return the log-integral over one or two entries as a function of their floors."""
    if len(alpha) == 1:
        return None
    return lambda floors: _log_integrals(alpha, floors.ravel(), None).reshape(floors.shape)


def tables(alpha: Array, floor: float) -> list[Table | None]:
    """Return the tables for the last 1, 2, ..., n - 1 entries."""
    inner: list[Table | None] = [None]  # of one entry the integral is 1
    for k in range(2, len(alpha)):
        inner.append(_tabulated(alpha[-k:], floor, inner[-1]))
    return inner


def draws(alpha: Array, floor: float, size: int, rng: np.random.Generator) -> Array:
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
    """Return panels of t = logit(first entry) and log-integrands at their nodes.

    Returns their edges (m, p + 1), half lengths (m, p) and values (m, p, nodes).
    """
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


def _first_entries(
    alpha: Array, floors: Array, inner: Inner | None, rng: np.random.Generator
) -> Array:
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
        u = _inverse(legendre.legint(_TO_SERIES @ density[rows, panel].T, lbnd=-1), part)
        left, right = edges[rows, panel], edges[rows, panel + 1]
        t = 0.5 * ((1 - u) * left + (1 + u) * right)
        blocks.append(1 / (1 + np.exp(-t)))
    return np.concatenate(blocks)


def _inverse(series: Array, values: Array) -> Array:
    """Return the arguments of values of increasing Legendre series on [-1, 1], by bisection."""
    low, high = np.full(len(values), -1.0), np.ones(len(values))
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = legendre.legval(middle, series, tensor=False) < values
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)
