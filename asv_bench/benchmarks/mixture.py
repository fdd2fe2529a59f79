"""Single EM steps beside what they cannot do without or scikit-learn's, and memory of fits.

Everything runs on one thread and counts processor time, so that a busy machine disturbs little.
`track_` figures are ratios of times taken in turn.
"""

import time
import warnings
from functools import cache, partial

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.mixture._rows import read_rows

timer = time.process_time

POSTERIORS = {"soft": {}, "hard": {"temperature": 0.0}, "sparse": {"entmax_alpha": 2.0}}
DENSE = {"200,000 x 384, K=100": (200_000, 384, 100), "1,000,000 x 64, K=64": (1_000_000, 64, 64)}
limits = None


def setup(*params):
    global limits
    limits = threadpool_limits(1)
    warnings.simplefilter("ignore", ConvergenceWarning)


def teardown(*params):
    limits.restore_original_limits()


@cache
def embeddings(name, blur):
    """Return float32 rows around K directions, and the directions.

    Clear rows have all but one share below 1e-8, blurred ones have many.
    """
    n, d, K = DENSE[name]
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((K, d), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X *= 0.8 / np.sqrt(d) if blur == "clear" else 0.4
    for start in range(0, n, 10_000):
        rows = X[start : start + 10_000]
        rows += centres[rng.integers(K, size=len(rows))]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return X, centres


@cache
def texts():
    """Return sparse rows of the size of the 20 newsgroups, words as frequent as words are."""
    n, d, size = 18_803, 28_571, 77
    rng = np.random.default_rng(0)
    sizes = np.maximum(1, rng.lognormal(np.log(size) - 0.3, 0.9, n)).astype(int)
    words = (d ** rng.random(sizes.sum())).astype(int) - 1
    counts = (rng.random(sizes.sum()), words, np.concatenate([[0], np.cumsum(sizes)]))
    X = sparse.csr_array(counts, (n, d))
    X.sum_duplicates()
    X.data /= np.repeat(sparse.linalg.norm(X, axis=1), np.diff(X.indptr))
    return X


def em_step(mixture, X):
    """Return a function that takes one EM step at a fitted mixture."""
    rows = read_rows(mixture, X, role="batch", fitted=mixture._fitted).rows
    point = mixture._fitted

    def step():
        return point.maximize(point.expect(rows), rows)

    step()  # compile
    return step


def ratio(numerator, denominator, n=5):
    """Return the median ratio of processor times, each a function that returns its own."""
    return float(np.median([numerator() / denominator() for _ in range(n)]))


def seconds(function, *args):
    start = timer()
    function(*args)
    return timer() - start


def lloyd_seconds(X, n_clusters):
    """Return what an iteration of KMeans takes: ten more against two."""

    def fit(n_iter):
        start = {"init": X[:n_clusters], "n_init": 1}  # poor enough not to converge
        kmeans = KMeans(n_clusters, max_iter=n_iter, tol=0, **start)
        return seconds(kmeans.fit, X)

    return (fit(12) - fit(2)) / 10


class VonMisesFisherMixtureStep:
    """Von Mises-Fisher EM on embeddings."""

    params = (list(DENSE), ["clear", "blurred"], list(POSTERIORS))
    param_names = ("rows", "clusters", "posterior")
    timeout = 300

    def setup(self, rows, clusters, posterior):
        X, centres = embeddings(rows, clusters)
        mixture = VonMisesFisherMixture(
            len(centres), means_init=centres, max_iter=1, tol=0, **POSTERIORS[posterior]
        )
        self.step = em_step(mixture.fit(X), X)

    def time_step(self, rows, clusters, posterior):
        self.step()


class VonMisesFisherMixtureStepRatios:
    """The same beside its two matrix products, and hard EM beside scikit-learn's KMeans."""

    params = (list(DENSE), ["clear", "blurred"])
    param_names = ("rows", "clusters")
    timeout = 900

    def seconds_of_step(self, rows, clusters, posterior):
        task = VonMisesFisherMixtureStep()
        task.setup(rows, clusters, posterior)
        return partial(seconds, task.step)

    def track_soft_step_over_two_products(self, rows, clusters):
        return self.over_two_products(rows, clusters, "soft")

    def track_sparse_step_over_two_products(self, rows, clusters):
        return self.over_two_products(rows, clusters, "sparse")

    def track_hard_step_over_two_products(self, rows, clusters):
        return self.over_two_products(rows, clusters, "hard")

    def over_two_products(self, rows, clusters, posterior):
        X, centres = embeddings(rows, clusters)
        columns = np.ascontiguousarray(centres.T)
        resp = np.empty((len(X), len(centres)), dtype=np.float32)

        def products():
            total = 0
            for start in range(0, len(X), 4096):  # faster than all at once
                own, responsibilities = X[start : start + 4096], resp[start : start + 4096]
                np.dot(own, columns, out=responsibilities)
                total += np.dot(responsibilities.T, own)

        step = self.seconds_of_step(rows, clusters, posterior)
        return ratio(step, partial(seconds, products))

    def track_hard_step_over_kmeans(self, rows, clusters):
        X, centres = embeddings(rows, clusters)
        step = self.seconds_of_step(rows, clusters, "hard")
        return ratio(step, partial(lloyd_seconds, X, len(centres)), n=3)


class VonMisesFisherMixtureSparseStep:
    """Von Mises-Fisher EM on texts: 18,803 x 28,571, 20 components, tied."""

    params = (["float64", "float32"], list(POSTERIORS))
    param_names = ("dtype", "posterior")

    def setup(self, dtype, posterior):
        self.X = texts().astype(dtype)
        rows = np.random.default_rng(0).choice(self.X.shape[0], 20, replace=False)
        self.centres = self.X[rows].toarray()
        mixture = VonMisesFisherMixture(
            20,
            concentration_type="tied",
            means_init=self.centres,
            max_iter=1,
            tol=0,
            **POSTERIORS[posterior],
        )
        self.step = em_step(mixture.fit(self.X), self.X)

    def time_step(self, dtype, posterior):
        self.step()

    def track_step_over_two_products(self, dtype, posterior):
        """Beside SciPy's."""
        columns = np.ascontiguousarray(self.centres.T)
        resp = np.random.default_rng(0).random((self.X.shape[0], 20)).astype(dtype)

        def products():
            return self.X @ columns, self.X.T @ resp

        products()
        return ratio(partial(seconds, self.step), partial(seconds, products), n=15)


class SparseGaussianMixtureStep:
    """Gaussian EM on 100,000 rows of 32 features, 32 components, from overlapping to far apart."""

    params = (
        ["full float64", "tied float64", "diag float64", "spherical float64", "diag float32"],
        ["soft", "sparse"],
        [0.3, 1.0, 100.0],
    )
    param_names = ("covariances", "posterior", "spread")
    timeout = 300

    def setup(self, covariances, posterior, spread):
        covariance_type, dtype = covariances.split()
        rng = np.random.default_rng(0)
        self.centres = spread * rng.standard_normal((32, 32))
        self.X = self.centres[rng.integers(32, size=100_000)] + rng.standard_normal((100_000, 32))
        self.X = self.X.astype(dtype)
        centres = self.centres.astype(dtype)  # means in float64 would slow scikit-learn down
        self.options = {"covariance_type": covariance_type, "means_init": centres}
        mixture = SparseGaussianMixture(
            32,
            weight_concentration_prior=1.0,
            max_iter=2,
            tol=0,
            **self.options,
            **POSTERIORS[posterior],
        )
        self.step = em_step(mixture.fit(self.X), self.X)

    def time_step(self, covariances, posterior, spread):
        self.step()

    def track_times_faster_than_scikit_learn(self, covariances, posterior, spread):
        rival = GaussianMixture(
            32, max_iter=2, tol=0, init_params="random_from_data", **self.options
        ).fit(self.X)

        def their_step():
            _, log_resp = rival._e_step(self.X)
            rival._m_step(self.X, log_resp)

        return ratio(partial(seconds, their_step), partial(seconds, self.step))


class RelativeGMMStep:
    """Steps of Gaussians in order, beside EM without: 50,000 rows of 8 features, 16 components."""

    params = (["full", "diag"], ["ecm", "em"])
    param_names = ("covariances", "solver")

    def setup(self, covariances, solver):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((16, 8))
        self.X = centres[rng.integers(16, size=50_000)] + rng.standard_normal((50_000, 8))
        self.options = {
            "covariance_type": covariances,
            "means_init": centres,
            "weight_concentration_prior": 1.0,
            "max_iter": 2,
            "tol": 0,
        }
        mixture = RelativeGMM(16, solver=solver, **self.options)
        self.step = em_step(mixture.fit(self.X), self.X)

    def time_step(self, covariances, solver):
        self.step()

    def track_step_over_unordered(self, covariances, solver):
        plain = SparseGaussianMixture(16, **self.options)
        other = em_step(plain.fit(self.X), self.X)
        return ratio(partial(seconds, self.step), partial(seconds, other))


class MissingValuesStep:
    """Steps on rows with missing values, beside whole rows: 100,000 x 20, 10 components."""

    params = (["full", "diag"], ["a tenth", "five patterns"])
    param_names = ("covariances", "missing")

    def setup(self, covariances, missing):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((10, 20))
        X = centres[rng.integers(10, size=100_000)] + rng.standard_normal((100_000, 20))
        mixture = SparseGaussianMixture(
            10,
            covariance_type=covariances,
            means_init=centres,
            missing_values="marginal",
            max_iter=1,
            tol=0,
        ).fit(X)
        self.whole = em_step(mixture, X)
        gone = rng.random(X.shape) < 0.1
        if missing == "five patterns":
            gone = gone[rng.integers(5, size=len(X))]
        self.step = em_step(mixture, np.where(gone, np.nan, X))

    def time_step(self, covariances, missing):
        self.step()

    def track_step_over_whole_rows(self, covariances, missing):
        return ratio(partial(seconds, self.step), partial(seconds, self.whole))


class FitMemory:
    """Peaks of whole fits; what "data" has is not the fit's."""

    params = ([*DENSE, "texts"], ["data", "random", "kmeans"])
    param_names = ("rows", "start")
    timeout = 300

    def setup(self, rows, start):
        X, K = (texts(), 20) if rows == "texts" else (embeddings(rows, "clear")[0], DENSE[rows][2])
        self.mixture = VonMisesFisherMixture(K, random_state=0, max_iter=2, tol=0)
        self.mixture.set_params(init_params=start if start != "data" else "random")
        self.mixture.fit(X[: 2 * K])  # compile
        self.X = X[: 2 * K] if start == "data" else X

    def peakmem_fit(self, rows, start):
        self.mixture.fit(self.X)


class OneRow:
    """Predictions of one row, as a service makes them."""

    params = (
        [VonMisesFisherMixture, SparseGaussianMixture],
        ["predict", "predict_proba", "score_samples"],
    )
    param_names = ("mixture", "method")

    def setup(self, mixture, method):
        X = np.random.default_rng(0).standard_normal((2000, 64))
        fitted = mixture(5, random_state=0, max_iter=5).fit(X)
        self.ask = partial(getattr(fitted, method), X[:1])
        self.ask()  # compile

    def time_one_row(self, mixture, method):
        self.ask()
