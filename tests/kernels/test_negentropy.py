"""The paper's routes to psi: closed forms, the ODE, and roots in natural parameters."""

import numpy as np
import pytest

from skvmf._kernels import negentropy as routes
from skvmf.distributions.vonmises_fisher import negentropy

DIMS = [2, 3, 4, 5, 6, 7, 8, 20, 64, 65, 300, 10**4, 10**7]
RADII = np.concatenate(
    [[0.0, 1e-12, 1e-4], np.linspace(0.01, 0.99, 50), 1 - 10.0 ** -np.arange(3, 14)]
)


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
        assert negentropy(r, d, order=1, method="rational") == pytest.approx(expected, rel=1e-13)
        expected = r * (d - w) / (1 - w)
        assert negentropy(r, d, order=1, method="banerjee") == pytest.approx(expected, rel=1e-13)
        M = (1 + w) * Q**2 + (1 - w) ** 2 * (Q - 2 * w * (2 * w + d - 2))
        below = (1 - w) * ((d - 1) * M - (1 - w) * Q**2)
        expected = (d - 1) ** 2 * r * M / below
        assert negentropy(r, d, order=1, method="refined") == pytest.approx(expected, rel=1e-13)

    @pytest.mark.parametrize("dim", [2, 3, 6, 7, 20, 64, 65, 1000])
    @pytest.mark.parametrize("method", ["exact", "banerjee", "rational", "refined"])
    def test_orders_are_derivatives(self, dim, method):
        r, h = np.linspace(0.05, 0.95, 19), 1e-4
        weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
        for order in (1,) if method == "refined" else (0, 1):

            def below(r, order=order):
                return negentropy(r, dim, order=order, method=method)

            slope = sum(c * below(r + j * h) for j, c in weights.items()) / h
            assert slope == pytest.approx(below(r, order + 1), rel=1e-8)


class TestOde:
    @pytest.mark.parametrize("dim", DIMS)
    def test_everywhere(self, dim):
        """One solution serves every r up to one; the paper's bar is 1e-9 on [0.01, 0.99]."""
        for order, tolerance in ((0, 1e-12), (1, 1e-12), (2, 1e-9)):
            value = negentropy(RADII, dim, order=order, method="ode")
            assert relative_error(value, negentropy(RADII, dim, order=order)).max() < tolerance

    @pytest.mark.parametrize("dim", [2, 10, 1000])
    def test_satisfies_the_equation(self, dim):
        """The trace of the covariance: 1/psi'' + (d-1) r/psi' = 1 - r^2."""
        r = RADII[1:]
        slope, curvature = (negentropy(r, dim, order=order, method="ode") for order in (1, 2))
        trace = 1 / curvature + (dim - 1) * r / slope
        assert trace == pytest.approx((1 - r) * (1 + r), rel=1e-14)

    def test_work_does_not_grow_with_the_dimension(self):
        """An explicit method would take steps in proportion to d/(1 - r)."""
        series, checkpoints, steps = np.empty(8), np.empty((4000, 3)), []
        for dim in (10**6, 2):
            routes.start_series(dim, series)
            steps.append(routes.solve(dim, series, 1e-12, checkpoints))
        assert 1 < steps[0] < steps[1] < 2000


@pytest.mark.parametrize("dim", DIMS)
def test_newton_is_as_exact_as_the_ratio(dim):
    """A is known to 1e-15, which is psi'' r/kappa times as much of kappa."""
    r = RADII[1:]
    kappa, curvature = (negentropy(r, dim, order=order) for order in (1, 2))
    error = relative_error(negentropy(r, dim, order=1, method="newton"), kappa)
    assert np.all(error < 1e-15 * (1 + curvature * r / kappa))
    second = negentropy(r, dim, order=2, method="newton")
    assert relative_error(second, curvature).max() < 1e-7
    assert [negentropy(0.0, dim, order=order, method="newton") for order in (1, 2)] == [0, dim]


@pytest.mark.parametrize("dim", [2, 3, 6, 20, 1000, 10**6])
def test_tiny_complements(dim):
    """As r tends to 1 all routes tend to the same, and no power of 1 - r may vanish before."""
    q = np.array([1e-20, 1e-50, 1e-77, 1e-80, 1e-103, 1e-110, 1e-130, 1e-144])
    for order in (1, 2):
        expected = (dim - 1) / 2 / q**order
        for method in ("exact", "banerjee", "rational", "refined", "ode", "newton"):
            value = negentropy(1.0, dim, order=order, complement=q, method=method)
            assert value == pytest.approx(expected, rel=1e-13)
    value = negentropy(1.0, dim, complement=q, method="ode")
    assert value == pytest.approx(negentropy(1.0, dim, complement=q), rel=1e-12)


def test_one_signature_for_each_kernel():
    for method in ("ode", "newton", "rational"):
        negentropy([0.0, 0.5], 3, order=1, method=method)
    for kernel in (
        routes.closed_form,
        routes.start_series,
        routes.solve,
        routes.ode,
        routes.newton,
    ):
        if hasattr(kernel, "signatures"):  # with the JIT disabled there is nothing to count
            assert len(kernel.signatures) == 1
