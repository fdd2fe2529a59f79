"""What a user sees of a fit: verbose lines, and scikit-learn's callbacks where it has them."""

from time import perf_counter


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

    def __init__(self, estimator, data, n_init):
        self._estimator = estimator
        self._data = data
        self._root = None
        if getattr(estimator, "_skl_callbacks", None):
            self._root = estimator._init_callback_context(max_subtasks=n_init)
            self._root.call_on_fit_task_begin(estimator=estimator, **data)

    def start(self, index):
        """Announce a start; return what `run_em` calls after each iteration."""
        estimator, began = self._estimator, perf_counter()
        if estimator.verbose:
            print(f"Start {index}")
        task = None
        if self._root is not None:
            task = self._root.subcontext(task_name="start", max_subtasks=estimator.max_iter + 1)
            task.call_on_fit_task_begin(estimator=estimator, **self._data)

        def on_iteration(n_iter, bounds, params):
            if estimator.verbose and n_iter % estimator.verbose_interval == 0:
                line = f"  Iteration {n_iter}"
                if estimator.verbose > 1:
                    line += f"\t time {perf_counter() - began:.3f} s\t bound {bounds[-1]:.6g}"
                print(line)
            return task is not None and self._iteration(task, params)

        def finish(result):
            if estimator.verbose:
                outcome = "converged" if result.converged else "did not converge"
                print(f"Start {index} {outcome} after {result.n_iter} iterations.")
            if task is not None:
                task.call_on_fit_task_end(estimator=estimator, **self._data)

        return on_iteration, finish

    def end(self):
        """Tell the callbacks that the fit is over; the estimator is fitted by now."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._data
            )

    def _iteration(self, task, params):
        context = task.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return context.call_on_fit_task_end(
            estimator=self._estimator,
            reconstruction_attributes=lambda: self._estimator._attributes(params),
            **self._data,
        )


class PathRecorder:
    """A fit's `Progress` that also keeps the means of every iteration of every start.

    Parameters
    ----------
    progress : Progress
        What reports starts and iterations.
    """

    def __init__(self, progress):
        self._progress = progress
        self._paths = []

    def start(self, index):
        """Announce a start; return what `run_em` calls after each iteration, and after all."""
        on_iteration, finish = self._progress.start(index)
        path = []

        def record(n_iter, bounds, params):
            path.append(params.components.means)
            return on_iteration(n_iter, bounds, params)

        def finish_path(result):
            self._paths.append((result, path))
            finish(result)

        return record, finish_path

    def path_to(self, result):
        """Return the means on the way to a result."""
        return next(path for end, path in self._paths if end is result)
