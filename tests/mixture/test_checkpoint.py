"""Fits that are interrupted, and go on from their checkpoints with the same bits."""

import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.utils._param_validation import InvalidParameterError

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf._engine import checkpoint
from skvmf.mixture import _parameters
from skvmf.model_selection import ComponentPath

from ..interrupted import killed_after
from .checks import assert_same_bits

rng = np.random.default_rng(0)
CENTRES = np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [2.0, 2.0, 3.0]])
X = CENTRES[rng.integers(3, size=300)] + rng.normal(size=(300, 3))
WEIGHTS = rng.uniform(0.5, 2.0, size=300)
KMEANS = {"init_params": "kmeans", "n_init": 3}

FILES = r"fit\.npz(\.\d+-\d+\.tmp)?"  # a checkpoint, and what is not yet one


@pytest.fixture
def at_once(monkeypatch):
    """Write at every iteration, however long that takes, and do not wait for the disk."""
    monkeypatch.setattr(checkpoint, "_TIMES_WRITING", 0)
    monkeypatch.setattr(checkpoint, "_FIRST_WRITE", 0)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def fitted(mixture, rows=X, weights=None):
    return mixture.fit(rows, sample_weight=weights)


def interrupted(mixture, after, rows=X, weights=None):
    """Fit, and stop once so many checkpoints were written; return whether it was stopped."""
    return killed_after(after, lambda: fitted(mixture, rows, weights))


CASES = {
    "directions": (VonMisesFisherMixture, {}),
    "directions, tied": (VonMisesFisherMixture, {"concentration_type": "tied", **KMEANS}),
    "directions, k-means": (VonMisesFisherMixture, KMEANS),
    "directions, background": (VonMisesFisherMixture, {"background": True}),
    "directions, hard": (VonMisesFisherMixture, {"temperature": 0.0, **KMEANS}),
    "directions, emptied": (VonMisesFisherMixture, {"weight_concentration_prior": -20.0}),
    "Gaussians": (SparseGaussianMixture, {"init_params": "random", "n_init": 2}),
    "Gaussians, tied": (SparseGaussianMixture, {"covariance_type": "tied", **KMEANS}),
    "Gaussians, diag": (SparseGaussianMixture, {"covariance_type": "diag", "background": True}),
    "Gaussians, spherical": (
        SparseGaussianMixture,
        {"covariance_type": "spherical", "weight_concentration_prior": -20.0, **KMEANS},
    ),
    "directions, fixed": (
        VonMisesFisherMixture,
        {"fixed": ("weights", "concentrations"), "concentrations_init": 5.0},
    ),
    "entmax": (SparseGaussianMixture, {"entmax_alpha": 2.0, **KMEANS}),
    "in order": (RelativeGMM, {"solver": "em"}),
    "by widths": (RelativeGMM, {"order": "both"}),
    "heavy tails": (StudentTMixture, KMEANS),
    "known tails": (StudentTMixture, {"degrees_of_freedom": [3.0, 4.0, 5.0, 6.0]}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_fit_ends_with_the_bits_of_one_that_was_not(case, at_once, tmp_path):
    cls, options = CASES[case]
    options = {"n_components": 4, "random_state": 0, "max_iter": 12, "tol": 1e-7} | options
    whole = fitted(cls(**options), weights=WEIGHTS)
    for after in (1, 12):
        options["checkpoint"] = tmp_path / f"{after}.npz"
        if not interrupted(cls(**options), after, weights=WEIGHTS):
            break
        assert_same_bits(fitted(cls(**options), weights=WEIGHTS), whole)
    assert after > 1
    again = fitted(cls(**options), weights=WEIGHTS)  # and so does one that was done
    assert_same_bits(again, whole)


def test_a_fit_whose_bound_falls(at_once, tmp_path):
    rows = np.repeat(np.random.default_rng(12).normal(size=(7, 2)), 4, axis=0)
    options = {"n_components": 5, "random_state": 0, "tol": 0, "max_iter": 9}
    whole = fitted(StudentTMixture(**options), rows)
    assert whole.n_iter_ < 5  # a later step is worse
    options["checkpoint"] = tmp_path / "fit"
    assert interrupted(StudentTMixture(**options), 7, rows)
    assert_same_bits(fitted(StudentTMixture(**options), rows), whole)


@pytest.mark.parametrize("kind", ["float32", "csr", "float32 csr"])
def test_other_rows(kind, at_once, tmp_path):
    rows = np.where(np.abs(X) > 0.5, X, 0).astype("float32" if "float32" in kind else "float64")
    rows = sparse.csr_array(rows) if "csr" in kind else rows
    options = {"n_components": 3, "random_state": 0, "max_iter": 8, "tol": 0}
    whole = fitted(VonMisesFisherMixture(**options), rows)
    options["checkpoint"] = str(tmp_path / "fit")
    assert interrupted(VonMisesFisherMixture(**options), 4, rows)
    assert_same_bits(fitted(VonMisesFisherMixture(**options), rows), whole)


@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture])
def test_a_fit_begun_on_dask_may_end_anywhere(cls, at_once, tmp_path):
    array = pytest.importorskip("dask.array", reason="needs dask: pip install 'skvmf[dask]'")
    lazy = array.from_array(X, chunks=(130, 3))
    options = {"n_components": 3, "random_state": 0, "max_iter": 8, "tol": 0}
    whole = fitted(cls(**options))
    for rows in (lazy, X):
        options["checkpoint"] = tmp_path / f"{type(rows).__name__}.npz"
        assert interrupted(cls(**options), 4, lazy)
        ended = fitted(cls(**options), rows)
        assert_array_equal(ended.means_, whole.means_)
        assert ended.lower_bounds_ == whole.lower_bounds_


def test_steps_are_not_taken_again(at_once, tmp_path):
    options = {"n_components": 3, "random_state": 0, "max_iter": 20, "tol": 0}
    options["checkpoint"] = tmp_path / "fit.npz"
    assert interrupted(VonMisesFisherMixture(**options), 15)
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", lambda path, tree: steps.append(tree["bounds"]))
        fitted(VonMisesFisherMixture(**options))
    assert [len(bounds) for bounds in steps] == list(range(15, 22))


def test_warm_starts_go_on(at_once, tmp_path):
    first = fitted(VonMisesFisherMixture(3, random_state=0, max_iter=1))
    options = {"warm_start": True, "max_iter": 10, "tol": 0}
    whole = fitted(pickle.loads(pickle.dumps(first)).set_params(**options))
    options["checkpoint"] = tmp_path / "fit.npz"
    begun = pickle.loads(pickle.dumps(first)).set_params(**options)
    assert interrupted(begun, 4)
    assert begun.n_iter_ == 1  # as it was
    assert_same_bits(fitted(begun), whole)
    other = fitted(VonMisesFisherMixture(3, random_state=1, max_iter=3)).set_params(**options)
    with pytest.raises(ValueError, match=r"the warm start was .* and is"):
        fitted(other)


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64, np.random.Philox])
def test_generators_go_on(at_once, tmp_path, kind):
    """One that is given is left where a whole fit leaves it; NumPy's own is not touched."""

    def seeded(seed):
        return np.random.RandomState(kind(seed))

    options = {"n_components": 4, "max_iter": 4, "tol": 0, **KMEANS}
    generator = seeded(3)
    whole = fitted(SparseGaussianMixture(random_state=generator, **options))
    left = generator.uniform()
    options["checkpoint"] = tmp_path / "fit.npz"
    assert interrupted(SparseGaussianMixture(random_state=seeded(3), **options), 3)
    generator = seeded(3)
    assert_same_bits(fitted(SparseGaussianMixture(random_state=generator, **options)), whole)
    assert generator.uniform() == left
    with pytest.raises(ValueError, match=r"random_state was RandomState .* and is RandomState"):
        fitted(SparseGaussianMixture(random_state=seeded(4), **options))
    options["checkpoint"] = tmp_path / "other.npz"
    assert interrupted(SparseGaussianMixture(**options), 3)
    before = np.random.mtrand._rand.get_state()[1]
    first, second = (fitted(SparseGaussianMixture(**options)) for _ in range(2))
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
def test_other_parameters_are_refused_by_name(changed, message, at_once, tmp_path):
    path = tmp_path / "fit.npz"
    options = {"n_components": 3, "random_state": 0, "max_iter": 5, "tol": 0}
    options |= {"means_init": CENTRES, "weights_init": [0.5, 0.2, 0.3], "checkpoint": path}
    assert interrupted(SparseGaussianMixture(**options), 2)
    before = path.read_bytes()
    changed = options | changed
    if changed["n_components"] == 4:
        changed |= {"means_init": None, "weights_init": None}
    with pytest.raises(ValueError, match=message):
        fitted(SparseGaussianMixture(**changed))
    assert path.read_bytes() == before
    fitted(SparseGaussianMixture(**options, verbose=0, learning_decay=0.5))  # without effect


def test_other_data_are_refused(at_once, tmp_path):
    path = tmp_path / "fit.npz"
    mixture = VonMisesFisherMixture(3, random_state=0, tol=0, max_iter=6, checkpoint=path)
    before = fitted(VonMisesFisherMixture(3, random_state=0)).means_
    assert interrupted(mixture, 3)
    written = path.read_bytes()
    other = X.copy()
    other[17, 1] += 1e-3
    for rows, weights, message in [
        (X[:200], None, "the number of rows was 300 and is 200"),
        (X[:, :2], None, "the number of features was 3 and is 2"),
        (X.astype(np.float32), None, "the dtype was float64 and is float32"),
        (other, None, "other data: its parameters had the lower bound"),
        (X, WEIGHTS, r"other data: its parameters had the lower bound -\d+\.\d+ and have -\d"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted(mixture, rows, weights)
        assert path.read_bytes() == written
    fitted(mixture)
    assert mixture.means_.shape == before.shape


def test_other_versions_are_refused_by_name(at_once, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    mixture = VonMisesFisherMixture(3, random_state=0, tol=0, max_iter=6, checkpoint=path)
    assert interrupted(mixture, 3)
    written = path.read_bytes()
    monkeypatch.setattr(_parameters, "__version__", "6.5")
    with pytest.raises(ValueError, match=r"the version of skvmf was .* and is 6\.5"):
        fitted(mixture)
    assert path.read_bytes() == written


def test_what_is_no_checkpoint_is_refused_and_kept(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=X)
    written = path.read_bytes()
    with pytest.raises(ValueError, match="is not a checkpoint, or is truncated"):
        fitted(VonMisesFisherMixture(2, checkpoint=path))
    assert path.read_bytes() == written


def test_a_refused_checkpoint_leaves_the_fit_before(at_once, tmp_path):
    path = tmp_path / "fit.npz"
    assert interrupted(VonMisesFisherMixture(3, random_state=0, tol=0, checkpoint=path), 3)
    mixture = fitted(VonMisesFisherMixture(2, random_state=0))
    before = mixture.means_
    with pytest.raises(ValueError, match="another fit"):
        fitted(mixture.set_params(checkpoint=path))
    assert mixture.means_ is before


def test_folders_that_are_not_there_are_told_before_the_fit(tmp_path):
    mixture = VonMisesFisherMixture(2, checkpoint=tmp_path / "none" / "fit.npz")
    with pytest.raises(ValueError, match=r"fit\.npz' cannot be written to: .*[Nn]o such file"):
        fitted(mixture)
    with pytest.raises(InvalidParameterError, match="checkpoint"):
        fitted(VonMisesFisherMixture(2, checkpoint=3))


@pytest.mark.parametrize("name", ["fit.npz/below.npz", "n" * 300, "~nobody-of-that-name/fit.npz"])
def test_what_cannot_be_written_is_told_before_the_fit(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.npz").touch()
    mixture = VonMisesFisherMixture(2, random_state=0, checkpoint=name)
    with pytest.raises(ValueError, match="' cannot be written to: "):
        mixture.fit(X)
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

    monkeypatch.setattr(checkpoint, "save", save)
    monkeypatch.setattr(checkpoint, "perf_counter", perf_counter)
    options = {"random_state": 0, "tol": 0, "checkpoint": tmp_path / "fit.npz"}
    fitted(VonMisesFisherMixture(3, max_iter=2, **options))
    assert not writes
    step = 10.0
    noise = np.random.default_rng(1).normal(size=(300, 3))  # which takes many steps
    fitted(VonMisesFisherMixture(8, max_iter=150, **options), noise)
    assert len(writes) >= 2
    assert np.diff(writes).min() >= 50 * 3.0


def test_a_write_that_fails_warns_and_the_fit_goes_on(at_once, tmp_path, monkeypatch):
    expected, original, n_writes = fitted(SparseGaussianMixture(3, random_state=0)), os.replace, 0

    def replace(*paths):
        nonlocal n_writes
        n_writes += 1
        if n_writes == 1:
            raise OSError("disk full")
        original(*paths)

    monkeypatch.setattr(os, "replace", replace)
    path = tmp_path / "fit.npz"
    mixture = SparseGaussianMixture(3, random_state=0, checkpoint=path)
    with pytest.warns(RuntimeWarning, match="could not be written .disk full"):
        mixture.fit(X)
    assert_array_equal(mixture.means_, expected.means_)
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_warm_starts_from_other_directions_do_not_share_a_checkpoint(at_once, tmp_path):
    """Their weights are equal and fixed, so only other parameters tell them apart."""
    means = []
    for order in ([0, 1, 2], [2, 0, 1]):
        mixture = VonMisesFisherMixture.from_parameters(
            np.full(3, 1 / 3),
            mean_directions=(CENTRES / np.linalg.norm(CENTRES, axis=1)[:, None])[order],
            concentrations=np.full(3, 5.0),
            fixed=("weights",),
        ).set_params(warm_start=True, max_iter=3, tol=0)
        whole = fitted(pickle.loads(pickle.dumps(mixture)))
        means.append(fitted(mixture.set_params(checkpoint=tmp_path / "fit.npz")).means_)
        assert_array_equal(means[-1], whole.means_)
    assert not np.allclose(*means)


def test_a_warm_start_takes_the_place_of_the_fit_that_it_goes_on_from(at_once, tmp_path):
    path = tmp_path / "fit.npz"
    mixture = fitted(
        SparseGaussianMixture(3, random_state=0, max_iter=2, warm_start=True, checkpoint=path)
    )
    without = fitted(SparseGaussianMixture(3, random_state=0, max_iter=2, warm_start=True))
    assert_array_equal(fitted(mixture).means_, fitted(without).means_)
    assert_array_equal(fitted(mixture).means_, fitted(without).means_)


def test_whole_numbers_are_the_same_parameters_as_floats(at_once, tmp_path):
    path = tmp_path / "fit.npz"
    for alpha in (1, 1.0):
        fitted(SparseGaussianMixture(3, random_state=0, entmax_alpha=alpha, checkpoint=path))


@pytest.mark.parametrize("path", ["", "."])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(ValueError, match="should be the path of a file"):
        SparseGaussianMixture(3, checkpoint=path).fit(X)


def test_the_home_folder_may_be_abbreviated(at_once, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    fitted(SparseGaussianMixture(3, random_state=0, checkpoint="~/fit.npz"))
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_a_path_of_numbers_keeps_the_checkpoint_for_its_first_fit(at_once, tmp_path):
    mixture = VonMisesFisherMixture(random_state=0, checkpoint=tmp_path / "fit.npz")
    path = ComponentPath(mixture, max_components=4).fit(X)
    assert (tmp_path / "fit.npz").exists()
    plain = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=4).fit(X)
    assert_array_equal(path.best_estimator_.means_, plain.best_estimator_.means_)


def test_streams_write_none(at_once, tmp_path):
    mixture = VonMisesFisherMixture(2, random_state=0, checkpoint=tmp_path / "fit.npz")
    mixture.partial_fit(X)
    assert not os.listdir(tmp_path)


FIT = """
import os, sys, warnings
import numpy as np
from skvmf import SparseGaussianMixture
from skvmf._engine import checkpoint
warnings.simplefilter("ignore")
checkpoint._TIMES_WRITING = checkpoint._FIRST_WRITE = 0
os.fsync = lambda descriptor: None  # the disk stays
X = np.random.default_rng(0).normal(size=(500, 3))
mixture = SparseGaussianMixture(
    5, init_params="kmeans", n_init=2, random_state=0, tol=0, max_iter=12, verbose=1,
    verbose_interval=1, weight_concentration_prior=-5.0, checkpoint=sys.argv[1] or None,
).fit(X)
print(mixture.means_.tobytes().hex(), mixture.labels_.tolist(), mixture.lower_bounds_)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
def test_killed_processes_go_on(tmp_path):
    path = tmp_path / "fit.npz"

    def start(where):
        command = [sys.executable, "-u", "-c", FIT, str(where)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with start("") as process:
        whole = process.stdout.readlines()[-1]
    for title in ("Flat start 0", "Start 1"):
        with start(path) as process:
            assert any(line.startswith(f"{title}:") for line in process.stdout)
            assert any(line.startswith("  Iteration 5:") for line in process.stdout)
            process.send_signal(signal.SIGKILL)
        assert all(re.fullmatch(FILES, name) for name in os.listdir(tmp_path))
    with start(path) as process:
        assert process.stdout.readlines()[-1] == whole
