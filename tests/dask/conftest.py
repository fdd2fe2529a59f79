"""A cluster of three processes, and a limit on the time of every test."""

import signal
import threading

import pytest

from ..processes import fork_workers

SECONDS = 240


@pytest.fixture(autouse=True)
def in_time():
    """Let no test hang: a cluster that waits for ever fails."""
    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return

    def late(number, frame):
        raise TimeoutError(f"not done in {SECONDS} s; threads: {threading.enumerate()}")

    earlier = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, earlier)


def pytest_collection_modifyitems(items):
    """Leave out by default what starts worker processes."""
    for item in items:
        if {"client", "mortal"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def start(n_workers):
    """Start workers of one thread each, which say nothing."""
    from distributed import LocalCluster

    fork_workers()
    options = {"dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, **options)


@pytest.fixture(scope="package")
def mortal():
    """Return a cluster of two workers, which tests may kill: others take their place."""
    with start(2) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def workers():
    """Return a cluster of three workers, which live as long as these tests."""
    with start(3) as cluster:
        yield cluster


@pytest.fixture
def client(workers):
    """Return a client, which ends with the test: others compute on Dask's threads."""
    from distributed import Client

    with Client(workers) as client:
        client.wait_for_workers(3)  # on a busy machine they come late
        yield client
