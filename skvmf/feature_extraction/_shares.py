"""How a mixture shares out the rows of a table of vectors: once a row, whatever counts it."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._engine.shares import dense_resp

TABLE_BYTES = 2**23  # selected rows of a table are copied by so much at a time


@dataclass(frozen=True)
class Shares:
    """Each component's share of each vector, as the kernels take it.

    `resp` is (V, K), or compressed rows for a sparse posterior; a vector that is left out has
    none. `table` and `scales` are the vectors as the mixture sees them.
    """

    resp: np.ndarray | tuple
    table: np.ndarray
    scales: np.ndarray

    @property
    def sparse(self):
        return isinstance(self.resp, tuple)


def share(mixture, table, used):
    """Share out the rows of a table that are in `used` (None: all) among the components."""
    V, K = len(table), len(mixture.weights_)
    posterior, fitted = mixture._posterior(), mixture._fitted
    packed = posterior.tsallis or posterior.temperature == 0
    resp = {} if packed else np.zeros((V, K)) if used is not None else np.empty((V, K))
    scales = np.zeros(V)
    moved = []  # rows that the mixture sees elsewhere: extreme ones, brought into range
    for rows, part in _parts(table, used):

        def write(chunk, span, rows=rows, part=part):
            mine = span if rows is None else rows[span]
            scores = fitted.family.scores(chunk, fitted.params.components)
            found, *_ = posterior.assign(scores, fitted.weights, chunk.weights)
            scales[mine] = 1.0 if chunk.scales is None else chunk.scales
            if packed:
                resp[span.start if rows is None else mine[0]] = sparse.csr_array(
                    dense_resp(found, K)
                )
            else:
                resp[mine] = found.resp
            if not np.may_share_memory(chunk.X, part):
                moved.append((mine, chunk.X))

        _rows(mixture, part).for_each(write)
    if moved:
        table = table.copy()
        for rows, vectors in moved:
            table[rows] = vectors
    if packed:
        resp = _compress([resp[start] for start in sorted(resp)], K, V, used)
    return Shares(resp, table, scales)


def _rows(mixture, vectors):
    """Wrap vectors; all but ordinary ones are checked, and brought into range, by the mixture."""
    rows = mixture._make_rows(vectors, None)
    if rows.found_ordinary or np.vdot(vectors, vectors) < 1e30:  # so all are finite
        return rows
    return mixture._new_rows(vectors)


def _parts(table, used):
    """Yield numbers of rows in `used`, a bounded number at a time, and the rows; None is all."""
    if used is None or used.all():
        yield None, table
        return
    numbers = np.flatnonzero(used)
    size = max(1, TABLE_BYTES // (table.shape[1] * table.itemsize))
    for start in range(0, len(numbers), size):
        rows = numbers[start : start + size]
        yield rows, table[rows]


def _compress(pieces, K, V, used):
    """Put CSR pieces together as compressed rows over the whole table."""
    pieces = pieces or [sparse.csr_array((0, K))]
    resp = sparse.vstack(pieces, format="csr")
    sizes = np.zeros(V, dtype=np.intp)
    sizes[slice(None) if used is None else used] = np.diff(resp.indptr)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts, resp.indices.astype(np.intp), resp.data.astype(np.float64)
