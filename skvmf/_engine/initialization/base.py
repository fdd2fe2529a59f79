"""What all stages of a start by merging use: plain steps of EM on a sample, and their result."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Family
from ..contracts.responsibilities import Responsibilities, as_dense
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..data.blocks import Block
from ..em.mixture_model import MixtureModel
from ..posteriors.fenchel_young import FenchelYoungPosterior
from ..weights.modified_dirichlet import ModifiedDirichlet
from ..weights.updates import FixedWeights
from .partitions import Assignment, partition_statistics

MIN_RESPONSIBILITY = 1e-3  # times the largest that the components together have for a row


@dataclass(frozen=True)
class SampleStart:
    """Components found on a sample, and their bound there.

    `background` is the log-density of a background, whose weight is then the last; or None.
    """

    family: Family
    params: Params
    bound: float
    background: float | None = None

    def partition(self, family: Family, rows: RowSource) -> tuple[Statistics, Any]:
        """Return `partition_statistics` of a family for these responsibilities for rows."""
        centres = self.family.centres(self.params.components)
        return partition_statistics(family, rows, centres, self._assignment)

    def rows_of_components(self, rows: RowSource) -> RowSource:
        """Return the rows that are not the background's, weighted by 1 - its responsibility.

        All rows, if it has every one.
        """
        K, assign = self.params.n_components, self._assignment

        def weigh(block: Block) -> list[Array]:
            return [as_dense(assign(block)[0], K).sum(axis=1)]

        weights = np.concatenate(rows.map_reduce(weigh))
        some = np.flatnonzero(weights > MIN_RESPONSIBILITY * weights.max())
        return rows.subset(some, weights[some], width=4 * K) if len(some) else rows

    @property
    def _assignment(self) -> Assignment:
        return assignment(plain_model(self.family, self.background), self.params)


def plain_model(family: Family, background: float | None = None) -> MixtureModel:
    """Return a mixture with a softmax posterior and no prior on the weights."""
    posterior, flat = FenchelYoungPosterior(), ModifiedDirichlet()
    return MixtureModel(family, posterior, flat, FixedWeights(), background=background)


def climb(
    family: Family,
    rows: RowSource,
    params: Params,
    n_steps: int = 1,
    background: float | None = None,
) -> tuple[Params, float]:
    """Return parameters after some steps of EM, and the bound before the last."""
    model, bound = plain_model(family, background), -np.inf
    for _ in range(n_steps):
        stats = rows.map_reduce(partial(model.expect, params))
        bound = model.lower_bound(stats, params)
        components, of_components = params.components, stats.first_components(params.n_components)
        if of_components.counts.any():  # else the background has every row
            components, _ = family.maximize(of_components, components)
        params = Params.first(stats.counts / stats.counts.sum(), components)
    return params, bound


def assignment(model: MixtureModel, params: Params) -> Assignment:
    """Return what gives responsibilities for a block, and counts, without the background's."""
    K = params.n_components

    def assign(block: Block) -> tuple[Responsibilities, Array]:
        responsibilities, counts, _ = model.posterior.assign(
            model.scores(params, block), params.weights, block.weights, block.scales
        )
        return responsibilities.first_components(K), counts[:K]

    return assign
