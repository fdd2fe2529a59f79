"""Partitions of the rows: given, random or by k-means; first components from their statistics."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.random import RandomState

from ..._typing import Array
from ..em.loop import OnIteration, ignore, run_em
from ..em.mixture import Mixture
from ..em.posterior import FenchelYoungPosterior
from ..families.family import AnyFamily, Family
from ..families.params import C, Components, Params
from ..families.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)
from ..families.statistics import Statistics
from ..rows.blocks import Block, DenseBlock
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


def draw_seed(rng: RandomState) -> int:
    """Draw the seed of what is drawn block by block."""
    return int(rng.randint(2**31 - 1))


def random_rows(rows: RowSource, n_components: int, rng: RandomState) -> Array:
    """Draw K rows by weight, distinct in value if the first 20 K rows drawn hold so many values."""
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


def count_distinct(rows: RowSource) -> int:
    """Return the number of distinct rows with a weight, as the family sees them."""
    keys = np.zeros(rows.n_rows, dtype=np.int64)

    def write(block: Block, span: slice) -> None:
        cells: list[tuple[bytes, ...]]
        scales = np.ones(len(block.weights)) if block.scales is None else block.scales
        if isinstance(block, DenseBlock):
            cells = [(row.tobytes(),) for row in block.X * scales[:, None] + 0.0]
        else:
            rows_of_block = zip(pairwise(block.indptr), scales, strict=True)
            cells = [
                (block.indices[i:j].tobytes(), (block.data[i:j] * scale).tobytes())
                for (i, j), scale in rows_of_block
            ]
        keys[span] = list(map(hash, cells))

    rows.for_each(write)
    return len(np.unique(keys[rows.sampling_weights() > 0]))


def em_steps(model: Mixture, rows: RowSource, params: Params, n_steps: int) -> tuple[Params, float]:
    """Return parameters after some steps of plain EM, and the bound before the last."""
    bound = -np.inf
    for _ in range(n_steps):
        stats = model.expectation(params, rows)
        bound = model.lower_bound(stats, params)
        components, of_components = params.components, stats.first_components(params.n_components)
        if of_components.counts.any():  # else no component has rows
            components, _ = model.family.maximize(of_components, components)
        params = Params.first(stats.counts / stats.counts.sum(), components)
    return params, bound


def assignment(model: Mixture, params: Params) -> Assignment:
    """Return what gives the responsibilities of the components for a block, and their counts."""
    K = params.n_components

    def assign(block: Block) -> tuple[Responsibilities, Array]:
        assigned = model.assign(params, block)
        return assigned.of_components(K), assigned.counts[:K]

    return assign


@dataclass(frozen=True)
class SampleStart:
    """Components found on a sample, and their bound there."""

    model: Mixture
    params: Params
    bound: float
    labels: Array | None = None  # of the sample, if they are known

    def partition(self, family: AnyFamily, rows: RowSource) -> tuple[Statistics, Components]:
        """Return `partition_statistics` of a family for these responsibilities for rows.

        If the sample is all rows, and has labels, these are as good. If the background has every
        row, each is its nearest component's.
        """
        centres = self.model.family.centres(self.params.components)
        if self.labels is not None and len(self.labels) == rows.n_rows:
            by_labels = partial(assign_labels, self.labels, len(centres))
            return partition_statistics(family, rows, centres, by_labels)
        found = partition_statistics(family, rows, centres, assignment(self.model, self.params))
        return found if found[0].counts.any() else nearest_partition(family, rows, centres)


KMEANS_MAX_ITER = 30
_LARGEST_LOSS = float(np.finfo(np.float32).max)


def kmeans_start(
    family: AnyFamily,
    rows: RowSource,
    centres: Array,
    *,
    max_iter: int = 0,
    on_iteration: OnIteration = ignore,
) -> SampleStart:
    """Return equal components at centres (K, d), after some steps of k-means."""
    kmeans = family.kmeans()
    model = Mixture(kmeans, FenchelYoungPosterior(temperature=0), fixed_weights=True)
    weights = np.full(len(centres), 1 / len(centres))
    params, bound = Params.first(weights, kmeans.from_centres(centres)), -np.inf
    if max_iter > 0:
        result = run_em(model, rows, params, max_iter=max_iter, tol=1e-4, on_iteration=on_iteration)
        params, bound = Params.first(weights, result.params.components), result.bounds[-1]
    return SampleStart(model, params, bound)


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
    start = kmeans_start(family, rows, centres)
    model = replace(start.model, known=known)
    about = start.model.family.centres(start.params.components) if about is None else about
    return partition_statistics(family, rows, about, assignment(model, start.params))


def kmeans_plusplus(
    family: AnyFamily, rows: RowSource, n_components: int, rng: RandomState
) -> Array:
    """Draw K rows far apart, each the best of 2 + log K candidates, as scikit-learn does."""
    weights = rows.sampling_weights()
    n_trials = 2 + int(np.log(n_components))
    closest = np.full(rows.n_rows, np.inf, dtype=np.float32)
    centres = np.empty((n_components, rows.n_features))
    centres[0] = rows.take(_draw(weights, None, 1, rng))[0]

    def losses(candidates: Array, block: Block) -> Array:
        loss = np.minimum(family.distances(block, candidates), _LARGEST_LOSS)
        loss[block.weights == 0] = 0
        return loss

    def potentials(candidates: Array, block: Block) -> Array:
        before = closest[block.start : block.start + len(block.weights)]
        return block.weights @ np.minimum(losses(candidates, block), before[:, None])

    def move_closer(centre: Array, block: Block, span: slice) -> None:
        closest[span] = np.minimum(closest[span], losses(centre, block)[:, 0])

    for k in range(1, n_components):
        rows.for_each(partial(move_closer, centres[k - 1 : k]))
        candidates = rows.take(_draw(weights, closest, n_trials, rng))
        totals = rows.map_reduce(partial(potentials, candidates))
        centres[k] = candidates[int(np.argmin(totals))]
    return centres


def _draw(weights: Array, loss: Array | None, size: int, rng: RandomState) -> Array:
    """Draw row numbers in proportion to weights times loss, or to weights if no loss is left."""
    cumulative = weights.astype(np.float64)
    if loss is not None and (loss[weights > 0] > 0).any():
        cumulative *= loss
    np.cumsum(cumulative, out=cumulative)
    drawn = rng.uniform(size=size) * cumulative[-1]
    rows: Array = np.searchsorted(cumulative, drawn, side="right")
    return np.minimum(rows, len(weights) - 1)
