"""Fits of a thousand components and more, beside k-means of vector databases.

Each fit runs once, on one thread: `track_seconds` is its CPU time, `track_cosine` the mean cosine
of rows and the mean direction of their cluster, `track_adjusted_rand_score` by the true clusters.
Steps and predictions are compared with the one product of matrices that they need.
"""

import time
import warnings
from functools import cache, partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skvmf import ComponentPath, VonMisesFisherMixture

from .fits import PARTITIONS, FaissKMeans
from .mixture import em_step, ratio, seconds

# Rows, features, components, length of a mean among the rows; components in each group of means.
DATA = {
    "100,000 x 384, K=1,000, isotropic": (100_000, 384, 1000, 0.4, 1),
    "300,000 x 128, K=5,000, isotropic": (300_000, 128, 5000, 0.5, 1),
    "100,000 x 128, K=2,000, groups of 20": (100_000, 128, 2000, 0.5, 20),
    "100,000 x 128, K=5,000, groups of 50": (100_000, 128, 5000, 0.5, 50),
}


@cache
def directions(name):
    """Return float32 unit rows around directions, which lie in groups, and their labels."""
    n, d, K, length, group = DATA[name]
    rng = np.random.default_rng(0)
    means = rng.standard_normal((K // group, 1, d)) * (group > 1)
    means = (means + 0.7 * rng.standard_normal((K // group, group, d))).reshape(K, d)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    X = rng.standard_normal((n, d), dtype=np.float32) * np.float32(np.sqrt((1 - length**2) / d))
    X += length * means[labels].astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


def mixture(**options):
    """Return a function that labels rows by a mixture of K components."""
    return lambda X, K: (
        VonMisesFisherMixture(K, concentration_type="tied", random_state=0, **options)
        .fit(X)
        .labels_
    )


def faiss_kmeans(X, K):
    """Label rows by spherical k-means of FAISS, 25 iterations on all rows."""
    options = {"niter": 25, "spherical": True, "max_points_per_centroid": len(X)}
    return FaissKMeans(K, **options).fit_predict(X)


def super_kmeans(**options):
    """Return a function that labels rows by SuperKMeans."""

    def label(X, K):
        from superkmeans import SuperKMeans

        kmeans = SuperKMeans(
            K, X.shape[1], angular=True, sampling_fraction=1.0, n_threads=1, seed=0, **options
        )
        return kmeans.assign(X, kmeans.train(X))

    return label


FITS = {
    "skvmf": mixture(),
    "skvmf, max_iter=1": mixture(max_iter=1),
    "FAISS": faiss_kmeans,
    "SuperKMeans": super_kmeans(hierarchical=False, early_termination=False, iters=25),
    "SuperKMeans, hierarchical": super_kmeans(hierarchical=True, iters_refinement=5),
    "MiniBatchKMeans": lambda X, K: PARTITIONS["MiniBatchKMeans"](K).fit_predict(X),
}


class Fits:
    """Fits beside rivals."""

    params = (list(DATA), list(FITS))
    param_names = ("rows", "estimator")
    timeout = 3600
    number = repeat = 1
    warmup_time = 0

    def setup_cache(self):
        """Return CPU seconds, labels and the mean cosine of each fit."""
        warnings.simplefilter("ignore", ConvergenceWarning)
        with threadpool_limits(1):
            return {(rows, name): _fitted(rows, name) for rows in DATA for name in FITS}

    setup_cache.timeout = 7200

    def track_seconds(self, results, rows, estimator):
        return results[rows, estimator][0]

    def track_adjusted_rand_score(self, results, rows, estimator):
        return results[rows, estimator][1]

    def track_cosine(self, results, rows, estimator):
        return results[rows, estimator][2]


def _fitted(rows, name):
    X, truth = directions(rows)
    try:
        FITS[name](X[:2000], 2)  # compile
        began = time.process_time()
        labels = FITS[name](X, DATA[rows][2])
    except ImportError:  # of rivals that are not installed
        return np.nan, np.nan, np.nan
    seconds = time.process_time() - began
    sums = np.zeros((DATA[rows][2], X.shape[1]))
    np.add.at(sums, labels, X)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    cosine = np.einsum("nd,nd->n", X, sums[labels]).mean()
    return seconds, adjusted_rand_score(truth, labels), cosine


class Steps:
    """A step and a prediction, in products of the rows and the directions."""

    params = (1000, 2000, 10_000)
    param_names = ("n_components",)
    timeout = 900
    number = repeat = 1
    warmup_time = 0

    def setup(self, K):
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = directions("300,000 x 128, K=5,000, isotropic")[0][:60_000]
        rng = np.random.default_rng(0)
        means = self.X[rng.choice(len(self.X), K, replace=False)]
        mixture = VonMisesFisherMixture(
            K, concentration_type="tied", means_init=means, max_iter=2, tol=0
        ).fit(self.X)
        self.step, self.predict = em_step(mixture, self.X), partial(mixture.predict, self.X)
        self.product = partial(np.dot, self.X, means.T)

    def track_step(self, K):
        with threadpool_limits(1):
            return ratio(partial(seconds, self.step), partial(seconds, self.product))

    def track_predict(self, K):
        with threadpool_limits(1):
            return ratio(partial(seconds, self.predict), partial(seconds, self.product))


class Path:
    """A path from many components down to one."""

    timeout = 3600
    number = repeat = 1
    warmup_time = 0

    def setup(self):
        self.X, _ = directions("100,000 x 128, K=5,000, groups of 50")
        self.path = ComponentPath(
            VonMisesFisherMixture(concentration_type="tied", random_state=0, max_iter=1),
            max_components=5000,
        )

    def time_fit(self):
        self.path.fit(self.X)

    def peakmem_fit(self):
        self.path.fit(self.X)
