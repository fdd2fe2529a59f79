"""The starts of one fit, and the best of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._engine.background import Background
from .._engine.contracts import Family, RowSource
from .._engine.em import EMResult, run_em
from .._engine.fitted import FittedMixture
from .._engine.initialization import KMEANS_MAX_ITER
from .._engine.priors import ModifiedDirichlet
from .._engine.progress import Progress
from .._engine.statistics import Params
from .._warnings import warn
from ._initialization import Initialization


class Climb:
    """Runs the loop from every start of a fit.

    Parameters
    ----------
    estimator : BaseMixture
        Its parameters say how.
    rows : RowSource
        The data.
    prior : ModifiedDirichlet
        The prior on the weights.
    progress : Progress
        What is told of every stage.
    background : Background or None
        What rows may belong to beside the components.
    """

    def __init__(
        self,
        estimator: Any,
        rows: RowSource,
        prior: ModifiedDirichlet,
        progress: Progress,
        background: Background | None = None,
    ) -> None:
        self._estimator = estimator
        self._rows = rows
        self._prior = prior
        self._progress = progress
        self._background = background

    def best(self, given: Initialization, family: Family) -> tuple[FittedMixture, EMResult]:
        """Return the fit with the largest bound, the first of equals."""
        rng = check_random_state(self._estimator.random_state)
        best: tuple[FittedMixture, EMResult] | None = None
        for i in range(given.n_starts):
            title = "Merging" if given.partition == "merging" else "k-means"
            watch, finish = self._progress.task(
                f"{title} {i}", max_iter=KMEANS_MAX_ITER, at_once=given.merges
            )
            own, params = given.first(family, self._rows, rng, watch)
            finish()
            if best is not None:  # one anchor for all starts, so that bounds can be compared
                own = best[0].family.refreshed(own)
            params = self._estimator._adjusted(given, own, params)
            params = self._after_flat_start(own, params, i)
            fitted, result = self.from_params(own, params, i)
            if best is None or result.bounds[-1] > best[1].bounds[-1]:
                best = fitted, result
        assert best is not None
        return best

    def from_params(
        self, family: Family, params: Params, i: int = 0
    ) -> tuple[FittedMixture, EMResult]:
        """Return the fit that EM reaches from some parameters."""
        params = replace(params, weights=self._prior.lift(params.weights))
        result = self._run(family, params, self._prior, f"Start {i}")
        return self._fitted(family, result.params), result

    def _after_flat_start(self, family: Family, params: Params, i: int) -> Params:
        """Run EM under a flat prior first, where the prior would take weight away."""
        estimator, prior = self._estimator, self._prior
        if np.all(prior.alpha >= 1) or estimator.max_iter == 0:
            return params
        if estimator.flat_start:
            params = self._run(family, params, ModifiedDirichlet(), f"Flat start {i}").params
        K = estimator.n_components
        counts = params.weights[:K] * self._rows.total_weight
        alpha = np.broadcast_to(prior.alpha, params.weights.shape)[:K]
        alone = self._background is not None
        if (K > 1 or alone) and np.all(counts + alpha <= 1):
            left, more = ("one component", "more than one")
            if alone:
                left, more = ("the background alone", "any component")
            warn(
                f"weight_concentration_prior={estimator._prior_parameter()} outweighs the data "
                f"at once and leaves {left}: the largest holds {counts.max():.6g} rows, "
                f"and only above {1 - counts.max():.6g} does the prior leave {more}.",
                UserWarning,
            )
        return params

    def _run(
        self, family: Family, params: Params, prior: ModifiedDirichlet, title: str
    ) -> EMResult:
        estimator = self._estimator

        def attributes(params: Params) -> dict[str, Any]:
            return {"_fitted": self._fitted(family, params)}

        watch, finish = self._progress.task(title, attributes)
        background = None if self._background is None else self._background.log_density
        result = run_em(
            replace(estimator._model(family, prior), background=background),
            self._rows,
            params,
            max_iter=estimator.max_iter,
            tol=estimator.tol,
            on_iteration=watch,
        )
        finish(result if title.startswith("Start") else None)
        return result

    def _fitted(self, family: Family, params: Params) -> FittedMixture:
        """Return a fit as it is published."""
        fitted: FittedMixture = self._estimator._finished(
            FittedMixture(family, params, self._background)
        )
        return fitted
