"""What is wrong in the papers, shown by computation."""

import numpy as np
import pytest
from scipy.integrate import quad

from reproduction import p0_negentropy
from skvmf.distributions.vonmises_fisher import concentration, negentropy

R = np.linspace(0.001, 0.999, 999)


@pytest.mark.parametrize("dim", range(2, 8))
def test_the_antiderivative_is_an_arctangent_up_to_six(dim):
    printed_root = dim**2 / 4 - 2 * dim + 2
    assert (printed_root < 0) == (dim <= 6)
    for r in (0.3, 0.9):
        area, _ = quad(lambda s: concentration(s, dim, method="rational"), 0, r)
        assert negentropy(r, dim, method="rational") == pytest.approx(area, rel=1e-9)


def errors(dim, order, method):
    return np.abs(negentropy(R, dim, order=order, method=method) - negentropy(R, dim, order=order))


@pytest.mark.parametrize(
    ("dim", "order", "below"), [(2, 1, 0.74), (2, 0, 0.84), (3, 1, 0.44), (3, 0, 0.53)]
)
def test_banerjees_form_is_better_in_few_dimensions(dim, order, below):
    better = errors(dim, order, "banerjee") < errors(dim, order, "rational")
    assert better[below - 0.02 > R].all() and not better[below + 0.02 < R].any()
    assert not (errors(4, order, "banerjee") < errors(4, order, "rational")).any()


@pytest.mark.parametrize(("dim", "better"), [(2, False), (3, True), (10, True), (50, True)])
def test_a_third_iteration_is_better_but_for_circles(dim, better):
    third = np.abs(p0_negentropy.iterated(R, dim) - concentration(R, dim)).max()
    assert (third < errors(dim, 1, "refined").max()) == better


def test_a_small_start_value_misses_the_solution():
    def kappa(start, tolerance):
        return p0_negentropy.explicit(30, start, tolerance)[1][-1] / concentration(0.5, 30)

    assert kappa(1e-2, 1e-6) == pytest.approx(1, abs=1e-4)
    assert abs(kappa(1e-4, 1e-6) - 1) > 0.5  # and status 0
    assert kappa(1e-4, 1e-9) == pytest.approx(1, abs=1e-7)
