"""Fits on a cluster go on from their checkpoints, whoever died."""

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'skvmf[dask]'")


from skvmf import VonMisesFisherMixture

from ..hooks import before_folds, writing_at_once
from ..processes import killed_at, needs_forks
from .data import bits, blobs, chunked

LENGTHS = [20_000, 1, 29_999]
pytestmark = pytest.mark.filterwarnings("ignore:.*did not reach tol")


def mixture(**options):
    given = {"init_params": "kmeans", "random_state": 0, "tol": 0, "max_iter": 6}
    return VonMisesFisherMixture(4, **given, **options)


def fit(client, path, kind):
    X = chunked(blobs(50_000), LENGTHS)
    X = client.persist(X) if kind == "persisted" else X
    return mixture(checkpoint=path, verbose=1, verbose_interval=1).fit(X)


def fit_at(address, path, kind):
    with distributed.Client(address) as client, writing_at_once():
        fit(client, path, kind)


@needs_forks
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "iteration"), [("persisted", 2), ("lazy", 3)])
def test_a_killed_client_goes_on(kind, iteration, client, tmp_path, capsys):
    """Another client of the same workers takes the iterations that are left."""
    path, title = tmp_path / "fit", "  Iteration {}:"
    titles = ("Start 0:", title.format(iteration))  # k-means before it has iterations, too
    killed_at(titles, fit_at, client.scheduler.address, path, kind)
    ended = fit(client, path, kind)
    assert title.format(iteration - 1) not in capsys.readouterr().out
    assert bits(ended) == bits(mixture().fit(blobs(50_000)))


def test_a_fit_goes_on_after_its_workers_died(mortal, at_once, monkeypatch, tmp_path):
    """A chunk kills its reader from the third iteration on; what waits there is suspected, too."""
    folds, flag = [], tmp_path / "deadly"

    def note(name):
        folds.append(name)
        if folds.count("expect_block") == 3:
            flag.touch()

    def deadly(block, block_info=None):
        import os

        if block_info[0]["chunk-location"][0] == 2 and os.path.exists(flag):
            os._exit(1)
        return block

    monkeypatch.setattr(mortal.scheduler, "allowed_failures", 1)
    sound = chunked(blobs(50_000), LENGTHS)
    with distributed.Client(mortal), before_folds(note):
        X = sound.map_blocks(deadly, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(RuntimeError, match=r"rows \d+ to \d+ of X died.*too little memory"):
            mixture(checkpoint=tmp_path / "fit.npz").fit(X)
    flag.unlink()
    n_folds = []
    for options in ({}, {"checkpoint": tmp_path / "fit.npz"}):
        folds.clear()
        with before_folds(note):
            assert bits(mixture(**options).fit(sound)) == bits(mixture().fit(blobs(50_000)))
        n_folds.append(len(folds))
    assert n_folds[1] < n_folds[0]  # it did not begin again
