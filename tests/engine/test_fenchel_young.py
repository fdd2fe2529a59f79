"""Posteriors solve the problem that the bound is made of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp, softmax

from skvmf._engine.contracts import DenseResponsibilities, Scores, SparseResponsibilities, as_dense
from skvmf._engine.model import FenchelYoungPosterior


def assign(posterior, log_p, pi, weights=None):
    scores = Scores(log_p.copy(), np.zeros(log_p.shape[1]))
    weights = np.ones(len(log_p)) if weights is None else weights
    responsibilities, counts, values = posterior.assign(scores, pi, weights)
    return as_dense(responsibilities, len(pi)), counts, values


def problem(n=50, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=2, size=(n, K)), rng.dirichlet(np.ones(K)), rng


def tsallis(q, alpha):
    if alpha == 1:
        return np.sum(q * np.log(np.where(q > 0, q, 1)), axis=-1)
    return (np.sum(q**alpha, axis=-1) - 1) / (alpha * (alpha - 1))


def eta(pi, alpha):
    return np.log(pi) if alpha == 1 else np.expm1((alpha - 1) * np.log(pi)) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_sparse_shares_maximize_the_bound(alpha, temperature):
    """P2 eq. 12-15: <q, log p> - T L(eta; q), and no other q does better."""
    log_p, pi, rng = problem()
    q, counts, values = assign(FenchelYoungPosterior(alpha, temperature), log_p, pi)
    score = eta(pi, alpha)
    conjugate = pi @ score - tsallis(pi, alpha)

    def bound(q):
        loss = conjugate - q @ score + tsallis(q, alpha)
        return (q * log_p).sum(axis=1) - temperature * loss

    assert_allclose(values, bound(q), rtol=1e-10, atol=1e-10)
    assert_allclose(counts, q.sum(axis=0), rtol=1e-12)
    for other in rng.dirichlet(np.full(4, 0.5), size=200):
        assert (bound(np.tile(other, (50, 1))) <= values + 1e-9).all()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_just_above_one_the_temperature_leaves_the_weights_alone(temperature):
    """P2 eq. 13: q proportional to pi p^(1 / beta), and its free energy, the limit from above.

    At one itself it is a softmax of tempered scores, weights and all.
    """
    log_p, pi, _ = problem()
    z = (log_p + np.log(pi)) / temperature
    q, _, values = assign(FenchelYoungPosterior(1, temperature), log_p, pi)
    assert_allclose(q, softmax(z, axis=1), rtol=1e-12)
    assert_allclose(values, temperature * logsumexp(z, axis=1), rtol=1e-12)
    z = np.log(pi) + log_p / temperature
    for excess in [1e-6, 1e-9, 1e-12]:
        q, _, values = assign(FenchelYoungPosterior(1 + excess, temperature), log_p, pi)
        assert_allclose(q, softmax(z, axis=1), rtol=0, atol=200 * excess + 1e-9)
        energy = temperature * logsumexp(z, axis=1)
        assert_allclose(values, energy, rtol=0, atol=200 * temperature * excess + 1e-8)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_temperature_zero_is_classification(alpha):
    log_p, pi, _ = problem()
    weights = np.linspace(0, 2, 50)
    q, counts, values = assign(FenchelYoungPosterior(alpha, 0), log_p, pi, weights)
    best = (log_p + np.log(pi)).argmax(axis=1)
    assert_allclose(q, np.eye(4)[best] * weights[:, None])
    assert_allclose(values, (log_p + np.log(pi)).max(axis=1))
    assert_allclose(counts, np.bincount(best, weights, minlength=4))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_pruned_component_gets_nothing(alpha, temperature):
    log_p, pi, _ = problem()
    pi[2] = 0
    log_p[:, 2] += 100
    q, counts, values = assign(FenchelYoungPosterior(alpha, temperature), log_p, pi / pi.sum())
    assert counts[2] == 0
    assert (q[:, 2] == 0).all()
    assert np.isfinite(values).all()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("temperature", [0, 0.3, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_alone_are_those_of_shares(alpha, temperature, dtype):
    log_p, pi, rng = problem()
    log_p[3] = -np.inf
    slopes, bias = rng.uniform(0.5, 2, len(log_p)), 1e3 * rng.standard_normal(4)
    posterior = FenchelYoungPosterior(alpha, temperature)
    one, other = (Scores(log_p.astype(dtype), bias, slopes) for _ in range(2))
    values = posterior.assign(one, pi, rng.uniform(0, 2, len(log_p)))[2]
    assert_array_equal(posterior.values(other, pi), values)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_labels_have_the_largest_share(alpha):
    log_p, pi, _ = problem(500)
    posterior = FenchelYoungPosterior(alpha, 1.0)
    q, _, _ = assign(posterior, log_p, pi)
    labels, _, _ = posterior.label(Scores(log_p, np.zeros(4)), pi, np.ones(500))
    assert_allclose(q[np.arange(500), labels], q.max(axis=1))


def test_packing_keeps_what_is_not_zero():
    values, places = np.random.default_rng(0).random((2, 20, 9))
    resp = values * (places < 0.1)
    responsibilities = DenseResponsibilities(resp)
    packed = responsibilities.packed()
    assert isinstance(packed, SparseResponsibilities)
    starts = np.append(0, packed.ends)
    unpacked = sparse.csr_array((packed.values, packed.columns, starts), resp.shape)
    assert_array_equal(unpacked.toarray(), resp)
    assert packed.ends[-1] == np.count_nonzero(resp)
    fraction = np.count_nonzero(resp) / resp.size
    assert not responsibilities.denser_than(max(fraction, 1 / 9))
    assert responsibilities.denser_than(1 / 10)


@pytest.mark.parametrize("n", [1, 40, 5000])
def test_some_rows_tell_whether_shares_are_dense(n):
    drawn = np.random.default_rng(0).random((n, 400))
    assert DenseResponsibilities(1.0 * (drawn < 0.25)).denser_than(1 / 8)
    assert not DenseResponsibilities(1.0 * (drawn < 0.06)).denser_than(1 / 8)


def test_value_of_weights_is_the_part_of_the_bound_that_they_move():
    log_p, pi, rng = problem()
    posterior = FenchelYoungPosterior(1.5, 0.7)
    q, counts, _ = assign(posterior, log_p, pi)
    other = rng.dirichlet(np.ones(4))

    def loss(pi):
        score = eta(pi, 1.5)
        return (pi @ score - tsallis(pi, 1.5) - q @ score + tsallis(q, 1.5)).sum()

    gain = posterior.value_of_weights(counts, other) - posterior.value_of_weights(counts, pi)
    assert_allclose(gain, -0.7 * (loss(other) - loss(pi)), rtol=1e-10)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_shares_of_float32_scores_do_not_depend_on_the_size_of_the_biases(alpha):
    """A log-normalizer of 1e6 has no digit after the point in float32; differences have."""
    bias, pi = np.array([0.0, 0.25, -0.5]), np.array([0.2, 0.3, 0.5])
    posterior = FenchelYoungPosterior(alpha)
    responsibilities = []
    for size in (0.0, 1e6):
        scores = Scores(np.zeros((5, 3), dtype=np.float32), bias + size)
        found, _, values = posterior.assign(scores, pi, np.ones(5))
        responsibilities.append(found.resp)
    assert_allclose(responsibilities[1], responsibilities[0], rtol=1e-6)
    plain = posterior.assign(Scores(np.zeros((5, 3)), bias), pi, np.ones(5))[2]
    assert_allclose(values, plain + 1e6)
    labels, _, _ = posterior.label(Scores(np.zeros((5, 3), np.float32), bias + 1e6), pi, np.ones(5))
    assert (labels == responsibilities[0].argmax(axis=1)).all()
