"""k-means of FAISS and of SuperKMeans, as estimators: spherical, 25 iterations on all rows."""

import numpy as np
from sklearn.base import BaseEstimator


class FaissKMeans(BaseEstimator):
    """FAISS's."""

    def __init__(self, n_clusters=8, random_state=0):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import faiss

        options = {"niter": 25, "spherical": True, "seed": self.random_state}
        options |= {"min_points_per_centroid": 1, "max_points_per_centroid": len(X)}
        self.kmeans_ = faiss.Kmeans(X.shape[1], self.n_clusters, **options)
        self.kmeans_.train(np.ascontiguousarray(X, dtype=np.float32))
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        """Return the nearest centre of each row."""
        return self.kmeans_.index.search(np.ascontiguousarray(X, dtype=np.float32), 1)[1][:, 0]


class SuperKMeans(BaseEstimator):
    """SuperKMeans', on one thread."""

    def __init__(self, n_clusters=8, random_state=0):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X):
        """Find the centres, and the nearest one of each row."""
        import superkmeans

        options = {"iters": 25, "angular": True, "seed": self.random_state, "n_threads": 1}
        options |= {"sampling_fraction": 1.0, "max_points_per_cluster": len(X)}
        size = self.n_clusters, X.shape[1]
        self.kmeans_ = superkmeans.SuperKMeans(*size, hierarchical=False, **options)
        self.centres_ = self.kmeans_.train(np.ascontiguousarray(X, dtype=np.float32))
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        """Return the nearest centre of each row."""
        return self.kmeans_.assign(np.ascontiguousarray(X, dtype=np.float32), self.centres_)
