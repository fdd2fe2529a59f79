"""What a user sees of a fit: printed lines, and the tasks of callbacks."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from .loop import EMResult, OnIteration

Attributes = Callable[[Any], dict[str, Any]]

_STAGE, _ITERATION = 1, 2  # how deep tasks lie in that of the fit


class Finish(Protocol):
    """What to call at the end of a stage."""

    def __call__(self, result: EMResult | None = None) -> None: ...  # noqa: D102


class Tasks(Protocol):
    """Nested tasks of a fit, of which callbacks are told: the fit, a stage, an iteration."""

    def begin(self, name: str, max_subtasks: int | None) -> None:
        """Begin a task inside the innermost open one."""

    def end(self, depth: int, attributes: Any = None) -> bool:
        """End the task at a depth and those inside it; return whether a callback asks to stop.

        `attributes` are the fitted attributes so far, or return them.
        """


class Progress:
    """Reports the stages and iterations of one fit, as lines and to callbacks.

    As a context manager it ends every task that has begun, also if the fit fails. A stage left
    open ends where the next one begins.

    Parameters
    ----------
    tasks : Tasks or None
        What callbacks are told; None if there are none.
    verbose : int, default=0
        0 prints nothing, 1 stages and iterations, 2 also time and bound.
    verbose_interval : int, default=1
        Iterations between two lines.

    Notes
    -----
    How a fit uses it; what callbacks see as the fitted estimator has the stage's attributes::

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

    def end(self) -> None:
        """End all tasks; the estimator is fitted by now."""
        self._end(0, {})

    def task(
        self,
        title: str,
        attributes: Attributes | None = None,
        max_iter: int | None = None,
        *,
        at_once: bool = False,
    ) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a stage, and after all.

        The stage begins with its first iteration, so that one that does not run is not
        reported, or `at_once`, for a stage whose first iteration takes long.

        Parameters
        ----------
        title : str
            What is printed, "k-means 0"; callbacks are told it without the number.
        attributes : callable, default=None
            Returns the fitted attributes that go with an iteration's parameters, for callbacks
            that ask for a fitted estimator; None if it would not be one yet.
        max_iter : int, default=None
            Number of iterations at most; None if it is not known.
        at_once : bool, default=False
            Whether the stage begins now.

        Returns
        -------
        on_iteration : callable
            Returns whether a callback asks to stop.
        finish : callable
            Takes the result, if there is one to print.
        """
        began, has_begun = perf_counter(), at_once
        if at_once:
            self._begin_stage(title, max_iter)

        def on_iteration(n_iter: int, bounds: list[float], params: Any) -> bool:
            nonlocal has_begun
            if not has_begun:
                self._begin_stage(title, max_iter)
                has_begun = True
            self._print_iteration(n_iter, bounds, began)
            return self._report_iteration(
                None if attributes is None else lambda: attributes(params)
            )

        def finish(result: EMResult | None = None) -> None:
            if self._verbose and result is not None:
                outcome = "converged" if result.converged else "did not converge"
                print(f"{title} {outcome} after {result.n_iter} iterations.")
            self._end(_STAGE)

        return on_iteration, finish

    def _begin_stage(self, title: str, max_iter: int | None) -> None:
        self._end(_STAGE)
        if self._verbose:
            print(title)
        if self._tasks is not None:
            name = title.rstrip(" 0123456789").lower()
            self._tasks.begin(name, None if max_iter is None else max_iter + 1)

    def _print_iteration(self, n_iter: int, bounds: list[float], began: float) -> None:
        if self._verbose and n_iter % self._verbose_interval == 0:
            line = f"  Iteration {n_iter}"
            if self._verbose > 1:
                line += f"\t time {perf_counter() - began:.3f} s\t bound {bounds[-1]:.6g}"
            print(line)

    def _report_iteration(self, attributes: Any) -> bool:
        if self._tasks is None:
            return False
        self._tasks.begin("iteration", 0)
        return self._tasks.end(_ITERATION, attributes)

    def _end(self, depth: int, attributes: Any = None) -> None:
        if self._tasks is not None:
            self._tasks.end(depth, attributes)
