"""Fits with truncated steps between exact ones, which many components take; here 128 are many."""

import re
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from .checks import assert_same_bits

K, n, d = 128, 3000, 8


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr("skvmf._engine.rows.blocks.TRUNCATED_FROM", K)


@pytest.fixture(scope="module")
def grouped():
    """Rows about centres in groups, and centres that are off."""
    rng = np.random.default_rng(0)
    groups = np.repeat(rng.normal(size=(K // 16, d)), 16, axis=0)
    centres = groups + 0.3 * rng.normal(size=(K, d))
    X = centres[rng.integers(K, size=n)] + 0.1 * rng.normal(size=(n, d))
    return X.astype(np.float32), centres + 0.1 * rng.normal(size=(K, d))


def fitted(data, *, kind=VonMisesFisherMixture, max_iter=3, weights=None, **parameters):
    X, means = data
    mixture = kind(
        len(means), means_init=means, max_iter=max_iter, tol=0, random_state=0, **parameters
    )
    return mixture.fit(X, sample_weight=weights)


def steps(capsys):
    """Return how many truncated steps were printed for each iteration."""
    return [int(m) for m in re.findall(r"(\d+) truncated steps", capsys.readouterr().out)]


@pytest.mark.bits
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(VonMisesFisherMixture, {}), (SparseGaussianMixture, {"covariance_type": "diag"})],
)
def test_threads_and_memory_maps_do_not_change_bits(grouped, tmp_path, kind, parameters):
    X, means = grouped
    np.save(tmp_path / "rows.npy", X)
    fits = []
    for n_threads, rows in ((1, X), (3, np.load(tmp_path / "rows.npy", mmap_mode="r"))):
        with threadpool_limits(n_threads):
            fits.append(fitted((rows, means), kind=kind, **parameters))
    assert_same_bits(*fits)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (VonMisesFisherMixture, {}),
        (VonMisesFisherMixture, {"concentration_type": "tied", "background": True}),
        (VonMisesFisherMixture, {"temperature": 0}),
        (VonMisesFisherMixture, {"weight_concentration_prior": 1.5, "temperature": 1.2}),
        (SparseGaussianMixture, {"covariance_type": "diag", "weight_concentration_prior": 1}),
        (SparseGaussianMixture, {"covariance_type": "full", "weight_concentration_prior": 1}),
        (StudentTMixture, {"covariance_type": "spherical"}),
    ],
)
def test_results_are_exact_and_bounds_rise(grouped, capsys, kind, parameters):
    weights = np.random.default_rng(1).exponential(size=n)
    weights[:9] = 0
    mixture = fitted(grouped, kind=kind, weights=weights, verbose=1, **parameters)
    assert max(steps(capsys)) > 1
    assert (np.diff(mixture.lower_bounds_) >= -1e-6).all()
    np.testing.assert_array_equal(mixture.labels_, mixture.predict(grouped[0]))
    own = np.take_along_axis(mixture.predict_proba(grouped[0]), mixture.labels_[:, None], axis=1)
    largest = np.where(mixture.labels_ < 0, 0, own[:, 0])
    np.testing.assert_allclose(mixture.probabilities_, largest, rtol=1e-5)
    again = deepcopy(mixture).set_params(warm_start=True, max_iter=0)
    assert again.fit(grouped[0], sample_weight=weights).lower_bound_ == mixture.lower_bound_


def test_they_gain_on_exact_steps_alone(grouped, capsys):
    """Sparse rows have exact steps alone."""
    X, means = grouped
    truncated = fitted(grouped, max_iter=2, verbose=1)
    taken = steps(capsys)
    assert min(taken) > 1
    assert max(taken) > 7  # those of a round
    exact = fitted((sparse.csr_array(X), means), max_iter=2, verbose=1)
    assert steps(capsys) == []
    assert truncated.lower_bound_ > exact.lower_bound_


def test_the_audit_keeps_steps_exact_where_directions_have_no_neighbours(capsys):
    X = np.random.default_rng(0).normal(size=(11_000, 64)).astype(np.float32)
    fitted((X, X[:512].astype(np.float64)), concentration_type="tied", verbose=1)
    assert set(steps(capsys)) == {0}
