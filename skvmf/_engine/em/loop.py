"""The loop of expectation maximization, and what a run of it hands on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..._typing import Array
from ..rows.parallel import limited_blas

P = TypeVar("P")  # a point: a model at some parameters
S = TypeVar("S")  # statistics
OnIteration = Callable[[int, list[float], Any], bool]  # step, bounds, point
LabelsOfRows = tuple[Array, Array] | None  # and their responsibilities, where they are known

# Where a bound falls by less than this fraction, rounding has made it fall: float32 rows have
# seven digits, and float64 sums of many rows about ten, of features with large offsets fewer.
_ROUNDING = {"float64": 1e-6, "float32": 1e-5}


@dataclass(frozen=True, eq=False)
class EMResult(Generic[P, S]):
    """The best that a run has reached: the bound after each step, and its statistics."""

    point: P
    bounds: list[float]
    n_iter: int
    converged: bool
    stopped: bool = False
    stats: S | None = None
    of_rows: LabelsOfRows = None


@dataclass(frozen=True, eq=False)
class EMState(Generic[P]):
    """How far a run has come: enough for another to continue, bit-identically.

    `comparable` says whether the last two bounds are; `best` is the step with the best, and where.
    """

    point: P
    bounds: Sequence[float] = ()
    comparable: bool = False
    best: tuple[int, P] | None = None


def ignore(n_iter: int, bounds: list[float], point: object) -> bool:
    """Watch nothing and never stop."""
    return False


def run_em(
    start: Any,
    rows: Any,
    *,
    max_iter: int,
    tol: float | None,
    relative_tol: float = 0.0,
    on_iteration: OnIteration = ignore,
    save: Callable[[EMState[Any]], None] | None = None,
) -> EMResult[Any, Any]:
    """Increase the lower bound on rows, from a point or the state of an earlier run.

    A point's ``expect(rows)`` returns what its ``bound(stats)`` and ``maximize(stats, rows)``
    take; the latter is the next point. ``size_of_bound(stats)`` is what the bound's rounding is a
    share of, in any units of the features. ``comparable(after)`` says whether a small change of the
    bound is the end: not if a component has been pruned, or moved to a row.

    Where bounds have fallen since components were last moved or pruned, as `reg_covar` lets them,
    the result is that of the step with the best one.

    Parameters
    ----------
    start : Point or EMState
        The point to begin at, such as the `first` of a start, or the state of an earlier run.
    rows : RowSource
        The rows, such as those of `make_rows`.
    max_iter : int
        Largest number of steps.
    tol : float or None
        A step that changes the bound by at most this is the last. None asks for `max_iter` steps,
        wherever they lead.
    relative_tol : float, default=0
        A step that changes the bound by at most this share of what the first one did is the last.
    on_iteration : callable
        ``on_iteration(n_iter, bounds, point)``; a step after which it returns True is the last.
    save : callable, default=None
        Gets the state before each call of `on_iteration`.

    Returns
    -------
    EMResult
        The `point` of the best bound and the `bounds` of all steps, among others.
    """
    state = start if isinstance(start, EMState) else EMState(start)
    point = state.point
    comparable = state.comparable
    best = state.best
    bounds = list(state.bounds[:-1])  # the last is found again
    with limited_blas():
        for n_iter in range(len(bounds), max_iter + 1):
            stats = point.expect(rows)
            bounds.append(point.bound(stats))
            if not comparable or best is None or bounds[-1] >= bounds[best[0]]:
                best = n_iter, point
            if save is not None:
                save(EMState(point, bounds, comparable, best))
            stop = on_iteration(n_iter, bounds, point)
            converged = False
            if tol is not None and comparable:
                least_gain = max(tol, relative_tol * abs(bounds[1] - bounds[0]))
                converged = abs(bounds[-1] - bounds[-2]) <= least_gain
            if converged or stop or n_iter == max_iter:
                if tol is not None:
                    fall = bounds[best[0]] - bounds[-1]
                    rounding = _ROUNDING[rows.dtype.name] * point.size_of_bound(stats)
                    if fall > rounding:
                        n_iter, point = best
                        stats = point.expect(rows)
                return EMResult(point, bounds[: n_iter + 1], n_iter, converged, bool(stop), stats)
            after = point.maximize(stats, rows)
            comparable = point.comparable(after)
            point = after
    raise ValueError(f"max_iter must be >= 0, got {max_iter}.")
