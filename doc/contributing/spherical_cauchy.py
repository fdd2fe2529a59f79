"""Mixtures of spherical Cauchy distributions: directions with heavy tails."""

from dataclasses import dataclass

import numpy as np

from skvmf.distributions.vonmises_fisher import log_sphere_area
from skvmf.families import Family, Scores, as_dense

LARGEST = 1 - 1e-9  # length of a centre


@dataclass(frozen=True)
class CauchyComponents:
    """Centres rho m inside the unit ball (K, d)."""

    centres: np.ndarray

    def __len__(self):
        return len(self.centres)


def squared_distances(block, centres):
    """Return |x - centre|^2 of rows at unit length, (n, K)."""
    squares = (centres**2).sum(axis=1)
    cosines = (block.X @ centres.T) * block.scales[:, None]
    distances = (block.scales > 0)[:, None] + squares - 2 * cosines
    return np.maximum(distances, (1 - np.sqrt(squares)) ** 2)  # rounding gives less, or below 0


def lengths_of(sums, weights, counts):
    """Return rho: of N log(1 - rho^2) - W rho^2 + 2 rho |S|, the maximum, by bisection."""
    low, high = np.zeros(len(counts)), np.full(len(counts), LARGEST)
    for _ in range(60):
        rho = (low + high) / 2
        rises = (sums - weights * rho) * (1 - rho**2) > counts * rho
        low, high = np.where(rises, rho, low), np.where(rises, high, rho)
    return (low + high) / 2


@dataclass(frozen=True)
class SphericalCauchy(Family):
    """Log-density (d - 1) log((1 - rho^2) / |x - rho m|^2) - log area."""

    dim: int

    components_class, unit_rows, min_rows = CauchyComponents, True, 2

    def scores(self, block, components):
        top = (self.dim - 1) * np.log1p(-((components.centres**2).sum(axis=1)))
        products = -(self.dim - 1) * np.log(squared_distances(block, components.centres))
        return Scores(products, top + self.zero_row_log_density)

    def moments(self, block, responsibilities, components, cache=None):
        resp = as_dense(responsibilities, len(components))
        resp = resp / squared_distances(block, components.centres)
        units = np.where(block.scales > 0, block.scales, 1)[:, None]
        return (resp.T @ block.X, (resp / units).sum(axis=0))  # no x in the second: no scale

    def maximize(self, stats, components):
        sums, weights = (moment.astype(np.float64) for moment in stats.moments)
        norms = np.linalg.norm(sums, axis=1)
        directions = sums / np.where(norms > 0, norms, 1)[:, None]
        centres = lengths_of(norms, weights, stats.counts)[:, None] * directions
        full = stats.counts > 0
        return CauchyComponents(np.where(full[:, None], centres, components.centres)), ~full & full

    def reseed(self, components, k, row):
        centres = components.centres.copy()
        centres[k] = np.linalg.norm(centres, axis=1).mean() * row
        return CauchyComponents(centres)

    def kmeans(self):
        return self

    def from_centres(self, centres):
        return CauchyComponents(0.5 * centres / np.linalg.norm(centres, axis=1, keepdims=True))

    def centres(self, components):
        return components.centres

    def distances(self, block, centres):
        return squared_distances(block, self.from_centres(centres).centres)

    def initial(self, stats, components, centres=None):
        return (
            self.maximize(stats, components)[0] if centres is None else self.from_centres(centres)
        )

    @property
    def zero_row_log_density(self):
        return -float(log_sphere_area(self.dim))

    def n_parameters(self, n_components):
        return n_components * self.dim

    def sample(self, components, counts, rng):
        uniform = rng.normal(size=(counts.sum(), self.dim))
        uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
        centres = np.repeat(components.centres, counts, axis=0)  # a Moebius transformation
        stretch = (1 - (centres**2).sum(axis=1)) / ((uniform + centres) ** 2).sum(axis=1)
        return stretch[:, None] * (uniform + centres) + centres
