"""Rounds of seeds, merged, find what is there; samples are drawn by weight."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine import starts as start
from skvmf._engine.rows import make_rows
from skvmf._engine.starts import MergingStart

K, D = 20, 16


def clusters(n=4000, seed=0, concentration=5.0, spread=0.35):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, D))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, size=n, p=rng.dirichlet(np.full(K, concentration)))
    return means[labels] + spread * rng.normal(size=(n, D)) / 2, labels


@pytest.mark.slow
@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture, RelativeGMM])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_default_fit_reaches_the_oracle(mixture, dtype):
    X, labels = clusters()
    X = X.astype(dtype)
    options = {} if mixture is VonMisesFisherMixture else {"covariance_type": "spherical"}
    options |= {"weight_concentration_prior": 1.0}
    oracle = mixture(K, init_params=labels, **options).fit(X)
    for seed in range(3):
        found = mixture(K, random_state=seed, **options).fit(X)
        assert found.lower_bound_ > oracle.lower_bound_ - 0.01
        assert adjusted_rand_score(labels, found.labels_) > 0.98


def test_very_unequal_clusters_are_kept_apart():
    """Without what a cut gains by chance, large clusters would be cut and small ones joined."""
    X, labels = clusters(20_000, concentration=0.5)
    found = VonMisesFisherMixture(K, random_state=0).fit(X)
    assert adjusted_rand_score(labels, found.labels_) > 0.98


def test_rounds_go_on_where_the_background_is_likelier_at_every_row():
    X = np.random.default_rng(0).normal(size=(40, 2))
    mixture = VonMisesFisherMixture(1, background=True, random_state=0).fit(X)
    assert 0.5 < mixture.background_weight_ < 1
    assert np.isfinite(mixture.lower_bound_)


# Samples.


def drawn(n, size, weights, seed, form=np.asarray):
    rows = make_rows(form(np.ones((n, 2))), weights, unit=False)
    return rows.draw(size, seed)


def test_sums_over_a_draw_estimate_sums_over_all():
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=2000) ** 2
    values = rng.normal(size=2000) + weights
    truth = weights @ values / weights.sum()
    found = []
    for seed in range(300):
        rows, own = drawn(2000, 200, weights, seed)
        found.append(own @ values[rows] / own.sum())
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 4 * error + 0.01 * abs(truth)


@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture])
def test_starts_on_the_sample_are_one_stage(mixture, capsys):
    mixture(4, n_init=3, random_state=0, verbose=1, max_iter=1, tol=1e9).fit(clusters(1000)[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Merging 0: 1000 of 1000 rows, 16 components merged into 4"
    assert all(line.startswith("  Iteration 0: ") for line in lines[1:4])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_large_samples_of_directions_start_in_single_precision(kind, monkeypatch):
    """With the same fit in the end, and rows that single precision could not hold before."""
    X, _labels = clusters(1000)
    X[np.abs(X) < 0.1] = 0
    X[:300] *= 1e-80
    X[300:600] *= 1e80
    X[-1] = 0
    expected = VonMisesFisherMixture(K, random_state=0).fit(kind(X))
    seen, run = [], MergingStart.run

    def noted(self, *args, **options):
        seen.append(self.rows.dtype)
        return run(self, *args, **options)

    monkeypatch.setattr(MergingStart, "run", noted)
    monkeypatch.setattr(start, "_SINGLE_PRECISION_PRODUCTS", 1)
    fit = VonMisesFisherMixture(K, random_state=0).fit(kind(X))
    assert seen == [np.float32]
    assert_allclose(fit.lower_bound_, expected.lower_bound_, rtol=1e-6)
    assert adjusted_rand_score(fit.labels_, expected.labels_) == 1


@pytest.mark.parametrize("gap", [1e-2, 3e-4])
def test_directions_at_the_edge_of_single_precision_are_told_apart(gap, monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    X = 1 + gap * (np.eye(3)[labels] + 0.1 * rng.normal(size=(400, 3)))
    monkeypatch.setattr(start, "_SINGLE_PRECISION_PRODUCTS", 1)
    fit = VonMisesFisherMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(labels, fit.labels_) == 1
