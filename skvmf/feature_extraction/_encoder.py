"""From bags to rows of features, block by block."""

from dataclasses import dataclass

import numpy as np

from .._engine.threads import ordered_fold
from .._kernels.fisher import STEP, pad_bags
from ._shares import share

BLOCK_BYTES = 2**20  # of features in one block of documents, which stays in the cache


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
            self._write(bags, shares, span, out[span])
            return 0

        if spans:
            ordered_fold(write, spans)

    def _write(self, bags, shares, span, features):
        """Write the Fisher vectors of a span of bags to all of `features`."""
        indptr = bags.indptr[span.start : span.stop + 1]
        n = len(features)
        ptr = np.zeros(n + 1, dtype=np.intp)
        np.cumsum(-(-np.diff(indptr) // STEP) * STEP, out=ptr[1:])
        words, amounts, largest = np.empty(ptr[-1], np.intp), np.empty(ptr[-1]), np.empty(n)
        pad_bags(indptr, bags.indices, bags.data, ptr, words, amounts, largest)
        found, sizes = self.gradients.statistics((ptr, words, amounts), shares, self.kinds)
        start = 0
        for kind in self.kinds:
            factor = self.gradients.blocks[kind].factor(self.normalization)
            block = features[:, start : start + factor.size].reshape((n, *factor.shape))
            np.multiply(found[kind], factor, out=block, casting="same_kind")
            start += factor.size
        if self.norm is None:  # else what a whole row is multiplied by is of no consequence
            features *= self._row_factors(sizes, largest)[:, None]
        if self.power != 1:
            magnitude = np.abs(features)
            magnitude **= self.power
            np.copysign(magnitude, features, out=features)
        if self.norm == "l2":
            _normalize(features)

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
    for n in np.flatnonzero(~((squares > 1e-20) & (squares < 1e20))):
        row = features[n]
        largest = np.abs(row).max()
        row /= largest if largest > 0 else 1
        squares[n] = row @ row if largest > 0 else 1
    features /= np.sqrt(squares)[:, None]
