"""What a user sees of a fit: printed lines, and the tasks of callbacks."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ..._sklearn import NO_TASKS, CallbackTasks
from ..._typing import Attributes
from .loop import EMResult, OnIteration

AttributesOf = Callable[[Any], Attributes]  # of a point
Finish = Callable[..., None]  # what to call at the end of a stage, with a result if there is one


# How deep tasks lie in that of the fit.
_STAGE = 1
_ITERATION = 2


@dataclass
class Progress(AbstractContextManager["Progress"]):
    """Reports the stages and iterations of one fit, as lines and to callbacks.

    As a context manager it ends every task that has begun, also if the fit fails. A stage left
    open ends where the next one begins. `_tasks` are for callbacks: the fit, a stage, an iteration.
    """

    _tasks: CallbackTasks = NO_TASKS
    _verbose: int = 0
    _verbose_interval: int = 1

    def __exit__(self, error: object, *details: object) -> None:
        self._tasks.end(0, {} if error is None else None)

    def task(
        self,
        title: str,
        number: int | None = None,
        *,
        attributes: AttributesOf | None = None,
        max_iter: int | None = None,
        detail: str = "",
        tol: float | None = None,
        at_once: bool = False,
    ) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a stage, and after all.

        The stage begins with its first iteration, so that one that does not run is not reported, or
        `at_once`, for a stage whose first iteration takes long. The title is printed with the
        number of the start, which callbacks do not get, and with a `detail`: how large the problem
        is.
        `attributes` returns the fitted attributes of an iteration's point, for callbacks that
        ask for a fitted estimator.
        """
        began = perf_counter()
        numbered = title if number is None else f"{title} {number}"
        line = f"{numbered}: {detail}" if detail else numbered
        has_begun = at_once
        if at_once:
            self._begin_stage(title, line, max_iter)

        def on_iteration(n_iter: int, bounds: list[float], point: Any) -> bool:
            nonlocal has_begun
            if not has_begun:
                self._begin_stage(title, line, max_iter)
                has_begun = True
            if self._verbose and n_iter % self._verbose_interval == 0:
                print(f"  Iteration {n_iter}: {_numbers(bounds, began)}")
            self._tasks.begin("iteration", 0)
            if attributes is None:
                return self._tasks.end(_ITERATION, None)
            return self._tasks.end(_ITERATION, lambda: attributes(point))

        def finish(result: EMResult[Any, Any] | None = None) -> None:
            if self._verbose and result is not None:
                outcome = "converged" if result.converged else "did not converge"
                numbers = _numbers(result.bounds, began)
                if tol is not None:
                    numbers += f", tol {tol:g}"
                print(f"{numbered} {outcome} after {result.n_iter} iterations: {numbers}")
            self._tasks.end(_STAGE)

        return on_iteration, finish

    def note(self, text: str) -> None:
        """Print what belongs to the next iteration."""
        if self._verbose:
            print(f"    {text}")

    def _begin_stage(self, title: str, line: str, max_iter: int | None) -> None:
        self._tasks.end(_STAGE)
        if self._verbose:
            print(line)
        n_iterations = None if max_iter is None else max_iter + 1  # the first has the number 0
        self._tasks.begin(title.lower(), n_iterations)


def _numbers(bounds: list[float], began: float) -> str:
    """Return the time since a stage began, its last bound and the gain of the last step."""
    parts = [f"{perf_counter() - began:.3f} s"]
    if bounds:
        parts.append(f"bound {bounds[-1]:.6g}")
    if len(bounds) > 1:
        parts.append(f"gain {bounds[-1] - bounds[-2]:.2g}")
    return ", ".join(parts)
