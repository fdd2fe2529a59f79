"""Distances to the singular set against integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.inspection import singularity_distances
from skvmf.inspection._components import read_components


def test_overlap_is_the_hellinger_distance_on_the_line():
    means, variances = [0.0, 0.4, 3.0], [1.0, 2.0, 0.3]
    found = singularity_distances(([0.2, 0.3, 0.5], means, variances))
    for i in range(3):
        for j in range(3):
            p, q = (stats.norm(means[k], np.sqrt(variances[k])).pdf for k in (i, j))
            affinity = integrate.quad(lambda x, p=p, q=q: np.sqrt(p(x) * q(x)), -20, 20)[0]
            assert_allclose(found.overlap[i, j], np.sqrt(max(1 - affinity, 0)), atol=1e-7)


def test_overlap_is_the_hellinger_distance_on_the_circle():
    directions, kappas = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.2]], [1.0, 5.0, 40.0]
    mixture = VonMisesFisherMixture.from_parameters(
        [0.2, 0.3, 0.5], mean_directions=directions, concentrations=kappas
    )
    found = singularity_distances(mixture)
    components = read_components(mixture)
    angle = np.linspace(0, 2 * np.pi, 2001)[:-1]
    roots = np.exp(0.5 * components.log_densities(np.column_stack([np.cos(angle), np.sin(angle)])))
    affinity = roots.T @ roots * (angle[1] - angle[0])
    assert_allclose(found.overlap**2, 1 - affinity, atol=1e-12)


@pytest.mark.parametrize("kappa", [1e-8, 1.0, 1e8])
def test_small_overlaps_keep_their_digits(kappa):
    """For small angles the distance is kappa-dependent, but linear in the angle."""
    found = []
    for angle in [1e-6, 2e-6]:
        mixture = VonMisesFisherMixture.from_parameters(
            [0.5, 0.5],
            mean_directions=[[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]],
            concentrations=[kappa, kappa],
        )
        found.append(singularity_distances(mixture).overlap[0, 1])
    if kappa < 1e6:
        assert found[1] < 1e-5
    else:
        assert_allclose(found[0], np.sqrt(-np.expm1(-kappa * 1e-12 / 8)), rtol=1e-3)
    assert np.isfinite(found).all()


def test_elimination_is_the_hellinger_distance_of_the_weights():
    weights = np.array([0.7, 0.2999, 1e-4, 0.0])
    found = singularity_distances((weights, np.arange(4.0)))
    for k, weight in enumerate(weights):
        without = np.delete(weights, k) / (1 - weight)
        affinity = np.sqrt(np.delete(weights, k) * without).sum()
        assert_allclose(found.elimination[k], np.sqrt(1 - affinity), atol=1e-8)


def test_the_closest_components_are_named():
    found = singularity_distances(([0.3, 0.3, 0.4], [[0.0, 0.0], [5.0, 0.0], [5.2, 0.0]]))
    assert found.closest == (1, 2)
    assert_allclose(np.diagonal(found.overlap), 0)
    single = singularity_distances(([1.0], [0.0]))
    assert single.closest is None
    assert_allclose(single.elimination, 1)


@pytest.mark.parametrize("make", [RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture])
def test_fitted_mixtures_are_measured(make):
    X = np.random.default_rng(0).normal(size=(200, 2)) + 3
    mixture = make(n_components=3, random_state=0, max_iter=5, tol=1).fit(X)
    found = singularity_distances(mixture)
    assert found.overlap.shape == (3, 3)
    assert ((found.overlap >= 0) & (found.overlap <= 1)).all()
    assert_allclose(found.elimination[mixture.weights_ == 0], 0)


def test_a_clearance_keeps_the_distance():
    X = np.random.default_rng(0).normal(size=(300, 1))
    options = dict(fixed=("weights", "covariances"), random_state=0, max_iter=1000, tol=1e-9)
    near = singularity_distances(RelativeGMM(2, **options).fit(X)).overlap[0, 1]
    far = singularity_distances(RelativeGMM(2, clearance=1.5, **options).fit(X)).overlap[0, 1]
    assert far > near
    assert far >= np.sqrt(-np.expm1(-(1.5**2) / 8)) - 1e-12


def test_other_input_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        singularity_distances(RelativeGMM())
    with pytest.raises(ValueError, match="sum to 1"):
        singularity_distances(([0.5, 0.6], [0.0, 1.0]))


def test_a_weight_floor_keeps_the_distance_to_elimination_where_it_binds():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (390, 1)), rng.normal(4, 1, (10, 1))])
    options = dict(fixed=("covariances",), means_init=[[0.0], [4.0]], max_iter=2000, tol=1e-10)
    free, held = (
        RelativeGMM(2, weight_floor=floor, weight_concentration_prior=1.0, **options).fit(X)
        for floor in (0.0, 0.1)
    )
    least = np.sqrt(1 - np.sqrt(1 - 0.1))
    assert singularity_distances(free).elimination.min() < 0.6 * least
    np.testing.assert_allclose(singularity_distances(held).elimination.min(), least, rtol=1e-12)
    assert held.lower_bound_ < free.lower_bound_  # what the bound costs
    assert np.diff(held.lower_bounds_).min() >= -1e-12
