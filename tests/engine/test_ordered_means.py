"""Updates of ordered means, each against the quadratic that it should maximize."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag

from skvmf._engine.blocks import DenseBlock
from skvmf._engine.contracts import DenseResponsibilities, Statistics, Update
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.ordered import RelativeECM, RelativeEM, objective

TYPES = ["full", "tied", "diag", "spherical"]


def problem(seed, covariance_type="full", K=3, d=2, n=60, fixed=False):
    """Rows, their shares among components in order, and the statistics of both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, size=d)
    weights = rng.uniform(0, 2, size=n)
    resp = rng.dirichlet(np.full(K, 0.5), size=n) * weights[:, None]
    means = rng.normal(size=(K, d))
    means[:, 0] = np.arange(K) + rng.uniform(0, 0.2, size=K)
    roots = rng.normal(size=(K, d, d))
    covariances = roots @ roots.transpose(0, 2, 1) + np.eye(d)
    given = {
        "full": covariances,
        "tied": covariances[0],
        "diag": np.diagonal(covariances, axis1=1, axis2=2).copy(),
        "spherical": covariances[:, 0, 0].copy(),
    }[covariance_type]
    family = Gaussian(d, covariance_type, fixed_covariances=fixed)
    components = family.components(means, given)
    return X, resp, family, components, statistics(X, resp, family, components)


def statistics(X, resp, family, components):
    block = DenseBlock(X, resp.sum(axis=1), None, 0)
    moments = family.moments(block, DenseResponsibilities(resp), components)
    origins = family.origins(components)
    return Statistics(0.0, resp.sum(), resp.sum(axis=0), moments, origins)


def full_precisions(family, components):
    """Precisions (K, d, d), whatever the shape of the covariances."""
    K, d = components.means.shape
    covariances = components.covariances
    full = {
        "full": lambda: covariances,
        "tied": lambda: np.tile(covariances, (K, 1, 1)),
        "diag": lambda: np.eye(d) * covariances[:, None, :],
        "spherical": lambda: np.eye(d) * covariances[:, None, None],
    }[family.covariance_type]()
    return np.linalg.inv(full)


def expected_log_density(X, resp, precisions, means):
    """What of the expected log-likelihood depends on the means, row by row."""
    gaps = X[:, None] - means
    return -0.5 * np.einsum("nk,nkd,kde,nke", resp, gaps, precisions, gaps)


def quadratic(X, resp, precisions):
    """Return H and c with the expected log-density c'Lambda - Lambda'H Lambda / 2 + constant.

    Lambda is the reference and the gaps, flattened.
    """
    K, d = resp.shape[1], X.shape[1]
    jacobian = np.kron(np.tri(K), np.eye(d))
    counts = resp.sum(axis=0)
    blocks = block_diag(*(counts[:, None, None] * precisions))
    sums = np.einsum("kde,ke->kd", precisions, resp.T @ X).ravel()
    return jacobian.T @ blocks @ jacobian, jacobian.T @ sums


def ecm_by_hand(H, c, relative, clearance, feature):
    """One conditional maximum after the other, as the linear systems say."""
    K, d = relative.shape
    flat = relative.ravel().copy()
    for k in range(K):
        block = np.arange(k * d, (k + 1) * d)
        rest = np.setdiff1d(np.arange(K * d), block)
        b = c[block] - H[np.ix_(block, rest)] @ flat[rest]
        A = H[np.ix_(block, block)]
        solution = np.linalg.solve(A, b)
        if k > 0 and solution[feature] < clearance:
            other = np.setdiff1d(np.arange(d), [feature])
            solution[feature] = clearance
            solution[other] = np.linalg.solve(
                A[np.ix_(other, other)], b[other] - A[other, feature] * clearance
            )
        flat[block] = solution
    return np.cumsum(flat.reshape(K, d), axis=0)


def best_by_enumeration(H, c, K, d, clearance, feature):
    """The maximum under the clearance: try every set of active gaps."""
    best, winner = -np.inf, None
    gaps = np.arange(1, K) * d + feature
    for held in product([False, True], repeat=K - 1):
        active = gaps[np.array(held, dtype=bool)]
        other = np.setdiff1d(np.arange(K * d), active)
        flat = np.full(K * d, clearance)
        flat[other] = np.linalg.solve(
            H[np.ix_(other, other)], c[other] - H[np.ix_(other, active)] @ flat[active]
        )
        value = c @ flat - 0.5 * flat @ H @ flat
        if (flat[gaps] >= clearance - 1e-12).all() and value > best:
            best, winner = value, flat
    return np.cumsum(winner.reshape(K, d), axis=0)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_the_objective_is_the_expected_log_density(covariance_type):
    X, resp, family, components, stats = problem(0, covariance_type)
    target = objective(family, stats, components)
    precisions = full_precisions(family, components)
    best = (resp.T @ X) / resp.sum(axis=0)[:, None]
    assert_allclose(target.best, best, rtol=1e-12)
    rng = np.random.default_rng(1)
    here = rng.normal(size=(3, 2))
    step = 1e-3 * rng.normal(size=(3, 2))  # any would do: the objective is a quadratic
    up, down = (
        expected_log_density(X, resp, precisions, here + sign * step) / stats.total
        for sign in (1, -1)
    )
    assert_allclose(2 * np.sum(step * target.gradient(here)), up - down, rtol=1e-6)


@pytest.mark.parametrize("clearance", [0.0, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize(("K", "d"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_ecm_solves_one_block_after_the_other(covariance_type, K, d, clearance):
    for seed in range(10):
        feature = seed % d
        X, resp, family, components, stats = problem(seed, covariance_type, K, d, fixed=True)
        means = components.means.copy()
        means[:, feature] = clearance * np.arange(K) + np.sort(means[:, feature])
        components = family.components(means, components.covariances)
        stats = statistics(X, resp, family, components)
        moved, _ = RelativeECM(feature, clearance)(family, stats, components)
        H, c = quadratic(X, resp, full_precisions(family, components))
        relative = np.diff(means, axis=0, prepend=0.0)
        assert_allclose(
            moved.means, ecm_by_hand(H, c, relative, clearance, feature), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("clearance", [0.0, 0.3])
def test_ecm_of_two_unit_gaussians_has_the_corrected_formula(clearance):
    """Algorithm 1 of the paper, with its sign and with N_2 where it prints N_1."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, resp = rng.normal(size=(50, 1)), rng.dirichlet([1, 1], size=50)
        family = Gaussian(1, "spherical", fixed_covariances=True)
        mu_1, gap = rng.normal(), clearance + rng.uniform(0, 1)
        components = family.components(np.array([[mu_1], [mu_1 + gap]]), np.ones(2))
        stats = statistics(X, resp, family, components)
        moved, _ = RelativeECM(0, clearance)(family, stats, components)
        (T_1, T_2), (N_1, N_2) = (resp.T @ X).ravel(), resp.sum(axis=0)
        mu_1 = (T_1 + T_2 - N_2 * gap) / (N_1 + N_2)
        gap = max(clearance, (T_2 - mu_1 * N_2) / N_2)
        assert_allclose(moved.means.ravel(), [mu_1, mu_1 + gap], rtol=1e-12, atol=1e-12)


@pytest.mark.bits
@pytest.mark.parametrize("clearance", [0.0, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize(("K", "d"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_the_exact_step_is_the_constrained_maximum(covariance_type, K, d, clearance):
    for seed in range(10):
        X, resp, family, components, stats = problem(seed, covariance_type, K, d, fixed=True)
        update = RelativeEM(seed % d, clearance)
        moved, _ = update(family, stats, components)
        H, c = quadratic(X, resp, full_precisions(family, components))
        expected = best_by_enumeration(H, c, K, d, clearance, seed % d)
        assert_allclose(moved.means, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.bits
@pytest.mark.parametrize("covariance_type", TYPES)
def test_the_exact_step_is_em_where_no_gap_is_held(covariance_type):
    X, resp, family, components, _ = problem(0, covariance_type)
    order = np.argsort((resp.T @ X / resp.sum(axis=0)[:, None])[:, 0])
    stats = statistics(X, resp[:, order], family, components)
    relative, _ = RelativeEM(0)(family, stats, components)
    plain, _ = Update()(family, stats, components)
    assert_array_equal(relative.means, plain.means)
    assert_allclose(relative.covariances, plain.covariances, rtol=1e-14)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("update", [RelativeECM, RelativeEM])
def test_covariances_are_about_the_means_they_go_with(update, covariance_type):
    X, resp, family, components, stats = problem(4, covariance_type)
    moved, broken = update(0, 2.0)(family, stats, components)
    assert not broken.any()
    gaps = X[:, None] - moved.means
    expected = np.einsum("nk,nkd,nke->kde", resp / resp.sum(axis=0), gaps, gaps)
    if covariance_type == "tied":
        expected = np.tensordot(resp.sum(axis=0) / resp.sum(), expected, 1)
    elif covariance_type != "full":
        expected = np.diagonal(expected, axis1=1, axis2=2)
    if covariance_type == "spherical":
        expected = expected.mean(axis=1)
    assert_allclose(moved.covariances, expected, rtol=1e-10, atol=1e-12)


UPDATES = [RelativeECM(0, 0.5), RelativeEM(0, 0.5)]


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_a_component_without_rows_keeps_out_of_the_way(update):
    X, resp, family, components, _ = problem(3, K=4)
    kept = resp.copy()
    kept[:, 1] = 0
    stats = statistics(X, kept, family, components)
    moved, _ = update(family, stats, components)
    assert (np.diff(moved.means[:, 0]) >= 0).all()
    others = np.delete(np.arange(4), 1)
    rest = family.components(components.means[others], components.covariances[others])
    alone, _ = update(family, statistics(X, kept[:, others], family, rest), rest)
    assert_allclose(moved.means[others], alone.means, rtol=1e-12)
    assert_array_equal(moved.means[1, 1], components.means[1, 1])


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_a_broken_component_stays_in_order(update):
    X, resp, family, components, _ = problem(3)
    resp[:, 1] = 0
    resp[0, 1] = 1.0  # one row has no covariance
    stats = statistics(X, resp, replace(family, reg_covar=0.0), components)
    moved, broken = update(family, stats, components)
    assert_array_equal(broken, [False, True, False])
    assert (np.diff(moved.means[:, 0]) >= 0).all()
    assert np.isfinite(moved.log_det).all()


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_component_is_moved_to_a_row_within_the_order(update, k):
    _, _, family, components, _ = problem(3)
    for value in [-5.0, 1.2, 5.0]:
        row = np.array([value, 9.0])
        alive = np.arange(3) != k
        means = update.reseed(family, components, alive, k, row).means
        assert means[k, 1] == 9
        assert (means[:-1, 0] + 0.5 <= means[1:, 0]).all()
