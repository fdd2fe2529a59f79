"""A fit: EM from every start, first under a flat prior where another would take weight away."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._typing import Array, Attributes, warn
from .em.checkpoint import FLAT_START, FREE, LIMITED, Checkpoint, Run
from .em.limited import RELATIVE_TOL, LimitedSteps
from .em.loop import EMState, run_em
from .em.mixture import Mixture, MixtureResult, Point
from .em.progress import Progress
from .em.truncated import TruncatedSteps, truncated_steps_suit
from .em.weight_prior import FLAT, ModifiedDirichlet
from .families.params import Params
from .families.statistics import Statistics
from .rows.blocks import has_truncated_steps, warn_if_too_large
from .rows.sources import RowSource
from .search.starts import Start

_TITLES = {FLAT_START: "Flat start", FREE: "Start", LIMITED: "Within limits"}


@dataclass(frozen=True, eq=False)
class MultiStart:
    """Runs EM from every start of a fit."""

    rows: RowSource
    progress: Progress
    checkpoint: Checkpoint
    max_iter: int  # of a run
    tol: float  # change of the lower bound at which a run stops
    flat_start: bool  # whether a run under a flat prior comes before one that takes weight away
    attributes: Callable[[Point], Attributes]  # those of an estimator, for callbacks
    columns: tuple[Array, int] | None = None  # numbers of the rows' columns, number of all

    def best(self, mixture: Mixture, start: Start, rng: np.random.Generator) -> MixtureResult:
        """Return what the start with the largest bound reaches, the first of equals."""
        compact = self.rows.compact(start.means)
        if compact is not None:  # as it is at most once: compact rows have no columns to leave out
            rows, columns = compact
            narrow = replace(self, rows=rows, columns=(columns, self.rows.n_features))
            result = narrow.best(mixture, start.in_columns(columns), rng)
            point, stats = narrow._in_all_columns(result.point, result.stats)
            return replace(result, point=point, stats=stats)
        self._warn_if_large(mixture, start)
        self.checkpoint.begin(rng)
        best: MixtureResult | None = None
        for i in range(start.n_starts):
            kind, state = self._reached(mixture, i)
            # A single start that continues is not made again; of several all are, as each draws
            # from the generator.
            if state is None or start.n_starts > 1:
                point = self._begin(mixture, start, i, rng, best)
            if state is not None:
                point = state.point
            if kind == FLAT_START:
                point = self._with_flat_start(point, i)
                kind = FREE
            result = self.run(point, (i, kind))
            if best is None or result.bounds[-1] > best.bounds[-1]:
                best = result
        assert best is not None
        return best

    def _reached(self, mixture: Mixture, i: int) -> tuple[int, EMState[Point] | None]:
        """Return the kind of run that a checkpoint continues, and its state; else the first one."""
        for kind in (FREE, LIMITED):
            state = self.checkpoint.reached(mixture, (i, kind))
            if state is not None:
                return kind, state
        return FLAT_START, self.checkpoint.reached(mixture, (i, FLAT_START))

    def _warn_if_large(self, mixture: Mixture, start: Start) -> None:
        """Warn before components take more memory than there is.

        For each component and column about twenty numbers are in use while a fit runs, four of
        them for seeds and statistics each; afterwards five.
        """
        K = start.n_components
        warn_if_too_large(
            8 * K * max(20 * self.rows.n_features, 5 * mixture.family.dim),
            f"{K} components in {mixture.family.dim} columns take",
            "Hash words to fewer columns, or reduce them with TruncatedSVD, or use fewer "
            "components.",
        )

    def _begin(
        self,
        mixture: Mixture,
        start: Start,
        i: int,
        rng: np.random.Generator,
        best: MixtureResult | None,
    ) -> Point:
        """Return where a start begins."""
        title, detail, max_iter = start.describe(self.rows.n_rows)
        watch, finish = self.progress.task(
            title, i, max_iter=max_iter, detail=detail, at_once=max_iter is None
        )
        start = replace(start, note=self.progress.note)
        point = start.first(mixture, self.rows, rng, watch)
        finish()
        if best is None:
            return point
        # One prior for all starts, so that bounds can be compared.
        family = best.point.family.continued_by(point.family)
        return Point(replace(mixture, family=family), point.params)

    def _with_flat_start(self, point: Point, i: int) -> Point:
        """Run EM under a flat prior first if the prior would take weight away."""
        prior = point.mixture.weight_prior
        if np.all(prior.alpha >= 1) or self.max_iter == 0:
            return point
        if self.flat_start:
            flat = Point(replace(point.mixture, weight_prior=FLAT), point.params)
            point = point.at(self._em(flat, (i, FLAT_START)).point.params)
        _warn_if_prior_outweighs(prior, point.params, self.rows.total_weight)
        return point

    def run(self, point: Point, run: Run = (0, FREE)) -> MixtureResult:
        """Return what EM reaches from a point, and then within limits on sizes if it breaks them.

        A run that is one within limits continues what a checkpoint holds.
        """
        i, kind = run
        if kind == FREE:
            result = self._em(point, run)
            limits = point.mixture.size_limits
            assert result.stats is not None
            if limits is None or not limits.broken(result.stats.counts):
                return result
            point = result.point
        return self._em(point, (i, LIMITED))

    def _em(self, point: Point, run: Run) -> MixtureResult:
        """Return what EM reaches from a point."""
        i, kind = run
        mixture = point.mixture
        weights = mixture.weight_prior.clip(point.params.weights)
        point = point.at(replace(point.params, weights=weights))
        reached = self.checkpoint.reached(mixture, run)
        watch, finish = self.progress.task(
            _TITLES[kind],
            i,
            attributes=self._attributes_of,
            max_iter=self.max_iter,
            detail=f"{self.rows.n_rows} rows, {point.n_components} components",
            tol=self.tol,
            at_once=reached is not None,
        )
        steps: LimitedSteps | TruncatedSteps | None
        if kind == LIMITED:
            steps = LimitedSteps(self.rows)
            state = steps.state(reached) if reached else EMState(steps.begin(point))
        else:
            state = reached or EMState(point)
            steps = self._truncated_steps(mixture, point.n_components)
            if steps is not None:
                state = steps.state(state)
        result = run_em(
            state,
            self.rows,
            max_iter=self.max_iter,
            tol=self.tol,
            relative_tol=RELATIVE_TOL if kind == LIMITED else 0.0,
            on_iteration=watch,
            save=self.checkpoint.writer(run),
        )
        if kind == FLAT_START:  # its bound is under another prior, and is not printed
            finish()
        else:
            finish(result)
        result = replace(result, point=Point(mixture, result.point.params))
        if steps is None:
            return result
        return replace(result, of_rows=steps.of_rows)

    def _attributes_of(self, point: Point) -> Attributes:
        """Return the attributes of an estimator whose fit ends at a point."""
        whole, _ = self._in_all_columns(point)
        in_order, _ = whole.sorted()
        return self.attributes(in_order)

    def _truncated_steps(self, mixture: Mixture, n_components: int) -> TruncatedSteps | None:
        """Return truncated steps for a mixture of many components; None for others."""
        is_large = has_truncated_steps(self.rows.n_rows, n_components)
        if is_large and truncated_steps_suit(mixture, self.rows, n_components):
            return TruncatedSteps(self.rows, n_components, self.tol, note=self.progress.note)
        return None

    def _in_all_columns(
        self, point: Point, stats: Statistics | None = None
    ) -> tuple[Point, Statistics | None]:
        """Return a point and its statistics with the columns that these rows lack."""
        if self.columns is None:
            return point, stats
        columns, n_features = self.columns
        components, stats = point.family.in_all_columns(
            point.components, stats, columns, n_features
        )
        return point.at(replace(point.params, components=components)), stats


def _warn_if_prior_outweighs(prior: ModifiedDirichlet, params: Params, total_weight: float) -> None:
    """Warn of a prior that leaves one component, or the background alone, at once."""
    K = params.n_components
    n_weights = len(params.weights)
    counts = params.component_weights * total_weight
    alpha = np.broadcast_to(prior.alpha, params.weights.shape)[:K]
    # A component keeps a weight where its rows and its alpha are more than 1 (`modes`).
    if n_weights == 1 or np.any(counts + alpha > 1):
        return
    left = "one component"
    more = "more than one"
    if n_weights > K:
        left = "the background alone"
        more = "any component"
    is_one_number = (alpha == alpha[0]).all()
    given = alpha[0] if is_one_number else alpha
    warn(
        f"weight_concentration_prior={given} outweighs the data and leaves {left}: the largest "
        f"component holds {counts.max():.6g} rows. A number above {1 - counts.max():.6g} leaves "
        f"{more}.",
        UserWarning,
    )
