"""Rows of a Dask array with missing values: the bits of rows in memory."""

import numpy as np
import pytest

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'skvmf[dask]'")

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture

from .data import bits, blobs, chunked, lengths_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def rows(n, dtype=np.float64):
    """Return rows of which one value in five is missing, but none in the first 5000."""
    X = blobs(n, dtype=dtype)
    gone = np.random.default_rng(1).random(X.shape) < 0.2
    gone[:5000] = False
    X[gone] = np.nan
    return X


@pytest.mark.parametrize(
    ("kind", "lengths", "dtype"),
    [
        (SparseGaussianMixture, "aligned", np.float64),
        (StudentTMixture, "ragged", np.float32),
        (RelativeGMM, "ragged", np.float64),
    ],
)
def test_a_fit_has_the_bits_of_one_in_memory(kind, lengths, dtype):
    X = rows(17_000, dtype)  # more than a block
    lazy = chunked(X, lengths_of(lengths, len(X)))
    options = {"missing_values": "marginal", "max_iter": 2, "tol": 0, "random_state": 0}
    options |= {"init_size": 2000, "background": lengths == "ragged"}
    assert bits(kind(3, **options).fit(lazy)) == bits(kind(3, **options).fit(X))
    batches = kind(3, **options).partial_fit(lazy).partial_fit(lazy)
    assert bits(batches) == bits(kind(3, **options).partial_fit(X).partial_fit(X))


def test_predictions_are_lazy():
    X = rows(9000, np.float32)
    mixture = StudentTMixture(3, missing_values="marginal", random_state=0, max_iter=3, tol=1)
    mixture.fit(X)
    for method in ("predict", "predict_proba", "score_samples", "impute"):
        lazy = getattr(mixture, method)(chunked(X, [3000, 0, 6000]))
        expected = getattr(mixture, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5, atol=1e-5)
    lazy = chunked(X, [3000, 6000])
    weights = da.ones(9000, chunks=3000)
    assert mixture.score(lazy, sample_weight=weights) == pytest.approx(mixture.score(X), rel=1e-12)


def test_what_is_missing_is_told():
    X = rows(9000)
    with pytest.raises(ValueError, match=r"NaN.*set missing_values='marginal'"):
        SparseGaussianMixture(3).fit(chunked(X, [9000]))
    X[:, 2] = np.nan
    mixture = SparseGaussianMixture(3, missing_values="marginal")
    with pytest.raises(ValueError, match=r"No row has a value of the features \[2\]"):
        mixture.fit(chunked(X, [4000, 5000]))
