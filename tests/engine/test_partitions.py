"""Starts: far seeds, k-means by hard EM, partitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine import partitions as kmeans
from skvmf._engine import partitions as starts
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.rows import make_rows
from skvmf._engine.vonmises_fisher import VonMisesFisher


def plane(n=300, centers=4, weights=None):
    X, y = make_blobs(n, 2, centers=centers, cluster_std=0.3, random_state=0)
    rows = make_rows(X, weights, unit=False)
    return X, y, rows, Gaussian(2, "full", scale=rows.mean_variance())


@pytest.mark.parametrize("seed", range(5))
def test_seeds_of_separated_clusters_are_one_of_each(seed):
    X, y, rows, family = plane()
    centres = kmeans.kmeans_plusplus(family, rows, 4, np.random.RandomState(seed))
    nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=0)
    assert_array_equal(X[nearest], centres)
    assert sorted(y[nearest]) == [0, 1, 2, 3]


def test_rows_without_weight_are_never_drawn():
    X, _ = make_blobs(300, 2, centers=4, random_state=0)
    weights = (np.arange(300) < 20).astype(float)
    rows = make_rows(X, weights, unit=False)
    family = Gaussian(2, "full", scale=rows.mean_variance())
    for seed in range(20):
        rng = np.random.RandomState(seed)
        for centres in [
            kmeans.kmeans_plusplus(family, rows, 6, rng),
            starts.random_rows(rows, 6, rng),
        ]:
            assert all((X[:20] == centre).all(axis=1).any() for centre in centres)


def test_random_rows_are_distinct_while_there_are_any():
    X = np.repeat(np.arange(5.0)[:, None], 40, axis=0)
    rows = make_rows(X, None, unit=False)
    for seed in range(10):
        drawn = starts.random_rows(rows, 5, np.random.RandomState(seed))
        assert_array_equal(np.sort(drawn[:, 0]), np.arange(5))
    assert starts.random_rows(rows, 8, np.random.RandomState(0)).shape == (8, 1)


def test_kmeans_is_that_of_scikit_learn():
    X, _ = make_blobs(500, 3, centers=5, cluster_std=3, random_state=1)
    rows = make_rows(X, None, unit=False)
    family = Gaussian(3, "full", scale=rows.mean_variance())
    seeds = X[:5]
    stats, about = kmeans.kmeans_start(family, rows, seeds, max_iter=300).partition(family, rows)
    theirs = KMeans(5, init=seeds, n_init=1, tol=1e-4, max_iter=300).fit(X)
    means = about.origins + stats.moments[0] / stats.counts[:, None]
    gap = np.abs(means - theirs.cluster_centers_).max()
    assert gap < 0.05 * X.std()
    assert_allclose(np.sort(stats.counts), np.sort(np.bincount(theirs.labels_)), atol=10)


def test_spherical_kmeans_ends_in_a_fixed_point():
    X = normalize(np.random.default_rng(0).normal(size=(400, 4)))
    rows = make_rows(X, None, unit=True)
    family = VonMisesFisher(4)
    stats, _ = kmeans.kmeans_start(family, rows, X[:3], max_iter=500).partition(family, rows)
    directions = normalize(stats.moments[0].T)
    labels = (X @ directions.T).argmax(axis=1)
    disagree = np.abs(np.bincount(labels, minlength=3) - stats.counts).sum()
    assert disagree <= 8


def test_partitions_given_either_way_agree():
    _X, y, rows, family = plane(weights=np.random.default_rng(0).random(300))
    centre = np.tile(rows.first_row, (4, 1))
    labels = y.astype(np.int32)
    by_label, _ = starts.partition_statistics(
        family, rows, centre, lambda block: starts.assign_labels(labels, 4, block)
    )
    by_share, _ = starts.partition_statistics(
        family, rows, centre, lambda block: starts.assign_responsibilities(np.eye(4)[y], block)
    )
    assert_allclose(by_label.counts, by_share.counts)
    for a, b in zip(by_label.moments, by_share.moments, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("partition", ["kmeans", "k-means++"])
@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture])
def test_kmeans_starts_on_a_sample_where_rows_are_many(mixture, partition, monkeypatch):
    X, y = make_blobs(3000, 4, centers=5, cluster_std=0.2, random_state=3)
    seen = []
    plain = kmeans.kmeans_plusplus

    def spy(family, rows, *others):
        seen.append(rows.n_rows)
        return plain(family, rows, *others)

    monkeypatch.setattr(kmeans, "kmeans_plusplus", spy)
    for init_size in (200, 3000, None, 1):
        fitted = mixture(
            5, init_params=partition, init_size=init_size, max_iter=0, random_state=0
        ).fit(X)
        assert_allclose(fitted.weights_.sum(), 1)
        if init_size == 200:
            assert adjusted_rand_score(y, fitted.labels_) > 0.99
            counts = np.bincount(fitted.labels_, minlength=5)
            assert_allclose(fitted.weights_, counts / 3000, atol=0.01)  # of all rows
    assert seen == [200, 3000, 3000, 5]


def test_a_sample_of_rows_with_weights_is_drawn_by_them():
    X, y = make_blobs(3000, 4, centers=5, cluster_std=0.2, random_state=3)
    weights = (y < 3).astype(float)
    fitted = SparseGaussianMixture(
        3, init_params="kmeans", init_size=100, max_iter=0, random_state=0
    ).fit(X, sample_weight=weights)
    assert adjusted_rand_score(y[y < 3], fitted.labels_[y < 3]) == 1
