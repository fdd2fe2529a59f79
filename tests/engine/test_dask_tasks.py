"""Sums over blocks that lie in any chunks are those over rows in memory."""

import pickle
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

pytest.importorskip("dask.array", reason="needs Dask: pip install 'skvmf[dask]'")

import dask

from skvmf._engine.rows.dask import DaskRows
from skvmf._engine.rows.sources import make_rows

from ..dask.data import chunked
from ..hooks import few_rows_in_blocks
from .test_rows import told


@pytest.fixture(autouse=True, scope="module")
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def weighed(start, weights):
    return np.array([weights.sum(), np.sin(start)])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 17), st.data())
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sums_and_rows_are_those_of_the_whole(form, lengths, size, data):
    n = sum(lengths) + 1
    rng = np.random.default_rng(n)
    X, weights = form(np.maximum(rng.normal(size=(n, 3)), 0)), rng.random(n)
    lengths = [*lengths, 1]
    with few_rows_in_blocks(size):
        alone = make_rows(X, weights, unit=True, columns=True)
        lazy = DaskRows(chunked(X, lengths), chunked(weights, lengths), unit=True, columns=True)
    assert_array_equal(lazy.map_reduce(told), alone.map_reduce(told))
    assert_array_equal(lazy.map_reduce_weights(weighed), alone.map_reduce_weights(weighed))
    wanted = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1)))
    assert_array_equal(lazy.take(wanted), alone.take(wanted))


@pytest.mark.parametrize("unit", [False, True])
def test_what_is_kept_beside_rows_takes_ten_bytes_a_row_at_most(unit):
    X = dask.array.random.default_rng(0).normal(size=(100_000, 16), chunks=(50_000, 16))
    assert len(pickle.dumps(DaskRows(X, None, unit=unit))) <= 10 * len(X)


def test_weights_of_whole_chunks_are_not_copied_and_rows_not_read_for_them():
    weights, read = np.ones(8192), []

    def noted(block):
        read.append(len(block))
        return block

    X = chunked(np.ones((8192, 2)), [8192]).map_blocks(noted, meta=np.empty((0, 0)))
    lazy = DaskRows(X, chunked(weights, [8192], copied=False), unit=False)
    assert read == [8192]
    shared = lazy.map_reduce_weights(lambda start, own: [np.shares_memory(own, weights)])
    assert shared == [True, True]
    assert read == [8192]


def released(block):
    """The sum of the rows, which are given back."""
    total = block.X.sum(axis=0)
    block.release()
    return total


def test_sound_chunks_stay_as_they_are_beside_others_that_are_copied():
    """Rows that lie at odd addresses are copied into pages that no sound chunk may become."""
    rng = np.random.default_rng(0)
    off = np.empty(4096 * 24 + 1, np.uint8)[1:].view(np.float64).reshape(4096, 3)
    off[:] = rng.normal(size=off.shape)
    chunks = [rng.normal(size=(4096, 3)), off, rng.normal(size=(4096, 3))]
    before = np.concatenate(chunks)
    graph = {("rows", i, 0): chunk for i, chunk in enumerate(chunks)}
    X = dask.array.Array(graph, "rows", ((4096,) * 3, (3,)), meta=off[:0])
    with few_rows_in_blocks(2048):
        lazy = DaskRows(X, None, unit=False)
    for _ in range(3):
        assert_allclose(lazy.map_reduce(released), before.sum(axis=0))
    assert_array_equal(np.concatenate(chunks), before)


def test_threads_share_a_chunk_of_two_blocks():
    """Each waits for the other."""
    both = Barrier(2)

    def wait(block):
        both.wait(timeout=30)
        return block.X.sum()

    with few_rows_in_blocks(8):
        lazy = DaskRows(chunked(np.ones((16, 3)), [16]), None, unit=False)
    with threadpool_limits(2):
        assert lazy.map_reduce(wait) == 48
