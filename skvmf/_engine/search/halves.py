"""Clusters of directions cut in two, where one component may have the rows of two clusters."""

from functools import partial

import numpy as np

from ..._typing import Array
from ..families.responsibilities import HardResponsibilities
from ..families.vonmises_fisher import dense_row_sums, sparse_dot, sparse_row_sums
from ..rows.blocks import Block, DenseBlock
from .longest_axes import half_axes
from .sample import Sample

# Iterations of the power method. Of two clusters in one component (470 rows in 256 features, mean
# resultant length .2) the variance was 1.0 of what chance allows after five, 1.6 after eight.
POWER_ITERATIONS = 8

# Variances along the longest axis of one cluster are near the edge of Marchenko and Pastur (1967):
# of thirty clusters at most .99 times as large, after twelve iterations, and less after eight.
_BEYOND_CHANCE = 1.1


def halves(sample: Sample, labels: Array, centres: Array, rng: np.random.Generator) -> Array:
    """Return the middles (2 m, d) of the halves of clusters that are cut across the longest axis.

    They are those that vary more along it than n rows of one cluster do by chance, (1 +
    sqrt(d / n))^2 times as much as along any. `labels` are the clusters that rows belong to, and
    `centres` (K, d) where these are.
    """
    counts = np.bincount(labels, sample.weights, minlength=len(centres))
    divisors = np.where(counts > 0, counts, 1.0)[:, None]
    sums = sample.rows.map_reduce(partial(_sums, len(centres), labels))
    means = np.where(counts[:, None] > 0, sums / divisors, centres)

    def scatter(axes: Array) -> Array:
        products: Array = sample.rows.map_reduce(partial(_scatter, labels, means, axes))
        return products / divisors

    factors = rng.standard_normal(len(labels))
    first = sample.rows.map_reduce(partial(_random_sums, labels, means, factors))
    steps, variances = half_axes(scatter, first, POWER_ITERATIONS)
    d = means.shape[1]
    along_any = (1 - np.einsum("kd,kd->k", means, means)) / d
    by_chance = along_any * (1 + np.sqrt(d / divisors[:, 0])) ** 2
    cut = (counts > 0) & (variances > _BEYOND_CHANCE * by_chance)
    return np.vstack([means[cut] - steps[cut], means[cut] + steps[cut]])


def _sums(n_clusters: int, labels: Array, block: Block, factors: Array | None = None) -> Array:
    """Return the sums (K, d) of the rows of clusters, times factors (n,)."""
    factors = block.factors if factors is None else factors
    hard = HardResponsibilities(labels[block.span], factors)
    if isinstance(block, DenseBlock):
        return dense_row_sums(block, hard, n_clusters).T
    return sparse_row_sums(block, hard, n_clusters).T


def _random_sums(labels: Array, means: Array, factors: Array, block: Block) -> Array:
    """Return the sums (K, d) of clusters' rows, less their means, times random factors (n,)."""
    return _sums_of_gaps(labels, means, factors[block.span], block)


def _scatter(labels: Array, means: Array, axes: Array, block: Block) -> Array:
    """Return the scatter matrix of each cluster's rows times its axis, (K, d)."""
    own = labels[block.span]
    if isinstance(block, DenseBlock):
        along = np.einsum("nd,nd->n", block.X, axes.astype(block.X.dtype)[own])
    else:
        along = sparse_dot(block, axes.T.astype(block.data.dtype))[np.arange(len(own)), own]
    if block.scales is not None:
        along = along * block.scales
    along = along - np.einsum("kd,kd->k", axes, means)[own]
    return _sums_of_gaps(labels, means, along, block)


def _sums_of_gaps(labels: Array, means: Array, factors: Array, block: Block) -> Array:
    """Return the sums (K, d) of clusters' rows, less their means, times factors (n,)."""
    own = labels[block.span]
    totals = np.bincount(own, block.weights * factors, minlength=len(means))
    return _sums(len(means), labels, block, block.factors * factors) - totals[:, None] * means
