"""Predictions of Dask arrays: lazy, in the chunks of the rows, of the right type and meta."""

import numpy as np
import pytest
from scipy import sparse

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'skvmf[dask]'")

import pickle

from skvmf import FisherVectorTransformer, SparseGaussianMixture, VonMisesFisherMixture

from .data import blobs, chunked, counts

# Clients of other tests may be there.
pytestmark = pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")

METHODS = [
    "predict",
    "predict_proba",
    "score_samples",
    "responsibilities",
    "divergence",
    "transform",
]
LENGTHS = [700, 0, 1, 1299]


@pytest.fixture(
    scope="module",
    params=[(blobs, np.float64, np.float64), (blobs, np.float32, np.float32),
            (blobs, np.int8, np.float32), (counts, np.float32, np.float32)],
)  # fmt: skip
def fitted(request):
    """Return rows, the dtype they are read as, and a fit of them."""
    rows, dtype, read = request.param
    X = rows(2000, dtype=dtype)
    return X, read, VonMisesFisherMixture(3, random_state=0).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_lazy_and_right(method, fitted):
    X, read, mixture = fitted
    expected = getattr(mixture, method)(X)
    lazy = chunked(X, LENGTHS)
    assert sparse.issparse(lazy._meta) == sparse.issparse(X)
    lazy = getattr(mixture, method)(lazy)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == expected.shape
    assert lazy.chunks[0] == tuple(LENGTHS)
    assert lazy.dtype == expected.dtype == (np.int64 if method == "predict" else read)
    assert type(lazy._meta) is type(expected)
    found = lazy.compute(scheduler="synchronous")
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    if method == "responsibilities":
        found, expected = found.toarray(), expected.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [VonMisesFisherMixture, SparseGaussianMixture])
def test_sums_are_made_where_the_rows_are(kind):
    X, weights = blobs(70_000), np.random.default_rng(0).random(70_000)
    mixture = kind(3, random_state=0).fit(X[:1000])
    lazy = chunked(X, [30_000, 40_000])
    for criterion in (mixture.score, mixture.aic, mixture.bic):
        assert criterion(lazy) == criterion(X)
    assert mixture.score(lazy, sample_weight=weights) == mixture.score(X, sample_weight=weights)


def test_columns_are_those_of_the_fit():
    X = blobs(500)
    mixture = VonMisesFisherMixture(3, random_state=0).fit(X).set_params(n_components=5)
    lazy = mixture.predict_proba(chunked(X, [200, 300]))
    assert lazy.shape == lazy.compute(scheduler="synchronous").shape == (500, 3)


def test_labels_of_a_fit_are_lazy():
    X = blobs(5000)
    lazy = chunked(X, [2000, 3000])
    mixture = VonMisesFisherMixture(3, random_state=0).fit(lazy)
    assert isinstance(mixture.labels_, da.Array)
    assert mixture.labels_.chunks == ((2000, 3000),) == mixture.probabilities_.chunks
    np.testing.assert_array_equal(mixture.fit_predict(lazy), mixture.predict(X))
    again = pickle.loads(pickle.dumps(mixture))
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.predict(X), mixture.predict(X))


def test_weights_of_labels_do_not_travel():
    """A first partition is of no use for predictions, and as long as the rows."""
    X = blobs(5000)
    labels = np.arange(5000) % 3
    lazy = chunked(X, [2000, 3000])
    mixture = VonMisesFisherMixture(3, init_params=labels, random_state=0).fit(lazy)
    alone = VonMisesFisherMixture(3, init_params=labels, random_state=0).fit(X)
    np.testing.assert_array_equal(mixture.labels_, alone.labels_)
    assert len(pickle.dumps(mixture.predict(lazy).__dask_graph__())) < X.nbytes + labels.nbytes


def fisher_vectors(X):
    """Return a transformer of counts of 30 words, fitted."""
    embeddings = np.random.default_rng(1).normal(size=(30, 5)).astype(np.float32)
    mixture = VonMisesFisherMixture(3)
    return FisherVectorTransformer(mixture, embeddings=embeddings, random_state=0).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("as_csr", [False, True])
def test_fisher_vectors_are_lazy_and_right(dtype, as_csr):
    X = np.random.default_rng(0).poisson(0.5, size=(100, 30)).astype(dtype)
    X = sparse.csr_array(X) if as_csr else X
    transformer = fisher_vectors(X)
    expected = transformer.transform(X)
    lazy = transformer.transform(chunked(X, [40, 0, 60]))
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == ((40, 0, 60), (15,))
    found = lazy.compute(scheduler="synchronous")
    assert found.dtype == lazy.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_fisher_vectors_of_a_frame_do_not_warn():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    dd = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe]")
    X = pd.DataFrame(np.random.default_rng(0).poisson(0.5, size=(100, 30))).add_prefix("w")
    transformer = fisher_vectors(X)
    found = transformer.transform(dd.from_pandas(X, npartitions=2)).compute(scheduler="synchronous")
    np.testing.assert_allclose(found, transformer.transform(X), rtol=1e-5, atol=1e-6)


def test_fisher_vectors_are_fitted_on_documents_in_memory():
    X = np.random.default_rng(0).poisson(0.5, size=(100, 30))
    with pytest.raises(TypeError, match="fit on a sample"):
        FisherVectorTransformer().fit(chunked(X, [100]))


def as_frame(X):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    dd = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe]")
    return dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)


class Labelled:
    """What is asked of arrays of xarray's: coordinates of any name are their attributes."""

    def __init__(self, X):
        self.data = da.from_array(X, chunks=1000)
        self.ndim, self.shape, self.dtype = self.data.ndim, self.data.shape, self.data.dtype
        self.columns = self

    def __dask_graph__(self):
        return self.data.__dask_graph__()


@pytest.mark.parametrize("wrap", [as_frame, Labelled, lambda X: da.from_array(X, chunks=(1000, 1))])
def test_frames_xarray_and_chunks_of_columns_are_unwrapped(wrap):
    X = blobs(3000)
    alone = VonMisesFisherMixture(3, random_state=0).fit(X)
    mixture = VonMisesFisherMixture(3, random_state=0).fit(wrap(X))
    np.testing.assert_array_equal(mixture.means_, alone.means_)
    names = list("abcd") if wrap is as_frame else []
    assert list(getattr(mixture, "feature_names_in_", [])) == names
    found = mixture.predict(wrap(X))
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found, alone.labels_)
