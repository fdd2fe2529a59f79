"""Predictions, many components, two threads and files, beside what they cannot do without.

Processor time of one thread but where threads are what is measured; ratios of times taken in turn.
"""

import os
import subprocess
import sys
import threading
import time
import warnings
from contextlib import ExitStack
from copy import copy
from functools import cache, partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skvmf import VonMisesFisherMixture
from skvmf._engine.rows.parallel import limited_blas

from .fisher_vector import FisherVectorTransformerCounts
from .grammar import DependencyModelLength
from .mixture import (
    SparseGaussianMixtureStep,
    VonMisesFisherMixtureSparseStep,
    VonMisesFisherMixtureStep,
    em_step,
    ratio,
    seconds,
    setup,
    teardown,
)

__all__ = [
    "FitOfAFile",
    "HalfPrecision",
    "ManyComponents",
    "Predict",
    "Threads",
    "setup",
    "teardown",
]


@cache
def clusters(n, d, K):
    """Return float32 rows around K directions, and a fitted mixture of as many components."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((K, d), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    X = 0.4 * rng.standard_normal((n, d), dtype=np.float32)
    X += centres[rng.integers(K, size=n)]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    mixture = VonMisesFisherMixture(K, means_init=centres, max_iter=1, tol=0)
    return X, centres, mixture.fit(X)


def product(X, columns, out):
    """Multiply in pieces, which is faster than all at once."""
    for start in range(0, len(X), 4096):
        np.dot(X[start : start + 4096], columns, out=out[start : start + 4096])


class Predict:
    """Labels, probabilities and log-densities of embeddings, 1,000,000 x 64, 64 components."""

    params = (
        "predict",
        "predict_proba",
        "score_samples",
        "responsibilities",
        "responsibilities, sparse",
    )
    param_names = ("method",)
    timeout = 300

    def setup(self, method):
        self.X, centres, mixture = clusters(1_000_000, 64, 64)
        self.columns = np.ascontiguousarray(centres.T)
        self.out = np.empty((len(self.X), 64), dtype=np.float32)
        name, _, sparse = method.partition(", ")
        alpha = 1.5 if sparse else 1.0
        self.method = getattr(copy(mixture).set_params(entmax_alpha=alpha), name)
        self.method(self.X[:100])

    def time_prediction(self, method):
        self.method(self.X)

    def product(self, method):
        # Pages of new memory cost as much as the product.
        new = method in ("predict_proba", "responsibilities")
        product(self.X, self.columns, np.empty_like(self.out) if new else self.out)

    def track_prediction_over_one_product(self, method):
        one = partial(seconds, self.product, method)
        return ratio(partial(seconds, self.method, self.X), one)


class ManyComponents:
    """Von Mises-Fisher EM with 1,000 and 5,000 components on embeddings of 384 dimensions."""

    params = ([1000, 5000], ["soft", "hard"])
    param_names = ("components", "posterior")
    timeout = 900

    def setup(self, components, posterior):
        self.X, self.centres, mixture = clusters(20_000, 384, components)
        mixture.set_params(temperature=1.0 if posterior == "soft" else 0.0)
        self.step = em_step(mixture, self.X)

    def time_step(self, components, posterior):
        self.step()

    def track_step_over_products(self, components, posterior):
        """Over two products for soft memberships, and over one for hard ones."""
        columns = np.ascontiguousarray(self.centres.T)
        resp = np.empty((4096, components), dtype=np.float32)

        def products():
            total = 0
            for start in range(0, len(self.X), 4096):
                own = self.X[start : start + 4096]
                responsibilities = np.dot(own, columns, out=resp[: len(own)])
                total = total + np.dot(responsibilities.T, own) if posterior == "soft" else 0

        return ratio(partial(seconds, self.step), partial(seconds, products), n=3)


class HalfPrecision:
    """Von Mises-Fisher EM on float16 embeddings, 200,000 x 384, 100 components."""

    params = ("array", "file")
    param_names = ("rows",)
    timeout = 300

    def setup(self, rows):
        X, _, mixture = clusters(200_000, 384, 100)
        half = X.astype(np.float16)
        self.steps = [em_step(mixture, kept(part, rows)) for part in (half, X)]

    def time_step(self, rows):
        self.steps[0]()

    def track_step_over_float32(self, rows):
        half, single = (partial(seconds, step) for step in self.steps)
        return ratio(half, single)


def kept(X, rows):
    """Return rows as they are or as a memory-mapped file."""
    if rows == "array":
        return X
    mapped = np.memmap(f"{X.dtype}.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return np.memmap(mapped.filename, dtype=X.dtype, mode="r", shape=X.shape)


def parallel_work():
    """Return what threads share, by name: a task, its parameters, and the call to be timed."""
    embedded, dense = VonMisesFisherMixtureStep, "200,000 x 384, K=100"
    gaussian, text = SparseGaussianMixtureStep, VonMisesFisherMixtureSparseStep
    kinds = "full float64", "tied float64", "diag float64", "spherical float64", "diag float32"
    return {
        "embeddings, soft": (embedded, (dense, "blurred", "soft"), "time_step"),
        "embeddings, sparse": (embedded, (dense, "blurred", "sparse"), "time_step"),
        "embeddings, hard": (embedded, (dense, "blurred", "hard"), "time_step"),
        "embeddings of 64": (embedded, ("1,000,000 x 64, K=64", "blurred", "soft"), "time_step"),
        "1,000 components": (ManyComponents, (1000, "soft"), "time_step"),
        "texts, float64": (text, ("float64", "soft"), "time_step"),
        "texts, float32": (text, ("float32", "soft"), "time_step"),
        **{f"Gaussian, {kind}": (gaussian, (kind, "soft", 1.0), "time_step") for kind in kinds},
        "predict": (Predict, ("predict",), "time_prediction"),
        "predict_proba": (Predict, ("predict_proba",), "time_prediction"),
        "score_samples": (Predict, ("score_samples",), "time_prediction"),
        "Fisher vectors": (FisherVectorTransformerCounts, ("float64", "means"), "time_transform"),
        "sentences": (DependencyModelLength, (40,), "time_score"),
    }


def call_of(work):
    """Return the call that is timed."""
    task, arguments, call = parallel_work()[work]
    task = task()
    task.setup(*arguments)
    return partial(getattr(task, call), *arguments)


def by_clock(call, n_threads, n_calls=1):
    """Return seconds a call, in the middle of a fit."""
    with threadpool_limits(n_threads), limited_blas():
        call()
        start = time.perf_counter()
        for _ in range(n_calls):
            call()
        return (time.perf_counter() - start) / n_calls


class Threads:
    """Two threads beside one, and beside two processes of one thread each, by the clock."""

    params = tuple(parallel_work())
    param_names = ("work",)
    timeout = 600

    def setup(self, work):
        if (os.cpu_count() or 1) < 2:
            raise NotImplementedError("there is one core")
        self.call = call_of(work)
        self.n_calls = 1 + int(0.2 / by_clock(self.call, 1))

    def track_times_faster_than_one(self, work):
        times = [partial(by_clock, self.call, n_threads, self.n_calls) for n_threads in (1, 2)]
        return ratio(*times, n=9)

    def track_over_two_processes(self, work):
        """Times as much work a second as two processes do, which is what the machine can do."""
        command = [sys.executable, "-m", __name__, work]
        folder = str(Path(__file__).parents[__name__.count(".")])
        env = os.environ | {"PYTHONPATH": os.pathsep.join([folder, *sys.path])}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with ExitStack() as stack:
            pair = [subprocess.Popen(command, env=env, **pipes) for _ in range(2)]
            for process in pair:
                stack.enter_context(process)

            def processes():
                for process in pair:
                    print(self.n_calls, file=process.stdin, flush=True)
                return np.mean([float(process.stdout.readline()) for process in pair]) / 2

            processes()
            figure = ratio(processes, partial(by_clock, self.call, 2, self.n_calls), n=9)
            for process in pair:
                process.stdin.close()
        return figure


class FitOfAFile:
    """A default fit of a memory-mapped array on disk, 400,000 x 128, 20 components."""

    timeout = 300
    shape = 400_000, 128

    def setup_cache(self):
        """Write the file, 205 MB, block by block; asv goes on in the same folder."""
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((20, self.shape[1]), dtype=np.float32)
        with open("rows.bin", "wb") as file:
            for _ in range(self.shape[0] // 20_000):
                X = rng.standard_normal((20_000, self.shape[1]), dtype=np.float32)
                file.write((X + centres[rng.integers(20, size=20_000)]).tobytes())

    def setup(self):
        self.X = np.memmap("rows.bin", dtype=np.float32, mode="r", shape=self.shape)
        self.mixture = VonMisesFisherMixture(20, random_state=0)

    def track_peak_memory_beside_the_file(self):
        """Return MiB that the process holds at most beside what it maps of the file."""
        before, peak, done = own_memory(), [0.0], threading.Event()

        def watch():
            while not done.wait(0.005):
                peak[0] = max(peak[0], own_memory())

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.mixture.fit(self.X)
        done.set()
        watcher.join()
        return peak[0] - before

    track_peak_memory_beside_the_file.unit = "MiB"


def own_memory():
    """Return MiB of memory that is no file's; Linux says."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    call = call_of(sys.argv[1])
    for line in sys.stdin:
        print(by_clock(call, 1, int(line)), flush=True)
