"""What a user sees of a fit: verbose lines, and scikit-learn's callbacks where it has them."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from .em import EMResult, OnIteration

Finish = Callable[[EMResult], None]


class Progress:
    """Report the starts and iterations of one fit.

    Parameters
    ----------
    estimator : estimator instance
        With `verbose`, `verbose_interval`, `max_iter`, and callbacks where supported.
    data : dict
        What callbacks may ask for: X, y, metadata.
    n_init : int
        Number of starts.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], n_init: int) -> None:
        self._estimator = estimator
        self._data = data
        self._root: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            self._root = estimator._init_callback_context(max_subtasks=2 * n_init)
            self._root.call_on_fit_task_begin(estimator=estimator, **data)

    def flat_start(self, index: int) -> OnIteration:
        """Return what `run_em` calls after each iteration under a flat prior."""
        return self._watch(f"Flat start {index}")[0]

    def start(self, index: int) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a start, and after all."""
        on_iteration, task = self._watch(f"Start {index}")

        def finish(result: EMResult) -> None:
            if self._estimator.verbose:
                outcome = "converged" if result.converged else "did not converge"
                print(f"Start {index} {outcome} after {result.n_iter} iterations.")
            if task():
                task().call_on_fit_task_end(estimator=self._estimator, **self._data)

        return on_iteration, finish

    def _watch(self, title: str) -> tuple[OnIteration, Callable[[], Any]]:
        """Return a watcher that announces itself when it is first called, and its task."""
        estimator, began = self._estimator, perf_counter()
        tasks: list[Any] = []

        def on_iteration(n_iter: int, bounds: list[float], params: Any) -> bool:
            if n_iter == 0:
                self._announce(title, tasks)
            if estimator.verbose and n_iter % estimator.verbose_interval == 0:
                line = f"  Iteration {n_iter}"
                if estimator.verbose > 1:
                    line += f"\t time {perf_counter() - began:.3f} s\t bound {bounds[-1]:.6g}"
                print(line)
            return bool(tasks) and self._iteration(tasks[0], params)

        return on_iteration, lambda: tasks[0] if tasks else None

    def _announce(self, title: str, tasks: list[Any]) -> None:
        if self._estimator.verbose:
            print(title)
        if self._root is not None:
            name = title.rsplit(" ", 1)[0].lower()
            max_subtasks = self._estimator.max_iter + 1
            tasks.append(self._root.subcontext(task_name=name, max_subtasks=max_subtasks))
            tasks[0].call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self) -> None:
        """Tell the callbacks that the fit is over; the estimator is fitted by now."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._data
            )

    def _iteration(self, task: Any, params: Any) -> bool:
        context = task.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        stop: bool = context.call_on_fit_task_end(
            estimator=self._estimator,
            reconstruction_attributes=lambda: self._estimator._attributes(params),
            **self._data,
        )
        return stop
