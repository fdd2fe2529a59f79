"""How responsibilities follow from log-densities: softmax, alpha-entmax, hard."""

from dataclasses import dataclass

import numpy as np

from ..._kernels.simplex import argmax_rows, entmax_rows, log_sum_rows, softmax_rows, work_space
from ..._typing import Array
from ..families.family import Scores
from ..families.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)


@dataclass(frozen=True)
class FenchelYoungPosterior:
    """Softmax, sparse and hard expectation steps as one object.

    With ``alpha = 1``, q is proportional to (pi_k p_k)^(1 / temperature). With ``alpha > 1`` it is
    alpha-entmax(eta + log p / temperature), eta = (pi^(alpha - 1) - 1) / (alpha - 1) (Sklaviadis et
    al., "Fenchel-Young variational learning", eq. 15-17). ``temperature = 0`` is classification EM.

    Parameters
    ----------
    alpha : float, default=1.0
        The exponent of entmax, from 1 (softmax) to 2 (sparsemax).
    temperature : float, default=1.0
        What log-densities are divided by, at least 0.
    """

    alpha: float = 1.0
    temperature: float = 1.0

    @property
    def tsallis(self) -> bool:
        """Whether responsibilities are alpha-entmax of scores, and the weights enter as powers."""
        return self.alpha > 1 and self.temperature > 0

    def assign(
        self, scores: Scores, weights: Array, row_weights: Array, row_scales: Array | None = None
    ) -> tuple[Responsibilities, Array, Array]:
        """Return responsibilities, the weighted counts (K,) and each row's value; uses up scores.

        A value is the most that <q, log p> less the price of responsibilities q can be.
        Responsibilities are multiplied by the row's weight and, if it has one, its scale.
        """
        if self.temperature == 0:
            labels, counts, values = self.label(scores, weights, row_weights)
            factors = row_weights
            if row_scales is not None:
                factors = row_weights * row_scales
            return HardResponsibilities(labels, factors), counts, values
        counts = np.zeros(len(weights))
        values = np.empty(len(scores.unnormalized))
        slopes, offsets, shift = self._arguments(scores, weights)
        if row_scales is None:
            row_scales = np.ones(len(row_weights))
        arguments = scores.unnormalized, slopes, offsets, row_weights, row_scales, counts, values
        if self.tsallis:
            entmax_rows(*arguments, float(self.alpha))
            shift -= self._conjugate(weights)
        else:
            softmax_rows(*arguments, work_space(scores.unnormalized))
        values += shift
        values *= self.temperature
        return DenseResponsibilities(scores.unnormalized), counts, values

    def values(self, scores: Scores, weights: Array) -> Array:
        """Return each row's value alone, (n,), as `assign` does; `scores` may be used up."""
        if self.tsallis or self.temperature == 0:
            return self.assign(scores, weights, np.ones(len(scores.unnormalized)))[2]
        products = scores.unnormalized
        values = np.empty(len(products))
        slopes, offsets, shift = self._arguments(scores, weights)
        log_sum_rows(products, slopes, offsets, values, work_space(products))
        values += shift
        values *= self.temperature
        return values

    def label(
        self, scores: Scores, weights: Array, row_weights: Array
    ) -> tuple[Array, Array, Array]:
        """Return the most responsible component, the weighted counts, and its score."""
        n = len(scores.unnormalized)
        labels = np.empty(n, dtype=np.int32)
        counts = np.zeros(len(weights))
        values = np.empty(n)
        slopes, offsets, shift = self._arguments(scores, weights)
        arguments = scores.unnormalized, slopes, offsets, row_weights, counts, values, labels
        argmax_rows(*arguments, work_space(scores.unnormalized))
        values += shift
        return labels, counts, values

    def largest(self, best: Array, values: Array) -> Array:
        """Return the largest responsibility of each row, from what `label` and `assign` return."""
        if self.temperature == 0:
            return np.ones(len(best))
        return np.exp(np.minimum(best - values / self.temperature, 0))

    def value_of_weights(self, counts: Array, weights: Array) -> float:
        """Return the part of the summed values that depends on the weights, for alpha-entmax.

        That is T (<counts, eta> - N Omega*(eta)), of eq. 16. For softmax and hard responsibilities
        it is sum of counts * log weights, which a prior's mode maximizes together with the prior.
        """
        in_use = weights > 0
        fit = counts[in_use] @ self._prior_scores(weights)[in_use]
        return float(self.temperature * (fit - counts.sum() * self._conjugate(weights)))

    def _arguments(self, scores: Scores, weights: Array) -> tuple[Array, Array, float]:
        """Return slopes and offsets as row kernels take them, and by how much they then miss."""
        temperature = self.temperature or 1.0
        dtype = scores.unnormalized.dtype
        offsets = self._prior_scores(weights) + scores.bias / temperature
        shift = float(offsets.max())  # float32 offsets keep their differences
        if scores.slopes is None:
            slopes = np.full(len(scores.unnormalized), 1 / temperature, dtype)
        else:
            slopes = (scores.slopes / temperature).astype(dtype)
        return slopes, (offsets - shift).astype(dtype), shift

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
        in_use = weights[weights > 0]
        return float(in_use @ self._prior_scores(in_use)) * (self.alpha - 1) / self.alpha


SOFTMAX = FenchelYoungPosterior()  # whose values are the log-densities of a mixture
