"""Progress: what is printed, and tasks that end once each, whatever happens between."""

import re

import pytest
from sklearn.base import BaseEstimator

from skvmf._engine.contracts import EMResult
from skvmf._engine.em import Progress
from skvmf._sklearn import CallbackSupportMixin, callback_tasks, with_callbacks


class Climber(CallbackSupportMixin, BaseEstimator):
    """Climbs in two stages and a start that never runs; `fails` raises in the second."""

    def __init__(self, max_iter=2, verbose=0, verbose_interval=1, fails=False):
        self.max_iter = max_iter
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.fails = fails

    @with_callbacks
    def fit(self, X, y=None):
        tasks = callback_tasks(self, {"X": X, "y": y}, 3)
        with Progress(tasks, self.verbose, self.verbose_interval) as progress:
            progress.task("Never 7")
            climb(progress.task("k-means 0", max_iter=4)[0], 5)
            on_iteration, finish = progress.task(
                "Start 0", lambda height: {"height_": height}, self.max_iter
            )
            n_iter = climb(on_iteration, self.max_iter + 1) - 1
            if self.fails:
                raise ArithmeticError("too high")
            finish(EMResult(n_iter, [], n_iter, n_iter < self.max_iter))
            self.height_ = n_iter
        return self


def climb(on_iteration, n_steps):
    """Return how often a watcher was called until it said stop or all steps were made."""
    for i in range(n_steps):
        if on_iteration(i, [float(-i)], i):
            return i + 1
    return n_steps


class Recorder:
    """A callback that writes down what begins and ends, and may fail or stop."""

    def __init__(self, stop_after=None, fail_at=None):
        self.stop_after = stop_after
        self.fail_at = fail_at
        self.open, self.ended, self.heights, self.sizes = [], [], [], {}

    def setup(self, estimator, context):
        self.open.clear()
        self.ended.clear()

    def teardown(self, estimator, context):
        assert not self.open

    def on_fit_task_begin(self, estimator, context):
        self.open.append(context)
        self.sizes[context.task_name] = context.max_subtasks
        if self.fail_at == ("begin", context.task_name):
            raise RuntimeError("no start")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        assert self.open.pop() is context
        self.ended.append(context.task_name)
        if fitted_estimator is not None:
            self.heights.append((context.task_name, fitted_estimator.height_))
        if self.fail_at == ("end", context.task_name):
            raise RuntimeError("no end")
        return context.task_name == "iteration" and context.task_id + 1 == self.stop_after


@pytest.fixture
def fit():
    """Return a function that fits a climber watched by a recorder; skip without callbacks."""
    pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")

    def fit(recorder, **options):
        return Climber(**options).set_callbacks(recorder).fit([[0.0]])

    return fit


STAGES = ["iteration"] * 5 + ["k-means"] + ["iteration"] * 3 + ["start"]


@pytest.mark.parametrize("fails", [False, True])
def test_every_task_ends_once_and_in_order_also_where_the_fit_fails(fit, fails):
    recorder = Recorder()
    if fails:
        with pytest.raises(ArithmeticError, match="too high"):
            fit(recorder, fails=True)
    else:
        fit(recorder)
    assert recorder.ended == [*STAGES, "fit"]
    assert not recorder.open
    # a fitted estimator only where there is one
    heights = [("iteration", 0), ("iteration", 1), ("iteration", 2), ("fit", 2)]
    assert recorder.heights == (heights[:-1] if fails else heights)
    assert recorder.sizes == {"fit": 3, "k-means": 5, "start": 3, "iteration": 0}


def test_verbose_lines(capsys):
    assert Climber(verbose=0).fit([[0.0]]).height_ == 2  # without callbacks nothing stops
    assert capsys.readouterr().out == ""
    Climber(verbose=1, verbose_interval=2).fit([[0.0]])
    lines = ["k-means 0", "  Iteration 0: T s, bound 0", "  Iteration 2: T s, bound -2"]
    lines += ["  Iteration 4: T s, bound -4", "Start 0"]
    lines += ["  Iteration 0: T s, bound 0", "  Iteration 2: T s, bound -2"]
    lines += ["Start 0 did not converge after 2 iterations: T s"]
    assert untimed(capsys.readouterr().out) == lines
    with Progress(None, verbose=1) as progress:
        on_iteration, finish = progress.task("Start 3", detail="50 rows, 2 components", tol=1e-3)
        on_iteration(0, [1.5], None)
        on_iteration(1, [1.5, 1.50025], None)
        finish(EMResult(None, [1.5, 1.50025], 1, True))
    assert untimed(capsys.readouterr().out) == [
        "Start 3: 50 rows, 2 components",
        "  Iteration 0: T s, bound 1.5",
        "  Iteration 1: T s, bound 1.50025, gain 0.00025",
        "Start 3 converged after 1 iterations: T s, bound 1.50025, gain 0.00025, tol 0.001",
    ]


def untimed(text):
    """Return printed lines with T for every number of seconds."""
    return re.sub(r"\d+\.\d{3} s", "T s", text).splitlines()
