"""The public modified Dirichlet."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import dirichlet

from skvmf.distributions import modified_dirichlet
from skvmf.distributions.modified_dirichlet import modes

METHODS = ["rounds", "sorting"]
OWN_TABLE = Path(__file__).parents[1] / "reference" / "modified_dirichlet_table.npz"
SHARED_TABLE = Path(__file__).parents[3] / "shared" / "reference" / "mdir_reference.npz"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", [OWN_TABLE, SHARED_TABLE], ids=["own", "shared"])
def test_modes_and_densities_against_the_reference_tables(path, method):
    if not path.exists():
        pytest.skip("this table is not part of the project")
    own, table = path == OWN_TABLE, dict(np.load(path))
    for i, floor in enumerate(table["floor" if own else "eps"]):
        span = slice(*table["offsets"][i : i + 2])
        alpha = table["alpha"][span]
        x = modified_dirichlet.mode(alpha, floor, method)
        if own or not table["all_le_one"][i]:
            np.testing.assert_allclose(x, table["x"][span], rtol=1e-14)
        if not own:
            height = modified_dirichlet.log_kernel(x, alpha)
            rounding = 4e-16 * np.abs(alpha - 1).sum()  # of x, in the height
            expected = table["log_density_unnorm"][i]
            np.testing.assert_allclose(height, expected, rtol=1e-14, atol=rounding)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("alpha", "floor", "expected"),
    [
        ([0.5, -1.0, 0.5], 0.1, [0.8, 0.1, 0.1]),
        ([3.0, -1.0, 0.5, 9.0], 0.25, [0.25] * 4),
        ([3.0], 1.0, [1.0]),
        ([1.0, 1.0], 0.0, [1.0, 0.0]),
        ([1e5, 0.2, 0.2], 1 / 3, [1 / 3] * 3),
    ],
)
def test_the_edges_of_the_mode(method, alpha, floor, expected):
    np.testing.assert_array_equal(modified_dirichlet.mode(alpha, floor, method), expected)


@pytest.mark.parametrize("by_sorting", [False, True])
@pytest.mark.parametrize("floor", [1e-4, 0.05, 0.25])
def test_modes_of_many_vectors_are_those_of_each(floor, by_sorting):
    excess = np.random.default_rng(6).normal(-1, 3, size=(7, 2, 4))
    excess[0] = -2.0  # a tie: the first takes all
    x = modes(excess, floor, by_sorting=by_sorting)
    for vector, point in zip(excess.reshape(-1, 4), x.reshape(-1, 4), strict=True):
        expected = modified_dirichlet.mode(1 + vector, floor, METHODS[by_sorting])
        np.testing.assert_allclose(point, expected, rtol=1e-12)
    tiny = modes(np.array([1e-20, 3e-20]), 0.0, by_sorting=by_sorting)  # what a one would hide
    np.testing.assert_allclose(tiny, [0.25, 0.75], rtol=1e-15)


@pytest.mark.parametrize("by_sorting", [False, True])
@pytest.mark.parametrize(
    ("excess", "floor", "expected"),
    [
        ([-11.0, 1.0], 0.1, [0.1, 0.9]),  # the three cases in which the printed algorithm
        ([-1.0, 1.0], 0.1, [0.1, 0.9]),  # gives 1.1, divides by zero,
        ([1.0, 2.0, 3.0], 0.1, [1 / 6, 2 / 6, 3 / 6]),  # or does not sum to one
        ([4.0], 0.3, [1.0]),
        ([1.0, 1.0, 1e6], 0.25, [0.25, 0.25, 0.5]),
        ([1.0, 2.0, 0.0], 0.0, [1 / 3, 2 / 3, 0.0]),
        ([1e-17, 1.0, 1e-300], 0.0, [1e-17, 1.0, 1e-300]),
        ([5e-324, 5e-324, -1e300], 0.1, [0.45, 0.45, 0.1]),
        ([1.7e308] * 4, 0.1, [0.25] * 4),
        ([1.7e308, -1.7e308, 3.0], 0.1, [0.8, 0.1, 0.1]),
    ],
)
def test_known_modes(by_sorting, excess, floor, expected):
    x = modes(np.array(excess), floor, by_sorting=by_sorting)
    np.testing.assert_allclose(x, expected, rtol=1e-15)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 10, 49])
def test_the_largest_floor_leaves_one_point(n, method):
    x = modified_dirichlet.mode(np.arange(n) + 1.5, np.nextafter(1 / n, 0), method)
    np.testing.assert_allclose(x, 1 / n, rtol=1e-13)


def test_conjugacy():
    alpha, counts = np.array([-2.0, 0.5, 1.0]), np.array([3.0, 0.0, 1.5])
    after = modified_dirichlet.posterior(alpha, counts)
    x = np.array([0.2, 0.3, 0.5])
    kernel = modified_dirichlet.log_kernel
    np.testing.assert_allclose(kernel(x, after), kernel(x, alpha) + counts @ np.log(x), rtol=1e-14)


@pytest.mark.parametrize(
    ("alpha", "floor", "expected"),
    [
        ([-3.0, 0.5], 0.01, np.log(335872.11479533625)),
        ([-1.0, 0.5, 2.0], 0.05, np.log(12.834700186540081)),
        ([0.0, 0.0], 1e-4, np.log(2 * np.log(9999.0))),
        ([1.0, 1.0, 1.0], 1e-3, np.log(0.5 * (1 - 3e-3) ** 2)),
        ([2.0e6, 3.0], 0.0, np.log(2 / 2e6) - np.log(2e6 + 1) - np.log(2e6 + 2)),
        ([200.0, 300.0, 10.0], 0.0, gammaln([200.0, 300.0, 10.0]).sum() - gammaln(510.0)),
        ([-50.0, -3.0], 1e-4, 456.6054037775158),  # mpmath
        *[(alpha, 1 / 3, -np.inf) for alpha in ([1e5, 0.2, 0.2], [1.0, 1.0, 1.0])],  # one point
        ([3.0, -2.0], 1 / 2, -np.inf),
        ([-5000.0, -6000.0], 1e-4, 55253.84292549126),
        ([7.0], 0.3, 0.0),
    ],
)
def test_normalizer(alpha, floor, expected):
    value = modified_dirichlet.log_normalizer(alpha, floor)
    np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize(
    "alpha", [[2, 3, 1.5], [0.5, 0.5], [0.3, 2, 5], [1e-6, 1], [1e-3, 40, 1e-3], [0.999, 1, 3]]
)
def test_without_a_floor_it_is_the_dirichlet(alpha):
    x = np.random.default_rng(0).dirichlet(np.ones(len(alpha)), size=5)
    value = modified_dirichlet.logpdf(x, alpha, floor=0.0)
    np.testing.assert_allclose(value, dirichlet(alpha).logpdf(x.T), rtol=1e-11, atol=1e-11)


def test_density_below_the_floor_is_zero():
    points = [[0.05, 0.95], [0.5, 0.5]]
    value = modified_dirichlet.logpdf(points, [-2.0, 3.0], 0.1)
    assert value[0] == -np.inf
    assert np.isfinite(value[1])
    assert np.isfinite(modified_dirichlet.logpdf([0.0, 1.0], [1.0, 2.0], 0.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.mode([1.0, np.nan], 0.1), "finite"),
        (lambda m: m.mode([[1.0, 2.0]], 0.1), "vector"),
        (lambda m: m.mode([], 0.1), "vector"),
        (lambda m: m.mode(["a", "b"], 0.1), "alpha should hold real numbers"),
        (lambda m: m.mode([1.0, 2.0], [0.1]), "floor should be one number"),
        (lambda m: m.mode([1.0, 2.0], "low"), "floor should hold real numbers"),
        (lambda m: m.mode([1.0, 2.0], 0.6), "floor must be in"),
        (lambda m: m.mode([1.0, 2.0], -0.1), "floor must be in"),
        (lambda m: m.mode([1.0, 2.0], np.nan), "floor must be in"),
        (lambda m: m.mode([0.5, 2.0], 0.0), "raise the floor"),
        (lambda m: m.mode([1.0, 2.0], 0.1, "bisection"), "method"),
        (lambda m: m.logpdf([0.5, 0.6], [1.0, 2.0], 0.1), "sum to 1"),
        (lambda m: m.logpdf([0.5, np.nan], [1.0, 2.0], 0.1), "sum to 1"),
        (lambda m: m.logpdf([0.5, 0.3, 0.2], [1.0, 2.0], 0.1), "2 entries"),
        (lambda m: m.logpdf([0.5, 0.5], [0.0, 2.0], 0.0), "must be positive.*raise the floor"),
        (lambda m: m.log_normalizer([-1.0, 2.0], 0.0), "must be positive"),
        (lambda m: m.logpdf([0.0, 1.0], [0.5, 2.0], 0.0), "infinite there"),
        (lambda m: m.posterior([1.0, 2.0, 3.0], [1, 1]), r"shapes \(2,\) and \(3,\)"),
        (lambda m: m.posterior([[1.0], [2.0]], [1, 1]), r"shapes \(2,\) and \(2, 1\)"),
        (lambda m: m.posterior(1.0, 2.0), "counts must be a vector"),
        (lambda m: m.posterior([1.0, 2.0], [1, -1]), "not negative"),
        (lambda m: m.posterior([1.0, np.inf], [1, 1]), "finite"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(modified_dirichlet)


SIZES = [0.0, 1.0, -1.0, 0.5, 3.0, 1e15, -1e15, 1e150, -1e150, 1e300, -1e300]


@pytest.mark.parametrize("floor", [1e-300, 1e-17, 1e-4, 0.3])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_parameters_of_any_size_have_finite_modes_and_densities(n, floor):
    for alpha in itertools.product(SIZES, repeat=n):
        for method in METHODS:
            x = modified_dirichlet.mode(alpha, floor, method)
            assert abs(x.sum() - 1) <= 1e-15
            assert x.min() >= floor
            height = modified_dirichlet.log_kernel(x, alpha)
            assert np.isfinite(height)
            middle = modified_dirichlet.log_kernel(np.full(n, 1 / n), alpha)
            assert middle <= height + 1e-15 * np.abs(alpha).sum()


@pytest.mark.parametrize("floor", [1e-300, 1e-4, 0.3])
def test_densities_of_parameters_of_any_size_are_finite_and_largest_at_the_mode(floor):
    triples = [(1e300, -1e300, 3.0), (1e15, 1.0, 1e150)]
    for alpha in [*itertools.product(SIZES, repeat=2), *triples]:
        x = modified_dirichlet.mode(alpha, floor)
        rounding = 1e-13 * abs(modified_dirichlet.log_kernel(x, alpha)) + 1e-12
        average = gammaln(len(alpha))  # of a density is one over the volume, which is less
        assert average - rounding <= modified_dirichlet.logpdf(x, alpha, floor) < np.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.mode([1e308, 1e308], 0.1),
        lambda m: m.logpdf([0.5, 0.5], [-1e301, 1.0], 0.1),
        lambda m: m.log_normalizer([1e308, 1.0], 0.1),
        lambda m: m.log_kernel([0.5, 0.5], [1e308, 1.0]),
        lambda m: m.log_kernel([0.5, 0.5], np.inf),
        lambda m: m.posterior([1e300, 1.0], [1e300, 1.0]),
        lambda m: m.posterior(1.7e308, [1.0]),
    ],
)
def test_parameters_whose_densities_overflow_are_refused(call):
    with pytest.raises(ValueError, match=r"alpha.* must be finite, .* 1e\+300 in absolute"):
        call(modified_dirichlet)
