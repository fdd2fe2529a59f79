"""What a user sees of a fit: printed lines, and the tasks of callbacks."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from ..._typing import Attributes
from .loop import EMResult, OnIteration

AttributesOf = Callable[[Any], Attributes]  # of parameters

_STAGE, _ITERATION = 1, 2  # how deep tasks lie in that of the fit


class Finish(Protocol):
    """What to call at the end of a stage."""

    def __call__(self, result: EMResult[Any, Any] | None = None) -> None: ...


class Tasks(Protocol):
    """Nested tasks of a fit, reported to callbacks: the fit, a stage, an iteration."""

    def begin(self, name: str, max_subtasks: int | None) -> None:
        """Begin a task inside the innermost open one."""

    def end(self, depth: int, attributes: Any = None) -> bool:
        """End the task at a depth and those inside it; return whether a callback asks to stop.

        `attributes` are the fitted attributes so far, or return them.
        """


class Progress:
    """Reports the stages and iterations of one fit, as lines and to callbacks.

    As a context manager it ends every task that has begun, also if the fit fails. A stage left
    open ends where the next one begins. `tasks` are for callbacks, None without them. What
    callbacks see as the fitted estimator has the stage's attributes::

        with Progress(tasks, verbose=self.verbose) as progress:
            on_iteration, finish = progress.task("Start 0", self._attributes, self.max_iter)
            result = run_em(..., max_iter=self.max_iter, on_iteration=on_iteration)
            finish(result)
            publish(self._attributes(result.params))
    """

    def __init__(self, tasks: Tasks | None, verbose: int = 0, verbose_interval: int = 1) -> None:
        self._tasks = tasks
        self._verbose = verbose
        self._verbose_interval = verbose_interval

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
            self._print_iteration(n_iter, bounds, began)
            return self._report_iteration(
                None if attributes is None else lambda: attributes(params)
            )

        def finish(result: EMResult[Any, Any] | None = None) -> None:
            if self._verbose and result is not None:
                outcome = "converged" if result.converged else "did not converge"
                numbers = _numbers(result.bounds, began) + ("" if tol is None else f", tol {tol:g}")
                print(f"{title} {outcome} after {result.n_iter} iterations: {numbers}")
            self._end(_STAGE)

        return on_iteration, finish

    def _begin_stage(self, title: str, max_iter: int | None, detail: str) -> None:
        self._end(_STAGE)
        if self._verbose:
            print(f"{title}: {detail}" if detail else title)
        if self._tasks is not None:
            name = title.rstrip(" 0123456789").lower()
            self._tasks.begin(name, None if max_iter is None else max_iter + 1)

    def _print_iteration(self, n_iter: int, bounds: list[float], began: float) -> None:
        if self._verbose and n_iter % self._verbose_interval == 0:
            print(f"  Iteration {n_iter}: {_numbers(bounds, began)}")

    def _report_iteration(self, attributes: Any) -> bool:
        if self._tasks is None:
            return False
        self._tasks.begin("iteration", 0)
        return self._tasks.end(_ITERATION, attributes)

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
