"""Rounds of seeds, merged, find what is there; samples are drawn by weight."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine.families.vonmises_fisher import VonMisesFisher
from skvmf._engine.rows.sources import make_rows
from skvmf._engine.search import merging_start as start
from skvmf._engine.search import overseeding, regions
from skvmf._engine.search.halves import halves
from skvmf._engine.search.outliers import inliers
from skvmf._engine.search.sample import FoundStart, FreePoint, Sample, best_of

from ..hooks import merging_starts

K, D = 20, 16


def clusters(n=4000, seed=0, concentration=5.0, spread=0.35):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, D))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, size=n, p=rng.dirichlet(np.full(K, concentration)))
    return means[labels] + spread * rng.normal(size=(n, D)) / 2, labels


@pytest.mark.parametrize(
    ("kind", "groups", "exact"),
    [
        *((None, 1, True), (None, 5, True), ("full", 5, True), ("diag", 1, True)),
        *(("tied", 5, True), (None, 5, False), ("diag", 5, False)),  # with truncated steps
    ],
)
def test_parts_of_the_rows_have_all_clusters(kind, groups, exact, monkeypatch):
    """Clusters that lie in groups, which parts leave whole, and clusters that do not."""
    mixture = (
        partial(SparseGaussianMixture, covariance_type=kind) if kind else VonMisesFisherMixture
    )
    K, rng = 40, np.random.default_rng(0)
    centres = rng.normal(size=(groups, 1, D)) * (groups > 1)
    means = (centres + 0.7 * rng.normal(size=(groups, K // groups, D))).reshape(K, D)
    labels = np.repeat(np.arange(K), 90)
    X = means[labels] + 0.1 * rng.normal(size=(len(labels), D))
    weights = np.resize([1.0, 1.0, 0.0], len(X))
    monkeypatch.setattr(overseeding, "MIN_COMPONENTS_OF_MANY", K)
    monkeypatch.setattr("skvmf._engine.em.truncated.MIN_ROWS", 10**6 if exact else 20)
    monkeypatch.setattr(start, "GROUP_SIZE", 12)
    fitted = mixture(K, random_state=0).fit(X, sample_weight=weights)
    oracle = mixture(K, init_params=labels).fit(X, sample_weight=weights)
    assert adjusted_rand_score(labels, fitted.labels_) > 0.99
    assert fitted.lower_bound_ > oracle.lower_bound_ - 0.01


def test_groups_of_components_give_and_take_some(monkeypatch):
    """Where simple components are one too many in a group, and one too few in another."""
    K, rng = 60, np.random.default_rng(8)
    means = rng.uniform(-6, 6, size=(K, D))
    labels = rng.choice(K, size=90 * K, p=rng.dirichlet(np.full(K, 2.0)))
    X = rng.normal(size=(len(labels), D)) * np.exp(rng.uniform(-0.7, 0.7, (K, D)))[labels]
    X += means[labels]
    monkeypatch.setattr(overseeding, "MIN_COMPONENTS_OF_MANY", K)
    monkeypatch.setattr(regions, "N_COMPARED", 100)
    monkeypatch.setattr(start, "GROUP_SIZE", 12)
    mixture = partial(SparseGaussianMixture, K, covariance_type="diag", max_iter=5)
    oracle = mixture(init_params=labels).fit(X)
    assert mixture(random_state=0).fit(X).lower_bound_ > oracle.lower_bound_ - 0.01


@pytest.mark.parametrize("seed", range(3))
def test_many_weak_clusters_are_found(seed, monkeypatch):
    """Rows are far from the centre of their cluster, and many are nearer to rows of others."""
    K, d, length, n = 100, 128, 0.35, 10_000
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, d))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.integers(K, size=n)
    X = length * means[labels] + np.sqrt((1 - length**2) / d) * rng.standard_normal((n, d))
    monkeypatch.setattr(overseeding, "MIN_COMPONENTS_OF_MANY", K)
    monkeypatch.setattr(overseeding, "MIN_FIRST_ROWS", 1000)
    monkeypatch.setattr(regions, "MIN_KEPT_FRACTION", 1)  # no parts
    fitted = VonMisesFisherMixture(K, random_state=0).fit(X)
    oracle = VonMisesFisherMixture(K, means_init=means).fit(X)
    assert fitted.lower_bound_ > oracle.lower_bound_ - 0.01


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
        fitted = mixture(K, random_state=seed, **options).fit(X)
        assert fitted.lower_bound_ > oracle.lower_bound_ - 0.01
        assert adjusted_rand_score(labels, fitted.labels_) > 0.98


def test_very_unequal_clusters_are_kept_apart():
    """Without what a cut gains by chance, large clusters would be cut and small ones joined."""
    X, labels = clusters(20_000, concentration=0.5)
    fitted = VonMisesFisherMixture(K, random_state=0).fit(X)
    assert adjusted_rand_score(labels, fitted.labels_) > 0.98


def test_rounds_go_on_where_the_background_is_likelier_at_every_row():
    X = np.random.default_rng(0).normal(size=(40, 2))
    mixture = VonMisesFisherMixture(1, background=True, random_state=0).fit(X)
    assert 0.5 < mixture.background_weight_ < 1
    assert np.isfinite(mixture.lower_bound_)


# Samples.


def test_sums_over_a_draw_estimate_sums_over_all():
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=2000) ** 2
    values = rng.normal(size=2000) + weights
    truth = weights @ values / weights.sum()
    rows, results = make_rows(np.ones((2000, 2)), weights, unit=False), []
    for seed in range(300):
        drawn, drawn_weights = rows.draw(200, seed)
        results.append(drawn_weights @ values[drawn] / drawn_weights.sum())
    error = np.std(results) / np.sqrt(len(results))
    assert abs(np.mean(results) - truth) < 4 * error + 0.01 * abs(truth)


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
    monkeypatch.setattr("skvmf._engine.search.starts._SINGLE_PRECISION_PRODUCTS", 1)
    with merging_starts() as begun:
        fit = VonMisesFisherMixture(K, random_state=0).fit(kind(X))
    assert [rows.dtype for rows, _result in begun] == [np.float32]
    assert_allclose(fit.lower_bound_, expected.lower_bound_, rtol=1e-6)
    assert adjusted_rand_score(fit.labels_, expected.labels_) == 1


@pytest.mark.parametrize("gap", [1e-2, 3e-4])
def test_directions_at_the_edge_of_single_precision_are_told_apart(gap, monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    X = 1 + gap * (np.eye(3)[labels] + 0.1 * rng.normal(size=(400, 3)))
    monkeypatch.setattr("skvmf._engine.search.starts._SINGLE_PRECISION_PRODUCTS", 1)
    fit = VonMisesFisherMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(labels, fit.labels_) == 1


# Which rows of a sample lie far from all others.


def near(X, weights=None):
    return inliers(Sample(make_rows(X, weights, unit=False)))


def groups(n=3000):
    rng = np.random.default_rng(0)
    return 10 * rng.normal(size=(5, 4))[rng.integers(5, size=n)] + rng.normal(size=(n, 4))


def first_moved(n, factor, offset=0.0):
    """Return groups of which the first rows lie far off."""
    X = groups()
    X[:n] = offset + factor * np.random.default_rng(1).normal(size=(n, 4))
    return X


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("far", [3e2, 1e4, 1e9])
@pytest.mark.parametrize("n_far", [1, 20])
def test_rows_far_from_all_others_are_left_out(n_far, far, offset):
    assert_array_equal(near(first_moved(n_far, far) + offset), np.arange(n_far, 3000))


def test_one_row_far_from_few_others_is_left_out():
    X = groups(100)
    X[0] = 1e4
    assert_array_equal(near(X), np.arange(1, 100))


NORMAL = np.random.default_rng(0).normal(size=(3000, 30))
STAYING = {
    "a small cluster however far": (first_moved(40, 1.0, 1e4), 1),
    "many that are far": (first_moved(300, 1e4), 1),
    **{f"of scale {scale}": (groups() * scale, 1) for scale in (1e-300, 1e-3, 1e99)},
    "equal": (np.ones((50, 3)), 1),
    "one": (np.ones((1, 3)), 1),
    "few": (np.arange(6.0).reshape(2, 3), 1),
    **{f"normal in {d}": (NORMAL[:, :d], 0.998) for d in (1, 2, 30)},
    **{f"uniform in {d}": (stats.norm.cdf(NORMAL[:, :d]), 0.998) for d in (1, 2, 30)},
    **{
        f"of two spreads in {d}": (NORMAL[:, :d] * np.resize([20, 1, 1, 1], (3000, 1)), 0.998)
        for d in (1, 2, 30)
    },
}


@pytest.mark.parametrize(("X", "share"), STAYING.values(), ids=STAYING)
def test_ordinary_rows_stay(X, share):
    assert len(near(X)) >= share * len(X)


def test_rows_without_weight_are_no_company():
    X, weights = first_moved(100, 1.0, 1e4), np.ones(3000)
    weights[1:100] = 0
    assert_array_equal(near(X, weights), np.arange(100, 3000))


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_only_clusters_that_vary_beyond_chance_are_cut_in_two(as_rows):
    """The first label has two clusters, at right angles, the second one, and the third no rows."""
    rng = np.random.default_rng(0)
    centres = np.linalg.qr(rng.normal(size=(64, 3)))[0].T
    labels = rng.permutation(np.repeat([0, 1, 2], 400))
    X = 0.3 * centres[labels] + rng.normal(size=(1200, 64)) * np.sqrt((1 - 0.3**2) / 64)
    label = (labels == 2).astype(np.int32)
    means = np.array([centres[0] + centres[1], centres[2], centres[0]])
    middles = halves(Sample(make_rows(as_rows(X), None, unit=True)), label, means, rng)
    assert middles.shape == (2, 64)
    units = middles / np.linalg.norm(middles, axis=1, keepdims=True)
    assert_allclose(np.sort((units @ centres[:2].T).max(axis=1)), 1, atol=0.1)
    assert set((units @ centres[:2].T).argmax(axis=1)) == {0, 1}


def test_cuts_do_not_depend_on_the_order_of_features():
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(300, 12)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[:, 3:] *= rng.choice([0, 1], 300)[:, np.newaxis]  # rows of two kinds
    label = np.zeros(300, np.int32)
    order = rng.permutation(12)
    first, second = (
        halves(Sample(make_rows(rows, None, unit=True)), label, rows[:1], np.random.default_rng(0))
        for rows in (X, X[:, order])
    )
    assert len(first) == 2
    assert_allclose(first[:, order], second, atol=1e-9)


@pytest.mark.parametrize("by", [1e-9, -1e-9])
def test_of_starts_that_are_as_good_but_for_rounding_the_first_is_taken(by):
    point = FreePoint.of(VonMisesFisher(2), np.ones(1), VonMisesFisher(2).at_points(np.eye(1, 2)))
    starts = [FoundStart(point, bound) for bound in (-4.0, -3.0, -3.0 + by)]
    assert best_of(starts) is starts[1]
    assert best_of(starts, lambda start: replace(start, bound=by)) is starts[0]
