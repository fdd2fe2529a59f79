"""From bags to rows of features: shares once a vector, then sums block by block."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from .._engine.posterior import dense_resp
from .._engine.threads import ordered_fold
from .._kernels.fisher import STEP, pad_bags

TABLE_BYTES = 2**23  # selected rows of a table are copied by so much at a time
BLOCK_BYTES = 2**20  # of features in one block of documents, which stays in the cache


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
    posterior, family, params = mixture._posterior(), mixture._family, mixture._params
    packed = posterior.tsallis or posterior.temperature == 0
    resp = {} if packed else np.zeros((V, K))
    scales = np.zeros(V)
    moved = []  # rows that the mixture sees elsewhere: extreme ones, brought into range
    for rows, part in _parts(table, used):

        def write(chunk, span, rows=rows, part=part):
            mine = span if rows is None else rows[span]
            plain = replace(chunk, scales=np.ones(len(chunk.scales)))
            scores = family.scores(chunk, params.components)
            found, *_ = posterior.assign(*scores, params.weights, plain)
            scales[mine] = chunk.scales
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
    if np.vdot(vectors, vectors) < 1e30:  # so all are finite
        return mixture._make_rows(vectors, None)
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


@dataclass(frozen=True)
class Encoder:
    """Writes Fisher vectors.

    Parameters
    ----------
    gradients : VonMisesFisherGradients or GaussianGradients
        What a fitted mixture says of a bag.
    kinds : tuple of str
        The blocks, in the order of the features.
    normalization, power, norm
        As in `FisherVectorTransformer`.
    """

    gradients: object
    kinds: tuple
    normalization: str | None
    power: float
    norm: str | None

    @property
    def n_features(self):
        return sum(self.gradients.blocks[kind].slope.size for kind in self.kinds)

    def names(self):
        """Return a name for each feature: its parameter, component and dimension."""
        for kind in self.kinds:
            singular = self.gradients.singular[kind]
            for index in np.ndindex(self.gradients.blocks[kind].slope.shape):
                yield singular + "_".join(map(str, index))

    def encode(self, bags, out):
        """Write the Fisher vectors of bags to the rows of `out`."""
        shares = share(self.gradients.mixture, bags.table, bags.used)
        size = max(1, BLOCK_BYTES // (8 * self.n_features))
        spans = [slice(i, min(i + size, len(bags))) for i in range(0, len(bags), size)]

        def write(span):
            out[span] = self._features(bags, shares, span)
            return 0

        if spans:
            ordered_fold(write, spans)

    def _features(self, bags, shares, span):
        indptr = bags.indptr[span.start : span.stop + 1]
        n = len(indptr) - 1
        ptr = np.zeros(n + 1, dtype=np.intp)
        np.cumsum(-(-np.diff(indptr) // STEP) * STEP, out=ptr[1:])
        words, amounts, largest = np.empty(ptr[-1], np.intp), np.empty(ptr[-1]), np.empty(n)
        pad_bags(indptr, bags.indices, bags.data, ptr, words, amounts, largest)
        found, sizes = self.gradients.statistics((ptr, words, amounts), shares, self.kinds)
        features = np.empty((n, self.n_features))
        start = 0
        for kind in self.kinds:
            factor = self.gradients.blocks[kind].factor(self.normalization)
            block = features[:, start : start + factor.size].reshape((n, *factor.shape))
            np.multiply(found[kind], factor, out=block)
            start += factor.size
        if self.norm is None:  # else what a whole row is multiplied by is of no consequence
            features *= self._row_factors(sizes, largest)[:, None]
        if self.power != 1:
            magnitude = np.abs(features)
            magnitude **= self.power
            np.copysign(magnitude, features, out=features)
        if self.norm == "l2":
            _normalize(features)
        return features

    def _row_factors(self, sizes, largest):
        """Undo relative counts and, for the information of the whole bag, divide by its size."""
        if self.normalization != "fisher":
            return largest
        return np.divide(
            np.sqrt(largest), np.sqrt(sizes), out=np.zeros_like(sizes), where=sizes > 0
        )


def _normalize(features):
    """Divide rows by their length; rows of zeros stay. Squares are taken where they are safe."""
    squares = np.einsum("nf,nf->n", features, features)
    for n in np.flatnonzero(~((squares > 1e-200) & (squares < 1e200))):
        row = features[n]
        largest = np.abs(row).max()
        row /= largest if largest > 0 else 1.0
        squares[n] = row @ row if largest > 0 else 1.0
    features /= np.sqrt(squares)[:, None]
