"""What a fit keeps of its way: the means of every iteration."""


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
