"""Fits on a cluster go on from their checkpoints, whoever died."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'skvmf[dask]'")


from skvmf import VonMisesFisherMixture

from ..hooks import before_folds
from .data import bits, blobs, chunked

ROOT = Path(__file__).parents[2]
LENGTHS = [20_000, 1, 29_999]
pytestmark = pytest.mark.filterwarnings("ignore:.*did not reach tol")

FIT = """
import sys, warnings
from distributed import Client
from skvmf import VonMisesFisherMixture
from tests.dask.data import bits, blobs, chunked
from tests.hooks import writing_at_once
warnings.simplefilter("ignore")
with Client(sys.argv[1]) as client, writing_at_once():
    X = chunked(blobs(50_000), [20_000, 1, 29_999])
    if sys.argv[3] == "persisted":
        X = client.persist(X)
    mixture = VonMisesFisherMixture(
        4, init_params="kmeans", random_state=0, tol=0, max_iter=6, verbose=1,
        verbose_interval=1, checkpoint=sys.argv[2],
    ).fit(X)
    print(bits(mixture))
"""


def mixture(**options):
    given = {"init_params": "kmeans", "random_state": 0, "tol": 0, "max_iter": 6}
    return VonMisesFisherMixture(4, **given, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kills"), [("persisted", (2, 4)), ("lazy", (3,))])
def test_a_killed_client_goes_on(kind, kills, client, tmp_path):
    command = [sys.executable, "-u", "-c", FIT, client.scheduler.address, tmp_path / "fit", kind]
    for iteration in kills:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            title = f"  Iteration {iteration}:"
            assert any(line.startswith(title) for line in process.stdout)
            process.send_signal(signal.SIGKILL)
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    assert ended.stdout.splitlines()[-1] == bits(mixture().fit(blobs(50_000)))


def test_a_fit_goes_on_after_its_workers_died(mortal, at_once, monkeypatch, tmp_path):
    """A chunk kills whoever reads it from the third iteration on; the next fit has a sound one."""
    folds, flag = [], tmp_path / "deadly"

    def note(name):
        folds.append(name)
        if folds.count("expect") == 3:
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
        with pytest.raises(RuntimeError, match=r"rows 20001 to 49999 of X died.*too little memory"):
            mixture(checkpoint=tmp_path / "fit.npz").fit(X)
    flag.unlink()
    n_folds = []
    for options in ({}, {"checkpoint": tmp_path / "fit.npz"}):
        folds.clear()
        with before_folds(note):
            assert bits(mixture(**options).fit(sound)) == bits(mixture().fit(blobs(50_000)))
        n_folds.append(len(folds))
    assert n_folds[1] < n_folds[0]  # it did not begin again
