"""Mixtures of Watson distributions, for axes: the family that "Add a family" builds."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from watson_distribution import concentration, draw, log_kummer

from skvmf.distributions.vonmises_fisher import log_sphere_area
from skvmf.families import (
    Gradients,
    MergeCost,
    ParameterBlock,
    Proposal,
    Scores,
    SeedFamily,
    as_dense,
    repeat_columns,
)

MODERATE = 10.0  # the concentration where fits start


def leading_axes(scatter, counts):
    """Return the leading eigenvectors of scatter matrices (K, d, d), and the means of (m.x)^2."""
    values, vectors = np.linalg.eigh(scatter / np.where(counts > 0, counts, 1.0)[:, None, None])
    return vectors[:, :, -1], values[:, -1]


@dataclass(frozen=True)
class WatsonComponents:
    """Unit axes (K, d), concentrations (K,), and what they add to a log-density (K,)."""

    axes: np.ndarray
    concentrations: np.ndarray
    log_normalizers: np.ndarray

    def __len__(self):
        return len(self.axes)


def unit_rows(block):
    """Return the rows of a block at unit length."""
    return block.X * block.scales[:, None]


class WatsonMergeCost(MergeCost):
    """Log-likelihoods n (kappa s - log M - log area): s is the mean of (m.x)^2 along the axis."""

    def __init__(self, scatter, counts, kappa=None):
        self.scatter, self.counts, self.dim = scatter.copy(), counts.copy(), scatter.shape[1]
        self._kappa = kappa  # of all parts; None gives each its own

    def points(self):
        return (self.scatter / self.counts[:, None, None]).reshape(len(self.counts), -1)

    def losses(self, i, clusters=slice(None)):
        scatter, counts = self.scatter[clusters], self.counts[clusters]
        apart = self._values(scatter, counts) + self._values(self.scatter[[i]], self.counts[[i]])
        return apart - self._values(scatter + self.scatter[i], counts + self.counts[i])

    def merge(self, i, j):
        self.scatter[i] += self.scatter[j]
        self.counts[i] += self.counts[j]

    def log_likelihoods(self):
        return self._values(self.scatter, self.counts)

    def _values(self, scatter, counts):
        squares = leading_axes(scatter, counts)[1]
        kappa = concentration(squares, self.dim) if self._kappa is None else self._kappa
        log_m = log_kummer(kappa, self.dim)[0] + log_sphere_area(self.dim)
        return counts * (kappa * squares - log_m)


class WatsonGradients(Gradients):
    """Fisher vectors: sums of r (m.x) x along the sphere, of r ((m.x)^2 - mean), and N - w T."""

    names = {"axes": "axis", "concentrations": "concentration", "weights": "weight"}

    def __init__(self, weights, components, *, tangent):
        self._weights, self._axes, kappa = weights, components.axes, components.concentrations
        K, d = self._axes.shape
        _, self._squares, fourth = log_kummer(kappa, d)
        across, along = (self._squares - fourth) / (d - 1), fourth - self._squares**2
        self.blocks = {
            "axes": ParameterBlock(*repeat_columns(2 * kappa, weights * across, d)),
            "concentrations": ParameterBlock(np.ones(K), weights * along),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(self, bags, responsibilities, kinds):
        (starts, words, amounts), resp = bags, responsibilities.resp
        X = responsibilities.table * responsibilities.scales[:, None]
        if responsibilities.packed:
            resp = csr_array(resp[::-1], shape=(len(X), len(self._axes))).toarray()
        bags = csr_array((amounts, words, starts), shape=(len(starts) - 1, len(X)))
        cosines, counts = X @ self._axes.T, bags @ resp
        squares, sizes = bags @ (resp * cosines**2), counts.sum(axis=1)
        sums = np.stack([bags @ (part[:, None] * X) for part in (resp * cosines).T], axis=1)
        return {
            "axes": sums - squares[:, :, None] * self._axes,
            "concentrations": squares - self._squares * counts,
            "weights": counts - sizes[:, None] * self._weights,
        }, sizes


@dataclass(frozen=True)
class Watson(SeedFamily):
    """Axes m with log-density kappa (m.x)^2 - log M(1/2; d/2; kappa) - log area."""

    dim: int
    tied: bool = False  # whether all components have one concentration

    components_class, gradients = WatsonComponents, WatsonGradients
    unit_rows, min_rows = True, 2  # rows are scaled to unit length

    # What a component is.

    def components(self, axes, concentrations):
        kappa = np.broadcast_to(concentrations, len(axes)).copy()
        log_m = log_kummer(kappa, self.dim)[0]
        return WatsonComponents(axes, kappa, self.zero_row_log_density - log_m)

    def scores(self, block, components):
        cosines = unit_rows(block) @ components.axes.T
        return Scores(components.concentrations * cosines**2, components.log_normalizers)

    @property
    def zero_row_log_density(self):
        return -float(log_sphere_area(self.dim))

    def n_parameters(self, n_components):
        return n_components * (self.dim - 1) + (1 if self.tied else n_components)

    def sample(self, components, counts, rng):
        parts = zip(components.axes, components.concentrations, counts, strict=True)
        return np.vstack([draw(axis, kappa, size, rng) for axis, kappa, size in parts])

    # A step of EM.

    def moments(self, block, responsibilities, components, cache=None):
        resp, units = as_dense(responsibilities, len(components.axes)), unit_rows(block)
        return (np.stack([(block.X * column[:, None]).T @ units for column in resp.T]),)

    def maximize(self, stats, components):
        full = stats.counts > 0
        axes, squares = leading_axes(stats.moments[0], stats.counts)
        if self.tied:
            squares = np.array([stats.counts @ squares / stats.counts.sum()])
        axes = np.where(full[:, None], axes, components.axes)
        kappa = concentration(squares, self.dim)
        kappa = np.where(full | self.tied, kappa, components.concentrations)
        return self.components(axes, kappa), np.zeros_like(full)

    def reseed(self, components, k, row):
        axes, kappa = components.axes.copy(), components.concentrations.copy()
        axes[k], kappa[k] = row, kappa.mean()
        return self.components(axes, kappa)

    # Where fits start.

    def kmeans(self):
        return replace(self, tied=True)

    def from_centres(self, centres):
        return self.components(centres, MODERATE)

    def centres(self, components):
        return components.axes

    def distances(self, block, centres):
        return np.maximum(1 - (unit_rows(block) @ centres.T) ** 2, 0)

    def initial(self, stats, components, centres=None):
        first, _ = self.kmeans().maximize(stats, components)
        return first if centres is None else self.components(centres, first.concentrations)

    # Merging.

    def merge_cost(self, stats, components, numbers):
        kappa = components.concentrations[:1] if self.tied else None
        return WatsonMergeCost(stats.moments[0][numbers], stats.counts[numbers], kappa)

    def proposal(self):
        return Proposal(self.kmeans())

    def at_points(self, points, like=None):
        axes = points / np.linalg.norm(points, axis=1, keepdims=True)
        return self.components(axes, MODERATE if like is None else like.concentrations[0])

    def append(self, components, others):
        axes = np.vstack([components.axes, others.axes])
        return self.components(axes, components.concentrations[0])

    def peaks(self, components):
        return components.concentrations + components.log_normalizers

    def fit_clusters(self, cost, clusters):
        axes, squares = leading_axes(cost.scatter[clusters], cost.counts[clusters])
        pooled = np.atleast_1d(np.average(squares, weights=cost.counts[clusters]))
        return self.components(axes, concentration(pooled, self.dim))
