"""k-means and its seeds on a sample, random rows, and distinct ones."""

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from ..._typing import Array
from ..em.loop import OnIteration, ignore, run_em
from ..families.family import AnyFamily
from ..families.params import Params
from ..rows.blocks import Block, DenseBlock
from ..rows.sources import RowSource
from .partitions import nearest
from .sample import FoundStart, Sample, draw_by_weight

# Steps of k-means on a sample at most, and the gain of the last: EM on all rows does the rest.
KMEANS_MAX_ITER = 30
KMEANS_TOL = 1e-4

# Rows are drawn in so many lots of K each, until K distinct ones are among them.
N_LOTS = 20

_LARGEST_LOSS = float(np.finfo(np.float32).max)


def draw_seed(rng: Generator) -> int:
    """Draw the seed of what is drawn block by block."""
    return int(rng.integers(2**31 - 1))


def random_rows(rows: RowSource, n_components: int, rng: Generator) -> Array:
    """Draw K rows by weight, distinct in value if the first 20 K rows drawn hold so many values."""
    candidates = rows.draw_in_order(N_LOTS * n_components, draw_seed(rng))
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


# Rows for each component up to which there are few distinct ones: what merging pools of the
# covariances of copies is nothing.
MAX_DISTINCT_PER_COMPONENT = 4


def has_copies(sample: Sample, n_components: int) -> bool:
    """Return whether most rows of a sample are copies of a few per component."""
    most = min(MAX_DISTINCT_PER_COMPONENT * n_components, len(sample.drawable) // 2)
    few = sample.some(sample.drawable[: most + 1], width=1)  # which tell in most cases
    return count_distinct(few.rows) <= most and count_distinct(sample.rows) <= most


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


def kmeans_start(
    family: AnyFamily,
    rows: RowSource,
    centres: Array,
    *,
    max_iter: int,
    on_iteration: OnIteration = ignore,
) -> FoundStart:
    """Return equal components at centres (K, d), after some steps of k-means."""
    point = nearest(family, centres)
    if max_iter == 0:
        return FoundStart(point, -np.inf)
    result = run_em(point, rows, max_iter=max_iter, tol=KMEANS_TOL, on_iteration=on_iteration)
    # With equal weights, as k-means has no others; marks of what it moved or pruned are cleared.
    params = Params.first(point.weights, result.point.components)
    return FoundStart(point.at(params), result.bounds[-1])


def kmeans_plusplus(family: AnyFamily, rows: RowSource, n_components: int, rng: Generator) -> Array:
    """Draw K rows far apart, each the best of 2 + log K candidates, as scikit-learn does."""
    weights = rows.sampling_weights()
    n_trials = 2 + int(np.log(n_components))
    closest = np.full(rows.n_rows, np.inf, dtype=np.float32)
    centres = np.empty((n_components, rows.n_features))
    centres[0] = rows.take(draw_by_weight(weights, 1, rng))[0]

    def losses(candidates: Array, block: Block) -> Array:
        loss = np.minimum(family.distances(block, candidates), _LARGEST_LOSS)
        loss[block.weights == 0] = 0
        return loss

    def potentials(candidates: Array, block: Block) -> Array:
        before = closest[block.span]
        return block.weights @ np.minimum(losses(candidates, block), before[:, None])

    def move_closer(centre: Array, block: Block, span: slice) -> None:
        closest[span] = np.minimum(closest[span], losses(centre, block)[:, 0])

    for k in range(1, n_components):
        rows.for_each(partial(move_closer, centres[k - 1 : k]))
        by_loss = weights * closest
        drawn = draw_by_weight(by_loss if by_loss.any() else weights, n_trials, rng)
        candidates = rows.take(drawn)
        totals = rows.map_reduce(partial(potentials, candidates))
        centres[k] = candidates[int(np.argmin(totals))]
    return centres
