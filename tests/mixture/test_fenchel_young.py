"""Responsibilities and bound of every posterior solve the problem that the bound is made of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

rng = np.random.default_rng(0)
WEIGHTS, MEANS = rng.dirichlet(np.ones(4)), 2 * rng.normal(size=(4, 2))
X = 2 * rng.normal(size=(50, 2))
LOG_P = np.column_stack([multivariate_normal(mean).logpdf(X) for mean in MEANS])


def solved(alpha, temperature, sample_weight=None):
    """Return the responsibilities of rows, and the mean of the bound over rows."""
    mixture = SparseGaussianMixture.from_parameters(
        WEIGHTS,
        MEANS,
        np.ones(4),
        covariance_type="spherical",
        entmax_alpha=alpha,
        temperature=temperature,
        weight_concentration_prior=1.0,
        warm_start=True,
        max_iter=0,
    ).fit(X, sample_weight=sample_weight)
    return mixture.predict_proba(X), mixture.lower_bound_


def tsallis(q, alpha):
    return (np.sum(q**alpha, axis=-1) - 1) / (alpha * (alpha - 1))


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_sparse_responsibilities_maximize_the_bound(alpha, temperature):
    """P2 eq. 12-15: <q, log p> - T L(eta; q), and no other q does better."""
    q, value = solved(alpha, temperature)
    score = np.expm1((alpha - 1) * np.log(WEIGHTS)) / (alpha - 1)
    conjugate = WEIGHTS @ score - tsallis(WEIGHTS, alpha)

    def bound(q):
        loss = conjugate - q @ score + tsallis(q, alpha)
        return (q * LOG_P).sum(axis=1) - temperature * loss

    best = bound(q)
    assert_allclose(value, best.mean(), rtol=1e-10)
    for other in rng.dirichlet(np.full(4, 0.5), size=200):
        assert (bound(np.tile(other, (50, 1))) <= best + 1e-9).all()


@pytest.mark.filterwarnings("ignore:temperature=4.0 is far too large")
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_just_above_one_the_temperature_leaves_the_weights_alone(temperature):
    """P2 eq. 13: q proportional to pi p^(1 / beta), and its free energy, the limit from above.

    At one itself it is a softmax of tempered scores, weights and all.
    """
    z = (LOG_P + np.log(WEIGHTS)) / temperature
    q, value = solved(1, temperature)
    assert_allclose(q, softmax(z, axis=1), rtol=1e-12, atol=1e-25)
    assert_allclose(value, temperature * logsumexp(z, axis=1).mean(), rtol=1e-12)
    z = np.log(WEIGHTS) + LOG_P / temperature
    for excess in [1e-6, 1e-9, 1e-12]:
        q, value = solved(1 + excess, temperature)
        assert_allclose(q, softmax(z, axis=1), rtol=0, atol=200 * excess + 1e-9)
        energy = temperature * logsumexp(z, axis=1).mean()
        assert_allclose(value, energy, rtol=0, atol=200 * temperature * excess + 1e-8)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_temperature_zero_is_classification(alpha):
    weights = np.linspace(0, 2, 50)
    q, value = solved(alpha, 0, weights)
    joint = LOG_P + np.log(WEIGHTS)
    assert_allclose(q, np.eye(4)[joint.argmax(axis=1)])
    assert_allclose(value, weights @ joint.max(axis=1) / weights.sum())


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_float32_responsibilities_do_not_depend_on_the_size_of_log_normalizers(alpha):
    """One of 1e5 has two digits after the point in float32; differences have all."""
    rows = rng.normal(size=(50, 20_000)).astype(np.float32)
    mixture = VonMisesFisherMixture.from_parameters(
        [0.2, 0.3, 0.5],
        mean_directions=rows[:3] + rows[3:6] + rows[6:9],
        concentrations=[100.0, 101.0, 110.0],
        entmax_alpha=alpha,
    )
    expected = mixture.predict_proba(rows.astype(float))
    assert_allclose(mixture.predict_proba(rows), expected, rtol=1e-5, atol=1e-6)
