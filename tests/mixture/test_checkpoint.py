"""Fits that are interrupted, and go on from their checkpoints with the same bits."""

import os
import pickle
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.model_selection import ComponentPath

from ..hooks import killed_after, version_is, writing_at_once
from ..processes import killed_at, needs_forks
from .checks import assert_same_bits

rng = np.random.default_rng(0)
CENTRES = np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [2.0, 2.0, 3.0]])
X = CENTRES[rng.integers(3, size=300)] + rng.normal(size=(300, 3))
WEIGHTS = rng.uniform(0.5, 2.0, size=300)
CSR = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0).astype(np.float32))
COPIES = np.repeat(np.random.default_rng(36).normal(size=(7, 2)), 4, axis=0)
KMEANS = {"init_params": "kmeans", "n_init": 3}


@pytest.fixture
def path(at_once, tmp_path):
    """Return a file to which checkpoints are written at every iteration."""
    return tmp_path / "fit.npz"


def interrupted(mixture, after, rows=X, weights=None):
    """Fit, and stop once so many checkpoints were written; return whether it was stopped."""
    return killed_after(after, lambda: mixture.fit(rows, sample_weight=weights))


CASES = {
    "directions": (VonMisesFisherMixture, {}),
    "directions, tied": (VonMisesFisherMixture, {"concentration_type": "tied", **KMEANS}),
    "directions, background": (VonMisesFisherMixture, {"background": True}),
    "directions, hard": (VonMisesFisherMixture, {"temperature": 0.0}),
    "Gaussians": (SparseGaussianMixture, {"init_params": "random", "n_init": 2}),
    "Gaussians, tied": (SparseGaussianMixture, {"covariance_type": "tied"}),
    "Gaussians, emptied": (
        SparseGaussianMixture,
        {"covariance_type": "spherical", "weight_concentration_prior": -20.0, **KMEANS},
    ),
    "directions, fixed": (
        VonMisesFisherMixture,
        {"fixed": ("weights", "concentrations"), "concentrations_init": 5.0},
    ),
    "entmax": (SparseGaussianMixture, {"covariance_type": "diag", "entmax_alpha": 2.0}),
    "in order": (RelativeGMM, {"order": "both"}),
    "heavy tails": (StudentTMixture, KMEANS),
    "known tails": (StudentTMixture, {"degrees_of_freedom": [3.0, 4.0, 5.0, 6.0]}),
    "float32 csr": (VonMisesFisherMixture, {"tol": 0}, CSR),
    "a bound that falls": (
        StudentTMixture,
        {"n_components": 5, "tol": 0, "random_state": 2},
        COPIES,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_fit_ends_with_the_bits_of_one_that_was_not(case, at_once, tmp_path):
    cls, options, *others = CASES[case]
    rows, weights = (others[0], None) if others else (X, WEIGHTS)
    options = {"n_components": 4, "random_state": 0, "max_iter": 6, "tol": 1e-7} | options
    whole = cls(**options).fit(rows, sample_weight=weights)
    assert case != "a bound that falls" or whole.n_iter_ < 5  # later steps are worse
    for after in (1, 6):
        options["checkpoint"] = tmp_path / f"{after}.npz"
        if not interrupted(cls(**options), after, rows, weights):
            break
        assert_same_bits(cls(**options).fit(rows, sample_weight=weights), whole)
    assert after > 1
    again = cls(**options).fit(rows, sample_weight=weights)  # and so does one that was done
    assert_same_bits(again, whole)


@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture])
def test_a_fit_begun_on_dask_may_end_anywhere(cls, at_once, tmp_path):
    array = pytest.importorskip("dask.array", reason="needs dask: pip install 'skvmf[dask]'")
    lazy = array.from_array(X, chunks=(130, 3))
    options = {"n_components": 3, "random_state": 0, "max_iter": 8, "tol": 0}
    whole = cls(**options).fit(X)
    for rows in (lazy, X):
        options["checkpoint"] = tmp_path / f"{type(rows).__name__}.npz"
        assert interrupted(cls(**options), 4, lazy)
        ended = cls(**options).fit(rows)
        assert_array_equal(ended.means_, whole.means_)
        assert ended.lower_bounds_ == whole.lower_bounds_


def test_steps_are_not_taken_again(path, capsys):
    options = {"random_state": 0, "max_iter": 20, "tol": 0, "verbose": 1, "verbose_interval": 1}
    printed = []
    for _ in range(2):
        interrupted(VonMisesFisherMixture(3, checkpoint=path, **options), 15)
        *_, start = capsys.readouterr().out.split("Start 0: ")
        printed.append(re.findall(r"Iteration (\d+):", start))
    assert printed == [[str(i) for i in steps] for steps in (range(14), range(14, 21))]


def test_warm_starts_go_on(path):
    first = VonMisesFisherMixture(3, random_state=0, max_iter=1).fit(X)
    options = {"warm_start": True, "max_iter": 10, "tol": 0}
    whole = pickle.loads(pickle.dumps(first)).set_params(**options).fit(X)
    options["checkpoint"] = path
    begun = pickle.loads(pickle.dumps(first)).set_params(**options)
    assert interrupted(begun, 4)
    assert begun.n_iter_ == 1  # as it was
    assert_same_bits(begun.fit(X), whole)
    other = VonMisesFisherMixture(3, random_state=1, max_iter=3).fit(X).set_params(**options)
    with pytest.raises(ValueError, match=r"the warm start was .* and is"):
        other.fit(X)


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64, np.random.Philox])
def test_generators_go_on(path, tmp_path, kind):
    """One that is given is left where a whole fit leaves it; NumPy's own is not touched."""

    def seeded(seed):
        return np.random.RandomState(kind(seed))

    options = {"n_components": 4, "max_iter": 4, "tol": 0, **KMEANS}
    generator = seeded(3)
    whole = SparseGaussianMixture(random_state=generator, **options).fit(X)
    left = generator.uniform()
    options["checkpoint"] = path
    assert interrupted(SparseGaussianMixture(random_state=seeded(3), **options), 3)
    generator = seeded(3)
    assert_same_bits(SparseGaussianMixture(random_state=generator, **options).fit(X), whole)
    assert generator.uniform() == left
    with pytest.raises(ValueError, match=r"random_state was RandomState .* and is RandomState"):
        SparseGaussianMixture(random_state=seeded(4), **options).fit(X)
    options["checkpoint"] = tmp_path / "other.npz"
    assert interrupted(SparseGaussianMixture(**options), 3)
    before = np.random.mtrand._rand.get_state()[1]
    first, second = (SparseGaussianMixture(**options).fit(X) for _ in range(2))
    assert_same_bits(first, second)
    assert_array_equal(np.random.mtrand._rand.get_state()[1], before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 4}, "n_components was 3 and is 4"),
        ({"tol": 0.1, "max_iter": 7}, "max_iter was 5 and is 7; tol was 0 and is 0.1"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"covariance_type": "diag"}, "covariance_type was 'full' and is 'diag'"),
        ({"means_init": CENTRES + 1}, "means_init was array .* and is array"),
        ({"weights_init": None}, r"weights_init was array of shape \(3,\) .* and is None"),
    ],
)
def test_other_parameters_are_refused_by_name(changed, message, path):
    options = {"n_components": 3, "random_state": 0, "max_iter": 5, "tol": 0}
    options |= {"means_init": CENTRES, "weights_init": [0.5, 0.2, 0.3], "checkpoint": path}
    assert interrupted(SparseGaussianMixture(**options), 2)
    before = path.read_bytes()
    changed = options | changed
    if changed["n_components"] == 4:
        changed |= {"means_init": None, "weights_init": None}
    with pytest.raises(ValueError, match=message):
        SparseGaussianMixture(**changed).fit(X)
    assert path.read_bytes() == before
    SparseGaussianMixture(**options, verbose=0, learning_decay=0.5).fit(X)  # without effect


def test_other_data_and_other_versions_are_refused(path):
    mixture = VonMisesFisherMixture(3, random_state=0, tol=0, max_iter=6, checkpoint=path)
    assert interrupted(mixture, 3)
    written = path.read_bytes()
    other = X.copy()
    other[17, 1] += 1e-3
    for rows, options, message in [
        (X[:200], {}, "the number of rows was 300 and is 200"),
        (X[:, :2], {}, "the number of features was 3 and is 2"),
        (X.astype(np.float32), {}, "the dtype was float64 and is float32"),
        (X, {"known_labels": np.arange(300) % 3}, "known_labels was .* and is array"),
        (other, {}, "other data: its parameters had the lower bound"),
        (X, {"sample_weight": WEIGHTS}, r"the lower bound -\d+\.\d+ and have -\d"),
    ]:
        with pytest.raises(ValueError, match=message):
            mixture.fit(rows, **options)
        assert path.read_bytes() == written
    with version_is("6.5"), pytest.raises(ValueError, match=r"of skvmf was .* and is 6\.5"):
        mixture.fit(X)
    assert path.read_bytes() == written
    assert mixture.fit(X).means_.shape == (3, 3)


def test_what_is_refused_is_kept_and_leaves_the_fit_before(path):
    mixture = VonMisesFisherMixture(2, random_state=0).fit(X)
    before = mixture.means_
    assert interrupted(VonMisesFisherMixture(3, random_state=0, tol=0, checkpoint=path), 3)
    with pytest.raises(ValueError, match="another fit"):
        mixture.set_params(checkpoint=path).fit(X)
    np.savez(path, X=X)
    written = path.read_bytes()
    with pytest.raises(ValueError, match="is not a checkpoint, or is truncated"):
        mixture.fit(X)
    assert path.read_bytes() == written
    assert mixture.means_ is before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none/fit.npz", r"fit\.npz' cannot be written to: .*[Nn]o such file"),
        ("fit.npz/below.npz", "' cannot be written to: "),
        ("n" * 300, "' cannot be written to: "),
        ("~nobody-of-that-name/fit.npz", "' cannot be written to: "),
        ("", "should be the path of a file"),
        (".", "should be the path of a file"),
        (3, "'checkpoint' parameter"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_fit(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.npz").touch()
    with pytest.raises(ValueError, match=message):
        VonMisesFisherMixture(2, random_state=0, checkpoint=path).fit(X)
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_writes_are_rare(tmp_path, monkeypatch):
    """After a write 50 times as long passes; a fit that is over soon writes nothing."""
    now, step, writes = 0.0, 0.25, []

    def save(path, tree):
        nonlocal now
        writes.append(now)
        now += 3.0

    def perf_counter():
        nonlocal now
        now += step
        return now

    monkeypatch.setattr("skvmf._engine.em.checkpoint.save", save)
    monkeypatch.setattr("skvmf._engine.em.checkpoint.perf_counter", perf_counter)
    options = {"random_state": 0, "tol": 0, "checkpoint": tmp_path / "fit.npz"}
    VonMisesFisherMixture(3, max_iter=2, **options).fit(X)
    assert not writes
    step = 10.0
    noise = np.random.default_rng(1).normal(size=(300, 3))  # which takes many steps
    VonMisesFisherMixture(8, max_iter=150, **options).fit(noise)
    assert len(writes) >= 2
    assert np.diff(writes).min() >= 50 * 3.0


def test_a_write_that_fails_warns_and_the_fit_goes_on(path, tmp_path, monkeypatch):
    expected, original, n_writes = SparseGaussianMixture(3, random_state=0).fit(X), os.replace, 0

    def replace(*paths):
        nonlocal n_writes
        n_writes += 1
        if n_writes == 1:
            raise OSError("disk full")
        original(*paths)

    monkeypatch.setattr(os, "replace", replace)
    mixture = SparseGaussianMixture(3, random_state=0, checkpoint=path)
    with pytest.warns(RuntimeWarning, match="could not be written .disk full"):
        mixture.fit(X)
    assert_array_equal(mixture.means_, expected.means_)
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_warm_starts_from_other_directions_do_not_share_a_checkpoint(path):
    """Their weights are equal and fixed, so only other parameters tell them apart."""
    means = []
    for order in ([0, 1, 2], [2, 0, 1]):
        mixture = VonMisesFisherMixture.from_parameters(
            np.full(3, 1 / 3),
            mean_directions=(CENTRES / np.linalg.norm(CENTRES, axis=1)[:, None])[order],
            concentrations=np.full(3, 5.0),
            fixed=("weights",),
        ).set_params(warm_start=True, max_iter=3, tol=0)
        whole = pickle.loads(pickle.dumps(mixture)).fit(X)
        means.append(mixture.set_params(checkpoint=path).fit(X).means_)
        assert_array_equal(means[-1], whole.means_)
    assert not np.allclose(*means)


def test_a_warm_start_takes_the_place_of_the_fit_that_it_goes_on_from(path):
    options = {"random_state": 0, "max_iter": 2, "warm_start": True}
    mixture = SparseGaussianMixture(3, checkpoint=path, **options).fit(X)
    without = SparseGaussianMixture(3, **options).fit(X)
    assert_array_equal(mixture.fit(X).means_, without.fit(X).means_)
    assert_array_equal(mixture.fit(X).means_, without.fit(X).means_)


def test_whole_numbers_are_the_same_parameters_as_floats(path):
    for alpha in (1, 1.0):
        SparseGaussianMixture(3, random_state=0, entmax_alpha=alpha, checkpoint=path).fit(X)


def test_the_home_folder_may_be_abbreviated(at_once, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    SparseGaussianMixture(3, random_state=0, checkpoint="~/fit.npz").fit(X)
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_a_path_of_numbers_keeps_the_checkpoint_for_its_first_fit(path):
    mixture = VonMisesFisherMixture(random_state=0, checkpoint=path)
    kept = ComponentPath(mixture, max_components=4).fit(X)
    assert path.exists()
    plain = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=4).fit(X)
    assert_array_equal(kept.best_estimator_.means_, plain.best_estimator_.means_)


def test_streams_write_none(path, tmp_path):
    mixture = VonMisesFisherMixture(2, random_state=0, checkpoint=path)
    mixture.partial_fit(X)
    assert not os.listdir(tmp_path)


def long_fit(path=None):
    """Fit as a process that is killed, and those that come before and after it."""
    rows = np.random.default_rng(0).normal(size=(500, 3))
    options = {"init_params": "kmeans", "n_init": 2, "random_state": 0, "tol": 0, "max_iter": 12}
    options |= {"verbose": 1, "verbose_interval": 1, "weight_concentration_prior": -5.0}
    with writing_at_once(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGaussianMixture(5, checkpoint=path, **options).fit(rows)


@needs_forks
@pytest.mark.slow
def test_killed_processes_go_on(tmp_path, capsys):
    path = tmp_path / "fit.npz"
    for title in ("Flat start 0:", "Start 1:"):
        killed_at((title, "  Iteration 5:"), long_fit, path)
        names = os.listdir(tmp_path)  # a checkpoint, and what is not yet one
        assert all(re.fullmatch(r"fit\.npz(\.\d+-\d+\.tmp)?", name) for name in names)
    ended = long_fit(path)
    assert "  Iteration 4:" not in capsys.readouterr().out.split("\nStart 1:")[1]
    assert_same_bits(ended, long_fit())
