"""Starts: far seeds, k-means by hard EM, partitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.preprocessing import normalize

from skvmf._engine import initialization as starts
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
    centres = starts.kmeans_plusplus(family, rows, 4, np.random.RandomState(seed))
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
            starts.kmeans_plusplus(family, rows, 6, rng),
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
    stats, about = starts.nearest_partition(family, rows, seeds, max_iter=300)
    theirs = KMeans(5, init=seeds, n_init=1, tol=1e-4, max_iter=300).fit(X)
    means = about.origins + stats.moments[0] / stats.counts[:, None]
    gap = np.abs(means - theirs.cluster_centers_).max()
    assert gap < 0.05 * X.std()
    assert_allclose(np.sort(stats.counts), np.sort(np.bincount(theirs.labels_)), atol=10)


def test_spherical_kmeans_ends_in_a_fixed_point():
    X = normalize(np.random.default_rng(0).normal(size=(400, 4)))
    rows = make_rows(X, None, unit=True)
    family = VonMisesFisher(4)
    stats, _ = starts.nearest_partition(family, rows, X[:3], max_iter=500)
    directions = normalize(stats.moments[0].T)
    labels = (X @ directions.T).argmax(axis=1)
    disagree = np.abs(np.bincount(labels, minlength=3) - stats.counts).sum()
    assert disagree <= 8


def test_partitions_given_either_way_agree():
    X, y, rows, family = plane(weights=np.random.default_rng(0).random(300))
    centre = np.tile(starts.first_row(rows), (4, 1))
    labels = y.astype(np.int32)
    by_label, _ = starts.partition_statistics(
        family, rows, centre, lambda chunk: starts.share_labels(labels, 4, chunk)
    )
    by_share, _ = starts.partition_statistics(
        family, rows, centre, lambda chunk: starts.share_responsibilities(np.eye(4)[y], chunk)
    )
    assert_allclose(by_label.counts, by_share.counts)
    for a, b in zip(by_label.moments, by_share.moments, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)
