"""Errors of densities, and the cost of an iteration on a cluster of machines."""

import importlib.util
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import VonMisesFisherMixture

from .streams import embeddings

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_error_map.py"


@item(
    "guide.densities", "errors of densities on the sphere", needs=("mpmath",), small={"points": 3}
)
def densities(setting, points=24):
    """Run the example of the gallery, which holds skvmf and SciPy against mpmath."""
    panels = of_example(points)
    table = Table(
        "Errors in units in the last place, d from 2 to a million, kappa from .001 to 1e8",
        ["function", "largest error", "not finite, %"],
        0,
    )
    for name, errors in panels.items():
        largest = f"{float(f'{np.nanmax(errors):.2g}'):,.0f}"
        table.add(name, largest, 100 * np.isnan(errors).mean())
    return Record(
        f"{points} dimensions times {points} concentrations, both geometric; the reference has 40 "
        "digits. Errors of a log-density are relative to 1 at least.",
        "none",
        [table],
    )


def of_example(points):
    """Return the errors that the example draws, with so many points along each axis."""
    import matplotlib

    code = EXAMPLE.read_text(encoding="utf-8").replace("N_POINTS = 24", f"N_POINTS = {points}")
    scope = {"__name__": "example"}
    with matplotlib.rc_context({"backend": "agg"}), patch("matplotlib.pyplot.show"):
        exec(compile(code, str(EXAMPLE), "exec"), scope)
    return scope["panels"]


LOAD = Path(__file__).parents[1] / "scheduler_load.py"
ROWS, THREADS = 1_000_000_000, 1600
NETWORK = 0.1  # seconds for parameters and sums


@item(
    "guide.cluster",
    "an iteration on a cluster",
    needs=("distributed",),
    small={"tasks": (2, 4), "rows": 500, "sizes": (600, 8, 4)},
)
def cluster(setting, tasks=(100, 12_000), rows=50_000, sizes=(220_000, 384, 100)):
    """Time a step on one thread, and what Dask's scheduler takes for tasks that do nothing."""
    (few, many), step = tasks, microseconds(rows, sizes)
    held, lazy = scheduled(few, many)
    arithmetic = step * ROWS / THREADS / 1e6
    iteration = arithmetic + NETWORK + held
    table = Table("A step of a billion rows on 100 machines of 16 threads", ["what", "amount"], 2)
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
    return Record(
        "384 features in float32, 100 components: the CPU time of ten steps on one thread. "
        f"The CPU time of client and scheduler for {few:,} tasks on chunks that workers hold, and "
        f"for {many:,} on lazy chunks.",
        "0",
        [table],
    )


def microseconds(rows, sizes):
    """Return the CPU time of a step for a row: fits of twelve steps less those of two."""
    X, y = embeddings(*sizes)
    X = X[:rows]
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
    with LocalCluster(n_workers=2, **options) as own, Client(own):
        return min(load.times(few, False)), min(load.times(many, True))
