"""Blocks that lie in pieces of chunks: none is lost, and none is read twice."""

import itertools
import pickle
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from skvmf._engine.blocks import block_rows
from skvmf._engine.dask import (
    Carried,
    Cut,
    Format,
    Stack,
    count_pieces,
    cut,
    measure,
    sum_rows,
    summary,
)
from skvmf._engine.rows import make_rows


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 17))
def test_cuts_hold_every_row_once_in_whole_blocks(lengths, size):
    starts = np.cumsum([0, *lengths])
    rows = []
    for one in cut(lengths, size):
        assert one.start % size == 0
        own = [starts[chunk] + i for chunk, a, b in one.pieces for i in range(a, b)]
        assert own == list(range(one.start, one.start + one.n_rows))
        assert one.n_rows % size == 0 or one.start + one.n_rows == starts[-1]
        chunk, first, _ = one.pieces[0]
        assert starts[chunk] + first == one.start  # it begins in the chunk that it is listed by
        rows += own
    assert rows == list(range(starts[-1]))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_a_stack_is_like_the_whole(lengths, data):
    n = sum(lengths)
    X = np.arange(3 * n).reshape(n, 3)
    ends = np.cumsum(lengths)
    pieces = [(X, int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]
    stack = Stack(pieces, 3)
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    assert stack.shape == X.shape
    parts = [array[a:b] for array, a, b in stack.within(slice(start, stop))]
    assert_array_equal(np.concatenate(parts), X[start:stop])
    wanted = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    assert_array_equal(np.concatenate(stack.take(wanted)), X[wanted])


def measured(chunks, size, weights=None, unit=False):
    """Return the state of dense chunks in blocks of a size."""
    lengths = list(map(len, chunks))
    how = Format(chunks[0].shape[1], np.dtype(float), False, unit, size, False)
    return measure(chunks, weights or [None] * len(chunks), lengths, cut(lengths, size), how)


@pytest.mark.parametrize("unit", [False, True])
def test_what_is_kept_beside_rows_takes_ten_bytes_a_row_at_most(unit):
    X = np.random.default_rng(0).normal(size=(100_000, 16))
    state = measured([X], block_rows(*X.shape, is_sparse=False), unit=unit)
    assert len(pickle.dumps(state)) <= 10 * len(X)


def test_weights_of_whole_chunks_are_not_copied():
    weights = np.ones(8192)
    state = measured([np.ones((8192, 2))], 4096, [weights])
    assert np.shares_memory(state.weights[0], weights)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sums_over_pieces_are_those_of_the_whole(form):
    """In two groups that come in the wrong order, with a block across each seam."""
    rng = np.random.default_rng(0)
    X = form(np.maximum(rng.normal(size=(300_000, 3)), 0))
    size = block_rows(*X.shape, is_sparse=sparse.issparse(X))
    lengths = [100_000, 5000, 195_000]
    edges = np.cumsum([0, *lengths])
    chunks = [X[a:b] for a, b in itertools.pairwise(edges)]
    how = Format(3, X.dtype, sparse.issparse(X), True, size, True)
    cuts = cut(lengths, size)
    sums = []
    for group in (cuts[1:], cuts[:1]):
        state = measure(chunks, [None] * 3, lengths, group, how)
        assert summary(state).largest_weight == 1
        sums.append(sum_rows(Carried(told, 1.0), chunks, state))
    sums[0].join(sums[1])
    assert_array_equal(
        sums[0].total(), make_rows(X, None, unit=True, columns=True).map_reduce(told)
    )


def test_sound_chunks_stay_as_they_are_beside_others_that_are_copied():
    """Rows that lie at odd addresses are copied into pages that no sound chunk may become."""
    rng = np.random.default_rng(0)
    raw = np.empty(4096 * 24 + 1, np.uint8)
    off = raw[1:].view(np.float64).reshape(4096, 3)
    off[:] = rng.normal(size=off.shape)
    chunks = [rng.normal(size=(4096, 3)), off, rng.normal(size=(4096, 3))]
    before, state = [chunk.copy() for chunk in chunks], measured(chunks, 2048)
    for _ in range(3):
        total = sum_rows(Carried(released, 1.0), chunks, state).total()
    assert_array_equal(chunks, before)
    assert_allclose(total, np.sum(before, axis=(0, 1)))


def released(chunk):
    """The sum of the rows, which are given back."""
    total = chunk.X.sum(axis=0)
    chunk.release()
    return total


def test_threads_share_chunks_of_one_block():
    """Each waits for the other."""
    chunks, both = [np.ones((8, 3)), np.ones((8, 3))], Barrier(2)
    state = measured(chunks, 8)

    def wait(chunk):
        both.wait(timeout=30)
        return chunk.X.sum()

    with threadpool_limits(2):
        assert sum_rows(Carried(wait, 1.0), chunks, state).total() == 48


def test_pieces_are_few_where_blocks_follow_one_another():
    assert count_pieces(cut([8 * 64], 8), 8) == 1
    assert count_pieces([Cut(8 * i, ((0, 0, 8),)) for i in range(0, 64, 2)], 8) == 32


def told(chunk):
    """Sums that depend on the rows, their scales and numbers."""
    values = chunk.data if hasattr(chunk, "data") else chunk.X
    if hasattr(chunk, "data"):
        values = values[chunk.indptr[0] : chunk.indptr[-1]]
    return np.array([values.sum(), chunk.scales.sum(), chunk.start], dtype=float)
