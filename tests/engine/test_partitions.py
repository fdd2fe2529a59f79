"""Starts: far seeds, k-means by hard EM, partitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine import partitions as kmeans


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
