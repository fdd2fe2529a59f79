"""A mixture model: the answers put together, and when a component leaves."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import (
    AnyFamily,
    Family,
    Posterior,
    Prior,
    Update,
    WeightUpdate,
    require,
)
from ..contracts.responsibilities import Scores
from ..contracts.statistics import Params, Statistics
from ..data.blocks import Block
from ..families.background import NO_BACKGROUND, Background
from ..posteriors.fenchel_young import FenchelYoungPosterior
from ..weights.modified_dirichlet import ModifiedDirichlet
from ..weights.updates import FixedWeights
from .loop import EMResult

MixtureResult: TypeAlias = EMResult[Params, Statistics]

SOFTMAX = FenchelYoungPosterior()  # whose values are the log-densities of a mixture
_LARGEST = float(np.finfo(np.float64).max)
_RESTS = 1 + 1e-9  # times the floor, up to which a weight is on it
LEAST = -1e270  # log-density below which rows are all as unlikely; sums of it are finite


@dataclass(frozen=True)
class MixtureModel:
    """The parts of a mixture; the loop increases its lower bound."""

    family: AnyFamily
    posterior: Posterior
    weight_prior: Prior
    weight_update: WeightUpdate
    update: Update = Update()
    background: Background = NO_BACKGROUND

    def __post_init__(self) -> None:
        require(self.family, Family, "family")
        require(self.posterior, Posterior, "posterior")
        require(self.weight_prior, Prior, "weight_prior")
        require(self.weight_update, WeightUpdate, "weight_update")
        require(self.update, Update, "update")

    @classmethod
    def plain(
        cls,
        family: AnyFamily,
        background: Background = NO_BACKGROUND,
        posterior: Posterior = SOFTMAX,
    ) -> "MixtureModel":
        """Return a mixture with softmax responsibilities and no prior; its weights stay."""
        return cls(family, posterior, ModifiedDirichlet(), FixedWeights(), background=background)

    def scores(self, params: Params, block: Block) -> Scores:
        """Return the log-densities of a block, the background's last."""
        return self.background.add_scores(self.family.scores(block, params.components))

    def expect(self, params: Params, block: Block) -> Statistics:
        """Share out the rows of a block and sum what the maximization needs."""
        scores = self.scores(params, block)
        responsibilities, counts, values = self.posterior.assign(
            scores, params.weights, block.weights, block.scales
        )
        own = responsibilities.first_components(params.n_components)
        moments = self.family.moments(block, own, params.components, scores.cache)
        block.buffers.give("products", scores.products)
        value = _weighted_sum(block.weights, np.maximum(values, LEAST, out=values))
        values[block.weights == 0] = np.inf
        worst = int(np.argmin(values))
        worst_row = block.row(worst)
        block.release()
        return Statistics(
            value=value,
            total=float(block.weights.sum()),
            counts=counts,
            moments=moments,
            origins=self.family.origins(params.components),
            worst_value=float(values[worst]),
            worst_row=worst_row,
            buffers=block.buffers,
        )

    def evaluate(self, params: Params, block: Block) -> Array:
        """Return the sum of the rows' values and of their weights."""
        values = self.posterior.values(self.scores(params, block), params.weights)
        total = _weighted_sum(block.weights, np.maximum(values, LEAST))
        return np.array([total, block.weights.sum()])

    def lower_bound(self, stats: Statistics, params: Params) -> float:
        """Return the penalised value of the parameters per unit of sample weight.

        It is finite, by as much as a prior outweighs the rows.
        """
        log_prior = self.weight_prior.log_density(params.weights)
        log_prior += self.family.log_prior(params.components)
        return min(max((stats.value + log_prior) / stats.total, -_LARGEST), _LARGEST)

    def comparable(self, before: Params, after: Params) -> bool:
        """Whether the step from before to after moved, re-seeded or pruned no component."""
        same_weights = np.array_equal(before.weights > 0, after.weights > 0)
        return same_weights and np.array_equal(before.reseeded, after.reseeded)

    def maximize(self, stats: Statistics, params: Params) -> Params:
        """Return better parameters.

        An empty component is re-seeded once in a fit, at the row of lowest likelihood, then pruned.
        A broken one is pruned, and so is one whose weight stays on the floor of the weight
        prior for two steps while it has fewer rows than a component or the prior asks for,
        unless all weights are on the floor.
        """
        K = params.n_components
        own = stats.first_components(K)
        components, broken = params.components, np.zeros(K, dtype=bool)
        if own.counts.any():  # else the background has every row
            components, broken = self.update(self.family, own, params.components)
        empty = stats.counts <= 10 * np.finfo(np.float64).eps * stats.total
        counts = np.where(empty, 0.0, stats.counts)
        counts[:K][broken] = 0
        reseeded = params.reseeded.copy()
        reseeded[:K] |= broken
        for k in np.flatnonzero(empty[:K] & ~reseeded[:K])[:1]:  # one worst row, one component
            alive = counts[:K] > 0
            components = self.update.reseed(self.family, components, alive, k, stats.worst_row)
            counts[k] = stats.total / len(counts)
            reseeded[k] = True
        weights = self._new_weights(counts, params)
        floor = self.weight_prior.floor * _RESTS
        on_floor = (weights <= floor) & (weights.max() > floor)
        needed = np.maximum(self.family.min_rows, 1 - self.weight_prior.alpha)
        leaves = on_floor & params.on_floor & (stats.counts < needed) & (counts > 0)
        leaves[K:] = False
        if leaves.any():
            counts[leaves] = 0
            weights = self._new_weights(counts, params)
        return Params(weights, components, reseeded | leaves, on_floor)

    def _new_weights(self, counts: Array, params: Params) -> Array:
        return self.weight_update(self.posterior, self.weight_prior, counts, params.weights)


def _weighted_sum(weights: Array, values: Array) -> float:
    """Return weights @ values without the rows of weight 0, whose values may be infinite."""
    if (weights > 0).all():
        return float(weights @ values)
    counted = weights > 0
    return float(weights[counted] @ values[counted])
