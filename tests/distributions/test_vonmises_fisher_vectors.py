"""The negative entropy of mean parameters: gradient, Hessian and divergence agree."""

import numpy as np
import pytest
from scipy.integrate import quad

from skvmf.distributions.vonmises_fisher import (
    concentration,
    kl_divergence,
    logpdf,
    mean_negentropy,
    natural_parameter,
    negentropy,
    negentropy_hessian,
    negentropy_hessian_product,
    variance_function,
)

from ..pairwise import pairwise

DIMS = [2, 3, 10, 300]


def means(dim, lengths=(0.0, 1e-8, 0.05, 0.4, 0.9, 0.999)):
    rng = np.random.default_rng(dim)
    directions = rng.normal(size=(len(lengths), dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.array(lengths)[:, np.newaxis] * directions


@pytest.mark.parametrize("dim", DIMS)
def test_gradient_and_hessian_are_slopes(dim):
    points, h = means(dim, (0.05, 0.4, 0.9)), 1e-6
    steps = np.random.default_rng(1).normal(size=points.shape) / np.sqrt(dim)
    ahead, behind = points + h * steps, points - h * steps
    slopes = (mean_negentropy(ahead) - mean_negentropy(behind)) / (2 * h)
    np.testing.assert_allclose((natural_parameter(points) * steps).sum(axis=1), slopes, rtol=1e-6)
    slopes = (natural_parameter(ahead) - natural_parameter(behind)) / (2 * h)
    result = negentropy_hessian_product(points, steps)
    np.testing.assert_allclose(result, slopes, rtol=1e-6, atol=1e-6 * np.abs(slopes).max())


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_the_hessian_is_the_inverse_of_the_covariance(dim):
    points = means(dim)
    product = negentropy_hessian(points) @ variance_function(points)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(dim), product.shape), atol=1e-9)
    vectors = np.random.default_rng(2).normal(size=points.shape)
    applied = np.einsum("nij,nj->ni", negentropy_hessian(points), vectors)
    np.testing.assert_allclose(negentropy_hessian_product(points, vectors), applied, rtol=1e-9)


def test_the_divergence_is_the_integral_on_the_circle():
    first, second = np.array([0.3, 0.5]), np.array([-0.2, 0.7])

    def integrand(angle):
        x = np.array([np.cos(angle), np.sin(angle)])
        log_p, log_q = logpdf(x, mean=first), logpdf(x, mean=second)
        return np.exp(log_p) * (log_p - log_q)

    area, _ = quad(integrand, 0, 2 * np.pi, epsabs=1e-12)
    assert kl_divergence(first, second) == pytest.approx(area, rel=1e-10)


@pytest.mark.bits
@pairwise(dim=DIMS, length=[1e-6, 0.3, 0.95, 0.9999], step=[1e-12, 1e-7, 1e-3, 0.02, 0.2])
def test_the_divergence_keeps_its_digits_where_means_are_close(dim, length, step):
    other = length + step * (1 - length)
    axis = np.eye(dim)[0]
    result = kl_divergence(length * axis, other * axis)
    if step <= 1e-7:  # what follows the second order is below 1e-6 of it
        expected = (length - other) ** 2 / 2 * negentropy(other, dim, order=2)
        assert result == pytest.approx(expected, rel=1e-5)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(200)
        t = other + (length - other) * (1 + nodes) / 2
        curvature = negentropy(t, dim, order=2) * (length - t) * weights / 2
        assert result == pytest.approx(curvature.sum() * (length - other), rel=1e-10)


@pytest.mark.parametrize("dim", DIMS)
def test_the_divergence_is_zero_on_the_diagonal_and_positive_elsewhere(dim):
    points = means(dim)
    table = kl_divergence(points[:, np.newaxis], points)
    assert table.shape == (6, 6)
    assert (table.diagonal() == 0).all()
    assert (table + np.eye(6) > 0).all()
    expected = concentration(0.4, dim) * 0.4 - negentropy(0.4, dim)  # from the uniform: psi alone
    back = kl_divergence(np.zeros(dim), points[3])
    assert back == pytest.approx(expected, rel=1e-12)


def test_shapes_broadcast_and_one_vector_gives_a_number():
    assert np.ndim(kl_divergence([0.1, 0.2], [0.3, 0.4])) == 0
    assert np.ndim(mean_negentropy([0.1, 0.2])) == 0
    assert natural_parameter(np.zeros((4, 1, 3))).shape == (4, 1, 3)
    assert negentropy_hessian(np.zeros((4, 1, 3))).shape == (4, 1, 3, 3)
    assert negentropy_hessian_product(np.zeros(3), np.ones((5, 3))).tolist() == [[3.0] * 3] * 5


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="inside the unit ball"):
        natural_parameter([1.0, 0.0])
    with pytest.raises(ValueError, match="coordinates"):
        kl_divergence([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="as many coordinates"):
        negentropy_hessian_product([0.1, 0.2], [0.1, 0.2, 0.3])
