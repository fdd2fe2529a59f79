"""Gaussians are merged where that costs least, and split where they are long."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from skvmf import SparseGaussianMixture
from skvmf._engine.families.covariance import COVARIANCE_TYPES
from skvmf._engine.families.gaussian import Gaussian, ShrunkGaussian
from skvmf._engine.rows.blocks import DenseBlock
from skvmf._engine.rows.parallel import limited_blas
from skvmf._engine.rows.sources import make_rows
from skvmf._engine.search import split_and_merge
from skvmf._engine.search.merging_start import MergingStart
from skvmf._engine.search.partitions import assign_responsibilities, partition_statistics
from skvmf._engine.search.sample import Sample
from skvmf._engine.search.split_and_merge import SplitAndMerge

TYPES = list(COVARIANCE_TYPES)


def clusters(n=3000, K=6, d=3, sizes=(0.3, 2.0), spread=4.0):
    """Gaussians of random axes and sizes that overlap."""
    rng = np.random.default_rng(0)
    labels = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    X, means = np.empty((n, d)), spread * rng.standard_normal((K, d))
    for k in range(K):
        members = labels == k
        scales = rng.uniform(0.5, 1.5, d) * rng.uniform(*sizes)
        X[members] = means[k] + rng.standard_normal((members.sum(), d)) * scales
    return X, labels


def split_and_merge_of(X, kind, n_components=3, weights=None):
    rows = make_rows(X, weights, unit=False, columns=True)
    family = Gaussian(X.shape[1], kind, 1e-6, scale=rows.mean_variance() or 1.0)
    return SplitAndMerge(ShrunkGaussian.of(family), Sample(rows), n_components)


def fitted(task, M, seed=0):
    """Return M components, some steps of EM away from random rows."""
    rng = np.random.default_rng(seed)
    points = task.sample.take(rng.choice(task.sample.rows.n_rows, M, replace=False))
    first = task.point(np.full(M, 1 / M), task.family.from_centres(points))
    return task.sample.em(first, 5)[0]


def log_joint(weights, components, task, X):
    block = DenseBlock(X, np.ones(len(X)), None, 0)
    return task.family.scores(block, components).log_density() + np.log(weights)


@pytest.mark.parametrize("few_rows", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_merging_costs_the_change_of_the_likelihood(kind, few_rows, monkeypatch):
    monkeypatch.setattr(split_and_merge, "MIN_COUNTED_RESPONSIBILITY", 0.0)
    monkeypatch.setattr(split_and_merge, "MAX_PRODUCTS_OF_FEW_ROWS", 2**20 if few_rows else 0)
    X, _ = clusters(500)
    weights = np.random.default_rng(1).exponential(size=500)
    task = split_and_merge_of(X, kind, weights=weights)
    point = fitted(task, 6)
    pairs = task._neighbours(point)
    expectation = task.sample.rows.map_reduce(partial(split_and_merge._expect, point, few_rows))
    costs = task._costs(point, pairs, expectation)
    before = log_joint(point.weights, point.components, task, X)
    all_merged = task.family.merge_pairs(point.components, point.weights, pairs)
    for k, ((a, b), cost) in enumerate(zip(pairs, costs, strict=True)):
        merged = task.family.some(all_merged, slice(k, k + 1))
        joint = log_joint(point.weights[[a, b]].sum(keepdims=True), merged, task, X)
        after = np.hstack([np.delete(before, [a, b], axis=1), joint])
        change = weights @ (logsumexp(after, axis=1) - logsumexp(before, axis=1))
        # 1 - r has no digits below 1e-16: a row that a merge leaves loses 36 nats at most.
        assert_allclose(cost, -change, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("kind", TYPES)
def test_components_are_split_across_their_longest_axis(kind, offset):
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    X = (rng.standard_normal((4000, 5)) * np.array([4.0, 1, 1, 1, 1])) @ turned + offset
    task = split_and_merge_of(X, kind, 1)
    centre = task.family.from_centres(X.mean(axis=0, keepdims=True))
    cut = task._split(task.point(np.ones(1), centre), rng)
    values, axes = np.linalg.eigh(np.cov(X.T))
    step = np.sqrt(2 / np.pi * values[-1]) * axes[:, -1]
    gap = 0.5 * (cut.components.means[1] - cut.components.means[0])
    assert_allclose(cut.components.means.mean(axis=0), X.mean(axis=0), rtol=1e-10, atol=1e-10)
    assert_allclose(gap * np.sign(gap @ step), step, atol=0.05 * np.linalg.norm(step))
    assert_array_equal(cut.weights, [0.5, 0.5])


@pytest.mark.parametrize("kind", TYPES)
def test_a_default_fit_reaches_the_oracle_where_sizes_differ(kind):
    X, labels = clusters(4000, 10, 8, spread=1.5)
    options = {"covariance_type": kind, "weight_concentration_prior": 1.0}
    oracle = SparseGaussianMixture(10, init_params=labels, **options).fit(X)
    result = SparseGaussianMixture(10, random_state=0, **options).fit(X)
    assert result.lower_bound_ > oracle.lower_bound_ - 0.01


def start(X, kind, n_components, weights=None, watch=None):
    rows = make_rows(X, weights, unit=False)
    family = Gaussian(X.shape[1], kind, 1e-6, scale=rows.mean_variance() or 1.0)
    proposal, watch = family.proposal(), watch or (lambda *_: False)
    with limited_blas():
        search = MergingStart(proposal, Sample(rows), n_components, watch)
        return search.run(np.random.default_rng(0)).point


def test_a_start_goes_with_its_rows():
    """Where all are moved or scaled, or a weight is twice as large everywhere."""
    X, _ = clusters(1000)
    plain = start(X, "full", 6)
    for data, weights in [(X + 4096.0, None), (X * 8, None), (X, np.full(len(X), 2.0))]:
        other = start(data, "full", 6, weights)
        assert_allclose(np.sort(other.weights), np.sort(plain.weights), atol=2e-3)


@pytest.mark.parametrize("after", [0, 1])
def test_a_callback_stops_a_start_with_as_many_components_as_asked_for(after):
    X, _ = clusters()
    seen = []

    def watch(n_iter, bounds, point):
        seen.append(n_iter)
        return n_iter == after

    assert start(X, "full", 6, watch=watch).n_components == 6
    assert seen == [0, 1]


def test_splits_find_what_overseeding_has_missed():
    """From one component for every two clusters and some on nothing at all."""
    X, labels = clusters(4000, 8, sizes=(0.3, 0.3), spread=6.0)
    task = split_and_merge_of(X, "full", 8)
    responsibilities = partial(assign_responsibilities, np.eye(8)[labels // 2])
    stats, about = partition_statistics(task.family, task.sample.rows, X[:8], responsibilities)
    components, _ = task.family.maximize(stats, about)
    poor = task.point(stats.counts / len(X), components)
    result = task.run(poor, np.random.default_rng(0)).point
    sizes = result.assign(DenseBlock(X, np.ones(len(X)), None, 0)).counts
    assert_allclose(np.sort(sizes), np.sort(np.bincount(labels)), atol=20)
