"""Small data: whole fits beside scikit-learn's, in time and in what they reach."""

import time
from functools import partial
from itertools import product

import numpy as np
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture

COMPONENTS = {"iris": 3, "wine": 3, "breast_cancer": 2, "digits": 10}
OURS = "SparseGaussianMixture"
THEIRS = "GaussianMixture"
TEN = f"{THEIRS}, n_init=10"
FROM_KMEANS = f"{OURS}, init_params='kmeans'"


def rows_of(name):
    """Return standardized rows; of digits, which have constant features, principal components."""
    X = getattr(datasets, f"load_{name}")().data
    return PCA(32).fit_transform(X) if name == "digits" else StandardScaler().fit_transform(X)


def methods(K, covariance_type, seed):
    """Return estimators by name, that of k-means first."""
    options = {"covariance_type": covariance_type, "random_state": seed}
    return {
        "KMeans, n_init=10": KMeans(K, n_init=10, random_state=seed),
        THEIRS: GaussianMixture(K, **options),
        TEN: GaussianMixture(K, n_init=10, **options),
        FROM_KMEANS: SparseGaussianMixture(K, init_params="kmeans", **options),
        OURS: SparseGaussianMixture(K, **options),
    }


def timed(estimator, X):
    """Return the milliseconds of the processor that a fit takes."""
    start = time.process_time()
    estimator.fit(X)
    return 1e3 * (time.process_time() - start)


@item("guide.small", "small data beside scikit-learn", small={"seeds": 2, "rows": 60})
def small_data(setting, seeds=10, rows=None):
    """Time default fits on one thread, and take the mean log-likelihoods that they reach."""
    names = list(methods(2, "full", 0))
    times = Table("Milliseconds of a fit", ["data", *names], 1)
    reached = Table("Log-likelihood of a row", ["data", *names[1:]], 2)
    with threadpool_limits(1):
        for data, kind in product(COMPONENTS, ("full", "diag")):
            X = rows_of(data)[:rows]
            make = partial(methods, COMPONENTS[data], kind)
            for estimator in make(0).values():  # which compiles, and fills caches
                estimator.fit(X)
            fits = [
                {name: (own, timed(own, X)) for name, own in make(seed).items()}
                for seed in range(seeds)
            ]
            line = f"{data.replace('_', ' ')}, {kind}"
            times.add(line, *(float(np.median([fit[name][1] for fit in fits])) for name in names))
            reached.add(line, *([fit[name][0].score(X) for fit in fits] for name in names[1:]))
    return Record(
        "Standardized features, of digits 32 principal components; 3 components for iris and wine, "
        "2 for breast cancer, 10 for digits. One thread, after a first fit; times are medians over "
        "the seeds, and methods took turns.",
        f"0 to {seeds - 1}",
        [times, reached],
    )
