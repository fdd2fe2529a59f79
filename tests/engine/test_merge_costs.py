"""What merging costs is what the log-likelihood of the rows loses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skvmf._engine.covariance import COVARIANCE_TYPES
from skvmf._engine.merging import DirectionMergeCost, EllipticalMergeCost, SphericalMergeCost
from skvmf.distributions import vonmises_fisher as vmf

KINDS = ["full", "diag", "spherical"]


def gaussian_parts(n=2000, d=3):
    """Rows of three parts of unlike shapes."""
    rng = np.random.default_rng(0)
    shapes = rng.normal(size=(3, d, d)) + 2 * np.eye(d)
    return [rng.normal(size=(n + 300 * k, d)) @ shapes[k] + 2 * k for k in range(3)]


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
    return np.array([X.sum(axis=0) for X in parts]), np.array([len(X) for X in parts])


@pytest.mark.parametrize("kind", KINDS)
def test_gaussians_lose_log_likelihood(kind):
    parts = gaussian_parts()
    cost = elliptical(parts, kind)
    cost._n_pseudo = 0.0
    alone = np.array([log_likelihood(X, kind) for X in parts])
    joint = [[log_likelihood(np.vstack([X, Y]), kind) for X in parts] for Y in parts]
    expected = alone[:, None] + alone - joint
    assert_allclose([cost.losses(i) for i in range(3)], expected, rtol=1e-9, atol=1e-7)


def spherical(parts, n_pseudo, pooled=0.5):
    centre = np.ones(3)
    sums, counts = sums_and_counts([X - centre for X in parts])
    squares = np.array([((X - centre) ** 2).sum() for X in parts])
    return SphericalMergeCost(sums, squares, counts.astype(float), centre, n_pseudo, pooled)


@pytest.mark.parametrize("n_pseudo", [0, 6])
def test_spheres_lose_log_likelihood(n_pseudo):
    """Pseudo-observations have the pooled variance about the mean of their part."""
    parts = gaussian_parts()
    cost = spherical(parts, n_pseudo)
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
    few, many = elliptical([flat, rng.normal(size=(500, 3))], kind).counts, 500
    loss = elliptical([flat, rng.normal(size=(many, 3))], kind).losses(0)[1]
    assert few[0] == 4
    assert 0 <= loss < 40


def directions(n=4000, d=5):
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(3, d))
    return [
        vmf.rvs(centre / np.linalg.norm(centre), kappa, size=n, random_state=2)
        for centre, kappa in zip(centres, [3.0, 30.0, 300.0], strict=True)
    ]


def best_directional(X, kappa=None):
    mean = X.mean(axis=0)
    length = np.linalg.norm(mean)
    kappa = kappa or vmf.concentration(length, X.shape[1])
    return vmf.logpdf(X, mean / length, kappa).sum()


def test_directions_lose_log_likelihood():
    parts = directions()
    cost = DirectionMergeCost(*sums_and_counts(parts), 0.0)
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        joint = best_directional(np.vstack([parts[i], parts[j]]))
        expected = best_directional(parts[i]) + best_directional(parts[j]) - joint
        assert_allclose(cost.losses(i)[j], expected, rtol=1e-7)


@pytest.mark.parametrize("make", ["directions", "one concentration", "spheres", *KINDS, "tied"])
def test_merged_parts_are_those_of_their_rows_together(make):
    parts = gaussian_parts() if make in ("spheres", "tied", *KINDS) else directions()
    together = [np.vstack([parts[0], parts[1]]), parts[2]]

    def cost_of(parts):
        sums, counts = sums_and_counts(parts)
        if make == "directions":
            return DirectionMergeCost(sums, counts, 0.0, n_pseudo=4.0, pseudo_length=0.5)
        if make == "one concentration":
            return DirectionMergeCost(sums, counts, 0.0, concentration=9.0)
        if make == "spheres":
            return spherical(parts, n_pseudo=6)
        if make == "tied":
            return EllipticalMergeCost.of_one_covariance(counts, sums / counts[:, None], np.eye(3))
        return elliptical(parts, make)

    merged, expected = cost_of(parts), cost_of(together)
    merged.merge(0, 1)
    if make in KINDS:
        merged._shape = expected._shape  # pooled over other parts
    assert_allclose(merged.losses(0)[2], expected.losses(0)[1], rtol=1e-9)
