"""What a user sees of a fit: verbose lines, and scikit-learn's callbacks where it has them."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from .loop import EMResult, OnIteration

Attributes = Callable[[Any], dict[str, Any]]

_STAGE, _ITERATION = 1, 2  # how deep tasks lie in that of the fit


class Finish(Protocol):
    """What to call at the end of a stage."""

    def __call__(self, result: EMResult | None = None) -> None: ...  # noqa: D102


class Progress:
    """Report the stages and iterations of one fit: to callbacks, tasks and their subtasks.

    As a context manager it ends every task that has begun, also where the fit fails. A stage
    left open ends where the next one begins.

    Parameters
    ----------
    estimator : estimator instance
        With `verbose`, `verbose_interval`, `max_iter`, and callbacks where supported.
    data : dict
        What callbacks may ask for: X, y, metadata.
    max_stages : int
        Number of stages at most.

    Notes
    -----
    How a fit uses it; what callbacks see as the fitted estimator has the stage's attributes::

        with Progress(self, {"X": X, "y": y}, max_stages=1) as progress:
            on_iteration, finish = progress.task("Start 0", self._attributes)
            result = run_em(..., max_iter=self.max_iter, on_iteration=on_iteration)
            finish(result)
            publish(self._attributes(result.params))
    """

    def __init__(self, estimator: Any, data: dict[str, Any], max_stages: int) -> None:
        self._estimator = estimator
        self._data = data
        self._open: list[Any] = []  # tasks that have begun: the fit, a stage, an iteration
        if getattr(estimator, "_skl_callbacks", None):
            self._begin(estimator._init_callback_context(max_subtasks=max_stages))

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, error: object, *details: object) -> None:
        self._end(0, {} if error is None else None)

    def end(self) -> None:
        """End all tasks; the estimator is fitted by now."""
        self._end(0, {})

    def flat_start(self, index: int) -> OnIteration:
        """Return what `run_em` calls after each iteration under a flat prior."""
        return self.task(f"Flat start {index}", self._estimator._attributes)[0]

    def start(self, index: int) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a start, and after all."""
        return self.task(f"Start {index}", self._estimator._attributes)

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
        reported, or `at_once`, where the first iteration takes long.

        Parameters
        ----------
        title : str
            What is printed, "k-means 0"; callbacks are told it without the number.
        attributes : callable, default=None
            Returns the fitted attributes that go with an iteration's parameters, for callbacks
            that ask for a fitted estimator; None where it would not be one yet.
        max_iter : int, default=None
            Number of iterations at most; None takes that of the estimator.
        at_once : bool, default=False
            Whether the stage begins now.

        Returns
        -------
        on_iteration : callable
            Returns whether a callback asks to stop.
        finish : callable
            Takes the result, if there is one to print.
        """
        max_iter = self._estimator.max_iter if max_iter is None else max_iter
        began, has_begun = perf_counter(), at_once
        if at_once:
            self._begin_stage(title, max_iter)

        def on_iteration(n_iter: int, bounds: list[float], params: Any) -> bool:
            nonlocal has_begun
            if n_iter == 0 and not has_begun:
                self._begin_stage(title, max_iter)
            has_begun = False
            self._print_iteration(n_iter, bounds, began)
            return self._report_iteration(
                None if attributes is None else lambda: attributes(params)
            )

        def finish(result: EMResult | None = None) -> None:
            if self._estimator.verbose and result is not None:
                outcome = "converged" if result.converged else "did not converge"
                print(f"{title} {outcome} after {result.n_iter} iterations.")
            self._end(_STAGE)

        return on_iteration, finish

    def _begin_stage(self, title: str, max_iter: int) -> None:
        self._end(_STAGE)
        if self._estimator.verbose:
            print(title)
        if self._open:
            name = title.rstrip(" 0123456789").lower()
            self._begin(self._open[0].subcontext(task_name=name, max_subtasks=max_iter + 1))

    def _print_iteration(self, n_iter: int, bounds: list[float], began: float) -> None:
        verbose = self._estimator.verbose
        if verbose and n_iter % self._estimator.verbose_interval == 0:
            line = f"  Iteration {n_iter}"
            if verbose > 1:
                line += f"\t time {perf_counter() - began:.3f} s\t bound {bounds[-1]:.6g}"
            print(line)

    def _report_iteration(self, attributes: Any) -> bool:
        if not self._open:
            return False
        self._begin(self._open[_STAGE].subcontext(task_name="iteration"))
        return self._end(_ITERATION, attributes)

    def _begin(self, task: Any) -> None:
        self._open.append(task)
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end(self, depth: int, attributes: Any = None) -> bool:
        """End the task at a depth and those in it, all of them even where a callback raises.

        `attributes` are those of an estimator fitted so far, or return them. Returns whether
        a callback asks to stop.
        """
        if len(self._open) <= depth:
            return False
        try:
            self._end(depth + 1)
        finally:
            stop: bool = self._open.pop().call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        return stop
