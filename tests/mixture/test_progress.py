"""What a user sees of a fit: warnings, printed lines, and scikit-learn's callbacks."""

import numpy as np
import pytest

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

from ..watcher import Watcher, needs_callbacks
from .kinds import MIXTURES

LABELS = np.repeat([0, 1], 100)
X = np.random.default_rng(0).normal(size=(200, 3)) + np.array([[4, 0, 0], [0, 6, 0]])[LABELS]


def test_a_warning_about_weights_comes_once_for_all_starts():
    mixture = VonMisesFisherMixture(2, concentration_prior=1.0, n_init=4, random_state=0)
    with pytest.warns(UserWarning, match=r"pseudo-rows.*about n_samples") as caught:
        mixture.fit(X, sample_weight=np.full(200, 1e-3))
    about = [w for w in caught if "pseudo-rows" in str(w.message)]
    assert len(about) == 1
    assert about[0].filename == __file__


def test_verbose_says_what_happens(capsys):
    mixture = VonMisesFisherMixture(2, init_size=60, verbose=1, random_state=0).fit(X)
    merging, *_, last = capsys.readouterr().out.splitlines()
    assert merging == "Merging 0: 60 of 200 rows, 8 components merged into 2"
    assert last.startswith(f"Start 0 converged after {mixture.n_iter_} iterations: ")
    assert f" s, bound {mixture.lower_bound_:.6g}, gain " in last
    assert last.endswith(", tol 0.001")
    mixture.set_params(init_params="kmeans").fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "k-means 0: 60 of 200 rows, 2 components"
    assert "Start 0: 200 rows, 2 components" in lines


@pytest.mark.parametrize(("interval", "lines"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4])])
def test_verbose_interval_is_the_iterations_between_two_lines(interval, lines, capsys):
    VonMisesFisherMixture(
        2, init_params=LABELS, max_iter=4, tol=0, verbose=1, verbose_interval=interval
    ).fit(np.random.default_rng(1).normal(size=(200, 3)))
    printed = capsys.readouterr().out
    assert [
        int(line.split()[1].rstrip(":")) for line in printed.splitlines() if "Iteration" in line
    ] == lines


@needs_callbacks
@pytest.mark.parametrize(
    ("init", "stages"),
    [
        ("merging", {"merging": 1, "flat start": 1, "start": 1}),  # starts compete on a sample
        ("kmeans", {"k-means": 2, "flat start": 2, "start": 2}),
    ],
)
def test_callbacks_see_every_stage_begin_and_end(init, stages):
    watcher = Watcher()
    mixture = SparseGaussianMixture(
        3, weight_concentration_prior=-5, n_init=2, init_params=init, random_state=0
    )
    mixture.set_callbacks(watcher).fit(X)
    assert {stage: watcher.count("begin", stage) for stage in stages} == stages
    watcher.assert_all_ended()


@needs_callbacks
def test_callbacks_see_iterations_and_can_stop():
    watcher = Watcher(stop_at=2)
    mixture = VonMisesFisherMixture(3, init_params="random", tol=0, random_state=0)
    mixture.set_callbacks(watcher).fit(X)
    assert mixture.n_iter_ == 2
    assert not mixture.converged_
    scores = [each.score(X) for each in watcher.models[:3]]
    assert scores == sorted(scores)
    assert scores[2] == mixture.score(X)


@needs_callbacks
@pytest.mark.parametrize("estimator", MIXTURES)
def test_callbacks_are_torn_down_after_a_fit_that_fails(estimator):
    watcher = Watcher(fail_at=0)
    mixture = estimator(2, random_state=0).set_callbacks(watcher)
    before = set(vars(mixture))
    with pytest.raises(RuntimeError, match="enough"):
        mixture.fit(X)
    watcher.assert_all_ended()
    assert set(vars(mixture)) == before


def test_a_progress_bar_shows_the_stages(capsys):
    pytest.importorskip("rich")
    callbacks = pytest.importorskip("sklearn.callback")
    mixture = VonMisesFisherMixture(2, init_params="kmeans", random_state=0)
    mixture.set_callbacks(callbacks.ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    for stage in ("fit", "k-means #0", "start #1"):
        assert f"VonMisesFisherMixture - {stage}" in shown
    assert "100%" in shown
