"""Overlaps of Student-t components are those of Student-t distributions, not of Gaussian ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_t

from skvmf import SparseGaussianMixture, StudentTMixture
from skvmf.inspection import component_summary, match_components
from skvmf.inspection._student_t_overlaps import log_affinities


def cauchy_pair(gap, dof=1.0, d=1):
    """Two components of unit scale, so far apart along the first feature."""
    means = np.zeros((2, d))
    means[1, 0] = gap
    return StudentTMixture.from_parameters(
        [0.5, 0.5], means, np.tile(np.eye(d), (2, 1, 1)), degrees_of_freedom=dof
    )


def random_pair(dof, d, distance, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, d, d))
    scales = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(d)
    means = distance * rng.normal(size=(2, d)) / np.sqrt(d)
    return means, scales, np.array(dof)


def monte_carlo(means, scales, dof, n=200_000):
    """The mean of sqrt(p q) over the mean of p and q, drawn from that mean: it is at most 1."""
    rng = np.random.default_rng(1)
    p, q = (multivariate_t(*of) for of in zip(means, scales, dof, strict=True))
    X = np.concatenate([each.rvs(n, random_state=rng).reshape(n, -1) for each in (p, q)])
    log_p, log_q = p.logpdf(X), q.logpdf(X)
    ratios = np.exp(0.5 * (log_p + log_q) - np.logaddexp(log_p, log_q)) * 2
    return ratios.mean()


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("dof", [(1, 1), (0.5, 8), (3, 60), (200, 200)])
def test_overlaps_are_those_of_draws(dof, d):
    means, scales, dof = random_pair(dof, d, 3.0)
    expected = monte_carlo(means, scales, dof)
    mixture = StudentTMixture.from_parameters([0.5, 0.5], means, scales, degrees_of_freedom=dof)
    # Draws have a standard error of up to .0008.
    assert_allclose(component_summary(mixture).overlaps, expected, atol=0.004)
    parts = [
        StudentTMixture.from_parameters([1.0], means[[k]], scales[[k]], degrees_of_freedom=dof[[k]])
        for k in (0, 1)
    ]
    for reference, other in (parts, parts[::-1]):
        assert_allclose(match_components(reference, other).overlaps, expected, atol=0.004)


def test_two_cauchy_distributions_overlap_as_an_integral_says():
    """Of Cauchy densities with centres 2 c apart it is the integral of 1 / pi over the roots."""
    x = np.sinh(np.linspace(-60, 60, 200_001))
    width = 120 / 200_000
    for half_gap in (0.5, 3.0, 50.0):
        product = (1 + (x - half_gap) ** 2) * (1 + (x + half_gap) ** 2)
        expected = width * (np.sqrt(1 + x**2) / (np.pi * np.sqrt(product))).sum()
        assert_allclose(component_summary(cauchy_pair(2 * half_gap)).overlaps, expected, rtol=1e-5)


def test_overlaps_tend_to_those_of_gaussians():
    means, scales, _ = random_pair((1, 1), 4, 3.0)
    gaussian = SparseGaussianMixture.from_parameters([0.5, 0.5], means, scales)
    expected = component_summary(gaussian).overlaps
    for dof in (1e7, 1e100):
        mixture = StudentTMixture.from_parameters([0.5, 0.5], means, scales, degrees_of_freedom=dof)
        assert_allclose(component_summary(mixture).overlaps, expected, rtol=1e-6)
    matched = match_components(mixture, gaussian)
    assert_array_equal(matched.indices, [0, 1])
    assert_allclose(matched.overlaps, 1, rtol=1e-6)


def test_student_t_components_are_compared_with_gaussian_ones():
    means, scales, dof = random_pair((2.0, 1e6), 2, 1.0)
    student_t = StudentTMixture.from_parameters(
        [1.0], means[:1], scales[:1], degrees_of_freedom=dof[:1]
    )
    gaussian = SparseGaussianMixture.from_parameters([1.0], means[1:], scales[1:])
    expected = monte_carlo(means, scales, dof)
    for pair in ((student_t, gaussian), (gaussian, student_t)):
        assert_allclose(match_components(*pair).overlaps, expected, atol=0.004)


@pytest.mark.parametrize("dof", [(1, 1), (4, 1e100), (1e-3, 1e-3)])
def test_overlaps_do_not_depend_on_units(dof):
    means, scales, dof = random_pair(dof, 3, 2.0)
    units = np.array([1e-6, 1.0, 1e6])
    overlaps = []
    for by in (np.ones(3), units):
        mixture = StudentTMixture.from_parameters(
            [0.5, 0.5], means * by, scales * np.outer(by, by), degrees_of_freedom=dof
        )
        overlaps.append(component_summary(mixture).overlaps)
    assert_allclose(*overlaps, rtol=1e-5)
    assert 0 < overlaps[0].min() <= overlaps[0].max() <= 1


def test_equal_components_overlap_wholly_and_those_far_apart_hardly():
    assert_allclose(component_summary(cauchy_pair(0.0)).overlaps, 1, rtol=1e-6)
    assert_allclose(component_summary(cauchy_pair(1e100)).overlaps, 0, atol=1e-90)
    far = StudentTMixture.from_parameters([0.5, 0.5], [[0.0], [1e100]], [[[1e-300]]] * 2, 1.0)
    assert_array_equal(component_summary(far).overlaps, 0)
    overlaps = [component_summary(cauchy_pair(gap, dof=3.0)).overlaps[0] for gap in (1, 5, 25, 125)]
    assert (np.diff(overlaps) < 0).all()


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("gap", [0.0, 1.0, 1e6])
def test_scales_of_extreme_sizes_have_finite_overlaps(size, gap):
    means = np.array([[0.0, 0], [gap, 0], [0, 0]])
    scales = np.array([1.0, size, size])[:, np.newaxis, np.newaxis] * np.eye(2)
    dof = np.array([1e6, 1e6, 1.0])
    for i in range(2):
        overlaps = np.exp(log_affinities(means, scales, dof, i, np.arange(2)))
        assert_allclose(overlaps, np.arange(2) == i, atol=1e-20)
