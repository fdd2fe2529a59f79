"""Rows far from all others, among which a start looks for no components.

They would each get a component, or a mean and a variance, of their own. The steps of EM that
follow weigh them down.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..data.base import RowSource
from ..data.blocks import DenseBlock
from ..families.gaussian_products import squared_distances
from ..families.linalg import tiles

N_COMPARED = 1000  # rows that stand for all
MAX_GROUP = 0.005  # fraction of those rows up to which a group is too small for a component
MAX_TRIMMED = 0.05  # fraction of those rows that may be trimmed: if more would be, none are
REACH = 2.0  # largest gap in a group, in radii that all but MAX_TRIMMED of the rows lie within


def rows_in_groups(rows: RowSource) -> Array:
    """Return the numbers of the rows of a sample that are in groups of some size.

    Rows that are at most `REACH` radii apart are in the same group.
    """
    drawable = np.flatnonzero(rows.sampling_weights() > 0)
    places = np.linspace(0, len(drawable) - 1, min(len(drawable), N_COMPARED))
    compared = rows.take(drawable[np.round(places).astype(int)])
    distances = np.linalg.norm(compared - np.median(compared, axis=0), axis=1)
    reach = REACH * np.quantile(distances, 1 - MAX_TRIMMED)
    if len(compared) < 2 or reach == 0:
        return drawable
    neighbours = csr_array(cdist(compared, compared) <= reach)
    _, groups = connected_components(neighbours, directed=False)
    far = np.bincount(groups)[groups] <= max(1, MAX_GROUP * len(compared))
    if not 0 < far.mean() <= MAX_TRIMMED:
        return drawable
    others, near = compared[~far], np.zeros(rows.n_rows, dtype=bool)

    def write(block: DenseBlock, span: slice) -> None:
        for tile in tiles(len(block.X)):
            squares = squared_distances(block.X[tile], others, np.ones(len(others)))
            near[span][tile] = squares.min(axis=1) <= reach**2

    rows.for_each(write)
    return drawable[near[drawable]]
