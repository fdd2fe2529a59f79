"""Rows as blocks: what the family sees, whatever the storage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from skvmf._engine.rows.blocks import block_rows
from skvmf._engine.rows.parallel import BlockSum, map_reduce
from skvmf._engine.rows.reading import read_as
from skvmf._engine.rows.sources import DenseRows, make_rows


def seen(rows):
    """Rebuild the whole matrix and the weights as the family sees them."""
    X, weights = np.empty((rows.n_rows, rows.n_features)), np.empty(rows.n_rows)

    def write(block, span):
        weights[span] = block.weights
        for n in range(span.stop - span.start):
            X[span.start + n] = block.row(n)

    rows.for_each(write)
    return X, weights


def data(n=300, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[7] = 0
    return X


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [False, True])
def test_rows_are_seen_whole(form, unit):
    X = data()
    weights = np.random.default_rng(1).random(300)
    rows = make_rows(form(X), weights, unit=unit)
    result, found_weights = seen(rows)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(result, X / np.where(lengths > 0, lengths, 1) if unit else X, rtol=1e-14)
    assert_array_equal(found_weights, weights * ((lengths[:, 0] > 0) | (not unit)))
    assert_allclose(rows.take(np.array([3, 9])), result[[3, 9]], rtol=1e-14)
    assert (rows.sampling_weights() > 0).sum() == (299 if unit else 300)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [False, True])
def test_blocks_measured_as_they_are_read_are_those_measured_ahead(form, unit):
    X = data(20_000, 5)
    X[3], X[9_000], X[19_000] = 0, 1e-200 * X[9_000], 1e200 * X[19_000]
    ahead, later = (make_rows(form(X), None, unit=unit, ahead=a) for a in (True, False))
    for one, other in zip(seen(ahead), seen(later), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(later.measured().largest, ahead.measured().largest)
    assert later.total_weight == ahead.total_weight


def test_mean_variance_is_exact_far_from_the_origin():
    X = data()
    near = make_rows(X, None, unit=False).mean_variance()
    far = make_rows(X + 1e9, None, unit=False).mean_variance()
    assert_allclose(near, X.var(axis=0).mean(), rtol=1e-13)
    assert_allclose(far, near, rtol=1e-6)
    assert make_rows(np.full((9, 3), 1e9), None, unit=False).mean_variance() == 0


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize(
    ("stored", "read"),
    [(np.float16, np.float32), (np.int8, np.float32), (np.uint8, np.float32),
     (np.int16, np.float32), (np.uint16, np.float32),
     (np.int32, np.float64), (np.int64, np.float64), (np.uint64, np.float64),
     (">f2", np.float32), (">f4", np.float32), (">u2", np.float32), (">f8", np.float64)],
)  # fmt: skip
def test_narrow_types_are_widened_as_they_are_read(stored, read, unit):
    X = np.abs(50 * data()).astype(stored)
    rows, wide = make_rows(X, None, unit=unit), make_rows(X.astype(read), None, unit=unit)
    assert rows.dtype == read
    assert np.shares_memory(rows._X, X)
    assert_array_equal(seen(rows)[0], seen(wide)[0])
    assert_array_equal(
        rows.map_reduce(lambda block: block.X.sum(axis=0)), X.astype(read).sum(axis=0)
    )


def off_by_a_byte(X):
    """A copy that begins at an odd address, as arrays from a wire do."""
    raw = np.empty(X.nbytes + 64, np.uint8)
    start = 1 - raw.ctypes.data % 2
    copy = raw[start : start + X.nbytes].view(X.dtype).reshape(X.shape)
    copy[:] = X
    assert not copy.flags.aligned
    return copy


STORED = {
    "half": lambda X: X.astype(np.float16),
    "half by columns": lambda X: X.astype(np.float16, order="F"),
    "half off": lambda X: off_by_a_byte(X.astype(np.float16)),
    "int8": lambda X: (9 * X).astype(np.int8),
    "by columns": np.asfortranarray,
    "off": off_by_a_byte,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_what_has_to_be_copied_goes_into_arrays_that_are_filled_again(stored):
    X = stored(np.random.default_rng(0).normal(size=(2**14, 3)))
    before, places, expected = X.copy(), set(), X.astype(read_as(X.dtype))

    def look(block, span):
        assert_array_equal(block.X, expected[span])
        places.add(block.X.__array_interface__["data"][0])
        block.release()

    with threadpool_limits(1):
        make_rows(X, None, unit=False, width=2**11).for_each(look)
    assert len(places) == 1
    assert_array_equal(X, before)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_what_is_not_finite_is_refused_with_its_rows(form, unit, bad, name):
    X = np.ones((50_000, 3))
    X[40_123, 1] = bad
    with pytest.raises(ValueError, match=f"contains {name}.*in row 40123(, column 1)?:"):
        make_rows(form(X), None, unit=unit)
    X[40_125] = bad
    with pytest.raises(
        ValueError, match=f"contains {name}.*in 2 rows from 40123(, column 1)? to 40125:"
    ):
        make_rows(form(X), None, unit=unit)


def test_a_part_of_the_rows_has_the_sums_that_the_whole_has_of_it():
    """With what was found before, and numbers of rows and blocks that go on."""
    rng = np.random.default_rng(0)
    X, weights, size = rng.normal(size=(100_000, 3)), rng.random(100_000), 4096
    X[90_000] *= 1e-200  # scaled in another way
    whole = DenseRows(X, weights, unit=True, size=size)
    total = BlockSum()
    for part in (slice(8 * size, None), slice(0, 8 * size)):
        result = DenseRows(X[part], None, unit=True, size=size).measured()
        rows = DenseRows(
            X[part], weights[part], unit=True, size=size, start=part.start, measures=result
        )
        blocks = range(len(rows.numbers))
        total.join(
            map_reduce(lambda i, part_rows=rows: told(part_rows.block(i)), blocks, rows.numbers)
        )
    assert_array_equal(total.total(), whole.map_reduce(told))


def told(block):
    """Return sums that depend on the rows, their scales, weights and numbers."""
    values = block.X if hasattr(block, "X") else block.data[block.indptr[0] : block.indptr[-1]]
    parts = values.sum(), block.scales.sum(), block.weights.sum(), np.sin(block.start)
    return np.array(parts, dtype=float)


def test_mean_variance_and_draws_are_of_the_rows_that_count():
    X, weights = data(), np.ones(300)
    weights[:150] = 0
    X[:150] = 1e9
    rows = make_rows(X, weights, unit=False)
    assert_array_equal(rows.first_row, X[150:151])
    assert_allclose(rows.mean_variance(), X[150:].var(axis=0).mean(), rtol=1e-13)
    drawn = rows.draw_in_order(1000, 0)
    assert_array_equal(np.sort(drawn), np.arange(150, 300))
    assert (np.diff(drawn) < 0).any()
    assert_array_equal(drawn[:20], rows.draw_in_order(20, 0))


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("weight", [1.0, 0.5, 7.0])
def test_some_rows_keep_weights_that_are_all_the_same(unit, weight):
    rows = make_rows(np.random.default_rng(0).normal(size=(50, 3)), None, unit=unit)
    some = rows.subset(np.arange(10, 40), np.full(30, weight), width=1)
    assert some.total_weight == 30 * weight
    assert_array_equal(some.sampling_weights(), weight)


def test_many_components_have_blocks_of_many_rows():
    """Or to add the sums of blocks would take longer than all else."""
    for width, size in [(2048, 1024), (4096, 1024), (8192, 1024), (10_000, 512), (2**20, 256)]:
        assert block_rows(10**6, 100, is_sparse=False, width=width) == size
