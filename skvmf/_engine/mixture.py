"""A mixture model: four answers put together."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .posterior import FenchelYoungPosterior, Shares
from .priors import ModifiedDirichlet
from .rows import Array, Chunk
from .statistics import Params, Statistics
from .updates import ClosedForm, FixedWeights, MapWeights


class Family(Protocol):
    """What a component is: log-densities, moments, and how moments become parameters."""

    @property
    def min_rows(self) -> int:
        """Number of rows below which a component that rests on the floor is pruned."""

    def scores(self, chunk: Chunk, components: Any) -> tuple[Array, Array, Array]:
        """Return (n, K) scores, (n,) slopes, (K,) biases: log p = slopes * scores + bias."""

    def moments(self, chunk: Chunk, shares: Shares, components: Any) -> tuple[Array, ...]:
        """Return additive moments of the shares."""

    def maximize(self, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return the components that maximize the penalised likelihood, and which are broken.

        A broken component (K,) cannot go on; it keeps its parameters and is pruned.
        """

    def reseed(self, components: Any, k: int, row: Array) -> Any:
        """Move component k to a row."""

    def log_prior(self, components: Any) -> float:
        """Return the log prior density of the components' parameters, pruned ones included."""


class Update(Protocol):
    """How statistics move the components."""

    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return better components, and which are broken, as `Family.maximize` does."""

    def reseed(self, family: Any, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row; `alive` (K,) have rows."""


@dataclass(frozen=True)
class MixtureModel:
    """A named choice of answers: what the loop climbs."""

    family: Family
    posterior: FenchelYoungPosterior
    weight_prior: ModifiedDirichlet
    weight_update: MapWeights | FixedWeights
    update: Update = ClosedForm()

    def expect(self, params: Params, chunk: Chunk) -> Statistics:
        """Share out the rows of a block and sum what the maximization needs."""
        scores, slopes, bias = self.family.scores(chunk, params.components)
        shares, counts, values = self.posterior.assign(scores, slopes, bias, params.weights, chunk)
        moments = self.family.moments(chunk, shares, params.components)
        visible = np.where(chunk.weights > 0, values, np.inf)
        worst = int(np.argmin(visible))
        return Statistics(
            value=float(chunk.weights @ values),
            total=float(chunk.weights.sum()),
            counts=counts,
            moments=moments,
            worst_value=float(visible[worst]),
            worst_row=chunk.row(worst),
            spare=chunk.spare,
        )

    def evaluate(self, params: Params, chunk: Chunk) -> Array:
        """Return the sum of the rows' values and of their weights."""
        scores, slopes, bias = self.family.scores(chunk, params.components)
        _, _, values = self.posterior.assign(scores, slopes, bias, params.weights, chunk)
        return np.array([chunk.weights @ values, chunk.weights.sum()])

    def lower_bound(self, stats: Statistics, params: Params) -> float:
        """Return the penalised value of the parameters per unit of sample weight."""
        log_prior = self.weight_prior.log_density(params.weights)
        log_prior += self.family.log_prior(params.components)
        return (stats.value + log_prior) / stats.total

    def comparable(self, before: Params, after: Params) -> bool:
        """Whether the step from before to after moved, re-seeded or pruned no component."""
        same_weights = np.array_equal(before.weights > 0, after.weights > 0)
        return same_weights and np.array_equal(before.reseeded, after.reseeded)

    def maximize(self, stats: Statistics, params: Params) -> Params:
        """Return better parameters.

        An empty component is re-seeded at the least likely row, once in a fit, then pruned.
        A broken one is pruned, and so is one whose weight stays on the floor of the weight
        prior for two steps while it has fewer rows than a component or the prior asks for.
        """
        components, broken = self.update(self.family, stats, params.components)
        empty = stats.counts <= 10 * np.finfo(np.float64).eps * stats.total
        counts = np.where(empty | broken, 0.0, stats.counts)
        reseeded = params.reseeded | broken
        for k in np.flatnonzero(empty & ~reseeded)[:1]:  # one worst row, one component
            components = self.update.reseed(self.family, components, counts > 0, k, stats.worst_row)
            counts[k] = stats.total / len(counts)
            reseeded[k] = True
        weights = self._new_weights(counts, params)
        resting = weights <= self.weight_prior.floor * (1 + 1e-9)
        few = np.maximum(self.family.min_rows, 1 - self.weight_prior.alpha)
        lost = resting & params.resting & (stats.counts < few) & (counts > 0)
        if lost.any():
            counts[lost] = 0
            weights = self._new_weights(counts, params)
        return Params(weights, components, reseeded | lost, resting)

    def _new_weights(self, counts: Array, params: Params) -> Array:
        return self.weight_update(self.posterior, self.weight_prior, counts, params.weights)
