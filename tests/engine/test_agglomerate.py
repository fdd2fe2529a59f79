"""Merging costs what it takes from the likelihood, and takes the cheapest pair each time."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine import merging as merge_costs
from skvmf._engine.merging import (
    DirectionMergeCost,
    OtherRows,
    SphericalMergeCost,
    chance_gain,
    merge_greedily,
)
from skvmf._engine.model import Background

M, D = 12, 3


def directions(seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 50, size=M).astype(float)
    sums = rng.normal(size=(M, D))
    sums *= (0.9 * counts / np.linalg.norm(sums, axis=1))[:, None]
    return DirectionMergeCost(sums, counts, -1.0, concentration=7.0)


def spheres(seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rng.integers(5, 30), D)) + 3 * rng.normal(size=D) for _ in range(M)]
    counts = np.array([len(part) for part in parts], dtype=float)
    sums = np.array([part.sum(axis=0) for part in parts])
    squares = np.array([(part**2).sum() for part in parts])
    return SphericalMergeCost(sums, squares, counts, np.zeros(D), 2.5, 0.8), parts


@pytest.mark.parametrize("make", [directions, lambda seed: spheres(seed)[0]])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_products", [0, 100])
def test_each_merge_is_the_cheapest(make, seed, n_products, monkeypatch):
    monkeypatch.setattr(merge_costs, "MAX_PRODUCTS", n_products)
    fast, slow, losses = make(seed), make(seed), []
    alive = list(range(M))

    def excess(pair):
        i, j = pair
        return slow.losses(i)[j] - chance_gain(slow.counts[i], slow.counts[j], D)

    while len(alive) > 4:
        i, j = min(combinations(alive, 2), key=excess)
        losses.append(slow.losses(i)[j])
        slow.merge(i, j)
        alive.remove(j)
    left, merges = merge_greedily(fast, 4)
    assert_allclose([loss for *_, loss in merges], losses, rtol=1e-9)
    assert_allclose(np.sort(fast.counts[left]), np.sort(slow.counts[alive]))
    order, other = np.argsort(fast.counts[left]), np.argsort(slow.counts[alive])
    assert_allclose(fast.sums[left][order], slow.sums[alive][other], rtol=1e-9)


@pytest.mark.parametrize(("share", "dim"), [(0.5, 1), (0.2, 1), (0.5, 30), (0.1, 30)])
def test_chance_is_what_the_best_cut_of_one_cloud_gains(share, dim):
    """Simulated: rows ordered along the direction in which they vary most, and cut."""
    n, gains = 400, []
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(n, dim))
        along = X @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
        parts = np.split(X[np.argsort(along)], [int(share * n)])
        within = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
        gains.append(0.5 * (((X - X.mean(axis=0)) ** 2).sum() - within))
    expected = chance_gain(share * n, (1 - share) * n, dim)
    assert 0.75 * np.mean(gains) < expected < 1.5 * np.mean(gains)


@pytest.mark.parametrize("others", [0.0, 50.0])
def test_what_giving_a_direction_to_the_background_loses(others):
    """Log-likelihoods of rows and of labels, with the part and without it."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(n, 5)) + 2 * rng.normal(size=5) for n in (30, 20)]
    rows = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in rows]
    sums, counts = np.array([part.sum(axis=0) for part in rows]), np.array([30.0, 20.0])
    parts = DirectionMergeCost(sums, counts, -1.5, concentration=7.0)
    found = OtherRows(others, Background((-2.0,))).excess(parts)
    chance = (np.sqrt(5 / 2) + np.sqrt(np.log(50 + others))) ** 2

    def of_labels(*sizes):
        return sum(n * np.log(n / (50 + others)) for n in sizes if n > 0)

    for i, part in enumerate(rows):
        own = 7.0 * np.sum(part @ sums[i]) / np.linalg.norm(sums[i]) - 1.5 * len(part)
        n, other = counts[i], counts[1 - i]
        before = own + of_labels(n, other, others)
        after = -2.0 * n + of_labels(n + others, other)
        assert_allclose(found[i], before - after - chance, rtol=1e-9)


def test_uniform_rows_are_given_up_and_clusters_are_kept():
    rng = np.random.default_rng(0)
    centres = np.array([[2.0, 2], [8, 2], [5, 8]])
    clusters = np.repeat(centres, 100, axis=0) + 0.2 * rng.normal(size=(300, 2))
    X = np.vstack([clusters, rng.uniform(0, 10, size=(300, 2))])
    cells = np.floor(X[300:] / 5).astype(int) @ [2, 1]
    labels = np.concatenate([np.repeat([0, 1, 2], 100), 3 + cells])
    own = [X[labels == k] for k in range(7)]
    counts = np.array([len(part) for part in own], dtype=np.float64)
    sums = np.array([part.sum(axis=0) for part in own])
    squares = np.array([(part**2).sum() for part in own])
    parts = SphericalMergeCost(sums, squares, counts, np.zeros(2), 2.5, 0.04)
    others = OtherRows(background=Background((-np.log(100.0),)))
    assert_array_equal(merge_greedily(parts, 3, others)[0], [0, 1, 2])
    assert others.count + parts.counts[:3].sum() == 600
