"""A fit as its user sees it: lines, callbacks, warnings, and what is left where it fails."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils._param_validation import InvalidParameterError

from skvmf.grammar import DependencyModelWithValence

from ..mixture.checks import assert_bound_never_falls
from ..watcher import Watcher, needs_callbacks

X = [["A", "B"], ["B", "A", "B"], ["B"], ["C", "B"]] * 5
TREES = [[2, 0], [2, 3, 0], [0], [2, 0]] * 5
RULES = [0.5, 0.5], np.full((2, 2, 2, 2), 0.5), np.full((2, 2, 2), 0.5)


def test_lines_are_printed_as_asked_for(capsys):
    model = DependencyModelWithValence(tol=1e-9, max_iter=200).fit(X)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1, verbose_interval=3).fit(X)
    steps = range(0, model.n_iter_ + 1, 3)
    expected = ["EM", *(f"  Iteration {i}" for i in steps)]
    expected += [f"EM converged after {model.n_iter_} iterations"]
    printed = capsys.readouterr().out
    assert [line.partition(":")[0] for line in printed.splitlines()] == expected
    assert f"bound {model.lower_bounds_[3]:.6g}, gain " in printed
    assert printed.endswith("tol 1e-09\n")


@needs_callbacks
def test_callbacks_see_every_iteration():
    watcher = Watcher()
    model = DependencyModelWithValence(weight_floor=0.0, tol=1e-9, max_iter=500)
    model.set_callbacks(watcher).fit(X)
    watcher.assert_all_ended()
    iterations = [("iteration", i) for i in range(model.n_iter_ + 1)]
    ended = [told[1:] for told in watcher.told if told[0] == "end"]
    assert ended == [*iterations, ("em", 0), ("fit", 0)]
    scores = [each.score(X) for each in watcher.models[:-2]]
    np.testing.assert_allclose(scores, model.lower_bounds_, rtol=1e-12)
    watcher.told.clear()
    model.fit(X, TREES)
    assert [name for event, name, _ in watcher.told if event == "end"] == ["fit"]


@pytest.mark.parametrize("watched", [False, pytest.param(True, marks=needs_callbacks)])
def test_warnings_name_the_line_of_the_user(watched):
    model = DependencyModelWithValence(max_iter=1, tol=0.0)
    if watched:
        model.set_callbacks(Watcher())
    with pytest.warns(ConvergenceWarning, match="max_iter=1") as record:
        model.fit(X)
    assert [warning.filename for warning in record] == [__file__]
    with pytest.warns(ConvergenceWarning) as record:
        cross_val_score(clone(model).set_params(tags=["A", "B", "C"]), X, cv=2)
    assert {warning.filename for warning in record} == {__file__}


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def same(before, after):
    return before.keys() == after.keys() and all(before[name] is after[name] for name in before)


@pytest.fixture
def fitted():
    return DependencyModelWithValence().fit([["Z"], ["Z", "Y"]] * 3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([["A"], []],), {}, "Sentence 1 of X is empty"),
        ((X, [[0]]), {}, "X has 20 sentences, y has 1"),
        ((X,), {"temperature": -1}, "a float in the range"),
        ((X,), {"weight_floor": 0.4}, "weight_floor=0.4 is larger than 1 / 3.*cannot sum to 1"),
        ((X,), {"init": ([1.0], [1.0])}, "init should be"),
        ((X,), {"tags": ["A", "A"]}, "tags should be distinct"),
        ((X,), {"tags": ["A", "B"]}, "Unknown tags: 'C'"),
        ((X,), {"tags": [1, 2]}, "Unknown tags"),
    ],
)
def test_a_refused_fit_leaves_the_earlier_one(fitted, arguments, options, message):
    before = state(fitted)
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**options).fit(*arguments)
    assert same(before, state(fitted))


@needs_callbacks
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_fit_leaves_the_earlier_one_and_ends_its_tasks(fitted, error):
    before, watcher = state(fitted), Watcher(fail_at=1, error=error)
    with pytest.raises(error, match="enough"):
        fitted.set_callbacks(watcher).fit(X)
    assert same(before, state(fitted))
    watcher.assert_all_ended()
    assert watcher.count("end", "em") == 1


# A trace can raise between the last line within `with lock` and the lock's release, where no signal
# comes: the lock would be held for ever. tests/engine interrupts these.
UNTRACED = ("_kernels", "_engine/rows/parallel")


def interrupt(line, function):
    """Call a function and raise KeyboardInterrupt before its n-th line; return lines left."""
    left = line

    def trace(frame, event, argument):
        nonlocal left
        path = Path(frame.f_code.co_filename).as_posix()
        if "skvmf" not in path or any(part in path for part in UNTRACED):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(earlier)
    return left


@pytest.mark.slow
def test_a_fit_interrupted_anywhere_is_the_earlier_one_or_the_new_one():
    model = DependencyModelWithValence().fit(X, TREES)
    new = state(model)
    n_lines = -interrupt(0, lambda: model.fit(X, TREES))
    assert n_lines > 100
    model.fit([["Z"], ["Z", "Y"]], [[0], [0, 1]])
    earlier = state(model)
    for line in range(1, n_lines + 1):
        model.__dict__.update(earlier)
        interrupt(line, lambda: model.fit(X, TREES))
        after = state(model)
        assert same(earlier, after) or (
            after.keys() == new.keys()
            and all(np.array_equal(after[name], new[name]) for name in new)
        )


# Parameters


INVALID = [
    *[{"temperature": -3}, {"temperature": 1e301}, {"weight_floor": 1.0}, {"weight_floor": -1e-3}],
    *[{"weight_concentration_prior": value} for value in (np.inf, -np.inf, np.nan)],
    *[{"distance_power": -1}, {"distance_power": np.inf}, {"inference": "vb"}, {"tol": -1}],
    *[{"max_iter": 0.5}, {"max_iter": -1}, {"random_state": "a"}, {"unknown_tags": "ignore"}],
    *[{"verbose": -1}, {"verbose_interval": 0}],
]


@pytest.mark.parametrize("options", INVALID, ids=str)
def test_invalid_options_are_refused_wherever_they_are_given(options):
    (name,) = options
    with pytest.raises(InvalidParameterError, match=name):
        DependencyModelWithValence.from_parameters(["A", "B"], *RULES, **options)
    model = DependencyModelWithValence.from_parameters(["A", "B"], *RULES)
    model.set_params(**options)
    for method in (model.fit, model.predict, model.score_samples, model.score):
        with pytest.raises(InvalidParameterError, match=name):
            method([["A"]])
    with pytest.raises(InvalidParameterError, match=name):
        model.sample()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_floor": 0.6}, "larger than 1 / 2"),
        ({"weight_floor": 0.0, "weight_concentration_prior": 0.0}, "positive weight_floor"),
        ({"weight_concentration_prior": 0.0, "inference": "mean-field"}, "Use inference='map'"),
        ({"weight_concentration_prior": 1e-300, "inference": "mean-field"}, "at least 1e-290"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DependencyModelWithValence.from_parameters(["A", "B"], *RULES, **options)
    with pytest.raises(ValueError, match=message):
        DependencyModelWithValence(**options).fit([["A", "B"]])


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_samples", n) for n in (1.5, -1, 0)] + [("max_length", n) for n in ("9", 0)],
)
def test_a_sample_has_a_whole_number_of_sentences_and_tags(name, value):
    model = DependencyModelWithValence.from_parameters(["A", "B"], *RULES)
    with pytest.raises(ValueError, match="positive integer"):
        model.sample(**{name: value})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", ["map", "mean-field"])
@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0])
def test_sentences_of_two_hundred_words(inference, temperature):
    sentences = [["A", "B", "A", "C", "B"] * 40, ["D"]]
    options = {"inference": inference, "weight_floor": 1e-4, "max_iter": 3}
    model = DependencyModelWithValence(temperature=temperature, **options).fit(sentences)
    assert_bound_never_falls(model)
    assert np.isfinite(model.score_samples(sentences)).all()
    assert [np.count_nonzero(heads == 0) for heads in model.predict(sentences)] == [1, 1]
