"""Partitions of the rows: by labels, responsibilities, a point or the nearest centre."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..._typing import Array
from ..em.mixture import Mixture, Point
from ..em.posterior import FenchelYoungPosterior
from ..families.family import AnyFamily, Family
from ..families.params import C, Components, Params
from ..families.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)
from ..families.statistics import Statistics
from ..rows.blocks import Block
from ..rows.sources import RowSource

Assignment: TypeAlias = Callable[[Block], tuple[Responsibilities, Array]]


def partition_statistics(
    family: Family[C], rows: RowSource, centres: Array, assign: Assignment
) -> tuple[Statistics, C]:
    """Sum the moments of a partition about components at `centres` (K, d); return these, too."""
    components = family.from_centres(centres)
    centred_at = family.centred_at(components)

    def expect(block: Block) -> Statistics:
        responsibilities, counts = assign(block)
        moments = family.moments(block, responsibilities, components)
        total = float(block.weights.sum())
        return Statistics(0.0, total, counts, moments, centred_at)

    return rows.map_reduce(expect), components


def assign_labels(labels: Array, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block by the labels (n_samples,) of all rows; -1 is for none."""
    labels = labels[block.span]
    factors = block.factors
    counts = np.bincount(labels + 1, weights=block.weights, minlength=n_components + 1)[1:]
    none = labels < 0
    if none.any():
        labels = np.where(none, 0, labels)
        factors = np.where(none, 0.0, factors)
    return HardResponsibilities(labels, factors), counts


def assign_responsibilities(resp: Array, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block by the responsibilities (n_samples, K) of all rows."""
    resp = resp[block.span]
    return DenseResponsibilities(resp * block.factors[:, None]), block.weights @ resp


def assign_randomly(seed: int, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block at random, by a seed and the number of its first row."""
    rng = np.random.default_rng((seed, block.start))
    labels = rng.integers(n_components, size=len(block.weights), dtype=np.int32)
    counts = np.bincount(labels, weights=block.weights, minlength=n_components)
    return HardResponsibilities(labels, block.factors), counts


def assignment(point: Point) -> Assignment:
    """Return what gives the responsibilities of the components for a block, and their counts."""
    K = point.n_components

    def assign(block: Block) -> tuple[Responsibilities, Array]:
        assigned = point.assign(block)
        return assigned.of_components(K), assigned.counts[:K]

    return assign


def nearest(family: AnyFamily, centres: Array, known: Array | None = None) -> Point:
    """Return a point whose responsibilities are those of the nearest centre (K, d), as in k-means.

    The components of some rows may be known.
    """
    kmeans = family.kmeans()
    hard = FenchelYoungPosterior(temperature=0)
    weights = np.full(len(centres), 1 / len(centres))
    params = Params.first(weights, kmeans.from_centres(centres))
    return Point(Mixture(kmeans, hard, fixed_weights=True, known=known), params)


def nearest_partition(
    family: AnyFamily,
    rows: RowSource,
    centres: Array,
    about: Array | None = None,
    known: Array | None = None,
) -> tuple[Statistics, Components]:
    """Sum the moments of the rows by nearest centre (K, d), or by labels that are `known`.

    Moments are about those centres or, if given, other points (K, d). Also returns components
    there.
    """
    point = nearest(family, centres, known)
    return partition_statistics(
        family, rows, point.centres if about is None else about, assignment(point)
    )
