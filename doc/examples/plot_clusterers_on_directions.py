"""
=================================
Clustering directions: comparison
=================================

Six data sets on the sphere, as rows, are clustered by nine methods, as columns, with default
parameters. Those that need a number of clusters are given the true one. Numbers in the corners are
the agreement with the true clusters (ARI) and seconds of the processor.
"""

import time

import faiss
import matplotlib.pyplot as plt
import numpy as np
import superkmeans
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath

# %%
# Data sets
# ---------
# Round clusters, clusters of different breadth and of different sizes, clusters in uniform noise,
# two bands, and round clusters in a hundred dimensions. Noise has the label -1.

CENTRES = np.array([[3, 0, 1], [1, 3, -1], [-3, 2, 1], [-2, -3, -1], [2, -3, 2]])


def blobs(n_samples, concentration, centers=CENTRES, random_state=0):
    return make_vonmises_fisher_blobs(
        n_samples, centers=centers, concentration=concentration, random_state=random_state
    )


def in_noise():
    X, y = blobs(650, 100)
    noise, _ = blobs(350, 0, CENTRES[:1], 1)
    return np.vstack([X, noise]), np.append(y, np.full(350, -1))


def bands():
    rng = np.random.default_rng(0)
    turns = rng.uniform(-np.pi, np.pi, 1000)
    heights = np.repeat([0.45, -0.45], 500) + rng.normal(0, 0.06, 1000)
    X = np.column_stack([np.cos(turns), np.sin(turns), np.tan(heights)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat([0, 1], 500)


SETS = {
    "round": blobs(1000, 25),
    "different\nbreadth": blobs(1000, [3, 20, 100, 200, 400]),
    "different\nsizes": blobs([650, 160, 90, 60, 40], 20),
    "in noise": in_noise(),
    "bands": bands(),
    "100\ndimensions": make_vonmises_fisher_blobs(
        1000, 100, centers=4, concentration=75, random_state=0
    ),
}

# %%
# Methods
# -------
# ``ComponentPath`` and ``HDBSCAN`` find the number of clusters. ``background=True`` and ``HDBSCAN``
# can leave rows out, which are grey. FAISS and SuperKMeans run 25 iterations of spherical k-means.


class FAISS:
    def __init__(self, K):
        self.K = K

    def fit_predict(self, X):
        kmeans = faiss.Kmeans(X.shape[1], self.K, niter=25, spherical=True)
        kmeans.cp.min_points_per_centroid, kmeans.cp.max_points_per_centroid = 1, len(X)
        kmeans.train(X.astype(np.float32))
        return kmeans.assign(X.astype(np.float32))[1]


class SuperKMeans:
    def __init__(self, K):
        self.K = K

    def fit_predict(self, X):
        options = {"iters": 25, "angular": True, "hierarchical": False, "n_threads": 1}
        options |= {"sampling_fraction": 1.0, "max_points_per_cluster": len(X)}
        kmeans = superkmeans.SuperKMeans(self.K, X.shape[1], **options)
        return kmeans.assign(X.astype(np.float32), kmeans.train(X.astype(np.float32)))


def methods(K):
    mixture = VonMisesFisherMixture(K, random_state=0)
    return {
        "KMeans": KMeans(K, random_state=0),
        "FAISS": FAISS(K),
        "SuperKMeans": SuperKMeans(K),
        "GaussianMixture": GaussianMixture(K, random_state=0),
        "Bayesian\nGaussianMixture": BayesianGaussianMixture(n_components=K, random_state=0),
        "HDBSCAN": HDBSCAN(copy=True),
        "VonMisesFisher\nMixture": mixture,
        "the same,\nbackground=True": VonMisesFisherMixture(K, background=True, random_state=0),
        "ComponentPath": ComponentPath(VonMisesFisherMixture(random_state=0), max_components=20),
    }


def labels_of(model, X):
    if hasattr(model, "fit_predict"):
        return model.fit_predict(X)
    return model.fit(X).labels_


# %%
# The picture
# -----------
# Maps show the whole sphere (Mollweide projection); the last data set is projected to the three
# dimensions in which its centres differ most. A cluster has the colour of the true cluster that it
# shares most rows with.


def on_the_map(X, y):
    if X.shape[1] > 3:
        means = [X[y == k].mean(axis=0) for k in np.unique(y)]
        X = X @ np.linalg.svd(means)[2][:3].T
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.arctan2(X[:, 1], X[:, 0]), np.arcsin(X[:, 2].clip(-1, 1))


def colours(labels, y):
    names, numbers = np.unique(labels, return_inverse=True)
    truth, cluster = linear_sum_assignment(contingency_matrix(y, labels), maximize=True)
    colour = np.full(len(names), -1)
    colour[cluster] = truth - (y.min() < 0)
    left = colour < 0
    colour[left] = colour.max() + 1 + np.arange(left.sum())
    return np.where(names[numbers] < 0, "0.7", np.char.add("C", colour[numbers].astype(str)))


for estimator in methods(2).values():  # so that compiling is not timed
    labels_of(estimator, SETS["bands"][0])

figure, axes = plt.subplots(
    len(SETS),
    len(methods(2)),
    figsize=(12, 5.6),
    layout="constrained",
    subplot_kw={"projection": "mollweide"},
)
for method, ax in zip(methods(2), axes[0], strict=True):
    ax.set_title(method, fontsize=9)
for (name, (X, y)), panels in zip(SETS.items(), axes, strict=True):
    panels[0].set_ylabel(name, fontsize=9)
    longitude, latitude = on_the_map(X, y)
    models = methods(len(set(y) - {-1})).values()
    for model, ax in zip(models, panels, strict=True):
        begun = time.process_time()
        labels = labels_of(model, X)
        seconds = time.process_time() - begun
        ax.scatter(longitude, latitude, s=2, c=colours(labels, y), linewidths=0)
        ax.set(xticks=[], yticks=[])
        corner = {"transform": ax.transAxes, "fontsize": 8, "va": "bottom"}
        ax.text(0, -0.1, f"{max(0, adjusted_rand_score(y, labels)):.2f}", **corner, weight="bold")
        ax.text(1, -0.1, f"{seconds:.2f} s", **corner, ha="right")
plt.show()
