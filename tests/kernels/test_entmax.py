"""Sparse posteriors over rows."""

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvmf._kernels.simplex import entmax, entmax_rows

from .. import oracles
from ..conftest import FULL_SIZE
from .test_simplex import plain, problem, run

DTYPES = [np.float32, np.float64]
ALPHAS = [1.05, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]


def share_out(z, alpha):
    """Return p and T of the rows of z."""
    z = np.atleast_2d(z)
    p, T = np.zeros_like(z), np.empty(len(z))
    entmax(z, alpha, p, T)
    return p, T


def test_values_against_the_reference_table():
    table = dict(np.load(Path(__file__).parents[1] / "reference" / "entmax_table.npz"))
    for i, alpha in enumerate(table["alpha"]):
        span = slice(*table["offsets"][i : i + 2])
        result = run(entmax_rows, plain(table["z"][span]), alpha)
        np.testing.assert_allclose(result["values"], table["conjugate"][i], rtol=4e-15, atol=1e-15)


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


# Entmax where scores tie with each other, or with the threshold, but for their rounding.


EXTREME_ALPHAS = [1 + 1e-9, 1.01, 1.25, 1.5, 1.75, 2.0, 2.0001, 2.5, 3.0, 6.0, 10.0, 100.0]
ENDLESS = [0, -1, -1, -3, 0, -2, -3, -2, 0, -1, -3, -1, -3, -3, -2]  # thirds


def ends(function, *arguments):
    """Return what a function returns, or fail where it has not ended after a minute.

    Kernels let go of the interpreter's lock, so that one that never ends lets tests go on.
    """
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join(60)
    assert results, f"{function.__name__} has not ended"
    return results[0]


def assert_optimal(z, p, alpha):
    """The KKT conditions: p^c falls by c times the gap of scores, down to 0 and no further."""
    c, eps, top = alpha - 1, float(np.finfo(z.dtype).eps), z.argmax()
    gaps, p = c * (z[top] - z.astype(float)), p.astype(float)
    rounding = 8 * eps * c + 1e-15
    below = p[top] ** c - gaps
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=eps * (4 + 2 * len(z)))
    np.testing.assert_allclose(p[p > 0] ** c, below[p > 0], rtol=0, atol=rounding)
    assert np.all(below[p == 0] <= rounding)


@st.composite
def grids(draw):
    """Scores on a grid of thirds, sevenths or tenths, rounded here and there in other ways."""
    steps = np.array(draw(st.lists(st.integers(-6, 0), min_size=1, max_size=70)))
    scale = draw(st.sampled_from([0.01, 0.5, 1.0, 2.0])) / draw(st.sampled_from([3, 7, 10]))
    z = steps * scale
    rounded = draw(st.sampled_from([z, np.round(z, 16), np.round(z, 8), z.astype(np.float32)]))
    z = np.where(draw(st.booleans()) & (np.arange(len(z)) % 2 == 0), z, rounded)
    shift = draw(st.sampled_from([0.0, 1 / 3, -0.1, 100.0, -1e6]))
    return (z + shift).astype(draw(st.sampled_from([np.float32, np.float64])))


@settings(max_examples=300 if FULL_SIZE else 60)
@given(z=grids(), alpha=st.sampled_from(EXTREME_ALPHAS), span=st.sampled_from([1.0, 3.0, 1 / 3]))
def test_optimal_on_a_grid(z, alpha, span):
    """Also where the grid's step is a fraction of 1 / c, within which entries have shares."""
    z = (span / max(alpha - 1, 1.0) * z).astype(z.dtype)
    p, _T = ends(share_out, z[None], alpha)
    assert_optimal(z, p[0], alpha)
    values = ends(run, entmax_rows, plain(z, z.dtype), alpha)
    np.testing.assert_array_equal(values["scores"], p)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [16, 17])
def test_the_support_of_sparsemax_does_not_swing(decimals, dtype):
    """An entry that joins raises the threshold above itself, and one that leaves lowers it."""
    z = np.round(np.array(ENDLESS) / 3, decimals).astype(dtype)
    p, _ = ends(share_out, z[None], 2.0)
    assert_optimal(z, p[0], 2.0)


@pytest.mark.parametrize("alpha", [2.5, 100.0, 1e10, 1e300, 1.7e308])
@pytest.mark.parametrize("top", [0.0, 5e-324, 1e-310, -1e-300, 1.0])
def test_neighbours_are_told_apart_down_to_subnormal_numbers(alpha, top):
    """Half a gap of theirs cannot be written down."""
    z = np.r_[top, np.nextafter(top, -1), -1.0, top, top - 1e-323, -1e308]
    p, T = ends(share_out, z[None], alpha)
    assert p[0].sum() == pytest.approx(1, rel=1e-15)
    assert T[0] >= 0
    assert np.all(np.diff(p[0, np.argsort(z)]) >= -1e-15)


@pytest.mark.parametrize("alpha", EXTREME_ALPHAS)
def test_all_entries_on_the_threshold(alpha):
    """Two entries, and many at the distance where the first takes all, to either side."""
    edge = -1 / (alpha - 1)
    for size in (1, 5, 30):
        for step in (-2, -1, 0, 1, 2):
            z = np.r_[0.0, np.full(size, edge + step * np.spacing(edge))]
            p, _ = ends(share_out, z[None], alpha)
            assert_optimal(z, p[0], alpha)
            assert p[0, 0] == pytest.approx(1, abs=1e-13)
