"""Updates of ordered standard deviations, each against what it should maximize."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar

from skvmf._engine.contracts import Update
from skvmf._engine.covariance import COVARIANCE_TYPES
from skvmf._engine.ordered import (
    RelativeECM,
    RelativeEM,
    ScaleObjective,
    ScaleOrder,
    ScaleUpdate,
)

from ..pairwise import pairwise
from .test_ordered_means import problem, statistics

TYPES = ["full", "diag", "spherical"]


def expected_log_density(X, resp, means, covariances):
    """The expected log-likelihood, row by row; covariances (K, d, d)."""
    gaps = X[:, None] - means
    squares = np.einsum("nkd,kde,nke->nk", gaps, np.linalg.inv(covariances), gaps)
    return -0.5 * np.sum(resp * (np.linalg.slogdet(covariances)[1] + squares))


def widths(covariances, feature):
    return np.sqrt(covariances[:, feature, feature])


def full(covariances, d):
    """Covariances of any type as matrices (K, d, d)."""
    if np.ndim(covariances) == 3:
        return covariances
    return np.eye(d) * np.reshape(covariances, (len(covariances), -1))[:, :, None]


def parts(flat, covariance_type, K, d):
    """Covariances (K, d, d) of numbers without bounds."""
    rows = flat.reshape(K, -1)
    if covariance_type != "full":
        return np.exp(rows)[:, :, None] * np.eye(d)
    roots = np.zeros((K, d, d))
    roots[:, *np.tril_indices(d, -1)] = rows[:, d:]
    roots[:, np.arange(d), np.arange(d)] = np.exp(rows[:, :d])
    return roots @ roots.transpose(0, 2, 1)


def best_by_optimizer(X, resp, means, covariance_type, feature, clearance):
    """The covariances with the largest expected log-density under the order."""
    K, d = means.shape
    size = {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[covariance_type]
    first = np.zeros((K, size))
    first[:, : 1 if covariance_type == "spherical" else d] += 0.6 * np.arange(K)[:, None]

    def loss(flat):
        return -expected_log_density(X, resp, means, parts(flat, covariance_type, K, d)) / len(X)

    def room(flat):
        return np.diff(widths(parts(flat, covariance_type, K, d), feature)) - clearance

    limits = {"constraints": {"type": "ineq", "fun": room}, "method": "SLSQP"}
    found = minimize(loss, first.ravel(), **limits, options={"maxiter": 1000, "ftol": 1e-14})
    return parts(found.x, covariance_type, K, d)


def wide_and_narrow(seed, covariance_type, K=3, d=2, clearance=0.0):
    """A problem whose components are in the order of their widths, and want other widths."""
    X, resp, family, components, _ = problem(seed, covariance_type, K, d)
    order = np.argsort(widths(full(components.covariances, d), seed % d))
    covariances = ScaleOrder(seed % d, clearance).apart(
        family.type, components.covariances[order], np.ones(K, dtype=bool)
    )
    components = family.components(components.means, covariances)
    return X, resp, family, components, statistics(X, resp, family, components)


@pairwise(clearance=[0.0, 0.1, 0.4], covariance_type=TYPES, d=[1, 2])
def test_the_joint_step_is_the_constrained_maximum(covariance_type, d, clearance):
    held = 0
    for seed in range(6):
        X, resp, family, components, stats = wide_and_narrow(
            seed, covariance_type, d=d, clearance=clearance
        )
        update = ScaleUpdate(Update(), ScaleOrder(seed % d, clearance), joint=True)
        moved, broken = update(family, stats, components)
        assert not broken.any()
        covariances = full(moved.covariances, d)
        expected = best_by_optimizer(X, resp, moved.means, covariance_type, seed % d, clearance)
        gaps = np.diff(widths(covariances, seed % d))
        assert (gaps >= clearance).all()
        held += (gaps <= clearance + 1e-12).sum()
        value = expected_log_density(X, resp, moved.means, covariances)
        best = expected_log_density(X, resp, moved.means, expected)
        assert value >= best - 1e-7 * len(X)
        assert_allclose(covariances, expected, rtol=1e-3, atol=1e-3)
    assert held > 2  # the order binds


@pytest.mark.parametrize("clearance", [0.0, 0.2])
def test_ecm_maximizes_over_the_first_and_then_each_gap(clearance):
    """With a search over one number at a time, mean squared deviations counted row by row."""
    for seed in range(20):
        X, resp, family, components, stats = wide_and_narrow(seed, "full", clearance=clearance)
        order = ScaleOrder(seed % 2, clearance)
        moved, _ = ScaleUpdate(Update(), order)(family, stats, components)
        scales = widths(components.covariances, seed % 2)
        counts = resp.sum(axis=0)
        squares = (resp * (X[:, [seed % 2]] - moved.means[:, seed % 2]) ** 2).sum(axis=0) / counts
        for k in range(3):
            low = -scales[0] + 1e-3 if k == 0 else clearance - (scales[k] - scales[k - 1])

            def loss(shift, k=k, scales=scales, counts=counts, squares=squares):
                own = scales[k:] + shift
                return counts[k:] @ (np.log(own) + squares[k:] / (2 * own**2))

            found = minimize_scalar(
                loss, bounds=(low, 10), method="bounded", options={"xatol": 1e-9}
            )
            shift = low if loss(low) <= found.fun and k > 0 else found.x
            scales = np.append(scales[:k], scales[k:] + shift)
        assert_allclose(widths(moved.covariances, seed % 2), scales, rtol=1e-5)


def test_ecm_goes_uphill_where_there_are_two_hills():
    target = ScaleObjective(np.array([0.1, 0.9]), np.array([1e-6, 3.0]))
    values = [
        target.value(first + np.array([0.0, 1.0])) for first in np.geomspace(1e-7, 10, 10_000)
    ]
    hills = (np.diff(np.sign(np.diff(values))) < 0).sum()
    assert hills == 2
    for first in np.geomspace(1e-7, 10, 50):
        scales = first + np.array([0.0, 1.0])
        moved = target.moved_together(scales)
        assert target.value(moved) >= target.value(scales)
        assert abs(target.slopes(moved).sum() * moved[0]) < 1e-6


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("joint", [False, True])
def test_no_step_loses_anything(covariance_type, joint):
    for seed in range(10):
        order = ScaleOrder(seed % 3, [0.0, 0.3][seed % 2])
        X, resp, family, components, _ = wide_and_narrow(
            seed, covariance_type, 4, 3, order.clearance
        )
        for _ in range(5):
            stats = statistics(X, resp, family, components)
            moved, _ = ScaleUpdate(Update(), order, joint)(family, stats, components)
            before, after = (
                expected_log_density(X, resp, c.means, full(c.covariances, 3))
                for c in (components, moved)
            )
            assert after >= before - 1e-9
            scales = order.scales(family.type, moved.covariances, 4)
            assert (np.diff(scales) >= order.clearance).all()
            components = moved


@pytest.mark.slow
def test_many_conditional_steps_reach_the_joint_one():
    for seed in range(5):
        _, _, family, components, stats = wide_and_narrow(seed, "diag")
        order = ScaleOrder(0, 0.05)
        target = ScaleObjective(
            stats.counts / stats.total,
            order.scales(family.type, Update()(family, stats, components)[0].covariances, 3),
        )
        scales = np.array([1.0, 2.0, 3.0])
        joint = order.joint(target, scales)
        for _ in range(500):
            scales = order.conditional(target, scales)
        assert_allclose(scales, joint, rtol=1e-5)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_the_joint_step_is_em_where_the_order_is_free(covariance_type):
    X, resp, family, components, stats = problem(0, covariance_type)
    plain, _ = Update()(family, stats, components)
    order = np.argsort(widths(full(plain.covariances, 2), 0))
    stats = statistics(X, resp[:, order], family, components)
    plain, _ = Update()(family, stats, components)
    moved, _ = ScaleUpdate(Update(), ScaleOrder(0), joint=True)(family, stats, components)
    assert_array_equal(moved.means, plain.means)
    assert_array_equal(moved.covariances, plain.covariances)


def test_stretching_keeps_what_the_feature_does_not_explain():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 4, 4))
    covariances = roots @ roots.transpose(0, 2, 1)
    variances = np.array([0.1, 2.0, 70.0])
    stretched = COVARIANCE_TYPES["full"].stretched(covariances, 1, variances)
    assert_array_equal(stretched[:, 1, 1], variances)
    assert_array_equal(stretched, stretched.transpose(0, 2, 1))
    others = [0, 2, 3]
    for before, after in zip(covariances, stretched, strict=True):
        assert_allclose(after[others, 1] / after[1, 1], before[others, 1] / before[1, 1])
        rest = [
            (S - np.outer(S[1], S[1]) / S[1, 1])[np.ix_(others, others)] for S in (before, after)
        ]
        assert_allclose(rest[1], rest[0], atol=1e-12)


UPDATES = [
    ScaleUpdate(Update(), ScaleOrder(0, 0.5)),
    ScaleUpdate(Update(), ScaleOrder(0, 0.5), joint=True),
    ScaleUpdate(RelativeECM(0, 0.5), ScaleOrder(0, 0.5)),
    ScaleUpdate(RelativeEM(0, 0.5), ScaleOrder(0, 0.5), joint=True),
]
NAMES = ["scales, ecm", "scales, em", "both, ecm", "both, em"]


def in_order(update, family, components):
    alive = np.ones(len(components), dtype=bool)
    covariances = update.order.apart(family.type, components.covariances, alive)
    return family.components(components.means, covariances)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_a_component_without_rows_keeps_out_of_the_way(update):
    X, resp, family, components, _ = problem(3, K=4)
    components = in_order(update, family, components)
    resp[:, 1] = 0
    moved, _ = update(family, statistics(X, resp, family, components), components)
    scales = update.order.scales(family.type, moved.covariances, 4)
    assert (np.diff(scales) >= 0).all()
    others = np.delete(np.arange(4), 1)
    assert (np.diff(scales[others]) >= 0.5).all()
    alone = family.components(components.means[others], components.covariances[others])
    stats = statistics(X, resp[:, others], family, alone)
    assert_allclose(moved.covariances[others], update(family, stats, alone)[0].covariances)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_a_broken_component_stays_in_order(update):
    X, resp, family, components, _ = problem(3)
    components = in_order(update, family, components)
    resp[:, 1] = 0
    resp[0, 1] = 1.0  # one row has no covariance
    stats = statistics(X, resp, replace(family, reg_covar=0.0), components)
    moved, broken = update(family, stats, components)
    assert_array_equal(broken, [False, True, False])
    assert (np.diff(update.order.scales(family.type, moved.covariances, 3)) >= 0).all()
    assert np.isfinite(moved.log_det).all()


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_component_is_moved_to_a_row_within_the_order(update, k):
    _, _, family, components, _ = problem(3)
    for size in [1e-3, 1.0, 5.0]:  # of all components: there may be no room below
        own = in_order(
            update, family, family.components(components.means, size * components.covariances)
        )
        moved = update.reseed(family, own, np.arange(3) != k, k, np.array([1.2, 9.0]))
        assert moved.means[k, 1] == 9
        assert np.isfinite(moved.log_det).all()
        assert (np.diff(update.order.scales(family.type, moved.covariances, 3)) >= 0.5).all()


@pytest.mark.parametrize("share", [0.5, 1e-6, 1e-12])
def test_a_root_is_found_over_many_orders_of_magnitude(share):
    """Components on copies of one row, with almost no regularization, one of which widens."""
    target = ScaleObjective(np.array([1 - share, share]), np.array([1e-150, 1.0]))
    moved = target.moved_together(np.full(2, 1e-150))
    assert_allclose(moved, np.sqrt(share), rtol=1e-12)


@pytest.mark.parametrize("here", [1.0, 1e20, 3e141, 5e149])
def test_a_root_far_below_is_found(here):
    target = ScaleObjective(np.array([0.6]), np.array([0.82]))
    assert_allclose(target.moved_together(np.array([here])), 0.82, rtol=1e-12)


def test_widths_a_world_apart_come_into_order():
    """The square of what one is stretched by is beyond the largest float; its variance is not."""
    order, kind = ScaleOrder(0, 1.0), COVARIANCE_TYPES["spherical"]
    moved = order.apart(kind, np.array([1e18, 1e-300]), np.ones(2, dtype=bool))
    assert np.isfinite(moved).all()
    assert np.diff(order.scales(kind, moved, 2)) >= 1.0


def test_the_least_width_stays_positive():
    """Where the clearance is so wide that rounding takes a difference to zero."""
    kind, order = COVARIANCE_TYPES["spherical"], ScaleOrder(0, 0.3)
    variances = np.array([1e-150, 0.3, 0.3, 0.6]) ** 2
    moved = order.apart(kind, variances, np.ones(4, dtype=bool))
    assert moved[0] == variances[0]
    assert_allclose(np.sqrt(moved[1:]), [0.3, 0.6, 0.9])
