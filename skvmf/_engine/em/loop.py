"""The loop: increase the lower bound of a model on rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ..parallel.blas import limited_blas

P = TypeVar("P")  # parameters
S = TypeVar("S")  # statistics
B = TypeVar("B")  # a block of the data
B_contra = TypeVar("B_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)


class Model(Protocol[P, S, B_contra]):
    """What the loop needs of a model: additive statistics, their bound, their maximizer.

    `comparable` says whether a small change of the bound between two parameters means that
    the loop is at its end: not where a component has been moved or pruned.
    """

    def expect(self, params: P, block: B_contra) -> S: ...
    def lower_bound(self, stats: S, params: P) -> float: ...
    def maximize(self, stats: S, params: P) -> P: ...
    def comparable(self, before: P, after: P) -> bool: ...


class Foldable(Protocol[B_co]):
    """What the loop needs of data: to sum a function over its blocks."""

    def map_reduce(self, function: Callable[[B_co], S]) -> S: ...


OnIteration = Callable[[int, list[float], Any], bool]  # step, bounds, parameters


@dataclass(frozen=True)
class EMResult(Generic[P, S]):
    """Where the loop stopped: `bounds[i]` is the lower bound of the parameters after i steps.

    `stopped` says that the watcher asked for it, and `stats` are the statistics under the
    parameters. `path` holds the parameters after i steps, if they were to be kept.
    """

    params: P
    bounds: list[float]
    n_iter: int
    converged: bool
    stopped: bool = False
    stats: S | None = None
    path: Sequence[P] = ()


@dataclass(frozen=True)
class EMState(Generic[P]):
    """How far a run has come: enough for another to continue, bit-identically.

    `bounds` ends with that of `params`; `comparable` says whether the step to them leaves the
    last two comparable.
    """

    params: P
    bounds: Sequence[float] = ()
    comparable: bool = False


def ignore(n_iter: int, bounds: list[float], params: object) -> bool:
    """Watch nothing and never stop."""
    return False


def run_em(
    model: Model[P, S, B],
    rows: Foldable[B],
    params: P | EMState[P],
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = ignore,
    keep: Callable[[EMState[P]], None] | None = None,
    keep_path: bool = False,
) -> EMResult[P, S]:
    """Increase the model's lower bound on rows, from parameters or the state of an earlier run.

    Stops after `max_iter` steps, when a step changes the bound by at most `tol`, or when
    ``on_iteration(n_iter, bounds, params)`` returns True. Before each of its calls ``keep``
    gets the state.
    """
    begun = params if isinstance(params, EMState) else EMState(params)
    current, comparable = begun.params, begun.comparable
    bounds = list(begun.bounds[:-1])  # the last is found again
    path: list[P] = []
    with limited_blas() as limit, limit:
        for n_iter in range(len(bounds), max_iter + 1):
            if keep_path:
                path.append(current)
            stats = rows.map_reduce(partial(model.expect, current))
            bounds.append(model.lower_bound(stats, current))
            if keep is not None:
                keep(EMState(current, bounds, comparable))
            stop = on_iteration(n_iter, bounds, current)
            converged = comparable and abs(bounds[-1] - bounds[-2]) <= tol
            if converged or stop or n_iter == max_iter:
                return EMResult(current, bounds, n_iter, converged, bool(stop), stats, path)
            before, current = current, model.maximize(stats, current)
            comparable = model.comparable(before, current)
    raise ValueError(f"max_iter must be >= 0, got {max_iter}.")
