"""k-means of FAISS and of SuperKMeans, as estimators: spherical, 25 iterations.

They take all rows, unless FAISS may sample as many per centre as by default.

Both need dense rows of single precision: sparse ones are copied.
"""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


class FaissKMeans(BaseEstimator):
    """FAISS's."""

    def __init__(self, n_clusters=8, random_state=0, samples=False):
        self.n_clusters, self.random_state = n_clusters, random_state
        self.samples = samples

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import faiss

        options = {"niter": 25, "spherical": True, "seed": self.random_state}
        if not self.samples:
            options |= {"min_points_per_centroid": 1, "max_points_per_centroid": X.shape[0]}
        self.kmeans_ = faiss.Kmeans(X.shape[1], self.n_clusters, **options)
        self.kmeans_.train(_dense(X))
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        """Return the nearest centre of each row."""
        return self.kmeans_.index.search(_dense(X), 1)[1][:, 0]


class SuperKMeans(BaseEstimator):
    """SuperKMeans', on one thread."""

    max_features = 16_384

    def __init__(self, n_clusters=8, random_state=0):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import superkmeans

        options = {"iters": 25, "angular": True, "seed": self.random_state, "n_threads": 1}
        options |= {"sampling_fraction": 1.0, "max_points_per_cluster": X.shape[0]}
        size = self.n_clusters, X.shape[1]
        self.kmeans_ = superkmeans.SuperKMeans(*size, hierarchical=False, **options)
        self.centres_ = self.kmeans_.train(_dense(X))
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        """Return the nearest centre of each row."""
        return self.kmeans_.assign(_dense(X), self.centres_)


def _dense(X):
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float32)
