"""Softmax and argmax over rows, in place."""

import numpy as np
import pytest

from skvmf._kernels.simplex import argmax_rows, softmax_rows

from .. import oracles

DTYPES = [np.float32, np.float64]
WIDTHS = [1, 2, 3, 7, 8, 15, 16, 17, 20, 64, 100]
FLOOR = np.exp(-60.0)


def problem(n, K, dtype, seed=0, spread=3.0):
    """Arguments of a row kernel, as a dict."""
    rng = np.random.default_rng(seed)
    return {
        "scores": (spread * rng.standard_normal((n, K))).astype(dtype),
        "slopes": rng.uniform(0.5, 2, n).astype(dtype),
        "offsets": rng.standard_normal(K).astype(dtype),
        "weights": rng.uniform(0, 2, n),
        "scales": rng.uniform(0.5, 2, n),
        "counts": np.zeros(K),
        "values": np.empty(n),
    }


def plain(scores, **given):
    """Arguments with unit slopes, weights and scales, and zero offsets."""
    scores = np.array(scores)
    n, K = scores.shape
    arguments = problem(n, K, scores.dtype)
    arguments["scores"] = scores
    for name in ("slopes", "weights", "scales"):
        arguments[name][:] = 1
    arguments["offsets"][:] = 0
    for name, value in given.items():
        arguments[name][:] = value
    return arguments


def run(kernel, arguments, *more):
    """Call a kernel; returns a copy of its arguments, now its results."""
    arguments = {name: value.copy() for name, value in arguments.items()}
    kernel(*arguments.values(), *more)
    return arguments


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", WIDTHS)
@pytest.mark.parametrize("n", [1, 5, 16, 37])
def test_softmax_is_softmax(n, K, dtype):
    given = problem(n, K, dtype)
    result = run(softmax_rows, given)
    z = oracles.shifted_scores(given["scores"], given["slopes"], given["offsets"])
    q = np.array([oracles.softmax(row) for row in z])
    eps = np.finfo(dtype).eps
    # the exponent z - max is rounded to its own size
    tolerance = eps * (4 + np.abs(z).max(axis=1, keepdims=True) + z.max(axis=1, keepdims=True) - z)
    expected = (given["weights"] * given["scales"])[:, None] * q
    assert np.all(np.abs(result["scores"] - expected) <= tolerance * expected)
    np.testing.assert_allclose(result["counts"], given["weights"] @ q, rtol=30 * eps)
    values = [oracles.log_sum_exp(row) for row in z]
    np.testing.assert_allclose(result["values"], values, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", WIDTHS)
def test_argmax_takes_the_first_of_the_largest(K, dtype):
    given = problem(50, K, dtype)
    given["scores"] = np.round(given["scores"])
    given["slopes"][:] = 2
    given["offsets"] = np.round(given["offsets"])
    labels = np.full(50, -1, dtype=np.int32)
    result = run(argmax_rows, given, labels)
    z = oracles.shifted_scores(given["scores"], given["slopes"], given["offsets"])
    np.testing.assert_array_equal(labels, z.argmax(axis=1))
    np.testing.assert_array_equal(result["values"], z.max(axis=1))
    np.testing.assert_array_equal(result["scores"], given["scores"])
    counts = np.bincount(labels, given["weights"], K)
    np.testing.assert_allclose(result["counts"], counts, rtol=1e-15)
