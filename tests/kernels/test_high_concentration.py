"""1 - cosine of rows and directions, to the last digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skvmf._kernels.vonmises_fisher import (
    MAX_FROM_CHORD,
    cosine_complements,
    csr_cosine_complements,
)


def rows_near(direction, offset, dtype=np.float64):
    """Return rows of length 7 whose distance from a direction is about an offset."""
    rng = np.random.default_rng(0)
    gaps = offset * rng.normal(size=(10, len(direction)))
    gaps -= np.outer(gaps @ direction, direction)  # across, so that lengths are one to rounding
    X = np.sqrt(1 - (gaps**2).sum(axis=1, keepdims=True)) * direction + gaps
    return (8.0 * X).astype(dtype)


def found(form, X, directions):
    """Return what a kernel makes of the rounded cosines."""
    lengths = np.linalg.norm(X.astype(np.float64), axis=1)
    scales = np.divide(1, lengths, out=np.zeros(len(X)), where=lengths > 0)
    cosines = (X.astype(np.float64) * scales[:, None]) @ directions.T
    if form == "dense":
        cosine_complements(X, scales, directions, cosines)
    else:
        rows = sparse.csr_array(X)
        csr_cosine_complements(rows.indptr, rows.indices, rows.data, scales, directions, cosines)
    return cosines


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("offset", "dtype"),
    [*[(offset, np.float64) for offset in (1e-12, 1e-8, 1e-4, 1e-2)], (1e-3, np.float32)],
)
def test_nothing_cancels_near_a_direction(form, offset, dtype):
    """To a digit of the square where a gap is 10^4 times the rounding of a unit row."""
    directions = np.array([[0.6, 0.8, 0, 0], [0, 0, 1.0, 0]])
    X = rows_near(directions[0], offset, dtype)
    X[:, 3] *= np.arange(10) % 2  # rows differ in which entries are stored
    unit = X.astype(np.longdouble) / np.linalg.norm(X.astype(np.longdouble), axis=1)[:, None]
    expected = 0.5 * ((unit[:, None] - directions) ** 2).sum(axis=2)
    gaps = found(form, X, directions)
    tolerance = 1e-15 / min(offset, MAX_FROM_CHORD)
    assert_allclose(gaps, expected.astype(float), rtol=tolerance, atol=1e-31)
    assert_allclose(gaps[:, 1], 1, rtol=0.2)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_row_without_direction_is_as_far_as_any(form):
    assert_allclose(found(form, np.zeros((2, 3)), np.eye(1, 3)), 1)
