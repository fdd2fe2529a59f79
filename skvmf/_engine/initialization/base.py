"""What a start is made of: simple components of a family, how they merge, and plain steps of EM."""

from abc import ABC, abstractmethod
from collections.abc import Callable
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
from ..em.loop import OnIteration, ignore
from ..em.mixture_model import MixtureModel
from ..families.merge_costs import Merging
from ..posteriors.fenchel_young import FenchelYoungPosterior
from ..weights.modified_dirichlet import ModifiedDirichlet
from ..weights.updates import FixedWeights
from .partitions import partition_statistics

TRACE = 1e-3  # of the largest share that components have of a row


class Proposal(ABC):
    """What a family brings to the start: simpler components, and how they merge.

    `family` is that of the components: with few parameters each, so that a few rows will do.
    """

    family: Family

    @abstractmethod
    def at(self, points: Array, like: Any = None) -> Any:
        """Return components at points (M, d), of a size like that of others, or of any."""

    @abstractmethod
    def joined(self, components: Any, others: Any) -> Any:
        """Return components and others."""

    @abstractmethod
    def peaks(self, components: Any) -> Array:
        """Return the largest log-density of each component, (M,)."""

    @abstractmethod
    def merging(self, stats: Statistics, kept: Array, components: Any) -> Merging:
        """Return the parts `kept` of a partition, ready to be merged."""

    @abstractmethod
    def fitted(self, parts: Merging, left: Array) -> Any:
        """Return the components of the parts that are left."""

    @abstractmethod
    def start(
        self,
        rows: RowSource,
        n_components: int,
        rng: np.random.Generator,
        watch: OnIteration = ignore,
        background: float | None = None,
    ) -> "Start":
        """Return what a sample says of so many components, beside a background or alone."""


@dataclass(frozen=True)
class Start:
    """Parameters of a family's components, and their bound on the sample.

    Beside a background, of a log-density that is the same everywhere, the last weight is its.
    """

    family: Family
    params: Params
    bound: float
    background: float | None = None

    def partition(self, family: Family, rows: RowSource) -> tuple[Statistics, Any]:
        """Return what `partition_statistics` does of rows shared out by these components."""
        centres = self.family.centres(self.params.components)
        share = share_by(self.family, self.params, self.background)
        return partition_statistics(family, rows, centres, share)

    def own_rows(self, rows: RowSource) -> RowSource:
        """Return the rows that components have more than a trace of, weighed by what they have.

        All rows, where the background has every one.
        """
        K = len(self.params.weights) - (self.background is not None)
        share = share_by(self.family, self.params, self.background)

        def own_weights(block: Block) -> list[Array]:
            return [as_dense(share(block)[0], K).sum(axis=1)]

        weights = np.concatenate(rows.map_reduce(own_weights))
        kept = np.flatnonzero(weights > TRACE * weights.max())
        return rows.subset(kept, weights[kept], width=4 * K) if len(kept) else rows


def plain_model(family: Family, background: float | None = None) -> MixtureModel:
    """Return a mixture with soft shares and no prior."""
    return MixtureModel(
        family, FenchelYoungPosterior(), ModifiedDirichlet(), FixedWeights(), background=background
    )


def plain_step(
    family: Family, rows: RowSource, params: Params, background: float | None = None
) -> tuple[Params, float]:
    """Return parameters after a step of EM, and the bound of those before."""
    model = plain_model(family, background)
    stats = rows.map_reduce(partial(model.expect, params))
    own = stats.first_components(len(params.weights) - (background is not None))
    components = params.components
    if own.counts.any():  # else the background has every row
        components, _ = family.maximize(own, components)
    after = Params.first(stats.counts / stats.counts.sum(), components)
    return after, model.lower_bound(stats, params)


def share_by(
    family: Family, params: Params, background: float | None = None
) -> Callable[[Block], tuple[Responsibilities, Array]]:
    """Return what shares out a block among components by some parameters."""
    model = plain_model(family, background)
    K = len(params.weights) - (background is not None)

    def share(block: Block) -> tuple[Responsibilities, Array]:
        scores = model.scores(params, block)
        responsibilities, counts, _ = model.posterior.assign(
            scores, params.weights, block.weights, block.scales
        )
        return responsibilities.first_components(K), counts[:K]

    return share
