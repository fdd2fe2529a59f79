"""What is wrong in the papers, shown by computation."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.frozen import FrozenEstimator

from reproduction import p0_negentropy, p1_mixtures, p2_expectation, p3_relative
from skvmf import FisherVectorTransformer, RelativeGMM, VonMisesFisherMixture
from skvmf.distributions import modified_dirichlet
from skvmf.distributions.simplex import entmax
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


def test_algorithm_2_is_wrong_as_printed():
    printed = p1_mixtures.as_printed(np.array([3.0, 3.0]), 1e-9)
    np.testing.assert_allclose(printed, [0.5, 1.0])
    corrected = modified_dirichlet.mode([3.0, 3.0], 1e-9, method="sorting")
    np.testing.assert_allclose(corrected, [0.5, 0.5])
    # entries below one in the sums: the first entry is (-9 - 1)/(-9 - 1 + 1 - ...)
    printed = p1_mixtures.as_printed(np.array([-9.0, 2.0]), 0.01)
    assert printed[0] > 1


def test_the_true_parameters_do_not_reach_table_1():
    variances = p2_expectation.VARIANCES
    best = {}
    for reading, own in variances.items():
        X = p2_expectation.draw(own, 0)
        gaps = X[:, np.newaxis] - p2_expectation.MEANS
        log_density = -np.log(own) - (gaps**2).sum(axis=2) / own / 2
        best[reading] = p2_expectation.evaluate(X, log_density.argmax(axis=1))[0]
    assert best["covariances"] < 0.54 < 0.606 < best["standard deviations"]


@pytest.mark.parametrize("alpha", [1.0001, 1.5, 2.0, 3.0])
def test_a_constant_in_the_scores_changes_no_share(alpha):
    weights, log_density = np.array([0.2, 0.5, 0.3]), np.array([-1.0, -1.5, -1.2])
    printed = weights ** (alpha - 1) / (alpha - 1)
    ours = (weights ** (alpha - 1) - 1) / (alpha - 1)
    responsibilities = entmax(ours + log_density, alpha)
    np.testing.assert_allclose(entmax(printed + log_density, alpha), responsibilities, atol=1e-10)
    if alpha < 1.01:  # the limit, which the printed scores do not have
        posterior = weights * np.exp(log_density)
        np.testing.assert_allclose(responsibilities, posterior / posterior.sum(), atol=1e-4)


def test_the_printed_reference_mean_is_no_maximum():
    X, delta = p3_relative.sample(0)[:, 0], 0.7
    second = 1 / (1 + np.exp(X + 5))
    first = 1 - second
    T, N = np.array([first @ X, second @ X]), np.array([first.sum(), second.sum()])

    def slope(mu):  # of the expected log-likelihood in the reference mean
        return first @ (X - mu) + second @ (X - mu - delta)

    assert abs(slope((T[0] + T[1] - N[1] * delta) / N.sum())) < 1e-9
    assert abs(slope((T[0] * delta * N[0] + T[1]) / N.sum())) > 1
    assert abs(slope((T[0] + delta * N[0] + T[1]) / N.sum())) > 1


@pytest.mark.parametrize(
    ("weight", "means", "deviations", "regular"),
    [
        (0.3, (0.0, 0.0), (1.0, 2.0), True),
        (0.3, (0.0, 1.5), (1.0, 1.0), True),
        (0.5, (0.0, 1.5), (1.0, 1.0), True),
        (0.3, (0.0, 0.0), (1.0, 1.0), False),
    ],
)
def test_components_overlap_only_if_all_is_equal(weight, means, deviations, regular):
    """The Fisher information of weight, means and deviations, by quadrature."""
    x, dx = np.linspace(-20, 20, 20_001, retstep=True)
    responsibilities, scores = np.array([weight, 1 - weight]), []
    z = (x - np.array(means)[:, np.newaxis]) / np.array(deviations)[:, np.newaxis]
    parts = np.exp(-z * z / 2) / np.array(deviations)[:, np.newaxis] / np.sqrt(2 * np.pi)
    density = responsibilities @ parts
    scores.append(parts[0] - parts[1])
    for k in range(2):
        scores.append(responsibilities[k] * parts[k] * z[k] / deviations[k])
        scores.append(responsibilities[k] * parts[k] * (z[k] ** 2 - 1) / deviations[k])
    scores = np.array(scores)
    least = np.linalg.eigvalsh((scores / density) @ scores.T * dx)[0]
    assert least > 1e-4 if regular else abs(least) < 1e-9


def test_both_orders_leave_mixtures_out():
    """A wide component on the left: no numbering has both orders, and a fit pays for them."""
    rng = np.random.default_rng(0)
    second = rng.integers(2, size=2000)
    X = rng.normal(5.0 * second, np.where(second, 0.5, 2.0))[:, np.newaxis]
    options = {"covariance_type": "spherical", "tol": 1e-8, "max_iter": 1000, "random_state": 0}
    means, scales, both = (
        RelativeGMM(order=order, **options).fit(X) for order in ("means", "scales", "both")
    )
    assert means.differences_ > 4 and means.scale_differences_ < -1
    assert scales.differences_ < -4 and scales.scale_differences_ > 1
    assert scales.lower_bound_ == pytest.approx(means.lower_bound_, abs=1e-6)
    assert both.lower_bound_ < means.lower_bound_ - 0.1
    assert both.scale_differences_ == pytest.approx(0, abs=1e-12)


def test_equation_12_is_no_score_of_a_direction():
    mixture = VonMisesFisherMixture.from_parameters(
        [0.4, 0.6], [[0.8, 0.0, 0.0], [0.0, 0.54, 0.72]], random_state=0
    )
    X, _ = mixture.sample(20_000)
    bags = np.array_split(np.random.default_rng(0).permutation(X), 400)

    def mean(**options):
        transformer = FisherVectorTransformer(FrozenEstimator(mixture), norm=None, **options)
        return np.abs(transformer.fit_transform(bags).mean(axis=0)).max()

    assert mean(geometry="tangent") < 0.2  # within the error of 400 bags
    assert mean(normalization="paper") > 10
