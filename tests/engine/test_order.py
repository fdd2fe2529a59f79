"""Values in ascending order, to the last digit."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.ordered import keep_order, place, project


def nearest_by_enumeration(values, weights, clearance):
    """Try every set of gaps held at the clearance and keep the best that is in order."""
    K = len(values)
    best, nearest = np.inf, None
    for held in product([False, True], repeat=K - 1):
        blocks = np.concatenate([[0], np.cumsum(~np.array(held, dtype=bool))]).astype(int)
        steps = clearance * np.arange(K)
        levels = np.bincount(blocks, weights * (values - steps)) / np.bincount(blocks, weights)
        candidate = levels[blocks] + steps
        loss = weights @ (candidate - values) ** 2
        if (np.diff(candidate) >= clearance - 1e-12).all() and loss < best:
            best, nearest = loss, candidate
    return nearest


@pytest.mark.parametrize("clearance", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_project_finds_the_nearest(K, clearance):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, weights = rng.normal(size=K), rng.uniform(0.1, 3, size=K)
        nearest = nearest_by_enumeration(values, weights, clearance)
        assert_allclose(project(values, weights, clearance), nearest, atol=1e-12)
        ordered = 1e7 + (clearance + 0.1) * np.arange(K)
        assert_array_equal(project(ordered, weights, clearance), ordered)


def test_project_leaves_equal_values_as_they_are():
    rng = np.random.default_rng(0)
    for value in (1e30, -1e30, 1 / 3, *rng.normal(size=20)):
        values, weights = np.full(3, value), rng.uniform(1e299, 1e300, size=3)
        assert_array_equal(project(values, weights, 0.0), values)


@pytest.mark.bits
@given(
    arrays(float, 5, elements=st.floats(-1e9, 1e9)),
    st.sampled_from([0.0, 0.1, 0.5, 1 / 3]),
)
def test_order_holds_to_the_last_digit(values, clearance):
    column = project(values, np.ones(5), clearance)
    means = keep_order(column, np.ones(5, dtype=bool), clearance)
    assert (means[:-1] + clearance <= means[1:]).all()
    assert (np.diff(means) >= clearance).all()
    assert_allclose(means, column, rtol=1e-15, atol=1e-15)


def test_those_without_rows_lie_between_their_neighbours():
    values = np.array([5.0, 1.0, 1.2, 0.0, 4.0, -3.0])
    alive = np.array([False, True, False, False, True, False])
    assert_array_equal(keep_order(values, alive, 2.0), [1.0, 1.0, 1.2, 1.0, 4.0, 4.0])


@pytest.mark.parametrize("value", [-9.0, 0.0, 0.4, 1.1, 9.0])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_value_is_placed_as_near_as_the_order_allows(k, value):
    values, alive = np.array([0.1, 0.7, 1.4]), np.arange(3) != k
    placed = place(values, alive, k, value, 0.3)
    assert (placed[:-1] + 0.3 <= placed[1:]).all()
    limits = {0: (-np.inf, 0.4), 1: (0.4, 1.1), 2: (1.0, np.inf)}
    assert_allclose(placed[k], np.clip(value, *limits[k]), atol=1e-15)
    assert_allclose(placed[alive], values[alive], atol=1e-15)


def test_neighbours_make_room_and_those_without_rows_give_way():
    values = np.array([0.0, 0.5, 1.0, 1.0, 4.0])
    alive = np.array([True, False, False, True, True])
    placed = place(values, alive, 1, 9.0, 1.0)
    assert_allclose(placed, [-0.5, 0.5, 1.0, 1.5, 4.0])
    alone = place(values, alive & (np.arange(5) == 0), 3, -9.0, 1.0)
    assert_allclose(alone, [0.0, 0.5, 1.0, 1.0, 4.0])
