"""Which components of two fits are the same, by pairs with the largest sum of what they share."""

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from ..._typing import Array


def best_pairs(gains: coo_array) -> tuple[Array, Array, Array]:
    """Return rows and columns of pairs with the largest sum of gains (m, n), and these.

    Gains are from 0 to 1. Each row and each column is in one pair at most, and only entries that
    are stored make pairs.
    """
    m, n = gains.shape
    # A row that none of its columns is left for gets a column of its own, which costs more than
    # any other. A sparse graph has no edge of cost 0, so costs are between 1 and 2.
    costs = np.append(2 - gains.data, np.full(m, 2.0))
    # SciPy's matching takes indices of 32 bits only.
    rows = np.append(gains.coords[0], np.arange(m)).astype(np.int32)
    columns = np.append(gains.coords[1], n + np.arange(m)).astype(np.int32)
    graph = csr_array((costs, (rows, columns)), shape=(m, n + m))
    rows, columns = min_weight_full_bipartite_matching(graph)
    gains_of_pairs = 2 - np.asarray(graph[rows, columns]).ravel()
    has_partner = columns < n
    return rows[has_partner], columns[has_partner], gains_of_pairs[has_partner]


def matched_by_rows(labels: Array, other_labels: Array, weights: Array, n_components: int) -> Array:
    """Return the component of another fit for each of one (K,), that share most rows; -1 if none.

    Labels are those of the same rows, -1 is the background. The sum of the weights of the rows
    that pairs share is largest.
    """
    K = n_components
    are_components = (labels >= 0) & (other_labels >= 0)
    labels = labels[are_components]
    other_labels = other_labels[are_components]
    shared = coo_array((weights[are_components], (labels, other_labels)), shape=(K, K)).tocsr()
    shared.eliminate_zeros()
    indices = np.full(K, -1)
    if shared.nnz == 0:
        return indices
    rows, columns, _ = best_pairs((shared / shared.data.max()).tocoo())
    indices[rows] = columns
    return indices


def in_order_of(indices: Array, memberships: Array) -> Array:
    """Return memberships of another fit in the columns of those that they match; 0 without one.

    Columns after those of the K components, `indices`, are the background's, and stay last.
    """
    K = len(indices)
    ordered = np.zeros_like(memberships)
    has_match = indices >= 0
    ordered[:, :K][:, has_match] = memberships[:, indices[has_match]]
    ordered[:, K:] = memberships[:, K:]
    return ordered
