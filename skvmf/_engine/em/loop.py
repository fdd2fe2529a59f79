"""The loop of expectation maximization, and what a run of it hands on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ..._typing import Array
from ..rows.parallel import limited_blas

P = TypeVar("P")  # parameters
S = TypeVar("S")  # statistics
OnIteration = Callable[[int, list[float], Any], bool]  # step, bounds, parameters
OfRows = tuple[Array, Array] | None  # labels and their responsibilities, where they are known


@dataclass(frozen=True)
class EMResult(Generic[P, S]):
    """The best that a run has reached: the bound after each step, and its statistics."""

    params: P
    bounds: list[float]
    n_iter: int
    converged: bool
    stopped: bool = False
    stats: S | None = None
    of_rows: OfRows = None


@dataclass(frozen=True)
class EMState(Generic[P]):
    """How far a run has come: enough for another to continue, bit-identically.

    `comparable` says whether the last two bounds are; `best` is the step with the best, and where.
    """

    params: P
    bounds: Sequence[float] = ()
    comparable: bool = False
    best: tuple[int, P] | None = None


def ignore(n_iter: int, bounds: list[float], params: object) -> bool:
    """Watch nothing and never stop."""
    return False


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
