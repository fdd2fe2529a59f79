"""Processes of tests: forked from one that has imported what they need, so each starts at once."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context

import pytest

CONTEXT = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
needs_forks = pytest.mark.skipif(
    CONTEXT.get_start_method() == "spawn", reason="kills processes by a signal"
)


def preload(*modules):
    """Say what the process imports that is forked, if there is none yet."""
    if CONTEXT.get_start_method() == "forkserver":
        CONTEXT.set_forkserver_preload(["pytest", "skvmf", *modules])


def fork_workers():
    """Let Dask fork its workers, which are not profiled as they wait."""
    import dask
    from distributed.utils import get_mp_context

    options = {"profile.enabled": False, "multiprocessing-method": CONTEXT.get_start_method()}
    dask.config.set({f"distributed.worker.{name}": value for name, value in options.items()})
    get_mp_context()  # says what is imported, when it is called first
    preload("distributed", "skvmf._engine.rows.dask")


def called(function, *arguments):
    """Return what a function returns, or raise what it raises, in another process."""
    preload()
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as pool:
        return pool.submit(function, *arguments).result(timeout=500)


def killed_at(titles, function, *arguments):
    """Call a function in another process; kill it when it has printed lines that begin so."""
    preload()
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_printing, args=(sender, function, *arguments))
    process.start()
    sender.close()
    with receiver, open(receiver.fileno(), closefd=False) as printed:
        for title in titles:
            assert any(line.startswith(title) for line in printed)
        process.kill()
    process.join()


def _printing(sender, function, *arguments):
    with open(sender.fileno(), "w", buffering=1, closefd=False) as sys.stdout:
        function(*arguments)
