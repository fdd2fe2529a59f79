"""What an iteration on a cluster of machines costs, for the user guide."""

import importlib.util
import time
from pathlib import Path

from skvmf import VonMisesFisherMixture

from .guide_figures import embeddings
from .items import item
from .results import Result, Table

LOAD = Path(__file__).parents[1] / "doc" / "user_guide" / "scheduler_load.py"
ROWS, THREADS = 1_000_000_000, 1600
NETWORK = 0.1  # seconds for parameters and sums


@item("guide.cluster", "an iteration on a cluster", needs=("distributed",))
def cluster(setting):
    """Time a step on one thread, and what Dask's scheduler takes for tasks that do nothing."""
    step = microseconds(setting)
    few, many = setting.size((100, 12_000), (2, 4))
    held, lazy = scheduled(few, many)
    arithmetic = step * ROWS / THREADS / 1e6
    iteration = arithmetic + NETWORK + held
    table = Table(
        "A step of a billion rows on 100 machines of 16 threads",
        ["what", "amount"],
        2,
    )
    for name, amount in (
        ("microseconds a row and thread", step),
        ("seconds of arithmetic", arithmetic),
        ("seconds of the scheduler, a task a machine", held),
        ("seconds of the scheduler, a task a chunk", lazy),
        ("seconds of an iteration", iteration),
        ("minutes of 50 iterations", 50 * iteration / 60),
        ("dollars, at one for a machine and an hour", 50 * iteration / 36),
    ):
        table.add(name, amount)
    return Result(
        "384 features in float32, 100 components: the CPU time of ten steps on one thread. "
        f"The CPU time of client and scheduler for {few:,} tasks on chunks that workers hold, and "
        f"for {many:,} on lazy chunks.",
        "0",
        [table],
    )


def microseconds(setting):
    """Return the CPU time of a step for a row: fits of twelve steps less those of two."""
    X, y = embeddings(setting)
    X = X[: setting.size(50_000, 500)]
    few, many = (spent(X, y.max() + 1, n) for n in (2, 12))
    return max(many - few, 0.0) / 10 / len(X) * 1e6


def spent(X, n_components, n_iter):
    """Return the least CPU time of three fits of so many steps."""
    found = []
    for _ in range(3):
        mixture = VonMisesFisherMixture(
            n_components, init_params="random_from_data", tol=0, max_iter=n_iter, random_state=0
        )
        start = time.process_time()
        mixture.fit(X)
        found.append(time.process_time() - start)
    return min(found)


def scheduled(few, many):
    """Return the least seconds of an iteration of few tasks on held chunks, and many lazy ones."""
    from distributed import Client, LocalCluster

    spec = importlib.util.spec_from_file_location("scheduler_load", LOAD)
    load = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(load)
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(2, **options) as own, Client(own):
        return min(load.times(few, False)), min(load.times(many, True))
