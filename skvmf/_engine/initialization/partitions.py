"""Where EM starts: k-means and k-means++ on plane and sphere, random partition, random rows.

Every start is a partition of the rows: its statistics give the first components. k-means is
hard EM of the engine itself, so a start has the same bits for every number of threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Family
from ..contracts.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)
from ..contracts.statistics import Statistics
from ..data.base import RowSource
from ..data.blocks import Block


def partition_statistics(
    family: Family,
    rows: RowSource,
    centres: Array,
    share: Callable[[Block], tuple[Responsibilities, Array]],
) -> tuple[Statistics, Any]:
    """Sum the moments of a given partition; `share(chunk)` returns shares and counts.

    Also returns the components at `centres` (K, d) that the moments are about.
    """
    components = family.from_centres(centres)
    origins = family.origins(components)

    def expect(block: Block) -> Statistics:
        responsibilities, counts = share(block)
        moments = family.moments(block, responsibilities, components)
        total = float(block.weights.sum())
        return Statistics(0.0, total, counts, moments, origins, 0.0, np.empty(0))

    return rows.map_reduce(expect), components


def share_labels(labels: Array, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Share a block out by the labels (n_samples,) of all rows; -1 is no component."""
    own = labels[block.start : block.start + len(block.weights)]
    counts = np.bincount(own + 1, weights=block.weights, minlength=n_components + 1)[1:]
    others = own < 0
    if others.any():
        own, factors = np.where(others, 0, own), np.where(others, 0.0, block.factors)
        return HardResponsibilities(own, factors), counts
    return HardResponsibilities(own, block.factors), counts


def share_responsibilities(resp: Array, block: Block) -> tuple[Responsibilities, Array]:
    """Share a block out by the responsibilities (n_samples, K) of all rows."""
    own = resp[block.start : block.start + len(block.weights)]
    return DenseResponsibilities(own * block.factors[:, None]), block.weights @ own


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw the seed of what is drawn block by block."""
    return int(rng.randint(2**31 - 1))


def share_randomly(seed: int, n_components: int, block: Block) -> tuple[Responsibilities, Array]:
    """Share a block out at random, by its first row's number and a seed."""
    rng = np.random.default_rng((seed, block.start))
    labels = rng.integers(n_components, size=len(block.weights), dtype=np.int32)
    counts = np.bincount(labels, weights=block.weights, minlength=n_components)
    return HardResponsibilities(labels, block.factors), counts


def first_row(rows: RowSource) -> Array:
    """Return the first row that counts, (1, d): a point near which moments do not cancel."""
    return rows.take(np.array([rows.first_row()]))


def random_rows(rows: RowSource, n_components: int, rng: np.random.RandomState) -> Array:
    """Draw K rows by weight without putting back, distinct in value where there are enough.

    Where the first 20 K rows drawn do not hold K values, some are drawn twice.
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
