"""A callback of scikit-learn, as a user writes one."""

from importlib.util import find_spec

import pytest

needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn 1.9 has callbacks"
)


class Watcher:
    """Writes down what it is told; an iteration, or epoch, may be where it stops or fails."""

    def __init__(self, stop_at=None, fail_at=None, error=RuntimeError):
        self.stop_at, self.fail_at, self.error = stop_at, fail_at, error
        self.told, self.models, self.data = [], [], []

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name, context.max_subtasks))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name, None))

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.told.append(("begin", context.task_name, context.task_id))
        self.data.append(X)

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.told.append(("end", context.task_name, context.task_id))
        self.data.append(X)
        self.models.append(fitted_estimator)
        if context.max_subtasks != 0:  # a task of tasks
            return False
        if context.task_id == self.fail_at:
            raise self.error("enough")
        return context.task_id == self.stop_at

    def count(self, event, task):
        """Return how often a task of this name was set up, began, ended or was torn down."""
        return [told[:2] for told in self.told].count((event, task))

    def assert_all_ended(self):
        """As many tasks ended as began, and then the callback was torn down."""
        for task in {name for _, name, _ in self.told}:
            assert self.count("begin", task) == self.count("end", task)
        assert [event for event, *_ in self.told].count("teardown") == 1
        assert self.told[-1][0] == "teardown"
