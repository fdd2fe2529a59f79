"""Reports of training: a line per epoch, and scikit-learn's callbacks where it has them."""

from collections.abc import Callable
from time import perf_counter
from typing import Any


class Progress:
    """Report the epochs of one fit; callbacks see a task with a subtask for each.

    As a context manager it ends every task that has begun, also where the fit fails.

    Parameters
    ----------
    estimator : estimator instance
        With `verbose`, `verbose_interval`, `max_epochs`, and callbacks where supported.
    data : dict, default=None
        What callbacks may ask for: X, y. None where there are to be none.
    """

    def __init__(self, estimator: Any, data: dict[str, Any] | None = None) -> None:
        self._estimator, self._data, self._began = estimator, data, 0.0
        self._open: list[Any] = []  # tasks that have begun: the fit, an epoch
        if data is not None and getattr(estimator, "_skl_callbacks", None):
            self._begin(estimator._init_callback_context(max_subtasks=estimator.max_epochs))

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, error: object, *details: object) -> None:
        while self._open:
            self._end({} if error is None else None)

    def begin_epoch(self) -> None:
        """Say that an epoch begins."""
        self._began = perf_counter()
        if self._open:
            self._begin(self._open[0].subcontext(task_name="epoch"))

    def end_epoch(
        self,
        losses: list[float],
        validation_losses: list[float],
        attributes: Callable[[], dict[str, Any]],
    ) -> bool:
        """Say how an epoch went; return whether a callback asks to stop.

        `attributes` returns what makes the estimator one that is fitted so far.
        """
        estimator, n_epochs = self._estimator, len(losses)
        if estimator.verbose and n_epochs % estimator.verbose_interval == 0:
            line = f"Epoch {n_epochs}: free energy {losses[-1]:.6g}"
            if validation_losses:
                line += f", of rows held out {validation_losses[-1]:.6g}"
            print(f"{line} ({perf_counter() - self._began:.1f} s)")
        return bool(self._open) and self._end(attributes)

    def _begin(self, task: Any) -> None:
        self._open.append(task)
        task.call_on_fit_task_begin(estimator=self._estimator, **(self._data or {}))

    def _end(self, attributes: Any) -> bool:
        stop: bool = self._open.pop().call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=attributes, **(self._data or {})
        )
        return stop
