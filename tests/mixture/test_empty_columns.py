"""Sparse rows in far more columns than they use: empty columns take no time and little memory."""

import os
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skvmf import VonMisesFisherMixture

from ..conftest import peak_of

WIDE = 2**12


def texts(n_features=None, seed=0, n=400, d=60):
    """Return roots of counts, in some columns of `n_features`, and those columns."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.1), size=4)
    X = sparse.csr_array(np.sqrt([rng.multinomial(20, topics[k % 4]) for k in range(n)]))
    if n_features is None:
        return X
    columns = np.sort(rng.choice(n_features, d, replace=False))
    return sparse.csr_array((X.data, columns[X.indices], X.indptr), shape=(n, n_features)), columns


OPTIONS = {"concentration_prior": 0, "random_state": 0, "tol": 1e-8, "max_iter": 500}


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"init_params": "kmeans", "n_init": 2}, {"background": True}]
)
def test_empty_columns_change_nothing_but_the_dimension(options, concentrated):
    X, columns = texts(WIDE)
    if concentrated:
        X = sparse.vstack([X, sparse.csr_array(np.repeat(X[:1].toarray(), 50, axis=0))], "csr")
    mixture = VonMisesFisherMixture(4, **OPTIONS, **options).fit(X)
    assert mixture.means_.shape == (4, WIDE)
    others = np.setdiff1d(np.arange(WIDE), columns)
    assert not mixture.mean_directions_[:, others].any()
    assert_allclose(np.linalg.norm(mixture.mean_directions_, axis=1), 1)
    assert_array_equal(mixture.predict(X), mixture.labels_)
    if not options:
        assert_allclose(mixture.score(X), mixture.lower_bound_, rtol=1e-9)
    resp = mixture.predict_proba(X)
    sums = resp.T @ X.multiply(1 / np.sqrt(X.power(2).sum(axis=1))[:, None])
    directions = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    assert_allclose(mixture.mean_directions_, directions, atol=1e-4)


def test_a_fit_in_few_columns_goes_on_in_all(tmp_path):
    (X, _), (more, _) = texts(WIDE), texts(WIDE, seed=1)
    mixture = VonMisesFisherMixture(4, **OPTIONS, checkpoint=tmp_path / "fit").fit(X)
    again = clone(mixture).fit(X)
    assert_array_equal(again.means_, mixture.means_)
    copy = pickle.loads(pickle.dumps(mixture))
    assert_array_equal(copy.means_, mixture.means_)
    warm = copy.set_params(warm_start=True, checkpoint=None).fit(X)
    assert_allclose(warm.lower_bounds_[0], mixture.lower_bound_, rtol=1e-9)
    stepped = mixture.partial_fit(more)
    assert stepped.mean_directions_[:, np.unique(more.indices)].any(axis=0).all()


@pytest.mark.parametrize("given", [False, True])
def test_memory_is_that_of_the_parameters(given):
    n_features, K = 2**16, 20
    X, _ = texts(n_features)
    array = 8 * K * n_features
    VonMisesFisherMixture(K, random_state=0).fit(texts()[:50])  # compile
    means = X[:K].toarray() if given else None
    _, peak = peak_of(VonMisesFisherMixture(K, means_init=means, random_state=0).fit, X)
    assert peak < (5.5 + given) * array


@pytest.mark.parametrize("fixed", [(), ("means",)])
def test_given_means_keep_their_columns(fixed):
    X, columns = texts(WIDE)
    means = X[:4].toarray()
    means[3] = np.eye(1, WIDE, np.setdiff1d(np.arange(WIDE), columns)[0])
    mixture = VonMisesFisherMixture(4, means_init=means, fixed=fixed, max_iter=0).fit(X)
    units = means / np.linalg.norm(means, axis=1)[:, None]
    assert_allclose(mixture.mean_directions_, units, rtol=1e-12)


def test_too_many_columns_are_noticed_before_any_work(monkeypatch):
    X, _ = texts(WIDE)
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)
    mixture = VonMisesFisherMixture(30, random_state=0)
    with pytest.warns(UserWarning, match="30 components in 4096 columns take about 0.00492 GB"):
        mixture.fit(X)


def test_too_many_responsibilities_are_noticed(monkeypatch):
    X, _ = texts(WIDE)
    mixture = VonMisesFisherMixture(30, random_state=0).fit(X)
    monkeypatch.setattr(os, "sysconf", lambda name: 250)
    with pytest.warns(UserWarning, match=r"30 components for 400 rows take about 9.6e-05 GB.*resp"):
        mixture.predict_proba(X)
