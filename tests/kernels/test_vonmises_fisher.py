"""The exact kernels where their regions meet, and cosines of rows near a direction."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skvmf._kernels.vonmises_fisher import (
    MAX_FROM_CHORD,
    MIN_EXPANDED,
    MIN_EXPANDED_INVERSE,
    cosine_complements,
    csr_cosine_complements,
)
from skvmf.distributions.vonmises_fisher import (
    log_partition,
    log_partition_deficit,
    mean_resultant_length,
    negentropy,
)


@pytest.mark.parametrize("dim", [2, 3, 8, 21, 40, 63])
def test_where_series_give_way_to_expansions(dim):
    """To the last digits on both sides of the border, where each is at its worst."""
    kappa = np.linspace(16, 40, 25)
    with mp.workdps(60):
        r = [mp.besseli(mp.mpf(dim) / 2, k) / mp.besseli(mp.mpf(dim) / 2 - 1, k) for k in kappa]
        rest = np.array([float(1 - value) for value in r])
        phi = [mp.log(mp.hyp0f1(mp.mpf(dim) / 2, mp.mpf(k) ** 2 / 4)) for k in kappa]
        deficit = np.array([float(k - value) for k, value in zip(kappa, phi, strict=True)])
    r, phi = np.array(r, dtype=float), np.array(phi, dtype=float)
    assert mean_resultant_length(kappa, dim) == pytest.approx(r, rel=2e-15)
    assert mean_resultant_length(kappa, dim, complement=True) == pytest.approx(rest, rel=4e-15)
    assert log_partition(kappa, dim) == pytest.approx(phi, rel=4e-15)
    assert log_partition_deficit(kappa, dim) == pytest.approx(deficit, rel=1e-14)
    assert negentropy(r, dim, order=1, complement=rest) == pytest.approx(kappa, rel=1e-14)


def beside(value):
    """Two neighbours in floating point on either side of a value."""
    return np.array([np.nextafter(value, 0), np.nextafter(value, np.inf)])


def seam(values):
    """The jump between two neighbours, relative to their size."""
    return abs(values[1] / values[0] - 1)


class TestSeams:
    """Where two regions meet the formulas agree; the functions themselves move by 1e-15."""

    @pytest.mark.parametrize("dim", [2, 3, 7, 20, 50, 64])
    def test_forward(self, dim):
        kappa = beside(MIN_EXPANDED)
        for function in (log_partition, log_partition_deficit, mean_resultant_length):
            assert seam(function(kappa, dim)) < 1e-14
        assert seam(mean_resultant_length(kappa, dim, complement=True)) < 1e-14

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize("dim", [2, 3, 7, 20, 50, 64])
    @pytest.mark.parametrize("y", [None, 1.25, 1.75, 2.0, 3.5, 12.0, 40.0])
    def test_polynomials(self, dim, order, y):
        """Where one gives way to the next or (None) the last to the expansion.

        There y is (1 + r^2)/(1 - r^2).
        """
        y = y or MIN_EXPANDED_INVERSE / (dim - 1)
        q = 2 / (y + 1) / (1 + np.sqrt((y - 1) / (y + 1)))
        q = q * (1 + np.array([4e-16, -4e-16]))
        assert seam(negentropy(1 - q, dim, order=order, complement=q)) < 1e-14

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize(
        ("dim", "r"),
        [(dim, r) for dim in (2, 3, 7, 20, 50, 64) for r in (1e-4, 0.7)]
        + [(dim, 0.5**0.5) for dim in (2, 20, 65, 1000, 10**7)],
    )
    def test_corners_and_logarithms(self, dim, order, r):
        assert seam(negentropy(beside(r), dim, order=order)) < 1e-14

    @pytest.mark.parametrize("kappa", [1e-3, 1.0, 31.0, 40.0, 1e5])
    @pytest.mark.parametrize("dim", [61, 62, 63, 64])
    def test_dimensions(self, dim, kappa):
        """The recurrence of the Bessel functions joins d and d + 2, on either side of 65."""
        ratio, above = (mean_resultant_length(kappa, d) for d in (dim, dim + 2))
        assert ratio * (above + dim / kappa) == pytest.approx(1, rel=1e-14)
        step = np.log(dim * ratio / kappa)
        phi = log_partition(kappa, dim)
        change = log_partition(kappa, dim + 2) - phi
        assert change == pytest.approx(step, abs=1e-14 * phi + 5e-16)  # an ulp of the log's 1


class TestZero:
    @pytest.mark.parametrize("dim", [2, 3, 20, 64, 65])
    def test_square(self, dim):
        """psi is d r^2/2, also where 1 - r^2 rounds to one or to what is just below."""
        r = np.geomspace(1e-140, 1e-9, 2001)
        for q in (None, 1 - r):
            assert negentropy(r, dim, complement=q) == pytest.approx(dim / 2 * r * r, rel=1e-14)

    @pytest.mark.bits
    @pytest.mark.parametrize("dim", [2, 3, 20, 64, 65])
    def test_complement_that_is_too_large_by_rounding(self, dim):
        """1 - r^2 may then come out above one."""
        r, q = np.array([1e-15, 1e-13]), np.ones(2)
        assert negentropy(r, dim, order=1, complement=q) == pytest.approx(dim * r, rel=1e-12)
        assert negentropy(r, dim, order=2, complement=q) == pytest.approx(dim, rel=1e-12)


# 1 - cosine of rows and directions, to the last digits.


def rows_near(direction, offset, dtype=np.float64):
    """Return rows of length 7 whose distance from a direction is about an offset."""
    rng = np.random.default_rng(0)
    gaps = offset * rng.normal(size=(10, len(direction)))
    gaps -= np.outer(gaps @ direction, direction)  # across, so that lengths are one to rounding
    X = np.sqrt(1 - (gaps**2).sum(axis=1, keepdims=True)) * direction + gaps
    return (8.0 * X).astype(dtype)


def result(form, X, directions):
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
    gaps = result(form, X, directions)
    tolerance = 1e-15 / min(offset, MAX_FROM_CHORD)
    assert_allclose(gaps, expected.astype(float), rtol=tolerance, atol=1e-31)
    assert_allclose(gaps[:, 1], 1, rtol=0.2)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_row_without_direction_is_as_far_as_any(form):
    assert_allclose(result(form, np.zeros((2, 3)), np.eye(1, 3)), 1)
