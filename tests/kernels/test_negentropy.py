"""The paper's routes to psi: closed forms, the ODE, and roots in natural parameters."""

import mpmath as mp
import numba
import numpy as np
import pytest

from skvmf._kernels import negentropy as kernels
from skvmf._kernels import negentropy as natural
from skvmf._kernels import vonmises_fisher as exact
from skvmf._kernels.vonmises_fisher import expansions
from skvmf.distributions.vonmises_fisher._maps import inverse_cells


@numba.njit
def perron_ratio(kappa, a):
    """Call a part of a kernel, which Python cannot."""
    return natural._perron_ratio(kappa, a)


NONE_GIVEN = np.empty(0)
BANERJEE, RATIONAL, REFINED = 0, 1, 2
DIMS = [2, 3, 4, 5, 6, 7, 8, 20, 64, 65, 300, 10**4, 10**7]
RADII = np.concatenate(
    [[0.0, 1e-12, 1e-4], np.linspace(0.01, 0.99, 50), 1 - 10.0 ** -np.arange(3, 14)]
)


def closed_form(r, dim, refinement, order, q=NONE_GIVEN):
    out = np.empty(len(r))
    kernels.closed_form(r, q, dim, refinement, order, out)
    return out


def trajectory(dim, tolerance=1e-12):
    series, checkpoints = np.empty(8), np.empty((4000, 3))
    kernels.start_series(dim, series)
    n = kernels.solve(dim, series, tolerance, checkpoints)
    assert 1 < n < 4000
    return series, checkpoints[:n].copy()


def ode(r, dim, order, q=NONE_GIVEN, solution=None):
    out = np.empty(len(r))
    series, checkpoints = trajectory(dim) if solution is None else solution
    kernels.ode(r, q, dim, series, checkpoints, order, out)
    return out


def newton(r, dim, order, q=NONE_GIVEN):
    out = np.empty(len(r))
    natural.newton(r, q, dim, order, out)
    return out


def truth(r, dim, order, q=NONE_GIVEN):
    """The exact kernel, which has its own tests."""
    table, out = expansions(dim), np.empty(len(r))
    cells = inverse_cells(dim)
    exact.negentropy(r, q, dim, table.excess, table.inverse_tail, cells, order, out)
    return out


def relative_error(result, expected):
    return np.abs(result - expected) / np.where(expected == 0, 1, expected)


class TestClosedForms:
    @pytest.mark.parametrize("dim", [2, 3, 6, 7, 20, 1000])
    def test_printed_formulas(self, dim):
        """As the paper prints them, in exact powers of r."""
        r = np.linspace(0.1, 0.9, 9)
        w, d = r * r, dim
        Q = w**2 + (d - 2) * w + d - 1
        expected = (d - 1) * r * (w**2 + (d - 3) * w + d) / ((1 - w) * Q)
        assert closed_form(r, d, RATIONAL, 1) == pytest.approx(expected, rel=1e-13)
        assert closed_form(r, d, BANERJEE, 1) == pytest.approx(r * (d - w) / (1 - w), rel=1e-13)
        M = (1 + w) * Q**2 + (1 - w) ** 2 * (Q - 2 * w * (2 * w + d - 2))
        below = (1 - w) * ((d - 1) * M - (1 - w) * Q**2)
        expected = (d - 1) ** 2 * r * M / below
        assert closed_form(r, d, REFINED, 1) == pytest.approx(expected, rel=1e-13)

    @pytest.mark.parametrize("dim", [2, 3, 6, 7, 20, 1000])
    @pytest.mark.parametrize(
        ("refinement", "order"),
        [(BANERJEE, 0), (BANERJEE, 1), (RATIONAL, 0), (RATIONAL, 1), (REFINED, 1)],
    )
    def test_orders_are_derivatives(self, dim, refinement, order):
        r, h = np.linspace(0.05, 0.95, 19), 1e-4
        weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
        slope = sum(c * closed_form(r + j * h, dim, refinement, order) for j, c in weights.items())
        assert slope / h == pytest.approx(closed_form(r, dim, refinement, order + 1), rel=1e-8)


class TestOde:
    @pytest.mark.parametrize("dim", DIMS)
    def test_everywhere(self, dim):
        """One solution serves every r up to one; the paper's bar is 1e-9 on [0.01, 0.99]."""
        solution = trajectory(dim)
        for order, tolerance in ((0, 1e-12), (1, 1e-12), (2, 1e-9)):
            value = ode(RADII, dim, order, solution=solution)
            assert relative_error(value, truth(RADII, dim, order)).max() < tolerance

    @pytest.mark.parametrize("dim", [2, 10, 1000])
    def test_satisfies_the_equation(self, dim):
        """The trace of the covariance: 1/psi'' + (d-1) r/psi' = 1 - r^2."""
        solution = trajectory(dim)
        r = RADII[1:]
        slope, curvature = (ode(r, dim, order, solution=solution) for order in (1, 2))
        trace = 1 / curvature + (dim - 1) * r / slope
        assert trace == pytest.approx((1 - r) * (1 + r), rel=1e-14)

    def test_work_does_not_grow_with_the_dimension(self):
        """An explicit method would take steps in proportion to d/(1 - r)."""
        assert len(trajectory(10**6)[1]) < len(trajectory(2)[1]) < 2000


class TestNewton:
    @pytest.mark.parametrize("dim", DIMS)
    def test_as_exact_as_the_ratio(self, dim):
        """A is known to 1e-15, which is psi'' r/kappa times as much of kappa."""
        r = RADII[1:]
        kappa, curvature = (truth(r, dim, order) for order in (1, 2))
        error = relative_error(newton(r, dim, 1), kappa)
        assert np.all(error < 1e-15 * (1 + curvature * r / kappa))
        assert relative_error(newton(r, dim, 2), curvature).max() < 1e-7
        assert [newton(np.zeros(1), dim, order)[0] for order in (1, 2)] == [0, dim]

    @pytest.mark.parametrize(
        ("dim", "kappa"), [(2, 1e-8), (2, 0.7), (3, 40.0), (10, 300.0), (100, 2.0), (1000, 900.0)]
    )
    def test_perron_fraction(self, dim, kappa):
        with mp.workdps(40):
            expected = mp.besseli(dim / 2, kappa) / mp.besseli(dim / 2 - 1, kappa)
        assert perron_ratio(kappa, dim / 2) == pytest.approx(float(expected), rel=1e-15)


@pytest.mark.parametrize("dim", [2, 3, 6, 20, 1000, 10**6])
def test_tiny_complements(dim):
    """As r tends to 1 all routes tend to the same, and no power of 1 - r may vanish before."""
    q = np.array([1e-20, 1e-50, 1e-77, 1e-80, 1e-103, 1e-110, 1e-130, 1e-144])
    r = np.ones(len(q))
    for order in (1, 2):
        expected = truth(r, dim, order, q)
        routes = [closed_form(r, dim, how, order, q) for how in (BANERJEE, RATIONAL, REFINED)]
        for value in [*routes, ode(r, dim, order, q), newton(r, dim, order, q)]:
            assert value == pytest.approx(expected, rel=1e-13)
        assert expected == pytest.approx((dim - 1) / 2 / q**order, rel=1e-13)
    assert ode(r, dim, 0, q) == pytest.approx(truth(r, dim, 0, q), rel=1e-12)


def test_one_signature_for_each_kernel():
    ode(RADII, 3, 1)
    newton(RADII, 3, 1)
    closed_form(RADII, 3, RATIONAL, 1)
    functions = [kernels.closed_form, kernels.start_series, kernels.solve, kernels.ode]
    for function in [*functions, natural.newton]:
        if hasattr(function, "signatures"):  # with the JIT disabled there is nothing to count
            assert len(function.signatures) == 1
