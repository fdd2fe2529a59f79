"""The loop: climb a model's lower bound on rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ..parallel.blas import limited_blas


class Model(Protocol):
    """What the loop asks of a model: additive statistics, their bound, their maximizer.

    `comparable` says whether a small change of the bound between two parameters means that
    the loop is at its end: not where a component has been moved or pruned.
    """

    def expect(self, params: Any, block: Any) -> Any: ...  # noqa: D102
    def lower_bound(self, stats: Any, params: Any) -> float: ...  # noqa: D102
    def maximize(self, stats: Any, params: Any) -> Any: ...  # noqa: D102
    def comparable(self, before: Any, after: Any) -> bool: ...  # noqa: D102


class Foldable(Protocol):
    """What the loop asks of data: to add a function's parts over its blocks."""

    def map_reduce(self, function: Callable[[Any], Any]) -> Any: ...  # noqa: D102


OnIteration = Callable[[int, list[float], Any], bool]


@dataclass(frozen=True)
class EMResult:
    """Where the loop stopped: `bounds[i]` is the lower bound of the parameters after i steps.

    `stopped` says that the watcher asked for it, and `stats` are the statistics under the
    parameters. `path` holds the parameters after i steps, if they were to be kept.
    """

    params: Any
    bounds: list[float]
    n_iter: int
    converged: bool
    stopped: bool = False
    stats: Any = None
    path: Sequence[Any] = ()


@dataclass(frozen=True)
class EMState:
    """How far a run has come: enough for another to go on from, with the same bits.

    `bounds` ends with that of `params`; `comparable` says whether the step to them leaves the
    last two comparable.
    """

    params: Any
    bounds: Sequence[float] = ()
    comparable: bool = False


def ignore(n_iter: int, bounds: list[float], params: Any) -> bool:
    """Watch nothing and never stop."""
    return False


def run_em(
    model: Model,
    rows: Foldable,
    params: Any,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = ignore,
    keep: Callable[[EMState], None] | None = None,
    keep_path: bool = False,
) -> EMResult:
    """Climb the model's lower bound on rows, starting from params or from what a run reached.

    Stops after `max_iter` steps, when a step changes the bound by at most `tol`, or when
    ``on_iteration(n_iter, bounds, params)`` returns True. Before each of its calls ``keep`` is
    told what was reached.
    """
    begun = params if isinstance(params, EMState) else EMState(params)
    params, comparable = begun.params, begun.comparable
    bounds = list(begun.bounds[:-1])  # the last is found again
    path: list[Any] = []
    with limited_blas() as limit, limit:
        for n_iter in range(len(bounds), max_iter + 1):
            if keep_path:
                path.append(params)
            stats = rows.map_reduce(partial(model.expect, params))
            bounds.append(model.lower_bound(stats, params))
            if keep is not None:
                keep(EMState(params, bounds, comparable))
            stop = on_iteration(n_iter, bounds, params)
            converged = comparable and abs(bounds[-1] - bounds[-2]) <= tol
            if converged or stop or n_iter == max_iter:
                return EMResult(params, bounds, n_iter, converged, bool(stop), stats, path)
            before, params = params, model.maximize(stats, params)
            comparable = model.comparable(before, params)
    raise ValueError(f"max_iter must be >= 0, got {max_iter}.")
