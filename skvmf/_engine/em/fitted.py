"""Predictions of a fitted mixture: responsibilities, labels and densities."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Posterior
from ..contracts.responsibilities import (
    DenseResponsibilities,
    Responsibilities,
    Scores,
    SparseResponsibilities,
    as_dense,
)
from ..contracts.statistics import Params
from ..data.base import RowSource
from ..data.blocks import Block
from ..families.background import NO_BACKGROUND, Background
from .mixture_model import LEAST, SOFTMAX, MixtureModel


@dataclass(frozen=True)
class FittedMixture:
    """A family and its parameters; everything that estimators predict is asked here.

    With a background the last of `params.weights` is its weight. It has no number and no
    column among the K components: its rows have the label -1.
    """

    family: Any  # a Family, and its estimator knows which
    params: Params
    background: Background = NO_BACKGROUND

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

    def probabilities(self, rows: RowSource, posterior: Posterior) -> Array:
        """Return the responsibilities of the components for each row, (n, K), in the rows' dtype.

        With that of the background, those for a row sum to one for any weight. Those of rows
        without a direction, and of rows so far away that no component has a density there, are
        the weights, or 0 with a background.
        """
        K = self.n_components
        return rows.per_row(
            lambda block: as_dense(self._assigned(block, posterior), K), rows.dtype, K
        )

    def responsibilities(
        self, rows: RowSource, posterior: Posterior
    ) -> list[SparseResponsibilities]:
        """Return what `probabilities` does, block after block and without the zeros."""
        parts = {}

        def pack(block: Block, span: slice) -> None:
            resp = self._assigned(block, posterior)
            if isinstance(resp, DenseResponsibilities):
                resp = DenseResponsibilities(resp.resp.astype(rows.dtype, copy=False))
            parts[span.start] = resp.packed()

        rows.for_each(pack)
        return [parts[start] for start in sorted(parts)]

    def _assigned(self, block: Block, posterior: Posterior) -> Responsibilities:
        scores, ones = self.scores(block), np.ones(len(block.weights))
        resp, _, values = posterior.assign(scores, self.params.weights, ones)
        resp = resp.first_components(self.n_components)
        lost = ~block.has_direction | np.isneginf(values)
        if lost.any():
            resp = DenseResponsibilities(as_dense(resp, self.n_components))
            resp.resp[lost] = self._of_lost_rows
        return resp

    def labels(self, rows: RowSource, posterior: Posterior) -> Array:
        """Return the component most responsible for each row, (n,); ties go to the first.

        A row without a direction or a density goes to the background, or if there is none, to the
        component with the largest weight; -1 is the background.
        """
        return rows.per_row(
            lambda block: self._label(self.scores(block), block.has_direction, posterior)[0],
            np.int64,
        )

    def most_responsible(self, rows: RowSource, posterior: Posterior) -> tuple[Array, Array]:
        """Return the labels of rows, and the responsibilities of those components, (n,).

        That of a row of the background is 0.
        """
        labels = np.empty(rows.n_rows, dtype=np.int64)
        largest = np.empty(rows.n_rows, dtype=rows.dtype)

        def write(block: Block, span: slice) -> None:
            scores, ones = self.scores(block), np.ones(len(block.weights))
            own, lost = self._label(scores, block.has_direction, posterior)
            responsibilities, *_ = posterior.assign(scores, self.params.weights, ones)
            resp = as_dense(responsibilities, len(self.params.weights))
            labels[span], largest[span] = own, resp[np.arange(len(own)), own]
            largest[span][lost] = self._of_lost_rows.max()
            largest[span][own == -1] = 0

        rows.for_each(write)
        return labels, largest

    @property
    def _of_lost_rows(self) -> Array:
        """The responsibilities of the components for a row without a direction or a density."""
        return np.zeros(self.n_components) if len(self.background) else self.weights

    def _label(
        self, scores: Scores, has_direction: Array, posterior: Posterior
    ) -> tuple[Array, Array]:
        """Return labels, and which rows have no direction or density; scores are not used up."""
        ones = np.ones(len(has_direction))
        labels, _, values = posterior.label(scores, self.params.weights, ones)
        lost: Array = ~has_direction | np.isneginf(values)
        labels[lost] = -1 if len(self.background) else np.argmax(self.weights)
        labels[labels == self.n_components] = -1
        return labels, lost

    def log_densities(self, rows: RowSource) -> Array:
        """Return the log-density of the mixture at each row, (n,) and finite."""
        least = max(LEAST, float(np.finfo(rows.dtype).min))
        of_zero_row = self.family.zero_row_log_density

        def log_density(block: Block) -> Array:
            values = SOFTMAX.values(self.scores(block), self.params.weights)
            return np.maximum(np.where(block.has_direction, values, of_zero_row), least)

        return rows.per_row(log_density, rows.dtype)

    def log_likelihood(self, rows: RowSource) -> tuple[float, float]:
        """Return the weighted sum of log-densities, and of the weights of rows that count."""
        model = MixtureModel.plain(self.family, self.background)
        with np.errstate(over="ignore"):
            total, weight = rows.map_reduce(partial(model.evaluate, self.params))
        return float(total), float(weight)

    def scores(self, block: Block) -> Scores:
        """Return the log-densities of a block, the background's last."""
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores: Scores = self.family.scores(block, self.params.components)
        return self.background.add_scores(scores)
