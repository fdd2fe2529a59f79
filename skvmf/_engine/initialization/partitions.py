"""Partitions of the rows, whose statistics give first components, and plain steps of EM.

A partition is given, random, or the responsibilities of a mixture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily
from ..contracts.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)
from ..contracts.statistics import Components, Params, Statistics
from ..data.base import RowSource
from ..data.blocks import Block
from ..em.mixture_model import MixtureModel

Assignment: TypeAlias = Callable[[Block], tuple[Responsibilities, Array]]


def partition_statistics(
    family: AnyFamily, rows: RowSource, centres: Array, assign: Assignment
) -> tuple[Statistics, Components]:
    """Sum the moments of a partition: `assign(block)` returns responsibilities and counts.

    Also returns the components at `centres` (K, d) that the moments are about.
    """
    components = family.from_centres(centres)
    origins = family.origins(components)

    def expect(block: Block) -> Statistics:
        responsibilities, counts = assign(block)
        moments = family.moments(block, responsibilities, components)
        total = float(block.weights.sum())
        return Statistics(0.0, total, counts, moments, origins, 0.0, np.empty(0))

    return rows.map_reduce(expect), components


def assign_labels(labels: Array, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block by the labels (n_samples,) of all rows; -1 is for none."""
    labels, factors = labels[block.start : block.start + len(block.weights)], block.factors
    counts = np.bincount(labels + 1, weights=block.weights, minlength=n_components + 1)[1:]
    none = labels < 0
    if none.any():
        labels, factors = np.where(none, 0, labels), np.where(none, 0.0, factors)
    return HardResponsibilities(labels, factors), counts


def assign_responsibilities(resp: Array, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block by the responsibilities (n_samples, K) of all rows."""
    resp = resp[block.start : block.start + len(block.weights)]
    return DenseResponsibilities(resp * block.factors[:, None]), block.weights @ resp


def assign_randomly(seed: int, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Assign the rows of a block at random, by a seed and the number of its first row."""
    rng = np.random.default_rng((seed, block.start))
    labels = rng.integers(n_components, size=len(block.weights), dtype=np.int32)
    counts = np.bincount(labels, weights=block.weights, minlength=n_components)
    return HardResponsibilities(labels, block.factors), counts


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw the seed of what is drawn block by block."""
    return int(rng.randint(2**31 - 1))


def first_row(rows: RowSource) -> Array:
    """Return the first row with a weight, (1, d): a point near which moments do not cancel."""
    return rows.take(np.array([rows.first_row()]))


def random_rows(rows: RowSource, n_components: int, rng: np.random.RandomState) -> Array:
    """Draw K rows by weight without replacement, distinct in value if there are enough.

    If the first 20 K rows drawn do not hold K values, some are drawn twice.
    """
    candidates = rows.draw_in_order(20 * n_components, draw_seed(rng))
    seen: set[bytes] = set()
    distinct: list[int] = []
    repeated: list[int] = []
    for start in range(0, len(candidates), n_components):
        part = candidates[start : start + n_components]
        for row, value in zip(part, rows.take(part), strict=True):
            (repeated if value.tobytes() in seen else distinct).append(row)
            seen.add(value.tobytes())
        if len(distinct) >= n_components:
            break
    return rows.take(np.resize(np.array(distinct + repeated), n_components))


def climb(
    model: MixtureModel, rows: RowSource, params: Params, n_steps: int
) -> tuple[Params, float]:
    """Return parameters after some steps of plain EM, and the bound before the last."""
    bound = -np.inf
    for _ in range(n_steps):
        stats = rows.map_reduce(partial(model.expect, params))
        bound = model.lower_bound(stats, params)
        components, of_components = params.components, stats.first_components(params.n_components)
        if of_components.counts.any():  # else no component has rows
            components, _ = model.family.maximize(of_components, components)
        params = Params.first(stats.counts / stats.counts.sum(), components)
    return params, bound


def assignment(model: MixtureModel, params: Params) -> Assignment:
    """Return what gives the responsibilities of the components for a block, and their counts."""
    K = params.n_components

    def assign(block: Block) -> tuple[Responsibilities, Array]:
        responsibilities, counts, _ = model.posterior.assign(
            model.scores(params, block), params.weights, block.weights, block.scales
        )
        return responsibilities.first_components(K), counts[:K]

    return assign


@dataclass(frozen=True)
class SampleStart:
    """Components found on a sample, and their bound there."""

    model: MixtureModel
    params: Params
    bound: float

    def partition(self, family: AnyFamily, rows: RowSource) -> tuple[Statistics, Components]:
        """Return `partition_statistics` of a family for these responsibilities for rows."""
        centres = self.model.family.centres(self.params.components)
        return partition_statistics(family, rows, centres, assignment(self.model, self.params))
