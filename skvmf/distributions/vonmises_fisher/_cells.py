"""The inverse of the Bessel ratio in small dimensions: polynomials in cells, fitted once.

With a = (d - 1)/2, w = r^2 and y = (1 + w)/(1 - w), which is at least one,

    kappa = 2 a r/(1 - r^2) (1 + g(y)/y),
    psi = log(1 + w)/2 - a log(1 - w) + a integral from 1 to y of (g(z) - 1/(2a))/(z (z + 1)) dz,

where g and the integral are smooth. A cell spans a quarter of a power of two, so that the leading
bits of y number it. The singularities of g are complex, and further from every cell than its
length: fifteen powers reach the last digit. With h = g/y the second derivative of psi is (1 + h)/(h
(1 - r^2)), from which the samples of g have all their digits.
"""

from functools import lru_cache

import numpy as np

from ..._kernels.vonmises_fisher import MIN_EXPANDED, MIN_EXPANDED_INVERSE, mean_resultant_length
from ..._kernels.vonmises_fisher_tables import expansions

_N_NODES = 15  # of interpolation in a cell
_NODES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_N_NODES) + 0.5) / _N_NODES)


@lru_cache(maxsize=256)
def inverse_cells(dim: int) -> np.ndarray:
    """Return ascending coefficients of g and of the integral in y minus the start of its cell.

    The shape is (2, n_cells, 16). If the expansions reach everywhere there are no cells.
    """
    a = 0.5 * (dim - 1)
    if a >= MIN_EXPANDED:
        return np.empty((2, 0, _N_NODES + 1))
    octaves = 2.0 ** np.arange(7)[:, np.newaxis]  # y < MIN_EXPANDED_INVERSE/(2a), at most 90
    starts, lengths = (octaves * [1, 1.25, 1.5, 1.75]).ravel(), np.repeat(0.25 * octaves, 4)
    n_cells = np.count_nonzero(starts <= MIN_EXPANDED_INVERSE / (2 * a) * (1 + 1e-12))
    starts, lengths = starts[:n_cells, np.newaxis], lengths[:n_cells, np.newaxis]
    y, g = _samples(dim, starts + lengths * _NODES)
    both = np.stack([g, a * (g - 0.5 / a) / (y * (y + 1))], axis=2)
    powers = np.arange(_N_NODES)
    places = (y - starts) / lengths  # near the nodes of Chebyshev, where nothing is magnified
    terms = np.linalg.solve(places[:, :, np.newaxis] ** powers, both)
    excess, integral = terms[:, :, 0], terms[:, :, 1] * lengths / (powers + 1)
    cells = np.zeros((2, n_cells, _N_NODES + 1))
    cells[0, :, :-1] = excess / lengths**powers
    cells[1, :, 1:] = integral / lengths ** (powers + 1)
    cells[1, 1:, 0] = np.cumsum(integral.sum(axis=1))[:-1]
    cells[1, 0, 1] = 0.0  # beside y = 1 the integral is of second order
    return cells


def _samples(dim: int, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points y near those given, and g there, from the concentration at them."""
    a, gap = 0.5 * (dim - 1), expansions(dim).gap
    g = np.full_like(near, 0.5 / a)  # as at both ends
    r, q = np.empty((2, near.size))
    for _ in range(3):  # after one the nodes for d = 2 miss by a fifth of a cell, after two by .003
        kappa = (a * np.sqrt((near - 1) * (near + 1)) * (1 + g / near)).ravel()
        mean_resultant_length(kappa, dim, gap, False, r)
        mean_resultant_length(kappa, dim, gap, True, q)
        vee = q * (1 + r)
        y = (1 + r * r) / vee
        g = (y / (vee / _slope(kappa, 0.5 * dim) - 1)).reshape(near.shape)  # as psi'' = 1/A'
    return y.reshape(near.shape), g


def _slope(kappa: np.ndarray, n: float) -> np.ndarray:
    """Return A'(kappa): series of positive terms, for it and for the square of 0F1(; n; z)."""
    z = 0.25 * kappa * kappa
    term, power = np.full_like(z, 0.5 / n), np.ones_like(z)
    above, below = term.copy(), power.copy()
    k = 0.0
    while np.any(term > 1e-17 * above):  # each is less than half the last once k^2 > 8 z
        power = power * z / ((k + 1) * (n + k))
        below += power
        term = term * z * (2 * n - 1 + 2 * k) * (2 * n + 2 * k)
        term /= (2 * n + k) * (k + 1) * (n + k) * (n + k + 1)
        above += term
        k += 1
    return above / (below * below)
