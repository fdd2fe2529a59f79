"""Directions are centred and whitened as the formula says, from all rows or from batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline

from skvmf import VonMisesFisherMixture
from skvmf.preprocessing import DirectionWhitener

STRENGTHS = [0, 0.25, 0.5, 1]


def data(n=200, d=6):
    rng = np.random.default_rng(0)
    return 1 + rng.normal(size=(n, d)) * np.linspace(0.1, 3, d)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_axes_are_divided_by_a_power_of_their_standard_deviation(strength):
    X = data()
    units = unit(X)
    variances, axes = np.linalg.eigh(np.cov(units.T, bias=True))
    along = (units - units.mean(axis=0)) @ axes / np.sqrt(variances) ** strength
    whitened = DirectionWhitener(strength).fit_transform(X)
    assert_allclose(whitened @ axes, along, atol=1e-12)
    assert_allclose(whitened @ whitened.T, along @ along.T, atol=1e-12)


@pytest.mark.parametrize("sizes", [[200], [1, 199], [150, 1, 49], [50] * 4])
def test_batches_give_what_all_rows_give(sizes):
    X, weights = data(), np.random.default_rng(1).uniform(0, 2, size=200)
    whole = DirectionWhitener().fit(data(30, 4)).fit(X, sample_weight=weights)  # which forgets
    whitener = DirectionWhitener()
    for part in np.split(np.arange(200), np.cumsum(sizes)[:-1]):
        whitener.partial_fit(X[part], sample_weight=weights[part])
    assert_allclose(whitener.weight_seen_, weights.sum(), rtol=1e-13)
    for name in ("mean_", "covariance_", "whitening_"):
        assert_allclose(getattr(whitener, name), getattr(whole, name), rtol=1e-9, atol=1e-12)


def test_moments_lose_no_digits_to_a_large_mean():
    rng = np.random.default_rng(0)
    X = 1 + 1e-7 * rng.normal(size=(1000, 4))
    whitener = DirectionWhitener(1)
    for part in np.split(X, 10):
        whitener.partial_fit(part)
    exact = unit(X.astype(np.longdouble))
    exact -= exact.mean(axis=0)
    assert_allclose(whitener.covariance_, exact.T @ exact / 1000, atol=1e-8 * 1e-14)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize(
    "X",
    [
        np.array([[3.0, 4.0]]),
        np.zeros((3, 2)),
        np.tile([0.1, 0.2, 0.3], (7, 1)),
        np.column_stack([data(), np.zeros(200), np.zeros(200)]),
        data(3, 40),
        np.array([[1.0], [-2.0], [3.0]]),
    ],
    ids=["one row", "zeros", "equal rows", "constant columns", "few rows", "one column"],
)
def test_axes_without_variance_are_left_as_they_are(X, strength):
    whitener = DirectionWhitener(strength).fit(X)
    whitened = whitener.transform(X)
    assert np.isfinite(whitened).all()
    assert np.abs(whitened).max() < 100
    variances, axes = np.linalg.eigh(whitener.covariance_)
    constant = axes[:, variances < 1e-14]
    assert_allclose(whitener.whitening_ @ constant, constant, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [4, 64])
@pytest.mark.parametrize("n", [5, 3000, 30_000])
@pytest.mark.parametrize("batches", [1, 3])
def test_rounding_is_not_blown_up(n, d, dtype, batches):
    rng = np.random.default_rng(0)
    direction, lengths = rng.normal(size=d), rng.uniform(0.1, 10, size=(n, 1))
    for X in (direction * lengths, direction * np.ones((n, 1))):
        rows, whitener = X.astype(dtype), DirectionWhitener(1)
        for part in np.array_split(rows, batches):
            whitener.partial_fit(part)
        assert_allclose(whitener.whitening_, np.eye(d), atol=1e-13)
        assert np.abs(whitener.transform(rows)).max() < 2 * np.finfo(dtype).eps
    spread = 100 * np.finfo(dtype).eps
    noise = spread * np.linalg.norm(direction) * rng.normal(size=(n, d))
    rows = ((direction + noise) * lengths).astype(dtype)
    whitened = DirectionWhitener(1).fit_transform(rows)
    variances = np.linalg.eigvalsh(np.cov(whitened.T, bias=True))
    assert_allclose(variances[-min(n, d) + 1 :], 1, rtol=1e-3)


def test_rows_of_zeros_have_no_direction():
    X = data()
    some = np.vstack([X, np.zeros((5, 6))])
    whitener = DirectionWhitener().fit(some)
    assert_allclose(whitener.covariance_, DirectionWhitener().fit(X).covariance_, atol=1e-14)
    assert whitener.weight_seen_ == 200
    assert not whitener.transform(some)[200:].any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float64, 1e160), (np.float64, 1e-170), (np.float64, 1e300), (np.float32, 1e30)],
)
def test_the_length_of_rows_does_not_matter(dtype, size):
    X = data().astype(dtype)
    expected = DirectionWhitener().fit_transform(X)
    whitened = DirectionWhitener().fit_transform((X * size).astype(dtype))
    assert whitened.dtype == dtype
    assert_allclose(whitened, expected, atol=100 * np.finfo(dtype).eps)


def test_names_of_features_remain():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(), columns=list("abcdef"))
    whitener = DirectionWhitener().set_output(transform="pandas").fit(frame)
    assert list(whitener.transform(frame).columns) == list("abcdef")


def test_other_rows_are_refused_with_advice():
    X = sparse.csr_array(np.maximum(data(30, 20), 0))
    for call in (DirectionWhitener().fit, DirectionWhitener().fit(data(30, 20)).transform):
        with pytest.raises(TypeError, match=r"make_pipeline\(TruncatedSVD"):
            call(X)
    pipeline = make_pipeline(TruncatedSVD(5), DirectionWhitener(), VonMisesFisherMixture(2))
    assert pipeline.fit_predict(X).shape == (30,)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="partial_fit with one block"):
        DirectionWhitener().fit(da.from_array(data()))


def test_a_batch_that_is_refused_changes_nothing():
    whitener = DirectionWhitener().partial_fit(data())
    before = clone(whitener).fit(data()).transform(data())
    with pytest.raises(ValueError, match="6 features"):
        whitener.partial_fit(data(10, 5))
    with pytest.raises(ValueError, match="NaN"):
        whitener.partial_fit(np.full((2, 6), np.nan))
    assert_array_equal(whitener.transform(data()), before)


@pytest.mark.parametrize("strength", [-0.1, 1.1, "full"])
def test_strength_is_between_zero_and_one(strength):
    with pytest.raises(ValueError, match="strength"):
        DirectionWhitener(strength).fit(data())
