"""Time what Dask's scheduler takes for an iteration of so many tasks, which do nothing.

A row of each chunk is all the data there is, so that an iteration is the graph and nothing else:
the function goes out, a task for each group of chunks runs, and sums are added eight at a time.
With more workers than cores the workers, too, cost what the machines of a real cluster would do
in parallel.

Examples
--------
python doc/user_guide/scheduler_load.py 100 1600 12000
"""

import argparse
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from skvmf._engine.rows.blocks import block_rows
from skvmf._engine.rows.dask import DaskRows


def one(start, weights):
    """Return what an empty iteration sums."""
    return np.ones(1)


def times(n_tasks, lazy, n_times=3):
    """Return the CPU seconds of iterations of so many tasks.

    They are those of client and scheduler, which share a process here.
    """
    size = block_rows(10**9, 1, is_sparse=False)
    X = da.zeros((n_tasks * size, 1), chunks=(size, 1), dtype=np.int8)
    if not lazy:
        X = X.persist()
        wait(X)
    rows = DaskRows(X, None, unit=False)
    found = []
    for _ in range(n_times):
        start = time.process_time()
        total = rows.map_reduce_weights(one)
        found.append(time.process_time() - start)
        assert total[0] == n_tasks
    return found


def main():
    """Print the times of each number of chunks, lazy ones and those that workers hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n_chunks", type=int, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    options = dict(threads_per_worker=1, dashboard_address=":0")
    with LocalCluster(n_workers=arguments.workers, **options) as cluster, Client(cluster):
        for n_chunks in arguments.n_chunks:
            for lazy in (False, True):
                kind = "a task a chunk" if lazy else "chunks held, a task a thread"
                seconds = ", ".join(f"{found:.3f}" for found in times(n_chunks, lazy))
                print(f"{n_chunks} chunks, {kind}: {seconds} s", flush=True)


if __name__ == "__main__":
    main()
