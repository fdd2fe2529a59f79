"""A whole fit has the same bits, whoever reads the rows, in whatever chunks."""

import os
import signal
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs Dask: pip install 'skvmf[dask]'")

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..hooks import before_folds
from .data import bits, blobs, chunked, counts, lengths_of

N = 70_000
CASES = {
    "vmf": (VonMisesFisherMixture, {}, blobs, np.float64),
    "vmf float32 sparse": (VonMisesFisherMixture, {"entmax_alpha": 1.5}, blobs, np.float32),
    "vmf int8 hard": (VonMisesFisherMixture, {"temperature": 0}, blobs, np.int8),
    "vmf csr": (VonMisesFisherMixture, {}, counts, np.float64),
    "vmf csr float32": (VonMisesFisherMixture, {"init_params": "kmeans"}, counts, np.float32),
    "vmf from rows": (VonMisesFisherMixture, {"init_params": "random_from_data"}, blobs,
                      np.float32),
    "full": (SparseGaussianMixture, {"covariance_type": "full"}, blobs, np.float64),
    "diag": (SparseGaussianMixture, {"covariance_type": "diag"}, blobs, np.float32),
    "background": (SparseGaussianMixture, {"background": True, "covariance_type": "diag"}, blobs,
                   np.float64),
    "at random": (SparseGaussianMixture, {"init_params": "random"}, blobs, np.float64),
    "student": (StudentTMixture, {"covariance_type": "diag"}, blobs, np.float64),
    "relative": (RelativeGMM, {"clearance": 0.01}, blobs, np.float64),
    "truncated": (VonMisesFisherMixture, {"n_components": 160, "init_params": "random_from_data",
                  "max_iter": 1}, blobs, np.float64),
}  # fmt: skip
CHUNKS = [("ragged", True), ("aligned", False), ("ragged", False), ("single rows", True)]
FAST = [(name, *CHUNKS[0]) for name in ("vmf csr", "background", "relative")]
OTHERS = [(name, *CHUNKS[i % 4]) for i, name in enumerate(CASES, 2)]
SLOW = pytest.mark.slow
pytestmark = pytest.mark.filterwarnings("ignore:.*did not reach tol")


class Case:
    """An estimator, its rows and the fit of them in memory."""

    def __init__(self, name, weighted):
        self.kind, self.options, rows, dtype = CASES[name]
        self.X = rows(N, dtype=dtype)
        weights = np.maximum(np.random.default_rng(1).exponential(size=N) - 0.2, 0)
        weights[10_000:40_000] = 0  # in some blocks all
        self.weights = weights if weighted else None
        self.local = self.fit(self.X, self.weights)

    def fit(self, X, weights):
        options = {"n_components": 3, "max_iter": 4, "tol": 0, "random_state": 0} | self.options
        return self.kind(**options).fit(X, sample_weight=weights)

    def assert_same(self, mixture):
        assert bits(mixture) == bits(self.local)
        np.testing.assert_array_equal(mixture.labels_, self.local.labels_)
        np.testing.assert_allclose(
            mixture.probabilities_, self.local.probabilities_, rtol=1e-4, atol=1e-6
        )


@pytest.fixture(scope="module")
def case():
    """Return cases, each made once; 128 components have truncated steps."""
    made = {}

    def case(name, weighted):
        if (name, weighted) not in made:
            made[name, weighted] = Case(name, weighted)
        return made[name, weighted]

    with mock.patch("skvmf._engine.rows.blocks.TRUNCATED_FROM", 128):
        yield case


@pytest.mark.parametrize(
    ("name", "kind", "weighted"), [*FAST, *(pytest.param(*each, marks=SLOW) for each in OTHERS)]
)
def test_chunks(name, kind, weighted, case):
    """By Dask's threads, and with weights in other chunks."""
    mine = case(name, weighted)
    X = chunked(mine.X, lengths_of(kind, N))
    weights = chunked(mine.weights, [*[9999] * 7, 7]) if weighted else None
    mine.assert_same(mine.fit(X, weights))


@pytest.mark.parametrize(
    ("name", "n_workers"), [("vmf", 2), ("vmf csr float32", 1), ("full", 3), ("diag", 2)]
)
def test_workers_that_hold_the_rows(name, n_workers, case, client, monkeypatch):
    """And keep them: no chunk is asked for."""
    from distributed import Future

    mine = case(name, True)
    monkeypatch.setattr(Future, "result", None)
    names = list(client.scheduler_info()["workers"])[:n_workers]
    X = client.persist(chunked(mine.X, lengths_of("ragged", N)), workers=names)
    mine.assert_same(mine.fit(X, mine.weights))


@pytest.mark.parametrize("name", ["vmf", "diag"])
def test_workers_that_hold_every_other_block(name, case, client):
    """Sums are then in many pieces, which workers add."""
    import dask.array as da
    from distributed import get_task_stream

    mine, names = case(name, True), list(client.scheduler_info()["workers"])[:2]
    parts = [chunked(mine.X[a : a + 4096], [len(mine.X[a : a + 4096])]) for a in range(0, N, 4096)]
    held = [client.persist(part, workers=[names[i % 2]]) for i, part in enumerate(parts)]
    with get_task_stream(client) as tasks:
        mine.assert_same(mine.fit(client.persist(da.concatenate(held)), mine.weights))
    keys = [str(task["key"]) for task in tasks.data]
    assert sum("skvmf-measure-" in key for key in keys) == 2
    assert any("skvmf-add-1-" in key for key in keys)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("vmf csr", "ragged"), ("vmf csr", "single rows"), ("vmf float32 sparse", "aligned")],
)
def test_workers_that_make_the_rows_each_time(name, kind, case, client):
    mine = case(name, False)
    mine.assert_same(mine.fit(chunked(mine.X, lengths_of(kind, N)), None))


@pytest.mark.parametrize("persisted", [True, False])
@pytest.mark.parametrize(("name", "at"), [("vmf", "expect_block"), ("truncated", "_Near")])
def test_a_killed_worker_changes_no_bit(name, at, persisted, case, mortal, monkeypatch):
    """One process is killed in each of two iterations, another each time."""
    from distributed import Client

    mine, killed = case(name, True), []

    def kill(name):
        if name == at and len(killed) < 2:
            pids = client.run(os.getpid, on_error="ignore")
            pid = sorted(pids.values())[len(killed) % len(pids)]
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(mortal.scheduler, "allowed_failures", 10)  # of one task
    with Client(mortal) as client, before_folds(kill):
        X = chunked(mine.X, lengths_of("ragged", N))
        mixture = mine.fit(client.persist(X) if persisted else X, mine.weights)
        mine.assert_same(mixture)
    assert len(killed) == 2
