"""What cannot work says so, and what is wrong with it; nothing hangs, and an earlier fit stays."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'skvmf[dask]'")
distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'skvmf[dask]'")

import dask

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.model_selection import ComponentPath

from ..csr_forms import halved
from ..hooks import before_folds
from .conftest import start
from .data import bits, blobs, chunked, counts

N = 60_000


def mixture(**options):
    return VonMisesFisherMixture(3, random_state=0, **options)


def refused(X, match, error=ValueError, weights=None):
    """See that a fit is refused, and that the one before is still there."""
    found = mixture().fit(blobs(500))
    before = bits(found)
    with pytest.raises(error, match=match):
        found.fit(X, sample_weight=weights)
    assert bits(found) == before
    found.predict(blobs(5))


@pytest.mark.parametrize("on_cluster", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("persisted", [False, True])
def test_nan_in_a_far_chunk_is_named_with_its_rows(on_cluster, persisted, request):
    if on_cluster:
        request.getfixturevalue("client")
    X = blobs(N)
    X[51_234, 2] = np.nan
    lazy = chunked(X, [20_000] * 3)
    refused(lazy.persist() if persisted else lazy, "contains NaN, in row 51234, column 2:")


def test_infinity_in_csr_is_named_with_its_rows():
    X = counts(N)
    X.data[X.indptr[40_000]] = np.inf
    row = int(np.searchsorted(X.indptr, X.indptr[40_000], side="right")) - 1
    with pytest.raises(ValueError, match=f"contains infinity.*in row {row}:"):
        mixture().fit(chunked(X, [20_000] * 3))


def test_unknown_chunks_say_what_to_call():
    X = da.from_array(blobs(1000), chunks=300)
    refused(X[X[:, 0] > 0], r"X\.compute_chunk_sizes\(\)")
    weights = da.ones(1000, chunks=300)
    refused(X, r"sample_weight\.compute_chunk_sizes\(\)", weights=weights[weights > 0])


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (da.zeros((0, 4)), r"0 sample\(s\)"),
        (da.zeros((10, 0)), r"0 feature\(s\)"),
        (da.zeros(10), "Expected 2D array"),
        (da.zeros((10, 4, 2)), "Expected 2D array"),
        (da.zeros((10, 4), dtype=complex), "complex128"),
        (da.from_array(np.full((10, 4), "a"), chunks=5), "hold numbers"),
        (da.zeros((100, 4)), "no direction"),
        (da.ones((2, 4)), "n_samples = 2"),
        (da.ones((100, 1)), "at least two features"),
    ],
)
def test_shapes_and_types(X, match):
    refused(X, match)


def lying(block, **meta):
    """Return an array of two chunks of which the second is another than is said."""
    good = da.from_array(blobs(500), chunks=500)
    bad = da.from_delayed(dask.delayed(block), shape=(500, 4), **({"dtype": float} | meta))
    return da.concatenate([good, bad])


@pytest.mark.parametrize("persisted", [False, True])
@pytest.mark.parametrize(
    ("block", "match"),
    [
        (blobs(500, dtype=np.float32), "float32.*float64"),
        (blobs(500, d=5), r"\(500, 5\)"),
        (blobs(400), r"\(400, 4\).*\(500, 4\)"),
        (counts(500, d=4), "csr_array.*meta"),
    ],
)
def test_a_meta_that_lies(block, match, persisted, client):
    X = lying(block)
    refused(X.persist() if persisted else X, match)


def test_sparse_blocks_in_several_columns_or_where_none_are_taken():
    with pytest.raises(TypeError, match="this mixture takes dense rows"):
        SparseGaussianMixture(2).fit(chunked(counts(100), [50, 50]))
    X = counts(50)
    graph = {("columns", 0, i): X for i in range(2)}
    lazy = da.Array(graph, "columns", ((50,), X.shape[1:] * 2), meta=X[:0])
    with pytest.raises(ValueError, match="2 chunks along the features"):
        mixture().fit(lazy)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.ones(N - 1), "sample_weight.shape"),
        (da.ones(N - 1), "sample_weight.shape"),
        (np.zeros(N), "all zero|at least one non-zero"),
        (da.zeros(N), "all zero"),
    ],
)
def test_weights(weights, match):
    refused(chunked(blobs(N), [20_000] * 3), match, weights=weights)


@pytest.mark.parametrize(
    ("value", "match", "row"),
    [
        (np.nan, "NaN", 30_000),
        (np.nan, "NaN", N - 1),
        (np.inf, "NaN or inf", 5),
        (-1, "Neg", N - 1),
    ],
)
def test_a_weight_that_is_none_in_any_chunk(value, match, row):
    weights = np.ones(N)
    weights[row] = value
    X, weights = chunked(blobs(N), [1000] * 60), da.from_array(weights, chunks=1000)
    refused(X, match, weights=weights)
    with pytest.raises(ValueError, match=match):
        mixture().fit(blobs(500)).score(X, sample_weight=weights)


@pytest.mark.parametrize("kind", [mixture, lambda: SparseGaussianMixture(2, random_state=0)])
def test_one_weight_for_all_rows(kind):
    X = blobs(2000)
    lazy = chunked(X, [700, 1300])
    expected = kind().fit(X, sample_weight=2.0)
    assert bits(kind().fit(lazy, sample_weight=2.0)) == bits(expected)
    assert expected.score(lazy, sample_weight=2.0) == expected.score(X)


@pytest.mark.filterwarnings("ignore:The sample weights sum to")
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_of_any_size(scale):
    X, weights = blobs(2000), scale * np.random.default_rng(0).random(2000)
    lazy = mixture().fit(chunked(X, [700, 1300]), sample_weight=da.from_array(weights))
    assert bits(lazy) == bits(mixture().fit(X, sample_weight=weights))


def test_a_zero_row_may_weigh_more_than_all_others():
    X, weights = np.vstack([blobs(2000), np.zeros((1, 4))]), np.append(np.ones(2000), 1e300)
    lazy = mixture().fit(chunked(X, [700, 1301]), sample_weight=da.from_array(weights))
    assert bits(lazy) == bits(mixture().fit(X, sample_weight=weights))


def test_what_is_delayed_has_no_shape():
    X = blobs(500)
    refused(dask.delayed(X), "X is a Delayed, .*dask.array.from_delayed")
    with pytest.raises(ValueError, match=r"X is a Delayed, .*dask\.array\.from_delayed"):
        ComponentPath(mixture(), max_components=2).fit(dask.delayed(X))
    weights = dask.delayed(np.ones(500))
    refused(chunked(X, [500]), "sample_weight is a Delayed, .*from_delayed", weights=weights)


def test_extreme_rows():
    X = blobs(2000) * np.resize([1e-300, 1.0, 1e300], 2000)[:, None]
    assert bits(mixture().fit(chunked(X, [700, 1300]))) == bits(mixture().fit(X))
    with pytest.raises(ValueError, match="squares overflow"):
        SparseGaussianMixture(2).fit(chunked(X, [700, 1300]))


def test_features_of_another_number():
    fitted = mixture().fit(blobs(500))
    with pytest.raises(ValueError, match=r"has 5 features, but .* is expecting 4"):
        fitted.predict(da.zeros((10, 5)))
    with pytest.raises(ValueError, match="not fitted"):
        mixture().predict(da.zeros((10, 5)))


@pytest.mark.parametrize(
    ("criterion", "weighted", "on_cluster"),
    [
        *(("bic", None, False), ("bic", np.asarray, False), ("held_out", da.from_array, False)),
        pytest.param("held_out", da.from_array, True, marks=pytest.mark.slow),
    ],
)
def test_a_path_of_lazy_rows_is_that_of_rows_in_memory(criterion, weighted, on_cluster, request):
    if on_cluster:
        request.getfixturevalue("client")
    X, weights = blobs(500), None if weighted is None else np.random.default_rng(0).random(500)

    def fit(rows, weights):
        path = ComponentPath(mixture(), max_components=4, criterion=criterion, random_state=0)
        return path.fit(rows, sample_weight=weights)

    path = fit(X, weights)
    lazy = fit(da.from_array(X, chunks=200), None if weighted is None else weighted(weights))
    assert_array_equal(lazy.results_["criterion"], path.results_["criterion"])
    assert_array_equal(lazy.linkage_, path.linkage_)
    assert_array_equal(lazy.cut(2), path.cut(2))


def test_rows_are_held_out_of_chunks_that_are_more():
    X = blobs(4)
    path = ComponentPath(mixture(), max_components=1, validation_fraction=0.5, random_state=0)
    expected = path.fit(X).best_estimator_.means_
    assert_array_equal(path.fit(chunked(X, [0, 1, 0, 0, 2, 0, 1])).best_estimator_.means_, expected)


@pytest.mark.slow
def test_a_client_that_is_closed():
    with start(1) as cluster:
        with distributed.Client(cluster):
            X = chunked(blobs(1000), [500, 500]).persist()
            distributed.wait(X)
        refused(X, "client that is closed", RuntimeError)


def test_an_interrupt_leaves_the_earlier_fit(client):
    folds = []

    def interrupt(name):
        folds.append(name)
        if len(folds) == 3:
            raise KeyboardInterrupt

    with before_folds(interrupt):
        refused(chunked(blobs(N), [20_000] * 3).persist(), None, KeyboardInterrupt)
    assert len(folds) == 3


def test_not_canonical_csr_is_summed():
    X = counts(400)
    assert bits(mixture().fit(chunked(halved(X), [100, 300]))) == bits(mixture().fit(X))
