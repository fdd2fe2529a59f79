"""Progress of training: a line per epoch, and scikit-learn's callbacks if it has them."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from .._engine.em import Tasks


class Progress:
    """Report the epochs of one fit, as lines and as subtasks to callbacks.

    As a context manager it ends every open task, also if the fit fails.
    """

    def __init__(self, tasks: Tasks | None, verbose: int, verbose_interval: int) -> None:
        self._tasks, self._began = tasks, 0.0
        self._verbose, self._verbose_interval = verbose, verbose_interval

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, error: object, *details: object) -> None:
        if self._tasks is not None:
            self._tasks.end(0, {} if error is None else None)

    def begin_epoch(self) -> None:
        """Begin an epoch."""
        self._began = perf_counter()
        if self._tasks is not None:
            self._tasks.begin("epoch", 0)

    def end_epoch(
        self,
        losses: list[float],
        validation_losses: list[float],
        attributes: Callable[[], dict[str, Any]],
    ) -> bool:
        """Report an epoch; return whether a callback stops the training.

        `attributes` returns the attributes of an estimator fitted so far.
        """
        n_epochs = len(losses)
        if self._verbose and n_epochs % self._verbose_interval == 0:
            line = f"Epoch {n_epochs}: free energy {losses[-1]:.6g}"
            if validation_losses:
                line += f", of rows held out {validation_losses[-1]:.6g}"
            print(f"{line} ({perf_counter() - self._began:.1f} s)")
        return self._tasks is not None and self._tasks.end(1, attributes)
