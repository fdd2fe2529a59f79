"""Scores with heavy tails and latent weights, against mpmath and NumPy."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._kernels.student_t import MAX_RATIO, solve_dof, tail_scores, weigh_responsibilities

DOF = np.array([1e-3, 0.1, 1.0, 4.0, 30.0, 1e4, 1e8, 1e15, 1e100])


def distances():
    rng = np.random.default_rng(0)
    sizes = [10 ** rng.uniform(-30, 30, 20), rng.gamma(2, 1, 20), [0.0, 1.0, 1e200]]
    return np.concatenate(sizes)


def scored(squares, dof, dim):
    products = np.repeat(-0.5 * squares[:, None], len(dof), axis=1)
    latent = np.full(products.shape, np.nan)
    tail_scores(products, dof, dim, latent)
    return products, latent


@pytest.mark.bits
@pytest.mark.parametrize("dim", [1, 32])
def test_scores_and_latent_weights_have_all_their_digits(dim):
    products, latent = scored(distances(), DOF, dim)
    with mpmath.workdps(60):
        for n, square in enumerate(map(mpmath.mpf, distances())):
            for k, nu in enumerate(map(mpmath.mpf, DOF)):
                score = -(nu + dim) / 2 * mpmath.log1p(square / nu)
                assert_allclose(products[n, k], float(score), rtol=2e-15, atol=1e-300)
                assert_allclose(latent[n, k], float((nu + dim) / (nu + square)), rtol=1e-15)


@pytest.mark.filterwarnings("ignore:overflow")  # without the compiler
def test_no_distance_is_too_large_and_rounding_below_zero_is_zero():
    products, latent = scored(np.array([1.7e308, np.inf, -1e-13]), np.array([1e-3, 4.0]), 3)
    assert np.isfinite(products).all()
    assert (latent > 0).all()
    assert_allclose(products[1], -0.5 * (np.array([1e-3, 4.0]) + 3) * np.log(MAX_RATIO))
    assert_array_equal(products[2], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_responsibilities_are_weighted_and_added_up(dtype):
    rng = np.random.default_rng(0)
    resp = rng.random((37, 5)).astype(dtype)
    resp[rng.random((37, 5)) < 0.5] = 0
    latent = 10 ** rng.uniform(-300, 0.3, (37, 5))
    latent[::2] = 1 + 1e-6 * rng.normal(size=(19, 5))
    expected = resp.astype(float) * latent, resp.astype(float) * np.log(latent)
    sums, logs = np.ones(5), np.ones(5)
    weigh_responsibilities(resp, latent, sums, logs)
    assert_allclose(latent, expected[0], rtol=1e-15)
    assert_allclose(sums, 1 + expected[0].sum(axis=0), rtol=1e-14)
    assert_allclose(logs, 1 + expected[1].sum(axis=0), rtol=1e-13)


def solved(gaps, dim):
    dof = np.full(len(gaps), np.nan)
    dims, shares = np.array([float(dim)]), np.ones((len(gaps), 1))
    solve_dof(np.array(gaps), dims, shares, 0.1, 1e6, dof)
    return dof


@pytest.mark.parametrize("dim", [1, 2, 50])
def test_the_equation_of_the_degrees_of_freedom_is_solved(dim):
    dof = np.array([0.11, 0.5, 1.0, 4.0, 39.9, 40.1, 500.0, 9e5])
    with mpmath.workdps(40):
        gaps = []
        for half in dof / 2:
            a, b = mpmath.mpf(half), mpmath.mpf(half) + mpmath.mpf(dim) / 2
            f = [mpmath.log(x) - mpmath.digamma(x) for x in (a, b)]
            gaps.append(float(f[0] - f[1]))
    assert_allclose(solved(gaps, dim), dof, rtol=1e-10)


def test_degrees_of_freedom_stay_in_their_range():
    assert_allclose(solved([-1e-16, 0.0, 1e-20], 3), 1e6)
    assert_allclose(solved([1e3, 1e300, np.inf], 3), 0.1)
