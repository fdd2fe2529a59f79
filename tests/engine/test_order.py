"""Values in ascending order, to the last digit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from skvmf._engine.ordered import keep_order, place, project


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
