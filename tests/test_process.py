"""What a process sees: memory, Ctrl-C, compiled code kept or not, the cost of an import."""

import os
import queue
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import redirect_stdout, suppress
from io import StringIO

import numpy as np
import pytest
from scipy import sparse

from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.compile import counts

from .conftest import peak_of
from .processes import called

KERNEL = """
import warnings
warnings.simplefilter("error")
from skvmf.distributions.vonmises_fisher import log_partition
print(log_partition(0.0, 4))
"""

INTERRUPTED = """
import signal
import threading
import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits
from skvmf import VonMisesFisherMixture

blas = ThreadpoolController().select(user_api="blas").lib_controllers
other = threading.Thread(target=threadpool_limits, args=(3, "blas"))
other.start()
other.join()
before = [library.num_threads for library in blas]
X = np.random.default_rng(0).normal(size=(9000, 3))  # three blocks
mixture = VonMisesFisherMixture(2, random_state=0, max_iter=3, tol=0)

mixture.fit(X)
fitting = asked = False

def interrupt(*_):
    global asked
    asked = True
    if fitting:  # and not while the answer to the last one is still being written
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
print("ready", flush=True)
while True:
    try:
        fitting = True
        while not asked:
            mixture.fit(X)
    except KeyboardInterrupt:
        pass
    fitting = asked = False
    left = [library.num_threads for library in blas]
    print("right" if left == before else f"{left} for {before}", flush=True)
"""


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def peak_mib(fit):
    fit()  # compiled, cached and imported by now
    return peak_of(fit)[1] / 2**20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("init", "temperature"), [("kmeans", 0), ("random", 1), ("random_from_data", 0)]
)
def test_memory_does_not_grow_with_rows_times_components(init, temperature):
    n, d, K = 120_000, 8, 100
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    options = dict(init_params=init, temperature=temperature, max_iter=1, random_state=0)
    parameters = 8 * K * d * 8 / 2**20
    assert n * K * 4 / 2**20 > 45  # what such an array would take
    assert peak_mib(lambda: VonMisesFisherMixture(K, **options).fit(X)) < 32 + parameters
    if init == "kmeans":
        gaussian = SparseGaussianMixture(K, covariance_type="diag", **options)
        assert peak_mib(lambda: gaussian.fit(X)) < 32 + 2 * parameters


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_memory_of_a_sparse_fit_is_one_copy():
    n, rng, K = 60_000, np.random.default_rng(0), 5
    columns = 100 * np.arange(30) + rng.integers(100, size=(n, 30))
    values, ends = rng.random(30 * n), 30 * np.arange(n + 1)
    X = sparse.csr_array((values, columns.ravel(), ends), shape=(n, 3000))
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    options = dict(init_params="random", max_iter=1, random_state=0)
    peak = peak_mib(lambda: VonMisesFisherMixture(K, **options).fit(X))
    assert peak < size + 32 + 8 * K * 3000 * 8 / 2**20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT for one process")
def test_interrupted_fits_leave_the_threads_of_blas_as_they_were():
    rng = random.Random(0)
    answers = queue.SimpleQueue()
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # some Ctrl-C end in a callback, which says so and goes on
        text=True,
    ) as child:
        reader = threading.Thread(target=lambda: [answers.put(line) for line in child.stdout])
        reader.start()
        try:
            assert answers.get(timeout=300) == "ready\n"
            for _ in range(60):
                time.sleep(rng.uniform(0, 0.03))
                assert answer_to_interrupt(child, answers) == "right\n"
        finally:
            child.kill()
            reader.join()


def answer_to_interrupt(child, answers):
    """Press Ctrl-C until the process answers."""
    for _ in range(10):
        child.send_signal(signal.SIGINT)
        with suppress(queue.Empty):
            return answers.get(timeout=6)
    return "no answer"


@pytest.mark.slow
def test_compiled_code_is_kept_and_can_be_turned_off(tmp_path):
    kept, off = tmp_path / "kept", tmp_path / "off"
    assert run_python(KERNEL, NUMBA_CACHE_DIR=str(kept)) == "0.0\n"
    assert list(kept.rglob("*.nbi"))
    code = "from skvmf.compile import counts; print(counts())" + KERNEL
    printed = run_python(code, NUMBA_CACHE_DIR=str(off), SKVMF_CACHE="0")
    assert printed == "(0, 0, None)\n0.0\n"
    assert not off.exists() or not list(off.rglob("*.nbi"))


def command_and_first_fits():
    """Return what the command prints, and what fits then need of this process."""
    sys.argv = ["skvmf.compile"]
    with redirect_stdout(StringIO()) as printed:
        runpy.run_module("skvmf.compile", run_name="__main__")
    return printed.getvalue(), *first_fits()


def first_fits():
    """Return how many functions fits compile, and how many they find in the cache."""
    ready = counts()
    X = np.random.default_rng(1).normal(size=(500, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in np.float32, np.float64:
            rows = X.astype(dtype)
            for data in rows, sparse.csr_array(rows):
                VonMisesFisherMixture(4, random_state=0).fit(data).predict(data)
            for kind in "diag", "full":
                mixture = SparseGaussianMixture(4, covariance_type=kind, random_state=0)
                mixture.fit(rows).score(rows)
            rows = np.where(X > 1, np.nan, X).astype(dtype)
            for kind in SparseGaussianMixture, StudentTMixture:
                for shape in "diag", "full":
                    mixture = kind(2, covariance_type=shape, missing_values="marginal")
                    mixture.set_params(random_state=0).fit(rows).impute(rows)
                    mixture.score_samples(rows)
    return [now - before for now, before in zip(counts()[:2], ready, strict=False)]


def test_the_command_that_compiles_says_what_it_does_without_doing_it():
    command = [sys.executable, "-m", "skvmf.compile", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: python -m skvmf.compile")
    assert "NUMBA_CACHE_DIR" in done.stdout
    assert "functions compiled" not in done.stdout


@pytest.mark.slow
def test_after_the_command_that_compiles_fits_compile_nothing():
    """They need no function that is not there yet, and in the next process all are cached."""
    printed, *more = called(command_and_first_fits)
    assert printed.splitlines()[-1].startswith("The cache is in ")
    assert more == [0, 0]
    for _ in range(2):  # what tests beside this one write may take the place of an index
        n_compiled, n_cached = called(first_fits)
        if n_compiled == 0:
            break
    assert n_compiled == 0
    assert n_cached > 20
