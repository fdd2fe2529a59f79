"""Rounds of seeds, merged, find what is there; samples are drawn by weight."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine import overseeding
from skvmf._engine import starts as start
from skvmf._engine.contracts import Params
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.model import FenchelYoungPosterior, Mixture, ModifiedDirichlet
from skvmf._engine.overseeding import Overseeding
from skvmf._engine.rows import make_rows
from skvmf._engine.starts import MergingStart
from skvmf._engine.vonmises_fisher import VonMisesFisher

K, D = 20, 16


def clusters(n=4000, seed=0, concentration=5.0, spread=0.35):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, D))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, size=n, p=rng.dirichlet(np.full(K, concentration)))
    return means[labels] + spread * rng.normal(size=(n, D)) / 2, labels


def run(X, seed=0, weights=None, n_components=K, unit=True):
    rows = make_rows(X, weights, unit=unit, columns=True)
    if unit:
        family = VonMisesFisher(X.shape[1])
    else:
        family = Gaussian(X.shape[1], "full", scale=rows.mean_variance() or 1.0)
    seeds = family.proposal().seeds
    start = Overseeding(seeds, rows, n_components).run(np.random.default_rng(seed))
    return start.params, start.bound


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_found_one_by_one(unit, seed):
    X, labels = clusters(seed=seed)
    params, _bound = run(X, seed, unit=unit)
    assert len(params.weights) == K
    assert_allclose(np.sort(params.weights), np.sort(np.bincount(labels) / 4000), atol=0.01)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("groups", [1, 5])
def test_parts_of_the_rows_have_all_clusters(unit, groups, monkeypatch):
    """Clusters that lie in groups, which parts leave whole, and clusters that do not."""
    monkeypatch.setattr(overseeding, "MANY", K)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(groups, 1, D)) * (groups > 1)
    means = (centres + 0.7 * rng.normal(size=(groups, K // groups, D))).reshape(K, D)
    labels = np.repeat(np.arange(K), 200)
    X = means[labels] + 0.1 * rng.normal(size=(len(labels), D))
    params, bound = run(X, unit=unit, weights=np.resize([1.0, 1.0, 0.0], len(X)))
    assert_allclose(params.weights, 1 / K, atol=0.01)
    monkeypatch.setattr(overseeding, "MANY", K + 1)
    assert bound > run(X, unit=unit, weights=np.resize([1.0, 1.0, 0.0], len(X)))[1] - 0.01


@pytest.mark.slow
def test_a_thousand_clusters_are_found():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(1000, 32))
    labels = rng.integers(1000, size=30_000)
    X = (means[labels] + 0.3 * rng.normal(size=(30_000, 32))).astype(np.float32)
    mixture = VonMisesFisherMixture(1000, concentration_type="tied", random_state=0).fit(X)
    oracle = VonMisesFisherMixture(1000, concentration_type="tied", init_params=labels).fit(X)
    assert adjusted_rand_score(labels, mixture.labels_) > 0.99
    assert mixture.lower_bound_ > oracle.lower_bound_ - 0.02


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


def test_sparse_rows_start_where_dense_ones_do():
    X, _ = clusters(1000)
    X[np.abs(X) < 0.1] = 0
    dense, bound = run(X)
    compressed, other = run(sparse.csr_array(X))
    assert_allclose(other, bound, rtol=1e-10)
    assert_allclose(compressed.weights, dense.weights, rtol=1e-6)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("n_components", [1, 2, 3, 29, 30])
def test_few_rows_for_many_components(unit, n_components):
    X, _ = clusters(30)
    for data in (X, np.repeat(X[:15], 2, axis=0), np.repeat(X[:1], 30, axis=0)):
        params, bound = run(data, n_components=n_components, unit=unit)
        assert len(params.weights) == n_components
        assert_allclose(params.weights.sum(), 1)
        assert np.isfinite(bound)


@pytest.mark.parametrize("weight", [1.0, 0.01])
def test_a_row_alone_is_dropped_before_merging_and_two_are_not(weight, monkeypatch):
    """Five rows that lie alone, and two that lie together, beside two clusters."""
    X = 8 * np.eye(D)[[0] * 100 + [1] * 100 + [2, 2, 3, 4, 5, 6, 7]]
    X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    counts, merge_cost = set(), VonMisesFisher.merge_cost

    def noted(self, stats, components, parts):
        counts.update(stats.counts[parts] / weight)
        return merge_cost(self, stats, components, parts)

    monkeypatch.setattr(VonMisesFisher, "merge_cost", noted)
    run(X, weights=np.full(len(X), weight), n_components=2)
    assert 1.001 < min(counts) < 2.001


@pytest.mark.parametrize("unit", [True, False])
def test_rows_without_weight_are_never_seeds(unit):
    X, _ = clusters(500)
    far = np.vstack([X, 1e6 * np.ones((20, D))])
    weights = np.append(np.ones(500), np.zeros(20))
    _params, bound = run(far, weights=weights, unit=unit)
    _plain, other = run(X, unit=unit)
    assert_allclose(bound, other, atol=0.2)


def test_rows_farther_than_squares_reach_are_seeds_too():
    """1e160 times worse explained than the others, and of next to no weight."""
    X = 1e-30 * np.random.default_rng(0).normal(size=(60, 3))
    X[-1], weights = 1e50, np.append(np.ones(59), 1e-250)
    params, bound = run(X, weights=weights, n_components=3, unit=False)
    assert len(params.weights) == 3
    assert np.isfinite(bound)


def test_rounds_go_on_where_the_background_is_likelier_at_every_row():
    X = np.random.default_rng(0).normal(size=(40, 2))
    mixture = VonMisesFisherMixture(1, background=True, random_state=0).fit(X)
    assert 0.5 < mixture.background_weight_ < 1
    assert np.isfinite(mixture.lower_bound_)


def test_a_callback_stops_the_rounds_whose_bounds_never_fall():
    rows = make_rows(clusters(spread=0.8)[0], None, unit=True)
    overseeding, seen, longer = Overseeding(VonMisesFisher(D).kmeans(), rows, K), [], []

    def watch(n_iter, bounds, params):
        seen.append((n_iter, len(bounds)))
        return n_iter == 1

    overseeding.run(np.random.default_rng(1), watch)
    assert seen == [(0, 1), (1, 2)]

    def compare(n_iter, bounds, params):
        longer.append(bounds[-1])
        stats = rows.map_reduce(partial(overseeding.model.expect, params))
        assert overseeding.model.lower_bound(stats, params) >= bounds[-1] - 1e-9

    overseeding.run(np.random.default_rng(1), compare)
    assert len(longer) > 2
    assert (np.diff(longer) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture])
def test_starts_compete_on_the_sample(mixture, monkeypatch):
    X, _ = clusters(1000, spread=1.0)
    runs, plain = [], Overseeding.run

    def spy(self, rng, watch=None):
        found = plain(self, rng)
        runs.append(found.bound)
        return found

    monkeypatch.setattr(Overseeding, "run", spy)
    mixture(5, n_init=4, init_size=300, random_state=0, max_iter=1, tol=1e9).fit(X)
    assert len(runs) == 4


# Samples.


def drawn(n, size, weights, seed, form=np.asarray):
    rows = make_rows(form(np.ones((n, 2))), weights, unit=False)
    return rows.draw(size, seed)


def test_a_draw_is_without_repetition_and_in_order():
    rows, weights = drawn(10_000, 500, None, 3)
    assert len(rows) == 500
    assert (np.diff(rows) > 0).all()
    assert_allclose(weights, 1)
    again, _ = drawn(10_000, 500, None, 3)
    assert_array_equal(rows, again)
    other, _ = drawn(10_000, 500, None, 4)
    assert not np.array_equal(rows, other)


@pytest.mark.parametrize("size", [100, 1000])
def test_all_rows_are_drawn_where_there_are_no_more(size):
    weights = np.arange(100.0) % 5
    rows, own = drawn(100, size, weights, 0)
    assert_array_equal(rows, np.flatnonzero(weights))
    assert_allclose(own / own[0], weights[rows] / weights[rows[0]])


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


def test_sums_of_one_width_are_not_taken_for_another():
    """A start has four times the components on the same sparse rows, whose sums are kept."""
    X = sparse.random(3000, 30, density=0.2, random_state=0, format="csr")
    rows = make_rows(X, None, unit=True, width=2**15, columns=True)  # several blocks
    assert len(rows._spans) > 5
    family, widths = VonMisesFisher(30), (8, 3, 5)
    for K in widths:
        params = Params.first(np.full(K, 1 / K), family.from_centres(rows.take(np.arange(K))))
        model = Mixture(family, FenchelYoungPosterior(), ModifiedDirichlet())
        stats = rows.map_reduce(partial(model.expect, params))
        assert stats.moments[0].shape == (30, K)


@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture])
def test_a_start_is_shown_before_its_first_round_is_done(mixture, monkeypatch, capsys):
    def interrupted(self, rng, watch=None):
        assert capsys.readouterr().out.startswith("Merging 0: 1000 of 1000 rows, ")
        raise KeyboardInterrupt

    monkeypatch.setattr(Overseeding, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mixture(K, verbose=1).fit(clusters(1000)[0])


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
