"""Sparse posteriors over rows."""

import functools
from pathlib import Path

import numba
import numpy as np
import pytest

from skvmf._kernels import entmax as kernels
from skvmf._kernels.entmax import entmax_rows

from .. import oracles
from .test_simplex import plain, problem, run

DTYPES = [np.float32, np.float64]
ALPHAS = [1.05, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]


def share_out(z, alpha):
    """Return p and T of the rows of z."""
    z = np.atleast_2d(z)
    p, T = np.zeros_like(z), np.empty(len(z))
    kernels.entmax(z, alpha, p, T)
    return p, T


def test_values_against_the_reference_table():
    table = dict(np.load(Path(__file__).parents[1] / "reference" / "entmax_table.npz"))
    for i, alpha in enumerate(table["alpha"]):
        span = slice(*table["offsets"][i : i + 2])
        result = run(entmax_rows, plain(table["z"][span]), alpha)
        np.testing.assert_allclose(result["values"], table["conjugate"][i], rtol=4e-15, atol=1e-15)


@functools.cache
def part(name):
    """A part of a kernel, which Python cannot call, as a kernel that it can."""
    function = getattr(kernels, name)
    return numba.njit(lambda y, size, p: function(y, size, p))


@pytest.mark.parametrize("solver", ["sparsemax", "three_halves"])
def test_few_and_many_agree(solver):
    """Both ways of solving one problem, on either side of where the kernel changes over.

    However many steps it takes until no entry falls below the threshold.
    """
    rng = np.random.default_rng(0)
    for _ in range(400):
        size = rng.integers(2, 21)
        y = -rng.exponential(10 ** rng.uniform(-2, 0), size)
        y -= y.max()
        p, q = np.empty(size), np.empty(size)
        T = part(f"_{solver}_of_few")(y, np.uintp(size), p)
        S = part(f"_{solver}_of_many")(y, np.uintp(size), q)
        np.testing.assert_allclose(p, q, atol=1e-15)
        np.testing.assert_allclose(T, S, atol=1e-15)


def test_rows_without_an_entmax_are_reported():
    nan, inf = np.nan, np.inf
    z = [[1.0, 0.0], [nan, 0.0], [0.0, -nan], [inf, 0.0], [-inf, -inf], [0.0, -inf], [nan, nan]]
    for alpha in ALPHAS:
        p, T = share_out(z, alpha)
        np.testing.assert_array_equal(T >= 0, [1, 0, 0, 0, 0, 1, 0])
        np.testing.assert_array_equal(p[1:5], 0)
        np.testing.assert_array_equal(p[5], [1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("n", "K"), [(1, 1), (5, 3), (16, 20), (37, 70)])
def test_rows_of_an_expectation_step(n, K, alpha, dtype):
    given = problem(n, K, dtype)
    result = run(entmax_rows, given, alpha)
    z = oracles.shifted_scores(given["scores"], given["slopes"], given["offsets"])
    p, values = zip(*[oracles.entmax(row, alpha) for row in z], strict=True)
    eps = np.finfo(dtype).eps
    # a rounding of z moves p by as much, or by its root where alpha > 2
    tolerance = (30 * eps) ** min(1, 1 / (alpha - 1))
    np.testing.assert_allclose(
        result["scores"], (given["weights"] * given["scales"])[:, None] * p, atol=4 * tolerance
    )
    np.testing.assert_allclose(result["counts"], given["weights"] @ p, atol=n * tolerance)
    np.testing.assert_allclose(result["values"], values, rtol=30 * eps, atol=30 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:overflow")  # without the compiler
def test_slopes_that_overflow(dtype):
    half = np.finfo(dtype).max / 2
    result = run(entmax_rows, plain([half, half, -half], dtype, slopes=4), 1.5)
    np.testing.assert_allclose(result["scores"], [[0.5, 0.5, 0]], rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0])
def test_no_subnormal_leaves(alpha, dtype):
    tiny = np.finfo(dtype).tiny
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 0, (200, 9)) / (alpha - 1)
    scores[:, 0] = 0
    weights = tiny * 10.0 ** rng.uniform(-2, 12, 200)
    q = run(entmax_rows, plain(scores, dtype, weights=weights), alpha)["scores"]
    assert np.all((q == 0) | (q >= tiny))
    assert np.any(q > 0)


def test_few_specialisations():
    for kernel in (entmax_rows, kernels.entmax):
        assert len(getattr(kernel, "signatures", [])) <= 2
