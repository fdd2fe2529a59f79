"""A user with more rows than memory: files, Dask, batches and checkpoints."""

import runpy
import subprocess
import sys
from time import sleep

import numpy as np
import pytest

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

X, y = make_vonmises_fisher_blobs(6000, 16, centers=4, concentration=60.0, random_state=0)
LONG_FIT = """
from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

rows, _ = make_vonmises_fisher_blobs(50_000, 32, centers=50, concentration=15.0, random_state=0)
options = dict(tol=0, max_iter=60, random_state=0)
if __name__ == "__main__":
    VonMisesFisherMixture(50, checkpoint="fit.npz", **options).fit(rows)
"""


@pytest.fixture(scope="module")
def in_memory():
    """Return the fit to rows in memory."""
    return VonMisesFisherMixture(4, random_state=0).fit(X)


def test_a_memory_map_gives_the_same_fit(in_memory, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    mixture = VonMisesFisherMixture(4, random_state=0).fit(rows)
    assert mixture.means_.tobytes() == in_memory.means_.tobytes()
    np.testing.assert_array_equal(mixture.predict(rows), in_memory.labels_)


def test_lazy_chunks_give_the_same_fit(in_memory, tmp_path):
    da = pytest.importorskip("dask.array")
    da.to_npy_stack(tmp_path / "stack", da.from_array(X, chunks=(900, -1)))
    rows = da.from_npy_stack(tmp_path / "stack")
    mixture = VonMisesFisherMixture(4, random_state=0).fit(rows)
    assert mixture.means_.tobytes() == in_memory.means_.tobytes()
    assert mixture.labels_.chunks == rows.chunks[:1]
    np.testing.assert_array_equal(mixture.labels_.compute(), in_memory.labels_)


def test_batches_come_close_to_a_fit(in_memory):
    mixture = VonMisesFisherMixture(4, random_state=0)
    for start in range(0, len(X), 500):
        mixture.partial_fit(X[start : start + 500])
    assert (mixture.n_steps_, mixture.weight_seen_) == (12, 6000)
    assert in_memory.score(X) - mixture.score(X) < 0.01
    before = mixture.means_
    with pytest.raises(ValueError, match="contains NaN"):
        mixture.partial_fit(np.full((5, 16), np.nan))
    with pytest.raises(ValueError, match=r"5 features, but .* 16 features"):
        mixture.partial_fit(X[:10, :5])
    assert mixture.means_ is before


@pytest.mark.slow
def test_a_killed_fit_continues_from_its_file(tmp_path):
    (tmp_path / "script.py").write_text(LONG_FIT, encoding="utf-8")
    path = tmp_path / "fit.npz"
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path) as process:
        while not path.exists():
            assert process.poll() is None
            sleep(0.05)
        process.kill()
    names = runpy.run_path(str(tmp_path / "script.py"))
    rows, options = names["rows"], names["options"]
    with pytest.warns(match="did not reach tol"):
        continued = VonMisesFisherMixture(50, checkpoint=path, **options).fit(rows)
    with pytest.warns(match="did not reach tol"):
        alone = VonMisesFisherMixture(50, **options).fit(rows)
    assert continued.means_.tobytes() == alone.means_.tobytes()
    assert continued.lower_bounds_ == alone.lower_bounds_


@pytest.mark.parametrize(
    ("rows", "error", "advice"),
    [
        ("rows.npy", ValueError, "numpy.load"),
        ((row for row in X), TypeError, "partial_fit with each batch"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(rows, error, advice):
    with pytest.raises(error, match=advice):
        VonMisesFisherMixture(4).fit(rows)


def test_chunks_of_unknown_size_are_named():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(900, -1))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        VonMisesFisherMixture(4).fit(rows[rows[:, 0] > 0])


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_fit(tmp_path):
    for path, reason in [(tmp_path, "path of a file"), (tmp_path / "no" / "fit.npz", "written")]:
        with pytest.raises(ValueError, match=reason):
            VonMisesFisherMixture(4, checkpoint=path).fit(X)
