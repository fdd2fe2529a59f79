"""Several starts of one fit, and the best of them."""

from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Attributes
from ..._warnings import warn
from ..contracts.model_parts import Prior
from ..contracts.statistics import Params
from ..data.base import RowSource
from ..weights.modified_dirichlet import ModifiedDirichlet
from .checkpoint import Checkpoint, StartState
from .loop import run_em
from .mixture_model import MixtureResult
from .progress import Progress
from .spec import MixtureSpec

_FIRST_START = StartState()


@dataclass(frozen=True)
class MultiStart:
    """Runs EM from every start of a fit."""

    rows: RowSource
    progress: Progress
    checkpoint: Checkpoint
    max_iter: int  # of a run
    tol: float  # change of the lower bound at which a run stops
    flat_start: bool  # whether a run under a flat prior comes before one that takes weight away
    keep_path: bool = False  # whether results keep the parameters of every iteration

    def best(
        self, spec: MixtureSpec, rng: np.random.RandomState
    ) -> tuple[MixtureSpec, MixtureResult]:
        """Return the mixture with the largest bound, the first of equals."""
        assert spec.start is not None
        state = self.checkpoint.start_state(spec, rng) or StartState(0, True, rng)
        for i in range(state.index, spec.start.n_starts):
            state = replace(state, index=i, flat=state.flat or i > state.index)
            reached = self.checkpoint.reached(spec, state)
            if reached is None:
                started, params = self._start(spec, state)
            else:
                started, params = reached[0], reached[1].params
            if state.flat:
                params = self._after_flat_start(started, params, state)
            result = self.run(started, params, replace(state, flat=False))
            if state.best is None or result.bounds[-1] > state.best[1].bounds[-1]:
                state = replace(state, best=(started.family, result))
        assert state.best is not None
        family, result = state.best
        return replace(spec, family=family), result

    def _start(self, spec: MixtureSpec, state: StartState) -> tuple[MixtureSpec, Params]:
        """Return the mixture and the parameters that a start begins with."""
        start = spec.start
        assert start is not None
        assert state.rng is not None
        title, detail, max_iter = start.describe(self.rows.n_rows)
        watch, finish = self.progress.task(
            f"{title} {state.index}",
            max_iter=max_iter,
            detail=detail,
            at_once=max_iter is None,
        )
        family, params = start.first(spec.family, self.rows, state.rng, watch)
        finish()
        if state.best is not None:  # one prior for all starts, so that bounds can be compared
            family = state.best[0].continued_by(family)
        return replace(spec, family=family), spec.constraint.apply(family, params, start)

    def _after_flat_start(self, spec: MixtureSpec, params: Params, state: StartState) -> Params:
        """Run EM under a flat prior first if the prior would take weight away."""
        if np.all(spec.weight_prior.alpha >= 1) or self.max_iter == 0:
            return params
        if self.flat_start:
            flat = replace(spec, weight_prior=ModifiedDirichlet())
            params = self.run(flat, params, state).params
        _warn_if_prior_outweighs(spec.weight_prior, params, self.rows.total_weight)
        return params

    def run(
        self, spec: MixtureSpec, params: Params, state: StartState = _FIRST_START
    ) -> MixtureResult:
        """Return what EM reaches from parameters, with weights raised to the prior's floor."""
        params = replace(params, weights=spec.weight_prior.lift(params.weights))
        reached = self.checkpoint.reached(spec, state)

        def attributes(params: Params) -> Attributes:
            return {"_fitted": spec.fitted(params)[0]}

        title = f"{'Flat start' if state.flat else 'Start'} {state.index}"
        watch, finish = self.progress.task(
            title,
            attributes,
            self.max_iter,
            detail=f"{self.rows.n_rows} rows, {params.n_components} components",
            tol=self.tol,
            at_once=reached is not None,
        )
        result = run_em(
            spec.model,
            self.rows,
            params if reached is None else reached[1],
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=watch,
            keep=self.checkpoint.keeper(spec.family, state),
            keep_path=self.keep_path,
        )
        finish(None if state.flat else result)
        return result


def _warn_if_prior_outweighs(prior: Prior, params: Params, total_weight: float) -> None:
    """Warn of a prior that leaves one component, or the background alone, at once."""
    K, n_weights = params.n_components, len(params.weights)
    counts = params.component_weights * total_weight
    alpha = np.broadcast_to(prior.alpha, params.weights.shape)[:K]
    if n_weights == 1 or np.any(counts + alpha > 1):
        return
    left, more = ("one component", "more than one")
    if n_weights > K:
        left, more = ("the background alone", "any component")
    given = alpha[0] if (alpha == alpha[0]).all() else alpha
    warn(
        f"weight_concentration_prior={given} outweighs the data and leaves {left}: the largest "
        f"component holds {counts.max():.6g} rows. A number above {1 - counts.max():.6g} leaves "
        f"{more}.",
        UserWarning,
    )
