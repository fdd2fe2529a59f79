"""Posteriors on the simplex: the passes of an expectation step, and the public maps."""

from pathlib import Path
from time import process_time

import numpy as np

from skvmf._kernels.rows import add_labelled_rows, add_sparse_responsibilities, pack_rows
from skvmf._kernels.simplex import argmax_rows, entmax_rows, softmax_rows, work_space
from skvmf.distributions import modified_dirichlet
from skvmf.distributions.simplex import entmax

TABLES = Path(__file__).parents[2] / "tests" / "reference"


class EntmaxTile:
    """One tile of scores in cache, as the engine passes it."""

    params = ([(1024, 100, "float32"), (1024, 64, "float32"), (4096, 20, "float64")],)
    param_names = ("tile",)

    def setup(self, tile):
        n, K, dtype = tile
        rng = np.random.default_rng(0)
        self.source = (3 * rng.standard_normal((n, K))).astype(dtype)
        self.scores, self.labels = self.source.copy(), np.empty(n, dtype=np.int32)
        slopes, offsets = np.ones(n, dtype=dtype), np.zeros(K, dtype=dtype)
        ones, counts, values = np.ones(n), np.zeros(K), np.empty(n)
        self.rest = (slopes, offsets, ones, ones, counts, values)
        self.to_label = (slopes, offsets, ones, counts, values, self.labels)
        self.work = work_space(self.scores)
        self.time_softmax(tile)
        self.time_argmax(tile)
        self.time_entmax_three_halves(tile)

    def time_copy(self, tile):
        """What every other time here contains."""
        np.copyto(self.scores, self.source)

    def time_softmax(self, tile):
        np.copyto(self.scores, self.source)
        softmax_rows(self.scores, *self.rest, self.work)

    def time_argmax(self, tile):
        argmax_rows(self.source, *self.to_label, self.work)

    def time_entmax_three_halves(self, tile):
        np.copyto(self.scores, self.source)
        entmax_rows(self.scores, *self.rest, 1.5)

    def time_sparsemax(self, tile):
        np.copyto(self.scores, self.source)
        entmax_rows(self.scores, *self.rest, 2.0)


class MomentSums:
    """Moments from labels and from sparse shares."""

    params = ([64, 384],)
    param_names = ("d",)

    def setup(self, d):
        rng = np.random.default_rng(0)
        n, K = 1024, 100
        self.X = rng.standard_normal((n, d)).astype(np.float32)
        self.labels, self.ones = rng.integers(0, K, n).astype(np.int32), np.ones(n)
        self.resp = entmax((3 * rng.standard_normal((n, K))).astype(np.float32), 2.0)
        room = np.count_nonzero(self.resp) + 1
        columns, values = np.empty(room, np.int32), np.empty(room, np.float32)
        self.packed = np.empty(n, np.int64), columns, values
        self.out = np.zeros((K, d))
        self.time_pack(d)
        self.time_add_sparse_responsibilities(d)
        self.time_add_labelled(d)

    def time_add_labelled(self, d):
        add_labelled_rows(self.X, self.labels, self.ones, self.out)

    def time_pack(self, d):
        pack_rows(self.resp, *self.packed)

    def time_add_sparse_responsibilities(self, d):
        add_sparse_responsibilities(self.X, self.resp, self.out)


class Entmax:
    """entmax of a table of scores, allocation included."""

    params = ([(100_000, 64), (100_000, 8), (10_000, 1000)], [3.0, 1.0], [1.0, 1.25, 1.5, 2.0])
    param_names = ("shape", "spread", "alpha")

    def setup(self, shape, spread, alpha):
        self.scores = spread * np.random.default_rng(0).standard_normal(shape)
        entmax(self.scores[:10], alpha)

    def time_entmax(self, shape, spread, alpha):
        entmax(self.scores, alpha)

    def track_ratio_to_copy(self, shape, spread, alpha):
        """Times as long as ``scores.copy()``, medians of runs taken in turn."""

        def seconds(call):
            start = process_time()
            call()
            return process_time() - start

        calls = (lambda: entmax(self.scores, alpha), self.scores.copy)
        runs = [[seconds(call) for call in calls] for _ in range(9)]
        ours, copies = np.median(runs, axis=0)
        return ours / copies


class EntmaxDigits:
    """Largest absolute error of entmax."""

    params = ([1.05, 1.25, 1.5, 2.0, 3.0, 4.0],)
    param_names = ("alpha",)

    def track_entmax(self, alpha):
        table = dict(np.load(TABLES / "entmax_table.npz"))
        spans = [
            slice(*table["offsets"][i : i + 2]) for i in np.flatnonzero(table["alpha"] == alpha)
        ]
        return max(np.abs(entmax(table["z"][s], alpha) - table["p"][s]).max() for s in spans)


class ModifiedDirichletMode:
    """The two ways to the mode."""

    params = (["rounds", "sorting"], [5, 1000])
    param_names = ("method", "n")

    def setup(self, method, n):
        self.alpha = np.random.default_rng(0).uniform(-20, 50, n)
        modified_dirichlet.mode(self.alpha, 1e-5, method)

    def time_mode(self, method, n):
        modified_dirichlet.mode(self.alpha, 1e-5, method)

    def track_digits(self, method, n):
        table = dict(np.load(TABLES / "modified_dirichlet_table.npz"))
        worst = 0.0
        for i, floor in enumerate(table["floor"]):
            s = slice(*table["offsets"][i : i + 2])
            x = modified_dirichlet.mode(table["alpha"][s], floor, method)
            worst = max(worst, np.abs(x / table["x"][s] - 1).max())
        return worst
