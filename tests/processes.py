"""Processes of tests: forked from one that has imported what they need, so each starts at once."""

import sys
from multiprocessing import get_all_start_methods, get_context

import pytest

needs_forks = pytest.mark.skipif(
    "forkserver" not in get_all_start_methods(), reason="kills processes by a signal"
)


def forking(*imported):
    """Return a context of processes, of which the first that is asked for imports these modules."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["pytest", "skvmf", *imported])
    return context


def fork_workers():
    """Let Dask fork its workers, which are not profiled as they wait."""
    import dask
    from distributed.utils import get_mp_context

    options = {"profile.enabled": False}
    if "forkserver" in get_all_start_methods():
        options["multiprocessing-method"] = "forkserver"
    dask.config.set({f"distributed.worker.{name}": value for name, value in options.items()})
    get_mp_context()  # which asks for modules when it is called first
    if len(options) > 1:
        forking("distributed", "skvmf._engine.dask")


def killed_at(titles, function, *arguments):
    """Call a function in another process; kill it when it has printed lines that begin so."""
    context = get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_printing, args=(sender, function, *arguments))
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
