"""Data that is read often, or does not fit into memory: how many passes, and how much is copied."""

import numpy as np
import pytest
from scipy import sparse

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..conftest import peak_of
from ..dask.data import blobs
from ..hooks import reads

N = 40_000
ROWS = blobs(N, 8, np.float32)
ESTIMATORS = {  # a flat start is a climb of its own, with its own iterations
    "vmf": (VonMisesFisherMixture, {}),
    "vmf with background": (VonMisesFisherMixture, {"background": True}),
    "vmf by k-means": (VonMisesFisherMixture, {"init_params": "kmeans"}),
    "vmf from rows": (VonMisesFisherMixture, {"init_params": "random_from_data"}),
    "vmf at random": (VonMisesFisherMixture, {"init_params": "random"}),
    "gaussian": (SparseGaussianMixture, {"covariance_type": "diag", "flat_start": False}),
    "gaussian with background": (SparseGaussianMixture, {"background": True, "flat_start": False}),
    "student": (StudentTMixture, {}),
    "relative": (RelativeGMM, {"clearance": 1e-3}),
}


@pytest.mark.parametrize(
    ("name", "max_iter"),
    [*[(name, 4) for name in ESTIMATORS], ("vmf", 0), ("gaussian with background", 0)],
)
def test_a_fit_reads_its_data_few_times_more_than_it_iterates(name, max_iter):
    kind, options = ESTIMATORS[name]
    with reads(N) as lengths:
        mixture = kind(3, max_iter=max_iter, tol=0, random_state=0, **options).fit(ROWS)
    assert 1 + mixture.n_iter_ < sum(lengths) / N <= mixture.n_iter_ + 6


def test_sparse_rows_are_read_as_often():
    X = sparse.csr_array(np.maximum(ROWS, 0))
    with reads(N) as lengths:
        VonMisesFisherMixture(3, max_iter=4, tol=0, random_state=0).fit(X)
    assert sum(lengths) / N <= 4 + 6


@pytest.mark.parametrize("method", ["predict", "score_samples", "predict_proba", "score"])
def test_predictions_read_twice(method):
    mixture = VonMisesFisherMixture(3, random_state=0).fit(ROWS[:1000])
    with reads(N) as lengths:
        getattr(mixture, method)(ROWS)
    assert sum(lengths) <= 2 * N


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (VonMisesFisherMixture, np.float16),
        (VonMisesFisherMixture, np.float64),
        (SparseGaussianMixture, np.int8),
        (SparseGaussianMixture, np.float32),
    ],
)
def test_a_file_is_never_copied_whole(tmp_path, dtype, kind):
    n, d = 60_000, 64
    path = tmp_path / "rows"
    rng = np.random.default_rng(0)
    centres = 20 * rng.normal(size=(2, d))
    labels = rng.integers(2, size=n)
    rows = (centres[labels] + 5 * rng.normal(size=(n, d))).clip(-127, 127)
    rows.astype(dtype).tofile(path)
    del rows
    X = np.memmap(path, dtype=dtype, mode="r", shape=(n, d))
    mixture = kind(2, init_size=1000, random_state=0).fit(X[:2000])
    _, peak = peak_of(mixture.fit, X)  # with all kernels compiled
    assert peak < n * d * 4 / 1.5  # a copy as float32, or a boolean of every number twice
    assert (mixture.labels_ == mixture.labels_[0])[labels == labels[0]].all()
