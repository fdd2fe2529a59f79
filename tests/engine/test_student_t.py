"""The Student-t family alone: densities, its maximum, and its degrees of freedom."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import multivariate_normal, multivariate_t

from skvmf._engine.contracts import DenseResponsibilities, HardResponsibilities
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.student_t import ESTIMATED_RANGE, StudentT, log_normalizers

from .elliptical import COVARIANCES as SCALES
from .elliptical import MEANS, TYPES, in_kind, matrices, statistics, whole
from .elliptical import some_rows as clean_rows

DOF = np.array([1.5, 8.0])


def some_rows():
    return clean_rows(n_outliers=3)


def latent_weights(X, kind, components):
    """Return (nu + d) / (nu + D), slowly."""
    gaps = X[:, None] - components.means
    precisions = np.linalg.inv(matrices(kind, components.covariances))
    squares = np.einsum("nkd,kde,nke->nk", gaps, precisions, gaps)
    dof = components.degrees_of_freedom
    return (dof + 2) / (dof + squares)


# Densities.


@pytest.mark.bits
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("apart", [1.0, 1e3], ids=["near", "far"])
def test_scores_and_biases_are_log_densities(kind, apart):
    family, (X, _) = StudentT(2, kind), some_rows()
    scores = family.scores(whole(X), family.components(apart * MEANS, SCALES[kind], DOF))
    for k, shape in enumerate(matrices(kind, SCALES[kind])):
        density = multivariate_t(apart * MEANS[k], shape, df=DOF[k])
        assert_allclose(scores.log_density()[:, k], density.logpdf(X), rtol=1e-11)


@pytest.mark.bits
@pytest.mark.parametrize("dof", [1e4, 1e8, 1e12, 1e16])
def test_log_densities_keep_their_digits_with_many_degrees_of_freedom(dof):
    """Where differences of log-gammas of 1e12 would be wrong by 1e-3."""
    family, (X, _) = StudentT(2, "spherical"), some_rows()
    scores = family.scores(whole(X), family.components(MEANS, SCALES["spherical"], dof))
    with mpmath.workdps(60):
        nu = mpmath.mpf(dof)
        constant = mpmath.loggamma((nu + 2) / 2) - mpmath.loggamma(nu / 2)
        for k, scale in enumerate(SCALES["spherical"]):
            peak = constant - mpmath.log(nu * mpmath.pi * scale)
            for x, score in zip(X, scores.log_density()[:, k], strict=True):
                square = sum(
                    (mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(x, MEANS[k], strict=True)
                )
                exact = peak - (nu + 2) / 2 * mpmath.log1p(square / scale / nu)
                assert_allclose(score, float(exact), rtol=1e-13)


@pytest.mark.parametrize("kind", TYPES)
def test_the_limit_is_a_gaussian(kind):
    family, (X, resp) = StudentT(2, kind, degrees_of_freedom=1e100, estimated=False), some_rows()
    components = family.components(MEANS, SCALES[kind])
    densities = family.scores(whole(X), components).log_density()
    for k, shape in enumerate(matrices(kind, SCALES[kind])):
        assert_allclose(densities[:, k], multivariate_normal(MEANS[k], shape).logpdf(X), rtol=1e-13)
    twin = Gaussian(2, kind)
    plain = twin.components(MEANS, SCALES[kind])
    moments = twin.moments(whole(X), DenseResponsibilities(resp), plain)
    stats = statistics(family, components, X, resp)
    for ours, theirs in zip(stats.moments, moments, strict=False):
        assert_array_equal(ours, theirs)
    fresh, _ = family.maximize(stats, components)
    expected, _ = twin.maximize(replace(stats, moments=moments), plain)
    assert_array_equal(fresh.means, expected.means)
    assert_allclose(fresh.covariances, expected.covariances, rtol=1e-15)


@pytest.mark.bits
@pytest.mark.parametrize("dim", [1, 2, 3, 10, 33, 1001])
def test_normalizers_have_all_their_digits(dim):
    dof = np.array([1e-3, 0.1, 1.0, 3.9, 39.9, 40.1, 1e3, 1e6, 1e12, 1e20])
    with mpmath.workdps(60):
        halves, half = [mpmath.mpf(nu) / 2 for nu in dof], mpmath.mpf(dim) / 2
        exact = [mpmath.loggamma(a + half) - mpmath.loggamma(a) - half * mpmath.log(a)
                 for a in halves]  # fmt: skip
    assert_allclose(log_normalizers(dof, dim), [float(e) for e in exact], rtol=2e-13, atol=1e-30)


# Moments.


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("hard", [False, True])
def test_moments_are_of_shares_times_latent_weights(kind, hard):
    family, (X, resp) = StudentT(2, kind), some_rows()
    components = family.components(MEANS, SCALES[kind], DOF)
    u = latent_weights(X, kind, components)
    responsibilities = DenseResponsibilities(resp.copy())
    if hard:
        labels, factors = (np.arange(60) % 2).astype(np.int32), resp[:, 0].copy()
        responsibilities = HardResponsibilities(labels, factors)
        resp = factors[:, None] * (labels[:, None] == [0, 1])
    first, second, sums, logs = family.moments(whole(X), responsibilities, components)
    gaps = X[:, None] - components.origins
    assert_allclose(first, np.einsum("nk,nkd->kd", resp * u, gaps), rtol=1e-11)
    scatter = np.einsum("nk,nkd,nke->kde", resp * u, gaps, gaps)
    diagonal = np.einsum("kdd->kd", scatter)
    expected = {"full": scatter, "tied": scatter.sum(axis=0), "diag": diagonal}
    expected["spherical"] = diagonal.sum(axis=1)
    assert_allclose(second, expected[kind], rtol=1e-11)
    assert_allclose(sums, (resp * u).sum(axis=0), rtol=1e-12)
    assert_allclose(logs, (resp * np.log(u)).sum(axis=0), rtol=1e-12)


def test_latent_weights_are_those_that_scores_cached():
    family, (X, resp) = StudentT(2, "full"), some_rows()
    components = family.components(MEANS, SCALES["full"], DOF)
    cache = family.scores(whole(X), components).cache
    again = family.moments(whole(X), DenseResponsibilities(resp.copy()), components, cache)
    afresh = family.moments(whole(X), DenseResponsibilities(resp.copy()), components)
    for a, b in zip(again, afresh, strict=True):
        assert_array_equal(a, b)


def test_a_first_partition_weighs_all_rows_alike():
    family, (X, resp) = StudentT(2, "diag"), some_rows()
    anywhere = family.from_centres(np.tile(X[:1], (2, 1)))
    stats = statistics(family, anywhere, X, resp)
    assert_array_equal(stats.moments[2], stats.counts)
    assert_array_equal(stats.moments[3], 0)
    start, plain = family.initial(stats, anywhere), Gaussian(2, "diag")
    about = plain.from_centres(np.tile(X[:1], (2, 1)))
    expected = plain.initial(replace(stats, moments=stats.moments[:2]), about)
    assert_array_equal(start.means, expected.means)
    assert_array_equal(start.covariances, expected.covariances)
    assert_array_equal(start.degrees_of_freedom, [4.0, 4.0])


# The maximum.


def bound(X, resp, u, old, means, shapes, dof):
    """Return the lower bound on the weighted log-likelihood that touches it at old components.

    Written out from lgamma(a) - a log b >= lgamma(a) - a log a + a + a log(u) - u b.
    """
    total = 0.0
    for k in range(2):
        gaps = X - means[k]
        squares = np.einsum("nd,de,ne->n", gaps, np.linalg.inv(shapes[k]), gaps)
        a, half = (dof[k] + 2) / 2, dof[k] / 2
        log_density = (
            half * np.log(half) - gammaln(half) - np.log(2 * np.pi)
            - 0.5 * np.linalg.slogdet(shapes[k])[1]
            + gammaln(a) - a * np.log(a) + a + a * np.log(u[:, k])
            - u[:, k] * (dof[k] + squares) / 2
        )  # fmt: skip
        total += resp[:, k] @ log_density
    return total


def log_likelihood(X, resp, means, shapes, dof):
    return sum(
        resp[:, k] @ multivariate_t(means[k], shapes[k], df=dof[k]).logpdf(X) for k in range(2)
    )


@pytest.mark.parametrize("kind", TYPES)
def test_a_step_with_known_degrees_of_freedom_is_that_of_parameter_expansion(kind):
    """Means and scatter weighed by u; scatter over the sum of r u, pooled where it is tied."""
    family, (X, resp) = StudentT(2, kind, degrees_of_freedom=DOF, estimated=False), some_rows()
    old = family.components(MEANS, SCALES[kind])
    fresh, broken = family.maximize(statistics(family, old, X, resp), old)
    assert not broken.any()
    assert_array_equal(fresh.degrees_of_freedom, DOF)
    weighed = resp * latent_weights(X, kind, old)
    means = weighed.T @ X / weighed.sum(axis=0)[:, None]
    assert_allclose(fresh.means, means, rtol=1e-11)
    gaps = X[:, None] - means
    scatter = np.einsum("nk,nkd,nke->kde", weighed, gaps, gaps)
    expected = in_kind(kind, scatter / weighed.sum(axis=0)[:, None, None], None)
    if kind == "tied":
        level = (DOF @ weighed.sum(axis=0)) / (DOF @ resp.sum(axis=0))
        expected = [scatter.sum(axis=0) / resp.sum() / level] * 2
    assert_allclose(matrices(kind, fresh.covariances), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tied", [False, True])
def test_a_step_raises_the_weighted_log_likelihood_by_what_its_bound_promises(kind, tied):
    family, (X, resp) = StudentT(2, kind, tied=tied), some_rows()
    old = family.components(MEANS, SCALES[kind], 5.0 if tied else DOF)
    fresh, _ = family.maximize(statistics(family, old, X, resp), old)
    u = latent_weights(X, kind, old)
    here = old.means, matrices(kind, old.covariances), old.degrees_of_freedom
    there = fresh.means, matrices(kind, fresh.covariances), fresh.degrees_of_freedom
    touching = bound(X, resp, u, old, *here)
    assert_allclose(touching, log_likelihood(X, resp, *here), rtol=1e-12)
    assert log_likelihood(X, resp, *there) >= bound(X, resp, u, old, *there)
    assert log_likelihood(X, resp, *there) > touching


def test_degrees_of_freedom_are_the_best_of_the_bound():
    """For latent weights of any mean: scale matrices and degrees of freedom at once."""
    family, (X, resp) = StudentT(2, "full"), some_rows()
    old = family.components(MEANS, SCALES["full"], DOF)
    fresh, _ = family.maximize(statistics(family, old, X, resp), old)
    u = latent_weights(X, "full", old)
    for k in range(2):
        level = resp[:, k] @ u[:, k] / resp[:, k].sum()
        mean_log = resp[:, k] @ np.log(u[:, k]) / resp[:, k].sum()

        def loss(log_nu, level=level, mean_log=mean_log):
            half = np.exp(log_nu) / 2
            a = half + 1
            best = half * np.log(half) - gammaln(half) + gammaln(a) - a * np.log(a) + a
            return -(best + half * (mean_log - np.log(level) - 1))

        best = minimize_scalar(loss, bounds=np.log(ESTIMATED_RANGE), method="bounded",
                               options={"xatol": 1e-10})  # fmt: skip
        assert_allclose(fresh.degrees_of_freedom[k], np.exp(best.x), rtol=1e-5)


# Components that leave, come and go on.


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("share", [1e-309, 5e-324])
def test_shares_of_next_to_nothing_give_degrees_of_freedom(kind, share):
    family, (X, _) = StudentT(2, kind), some_rows()
    resp = np.full((len(X), 2), share)
    resp[:, 0] = 1
    old = family.components(MEANS, SCALES[kind], DOF)
    with np.errstate(all="raise", under="ignore"):
        fresh, _ = family.maximize(statistics(family, old, X, resp), old)
    assert np.isfinite(fresh.means).all()
    assert np.isfinite(fresh.covariances).all()
    assert (fresh.degrees_of_freedom > 0).all()


def test_a_reseeded_component_keeps_its_degrees_of_freedom():
    family = StudentT(2, "spherical")
    old = family.components(MEANS, SCALES["spherical"], DOF)
    moved = family.reseed(old, 1, np.array([9.0, 9.0]))
    assert_array_equal(moved.means, [MEANS[0], [9.0, 9.0]])
    assert_array_equal(moved.covariances, [2.0, 1.25])
    assert_array_equal(moved.degrees_of_freedom, DOF)


def test_a_fit_goes_on_with_degrees_of_freedom_that_it_may_have():
    fresh = StudentT(2, "diag", 0.5)
    wild = fresh.components(MEANS, SCALES["diag"], np.array([1e-3, 1e100]))
    assert_array_equal(fresh.adapted(wild).degrees_of_freedom, ESTIMATED_RANGE)
    one = replace(fresh, tied=True).adapted(wild)
    assert_allclose(one.degrees_of_freedom, np.sqrt(np.prod(ESTIMATED_RANGE)))
    known = replace(fresh, degrees_of_freedom=DOF, estimated=False).adapted(wild)
    assert_array_equal(known.degrees_of_freedom, DOF)
    assert_array_equal(known.means, MEANS)
