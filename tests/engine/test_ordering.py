"""Values in ascending order, to the last digit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.families.covariance import COVARIANCE_TYPES
from skvmf._engine.families.ordering import ScaleObjective, ScaleOrder, insert, keep_order, project


@pytest.mark.bits
@given(arrays(float, 5, elements=st.floats(-1e9, 1e9)), st.sampled_from([0.0, 0.1, 0.5, 1 / 3]))
def test_order_holds_to_the_last_digit(values, clearance):
    column = project(values, np.ones(5), clearance)
    means = keep_order(column, np.ones(5, dtype=bool), clearance)
    assert (means[:-1] + clearance <= means[1:]).all()
    assert (np.diff(means) >= clearance).all()
    assert_allclose(means, column, rtol=1e-15, atol=1e-15)


@pytest.mark.bits
@pytest.mark.parametrize("clearance", [0.1, 0.3, 1 / 3])
def test_what_is_in_order_stays_as_it_is(clearance):
    """A fit goes on where another one ended, also if that one comes from a file."""
    for values in np.random.default_rng(0).normal(size=(100, 5)):
        moved = keep_order(project(values, np.ones(5), clearance), np.ones(5, bool), clearance)
        assert_array_equal(project(moved, np.ones(5), clearance), moved)


@pytest.mark.parametrize("value", [-9.0, 0.0, 0.4, 1.1, 9.0])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_value_is_inserted_as_near_as_the_order_allows(k, value):
    values, alive = np.array([0.1, 0.7, 1.4]), np.arange(3) != k
    moved = insert(values, alive, k, value, 0.3)
    assert (moved[:-1] + 0.3 <= moved[1:]).all()
    limits = {0: (-np.inf, 0.4), 1: (0.4, 1.1), 2: (1.0, np.inf)}
    assert_allclose(moved[k], np.clip(value, *limits[k]), atol=1e-15)
    assert_allclose(moved[alive], values[alive], atol=1e-15)


def test_neighbours_make_room_and_those_without_rows_give_way():
    values = np.array([0.0, 0.5, 1.0, 1.0, 4.0])
    alive = np.array([True, False, False, True, True])
    moved = insert(values, alive, 1, 9.0, 1.0)
    assert_allclose(moved, [-0.5, 0.5, 1.0, 1.5, 4.0])
    alone = insert(values, alive & (np.arange(5) == 0), 3, -9.0, 1.0)
    assert_allclose(alone, [0.0, 0.5, 1.0, 1.0, 4.0])


# Updates of ordered standard deviations, each against what it should maximize.


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
