"""Rows of a sample far from all others, among which a start looks for no components.

Each would get a component, or a mean and a variance, of its own. The steps of EM that follow weigh
these rows down.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..families.gaussian_products import squared_distances
from ..families.tiles import tiles
from ..rows.blocks import DenseBlock
from .sample import Sample

# So many rows stand for all: their distances are a matrix of eight megabytes.
N_COMPARED = 1000

# A group of rows is too small for a component up to this fraction of them (five of a thousand).
MAX_GROUP_FRACTION = 0.005

# No more than this fraction of the rows may be outliers: if more would be, none are.
MAX_OUTLIER_FRACTION = 0.05

# The largest gap in a group, in radii that all but such a fraction of the rows lie within.
MAX_GAP = 2.0


def inliers(sample: Sample) -> Array:
    """Return the rows of a sample in groups of some size, with gaps up to `MAX_GAP` radii."""
    drawable = sample.drawable
    evenly = np.linspace(0, len(drawable) - 1, min(len(drawable), N_COMPARED))
    compared = sample.take(drawable[np.round(evenly).astype(int)])
    distances = np.linalg.norm(compared - np.median(compared, axis=0), axis=1)
    max_gap = MAX_GAP * np.quantile(distances, 1 - MAX_OUTLIER_FRACTION)
    if len(compared) < 2 or max_gap == 0:
        return drawable
    neighbours = csr_array(cdist(compared, compared) <= max_gap)
    _, groups = connected_components(neighbours, directed=False)
    far = np.bincount(groups)[groups] <= max(1, MAX_GROUP_FRACTION * len(compared))
    if not 0 < far.mean() <= MAX_OUTLIER_FRACTION:
        return drawable
    in_groups = compared[~far]
    near = np.zeros(sample.rows.n_rows, dtype=bool)

    def write(block: DenseBlock, span: slice) -> None:
        for tile in tiles(len(block.X)):
            squares = squared_distances(block.X[tile], in_groups, np.ones(len(in_groups)))
            near[span][tile] = squares.min(axis=1) <= max_gap**2

    sample.rows.for_each(write)
    return drawable[near[drawable]]
