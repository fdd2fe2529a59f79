"""The dual of limits on sizes against linear programs that SciPy solves, and its bound."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine.em.size_limits import N_CANDIDATES, Candidates, SizeLimits, ascend, move_rows
from skvmf._engine.families.family import Scores
from skvmf._engine.rows.copies import heaviest_row
from skvmf._engine.rows.sources import make_rows

CASES = [(60, 5, 2, 8, 15), (60, 5, 2, 12, 12), (300, 12, 4, 20, 30), (600, 20, 6, 30, 30)]


def scores_of(n, K, d, seed):
    """Return squared distances from unequal clusters, as scores (n, K)."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, d))
    X = centres[rng.choice(K, n, p=rng.dirichlet(np.ones(K)))] + 0.5 * rng.normal(size=(n, d))
    return -2 * ((X[:, None] - centres) ** 2).sum(axis=-1)


def candidates_of(scores, weights=None):
    n, K = scores.shape
    weights = np.ones(n) if weights is None else weights
    return Candidates.best(Scores(scores, np.zeros(K)), np.zeros(K), weights)


def limits_of(n, least, most):
    return SizeLimits(least, most, tolerance=max(0.005 * n, 1.0))


def linear_program(scores, weights, least, most):
    """Return the largest weighted sum of scores if components have so much weight."""
    n, K = scores.shape
    one_each = sparse.kron(sparse.identity(n), np.ones((1, K)))
    sizes = sparse.csr_array(np.kron(weights[None], np.eye(K)))
    solved = linprog(
        -(weights[:, None] * scores).ravel(),
        A_ub=sparse.vstack([sizes, -sizes]),
        b_ub=np.repeat([most, -least], K),
        A_eq=one_each,
        b_eq=np.ones(n),
        bounds=(0, 1),
    )
    assert solved.success
    return -solved.fun


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "K", "d", "least", "most"), CASES)
def test_labels_are_nearly_the_best_within_the_limits(n, K, d, least, most, seed):
    scores = scores_of(n, K, d, seed)
    candidates = candidates_of(scores)
    limits = limits_of(n, least, most)
    offsets = ascend(candidates, limits, np.zeros(K), 0.0, exact=True)
    labels = candidates.labels(offsets)
    labels = move_rows(labels, candidates.scores_of(labels), candidates, limits)
    sizes = np.bincount(labels, minlength=K)
    assert sizes.min() >= least
    assert sizes.max() <= most
    best = linear_program(scores, np.ones(n), least, most)
    reached = scores[np.arange(n), labels].sum()
    assert best - 0.005 * abs(best) <= reached <= best + 1e-4 * abs(best)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_soft_counts_reach_the_saddle(temperature):
    scores = scores_of(400, 8, 3, seed=1)
    limits = limits_of(400, 35, 60)
    candidates = candidates_of(scores)
    offsets = ascend(candidates, limits, np.zeros(8), temperature, exact=True)
    counts = softmax((scores - offsets) / temperature, axis=1).sum(axis=0)
    assert limits.outside(counts) <= limits.tolerance
    assert_allclose(candidates.counts(offsets, temperature), counts, rtol=1e-4)
    # Complementary slackness: where there is a price, the limit is reached.
    assert (np.abs(counts - 60)[offsets > 0] < 1).all()
    assert (np.abs(counts - 35)[offsets < 0] < 1).all()
    # The Lagrangian is least there: it is convex in the offsets.
    rng = np.random.default_rng(0)

    def dual(offsets):
        values = temperature * logsumexp((scores - offsets) / temperature, axis=1)
        return values.sum() + limits.value(offsets)

    for _ in range(20):
        assert dual(offsets) <= dual(offsets + rng.normal(0, 0.5, 8)) + 0.5


def test_an_offset_is_the_price_of_a_place():
    scores = scores_of(300, 5, 3, seed=2)
    n, K = scores.shape
    limits = limits_of(n, 0, 70)
    offsets = ascend(candidates_of(scores), limits, np.zeros(K), 0.0, exact=True)
    assert (offsets > 0).any()
    before = linear_program(scores, np.ones(n), 0, 70)
    gained = linear_program(scores, np.ones(n), 0, 71) - before
    assert gained <= offsets.sum() * (1 + 1e-6) + 1e-6
    lost = before - linear_program(scores, np.ones(n), 0, 69)
    assert lost >= offsets.sum() * (1 - 1e-6) - 1e-6


@pytest.mark.parametrize("offsets", [[0.3, -0.4, 0.0, 0.1, 0.0], [2.0, 0.0, -1.0, 0.0, 1.0]])
@pytest.mark.parametrize(
    "mixture",
    [
        VonMisesFisherMixture(5),
        VonMisesFisherMixture(5, concentration_type="tied", temperature=3.0),
        VonMisesFisherMixture(5, temperature=0),
        VonMisesFisherMixture(5, weight_concentration_prior=2.0, concentration_prior=1.0),
        SparseGaussianMixture(5, reg_covar=0),
        SparseGaussianMixture(5, covariance_type="diag", reg_covar=0),
        SparseGaussianMixture(5, covariance_type="tied", reg_covar=0),
    ],
)
def test_em_never_lowers_the_bound_of_fixed_offsets(mixture, offsets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) + 3 * np.eye(5, 4)[rng.integers(5, size=400)]
    rows = make_rows(X, rng.uniform(0.5, 2, 400), unit=isinstance(mixture, VonMisesFisherMixture))
    mixture.set_params(max_iter=0, random_state=0, init_params="kmeans").fit(X)
    point = mixture._fitted
    point = replace(point, mixture=replace(point.mixture, size_limits=limits_of(400, 60, 100)))
    point = point.at(replace(point.params, offsets=np.array(offsets)))
    gains = []
    for _ in range(12):
        stats = point.expect(rows)
        after = point.maximize(stats, rows)
        if point.comparable(after):  # no empty component was moved
            gains.append(after.bound(after.expect(rows)) - point.bound(stats))
        point = after
    assert len(gains) >= 8
    assert min(gains) >= -1e-9
    assert max(gains) > 1e-3


def test_no_offsets_where_no_limit_binds():
    scores = scores_of(100, 4, 2, seed=0)
    offsets = ascend(candidates_of(scores), limits_of(100, 0, 100), np.zeros(4), 1.0)
    assert_array_equal(offsets, 0)


def test_offsets_return_to_zero_where_limits_bind_no_more():
    scores = scores_of(100, 4, 2, seed=0)
    far = np.array([3.0, -3.0, 0.5, 0.0])
    offsets = ascend(candidates_of(scores), limits_of(100, 0, 100), far, 1.0, exact=True)
    assert_allclose(offsets, 0, atol=1e-12)


def test_weights_of_whole_numbers_fit():
    scores = scores_of(300, 6, 3, seed=3)
    weights = np.random.default_rng(0).integers(1, 6, 300).astype(float)
    mean = weights.sum() / 6
    limits = SizeLimits(np.floor(0.9 * mean), np.ceil(1.1 * mean), 5.0)
    candidates = candidates_of(scores, weights)
    offsets = ascend(candidates, limits, np.zeros(6), 0.0, exact=True)
    labels = candidates.labels(offsets)
    labels = move_rows(labels, candidates.scores_of(labels), candidates, limits)
    assert limits.kept(np.bincount(labels, weights, 6))
    best = linear_program(scores, weights, limits.least, limits.most)
    assert weights @ scores[np.arange(300), labels] >= best - 0.005 * abs(best)


def test_moves_are_those_that_lose_least():
    scores = np.array([[0.0, -1.0, -9.0], [0.0, -2.0, -9.0], [0.0, -3.0, -9.0], [-1.0, 0.0, -5.0]])
    candidates = candidates_of(scores)
    labels = np.array([0, 0, 0, 1])
    moved = move_rows(labels, np.zeros(4), candidates, SizeLimits(0, 2, 1.0))
    assert_array_equal(moved, [1, 0, 0, 1])
    moved = move_rows(labels, np.zeros(4), candidates, SizeLimits(1, 2, 1.0))
    assert_array_equal(np.bincount(moved), [2, 1, 1])
    assert_array_equal(labels, [0, 0, 0, 1])


@pytest.mark.parametrize("K", [24, 25, 60, 800, 1003])
def test_candidates_are_the_best_less_offsets(K):
    rng = np.random.default_rng(0)
    products = rng.normal(size=(50, K))
    bias = 100 + rng.normal(size=K)
    slopes = rng.uniform(1, 2, 50)
    offsets = rng.normal(size=K)
    less_offsets = Scores(products, bias - offsets, slopes)
    candidates = Candidates.best(less_offsets, offsets, np.ones(50))
    scores = Scores(products, bias, slopes).log_density()
    expected = np.sort(np.argsort(-(scores - offsets), axis=1)[:, :N_CANDIDATES], axis=1)
    assert_array_equal(np.sort(candidates.components, axis=1), expected)
    of_candidates = np.take_along_axis(scores, candidates.components, axis=1)
    of_candidates -= of_candidates.max(axis=1, keepdims=True)
    assert_allclose(candidates.scores, of_candidates, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 10.0])
def test_counts_are_those_of_softmax_over_candidates(temperature):
    rng = np.random.default_rng(0)
    scores = 20 * rng.normal(size=(200, 40))
    offsets = rng.normal(size=40)
    weights = rng.uniform(0, 2, 200)
    candidates = candidates_of(scores, weights)
    chosen = np.zeros((200, 40), dtype=bool)
    np.put_along_axis(chosen, candidates.components.astype(int), True, axis=1)
    left = np.where(chosen, scores - offsets, -np.inf)
    if temperature == 0:
        expected = np.bincount(left.argmax(axis=1), weights, 40)
        assert_array_equal(candidates.labels(offsets), left.argmax(axis=1))
    else:
        expected = weights @ softmax(left / temperature, axis=1)
    assert_allclose(candidates.counts(offsets, temperature), expected, rtol=1e-4, atol=1e-6)


def test_offsets_of_components_that_no_row_may_choose_stay_near():
    """They are no candidate of any row, and below the least size however low their offset is."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 40))
    scores[:, :4] -= 100
    offsets = ascend(candidates_of(scores), limits_of(400, 4, 20), np.zeros(40), 1.0)
    assert (offsets[:4] < 0).all()
    assert np.abs(offsets).max() < 10


@pytest.mark.parametrize("offsets", [[3.0, 1, -2, -5], [-3.0, -4, -5, -6], [2.0, 0, 0, -1]])
@pytest.mark.parametrize(("least", "most"), [(10, 40), (25, 25), (0, 100), (20, 26)])
def test_the_shift_is_that_of_the_least_lagrangian(offsets, least, most):
    limits = limits_of(100, least, most)
    offsets = np.array(offsets)

    def lagrangian(shift):
        return limits.value(offsets + shift) - 100 * shift

    best = lagrangian(limits.shift(offsets, 100.0))
    assert best <= min(map(lagrangian, np.linspace(-10, 10, 401))) + 1e-9


def test_rows_without_a_density_have_scores():
    scores = np.full((2, 3), -np.inf)
    scores[1, 2] = 0.0
    candidates = Candidates.best(Scores(scores, np.zeros(3)), np.zeros(3), np.ones(2))
    assert np.isfinite(candidates.scores).all()
    assert candidates.labels(np.zeros(3))[1] == 2


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_of_rows_are_weighed(kind, dtype):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 12)) < 0.5, rng.normal(size=(500, 12)), 0).astype(dtype)
    X[[3, 77, 400, 401]] = X[3]
    X[10, 0] = -0.0
    weights = np.ones(500)
    weights[400] = 2.5
    weights[20] = 4.0
    data = sparse.csr_array(X) if kind == "csr" else X
    assert heaviest_row(make_rows(data, weights, unit=False)) == 5.5
    weights[20] = 6.0
    assert heaviest_row(make_rows(data, weights, unit=True)) == 6.0
