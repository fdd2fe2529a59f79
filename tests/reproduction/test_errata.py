"""What is wrong in the papers, and what we remark on them, shown by computation."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from reproduction import p1_modes, p2_expectation, p3_theory
from reproduction import p3_trajectories as p3
from skvmf import FisherVectorTransformer, VonMisesFisherMixture
from skvmf.distributions import modified_dirichlet
from skvmf.distributions.simplex import entmax
from skvmf.distributions.vonmises_fisher import concentration, negentropy


@pytest.mark.parametrize("dim", range(2, 8))
def test_the_antiderivative_is_an_arctangent_up_to_six(dim):
    printed_root = dim**2 / 4 - 2 * dim + 2
    assert (printed_root < 0) == (dim <= 6)
    for r in (0.3, 0.9):
        area, _ = quad(lambda s: concentration(s, dim, method="rational"), 0, r)
        assert negentropy(r, dim, method="rational") == pytest.approx(area, rel=1e-9)


def test_algorithm_2_is_wrong_as_printed():
    printed = p1_modes.as_printed(np.array([3.0, 3.0]), 1e-9)
    np.testing.assert_allclose(printed, [0.5, 1.0])
    corrected = modified_dirichlet.mode([3.0, 3.0], 1e-9, method="sorting")
    np.testing.assert_allclose(corrected, [0.5, 0.5])
    # entries below one in the sums: the first entry is (-9 - 1)/(-9 - 1 + 1 - ...)
    printed = p1_modes.as_printed(np.array([-9.0, 2.0]), 0.01)
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
def test_a_constant_in_the_scores_changes_no_responsibility(alpha):
    weights, log_density = np.array([0.2, 0.5, 0.3]), np.array([-1.0, -1.5, -1.2])
    printed = weights ** (alpha - 1) / (alpha - 1)
    ours = (weights ** (alpha - 1) - 1) / (alpha - 1)
    responsibilities = entmax(ours + log_density, alpha)
    np.testing.assert_allclose(entmax(printed + log_density, alpha), responsibilities, atol=1e-10)
    if alpha < 1.01:  # the limit, which the printed scores do not have
        posterior = weights * np.exp(log_density)
        np.testing.assert_allclose(responsibilities, posterior / posterior.sum(), atol=1e-4)


def test_equation_20_has_no_maximum_as_printed():
    """A standard normal prior and z plus noise, of which 0 is seen: the posterior is N(0, 1/2)."""

    def objective(s, sign):
        expected = -0.5 * (s**2 + np.log(2 * np.pi))
        return expected + sign * 0.5 * (s**2 - 1 - np.log(s**2))

    s = np.logspace(-8, 2, 2001)
    assert s[objective(s, -1).argmax()] == pytest.approx(np.sqrt(0.5), rel=0.01)
    assert objective(s, 1).argmax() == 0
    assert objective(1e-30, 1) > objective(1e-8, 1) + 10


def test_pixels_are_no_categorical_distribution():
    totals = (load_digits().data / 16).sum(axis=1)
    assert totals.min() > 5


def test_the_text_agrees_with_table_3_and_not_with_the_appendix():
    assert 1 - 1.3384 / 1.4984 == pytest.approx(0.1068, abs=5e-5)
    assert 1 - 1.384 / 1.484 == pytest.approx(0.067, abs=5e-4)


def expectation_step():
    """Return rows, responsibilities, sums and counts near the start of the paper's figure."""
    X = p3.sample(0)[:, 0]
    second = 1 / (1 + np.exp(X + 5))
    resp = np.array([1 - second, second])
    return X, resp, resp @ X, resp.sum(axis=1)


@pytest.mark.parametrize("reading", list(p3.READINGS)[1:])
def test_the_printed_reference_mean_is_no_maximum(reading):
    X, resp, T, N = expectation_step()
    delta = 0.7
    mu = p3.READINGS[reading](T, N, delta)
    slope = resp[0] @ (X - mu) + resp[1] @ (X - mu - delta)  # of the expected log-likelihood
    assert abs(slope) < 1e-9 if reading == "corrected" else abs(slope) > 1


def test_the_printed_algorithm_ends_at_equal_means():
    x = p3.sample(0)[:, 0]
    path = p3.by_reading(x, "lost operator as +")
    assert len(path) - 1 <= 7
    assert abs(path[-1][1] - path[-1][0]) < 1e-3
    apart = p3.sample(0, np.array([-2.0, 2.0]))[:, 0]
    ends = [
        p3.log_likelihood(apart, p3.by_reading(apart, name)[-1])
        for name in ("EM", "lost operator as +")
    ]
    assert ends[0] - ends[1] > 300


def test_counts_have_no_factor():
    X, _resp, T, N = expectation_step()
    printed = N / len(X)
    assert (np.abs(T / printed) > 100 * np.abs(X).max()).any()
    assert (printed / len(X)).sum() == pytest.approx(1 / len(X))
    assert (N / len(X)).sum() == pytest.approx(1)
    assert (X.min() < T / N).all()
    assert (T / N < X.max()).all()


def test_the_printed_multiplier_is_negative():
    """The second mean is below the first without the condition: it holds with equality."""
    X, resp, T, N = expectation_step()
    first, second = np.sort(T / N)[::-1]
    mu = np.average(X)  # of both, once the condition is active

    weights = resp[np.argsort(T / N)[::-1]]
    slope = (2 * mu - 2 * X) @ weights[1]  # of the sum of squares in the gap, at zero
    assert second < first
    assert slope > 0
    printed_multiplier = -slope  # of slope + lambda = 0
    assert printed_multiplier < 0


def test_the_length_element_has_the_conjugate():
    """The Bernoulli distribution: F = log(1 + e^theta), eta = F', F* its negative entropy."""
    theta, step = 0.7, 1e-5
    eta = 1 / (1 + np.exp(-theta))

    def conjugate(x):
        return x * np.log(x) + (1 - x) * np.log(1 - x)

    def bent(function):
        return (function(eta + step) - 2 * function(eta) + function(eta - step)) / step**2

    information, d_eta = eta * (1 - eta), 0.01
    d_theta = d_eta / information
    length = d_theta * information * d_theta
    assert d_eta * bent(conjugate) * d_eta == pytest.approx(length, rel=1e-4)
    squared = bent(lambda x: np.log(1 + np.exp(x)) ** 2)
    assert abs(d_eta * squared * d_eta / length - 1) > 0.5


V, MU, GAP = 0.3, 0.4, 0.9  # a point of the averaged dynamics
JACOBIAN = np.array([[1, 0, 0], [0, 0, 1], [-GAP, 1, 1 - V]])
PRINTED = np.array([[1, 0, 0], [0, 0, 1], [MU - GAP, V + 1 - GAP, 1 - V - MU]])


def test_the_printed_jacobian_is_no_derivative():
    def coordinates(v, mu, gap):
        return np.array([v, gap, v * mu + (1 - v) * (mu + gap)])

    point, steps = np.array([V, MU, GAP]), 1e-6 * np.eye(3)
    found = [(coordinates(*(point + h)) - coordinates(*(point - h))) / 2e-6 for h in steps]
    np.testing.assert_allclose(np.transpose(found), JACOBIAN, atol=1e-8)
    assert np.abs(np.transpose(found) - PRINTED).max() > 0.1


def test_the_printed_product_is_not_that_of_the_printed_jacobian():
    corner = 3 * GAP**3 + 2 * MU * GAP - 4 * GAP + MU**2 + 2 * V**2 + 2
    printed = np.array([[1, 0, MU + GAP], [0, 1, 1 - GAP - V], [MU + GAP, V + 1 - GAP, corner]])
    assert np.abs(printed - PRINTED @ PRINTED.T).max() > 0.1
    assert np.abs(printed - printed.T).max() > 0.1
    right = JACOBIAN @ JACOBIAN.T
    np.testing.assert_allclose(right[2], [-GAP, 1 - V, GAP**2 + 1 + (1 - V) ** 2])


def test_the_printed_series_of_the_dynamics_are_mixed_up():
    """Expansions in u of the derivatives of the log-density, as dv/dt and du/dt have them."""
    v, u, w, x = 0.3, 0.02, 0.5, 1.3

    def log_density(v, u, w):
        means = np.array([w + (1 - v) * u, w - v * u])
        return np.log(np.array([v, 1 - v]) @ np.exp(-0.5 * (x - means) ** 2))

    point, h = np.array([v, u, w]), 1e-5
    l_v, l_u, l_w = (
        (log_density(*(point + e)) - log_density(*(point - e))) / (2 * h) for e in h * np.eye(3)
    )
    z = w - x
    second, third = z**2 - 1, z**3 - 3 * z
    in_v = -0.5 * u**2 * (2 * v - 1) * second - 0.5 * u**3 * (6 * v**2 - 6 * v + 1) * third
    in_w = -z + u**2 * (1 - v) * v * z
    assert abs(in_w - l_w) < 1e-4
    assert abs(in_v - l_v) < 1e-3 < abs(in_v - l_w)  # printed in the place of dl/dw
    assert abs(in_v - l_u) > 1e-3  # printed in the place of dl/du
    assert abs((2 * l_u - (1 - 2 * v) * in_v) - (2 * l_u - (1 - 2 * v) * l_w)) > 0.1


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
    information = p3_theory.matrix(means, deviations, np.eye(5), weight)
    least = np.linalg.eigvalsh(information)[0]
    assert least > 1e-4 if regular else abs(least) < 1e-9


@pytest.mark.parametrize("weight", [0.3, 0.5])
def test_equal_weights_identify_their_components(weight):
    apart = p3_theory.matrix((0.0, 1.5), (1.0, 1.5), np.eye(5), weight)
    assert np.linalg.eigvalsh(apart)[0] > 1e-4
    alike = p3_theory.matrix((0.0, 0.0), (1.0, 1.0), np.eye(5), weight)
    assert abs(np.linalg.eigvalsh(alike)[0]) < 1e-9


def test_relative_coordinates_may_have_a_larger_norm():
    def norms(first, second):
        return np.hypot(first, second), np.hypot(first, second - first)

    theta, relative = norms(-1.0, 1.0)
    assert relative > theta
    theta, relative = norms(3.0, 4.0)
    assert relative < theta


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
