"""Coefficients of the uniform von Mises-Fisher expansions, summed once for a dimension.

Derived here. With a = (d - 1)/2, S = sqrt(a^2 + kappa^2) and t = a/S, the Riccati equation
A' = 1 - A^2 - 2 a A/kappa of the Bessel ratio A is solved by

    A = kappa/(a + S) (1 + sum_k c_k(t) S^-k)

and, with tau = (1 - r^2)/(1 + r^2), its inverse by

    kappa = 2 a r/(1 - r^2) (1 + sum_n h_n(tau) (2 a)^-n),

c_k and h_n polynomials. The log-partition and the negative entropy are integrals of the same
polynomials. For one dimension every sum over orders is a single polynomial in t or in tau.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .vonmises_fisher import MIN_EXPANDED, MIN_EXPANDED_INVERSE

_ORDERS = 18
_NEGLIGIBLE = 2.0**-57
_GRID = np.linspace(0.125, 1.0, 8)


class Expansions(NamedTuple):
    """Polynomials (ascending coefficients, of even number) and constants for one dimension.

    `gap` is A (a + S)/kappa - 1 in t; `tail` the part of the log-partition that is not
    elementary, in t; `excess` is kappa (1 - r^2)/(2 a r) - 1 in tau; `inverse_tail` the part of
    the negative entropy that is not elementary, in tau, with its constant of integration. For
    a >= 32 the two tails are divided by 1 - t and 1 - tau, and their constants are zero.
    """

    gap: np.ndarray
    tail: np.ndarray
    constant: float
    excess: np.ndarray
    inverse_tail: np.ndarray


@lru_cache(maxsize=256)
def expansions(dim: int) -> Expansions:
    """Sum the series over their orders for dimension `dim`."""
    a = 0.5 * (dim - 1)
    series = _series()
    small = a < MIN_EXPANDED
    largest_t, largest_tau = (
        (a / np.hypot(a, MIN_EXPANDED), 2 * a / MIN_EXPANDED_INVERSE) if small else (1.0, 1.0)
    )
    gap = _summed(series.ratios, a, largest_t)
    tail = a * _summed(series.integrals, a, largest_t)
    excess = _summed(series.inverses, 2 * a, largest_tau, scale=0.5 / a)
    inverse_tail = a * _summed(series.inverse_integrals, 2 * a, largest_tau)
    if small:
        constant = gammaln(a + 0.5) + (a - 0.5) * np.log(2) - 0.5 * np.log(2 * np.pi)
        inverse_tail = _trimmed(inverse_tail, largest_tau)
        inverse_tail[0] += -a + a * np.log(2 * a) - constant - 0.5 * np.log(2)
    else:
        tail, constant = _over_one_minus(tail), 0.0
        inverse_tail = _trimmed(_over_one_minus(inverse_tail), largest_tau)
    return Expansions(
        _trimmed(gap, largest_t),
        _trimmed(tail, largest_t),
        float(constant),
        _trimmed(excess, largest_tau),
        inverse_tail,
    )


class _Series(NamedTuple):
    """Polynomials by order (rows): c_k t^k, h_n, and the integrals that make the tails."""

    ratios: np.ndarray
    integrals: np.ndarray
    inverses: np.ndarray
    inverse_integrals: np.ndarray


@cache
def _series() -> _Series:
    """Solve the recurrences.

    Double precision is enough: the leading orders are dyadic and exact, and an order needs
    fewer digits the smaller its part.
    """
    c, h = _ratio_series(), _inverse_series()
    h[0] = 0.0
    ratios, integrals, inverse_integrals = np.zeros((3, *c.shape))
    for k in range(1, _ORDERS + 1):
        ratios[k] = _shifted(c[k], k)
        if k > 1:  # minus the integrals from 0 of c_k(s) s^(k-2)/(1+s) and h_k(s)/(s (1+s))
            integrals[k] = -_integral(_shifted(_over_one_plus(c[k]), k - 2))
            inverse_integrals[k] = -_integral(_over_one_plus(_shifted(h[k], -1)))
    return _Series(ratios, integrals, h, inverse_integrals)


def _summed(rows: np.ndarray, base: float, largest: float, scale: float = 1.0) -> np.ndarray:
    """Sum rows of order k times base^-k over the orders that count.

    An order counts if somewhere in (0, largest] it reaches the last digit of `scale` times the
    variable.
    """
    powers = np.arange(rows.shape[1])
    grid = largest * _GRID
    sizes = np.abs(rows @ (grid ** powers[:, np.newaxis] / (scale * grid))).max(axis=1)
    factors = base ** -np.arange(float(len(rows)))
    return np.where(sizes * factors > _NEGLIGIBLE, factors, 0.0) @ rows


def _ratio_series() -> np.ndarray:
    """Return c_k(t): the expansion of the Bessel ratio put into the Riccati equation.

    c_k = -1/2 [(1-t) sum_i c_i c_{k-i} + t c_{k-1} - (1-t^2)(t c_{k-1}' + (k-1) c_{k-1})].
    """
    c = np.zeros((_ORDERS + 1, 3 * _ORDERS))
    c[0, 0] = 1.0
    powers = np.arange(c.shape[1])
    for k in range(1, _ORDERS + 1):
        products = _products(c, c, k)
        slope = (powers + (k - 1)) * c[k - 1]
        bracket = products - _shifted(products, 1) + _shifted(c[k - 1], 1)
        c[k] = -0.5 * (bracket - slope + _shifted(slope, 2))
    return c


def _inverse_series() -> np.ndarray:
    """Return h_n(tau), whose coefficients are integers.

    h_n = tau h_{n-1} - sum_{0<i<n} h_i [h_{n-i} - tau (1-tau^2) h_{n-i}'].
    """
    h = np.zeros((_ORDERS + 1, 3 * _ORDERS))
    brackets = np.zeros_like(h)
    h[0, 0] = 1.0
    powers = np.arange(h.shape[1])
    for n in range(1, _ORDERS + 1):
        h[n] = _shifted(h[n - 1], 1) - _products(h, brackets, n)
        slope = powers * h[n]
        brackets[n] = h[n] - slope + _shifted(slope, 2)
    return h


def _products(left: np.ndarray, right: np.ndarray, n: int) -> np.ndarray:
    """Return the sum over 0 < i < n of left_i times right_{n-i}."""
    total = np.zeros(left.shape[1])
    for i in range(1, n):
        total += np.convolve(left[i], right[n - i])[: len(total)]
    return total


def _shifted(coefficients: np.ndarray, by: int) -> np.ndarray:
    """Multiply by the variable to the power `by`; what leaves at either end is zero."""
    result = np.zeros_like(coefficients)
    if by >= 0:
        result[by:] = coefficients[: len(coefficients) - by]
    else:
        result[:by] = coefficients[-by:]
    return result


def _integral(coefficients: np.ndarray) -> np.ndarray:
    """Return the antiderivative that is zero at zero."""
    return _shifted(coefficients / np.arange(1, len(coefficients) + 1), 1)


def _over_one_plus(coefficients: np.ndarray) -> np.ndarray:
    """Divide exactly by (1 + variable), from the constant term up."""
    quotient = np.zeros_like(coefficients)
    carry = 0.0
    for j, value in enumerate(coefficients):
        carry = value - carry
        quotient[j] = carry
    return quotient


def _over_one_minus(coefficients: np.ndarray) -> np.ndarray:
    """Return (p(x) - p(1))/(1 - x)."""
    above = np.cumsum(coefficients[::-1])[::-1]
    return -np.append(above[1:], 0.0)


def _trimmed(coefficients: np.ndarray, largest: float) -> np.ndarray:
    """Keep an even number of powers: those that count where the variable is at most `largest`."""
    sizes = np.abs(coefficients) * largest ** np.arange(len(coefficients))
    above = np.cumsum(sizes[::-1])[::-1]
    n_kept = np.count_nonzero(above > _NEGLIGIBLE * sizes.max())
    leading = np.zeros(n_kept + n_kept % 2)
    leading[:n_kept] = coefficients[:n_kept]
    return leading
