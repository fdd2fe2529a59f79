"""Fisher vectors of bags, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._engine.contracts import Gradients, VectorResponsibilities
from .._engine.fisher import VectorModel
from .._engine.parallel import map_reduce
from .._kernels.fisher import WORDS_PER_STEP, pad_bags
from .._typing import Array, DType
from ._bags import Bags

BLOCK_BYTES = 2**20  # of features in one block of documents, which stays in the cache
# Squared lengths of rows in which nothing has over- or underflown that matters.
_SAFE_SQUARES = {"f": (1e-30, 1e37), "d": (1e-280, 1e300)}
_MAX_FLOAT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Encoder:
    """Writes Fisher vectors.

    `tangent` takes gradients in directions along the sphere; `kinds` are the blocks in the order of
    the features. The other fields are those of `FisherVectorTransformer`.
    """

    model: VectorModel
    tangent: bool
    kinds: tuple[str, ...]
    normalization: str | None
    power: float
    norm: str | None

    @cached_property
    def gradients(self) -> Gradients:
        """The gradients of the mixture."""
        return self.model.gradients(tangent=self.tangent)

    @cached_property
    def factors(self) -> list[Array]:
        """The factors of the statistics of each kind, each (K,) or (K, d)."""
        return [self.gradients.blocks[kind].factor(self.normalization) for kind in self.kinds]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return sum(factor.size for factor in self.factors)

    def names(self) -> Iterator[str]:
        """Yield a name for each feature: its parameter, component and dimension."""
        for kind, factor in zip(self.kinds, self.factors, strict=True):
            for index in np.ndindex(factor.shape):
                yield self.gradients.names[kind] + "_".join(map(str, index))

    def encode(self, bags: Bags, out: Array) -> None:
        """Write the Fisher vectors of bags to the rows of `out`, float32 or float64."""
        responsibilities = self.model.responsibilities(bags.table, bags.used)
        size = max(1, BLOCK_BYTES // (8 * self.n_features))
        spans = [slice(i, min(i + size, len(bags))) for i in range(0, len(bags), size)]

        def write(span: slice) -> int:
            self._write(bags, responsibilities, span, out[span])
            return 0

        if spans:
            map_reduce(write, spans)

    def _write(
        self, bags: Bags, responsibilities: VectorResponsibilities, span: slice, out: Array
    ) -> None:
        """Write the Fisher vectors of a span of bags to all of `out`."""
        statistics, sizes, row_factors = self._statistics(bags, responsibilities, span)
        with np.errstate(over="ignore", invalid="ignore"):  # of rows that are written once more
            start = 0
            for statistic, factor in zip(statistics, self.factors, strict=True):
                block = out[:, start : start + factor.size].reshape(statistic.shape)
                np.multiply(statistic, factor, out=block, casting="same_kind")
                start += factor.size
            if self.norm is None:  # else what multiplies a whole row is of no consequence
                out *= row_factors[:, None]
            if self.power != 1:
                magnitude = np.abs(out)
                magnitude **= self.power
                np.copysign(magnitude, out, out=out)
            squares = np.einsum("nf,nf->n", out, out)
            if self.norm == "l2":
                out /= np.sqrt(np.where(squares > 0, squares, 1))[:, None]
        low, high = _SAFE_SQUARES[out.dtype.char]
        safe = (squares < high) & ((squares > low) | (self.norm is None))
        unsafe = np.flatnonzero(~safe & (sizes > 0))
        if len(unsafe):
            parts = [statistic[unsafe] for statistic in statistics]
            out[unsafe] = self._by_logarithms(parts, row_factors[unsafe], out.dtype)

    def _statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, span: slice
    ) -> tuple[list[Array], Array, Array]:
        """Return the statistics of each kind, the bags' sizes, and factors of the rows."""
        indptr = bags.indptr[span.start : span.stop + 1]
        n = len(indptr) - 1
        ptr = np.zeros(n + 1, dtype=np.intp)
        np.cumsum(-(-np.diff(indptr) // WORDS_PER_STEP) * WORDS_PER_STEP, out=ptr[1:])
        words, amounts, largest = np.empty(ptr[-1], np.intp), np.empty(ptr[-1]), np.empty(n)
        pad_bags(indptr, bags.indices, bags.data, ptr, words, amounts, largest)
        statistics, sizes = self.gradients.statistics(
            (ptr, words, amounts), responsibilities, self.kinds
        )
        row_factors = largest  # as counts are relative to the bag's largest
        if self.normalization == "fisher":  # the information of a bag is that of its vectors
            row_factors = np.sqrt(largest) / np.sqrt(np.where(sizes > 0, sizes, 1.0))
        return [statistics[kind] for kind in self.kinds], sizes, row_factors

    def _by_logarithms(self, parts: list[Array], row_factors: Array, dtype: DType) -> Array:
        """Return rows of features without overflow, at most the largest float."""
        statistics = np.hstack([statistic.reshape(len(row_factors), -1) for statistic in parts])
        factors = np.hstack([factor.ravel() for factor in self.factors])
        with np.errstate(divide="ignore"):
            logs = np.log(np.minimum(np.abs(statistics), _MAX_FLOAT)) + np.log(factors)
        if self.norm is None:
            logs += np.log(row_factors)[:, None]
        logs *= self.power
        if self.norm == "l2":
            highest = logs.max(axis=1, keepdims=True)
            logs -= np.where(np.isneginf(highest), 0.0, highest)
        features = np.exp(np.minimum(logs, np.log(float(np.finfo(dtype).max))))
        if self.norm == "l2":  # the largest is one, or all are zero
            features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
        return np.copysign(features, statistics)
