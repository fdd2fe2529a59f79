"""Covariances of each shape against sums over rows written out, near the origin and far apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import multivariate_normal

from skvmf._engine.blocks import DenseBlock
from skvmf._engine.contracts import DenseResponsibilities, HardResponsibilities
from skvmf._engine.covariance import COVARIANCE_TYPES, MAX_PAIRS_DIM
from skvmf._engine.gaussian import Gaussian

N, K, D = 700, 3, 4  # more rows than a tile
TYPES = pytest.mark.parametrize("kind", COVARIANCE_TYPES)
PLACES = pytest.mark.parametrize("apart", [1.0, 1e4], ids=["near", "far"])


def some_covariances(kind, rng):
    roots = rng.normal(size=(K, D, D)) / 2 + np.eye(D)
    full = roots @ np.swapaxes(roots, 1, 2)
    return {
        "full": full,
        "tied": full[0],
        "diag": rng.uniform(0.5, 2, size=(K, D)),
        "spherical": rng.uniform(0.5, 2, size=K),
    }[kind]


def in_full(kind, covariances):
    """Return covariances of a shape as matrices (K, D, D)."""
    return {
        "full": lambda: covariances,
        "tied": lambda: np.tile(covariances, (K, 1, 1)),
        "diag": lambda: np.array([np.diag(v) for v in covariances]),
        "spherical": lambda: np.array([v * np.eye(D) for v in covariances]),
    }[kind]()


def in_shape(kind, full, counts):
    """Return what is left of matrices (K, D, D) in a shape; the tied one is pooled by count."""
    return {
        "full": lambda: full,
        "tied": lambda: np.einsum("k,kde->de", counts / counts.sum(), full),
        "diag": lambda: np.einsum("kdd->kd", full),
        "spherical": lambda: np.einsum("kdd->k", full) / D,
    }[kind]()


def problem(kind, apart):
    rng = np.random.default_rng(0)
    means = 100 + apart * rng.normal(size=(K, D))
    shape = Gaussian(D, kind).components(means, some_covariances(kind, rng))
    assert shape.common_origin == (apart == 1)
    X = means[rng.integers(K, size=N)] + rng.normal(size=(N, D))
    return X, shape, rng


def some_shares(packed, rng):
    """Return shares, and the same as an array (N, K)."""
    if packed:
        labels, factors = rng.integers(K, size=N).astype(np.int32), rng.random(N)
        return HardResponsibilities(labels, factors), np.eye(K)[labels] * factors[:, None]
    resp = rng.dirichlet(np.ones(K), size=N) * rng.random((N, 1))
    return DenseResponsibilities(resp.copy()), resp


@TYPES
def test_cholesky_factors_are_those_of_the_precisions(kind):
    covariances = some_covariances(kind, np.random.default_rng(0))
    cholesky = COVARIANCE_TYPES[kind].cholesky(covariances)
    log_det = np.broadcast_to(COVARIANCE_TYPES[kind].log_det(cholesky, D), K)
    for k, full in enumerate(in_full(kind, covariances)):
        own = in_full(kind, cholesky)[k]
        assert_allclose(own @ own.T, np.linalg.inv(full), rtol=1e-10, atol=1e-12)
        assert_array_equal(own, np.triu(own))
        assert_allclose(log_det[k], -0.5 * np.linalg.slogdet(full)[1], rtol=1e-12)


SINGULAR = {
    "full": np.array([np.eye(2), np.ones((2, 2)), -np.eye(2)]),
    "diag": np.array([[1.0, 2.0], [1.0, 0.0], [-1.0, 2.0]]),
    "spherical": np.array([1.0, 0.0, -1.0]),
}


@pytest.mark.parametrize("kind", SINGULAR)
def test_only_singular_covariances_have_no_factor(kind):
    own = COVARIANCE_TYPES[kind]
    log_det = own.log_det(own.cholesky(SINGULAR[kind]), 2)
    assert_array_equal(np.isnan(log_det), [False, True, True])
    for tied in (np.ones((2, 2)), np.diag([1.0, 0.0]), np.diag([1.0, -1.0])):
        assert np.isnan(COVARIANCE_TYPES["tied"].cholesky(tied)).any()


@pytest.mark.bits
@TYPES
def test_variances_without_all_their_digits_are_none(kind):
    """The distance between two floats is 5e-324, which is a share of less than that."""
    kind = COVARIANCE_TYPES[kind]
    for scale, singular in [(1e-300, False), (1e-310, True)]:
        assert np.isnan(kind.cholesky(scale * kind.identity(1, 2))).any() == singular


@pytest.mark.bits
@pytest.mark.parametrize(("gap", "singular"), [(1e-12, False), (5e-16, True)])
def test_a_correlation_is_perfect_to_rounding(gap, singular):
    """Of the second variance a share of `gap` is its own; 1e-15 of it is rounding."""
    root = np.array([[1.0, 0.0], [1.0, gap**0.5]])
    for scale in (1e-10, 1.0, 1e10):
        factor = COVARIANCE_TYPES["tied"].cholesky(scale * root @ root.T)
        assert np.isnan(factor).any() == singular


@TYPES
def test_spread_is_the_longest_offset_in_standard_deviations(kind):
    rng = np.random.default_rng(1)
    covariances, offsets = some_covariances(kind, rng), rng.normal(size=(K, D))
    full = in_full(kind, covariances)
    lengths = [np.sqrt(o @ np.linalg.solve(C, o)) for o, C in zip(offsets, full, strict=True)]
    if kind == "diag":  # along one feature
        lengths = np.abs(offsets) / np.sqrt(covariances)
    spread = COVARIANCE_TYPES[kind].spread(COVARIANCE_TYPES[kind].cholesky(covariances), offsets)
    assert_allclose(spread, np.max(lengths), rtol=1e-10)


@pytest.mark.bits
@TYPES
@PLACES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_log_densities_without_their_normalizers(kind, apart, dtype):
    X, shape, _ = problem(kind, apart)
    X = X.astype(dtype)
    scores = COVARIANCE_TYPES[kind].scores(X, shape)
    single = kind == "diag" and apart == 1 and dtype == np.float32
    assert scores.dtype == (np.float32 if single else np.float64)
    tolerance = 2e-6 if single else 1e-9
    for k, covariance in enumerate(in_full(kind, shape.covariances)):
        density = multivariate_normal(shape.means[k], covariance)
        expected = density.logpdf(X.astype(float)) - density.logpdf(shape.means[k])
        assert_allclose(scores[:, k], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("apart", [0.3, 1, 10, 20, 100, 1000])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_scores_of_float32_rows_near_their_component(apart, offset):
    """Products of float32 features miss by 8e-4 at ten standard deviations, 0.08 at a hundred."""
    rng = np.random.default_rng(0)
    K, d = 12, 32
    means = offset + apart * rng.choice([-0.5, 0.5], size=(K, d)) * rng.uniform(0.9, 1, size=(K, d))
    variances = rng.uniform(0.5, 2, size=(K, d))
    labels = rng.integers(K, size=1000)
    X = (means[labels] + rng.normal(size=(1000, d)) * variances[labels] ** 0.5).astype(np.float32)
    scores = COVARIANCE_TYPES["diag"].scores(X, Gaussian(d, "diag").components(means, variances))
    gaps = X.astype(float) - means[labels]
    expected = -0.5 * (gaps**2 / variances[labels]).sum(axis=1)
    assert_allclose(scores[np.arange(1000), labels], expected, rtol=0, atol=3e-5)


def test_float32_is_for_close_means_of_ordinary_size():
    family = Gaussian(2, "diag")
    means = np.array([[-1.0, 0.0], [1.0, 0.0]])
    assert family.components(1e4 + means, np.ones((2, 2))).single_precision
    assert family.components(15 * means, np.ones((2, 2))).single_precision
    assert not family.components(17 * means, np.ones((2, 2))).single_precision
    for size in (1e-35, 1e35):
        assert not family.components(size * means, np.full((2, 2), size**2)).single_precision
    assert not family.components(np.full((1, 2), 1e300), np.ones((1, 2))).single_precision


@pytest.mark.bits
@pytest.mark.parametrize("dim", [128, 129, 2000])
def test_float32_rows_of_many_features_keep_their_digits(dim):
    rng = np.random.default_rng(dim)
    means = rng.normal(size=(3, dim)) / np.sqrt(dim)
    family = Gaussian(dim, "diag")
    components = family.components(means, np.ones((3, dim)))
    X = rng.normal(size=(300, dim)).astype(np.float32)
    scores = COVARIANCE_TYPES["diag"].scores(X, components)
    expected = -0.5 * ((X.astype(float)[:, None] - means) ** 2).sum(axis=2)
    assert components.single_precision == (dim == 128)
    assert_allclose(scores, expected, rtol=0, atol=1e-4)


def test_float32_rows_far_away_are_scored_as_in_float64():
    components = Gaussian(1, "diag").components(np.array([[0.0], [1.0]]), np.ones((2, 1)))
    X = np.array([[3e19], [-3e19], [0.5]])
    for rows in (X, X.astype(np.float32)):
        scores = COVARIANCE_TYPES["diag"].scores(rows, components)
        assert_allclose(scores, -0.5 * (rows.astype(float) - [0, 1]) ** 2, rtol=1e-12)


def test_float32_rows_of_any_size_have_finite_scores():
    X = np.array([[3e38, -3e38], [1e25, 0], [0, 1e-44]], dtype=np.float32)
    shape = Gaussian(2, "diag").components(np.eye(2), np.full((2, 2), 1e-6))
    scores = COVARIANCE_TYPES["diag"].scores(X, shape)
    assert np.isfinite(scores).all()
    assert (scores[:2] < -1e38).all()
    assert_allclose(scores[2], -5e5, rtol=1e-6)


@TYPES
@PLACES
@pytest.mark.parametrize("packed", [False, True], ids=["dense", "packed"])
def test_moments_are_sums_over_rows(kind, apart, packed):
    X, shape, rng = problem(kind, apart)
    responsibilities, resp = some_shares(packed, rng)
    first, second = COVARIANCE_TYPES[kind].moments(X, responsibilities, shape)
    gaps = X[:, None] - shape.origins
    expected = np.einsum("nk,nkd->kd", resp, gaps)
    assert_allclose(first, expected, rtol=1e-10, atol=1e-9 * np.abs(expected).max())
    full = np.einsum("nk,nkd,nke->kde", resp, gaps, gaps)
    expected = in_shape(kind, full, np.ones(K)) * {"tied": K, "spherical": D}.get(kind, 1)
    assert_allclose(second, expected, rtol=1e-10, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("dim", [1, 64, 130, MAX_PAIRS_DIM, MAX_PAIRS_DIM + 1])
def test_full_moments_do_not_depend_on_the_number_of_features(dim):
    rng = np.random.default_rng(3)
    X, resp = rng.normal(size=(150, dim)), rng.dirichlet(np.ones(2), size=150)
    shape = Gaussian(dim, "full").components(np.zeros((2, dim)), np.array([np.eye(dim)] * 2))
    first, second = COVARIANCE_TYPES["full"].moments(X, DenseResponsibilities(resp.copy()), shape)
    assert_allclose(first, resp.T @ X, atol=1e-12)
    assert_allclose(second, np.einsum("nk,nd,ne->kde", resp, X, X), atol=1e-11)


@pytest.mark.bits
@pytest.mark.parametrize("kind", ["diag", "spherical"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_variance_of_which_rounding_alone_is_left_is_zero(kind, scale):
    point = np.full((1, D), scale * (0.1 + 0.2))
    second = {"diag": point**2 * (1 + 4e-16), "spherical": (point**2).sum(axis=1)}[kind]
    found = COVARIANCE_TYPES[kind].estimate(np.ones(1), point, second)
    assert_array_equal(found, np.zeros_like(found))
    found = COVARIANCE_TYPES[kind].estimate(np.ones(1), point, second * (1 + 1e-13))
    assert (found > 0).all()


@TYPES
def test_scatter_moves_covariances_to_other_points(kind):
    rng = np.random.default_rng(4)
    counts, gaps = rng.uniform(1, 9, size=K), rng.normal(size=(K, D))
    expected = in_shape(kind, np.array([np.outer(gap, gap) for gap in gaps]), counts)
    assert_allclose(COVARIANCE_TYPES[kind].scatter(counts, gaps), expected, rtol=1e-12)


@TYPES
def test_covariance_of_all_rows(kind):
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(K), [5, 30, 100])
    X = rng.normal(size=(len(labels), D)) + 3 * rng.normal(size=(K, D))[labels]
    parts = [X[labels == k] for k in range(K)]
    counts = np.array([len(part) for part in parts], dtype=float)
    means = np.array([part.mean(axis=0) for part in parts])
    within = in_shape(kind, np.array([np.cov(part.T, ddof=0) for part in parts]), counts)
    found = COVARIANCE_TYPES[kind].of_data(counts, means, within)
    everywhere = np.array([np.cov(X.T, ddof=0)] * K)
    assert_allclose(found, in_shape(kind, everywhere, counts), rtol=1e-12)


@pytest.mark.parametrize("far", [10, 30, 100, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("dim", [1, 2, 20, 100])
def test_float32_rows_are_shared_out_as_in_float64_however_far_they_are(dim, far):
    rng = np.random.default_rng(dim)
    variances = np.full((3, dim), 0.1) * rng.uniform(1, 1 + 1 / far**2, size=(3, dim))
    means = rng.normal(size=(3, dim)) / far  # so near that no component has all of a far row
    components = Gaussian(dim, "diag").components(means, variances)
    X = rng.normal(size=(2000, dim))
    X = (far * X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    X[::2] = components.means[0] + np.sqrt(variances[0]) * rng.normal(size=(1000, dim))
    assert components.single_precision
    single, double = (
        Gaussian(dim, "diag").scores(DenseBlock(rows, np.ones(2000), None, 0), components)
        for rows in (X, X.astype(np.float64))
    )
    resp, expected = (softmax(scores.log_density(), axis=1) for scores in (single, double))
    assert_allclose(resp, expected, rtol=0, atol=1e-4)
    largest = [scores.log_density().max(axis=1) for scores in (single, double)]
    assert_allclose(*largest, rtol=1e-6, atol=1e-4)
