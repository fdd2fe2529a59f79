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
            self._root = estimator._init_callback_context(max_subtasks=2 * n_init)
            self._root.call_on_fit_task_begin(estimator=estimator, **data)

    def flat_start(self, index):
        """Return what `run_em` calls after each iteration under a flat prior."""
        return self._watch(f"Flat start {index}")[0]

    def start(self, index):
        """Return what `run_em` calls after each iteration of a start, and after all."""
        on_iteration, task = self._watch(f"Start {index}")

        def finish(result):
            if self._estimator.verbose:
                outcome = "converged" if result.converged else "did not converge"
                print(f"Start {index} {outcome} after {result.n_iter} iterations.")
            if task():
                task().call_on_fit_task_end(estimator=self._estimator, **self._data)

        return on_iteration, finish

    def _watch(self, title):
        """Return a watcher that announces itself when it is first called, and its task."""
        estimator, began, tasks = self._estimator, perf_counter(), []

        def on_iteration(n_iter, bounds, params):
            if n_iter == 0:
                self._announce(title, tasks)
            if estimator.verbose and n_iter % estimator.verbose_interval == 0:
                line = f"  Iteration {n_iter}"
                if estimator.verbose > 1:
                    line += f"\t time {perf_counter() - began:.3f} s\t bound {bounds[-1]:.6g}"
                print(line)
            return bool(tasks) and self._iteration(tasks[0], params)

        return on_iteration, lambda: tasks[0] if tasks else None

    def _announce(self, title, tasks):
        if self._estimator.verbose:
            print(title)
        if self._root is not None:
            name = title.rsplit(" ", 1)[0].lower()
            max_subtasks = self._estimator.max_iter + 1
            tasks.append(self._root.subcontext(task_name=name, max_subtasks=max_subtasks))
            tasks[0].call_on_fit_task_begin(estimator=self._estimator, **self._data)

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

    def flat_start(self, index):
        """Return what `run_em` calls under a flat prior, which is not on the path."""
        return self._progress.flat_start(index)

    def start(self, index):
        """Return what `run_em` calls after each iteration of a start, and after all."""
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
