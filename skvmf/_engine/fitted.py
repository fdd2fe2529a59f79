"""What a fitted mixture says of rows: shares, labels and densities."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .chunks import Array, Chunk
from .contracts import Posterior, RowSource
from .mixture import LEAST, MixtureModel
from .posterior import FenchelYoungPosterior
from .priors import ModifiedDirichlet
from .shares import Scores, Shares, dense_resp
from .statistics import Params
from .updates import FixedWeights

_DENSITY = FenchelYoungPosterior()  # its values are the log-densities of the mixture


@dataclass(frozen=True)
class FittedMixture:
    """A family and its parameters; everything that estimators predict is asked here."""

    family: Any  # a Family, and its estimator knows which
    params: Params

    @property
    def weights(self) -> Array:
        """The weights, (K,)."""
        return self.params.weights

    def share(
        self, rows: RowSource, posterior: Posterior, write: Callable[[Shares, Array, slice], None]
    ) -> None:
        """Call ``write(shares, values, span)`` with the shares and values of each block.

        Shares of a row add up to one, whatever its weight.
        """

        def work(chunk: Chunk, span: slice) -> None:
            ones = np.ones(len(chunk.weights))
            shares, _, values = posterior.assign(self._scores(chunk), self.weights, ones)
            write(shares, values, span)

        rows.for_each(work)

    def share_densely(
        self, rows: RowSource, posterior: Posterior, write: Callable[[Array, slice], None]
    ) -> None:
        """Call ``write(resp, span)`` with the shares (n, K) of each block, in the rows' dtype.

        Rows without a direction, and those so far that no component has a density there, are
        shared out by weight.
        """

        def give(shares: Shares, values: Array, span: slice) -> None:
            resp = dense_resp(shares, len(self.weights)).astype(rows.dtype, copy=False)
            resp[~rows.has_direction[span] | np.isneginf(values)] = self.weights
            write(resp, span)

        self.share(rows, posterior, give)

    def labels(self, rows: RowSource, posterior: Posterior) -> Array:
        """Return the component with the largest share of each row, (n,); ties go to the first.

        What no component has a say about goes to the one with the largest weight.
        """
        labels = np.empty(rows.n_rows, dtype=np.int64)

        def write(chunk: Chunk, span: slice) -> None:
            labels[span], _ = self._label(self._scores(chunk), rows.has_direction[span], posterior)

        rows.for_each(write)
        return labels

    def labels_and_shares(self, rows: RowSource, posterior: Posterior) -> tuple[Array, Array]:
        """Return the labels of rows, and the share that each one's component has in it, (n,)."""
        labels = np.empty(rows.n_rows, dtype=np.int64)
        largest = np.empty(rows.n_rows, dtype=rows.dtype)

        def write(chunk: Chunk, span: slice) -> None:
            scores, ones = self._scores(chunk), np.ones(len(chunk.weights))
            own, lost = self._label(scores, rows.has_direction[span], posterior)
            shares, *_ = posterior.assign(scores, self.weights, ones)
            resp = dense_resp(shares, len(self.weights))
            labels[span], largest[span] = own, resp[np.arange(len(own)), own]
            largest[span][lost] = self.weights.max()

        rows.for_each(write)
        return labels, largest

    def _label(
        self, scores: Scores, has_direction: Array, posterior: Posterior
    ) -> tuple[Array, Array]:
        """Return labels, and of which rows no component has a say; scores stay as they are."""
        ones = np.ones(len(has_direction))
        labels, _, values = posterior.label(scores, self.weights, ones)
        lost: Array = ~has_direction | np.isneginf(values)
        labels[lost] = np.argmax(self.weights)
        return labels, lost

    def log_densities(self, rows: RowSource) -> Array:
        """Return the log-density of the mixture at each row, (n,) and finite."""
        log_densities = np.empty(rows.n_rows, dtype=rows.dtype)
        least = max(LEAST, float(np.finfo(rows.dtype).min))

        def write(shares: Shares, values: Array, span: slice) -> None:
            log_densities[span] = np.maximum(values, least)

        self.share(rows, _DENSITY, write)
        log_densities[~rows.has_direction] = self.family.blank_log_density
        return log_densities

    def log_likelihood(self, rows: RowSource) -> tuple[float, float]:
        """Return the weighted sum of log-densities, and of the weights of rows that count."""
        model = MixtureModel(self.family, _DENSITY, ModifiedDirichlet(), FixedWeights())
        with np.errstate(over="ignore"):
            total, weight = rows.fold(partial(model.evaluate, self.params))
        return float(total), float(weight)

    def _scores(self, chunk: Chunk) -> Scores:
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores: Scores = self.family.scores(chunk, self.params.components)
        return scores
