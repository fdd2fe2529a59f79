"""Softmax and argmax over rows, in place."""

import numpy as np
import pytest

from skvmf._kernels.simplex import (
    argmax_rows,
    entmax,
    entmax_rows,
    largest_rows,
    log_sum_rows,
    softmax_rows,
    work_space,
)

from .. import oracles

DTYPES = [np.float32, np.float64]
FLOORS = {np.float32: 36, np.float64: 60}  # below exp(-floor) of its row's largest is nothing
WIDTHS = [1, 2, 3, 7, 8, 15, 16, 17, 20, 64, 100]


def problem(n, K, dtype, seed=0):
    """Arguments of a row kernel, as a dict in their order."""
    rng = np.random.default_rng(seed)
    return {
        "scores": (3 * rng.standard_normal((n, K))).astype(dtype),
        "slopes": rng.uniform(0.5, 2, n).astype(dtype),
        "offsets": rng.standard_normal(K).astype(dtype),
        "weights": rng.uniform(0, 2, n),
        "scales": rng.uniform(0.5, 2, n),
        "counts": np.zeros(K),
        "values": np.full(n, np.nan),
    }


def plain(scores, dtype=np.float64, **given):
    """Arguments with slopes, weights and scales of 1 and offsets of 0, but for those given."""
    scores = np.atleast_2d(np.array(scores, dtype=dtype))
    arguments = problem(*scores.shape, dtype) | {"scores": scores}
    for name in ("slopes", "weights", "scales"):
        arguments[name][:] = 1
    arguments["offsets"][:] = 0
    for name, value in given.items():
        arguments[name][:] = value
    return arguments


def run(kernel, arguments, *last):
    """Call a kernel on copies, with its work space last by default; return them, now results."""
    arguments = {name: value.copy() for name, value in arguments.items()}
    kernel(*arguments.values(), *(last or [work_space(arguments["scores"])]))
    return arguments


def labelled(arguments):
    """Call argmax_rows; return its results, labels among them."""
    labels = np.full(len(arguments["scores"]), -1, dtype=np.int32)
    rest = {name: value for name, value in arguments.items() if name != "scales"}
    return run(argmax_rows, rest | {"labels": labels})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kernel", "last"), [(softmax_rows, ()), (entmax_rows, (1.5,))])
def test_the_smallest_normal_number_stays_and_a_weight_of_zero_gives_zeros(kernel, last, dtype):
    tiny = np.finfo(dtype).tiny
    result = run(kernel, plain([0.0, -99.0], dtype, weights=tiny), *last)
    np.testing.assert_array_equal(result["scores"], [[tiny, 0]])
    given = problem(6, 9, dtype)
    given["weights"][:3] = 0
    given["scales"][3:] = 0
    result = run(kernel, given, *last)
    assert not result["scores"].any()
    np.testing.assert_allclose(result["counts"].sum(), given["weights"].sum(), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", WIDTHS)
@pytest.mark.parametrize("n", [1, 5, 16, 37])
def test_softmax_is_softmax(n, K, dtype):
    given = problem(n, K, dtype)
    result = run(softmax_rows, given)
    z = oracles.shifted_scores(given["scores"], given["slopes"], given["offsets"])
    q = np.array([oracles.softmax(row, -FLOORS[dtype]) for row in z])
    eps = np.finfo(dtype).eps
    top = z.max(axis=1, keepdims=True)
    tolerance = eps * (4 + np.abs(z) + np.abs(top) + (top - z))  # each is rounded to its size
    expected = (given["weights"] * given["scales"])[:, None] * q
    assert np.all(np.abs(result["scores"] - expected) <= tolerance * expected)
    np.testing.assert_allclose(result["counts"], given["weights"] @ q, rtol=30 * eps)
    values = [oracles.log_sum_exp(row) for row in z]
    np.testing.assert_allclose(result["values"], values, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_are_good_to_two_ulp(dtype):
    # exact, and so are their differences from 0
    exponents = -np.arange(FLOORS[dtype] * 64) / dtype(64)
    given = plain(np.column_stack([np.zeros_like(exponents), exponents]), dtype)
    q = run(softmax_rows, given)["scores"].astype(np.longdouble)
    ratio = q[:, 1] / q[:, 0] / np.exp(exponents.astype(np.longdouble))
    assert np.abs(ratio - 1).max() <= 2.5 * np.finfo(dtype).eps  # the division's among them


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:overflow")  # without the compiler
def test_slopes_that_overflow(dtype):
    half = np.finfo(dtype).max / 2
    given = plain([half, half, -half], dtype, slopes=4)
    for kernel, last in ((softmax_rows, ()), (entmax_rows, (1.5,))):
        result = run(kernel, given, *last)
        np.testing.assert_allclose(result["scores"], [[0.5, 0.5, 0]], rtol=1e-15)
        assert result["values"] == np.finfo(dtype).max
    assert labelled(given)["labels"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_dead_components_and_impossible_rows(dtype):
    given = plain([[0.0, 5.0, 0.0], [-np.inf, 1.0, 0.0], [-np.inf, 1.0, -np.inf]], dtype)
    given["offsets"][1] = -np.inf
    result = run(softmax_rows, given)
    np.testing.assert_array_equal(result["scores"], [[0.5, 0, 0.5], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(result["values"], [np.log(2), 0, -np.inf], rtol=1e-7)
    np.testing.assert_array_equal(result["counts"], [0.5, 0, 1.5])
    result = labelled(given)
    np.testing.assert_array_equal(result["labels"], [0, 2, 0])
    np.testing.assert_array_equal(result["values"], [0, 0, -np.inf])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", WIDTHS)
@pytest.mark.parametrize("n", [1, 5, 16, 37])
@pytest.mark.filterwarnings("ignore:overflow")  # without the compiler
def test_values_alone_are_those_of_softmax(n, K, dtype):
    given = problem(n, K, dtype)
    given["scores"][n // 2] = -np.inf
    given["slopes"][-1] = np.finfo(dtype).max
    alone = {name: given[name] for name in ("scores", "slopes", "offsets", "values")}
    result = run(log_sum_rows, alone)
    np.testing.assert_array_equal(result["values"], run(softmax_rows, given)["values"])
    np.testing.assert_array_equal(result["scores"], given["scores"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_shares_below_the_floor_are_zero(dtype):
    floor = FLOORS[dtype]
    depths = np.array([0, floor - 0.5, floor, floor + 0.5, 88, 104, 800], dtype=dtype)
    q = run(softmax_rows, plain([-depths], dtype))["scores"][0]
    np.testing.assert_array_equal(q > 0, depths < floor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_subnormal_leaves(dtype):
    info = np.finfo(dtype)
    depths = np.linspace(0, 59.9, 40)
    small = info.tiny * np.array([1e-3, 1.5, 1e3, 1e20])
    given = plain(np.tile(-depths, (4, 1)), dtype, weights=small)
    q = run(softmax_rows, given)["scores"]
    assert np.all((q == 0) | (q >= info.tiny))
    assert np.all(q[0] == 0)
    assert np.any(q[2] == 0)
    assert np.any(q[2] > 0)
    assert np.all(q[3] > 0) == (depths.max() < np.log(1e20))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", WIDTHS)
def test_argmax_takes_the_first_of_the_largest(K, dtype):
    given = problem(50, K, dtype)
    given["scores"], given["offsets"] = np.round(given["scores"]), np.round(given["offsets"])
    given["slopes"][:] = 2
    result = labelled(given)
    z = oracles.shifted_scores(given["scores"], given["slopes"], given["offsets"])
    np.testing.assert_array_equal(result["labels"], z.argmax(axis=1))
    np.testing.assert_array_equal(result["values"], z.max(axis=1))
    np.testing.assert_array_equal(result["scores"], given["scores"])
    counts = np.bincount(result["labels"], given["weights"], K)
    np.testing.assert_allclose(result["counts"], counts, rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_labels_are_columns_even_of_nan(dtype):
    result = labelled(plain([[np.nan, np.nan], [-np.nan, 1.0], [np.nan, 1.0]], dtype))
    assert set(result["labels"]) <= {0, 1}


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_do_not_depend_on_those_before(dtype):
    """A thread keeps its work space, and padding must be as good as new."""
    given = problem(37, 20, dtype)
    alone = run(softmax_rows, given)
    for K in (3, 20, 65, 20):
        large = problem(5, K, dtype) | {"scores": np.full((5, K), 1e30, dtype)}
        run(softmax_rows, large)
        labelled(large)
        again = run(softmax_rows, given)
        for name, value in alone.items():
            np.testing.assert_array_equal(again[name], value)


def largest(m, scores, slopes, offsets, **_):
    """Call largest_rows; return columns and z."""
    columns = np.full((len(scores), m), -1, np.int32)
    values = np.full((len(scores), m), np.nan, scores.dtype)
    largest_rows(scores, slopes, offsets, columns, values)
    return columns, values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "K"), [(1, 1), (1, 7), (5, 5), (5, 63), (24, 200), (64, 200)])
def test_the_largest_of_rows(m, K, dtype):
    given = problem(40, K, dtype)
    columns, values = largest(m, **given)
    z = given["slopes"].astype(float)[:, None] * given["scores"] + given["offsets"]
    expected = np.sort(np.argsort(-z, axis=1)[:, :m], axis=1)
    np.testing.assert_array_equal(np.sort(columns, axis=1), expected)
    of_columns = np.take_along_axis(z, columns.astype(int), axis=1)
    np.testing.assert_allclose(values, of_columns, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_of_equal_entries_are_different_columns(dtype):
    scores = np.zeros((3, 150))
    scores[1, 100:] = -np.inf
    scores[2] = -np.inf
    columns, values = largest(24, **plain(scores, dtype))
    assert all(len(set(own)) == 24 for own in columns.tolist())
    assert columns[1].max() < 100
    np.testing.assert_array_equal(values, np.repeat([[0], [0], [-np.inf]], 24, axis=1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nan_is_none_of_the_largest(dtype):
    scores = np.full((2, 150), np.nan)
    scores[0, [7, 90, 149]] = [1, 2, 3]
    columns, values = largest(4, **plain(scores, dtype))
    np.testing.assert_array_equal(columns, [[7, 90, 149, 3], [0, 1, 2, 3]])
    np.testing.assert_array_equal(values, [[1, 2, 3, -np.inf], np.full(4, -np.inf)])


def test_one_specialisation_a_precision():
    """Work space has one layout, whatever the width: compiling is what a first fit waits for."""
    given = [problem(5, K, dtype) for K in (1, 16, 20) for dtype in DTYPES]
    for arguments in given:
        run(softmax_rows, arguments)
        labelled(arguments)
        alone = {name: arguments[name] for name in ("scores", "slopes", "offsets", "values")}
        run(log_sum_rows, alone)
        run(entmax_rows, arguments, 1.5)
    for kernel in (softmax_rows, log_sum_rows, argmax_rows, entmax_rows, entmax):
        assert len(getattr(kernel, "signatures", DTYPES)) <= len(DTYPES)
