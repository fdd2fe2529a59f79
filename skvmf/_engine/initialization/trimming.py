"""Rows far from all others: where a family with heavy tails does not look for components.

A start by sums of rows would give each of them a component, or a mean and a scale that are
theirs. The steps that follow weigh them down by themselves.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ..._typing import Array
from ..data.base import RowSource
from ..families.gaussian import Gaussian
from ..families.linalg import tiles

LOOKED_AT = 1000  # rows that stand for all
FEW = 0.005  # of those rows, up to which a group is no component
AT_MOST = 0.05  # of those rows are left out; where more would be, none is
FAR = 2.0  # times the radius of what is not left out


def rows_in_company(family: Gaussian, rows: RowSource) -> Array:
    """Return the numbers of the rows of a sample that lie in groups of some size.

    A group ends where the next row is further away than `FAR` times the distance from the middle
    of the data that 95 % of rows keep.
    """
    drawable = np.flatnonzero(rows.sampling_weights() > 0)
    places = np.linspace(0, len(drawable) - 1, min(len(drawable), LOOKED_AT))
    looked_at = rows.take(drawable[np.round(places).astype(int)])
    middle = np.median(looked_at, axis=0)
    reach = FAR * np.quantile(np.linalg.norm(looked_at - middle, axis=1), 1 - AT_MOST)
    if len(looked_at) < 2 or reach == 0:
        return drawable
    near_by = csr_array(cdist(looked_at, looked_at) <= reach)
    _, groups = connected_components(near_by, directed=False)
    alone = np.bincount(groups)[groups] <= max(1, FEW * len(looked_at))
    if not 0 < alone.mean() <= AT_MOST:
        return drawable
    company, near = looked_at[~alone], np.zeros(rows.n_rows, dtype=bool)

    def write(block: Any, span: slice) -> None:
        for tile in tiles(len(block.X)):
            squares = family.distances(replace(block, X=block.X[tile]), company) * family.scale
            near[span][tile] = squares.min(axis=1) <= reach**2

    rows.for_each(write)
    return drawable[near[drawable]]
