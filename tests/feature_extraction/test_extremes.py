"""Finite in, finite out: numbers of any size, whatever the options."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture

from ..conftest import FULL_SIZE
from .mixtures import KINDS, frozen, plane

V, D, K = 12, 3, 3
EXPONENTS = {
    np.float32: [-37, -20, -10, 0, 10, 20, 37],
    np.float64: [-299, -150, -37, 0, 37, 150, 299],
}


# Values that float32 cannot hold on the way


@pytest.mark.parametrize("power", [1.0, 0.3])
@pytest.mark.parametrize("normalization", ["fisher", "paper", None])
def test_features_of_float32_counts_of_any_size(power, normalization):
    """Powers are taken of what does not fit, too: they may fit."""
    table = np.random.default_rng(0).normal(size=(V, D))
    counts = sparse.csr_array(np.random.default_rng(1).poisson(1, size=(6, V)).astype(float))
    options = {"embeddings": table, "norm": None, "power": power, "normalization": normalization}
    transformer = frozen(plane(K=2, d=3), gradients=("variances", "weights"), **options).fit(counts)
    plain, size = transformer.transform(counts), 1e30
    rate = np.sqrt(size) if normalization == "fisher" else size
    result = transformer.transform((counts * size).astype(np.float32))
    assert result.dtype == np.float32
    assert_allclose(result, plain * rate**power, rtol=1e-4, atol=1e-6 * rate**power)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e36), (np.float64, 1e306)])
def test_features_beyond_the_largest_float_stay_at_it(dtype, size):
    mixture = VonMisesFisherMixture.from_parameters(
        [1.0], mean_directions=[[1.0, 0.0]], concentrations=[1e6]
    )
    options = {"embeddings": np.array([[1.0, 1e-9]]), "norm": None, "normalization": None}
    counts = np.array([[1.0], [0.0], [size]]).astype(dtype)
    fitted = frozen(mixture, **options).fit(counts).transform(counts)
    largest = np.finfo(dtype).max
    assert_allclose(fitted, [[1e6, 1e-3], [0, 0], [largest, 1e-3 * size]], rtol=1e-5)
    assert fitted[2, 0] <= largest


@pytest.mark.parametrize("norm", ["l2", None])
def test_gradients_that_underflow_or_overflow_have_a_direction(norm):
    """Slopes of 1e200, statistics of 1e200: the product is taken by logarithms."""
    largest = np.finfo(float).max
    for variance, bag, expected in [
        (1e-240, [[3e90, -4e90], [0.0, 0.0]], [largest, -largest]),  # 3e330 and -4e330
        (1e280, [[3e-40, -4e-40]], [3e-320, -4e-320]),  # few digits are left of such numbers
    ]:
        given = [1.0], [[0.0, 0.0]], np.full((1, 2), variance)
        mixture = SparseGaussianMixture.from_parameters(*given, covariance_type="diag")
        transformer = frozen(mixture, norm=norm, normalization=None)
        fitted = transformer.fit([np.array(bag)]).transform([np.array(bag)])
        tolerance = 1e-3 if norm is None and variance > 1 else 1e-12
        assert_allclose(fitted, [[0.6, -0.8] if norm else expected], rtol=tolerance)


# Anything


def random_mixture(rng):
    """Return a mixture whose parameters may be extreme, and its kinds of gradients."""
    weights = rng.dirichlet(np.full(K, rng.choice([0.01, 1.0])))
    posterior = rng.choice([{}, {"temperature": 0.0}, {"entmax_alpha": 2.0}, {"temperature": 0.1}])
    if rng.random() < 0.5:
        kappa = 10.0 ** rng.uniform(-8, 11, K) * (rng.random(K) < 0.9)
        mixture = VonMisesFisherMixture.from_parameters(
            weights, mean_directions=rng.normal(size=(K, D)), concentrations=kappa, **posterior
        )
        return mixture, KINDS["vmf"]
    kind = SparseGaussianMixture if rng.random() < 0.5 else RelativeGMM
    means = np.sort(rng.normal(size=(K, D)), axis=0) * 10.0 ** rng.choice([-200, 0, 20, 95])
    variances = rng.uniform(0.5, 2, (K, D)) * 10.0 ** rng.choice([-300, -100, 0, 0, 0, 100, 300])
    mixture = kind.from_parameters(weights, means, variances, covariance_type="diag", **posterior)
    return mixture, KINDS["gaussian"]


def scaled(rng, array, dtype):
    """Return an array of which all, or rows, are of extreme sizes."""
    shape = () if rng.random() < 0.5 else (len(array), 1)
    return (array * 10.0 ** rng.choice(EXPONENTS[dtype], size=shape)).astype(dtype)


@given(st.integers(0, 10**9), st.sampled_from([np.float32, np.float64]))
@settings(derandomize=True, max_examples=150 if FULL_SIZE else 20)
def test_finite_in_finite_out(seed, dtype):
    rng = np.random.default_rng(seed)
    mixture, kinds = random_mixture(rng)
    table = scaled(rng, rng.normal(size=(V, D)), dtype)
    counts = rng.poisson(0.6, size=(5, V)).astype(float)
    counts[2] = 0
    options = {
        "gradients": tuple(rng.permutation(kinds)[: rng.integers(1, 4)]),
        "geometry": rng.choice(["euclidean", "tangent"]),
        "normalization": rng.choice(["fisher", "paper", None]),
        "norm": rng.choice(["l2", None]),
        "power": rng.choice([1.0, 0.5, 0.1]),
    }
    C = sparse.csr_array(scaled(rng, counts, dtype))
    on_counts = frozen(mixture, embeddings=table, **options).fit(C)
    bags = [np.repeat(table, row.astype(int), axis=0) for row in counts]
    for result in (on_counts.transform(C), frozen(mixture, **options).fit([table]).transform(bags)):
        assert result.dtype == dtype
        assert result.shape == (5, len(on_counts.get_feature_names_out()))
        assert np.isfinite(result).all()
        assert not result[2].any()
        if options["norm"] == "l2":
            lengths = np.linalg.norm(result.astype(float), axis=1)
            assert (np.isclose(lengths, 1) | (lengths == 0)).all()
    assert_array_equal(on_counts.transform(C.toarray()), on_counts.transform(C))


# Gradients of zero, but for rounding

CENTRE = np.array([0.1, -0.7, 0.3]) / np.sqrt(0.59)
ASIDE = np.array([0.3, 0.1, 0.2])
WIDTHS = np.array([0.3, 0.7, 1.1])
TWO_ON_THE_SPHERE = VonMisesFisherMixture.from_parameters(
    [0.4, 0.6], mean_directions=[CENTRE, -CENTRE], concentrations=[381.0, 50.0]
)
TWICE_THE_SAME = VonMisesFisherMixture.from_parameters(
    [0.3, 0.7], mean_directions=[CENTRE, CENTRE], concentrations=[7.0, 7.0]
)
ONE_IN_SPACE = SparseGaussianMixture.from_parameters(
    [1.0], [1e4 * CENTRE], [WIDTHS**2], covariance_type="diag"
)


@pytest.mark.bits
@pytest.mark.parametrize("normalization", ["fisher", "paper", None])
@pytest.mark.parametrize(
    ("mixture", "kind", "geometry", "bag"),
    [
        (TWO_ON_THE_SPHERE, "means", "tangent", [CENTRE]),
        (TWO_ON_THE_SPHERE, "means", "tangent", [CENTRE, 3 * CENTRE, -7 * CENTRE]),
        (TWICE_THE_SAME, "means", "euclidean", [ASIDE, -1.7 * ASIDE]),
        (TWICE_THE_SAME, "weights", "euclidean", [ASIDE, CENTRE, -ASIDE]),
        (ONE_IN_SPACE, "means", "euclidean", [np.nextafter(1e4 * CENTRE, np.inf)]),
        (ONE_IN_SPACE, "means", "euclidean", 1e4 * CENTRE + np.outer([1, 0.3, -1.3], ASIDE)),
        (ONE_IN_SPACE, "variances", "euclidean", [1e4 * CENTRE + WIDTHS]),
    ],
)
def test_what_is_zero_but_for_rounding_is_zero(mixture, kind, geometry, bag, normalization):
    """Scaled to unit length it would be a direction, which other documents beside it change."""
    others = [[ASIDE], [CENTRE + ASIDE, -ASIDE], *[[CENTRE + i * ASIDE] for i in range(1, 9)]]
    options = {"gradients": (kind,), "geometry": geometry, "normalization": normalization}
    others_have_one = mixture is not TWICE_THE_SAME or kind == "means"
    for norm, power in [("l2", 1.0), ("l2", 0.1), (None, 0.1)]:
        transformer = frozen(mixture, norm=norm, power=power, **options).fit([np.array(bag)])
        for bags in [[bag], [bag, *others], [*others, bag]]:
            features = transformer.transform([np.array(each) for each in bags])
            has_gradient = [each is not bag and others_have_one for each in bags]
            np.testing.assert_array_equal(features.any(axis=1), has_gradient)
