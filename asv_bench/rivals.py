"""Time default fits beside scikit-learn's and others': ``python asv_bench/rivals.py``.

Rows are directions around random centres, as far from them as embeddings are from theirs. Rows,
components and features grow in turn. Each fit runs three times, once if it takes long, in a process
of its own, after a fit of a few rows that compiles: with one thread, and with all. A fit that needs
more than a minute is stopped, and its method is left out of larger fits. Seconds are those of the
processor; with all threads those of the clock are kept, too. Figures are kept in
``doc/user_guide/rivals.json``, from which the documentation draws them. It needs ``faiss-cpu``
and ``superkmeans``, and a machine without other work.
"""

import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "doc" / "user_guide" / "rivals.json"
METHODS = (
    "VonMisesFisherMixture",
    "KMeans",
    "MiniBatchKMeans",
    "FaissKMeans",
    "SuperKMeans",
    "GaussianMixture",
    "HDBSCAN",
)
BASE = {"rows": 20_000, "components": 20, "features": 64}
SWEEPS = {
    "rows": (1_000, 3_000, 10_000, 30_000, 100_000),
    "components": (5, 10, 20, 50, 100),
    "features": (16, 32, 64, 128, 256),
}
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
CONCENTRATION = 0.75  # per feature: the typical angle to the centre is then 58 degrees
LIMIT = 60  # seconds of one processor
RUNS, LONG = 3, 5  # a fit of more seconds runs once


class FaissKMeans:
    """Spherical k-means of FAISS, 25 iterations on all rows, with the face of an estimator."""

    def __init__(self, n_clusters, random_state):
        self.n_clusters, self.seed = n_clusters, random_state

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import faiss

        X = X.astype("float32")
        points = {"min_points_per_centroid": 1, "max_points_per_centroid": len(X)}
        kmeans = faiss.Kmeans(
            X.shape[1], self.n_clusters, niter=25, spherical=True, seed=self.seed, **points
        )
        kmeans.train(X)
        self.labels_ = kmeans.index.search(X, 1)[1][:, 0]
        return self


class SuperKMeans:
    """Spherical k-means of SuperKMeans, as that of FAISS: 25 iterations on all rows."""

    def __init__(self, n_clusters, random_state):
        self.n_clusters, self.seed = n_clusters, random_state

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import superkmeans

        X = X.astype("float32")
        all_rows = {"sampling_fraction": 1.0, "max_points_per_cluster": len(X)}
        kmeans = superkmeans.SuperKMeans(
            *(self.n_clusters, X.shape[1]),
            **{"hierarchical": False, "iters": 25, "angular": True, "seed": self.seed},
            **{"n_threads": int(os.environ.get("OMP_NUM_THREADS", 0)), **all_rows},
        )
        self.labels_ = kmeans.assign(X, kmeans.train(X))
        return self


def fit(method, rows, components, features):
    """Return the seconds of each run of a fit, and how well its labels agree with the clusters.

    The seconds of a run are those of the processor and those of the clock.
    """
    import sklearn.cluster
    import sklearn.mixture
    from sklearn.metrics import adjusted_rand_score

    import skvmf
    from skvmf.datasets import make_vonmises_fisher_blobs

    X, y = make_vonmises_fisher_blobs(
        rows, features, centers=components, concentration=CONCENTRATION * features, random_state=0
    )
    homes = (skvmf, sklearn.cluster, sklearn.mixture, sys.modules[__name__])
    estimator = getattr(next(home for home in homes if hasattr(home, method)), method)
    settings = {} if method == "HDBSCAN" else {"n_components": components, "random_state": 0}
    if method.endswith("KMeans"):
        settings["n_clusters"] = settings.pop("n_components")
    model = estimator(**settings)
    model.fit(X[: 2 * components + 10])
    runs = []
    while len(runs) < RUNS and (not runs or runs[-1][0] < LONG):
        limit = int(time.process_time() + LIMIT * processors()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        begun, started = time.process_time(), time.perf_counter()
        labels = model.fit(X).labels_ if hasattr(model, "labels_") else model.fit_predict(X)
        ended, stopped = time.process_time(), time.perf_counter()
        runs.append((round(ended - begun, 3), round(stopped - started, 3)))
    return {"runs": runs, "ari": round(adjusted_rand_score(y, labels), 3)}


def processors():
    """Return how many threads a fit may use here."""
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))


def measure(method, sizes):
    """Return the figures of a fit with one thread and with all, or None if it takes too long."""
    alone = run(method, sizes, {f"{name}_NUM_THREADS": "1" for name in THREADS})
    if alone is None:
        return None
    together = run(method, sizes, {})
    return {
        "seconds": statistics.median(seconds for seconds, _ in alone["runs"]),
        "ari": alone["ari"],
        "runs": [seconds for seconds, _ in alone["runs"]],
        "all_threads": together and together["runs"],
    }


def run(method, sizes, threads):
    """Return what `fit` returns in a process of its own, or None if it was stopped."""
    script = str(Path(__file__).resolve())
    others = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, method, json.dumps(sizes)],
        env=others | threads,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode < 0:  # stopped at the limit
        return None
    done.check_returncode()
    return json.loads(done.stdout)


def main():
    from speed import machine

    known, fits = {}, []
    for sweep, values in SWEEPS.items():
        for method in METHODS:
            for value in values:
                sizes = BASE | {sweep: value}
                key = (method, *sizes.values())
                if key not in known:
                    known[key] = measure(method, sizes)
                    print(*key, known[key], flush=True)
                fits.append({"sweep": sweep, "method": method, **sizes, **(known[key] or {})})
                if known[key] is None:
                    break
    record = {
        "date": datetime.date.today().isoformat(),
        **machine(),
        "concentration_per_feature": CONCENTRATION,
        "limit": LIMIT,
        "base": BASE,
    }
    lines = ",\n".join(f"  {json.dumps(fit)}" for fit in fits)
    head = json.dumps(record, indent=1).removesuffix("\n}")
    RESULTS.write_text(f'{head},\n "fits": [\n{lines}\n ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(fit(sys.argv[1], **json.loads(sys.argv[2]))))
    else:
        main()
