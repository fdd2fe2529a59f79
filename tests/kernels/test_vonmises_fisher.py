"""The exact kernels where their regions meet, and the polynomials against exact fractions."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from skvmf._kernels import vonmises_fisher as kernels
from skvmf._kernels import vonmises_fisher_tables as tables
from skvmf.distributions.vonmises_fisher._negentropy import inverse_cells

NONE_GIVEN = np.empty(0)


def log_partition(kappa, dim, deficit=False):
    table, out = tables.expansions(dim), np.empty(len(kappa))
    kernels.log_partition(kappa, dim, table.tail, table.constant, deficit, out)
    return out


def mean_resultant_length(kappa, dim, complement=False):
    out = np.empty(len(kappa))
    kernels.mean_resultant_length(kappa, dim, tables.expansions(dim).gap, complement, out)
    return out


def negentropy(r, dim, order, q=NONE_GIVEN):
    table, out = tables.expansions(dim), np.empty(len(r))
    cells = inverse_cells(dim)
    kernels.negentropy(r, q, dim, table.excess, table.inverse_tail, cells, order, out)
    return out


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
    assert log_partition(kappa, dim, deficit=True) == pytest.approx(deficit, rel=1e-14)
    assert negentropy(r, dim, 1, rest) == pytest.approx(kappa, rel=1e-14)


def beside(value):
    """Two neighbours in floating point on either side of a value."""
    return np.array([np.nextafter(value, 0), np.nextafter(value, np.inf)])


def seam(values):
    """The jump between two neighbours, relative to their size."""
    return abs(values[1] / values[0] - 1)


class TestSeams:
    """Where two regions meet the formulas agree; the functions themselves move by 1e-15."""

    @pytest.mark.parametrize("dim", [2, 3, 7, 20, 50, 64])
    @pytest.mark.parametrize("flag", [False, True])
    def test_forward(self, dim, flag):
        kappa = beside(kernels.MIN_EXPANDED)
        assert seam(log_partition(kappa, dim, flag)) < 1e-14
        assert seam(mean_resultant_length(kappa, dim, flag)) < 1e-14

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize("dim", [2, 3, 7, 20, 50, 64])
    @pytest.mark.parametrize("y", [None, 1.25, 1.75, 2.0, 3.5, 12.0, 40.0])
    def test_polynomials(self, dim, order, y):
        """Where one gives way to the next or (None) the last to the expansion.

        There y is (1 + r^2)/(1 - r^2).
        """
        y = y or kernels.MIN_EXPANDED_INVERSE / (dim - 1)
        q = 2 / (y + 1) / (1 + np.sqrt((y - 1) / (y + 1)))
        q = q * (1 + np.array([4e-16, -4e-16]))
        assert seam(negentropy(1 - q, dim, order, q)) < 1e-14

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize(
        ("dim", "r"),
        [(dim, r) for dim in (2, 3, 7, 20, 50, 64) for r in (1e-4, 0.7)]
        + [(dim, 0.5**0.5) for dim in (2, 20, 65, 1000, 10**7)],
    )
    def test_corners_and_logarithms(self, dim, order, r):
        assert seam(negentropy(beside(r), dim, order)) < 1e-14

    @pytest.mark.parametrize("kappa", [1e-3, 1.0, 31.0, 40.0, 1e5])
    @pytest.mark.parametrize("dim", [61, 62, 63, 64])
    def test_dimensions(self, dim, kappa):
        """The recurrence of the Bessel functions joins d and d + 2, on either side of 65."""
        kappa = np.array([kappa])
        ratio, above = (mean_resultant_length(kappa, d) for d in (dim, dim + 2))
        assert ratio * (above + dim / kappa) == pytest.approx(1, rel=1e-14)
        step = np.log(dim * ratio / kappa)
        phi = log_partition(kappa, dim)
        change = log_partition(kappa, dim + 2) - phi
        assert change == pytest.approx(step, abs=1e-14 * phi[0] + 5e-16)  # an ulp of the log's 1


class TestZero:
    @pytest.mark.parametrize("dim", [2, 3, 20, 64, 65])
    def test_square(self, dim):
        """psi is d r^2/2, also where 1 - r^2 rounds to one or to what is just below."""
        r = np.geomspace(1e-140, 1e-9, 2001)
        for q in (NONE_GIVEN, 1 - r):
            assert negentropy(r, dim, 0, q) == pytest.approx(dim / 2 * r * r, rel=1e-14)

    @pytest.mark.bits
    @pytest.mark.parametrize("dim", [2, 3, 20, 64, 65])
    def test_complement_that_is_too_large_by_rounding(self, dim):
        """1 - r^2 may then come out above one."""
        r, q = np.array([1e-15, 1e-13]), np.ones(2)
        assert negentropy(r, dim, 1, q) == pytest.approx(dim * r, rel=1e-12)
        assert negentropy(r, dim, 2, q) == pytest.approx(dim, rel=1e-12)


def fractions(rows):
    return [np.array([Fraction(value) for value in row]) for row in rows]


def times(left, right):
    """Multiply polynomials, ascending coefficients."""
    return np.convolve(left, right)


def plus(*polynomials):
    total = np.zeros(max(map(len, polynomials)), dtype=polynomials[0].dtype)
    for p in polynomials:
        total[: len(p)] = total[: len(p)] + p
    return total


def euler(p):
    """The variable times the derivative."""
    return p * np.arange(len(p))


def riccati_residual(c, k):
    """Order S^-k of the Riccati equation times 1 + t, for A = kappa/(a + S) sum c_k(t) S^-k."""
    below = c[k - 1]
    squares = plus(*(times(c[i], c[k - i]) for i in range(k + 1)))
    slope = times(np.array([1, 0, -1]), euler(below) + (k - 1) * below)
    t = np.array([0, 1])
    return plus(times(t, below), -slope, times(np.array([1, -1]), squares), 2 * times(t, c[k]))


def inverse_residual(h, n):
    """Order (2a)^-n of (h - 1)(h - tau (1 - tau^2) h') = tau h/(2a): the ODE for the inverse."""
    bracket = [plus(p, times(np.array([-1, 0, 1]), euler(p))) for p in h[: n + 1]]
    products = plus(*(times(h[i], bracket[n - i]) for i in range(1, n + 1)))
    return plus(products, -times(np.array([0, 1]), h[n - 1]))


class TestPolynomials:
    """Where coefficients are exact in float64 the equations hold exactly; then to rounding."""

    @pytest.mark.parametrize("k", range(1, 12))
    def test_ratio_series_solves_the_riccati_equation(self, k):
        assert not any(riccati_residual(fractions(tables._ratio_series()[: k + 1]), k))

    @pytest.mark.parametrize("n", range(1, 12))
    def test_inverse_series_solves_the_ode(self, n):
        assert not any(inverse_residual(fractions(tables._inverse_series()[: n + 1]), n))

    @pytest.mark.parametrize("k", range(12, 19))
    def test_high_orders(self, k):
        for rows, residual in (
            (tables._ratio_series(), riccati_residual),
            (tables._inverse_series(), inverse_residual),
        ):
            assert np.abs(residual(rows, k)).max() < 1e-14 * np.abs(rows[k]).max()

    def test_first_polynomials(self):
        """c_1 = -t/2, c_2 = (-4t + t^2 + 5t^3)/8; h_n = tau^n p_n(tau^2), p_3 = 2 - 7s + 5s^2."""
        c, h = tables._ratio_series(), tables._inverse_series()
        assert c[1, :3].tolist() == [0, -0.5, 0]
        assert c[2, :5].tolist() == [0, -0.5, 0.125, 0.625, 0]
        assert h[3, :9].tolist() == [0, 0, 0, 2, 0, -7, 0, 5, 0]
