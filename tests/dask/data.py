"""Rows, and a number that tells whether two fits have the same bits."""

import hashlib
import itertools
from copy import copy
from uuid import uuid4

import numpy as np
from scipy import sparse


def blobs(n, d=4, dtype=np.float64, noise=1.0):
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(5, d))
    return (centres[rng.integers(5, size=n)] + noise * rng.normal(size=(n, d))).astype(dtype)


def counts(n, d=12, dtype=np.float64):
    """Return CSR rows, most of their entries zero and some of them empty."""
    return sparse.csr_array(np.maximum(blobs(n, d) - 3, 0).astype(dtype))


def chunked(X, lengths, copied=True):
    """Return a Dask array of rows or weights, in chunks of some lengths, none included."""
    import dask.array as da

    edges = np.cumsum([0, *lengths])
    assert edges[-1] == X.shape[0]
    name = f"rows-{uuid4().hex}"
    spans = enumerate(itertools.pairwise(edges))
    rest, make = X.shape[1:], copy if copied else (lambda chunk: chunk)
    graph = {(name, i, *(0 for _ in rest)): (make, X[a:b]) for i, (a, b) in spans}
    return da.Array(graph, name, (tuple(lengths), *((d,) for d in rest)), meta=X[:0])


def lengths_of(kind, n):
    """Return lengths of chunks: multiples of blocks, ragged ones, or single rows among them."""
    if kind == "aligned":
        sizes = [16384] * (n // 16384) + [n % 16384]
    elif kind == "ragged":
        sizes = [n // 3 + 1, 1, 0, n // 7, 5000]
    else:
        sizes = [1] * 30 + [n // 2]
    return [*sizes, n - sum(sizes)]


def bits(mixture):
    """Return a hash of all that a fit has found but its labels."""
    found = hashlib.sha256()
    for name, value in sorted(vars(mixture).items()):
        lazy = name in ("labels_", "probabilities_")
        if name.endswith("_") and isinstance(value, np.ndarray | float | list) and not lazy:
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return found.hexdigest()
