"""How a row is shared out among the components: the Fenchel-Young posterior."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._kernels.simplex import argmax_rows, softmax_rows
from .rows import Array, Chunk


@dataclass(frozen=True)
class DenseShares:
    """Weighted and scaled responsibilities, (n, K)."""

    resp: Array


@dataclass(frozen=True)
class PackedShares:
    """Their non-zeros: in row n the first ``sizes[n]`` of `columns` and `values`, (n, m)."""

    sizes: Array
    columns: Array
    values: Array

    @classmethod
    def from_labels(cls, labels: Array, factors: Array) -> "PackedShares":
        """Give each row to one component."""
        return cls(
            np.ones(len(labels), dtype=np.int32),
            labels[:, None],
            np.ascontiguousarray(factors)[:, None],
        )


Shares: TypeAlias = DenseShares | PackedShares


@dataclass(frozen=True)
class FenchelYoungPosterior:
    """Softmax, sparse and hard expectation steps as one object.

    With ``alpha = 1``, q is proportional to (pi_k p_k)^(1 / temperature). With ``alpha > 1`` it
    is alpha-entmax(eta + log p / temperature), eta = (pi^(alpha - 1) - 1) / (alpha - 1)
    [P2]_ eq. 15-17. ``temperature = 0`` is classification EM for every alpha.

    References
    ----------
    .. [P2] Sklaviadis et al., "Fenchel-Young variational learning".
    """

    alpha: float = 1.0
    temperature: float = 1.0

    def assign(
        self, scores: Array, slopes: Array, bias: Array, weights: Array, chunk: Chunk
    ) -> tuple[Shares, Array, Array]:
        """Turn scores into shares, in place.

        Returns the shares, the weighted counts (K,) and each row's value (n,): the most that
        <q, log p> minus the price of q can be.
        """
        temperature = self.temperature or 1.0
        with np.errstate(divide="ignore"):  # a pruned component has log weight -inf
            offsets = (np.log(weights) + bias) / temperature
        shift = offsets.max()  # so that float32 offsets keep their differences
        counts = np.zeros(len(weights))
        values = np.empty(len(scores))
        arguments = (
            scores,
            (slopes / temperature).astype(scores.dtype),
            (offsets - shift).astype(scores.dtype),
            chunk.weights,
            chunk.scales,
            counts,
            values,
        )
        if self.temperature == 0:
            labels = np.empty(len(scores), dtype=np.int32)
            argmax_rows(*arguments, labels)
            shares: Shares = PackedShares.from_labels(labels, chunk.weights * chunk.scales)
        else:
            softmax_rows(*arguments)
            shares = DenseShares(scores)
        values += shift
        values *= temperature
        return shares, counts, values
