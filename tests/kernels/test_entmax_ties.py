"""Entmax where scores tie with each other, or with the threshold, but for their rounding."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvmf._kernels import entmax as kernels

from ..conftest import FULL_SIZE
from .test_entmax import share_out
from .test_simplex import plain, run

ALPHAS = [1 + 1e-9, 1.01, 1.25, 1.5, 1.75, 2.0, 2.0001, 2.5, 3.0, 6.0, 10.0, 100.0]
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
@given(z=grids(), alpha=st.sampled_from(ALPHAS), span=st.sampled_from([1.0, 3.0, 1 / 3]))
def test_optimal_on_a_grid(z, alpha, span):
    """Also where the grid's step is a fraction of 1 / c, within which entries have shares."""
    z = (span / max(alpha - 1, 1.0) * z).astype(z.dtype)
    p, _T = ends(share_out, z[None], alpha)
    assert_optimal(z, p[0], alpha)
    values = ends(run, kernels.entmax_rows, plain(z, z.dtype), alpha)
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


@pytest.mark.parametrize("alpha", ALPHAS)
def test_all_entries_on_the_threshold(alpha):
    """Two entries, and many at the distance where the first takes all, to either side."""
    edge = -1 / (alpha - 1)
    for size in (1, 5, 30):
        for step in (-2, -1, 0, 1, 2):
            z = np.r_[0.0, np.full(size, edge + step * np.spacing(edge))]
            p, _ = ends(share_out, z[None], alpha)
            assert_optimal(z, p[0], alpha)
            assert p[0, 0] == pytest.approx(1, abs=1e-13)
