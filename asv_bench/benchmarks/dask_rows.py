"""Rows of Dask arrays beside rows in memory, and how often a fit reads its rows."""

import time
from functools import cache

import numpy as np

from skvmf import VonMisesFisherMixture
from skvmf._engine.rows.sources import DenseRows
from skvmf.mixture._rows import read_rows

from .mixture import em_step, ratio


@cache
def rows():
    """Return rows of the length of sentence embeddings."""
    return np.random.default_rng(0).standard_normal((65_536, 384), dtype=np.float32)


def fitted(X, max_iter=0):
    options = dict(init_params="random_from_data", tol=0, random_state=0)
    return VonMisesFisherMixture(50, max_iter=max_iter, **options).fit(X)


class DaskArrayStep:
    """An EM step on a local cluster of one worker beside one in memory; needs Dask."""

    timeout = 300

    def setup(self):
        import dask.array as da
        from distributed import Client, LocalCluster, wait

        self.cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
        self.client = Client(self.cluster)
        self.X = da.from_array(rows(), chunks=(16_384, -1)).persist()
        wait(self.X)
        self.mixture = fitted(rows()[:10_000])

    def teardown(self):
        self.client.close()
        self.cluster.close()

    def track_ratio(self):
        """Return the wall time of a step over that of one in memory."""
        local, lazy = em_step(self.mixture, rows()), em_step(self.mixture, self.X)

        def seconds(step):
            start = time.perf_counter()
            step()
            return time.perf_counter() - start

        return ratio(lambda: seconds(lazy), lambda: seconds(local))

    def time_empty_iteration(self):
        """Time what an iteration costs beside its work."""
        if not hasattr(self, "rows"):
            self.rows = read_rows(self.mixture, self.X, fitted=self.mixture._fitted).rows
        self.rows.map_reduce_weights(lambda start, weights: 0.0)


def track_passes_of_a_fit():
    """Return how often a fit of four iterations reads its rows."""
    read, original = [], DenseRows._read

    def counted(self, span):
        read.append((span.stop - span.start) * (self.n_rows == len(rows())))
        return original(self, span)

    DenseRows._read = counted
    try:
        fitted(rows(), max_iter=4)
    finally:
        DenseRows._read = original
    return sum(read) / len(rows())
