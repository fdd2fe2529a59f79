"""What every test may use."""

import importlib
import os
import tracemalloc
from pathlib import Path
from time import sleep

import pytest
from hypothesis import HealthCheck, Phase, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # threads beside other workers' wait for processors
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | os.environ

import numpy as np

from . import hooks

# The nightly run tries more examples, and papers' experiments with as many samples as they need for
# figures; other runs take as many as decide what holds.
FULL_SIZE = "FULL_SIZE" in os.environ
# The first call of a kernel compiles it: no deadline.
settings.register_profile("skvmf", deadline=None, max_examples=100 if FULL_SIZE else 20)
settings.load_profile("skvmf")
FUZZ_FACTOR = int(os.environ.get("FUZZ_FACTOR", 8 if FULL_SIZE else 1))
os.environ["MPLBACKEND"] = "Agg"  # figures are drawn to files, with or without a screen

ROOT = Path(__file__).resolve().parents[1]
QUICK = {  # folders and files here
    *("grammar", "kernels", "preprocessing", "test_architecture.py", "test_public_api.py"),
    *("distributions/test_modified_dirichlet.py", "distributions/test_simplex.py"),
    *("distributions/test_vonmises_fisher.py", "feature_extraction/test_contract.py"),
    *("feature_extraction/test_fisher_vector.py", "mixture/test_vonmises_fisher.py"),
    *("mixture/test_fixed.py", "mixture/test_messages.py", "mixture/test_relative_gmm.py"),
    *("mixture/test_sparse_gaussian.py", "mixture/test_starts.py", "mixture/test_transform.py"),
}


def fuzzing(n_cases):
    """Return the settings of a test of hostile input: as many cases, times FUZZ_FACTOR.

    They are the same ones every time unless that is set. Hypothesis shrinks a case that fails.
    """
    return settings(
        max_examples=n_cases * FUZZ_FACTOR,
        derandomize="FUZZ_FACTOR" not in os.environ,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def is_quick(path):
    """Say whether a file is, or is in, what QUICK names."""
    name = path.relative_to(ROOT / "tests").as_posix()
    return bool({name, name.partition("/")[0]} & QUICK)


def pytest_ignore_collect(collection_path, config):
    """Import no file without quick tests if those alone are wanted, nor where all others are."""
    wanted = {"quick": True, "not quick": False}.get(config.option.markexpr)
    if wanted is None or collection_path.suffix != ".py" or is_quick(collection_path) == wanted:
        return None
    return True if wanted or "mark.slow" not in collection_path.read_text("utf-8") else None


def pytest_collection_modifyitems(items):
    for item in items:
        if is_quick(item.path) and not item.get_closest_marker("slow"):
            item.add_marker("quick")


@pytest.fixture(autouse=True)
def nobody_stays():
    """See that a test leaves no fit counted and no lock held, for which others would wait."""
    yield
    for _ in range(100):  # threads of Dask end a task after another one has failed
        if not hooks.fits_at_work():
            break
        sleep(0.05)
    assert not hooks.fits_at_work()
    assert hooks.lock_is_free()


@pytest.fixture(autouse=True)
def many_cores():
    """Let limits of BLAS decide on the number of threads, whatever the machine has."""
    with hooks.cores(64):
        yield


@pytest.fixture
def at_once():
    """Write checkpoints at every iteration, however long that takes, and wait for no disk."""
    with hooks.writing_at_once():
        yield


def peak_of(function, *arguments):
    """Return what a function returns, and the most bytes that it had at once."""
    tracemalloc.start()
    try:
        return function(*arguments), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def page(monkeypatch):
    """Return a function that imports a module of the pages for contributors."""
    monkeypatch.syspath_prepend(ROOT / "doc" / "contributing")
    return importlib.import_module


@pytest.fixture(scope="session")
def shared():
    """Return the folder of data and reference tables beside the repository, or skip."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared beside the repository")
    return folder


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of what `python -m reproduction.prepare` makes, or skip."""
    folder = Path(os.environ.get("SKVMF_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("needs the data of `python -m reproduction.prepare`; SKVMF_DATA is its folder")
    return folder


@pytest.fixture(scope="session")
def one_torch_thread():
    """Let torch use one thread: two wait for each other, most of all beside other work."""
    torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
