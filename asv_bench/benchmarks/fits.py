"""Whole fits with default parameters: how long they take, and how good what they find is.

Rows come from known components. `track_bound_below_truth` is how many nats a row the fit's bound
is below that of a fit from the true labels: 0 is the optimum, as far as one knows. Beside the
mixtures of skvmf stand scikit-learn's and, where faiss is installed, its k-means.
"""

import time
import warnings
from functools import cache, partial

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

timer = time.process_time
limits = None

DIRECTIONS = {
    "60,000 x 384, K=100": (60_000, 384, 100, (0.35, 0.35)),
    "60,000 x 384, K=100, concentrations differ": (60_000, 384, 100, (0.28, 0.52)),
    "200,000 x 64, K=64": (200_000, 64, 64, (0.6, 0.6)),
}
BLOBS = {
    "100,000 x 32, K=32": (100_000, 32, 32, 0.9, (1.0, 1.0)),
    "100,000 x 32, K=32, sizes differ": (100_000, 32, 32, 0.9, (0.25, 2.5)),
    "100,000 x 2, K=25": (100_000, 2, 25, 5.0, (1.0, 1.0)),
    "100,000 x 2, K=25, sizes differ": (100_000, 2, 25, 5.0, (0.25, 2.5)),
}
SMALL = {"iris": (load_iris, 3), "wine": (load_wine, 3), "breast cancer": (load_breast_cancer, 2)}
SMALL_FITS = {
    "default": SparseGaussianMixture,
    "k-means start": partial(SparseGaussianMixture, init_params="kmeans"),
    "scikit-learn": GaussianMixture,
    "scikit-learn, ten starts": partial(GaussianMixture, n_init=10),
}


def setup(*params):
    global limits
    limits = threadpool_limits(1)
    warnings.simplefilter("ignore", ConvergenceWarning)


def teardown(*params):
    limits.restore_original_limits()


@cache
def directions(name):
    """Return float32 unit rows around random directions, and their labels."""
    n, d, K, lengths = DIRECTIONS[name]
    rng = np.random.default_rng(0)
    means = rng.standard_normal((K, d))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    own = rng.uniform(*lengths, K)[labels]
    noise = np.sqrt((1 - own**2) / d).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32) * noise[:, None]
    X += own[:, None] * means[labels]
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), labels


@cache
def blobs(name, covariance_type):
    """Return rows of Gaussians of random shapes that overlap, and their labels."""
    n, d, K, spread, sizes = BLOBS[name]
    rng = np.random.default_rng(0)
    labels = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    means, X = spread * rng.standard_normal((K, d)), np.empty((n, d))
    for k in range(K):
        own = labels == k
        axes = np.eye(d)
        if covariance_type == "full":
            axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        scales = rng.uniform(0.3, 1.7, d) * rng.uniform(*sizes)
        X[own] = means[k] + (rng.standard_normal((own.sum(), d)) * scales) @ axes.T
    return X, labels


class FaissKMeans:
    """faiss's k-means, with the face of an estimator."""

    def __init__(self, n_clusters, **options):
        self.n_clusters, self.options = n_clusters, options

    def fit_predict(self, X):
        """Return the labels."""
        import faiss

        X = np.ascontiguousarray(X, dtype=np.float32)
        kmeans = faiss.Kmeans(X.shape[1], self.n_clusters, seed=0, **self.options)
        kmeans.train(X)
        return kmeans.index.search(X, 1)[1][:, 0]


def gaussian(**options):
    """Return what makes a Gaussian mixture whose bound is a mean log-likelihood."""
    return lambda K, kind, **start: SparseGaussianMixture(
        K, covariance_type=kind, weight_concentration_prior=1.0, **{**options, **start}
    )


MIXTURES = {
    "default": VonMisesFisherMixture,
    "from k-means": lambda K, **start: VonMisesFisherMixture(
        K, **{"init_params": "kmeans"} | start
    ),
}
GAUSSIANS = {
    "default": gaussian(random_state=0),
    "from k-means": gaussian(random_state=0, init_params="kmeans"),
    "GaussianMixture": lambda K, kind: GaussianMixture(K, covariance_type=kind, random_state=0),
}
PARTITIONS = {
    "KMeans": lambda K: KMeans(K, n_init=1, random_state=0),
    "MiniBatchKMeans": lambda K: MiniBatchKMeans(K, n_init=1, random_state=0),
    "faiss": FaissKMeans,
}


class VonMisesFisherMixtureFit:
    """Von Mises-Fisher mixtures of embeddings, beside k-means."""

    params = (list(DIRECTIONS), [*MIXTURES, *PARTITIONS])
    param_names = ("rows", "estimator")
    timeout = 900
    number = repeat = 1
    warmup_time = 0

    def setup(self, rows, estimator):
        self.X, self.labels = directions(rows)
        K = DIRECTIONS[rows][2]
        if estimator in MIXTURES:
            self.make = lambda **start: MIXTURES[estimator](K, random_state=0, **start)
            self.make().set_params(n_components=2).fit(self.X[:100])  # compile
        else:
            self.make = lambda: PARTITIONS[estimator](K)
            skip_if_missing(estimator)

    def time_fit(self, rows, estimator):
        self.make().fit_predict(self.X)

    def track_adjusted_rand_score(self, rows, estimator):
        return adjusted_rand_score(self.labels, self.make().fit_predict(self.X))

    def track_bound_below_truth(self, rows, estimator):
        if estimator not in MIXTURES:
            return np.nan
        truth = self.make(init_params=self.labels).fit(self.X).lower_bound_
        return truth - self.make().fit(self.X).lower_bound_


class SparseGaussianMixtureFit:
    """Gaussian mixtures of blobs that overlap, beside scikit-learn's and k-means."""

    params = (list(BLOBS), ["full", "diag"], [*GAUSSIANS, *PARTITIONS])
    param_names = ("rows", "covariances", "estimator")
    timeout = 900
    number = repeat = 1
    warmup_time = 0

    def setup(self, rows, covariances, estimator):
        self.X, self.labels = blobs(rows, covariances)
        self.K = BLOBS[rows][2]
        if estimator in GAUSSIANS:
            self.make = lambda: GAUSSIANS[estimator](self.K, covariances)
            self.make().set_params(n_components=2).fit(self.X[:1000])  # compile
        else:
            self.make = lambda: PARTITIONS[estimator](self.K)
            skip_if_missing(estimator)

    def time_fit(self, rows, covariances, estimator):
        self.make().fit_predict(self.X)

    def track_adjusted_rand_score(self, rows, covariances, estimator):
        return adjusted_rand_score(self.labels, self.make().fit_predict(self.X))

    def track_bound_below_truth(self, rows, covariances, estimator):
        if estimator not in GAUSSIANS:
            return np.nan
        truth = GAUSSIANS["default"](self.K, covariances, init_params=self.labels).fit(self.X)
        return truth.lower_bound_ - self.make().fit(self.X).lower_bound_


class SmallData:
    """Gaussian mixtures of a few hundred rows, beside scikit-learn's of one and ten starts."""

    params = (list(SMALL), ["full", "diag"], list(SMALL_FITS))
    param_names = ("rows", "covariances", "estimator")

    def setup(self, rows, covariances, estimator):
        load, K = SMALL[rows]
        self.X = StandardScaler().fit_transform(load().data)
        self.mixture = SMALL_FITS[estimator](K, covariance_type=covariances, random_state=0)
        self.mixture.fit(self.X)  # compile

    def time_fit(self, rows, covariances, estimator):
        self.mixture.fit(self.X)

    def time_predict_one_row(self, rows, covariances, estimator):
        self.mixture.predict(self.X[:1])

    def track_log_likelihood(self, rows, covariances, estimator):
        return self.mixture.score(self.X)


class PartialFit:
    """One pass of `partial_fit` over embeddings in random order, beside MiniBatchKMeans."""

    params = (list(DIRECTIONS)[:1], ["VonMisesFisherMixture", "MiniBatchKMeans"])
    param_names = ("rows", "estimator")
    timeout = 300
    number = repeat = 1
    warmup_time = 0
    batch = 4096

    def setup(self, rows, estimator):
        self.X, self.labels = directions(rows)
        K = DIRECTIONS[rows][2]
        if estimator == "MiniBatchKMeans":
            self.make = lambda: MiniBatchKMeans(K, n_init=1, random_state=0)
        else:
            self.make = lambda: VonMisesFisherMixture(K, random_state=0)
            self.make().set_params(n_components=2).partial_fit(self.X[:100])  # compile

    def one_pass(self):
        """Return the estimator after all batches."""
        estimator = self.make()
        for start in range(0, len(self.X), self.batch):
            estimator.partial_fit(self.X[start : start + self.batch])
        return estimator

    def time_pass(self, rows, estimator):
        self.one_pass()

    def track_adjusted_rand_score(self, rows, estimator):
        return adjusted_rand_score(self.labels, self.one_pass().predict(self.X))


class StudentTMixtureFit:
    """Three clusters of 200 rows in the plane, and outliers anywhere among them."""

    params = ([20, 60, 150, 300], ["default", "random rows, ten starts"])
    param_names = ("outliers", "start")
    timeout = 300
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])

    def setup(self, outliers, start):
        options = {} if start == "default" else {"init_params": "random_from_data", "n_init": 10}
        self.mixture = StudentTMixture(3, random_state=0, **options)

    def track_data_sets_of_ten_with_all_clusters_found(self, outliers, start):
        found = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            clusters = np.repeat(self.centres, 200, axis=0) + rng.normal(size=(600, 2))
            X = np.vstack([clusters, rng.uniform(-20, 28, size=(outliers, 2))])
            means = self.mixture.fit(X).means_
            gaps = np.linalg.norm(means[:, None] - self.centres, axis=2)
            found += int(gaps.min(axis=0).max() < 0.3)
        return found


def skip_if_missing(estimator):
    """Tell asv that there is nothing to measure where faiss is not installed."""
    if estimator == "faiss":
        try:
            import faiss  # noqa: F401
        except ImportError:
            raise NotImplementedError from None
