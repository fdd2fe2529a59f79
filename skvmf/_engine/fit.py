"""A fit: EM from every start, first under a flat prior where another would take weight away."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import Array, Attributes, warn
from .em.checkpoint import Checkpoint, Run
from .em.loop import run_em
from .em.mixture import FittedMixture, Mixture, MixtureResult
from .em.progress import Progress
from .em.truncated import TruncatedSteps
from .em.weight_prior import FLAT, ModifiedDirichlet
from .families.params import Params
from .families.statistics import Statistics
from .rows.blocks import has_truncated_steps, warn_if_too_large
from .rows.sources import RowSource
from .search.starts import Start


@dataclass(frozen=True)
class MultiStart:
    """Runs EM from every start of a fit."""

    rows: RowSource
    progress: Progress
    checkpoint: Checkpoint
    max_iter: int  # of a run
    tol: float  # change of the lower bound at which a run stops
    flat_start: bool  # whether a run under a flat prior comes before one that takes weight away
    attributes: Callable[[FittedMixture], Attributes]  # those of an estimator, for callbacks
    columns: tuple[Array, int] | None = None  # numbers of the rows' columns among all, so many

    def best(
        self, mixture: Mixture, start: Start, rng: np.random.RandomState
    ) -> tuple[Mixture, MixtureResult]:
        """Return the mixture with the largest bound, the first of equals, in used columns."""
        if (compact := self.rows.compact(start.means)) is not None:
            rows, columns = compact
            start = start.in_columns(columns)
            narrow = replace(self, rows=rows, columns=(columns, self.rows.n_features))
            mixture, result = narrow.best(mixture, start, rng)
            params, stats = narrow._in_all_columns(mixture.family, result.params, result.stats)
            return mixture, replace(result, params=params, stats=stats)
        # Numbers for each component and column: about twenty in use while it runs, four of them for
        # seeds and statistics each; afterwards five.
        K, d = start.n_components, mixture.family.dim
        warn_if_too_large(
            8 * K * max(20 * self.rows.n_features, 5 * d),
            f"{K} components in {d} columns take",
            "Hash words to fewer columns, or reduce them with TruncatedSVD, or use fewer "
            "components.",
        )
        self.checkpoint.begin(rng)
        best: tuple[Mixture, MixtureResult] | None = None
        for i in range(start.n_starts):
            reached = [self.checkpoint.reached(mixture, (i, past)) for past in (False, True)]
            state = reached[0] or reached[1]
            if state is None or start.n_starts > 1:
                begun, params = self._begin(mixture, start, i, rng, best)
            if state is not None:
                begun, params = state[0], state[1].params
            if reached[1] is None:
                params = self._after_flat_start(begun, params, i)
            result = self.run(begun, params, (i, True))
            if best is None or result.bounds[-1] > best[1].bounds[-1]:
                best = begun, result
        assert best is not None
        return best

    def _begin(
        self,
        mixture: Mixture,
        start: Start,
        i: int,
        rng: np.random.RandomState,
        best: tuple[Mixture, MixtureResult] | None,
    ) -> tuple[Mixture, Params]:
        """Return the mixture and the parameters that a start begins with."""
        title, detail, max_iter = start.describe(self.rows.n_rows)
        watch, finish = self.progress.task(
            f"{title} {i}", max_iter=max_iter, detail=detail, at_once=max_iter is None
        )
        family, params = start.first(mixture, self.rows, rng, watch)
        finish()
        if best is not None:  # one prior for all starts, so that bounds can be compared
            family = best[0].family.continued_by(family)
        params = mixture.constraint.apply(family, params, start.weights, start.shapes)
        return replace(mixture, family=family), params

    def _after_flat_start(self, mixture: Mixture, params: Params, i: int) -> Params:
        """Run EM under a flat prior first if the prior would take weight away."""
        if np.all(mixture.weight_prior.alpha >= 1) or self.max_iter == 0:
            return params
        if self.flat_start:
            flat = replace(mixture, weight_prior=FLAT)
            params = self.run(flat, params, (i, False)).params
        _warn_if_prior_outweighs(mixture.weight_prior, params, self.rows.total_weight)
        return params

    def run(self, mixture: Mixture, params: Params, run: Run = (0, True)) -> MixtureResult:
        """Return what EM reaches from parameters; `run` is a start, and if past the flat start."""
        params = replace(params, weights=mixture.weight_prior.clip(params.weights))
        reached, (i, past_flat) = self.checkpoint.reached(mixture, run), run

        def attributes(params: Params) -> Attributes:
            params, _ = self._in_all_columns(mixture.family, params)
            return self.attributes(mixture.fitted(params)[0])

        watch, finish = self.progress.task(
            f"{'Start' if past_flat else 'Flat start'} {i}",
            attributes,
            self.max_iter,
            detail=f"{self.rows.n_rows} rows, {params.n_components} components",
            tol=self.tol,
            at_once=reached is not None,
        )
        model: Any = mixture
        K, note = params.n_components, self.progress.note
        if has_truncated_steps(self.rows.n_rows, K) and TruncatedSteps.possible(
            mixture, self.rows, K
        ):
            model = TruncatedSteps(mixture, self.rows, K, self.tol, note=note)
        result = run_em(
            model,
            self.rows,
            params if reached is None else reached[1],
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=watch,
            keep=self.checkpoint.keeper(mixture, run),
        )
        finish(result if past_flat else None)
        return replace(result, of_rows=getattr(model, "of_rows", None))

    def _in_all_columns(
        self, family: Any, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and statistics of all columns."""
        if self.columns is None:
            return params, stats
        components, stats = family.in_all_columns(params.components, stats, *self.columns)
        return replace(params, components=components), stats


def _warn_if_prior_outweighs(prior: ModifiedDirichlet, params: Params, total_weight: float) -> None:
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
