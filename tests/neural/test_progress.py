"""What a user sees of training: printed lines, and scikit-learn's callbacks."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from ..watcher import Watcher, needs_callbacks
from .checks import assert_same

X = load_digits().data[:80] / 16


def printed(capsys):
    return capsys.readouterr().out.splitlines()


def test_lines(new, capsys):
    new().fit(X)
    assert printed(capsys) == []
    model = new(verbose=1, early_stopping=True).fit(X)
    for epoch, line in enumerate(printed(capsys)):
        energies = model.losses_[epoch], model.validation_losses_[epoch]
        start = "Epoch {}: free energy {:.6g}, of rows held out {:.6g} ("
        assert line.startswith(start.format(epoch + 1, *energies))
        assert line.endswith(" s)")
    assert epoch == 2


def epochs(number):
    for index in range(number):
        yield from [("begin", "epoch", index), ("end", "epoch", index)]


@needs_callbacks
def test_callbacks_see_epochs_and_the_network_after_each(new):
    watcher = Watcher()
    model = new().set_callbacks(watcher).fit(X)
    assert watcher.told == [
        ("setup", "fit", 3),
        ("begin", "fit", 0),
        *epochs(3),
        ("end", "fit", 0),
        ("teardown", "fit", None),
    ]
    assert len(watcher.data) == 8
    assert all(data is X for data in watcher.data)
    for n_epochs, seen in enumerate(watcher.models[:3], start=1):
        alone = new(max_epochs=n_epochs).fit(X)
        assert_same(seen, alone)
        assert seen.losses_ == alone.losses_
        assert seen.n_features_in_ == 64
        assert seen.score(X) == alone.score(X)
    assert_array_equal(watcher.models[3].transform(X), model.transform(X))
    assert_same(model, new().fit(X))


@needs_callbacks
def test_a_callback_may_stop_training(new):
    model = new().set_callbacks(Watcher(stop_at=1)).fit(X)
    assert_same(model, new(max_epochs=2).fit(X))
    options = dict(learning_rate=0.1, early_stopping=True, max_epochs=9, n_epochs_no_change=9)
    model = new(**options).set_callbacks(Watcher(stop_at=5)).fit(X)
    assert model.n_epochs_ == 6
    assert_same(model, new(**(options | {"max_epochs": 6})).fit(X))


@needs_callbacks
def test_a_callback_may_change_the_learning_rate(new):
    class Schedule(Watcher):
        def on_fit_task_end(self, estimator, context):
            estimator.set_params(learning_rate=1e-12)

    model = new().set_callbacks(Schedule()).fit(X)
    assert model.learning_rate == 1e-12
    once = new(max_epochs=1).fit(X)
    assert np.abs(model.transform(X) - once.transform(X)).max() < 1e-6


@needs_callbacks
def test_tasks_end_where_a_fit_fails(new):
    watcher = Watcher(fail_at=1)
    model = new().fit(X)
    with pytest.raises(RuntimeError, match="enough"):
        model.set_callbacks(watcher).fit(X)
    assert watcher.told[2:] == [*epochs(2), ("end", "fit", 0), ("teardown", "fit", None)]
    assert watcher.models[-1] is None
    assert_same(model, new().fit(X))
    watcher = Watcher()
    with pytest.raises(ValueError, match="diverged"):
        new(learning_rate=1e20).set_callbacks(watcher).fit(X)
    watcher.assert_all_ended()
