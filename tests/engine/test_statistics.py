"""What passes between the answers: statistics add, and a fit remembers what befell it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skvmf._engine.blocks import MAX_KEPT, BufferPool
from skvmf._engine.contracts import Params, Statistics


def part(value, worst, buffers=None):
    moments, counts = (np.full((2, 3), value), np.full(2, value)), np.full(2, value)
    worst = np.array([worst]), np.array([int(value)])
    return Statistics(value, 2 * value, counts, moments, None, *worst, buffers)


def test_statistics_add():
    total = part(1.0, -1.0)
    total += part(2.0, -5.0)
    total += part(4.0, -3.0)
    assert (total.value, total.total) == (7.0, 14.0)
    assert_array_equal(total.counts, [7.0, 7.0])
    assert_array_equal(total.moments[0], np.full((2, 3), 7.0))
    assert_array_equal(total.moments[1], [7.0, 7.0])
    assert total.worst_values[0] == -5.0
    assert_array_equal(total.worst_rows, [2])
    total += part(8.0, -5.0)  # the first of equally unlikely rows is the worst
    assert_array_equal(total.worst_rows, [2])


def test_sums_that_have_been_added_are_free_to_be_filled_again():
    buffers = BufferPool()
    total, other = part(1.0, 0.0, buffers), part(2.0, 0.0, buffers)
    assert buffers.acquire("sums", (2, 3)).shape == (2, 3)  # so such are wanted
    total += other
    assert buffers.acquire("sums", (2, 3)) is other.moments[0]


def test_arrays_are_kept_for_those_who_ask_for_such():
    buffers, array = BufferPool(), np.zeros((2, 3))
    buffers.release("sums", array)
    assert buffers.acquire("sums", (2, 3)) is not array  # nobody had asked before
    buffers.release("sums", array)
    assert buffers.acquire("products", (2, 3)) is not array
    assert buffers.acquire("sums", (2, 3)) is array


@pytest.mark.parametrize(("shape", "dtype"), [((3, 2), np.float64), ((2, 3), np.float32)])
def test_arrays_of_another_shape_or_type_are_dropped(shape, dtype):
    buffers, array = BufferPool(), np.zeros((2, 3))
    buffers.acquire("sums", (2, 3))
    buffers.release("sums", array)
    other = buffers.acquire("sums", shape, dtype)
    assert other.shape == shape
    assert other.dtype == dtype
    assert buffers.acquire("sums", (2, 3)) is not array


def test_few_arrays_are_kept():
    buffers = BufferPool()
    buffers.acquire("sums", (1,))
    given = [np.zeros(1) for _ in range(2 * MAX_KEPT)]
    for array in given:
        buffers.release("sums", array)
    got = [buffers.acquire("sums", (1,)) for _ in given]
    assert sum(any(one is other for other in given) for one in got) == MAX_KEPT


def test_at_a_start_nothing_has_happened():
    params = Params.first(np.array([1.0, 0.0]), "components")
    assert not params.reseeded.any()
    assert not params.on_floor.any()
    assert_array_equal(params.pruned().reseeded, [False, True])
    assert_array_equal(params.reseeded, [False, False])


def test_what_all_blocks_need_is_made_once_for_its_owner():
    buffers, owner, other = BufferPool(), object(), object()
    first = buffers.cached("natural", owner, lambda: np.zeros(2))
    assert buffers.cached("natural", owner, lambda: np.ones(2)) is first
    assert buffers.cached("other", owner, lambda: np.ones(2)) is not first
    assert_array_equal(buffers.cached("natural", other, lambda: np.ones(2)), 1)


def test_the_least_likely_rows_of_all_blocks_are_kept():
    first, second = part(1.0, -1.0), part(2.0, -3.0)
    first.worst_values, first.worst_rows = np.array([-4.0, -1.0]), np.array([1, 2])
    second.worst_values, second.worst_rows = np.array([-3.0]), np.array([3])
    first += second
    assert_array_equal(first.worst_values, [-4.0, -3.0])
    assert_array_equal(first.worst_rows, [1, 3])
