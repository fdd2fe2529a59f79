"""What a fit keeps of its way: the means of every iteration."""

from typing import Any

from .._engine.em.loop import EMResult, OnIteration
from .._engine.em.progress import Attributes, Finish, Progress
from .._typing import Array


class PathRecorder:
    """A fit's `Progress` that also keeps the means of every iteration of every stage.

    Parameters
    ----------
    progress : Progress
        What reports stages and iterations.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._paths: list[tuple[EMResult, list[Array]]] = []

    def task(
        self,
        title: str,
        attributes: Attributes | None = None,
        max_iter: int | None = None,
        *,
        at_once: bool = False,
    ) -> tuple[OnIteration, Finish]:
        """Return what `run_em` calls after each iteration of a stage, and after all."""
        on_iteration, finish = self._progress.task(title, attributes, max_iter, at_once=at_once)
        path = []

        def record(n_iter: int, bounds: list[float], params: Any) -> bool:
            path.append(params.components.means)
            return on_iteration(n_iter, bounds, params)

        def finish_path(result: EMResult | None = None) -> None:
            if result is not None:
                self._paths.append((result, path))
            finish(result)

        return record, finish_path

    def path_to(self, result: EMResult) -> list[Array]:
        """Return the means on the way to a result."""
        return next(path for end, path in self._paths if end is result)
