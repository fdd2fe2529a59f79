"""A path of Student-t components says what merges lose in its own likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skvmf import SparseGaussianMixture, StudentTMixture
from skvmf.model_selection import ComponentPath

CENTRES = np.array([[0.0, 0], [40, 0], [40, 70]])


def cauchy_rows(n=300, centres=CENTRES, seed=0):
    """Clusters of rows that have two-dimensional Cauchy distributions."""
    rng = np.random.default_rng(seed)
    shape = (len(centres), n, 2)
    rows = rng.normal(size=shape) / np.sqrt(rng.chisquare(1, size=(len(centres), n, 1)))
    return (centres[:, None] + rows).reshape(-1, 2)


def log_likelihood(X, family=StudentTMixture, **options):
    """The largest log-likelihood of rows under one distribution."""
    one = family(reg_covar=0, tol=1e-9, max_iter=500, **options).fit(X)
    return one.score(X) * len(X)


def path_of(X, estimator=None, **params):
    options = {"reg_covar": 0, "tol": 1e-6, "max_iter": 300, "random_state": 0}
    estimator = StudentTMixture(**options) if estimator is None else estimator
    return ComponentPath(estimator, **{"max_components": 3, "refit": False, **params}).fit(X)


def losses_of_fits(X, family=StudentTMixture):
    """What merging the first two thirds of rows loses, and then the last third with them."""
    first, second, third = np.split(X, 3)
    both = np.vstack([first, second])
    values = [log_likelihood(rows, family) for rows in (first, second, both, third, X)]
    return values[0] + values[1] - values[2], values[2] + values[3] - values[4]


@pytest.mark.parametrize("min_components", [1, 2, 3])
def test_losses_are_those_of_fits_of_the_parts(min_components):
    """A few steps of EM after a merge do not reach the end of a fit: hence three per cent.

    Merges below the last mixture of a path have one fit: what they lose together is known.
    """
    X = cauchy_rows()
    linkage = path_of(X, min_components=min_components).linkage_
    if min_components < 3:
        assert_allclose(linkage[:, 2], losses_of_fits(X), rtol=0.03)
    assert_allclose(linkage[:, 2].sum(), np.sum(losses_of_fits(X)), rtol=0.03)


def test_known_degrees_of_freedom_are_those_of_the_losses():
    X = cauchy_rows(centres=CENTRES[:2])
    given = {"degrees_of_freedom": 3.0}
    estimator = StudentTMixture(reg_covar=0, random_state=0, tol=1e-6, max_iter=300, **given)
    linkage = path_of(X, estimator, max_components=2).linkage_
    first, second = np.split(X, 2)
    lost = log_likelihood(first, **given) + log_likelihood(second, **given)
    assert_allclose(linkage[0, 2], lost - log_likelihood(X, **given), rtol=0.02)


def test_losses_tend_to_those_of_gaussians():
    rng = np.random.default_rng(0)
    X = np.vstack([centre / 4 + rng.normal(size=(200, 2)) for centre in CENTRES])
    tails = StudentTMixture(degrees_of_freedom=1e8, reg_covar=0, random_state=0)
    expected = losses_of_fits(X, SparseGaussianMixture)
    assert_allclose(path_of(X, tails).linkage_[:, 2], expected, rtol=1e-3)


@pytest.mark.parametrize("family", [StudentTMixture, SparseGaussianMixture])
def test_losses_are_in_the_unit_of_the_weights(family):
    """Weights beyond 1e20 are counted in another unit."""
    X = cauchy_rows(100, CENTRES[:2])
    path = ComponentPath(family(random_state=0), max_components=4, refit=False)
    losses = []
    for weight in (2.0**40, 2.0**80):
        fitted = path.fit(X, sample_weight=np.full(len(X), weight))
        losses.append(fitted.linkage_[:, 2] / weight)
    assert_allclose(*losses, rtol=1e-6)


def test_rows_with_missing_values_count():
    X = cauchy_rows()
    X[np.random.default_rng(1).random(len(X)) < 0.1, 0] = np.nan
    options = {"missing_values": "marginal", "reg_covar": 0, "random_state": 0, "tol": 1e-6}
    linkage = path_of(X, StudentTMixture(max_iter=300, **options)).linkage_
    parts = np.split(X, 3)
    values = [log_likelihood(rows, missing_values="marginal") for rows in [*parts, X]]
    assert_allclose(linkage[:, 2].sum(), sum(values[:3]) - values[3], rtol=0.02)


def test_losses_are_finite_where_components_are_pruned():
    X = cauchy_rows(60)
    estimator = StudentTMixture(weight_concentration_prior=-3.0, background=True, random_state=0)
    linkage = path_of(X, estimator, max_components=12, criterion="bic").linkage_
    assert len(linkage) == 11
    assert np.isfinite(linkage).all()
    assert (np.diff(linkage[:, 2]) > 0).all()
