"""How a row is shared out among the components: the Fenchel-Young posterior."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._kernels.entmax import entmax_rows
from .._kernels.rows import pack_rows
from .._kernels.simplex import argmax_rows, softmax_rows
from .rows import Array, Chunk


@dataclass(frozen=True)
class DenseShares:
    """Weighted and scaled responsibilities, (n, K)."""

    resp: Array

    def denser_than(self, fraction: float) -> bool:
        """Whether more than a fraction of the shares is not zero; one in each row is not."""
        if self.resp.shape[1] * fraction < 1:
            return True
        positive = np.count_nonzero(self.resp != 0)  # of booleans: ten times as fast as of floats
        return bool(positive > fraction * self.resp.size)

    def packed(self) -> "PackedShares":
        """Return the non-zeros of each row."""
        n, K = self.resp.shape
        shares = PackedShares(
            np.empty(n, dtype=np.int32), np.empty((n, K), dtype=np.int32), np.empty_like(self.resp)
        )
        pack_rows(self.resp, shares.sizes, shares.columns, shares.values)
        return shares


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


def dense_resp(shares: Shares, n_components: int) -> Array:
    """Return the shares as an (n, K) array."""
    if isinstance(shares, DenseShares):
        return shares.resp
    resp = np.zeros((len(shares.sizes), n_components))
    np.put_along_axis(resp, shares.columns, shares.values, axis=1)
    return resp


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

    @property
    def tsallis(self) -> bool:
        """Whether shares are alpha-entmax of scores, and the weights enter as powers."""
        return self.alpha > 1 and self.temperature > 0

    def assign(
        self, scores: Array, slopes: Array, bias: Array, weights: Array, chunk: Chunk
    ) -> tuple[Shares, Array, Array]:
        """Turn scores into shares, in place.

        Returns the shares, the weighted counts (K,) and each row's value (n,): the most that
        <q, log p> less the price of q can be.
        """
        if self.temperature == 0:
            labels, counts, values = self.label(scores, slopes, bias, weights, chunk)
            return PackedShares.from_labels(labels, chunk.weights * chunk.scales), counts, values
        counts, values = np.zeros(len(weights)), np.empty(len(scores))
        arguments, shift = self._arguments(scores, slopes, bias, weights, chunk)
        if self.tsallis:
            entmax_rows(*arguments, counts, values, float(self.alpha))
            shift -= self._conjugate(weights)
        else:
            softmax_rows(*arguments, counts, values)
        values += shift
        values *= self.temperature
        return DenseShares(scores), counts, values

    def label(
        self, scores: Array, slopes: Array, bias: Array, weights: Array, chunk: Chunk
    ) -> tuple[Array, Array, Array]:
        """Return the component with the largest share, its weighted counts and its score."""
        labels = np.empty(len(scores), dtype=np.int32)
        counts, values = np.zeros(len(weights)), np.empty(len(scores))
        arguments, shift = self._arguments(scores, slopes, bias, weights, chunk)
        argmax_rows(*arguments, counts, values, labels)
        values += shift
        return labels, counts, values

    def weight_value(self, counts: Array, weights: Array) -> float:
        """Return what of the summed values depends on the weights, for Tsallis shares.

        That is T (<counts, eta> - N Omega*(eta)): the Fenchel-Young loss of eta without the
        part that depends on the shares alone [P2]_ eq. 16.
        """
        alive = weights > 0
        fit = counts[alive] @ self._prior_scores(weights)[alive]
        return float(self.temperature * (fit - counts.sum() * self._conjugate(weights)))

    def _arguments(
        self, scores: Array, slopes: Array, bias: Array, weights: Array, chunk: Chunk
    ) -> tuple[tuple[Array, ...], float]:
        """Return what row kernels take, and by how much they then miss the values."""
        temperature = self.temperature or 1.0
        offsets = self._prior_scores(weights) + bias / temperature
        shift = float(offsets.max())  # float32 offsets keep their differences
        slopes = (slopes / temperature).astype(scores.dtype)
        offsets = (offsets - shift).astype(scores.dtype)
        return (scores, slopes, offsets, chunk.weights, chunk.scales), shift

    def _prior_scores(self, weights: Array) -> Array:
        """Return eta: the weights as scores; -inf for a pruned component."""
        with np.errstate(divide="ignore"):
            log_weights: Array = np.log(weights)
        if not self.tsallis:
            return log_weights if self.temperature == 0 else log_weights / self.temperature
        powers = np.expm1((self.alpha - 1) * log_weights) / (self.alpha - 1)
        return np.where(weights > 0, powers, -np.inf)

    def _conjugate(self, weights: Array) -> float:
        """Return Omega*(eta) = <weights, eta> - Omega(weights), as weights are entmax of eta.

        Omega(weights) is <weights, eta> / alpha where weights sum to one.
        """
        alive = weights[weights > 0]
        return float(alive @ self._prior_scores(alive)) * (self.alpha - 1) / self.alpha
