"""What a fitted mixture says of rows: shares, labels and densities."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Posterior
from ..contracts.responsibilities import Responsibilities, Scores, as_dense
from ..contracts.statistics import Params
from ..data.base import RowSource
from ..data.blocks import Block
from ..families.background import FIRST_SHARE, Background, with_share
from ..posteriors.fenchel_young import FenchelYoungPosterior
from ..weights.modified_dirichlet import ModifiedDirichlet
from ..weights.updates import FixedWeights
from .mixture_model import LEAST, MixtureModel

_DENSITY = FenchelYoungPosterior()  # its values are the log-densities of the mixture


@dataclass(frozen=True)
class FittedMixture:
    """A family and its parameters; everything that estimators predict is asked here.

    With a background the last of `params.weights` is its weight. It has no number and no
    column among the K components: its rows have the label -1.
    """

    family: Any  # a Family, and its estimator knows which
    params: Params
    background: Background | None = None

    @property
    def n_components(self) -> int:
        """The number of components, K."""
        return self.params.n_components

    @property
    def weights(self) -> Array:
        """The weights of the components, (K,)."""
        return self.params.component_weights

    @property
    def background_weight(self) -> float:
        """The weight of the background."""
        return self.params.background_weight

    def n_parameters(self, *, free_weights: bool) -> int:
        """Return the number of free parameters of the active components."""
        n_weights = max(int(np.count_nonzero(self.params.weights)) - 1, 0) if free_weights else 0
        n_parameters: int = self.family.n_parameters(int(np.count_nonzero(self.weights)))
        return n_parameters + n_weights

    def weights_with(self, background: bool) -> Array:
        """Return the weights with that of a background, or without, for a fit that goes on."""
        if background == (self.background is not None):
            return self.params.weights
        if background:
            return with_share(self.weights, FIRST_SHARE)
        alone = self.weights if self.weights.any() else np.ones(self.n_components)
        weights: Array = alone / alone.sum()
        return weights

    def share(
        self,
        rows: RowSource,
        posterior: Posterior,
        write: Callable[[Responsibilities, Array, Block, slice], None],
    ) -> None:
        """Call ``write(shares, values, chunk, span)`` with the shares and values of each block.

        Shares of a row, and what the background has of it, add up to one, whatever its weight.
        """

        def work(block: Block, span: slice) -> None:
            ones = np.ones(len(block.weights))
            responsibilities, _, values = posterior.assign(
                self.scores(block), self.params.weights, ones
            )
            write(responsibilities.first_components(self.n_components), values, block, span)

        rows.for_each(work)

    def share_densely(
        self, rows: RowSource, posterior: Posterior, write: Callable[[Array, slice], None]
    ) -> None:
        """Call ``write(resp, span)`` with the shares (n, K) of each block, in the rows' dtype.

        Rows without a direction, and those so far that no component has a density there, are
        shared out by weight.
        """

        def give(
            responsibilities: Responsibilities, values: Array, block: Block, span: slice
        ) -> None:
            resp = as_dense(responsibilities, self.n_components).astype(rows.dtype, copy=False)
            resp[~block.has_direction | np.isneginf(values)] = self.weights
            write(resp, span)

        self.share(rows, posterior, give)

    def labels(self, rows: RowSource, posterior: Posterior) -> Array:
        """Return the component with the largest share of each row, (n,); ties go to the first.

        What no component has a say about goes to the one with the largest weight; -1 is the
        background.
        """
        labels = np.empty(rows.n_rows, dtype=np.int64)

        def write(block: Block, span: slice) -> None:
            labels[span], _ = self._label(self.scores(block), block.has_direction, posterior)

        rows.for_each(write)
        return labels

    def labels_and_shares(self, rows: RowSource, posterior: Posterior) -> tuple[Array, Array]:
        """Return the labels of rows, and the share that each one's component has in it, (n,).

        That is 0 for a row of the background.
        """
        labels = np.empty(rows.n_rows, dtype=np.int64)
        largest = np.empty(rows.n_rows, dtype=rows.dtype)

        def write(block: Block, span: slice) -> None:
            scores, ones = self.scores(block), np.ones(len(block.weights))
            own, lost = self._label(scores, block.has_direction, posterior)
            responsibilities, *_ = posterior.assign(scores, self.params.weights, ones)
            resp = as_dense(responsibilities, len(self.params.weights))
            labels[span], largest[span] = own, resp[np.arange(len(own)), own]
            largest[span][lost] = self.weights.max()
            largest[span][own == -1] = 0

        rows.for_each(write)
        return labels, largest

    def _label(
        self, scores: Scores, has_direction: Array, posterior: Posterior
    ) -> tuple[Array, Array]:
        """Return labels, and of which rows no component has a say; scores stay as they are."""
        ones = np.ones(len(has_direction))
        labels, _, values = posterior.label(scores, self.params.weights, ones)
        lost: Array = ~has_direction | np.isneginf(values)
        labels[lost] = np.argmax(self.params.weights)
        labels[labels == self.n_components] = -1
        return labels, lost

    def log_densities(self, rows: RowSource) -> Array:
        """Return the log-density of the mixture at each row, (n,) and finite."""
        log_densities = np.empty(rows.n_rows, dtype=rows.dtype)
        least = max(LEAST, float(np.finfo(rows.dtype).min))

        def write(block: Block, span: slice) -> None:
            values = _DENSITY.values(self.scores(block), self.params.weights)
            values = np.where(block.has_direction, values, self.family.zero_row_log_density)
            log_densities[span] = np.maximum(values, least)

        rows.for_each(write)
        return log_densities

    def log_likelihood(self, rows: RowSource) -> tuple[float, float]:
        """Return the weighted sum of log-densities, and of the weights of rows that count."""
        model = MixtureModel(
            self.family,
            _DENSITY,
            ModifiedDirichlet(),
            FixedWeights(),
            background=self.background_log_density,
        )
        with np.errstate(over="ignore"):
            total, weight = rows.map_reduce(partial(model.evaluate, self.params))
        return float(total), float(weight)

    def scores(self, block: Block) -> Scores:
        """Return the log-densities of a block, the background's last."""
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores: Scores = self.family.scores(block, self.params.components)
        log_density = self.background_log_density
        return scores if log_density is None else scores.with_component(log_density)

    @property
    def background_log_density(self) -> float | None:
        """The log-density of the background, at every row; None without one."""
        return None if self.background is None else self.background.log_density
