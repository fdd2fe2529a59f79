"""The rows of components: how many and how close they are, typical and doubtful ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._engine.data.validation import canonical
from .._kernels.sparse import csr_normalize
from .._kernels.sphere import normalize_rows
from .._sklearn import check_rows
from .._typing import Array, Matrix
from ..mixture._chunkwise import in_memory
from ._components import Components, DirectionalComponents, Mixture


def component_rows(
    mixture: Mixture, components: Components, active: Array, X: Any, n_rows: int
) -> tuple[Array, dict[str, Any]]:
    """Return the labels of rows, and what a summary tells about the rows of components `active`."""
    X = in_memory(X)
    labels = mixture.predict(X)  # of X as it is given: with its names, if it has any
    proba = mixture.predict_proba(X)
    rows = check_rows(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    sizes, cosines, typical, doubtful = [], [], [], []
    for i, k in enumerate(active):
        members = np.flatnonzero(labels == k)
        closeness = _closeness(components, i, rows[members]) if len(members) else np.empty(0)
        known = closeness[~np.isnan(closeness)]
        sizes.append(len(members))
        cosines.append(known.mean() if len(known) else np.nan)
        typical.append(members[np.argsort(-closeness, kind="stable")[:n_rows]])
        doubtful.append(members[np.argsort(proba[members, k], kind="stable")[:n_rows]])
    directional = isinstance(components, DirectionalComponents)
    return labels, {
        "sizes": np.array(sizes),
        "cosines": np.array(cosines) if directional else None,
        "typical": typical,
        "doubtful": doubtful,
        "n_outliers": int(np.count_nonzero(labels == -1)),
    }


def _closeness(components: Components, i: int, X: Matrix) -> Array:
    """Return the closeness of rows to the middle of component i, (n,).

    It is the cosine for directions, nan for rows of zeros, and otherwise the log-density.
    """
    if not isinstance(components, DirectionalComponents):
        return components.some(np.array([i])).log_densities(X)[:, 0]
    if sparse.issparse(X):
        X = canonical(X).astype(np.float64)
        csr_normalize(X.indptr, X.data)
    else:
        X = X.astype(np.float64)
        normalize_rows(X)
    cosines = np.asarray(safe_sparse_dot(X, components.directions[i])).ravel()
    return np.where(np.asarray(abs(X).sum(axis=1)).ravel() > 0, cosines, np.nan)
