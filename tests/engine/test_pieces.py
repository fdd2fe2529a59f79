"""Blocks that lie in pieces of chunks: none is lost, and none is read twice."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from skvmf._engine.pieces import Carried, Format, Stack, cut, measure, sum_rows, summary
from skvmf._engine.rows import block_rows, make_rows


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
    assert_array_equal(stack[start:stop], X[start:stop])
    wanted = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    assert_array_equal(np.concatenate(stack.take(wanted)), X[wanted])


@pytest.mark.parametrize("unit", [False, True])
def test_what_is_kept_beside_rows_takes_ten_bytes_a_row_at_most(unit):
    X = np.random.default_rng(0).normal(size=(100_000, 16))
    size = block_rows(*X.shape, is_sparse=False)
    how = Format(16, X.dtype, False, unit, size, False)
    state = measure([X], [None], [len(X)], cut([len(X)], size), how)
    assert len(pickle.dumps(state)) <= 10 * len(X)


def test_weights_of_whole_chunks_are_not_copied():
    X, weights = np.ones((8192, 2)), np.ones(8192)
    how = Format(2, X.dtype, False, False, 4096, False)
    state = measure([X], [weights], [len(X)], cut([len(X)], 4096), how)
    assert np.shares_memory(state.weights[0], weights)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sums_over_pieces_are_those_of_the_whole(form):
    """In two groups that come in the wrong order, with a block across each seam."""
    rng = np.random.default_rng(0)
    X = form(np.maximum(rng.normal(size=(300_000, 3)), 0))
    size = block_rows(*X.shape, is_sparse=sparse.issparse(X))
    lengths = [100_000, 5000, 195_000]
    edges = np.cumsum([0, *lengths])
    chunks = [X[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]
    how = Format(3, X.dtype, sparse.issparse(X), True, size, True)
    cuts = cut(lengths, size)
    sums = []
    for group in (cuts[1:], cuts[:1]):
        state = measure(chunks, [None] * 3, lengths, group, how)
        assert summary(state).largest_weight == 1
        sums.append(sum_rows(Carried(told, 1.0), chunks, state))
    sums[0].join(sums[1])
    assert_array_equal(sums[0].total(), make_rows(X, None, unit=True, columns=True).fold(told))


def told(chunk):
    """Sums that depend on the rows, their scales and numbers."""
    values = chunk.data if hasattr(chunk, "data") else chunk.X
    if hasattr(chunk, "data"):
        values = values[chunk.indptr[0] : chunk.indptr[-1]]
    return np.array([values.sum(), chunk.scales.sum(), chunk.start], dtype=float)
