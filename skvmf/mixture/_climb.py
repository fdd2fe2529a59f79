"""The starts of one fit, and the best of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._engine.contracts.model_parts import Family
from .._engine.contracts.statistics import Params
from .._engine.data.base import RowSource
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult, run_em
from .._engine.em.progress import Progress
from .._engine.families.background import Background
from .._engine.initialization.kmeans import KMEANS_MAX_ITER
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from .._warnings import warn
from ._checkpoint import Checkpoint, StartState
from ._initialization import Initialization


class MultiStart:
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
    checkpoint : Checkpoint
        From where the fit goes on, and what is told how far it is.
    """

    def __init__(
        self,
        estimator: Any,
        rows: RowSource,
        prior: ModifiedDirichlet,
        progress: Progress,
        background: Background | None,
        checkpoint: Checkpoint,
    ) -> None:
        self._estimator = estimator
        self._rows = rows
        self._prior = prior
        self._progress = progress
        self._background = background
        self._checkpoint = checkpoint

    def best(self, given: Initialization, family: Family) -> tuple[FittedMixture, EMResult]:
        """Return the fit with the largest bound, the first of equals."""
        rng = check_random_state(self._estimator.random_state)
        place = self._checkpoint.place(rng) or StartState(0, True, rng)
        for i in range(place.index, given.n_starts):
            place = replace(place, index=i, flat=place.flat or i > place.index)
            reached = self._checkpoint.reached(place)
            if reached is None:
                own, params = self._start(given, family, place)
            else:
                own, params = reached[0], reached[1].params
            if place.flat:
                params = self._after_flat_start(own, params, place)
            result = self._climbed(own, params, replace(place, flat=False))
            if place.best is None or result.bounds[-1] > place.best[1].bounds[-1]:
                place = replace(place, best=(own, result))
        assert place.best is not None
        own, result = place.best
        return self._fitted(own, result.params), result

    def from_params(self, family: Family, params: Params) -> tuple[FittedMixture, EMResult]:
        """Return the fit that EM reaches from some parameters."""
        result = self._climbed(family, params, StartState())
        return self._fitted(family, result.params), result

    def _start(
        self, given: Initialization, family: Family, place: StartState
    ) -> tuple[Family, Params]:
        """Return what a start begins with."""
        title = "Merging" if given.partition == "merging" else "k-means"
        watch, finish = self._progress.task(
            f"{title} {place.index}", max_iter=KMEANS_MAX_ITER, at_once=given.merges
        )
        assert place.rng is not None
        own, params = given.first(family, self._rows, place.rng, watch)
        finish()
        if place.best is not None:  # one anchor for all starts, so that bounds can be compared
            own = place.best[0].refreshed(own)
        return own, self._estimator._constrained(given, own, params)

    def _climbed(self, family: Family, params: Params, place: StartState) -> EMResult:
        """Return what EM reaches from parameters lifted to the floor of the prior."""
        params = replace(params, weights=self._prior.lift(params.weights))
        return self._run(family, params, self._prior, f"Start {place.index}", place)

    def _after_flat_start(self, family: Family, params: Params, place: StartState) -> Params:
        """Run EM under a flat prior first, where the prior would take weight away."""
        estimator, prior = self._estimator, self._prior
        if np.all(prior.alpha >= 1) or estimator.max_iter == 0:
            return params
        if estimator.flat_start:
            flat, title = ModifiedDirichlet(), f"Flat start {place.index}"
            params = self._run(family, params, flat, title, place).params
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
        self,
        family: Family,
        params: Params,
        prior: ModifiedDirichlet,
        title: str,
        place: StartState,
    ) -> EMResult:
        estimator = self._estimator
        reached = self._checkpoint.reached(place)

        def attributes(params: Params) -> dict[str, Any]:
            return {"_fitted": self._fitted(family, params)}

        watch, finish = self._progress.task(title, attributes, at_once=reached is not None)
        background = None if self._background is None else self._background.log_density
        result = run_em(
            replace(estimator._model(family, prior), background=background),
            self._rows,
            params if reached is None else reached[1],
            max_iter=estimator.max_iter,
            tol=estimator.tol,
            on_iteration=watch,
            keep=self._checkpoint.keeper(family, place),
        )
        finish(result if title.startswith("Start") else None)
        return result

    def _fitted(self, family: Family, params: Params) -> FittedMixture:
        """Return a fit as it is published."""
        fitted: FittedMixture = self._estimator._finished(
            FittedMixture(family, params, self._background)
        )
        return fitted
