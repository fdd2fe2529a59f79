"""What merging costs is what the log-likelihood of the rows loses."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial import KDTree
from sklearn.preprocessing import normalize

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine.em.merge_path import summed
from skvmf._engine.families import merge_costs, merging
from skvmf._engine.families.background import Background
from skvmf._engine.families.covariance import COVARIANCE_TYPES
from skvmf._engine.families.merge_costs import (
    DirectionMergeCost,
    EllipticalMergeCost,
    SphericalMergeCost,
)
from skvmf._engine.families.merging import OtherRows, chance_gain, merge_greedily
from skvmf._engine.families.neighbours import nearest_points
from skvmf._engine.search.partitions import assign_responsibilities, partition_statistics
from skvmf.distributions import vonmises_fisher as vmf

KINDS = ["full", "diag", "spherical"]


def gaussian_parts():
    """Rows of three parts of unlike shapes."""
    rng = np.random.default_rng(0)
    shapes = rng.normal(size=(3, 3, 3)) + 2 * np.eye(3)
    return [rng.normal(size=(2000 + 300 * k, 3)) @ shapes[k] + 2 * k for k in range(3)]


def covariance(X, kind):
    full = np.cov(X.T, bias=True)
    return {"full": full, "diag": np.diag(full), "spherical": np.trace(full) / len(full)}[kind]


def log_likelihood(X, kind):
    """The best that one Gaussian makes of rows."""
    matrix = covariance(X, kind)
    if kind != "full":
        matrix = np.diag(np.broadcast_to(matrix, X.shape[1]))
    return stats.multivariate_normal(X.mean(axis=0), matrix).logpdf(X).sum()


def elliptical(parts, kind):
    counts = np.array([len(X) for X in parts])
    means = np.array([X.mean(axis=0) for X in parts])
    covariances = np.array([covariance(X, kind) for X in parts])
    return EllipticalMergeCost(counts, means, covariances, COVARIANCE_TYPES[kind])


def sums_and_counts(parts):
    parts = list(parts)
    return np.array([X.sum(axis=0) for X in parts]), np.array([float(len(X)) for X in parts])


def spherical(parts, n_pseudo, pooled, centre=0.0):
    sums, counts = sums_and_counts([X - centre for X in parts])
    squares = np.array([((X - centre) ** 2).sum() for X in parts])
    centre = np.full(sums.shape[1], centre)
    return SphericalMergeCost(sums, counts, squares, centre, n_pseudo, pooled)


@pytest.mark.parametrize("kind", KINDS)
def test_gaussians_lose_log_likelihood(kind):
    parts = gaussian_parts()
    cost = elliptical(parts, kind)
    cost._n_pseudo = 0.0
    alone = np.array([log_likelihood(X, kind) for X in parts])
    joint = [[log_likelihood(np.vstack([X, Y]), kind) for X in parts] for Y in parts]
    expected = alone[:, None] + alone - joint
    assert_allclose([cost.losses(i) for i in range(3)], expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("n_pseudo", [0, 6])
def test_spheres_lose_log_likelihood(n_pseudo):
    """Pseudo-observations have the pooled variance about the mean of their part."""
    parts = gaussian_parts()
    cost = spherical(parts, n_pseudo, 0.5, centre=1.0)
    pseudo = np.sqrt(3 * cost.pooled) * np.vstack([np.eye(3), -np.eye(3)])[:n_pseudo]

    def value(X):
        return log_likelihood(np.vstack([X, X.mean(axis=0) + pseudo]), "spherical")

    alone = np.array([value(X) for X in parts])
    joint = [[value(np.vstack([X, Y])) for X in parts] for Y in parts]
    expected = alone[:, None] + alone - joint
    if n_pseudo:
        expected -= log_likelihood(pseudo, "spherical")
    else:
        assert_allclose(cost.log_likelihoods(), alone, rtol=1e-9)
    assert_allclose([cost.losses(i) for i in range(3)], expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_rows_in_a_plane_are_not_worth_the_whole_world(kind):
    rng = np.random.default_rng(0)
    flat = 1e-9 * rng.normal(size=(4, 3)) + [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert 0 <= elliptical([flat, rng.normal(size=(500, 3))], kind).losses(0)[1] < 40


def best_directional(X):
    return vmf.logpdf(X, *vmf.fit(X)).sum()


def test_directions_lose_log_likelihood():
    means = normalize(np.random.default_rng(1).normal(size=(3, 5)))
    centres = zip(means, [3.0, 30.0, 300.0], strict=True)
    parts = [vmf.rvs(mean, kappa, size=4000, random_state=2) for mean, kappa in centres]
    cost = DirectionMergeCost(*sums_and_counts(parts), 0.0)
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        joint = best_directional(np.vstack([parts[i], parts[j]]))
        expected = best_directional(parts[i]) + best_directional(parts[j]) - joint
        assert_allclose(cost.losses(i)[j], expected, rtol=1e-7)


# Merging costs what it takes from the likelihood, and takes the cheapest pair each time.


M, D = 12, 3


def parts_of_directions(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 50, size=M).astype(float)
    sums = rng.normal(size=(M, D))
    sums *= (0.9 * counts / np.linalg.norm(sums, axis=1))[:, None]
    return DirectionMergeCost(sums, counts, -1.0, concentration=7.0)


def spheres(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rng.integers(5, 30), D)) + 3 * rng.normal(size=D) for _ in range(M)]
    return spherical(parts, 2.5, 0.8)


@pytest.mark.parametrize("make", [parts_of_directions, spheres])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [0, 100])
def test_each_merge_is_the_cheapest(make, seed, most, monkeypatch):
    monkeypatch.setattr(merge_costs, "MAX_PAIRED", most)
    monkeypatch.setattr(merging, "MAX_PAIRED", most)
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


def many_parts(kind):
    """200 parts of rows of 20 clusters."""
    rng = np.random.default_rng(0)
    means = np.repeat(normalize(rng.normal(size=(20, D))), 10, axis=0)
    rows = [mean + 0.05 * rng.normal(size=(8, D)) for mean in means]
    if kind == "directions":
        return DirectionMergeCost(*sums_and_counts(map(normalize, rows)), -1.0, concentration=400.0)
    if kind == "spheres":
        return spherical(rows, 2.5, 0.0025)
    if kind == "tied":
        sums, counts = sums_and_counts(rows)
        return EllipticalMergeCost(counts, sums / 8 * 20, None, COVARIANCE_TYPES["tied"])
    return elliptical(rows, kind)


@pytest.mark.parametrize("kind", ["directions", "spheres", "tied", "full", "diag", "spherical"])
def test_merging_among_neighbours_hardly_loses_more(kind, monkeypatch):
    expected = sum(loss for *_, loss in merge_greedily(many_parts(kind), 20)[1])
    monkeypatch.setattr(merge_costs, "MAX_PAIRED", 20)
    monkeypatch.setattr(merging, "MAX_PAIRED", 20)
    monkeypatch.setattr(merging, "NEAREST", 4)
    left, merges = merge_greedily(many_parts(kind), 20)
    assert len(left) == 20
    assert sum(loss for *_, loss in merges) < 1.02 * expected
    assert len(merge_greedily(many_parts(kind), 1)[1]) == 199  # neighbours run out


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
    rows = [normalize(part) for part in rows]
    sums, counts = sums_and_counts(rows)
    parts = DirectionMergeCost(sums, counts, -1.5, concentration=7.0)
    result = OtherRows(others, Background((-2.0,))).excess_losses(parts)
    chance = (np.sqrt(5 / 2) + np.sqrt(np.log(50 + others))) ** 2

    def of_labels(*sizes):
        return sum(n * np.log(n / (50 + others)) for n in sizes if n > 0)

    for i, part in enumerate(rows):
        likelihood = 7.0 * np.sum(part @ sums[i]) / np.linalg.norm(sums[i]) - 1.5 * len(part)
        n, other = counts[i], counts[1 - i]
        before = likelihood + of_labels(n, other, others)
        after = -2.0 * n + of_labels(n + others, other)
        assert_allclose(result[i], before - after - chance, rtol=1e-9)


def test_uniform_rows_are_given_up_and_clusters_are_kept():
    rng = np.random.default_rng(0)
    centres = np.array([[2.0, 2], [8, 2], [5, 8]])
    clusters = np.repeat(centres, 100, axis=0) + 0.2 * rng.normal(size=(300, 2))
    X = np.vstack([clusters, rng.uniform(0, 10, size=(300, 2))])
    cells = np.floor(X[300:] / 5).astype(int) @ [2, 1]
    labels = np.concatenate([np.repeat([0, 1, 2], 100), 3 + cells])
    parts = spherical([X[labels == k] for k in range(7)], 2.5, 0.04)
    others = OtherRows(background=Background((-np.log(100.0),)))
    assert_array_equal(merge_greedily(parts, 3, others)[0], [0, 1, 2])
    assert others.count + parts.counts[:3].sum() == 600


@pytest.mark.parametrize("kind", ["vmf", *COVARIANCE_TYPES])
def test_sums_of_groups_of_components_are_those_of_their_responsibilities(kind):
    X = np.vstack(gaussian_parts()) + 100
    gaussian = partial(SparseGaussianMixture, covariance_type=kind)
    mixture = (VonMisesFisherMixture if kind == "vmf" else gaussian)(5, random_state=0).fit(X)
    path, group = mixture._skvmf_merge_path(X, None), np.array([0, 1, 0, 2, 1])
    family, resp = path.fitted.family, mixture.predict_proba(X) @ np.eye(3)[group]
    centres = family.centres(path.fitted.params.components)[[0, 1, 3]]
    assign = partial(assign_responsibilities, resp)
    expected, about = partition_statistics(family, path.rows, centres, assign)
    found = summed(family, path._stats, group, family.centred_at(about))
    assert_allclose(found.counts, expected.counts, rtol=1e-12)
    for moments, right in zip(found.moments, expected.moments, strict=True):
        assert_allclose(moments, right, rtol=1e-10, atol=1e-9 * np.abs(right).max())


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e30])
def test_the_nearest_of_many_points_are_found(scale):
    points = scale * np.random.default_rng(0).normal(size=(1500, 3))
    found = points[nearest_points(points, points, 16, but_itself=True)] / scale
    distances = np.sort(np.linalg.norm(points[:, np.newaxis] / scale - found, axis=2))
    assert_allclose(distances, KDTree(points / scale).query(points / scale, 17)[0][:, 1:], 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_clusters_whose_covariances_have_vanished_have_finite_losses(kind):
    """Values below the least float are zero."""
    shape = COVARIANCE_TYPES[kind].shape(3, 2)
    covariances = np.zeros(shape)
    covariances[0] = np.eye(2) if kind == "full" else 1.0
    means = np.array([[0.0, 0], [4, 0], [0, 4]])
    cost = EllipticalMergeCost(np.full(3, 10.0), means, covariances, COVARIANCE_TYPES[kind])
    losses = cost.all_losses()
    assert np.isfinite(losses).all()
    assert (losses[~np.eye(3, dtype=bool)] > 0).all()
