"""Expectation maximization: the loop, progress reports, and online steps.

For the latter see Cappé and Moulines, "On-line expectation-maximization algorithm for latent data
models", Journal of the Royal Statistical Society B 71, 2009.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from ..._sklearn import CallbackTasks
from ..._typing import Attributes
from ..families.family import EMResult, EMState, OnIteration, Statistics, ignore
from ..rows.parallel import limited_blas
from ..rows.sources import RowSource
from .mixture import FLAT, FittedMixture, Mixture

P = TypeVar("P")  # parameters

_ROUNDING, _ROUNDING_32 = 1e-6, 1e-5  # of a bound: where it falls by less, it has not


def run_em(
    model: Any,
    rows: Any,
    params: P | EMState[P],
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = ignore,
    keep: Callable[[EMState[P]], None] | None = None,
) -> EMResult[P, Any]:
    """Increase the model's lower bound on rows, from parameters or the state of an earlier run.

    The model's ``expectation(params, rows)`` returns what ``lower_bound(stats, params)`` and
    ``maximize(stats, params, rows)`` take. ``comparable(before, after)`` says whether a small
    change of the bound is the end: not if a component has been pruned, or moved to a row.

    Stops after `max_iter` steps, when a step changes the bound by at most `tol`, or when
    ``on_iteration(n_iter, bounds, params)`` returns True. Before each of its calls ``keep``
    gets the state. Where bounds have fallen since components were last moved or pruned, as
    `reg_covar` lets them, the result is that of the step with the best one.
    """
    begun = params if isinstance(params, EMState) else EMState(params)
    current, comparable, best = begun.params, begun.comparable, begun.best
    bounds = list(begun.bounds[:-1])  # the last is found again
    with limited_blas():
        for n_iter in range(len(bounds), max_iter + 1):
            stats = model.expectation(current, rows)
            bounds.append(model.lower_bound(stats, current))
            if not comparable or best is None or bounds[-1] >= bounds[best[0]]:
                best = n_iter, current
            if keep is not None:
                keep(EMState(current, bounds, comparable, best))
            stop = on_iteration(n_iter, bounds, current)
            converged = comparable and abs(bounds[-1] - bounds[-2]) <= tol
            if converged or stop or n_iter == max_iter:
                fall = bounds[best[0]] - bounds[-1]
                rounding = _ROUNDING if rows.dtype == np.float64 else _ROUNDING_32
                if fall > rounding * max(1, abs(bounds[-1])):
                    n_iter, current = best
                    stats = model.expectation(current, rows)
                return EMResult(current, bounds[: n_iter + 1], n_iter, converged, bool(stop), stats)
            before, current = current, model.maximize(stats, current, rows)
            comparable = model.comparable(before, current)
    raise ValueError(f"max_iter must be >= 0, got {max_iter}.")


# What a user sees of a fit: printed lines, and the tasks of callbacks.


AttributesOf = Callable[[Any], Attributes]  # of parameters
Finish = Callable[..., None]  # what to call at the end of a stage, with a result if there is one

_LEAST_SHARE = 1e-300  # of a batch in the weight seen: others are as if they had no weight
_STAGE, _ITERATION = 1, 2  # how deep tasks lie in that of the fit


@dataclass
class Progress:
    """Reports the stages and iterations of one fit, as lines and to callbacks.

    As a context manager it ends every task that has begun, also if the fit fails. A stage left
    open ends where the next one begins. `_tasks` are for callbacks, None without them: the fit, a
    stage, an iteration.
    """

    _tasks: CallbackTasks | None
    _verbose: int = 0
    _verbose_interval: int = 1

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, error: object, *details: object) -> None:
        self._end(0, {} if error is None else None)

    def task(
        self,
        title: str,
        attributes: AttributesOf | None = None,
        max_iter: int | None = None,
        *,
        detail: str = "",
        tol: float | None = None,
        at_once: bool = False,
    ) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a stage, and after all.

        The stage begins with its first iteration, so that one that does not run is not reported, or
        `at_once`, for a stage whose first iteration takes long. The title is printed with its
        number, which callbacks do not get, and with a `detail`: how large the problem is.
        `attributes` returns the fitted attributes of an iteration's parameters, for callbacks that
        ask for a fitted estimator.
        """
        began, has_begun = perf_counter(), at_once
        if at_once:
            self._begin_stage(title, max_iter, detail)

        def on_iteration(n_iter: int, bounds: list[float], params: Any) -> bool:
            nonlocal has_begun
            if not has_begun:
                self._begin_stage(title, max_iter, detail)
                has_begun = True
            if self._verbose and n_iter % self._verbose_interval == 0:
                print(f"  Iteration {n_iter}: {_numbers(bounds, began)}")
            if self._tasks is None:
                return False
            self._tasks.begin("iteration", 0)
            of_params = None if attributes is None else lambda: attributes(params)
            return self._tasks.end(_ITERATION, of_params)

        def finish(result: EMResult[Any, Any] | None = None) -> None:
            if self._verbose and result is not None:
                outcome = "converged" if result.converged else "did not converge"
                numbers = _numbers(result.bounds, began) + ("" if tol is None else f", tol {tol:g}")
                print(f"{title} {outcome} after {result.n_iter} iterations: {numbers}")
            self._end(_STAGE)

        return on_iteration, finish

    def note(self, text: str) -> None:
        """Print what belongs to the next iteration."""
        if self._verbose:
            print(f"    {text}")

    def _begin_stage(self, title: str, max_iter: int | None, detail: str) -> None:
        self._end(_STAGE)
        if self._verbose:
            print(f"{title}: {detail}" if detail else title)
        if self._tasks is not None:
            name = title.rstrip(" 0123456789").lower()
            self._tasks.begin(name, None if max_iter is None else max_iter + 1)

    def _end(self, depth: int, attributes: Any = None) -> None:
        if self._tasks is not None:
            self._tasks.end(depth, attributes)


def _numbers(bounds: list[float], began: float) -> str:
    """Return the time since a stage began, its last bound and the gain of the last step."""
    parts = [f"{perf_counter() - began:.3f} s"]
    if bounds:
        parts.append(f"bound {bounds[-1]:.6g}")
    if len(bounds) > 1:
        parts.append(f"gain {bounds[-1] - bounds[-2]:.2g}")
    return ", ".join(parts)


# Online EM: a step for each batch of a stream, by statistics that fade as others come.


def step(
    spec: Mixture,
    rows: RowSource,
    fitted: FittedMixture,
    memory: Statistics | None,
    *,
    decay: float,
) -> tuple[FittedMixture, Statistics | None]:
    """Return the mixture after a batch, and the statistics that are remembered.

    `memory` is that of all rows seen, None before the first batch. A prior that is centred on a
    partition is centred on what is remembered. A batch without weight changes nothing.
    """
    spec = replace(spec, family=fitted.family.continued_by(spec.family))
    if rows.total_weight == 0:
        return replace(spec, family=fitted.family).fitted(fitted.params, memory)
    components = spec.family.adapted(fitted.params.components)
    params = replace(fitted.params, components=components)
    stats = replace(spec.expectation(params, rows), unit=rows.weight_unit)
    if memory is not None:
        about = spec.family.origins(components)
        moved = spec.family.recenter(memory.first_components(len(components)), about)
        stats = blended(replace(moved, counts=memory.counts), stats, decay)
    of_components = stats.first_components(len(components))
    if of_components.counts.any():  # else the background has every row
        spec = replace(spec, family=spec.family.with_prior_from(of_components))
    params = spec.maximize(stats, params, rows)
    return spec.fitted(params, replace(stats, buffers=None))


def weight_seen(memory: Statistics | None, rows: RowSource) -> float:
    """Return the weight of a batch and of the rows before, in the larger of their units."""
    if memory is None:
        return rows.total_weight
    unit = max(memory.unit, rows.weight_unit)
    return memory.total * (memory.unit / unit) + rows.total_weight * (rows.weight_unit / unit)


def flat_at_first(spec: Mixture, n_components: int, weight_seen: float) -> Mixture:
    """Return the mixture with a flat prior while its prior takes half of the rows seen or more."""
    taken = np.maximum(1 - np.asarray(spec.weight_prior.alpha), 0)
    total_taken = taken.sum() if taken.ndim else n_components * taken
    if weight_seen >= 2 * total_taken:
        return spec
    return replace(spec, weight_prior=FLAT)


def blended(memory: Statistics, batch: Statistics, decay: float) -> Statistics:
    """Return what is remembered after a batch whose moments are about the same points.

    Per unit of weight it is (1 - g) of the memory and g of the batch, for its share in the weight
    seen to the power of `decay`, g: a decay of 1 gives plain sums. The least likely rows are the
    batch's.
    """
    unit = max(memory.unit, batch.unit)
    no_values, no_rows = batch.worst_values[:0], batch.worst_rows[:0]
    memory = replace(memory.in_unit(unit), worst_values=no_values, worst_rows=no_rows)
    batch = batch.in_unit(unit)
    seen = memory.total + batch.total
    if min(memory.total, batch.total) < _LEAST_SHARE * seen:
        return batch if batch.total > memory.total else memory
    gain = (batch.total / seen) ** decay
    total = batch.scaled(gain * (seen / batch.total))
    total += memory.scaled((1 - gain) * (seen / memory.total))
    return replace(total, total=seen)
