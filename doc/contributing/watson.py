"""Mixtures of Watson distributions, for axes: the family that "Add a family" builds."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from skvmf._engine.contracts.model_parts import Family
from skvmf._engine.contracts.responsibilities import Scores, as_dense
from skvmf.distributions.vonmises_fisher import log_sphere_area

MODERATE, LARGEST = 10.0, 1e6  # concentrations: where fits start, and of rows all on one axis


def log_kummer(kappa, dim):
    """Return log M(1/2; dim/2; kappa) and its slope, the mean of (m.x)^2; kappa >= 0.

    Both series have positive terms, taken relative to the largest: nothing cancels or
    overflows. Where the concentration is large the one in 1/kappa needs few of them.
    """
    b = dim / 2
    if kappa == 0:
        return 0.0, 1 / dim
    if kappa > max(200, 2 * dim):
        s = np.arange(40)
        ratios = (b - 0.5 + s) * (0.5 + s) / ((s + 1) * kappa)
        terms = np.append(1.0, np.cumprod(ratios))
        mean = np.arange(41) @ terms / terms.sum()
        log_first = gammaln(b) - gammaln(0.5) + kappa + (0.5 - b) * np.log(kappa)
        return log_first + np.log(terms.sum()), 1 - (b - 0.5 + mean) / kappa
    k = np.arange(int(kappa + 12 * np.sqrt(kappa)) + 60)
    log_terms = np.append(0.0, np.cumsum(np.log((k + 0.5) / ((b + k) * (k + 1)) * kappa)))
    terms = np.exp(log_terms - log_terms.max())
    mean = np.arange(len(terms)) @ terms / terms.sum()
    return log_terms.max() + np.log(terms.sum()), mean / kappa


def concentration(square, dim):
    """Return the kappa >= 0 that makes `square` the mean of (m.x)^2, at most LARGEST.

    The root lies below the bound U of Sra and Karp, 2013, section 3.
    """
    if square <= (1 + 1e-12) / dim:
        return 0.0
    if (dim - 1) / 2 >= LARGEST * (1 - square):
        return LARGEST
    bound = (square * dim / 2 - 0.5) / (square * (1 - square)) * (1 + 2 * square)
    root = brentq(lambda kappa: log_kummer(kappa, dim)[1] - square, 0, 1.01 * bound)
    return min(root, LARGEST)


def unit_rows(block):
    """Return the rows of a block at unit length."""
    return block.X * block.scales[:, None]


@dataclass(frozen=True)
class WatsonComponents:
    """Unit axes (K, d), concentrations (K,), and what they add to a log-density (K,)."""

    axes: np.ndarray
    concentrations: np.ndarray
    log_normalizers: np.ndarray


@dataclass(frozen=True)
class Watson(Family):
    """Axes m with log-density kappa (m.x)^2 - log M(1/2; d/2; kappa) - log area."""

    dim: int
    fixed: bool = False  # whether concentrations stay as they are

    # What a component is.

    def components(self, axes, concentrations):
        log_m = np.array([log_kummer(kappa, self.dim)[0] for kappa in concentrations])
        return WatsonComponents(axes, concentrations, -log_m - log_sphere_area(self.dim))

    def scores(self, block, components):
        cosines = unit_rows(block) @ components.axes.T
        return Scores(components.concentrations * cosines**2, components.log_normalizers)

    @property
    def zero_row_log_density(self):
        return -float(log_sphere_area(self.dim))

    # A step of EM.

    def moments(self, block, responsibilities, components, kept=None):
        resp, units = as_dense(responsibilities, len(components.axes)), unit_rows(block)
        return (np.stack([(block.X * own[:, None]).T @ units for own in resp.T]),)

    def maximize(self, stats, components):
        full = stats.counts > 0
        axes, squares = self._leading_axes(stats)
        kappa = components.concentrations
        if not self.fixed:
            fitted = np.array([concentration(square, self.dim) for square in squares])
            kappa = np.where(full, fitted, kappa)
        axes = np.where(full[:, None], axes, components.axes)
        return self.components(axes, kappa), np.zeros_like(full)

    def reseed(self, components, k, row):
        axes, kappa = components.axes.copy(), components.concentrations.copy()
        axes[k], kappa[k] = row, kappa.mean()
        return self.components(axes, kappa)

    @property
    def min_rows(self):
        return 2

    def _leading_axes(self, stats):
        """Return the axes of the scatter matrices, and the mean of (m.x)^2 along them."""
        counts = np.where(stats.counts > 0, stats.counts, 1.0)
        values, vectors = np.linalg.eigh(stats.moments[0] / counts[:, None, None])
        return vectors[:, :, -1], values[:, -1]

    # Where fits start.

    def kmeans(self):
        return replace(self, fixed=True)

    def from_centres(self, centres):
        return self.components(centres, np.full(len(centres), MODERATE))

    def centres(self, components):
        return components.axes

    def distances(self, block, centres):
        return np.maximum(1 - (unit_rows(block) @ centres.T) ** 2, 0)

    def initial(self, stats, components, centres=None):
        axes, squares = self._leading_axes(stats)
        pooled = concentration(stats.counts @ squares / stats.counts.sum(), self.dim)
        axes = axes if centres is None else centres
        return self.components(axes, np.full(len(axes), pooled))


def draw(axis, kappa, size, rng):
    """Draw unit rows (size, d): projected Gaussian rows, cut down to the density.

    The envelope is that of Kent, Ganeiban and Mardia, 2018, for the Bingham distribution.
    """
    d, drawn = len(axis), np.empty((0, len(axis)))
    b = (d - 2 * kappa + np.hypot(d - 2 * kappa, np.sqrt(8 * kappa))) / 2
    narrow = 1 / np.sqrt(1 + 2 * kappa / b)
    while len(drawn) < size:
        rows = narrow * rng.normal(size=(size, d))
        rows += (1 / narrow - 1) * (rows @ axis)[:, None] * axis
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        gaps = kappa * (1 - (rows @ axis) ** 2)
        log_accept = d / 2 * np.log((b + 2 * gaps) / d) - gaps + (d - b) / 2
        drawn = np.vstack([drawn, rows[np.log(rng.uniform(size=size)) < log_accept]])
    return drawn[:size]
