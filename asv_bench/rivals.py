"""Time default fits beside scikit-learn's and others': ``python asv_bench/rivals.py``.

Rows are directions around random centres, as far from them as embeddings are from theirs. Rows,
components and features grow in turn. Each fit runs in a process of its own with one thread, after a
fit of a few rows that compiles. A fit that needs more than a minute is stopped, and its method is
left out of larger fits. Seconds are those of the processor. Figures are kept in
``doc/user_guide/rivals.json``, from which the documentation draws them. It needs ``faiss-cpu``
and ``superkmeans``.
"""

import datetime
import json
import os
import resource
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
CONCENTRATION = 0.75  # per feature: the typical angle to the centre is then 58 degrees
LIMIT = 60  # seconds


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
    """Return the seconds of a fit, and how well its labels agree with the clusters."""
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
    begun = time.process_time()
    limit = int(begun + LIMIT) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    labels = model.fit(X).labels_ if hasattr(model, "labels_") else model.fit_predict(X)
    seconds = time.process_time() - begun
    return {"seconds": round(seconds, 3), "ari": round(adjusted_rand_score(y, labels), 3)}


def measure(method, sizes):
    """Return the figures of a fit in a process of its own, or None if it takes too long."""
    script = str(Path(__file__).resolve())
    environment = os.environ | {
        f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, method, json.dumps(sizes)],
        env=environment,
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
