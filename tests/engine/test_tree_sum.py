"""Sums of blocks: the same bits however the blocks are grouped, and whoever adds them when."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from skvmf._engine.parallel import BlockSum, map_reduce


def parts_of(n_blocks, seed=0):
    """Parts whose sum depends on the order in which they are added."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_blocks, 3)) * 10.0 ** rng.integers(-8, 8, size=(n_blocks, 1))


def run(parts, first, stop):
    return map_reduce(lambda i: parts[i].copy(), range(first, stop), range(first, stop))


def bits(total):
    return total.tobytes()


@pytest.mark.bits
@given(st.integers(1, 70), st.data())
def test_bits_depend_on_the_blocks_alone(n_blocks, data):
    """Cut into runs anywhere, put together in any order and tree."""
    parts = parts_of(n_blocks)
    cuts = data.draw(st.sets(st.integers(0, n_blocks)), label="cuts") | {0, n_blocks}
    edges = sorted(cuts)
    sums = [run(parts, a, b) for a, b in itertools.pairwise(edges)]
    while len(sums) > 1:
        i, j = data.draw(
            st.lists(st.integers(0, len(sums) - 1), min_size=2, max_size=2, unique=True)
        )
        sums[i].join(sums[j])
        del sums[j]
    assert bits(sums[0].total()) == bits(run(parts, 0, n_blocks).total())


def test_single_blocks_may_come_in_any_order():
    parts, rng = parts_of(200), np.random.default_rng(1)
    expected = bits(run(parts, 0, 200).total())
    for _ in range(5):
        total = BlockSum()
        for i in rng.permutation(200):
            total.add(int(i), parts[i].copy())
        assert bits(total.total()) == expected


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
def test_threads_do_not_matter_and_sums_are_right_to_rounding(n_threads):
    parts = np.random.default_rng(0).random((777, 2))
    with threadpool_limits(n_threads, user_api="blas"):
        found = run(parts, 0, 777).total()
    total = BlockSum()
    for i, part in enumerate(parts):
        total.add(i, part.copy())
    assert bits(found) == bits(total.total())
    np.testing.assert_allclose(found, parts.sum(axis=0), rtol=1e-13)
