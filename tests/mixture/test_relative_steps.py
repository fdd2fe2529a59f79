"""Single steps of RelativeGMM, each against the problem that it should solve."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from scipy.optimize import minimize, minimize_scalar

from skvmf import RelativeGMM

from ..pairwise import pairwise
from .kinds import TYPES, as_given, in_type, matrices


def one_step(seed, kind, K, d, spread=3, **options):
    """Return rows, their weighted responsibilities, and a mixture before and after a step."""
    rng = np.random.default_rng(seed)
    X = spread * rng.normal(size=(60, d)) * rng.uniform(0.5, 2, size=d)
    weights, roots = rng.uniform(0, 2, size=60), rng.normal(size=(K, d, d))
    precisions = np.linalg.inv(2 * roots @ roots.transpose(0, 2, 1) + 2 * np.eye(d))
    mixture = RelativeGMM(
        K,
        covariance_type=kind,
        means_init=rng.normal(size=(K, d)),
        precisions_init=as_given(kind, precisions),
        ordering_feature=seed % d,
        reg_covar=0,
        tol=0,
        **options,
    )
    before = mixture.set_params(max_iter=0).fit(X, sample_weight=weights)
    resp = before.predict_proba(X) * weights[:, None]
    means, covariances = before.means_, matrices(before)
    after = mixture.set_params(max_iter=1).fit(X, sample_weight=weights)
    return X, resp, (means, covariances), (after.means_, matrices(after))


# Means, with known covariances.


def quadratic(X, resp, precisions):
    """Return H and c with the expected log-density c'Lambda - Lambda'H Lambda / 2 + constant.

    Lambda is the reference and the gaps, flattened.
    """
    K, d = resp.shape[1], X.shape[1]
    jacobian = np.kron(np.tri(K), np.eye(d))
    blocks = block_diag(*(resp.sum(axis=0)[:, None, None] * precisions))
    sums = np.einsum("kde,ke->kd", precisions, resp.T @ X).ravel()
    return jacobian.T @ blocks @ jacobian, jacobian.T @ sums


def ecm_by_hand(H, c, relative, clearance, feature):
    """One conditional maximum after the other, as the linear systems say.

    For two unit Gaussians this is Algorithm 1 of the paper, with its sign and N_2 for its N_1.
    """
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


@pytest.mark.bits
@pairwise(kind=TYPES, clearance=[0.0, 0.05, 1.0], solver=["ecm", "em"])
def test_a_step_of_means_is_the_constrained_maximum_joint_or_one_after_the_other(
    kind, clearance, solver
):
    n_held = 0
    for seed, (K, d) in product(range(2), [(1, 1), (2, 1), (3, 2), (4, 3)]):
        options = dict(solver=solver, clearance=clearance, fixed=("covariances",))
        X, resp, (means, covariances), (moved, _) = one_step(seed, kind, K, d, **options)
        H, c = quadratic(X, resp, np.linalg.inv(covariances))
        if solver == "em":
            expected = best_by_enumeration(H, c, K, d, clearance, seed % d)
        else:
            relative = np.diff(means, axis=0, prepend=0.0)
            expected = ecm_by_hand(H, c, relative, clearance, seed % d)
        assert_allclose(moved, expected, rtol=1e-9, atol=1e-10)
        n_held += (np.diff(moved[:, seed % d]) < clearance + 1e-9).sum()
    assert n_held > 0 or clearance < 0.5  # the order binds


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("solver", ["ecm", "em"])
def test_covariances_are_about_the_means_they_go_with(solver, kind):
    X, resp, _, (means, covariances) = one_step(4, kind, 3, 2, solver=solver, clearance=2.0)
    gaps = X[:, None] - means
    expected = np.einsum("nk,nkd,nke->kde", resp / resp.sum(axis=0), gaps, gaps)
    expected = in_type(kind, expected, resp.sum(axis=0))
    assert_allclose(covariances, expected, rtol=1e-10, atol=1e-10)


# Standard deviations.


def expected_log_density(X, resp, means, covariances):
    gaps = X[:, None] - means
    squares = np.einsum("nkd,kde,nke->nk", gaps, np.linalg.inv(covariances), gaps)
    return -0.5 * np.sum(resp * (np.linalg.slogdet(covariances)[1] + squares))


def best_by_optimizer(X, resp, means, kind, feature, clearance):
    """The covariances with the largest expected log-density under the order."""
    K, d = means.shape
    size = {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[kind]
    first = np.zeros((K, size))
    first[:, : 1 if kind == "spherical" else d] += 0.6 * np.arange(K)[:, None]

    def parts(flat):
        rows = flat.reshape(K, -1)
        if kind != "full":
            return np.exp(rows)[:, :, None] * np.eye(d)
        roots = np.zeros((K, d, d))
        roots[:, *np.tril_indices(d, -1)] = rows[:, d:]
        roots[:, np.arange(d), np.arange(d)] = np.exp(rows[:, :d])
        return roots @ roots.transpose(0, 2, 1)

    def loss(flat):
        return -expected_log_density(X, resp, means, parts(flat)) / len(X)

    def room(flat):
        return np.diff(np.sqrt(parts(flat)[:, feature, feature])) - clearance

    limits = {"constraints": {"type": "ineq", "fun": room}, "method": "SLSQP"}
    result = minimize(loss, first.ravel(), **limits, options={"maxiter": 1000, "ftol": 1e-14})
    return parts(result.x)


@pairwise(clearance=[0.0, 0.1, 0.4], kind=["full", "diag", "spherical"], d=[1, 2])
def test_a_joint_step_of_scales_is_the_constrained_maximum(kind, d, clearance):
    n_held = 0
    for seed in range(6):
        options = dict(order="scales", solver="em", clearance=clearance, spread=1)
        X, resp, _, (means, covariances) = one_step(seed, kind, 3, d, **options)
        gaps = np.diff(np.sqrt(covariances[:, seed % d, seed % d]))
        assert (gaps >= clearance - 1e-12).all()
        n_held += (gaps <= clearance + 1e-9).sum()
        best = best_by_optimizer(X, resp, means, kind, seed % d, clearance)
        value, expected = (expected_log_density(X, resp, means, c) for c in (covariances, best))
        assert value >= expected - 1e-7 * len(X)
        likely = resp.sum(axis=0) > 1  # elsewhere the objective is flat
        assert_allclose(covariances[likely], best[likely], rtol=1e-3, atol=1e-3)
    assert n_held > 2  # the order binds


@pytest.mark.parametrize("clearance", [0.0, 0.2])
def test_ecm_of_scales_maximizes_over_the_first_and_then_each_gap(clearance):
    """With a search over one number at a time, mean squared deviations counted row by row."""
    for seed in range(4):
        X, resp, (_, covariances), (means, moved) = one_step(
            seed, "full", 3, 2, order="scales", clearance=clearance, spread=1
        )
        feature, counts = seed % 2, resp.sum(axis=0)
        scales = np.sqrt(covariances[:, feature, feature])
        squares = (resp * (X[:, [feature]] - means[:, feature]) ** 2).sum(axis=0) / counts
        for k in range(3):
            low = -scales[0] + 1e-3 if k == 0 else clearance - (scales[k] - scales[k - 1])

            def loss(shift, k=k, scales=scales, counts=counts, squares=squares):
                wider = scales[k:] + shift
                return counts[k:] @ (np.log(wider) + squares[k:] / (2 * wider**2))

            limits = {"bounds": (low, 20), "method": "bounded", "options": {"xatol": 1e-9}}
            result = minimize_scalar(loss, **limits)
            shift = low if loss(low) <= result.fun and k > 0 else result.x
            scales = np.append(scales[:k], scales[k:] + shift)
        assert_allclose(np.sqrt(moved[:, feature, feature]), scales, rtol=1e-5)
