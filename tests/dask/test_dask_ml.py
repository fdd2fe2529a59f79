"""dask-ml's wrappers take mixtures."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'skvmf[dask]'")
wrappers = pytest.importorskip("dask_ml.wrappers", reason="needs dask-ml: pip install dask-ml")

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from .data import blobs

MIXTURES = [VonMisesFisherMixture, SparseGaussianMixture, RelativeGMM, StudentTMixture]


@pytest.mark.parametrize("kind", MIXTURES)
def test_parallel_post_fit_predicts_lazily(kind):
    """It sets what was learnt onto the same estimator once more."""
    X = blobs(500)
    wrapped = wrappers.ParallelPostFit(kind(3, random_state=0)).fit(X)
    expected = kind(3, random_state=0).fit(X)
    assert_array_equal(wrapped.means_, expected.means_)
    assert_array_equal(wrapped.estimator.means_, expected.means_)
    lazy = wrapped.predict(da.from_array(X, chunks=(200, X.shape[1])))
    assert isinstance(lazy, da.Array)
    assert_array_equal(lazy.compute(scheduler="synchronous"), expected.labels_)


@pytest.mark.parametrize("kind", MIXTURES)
def test_incremental_streams_chunks(kind):
    X = blobs(600)
    lazy = da.from_array(X, chunks=(200, X.shape[1]))
    wrapped = wrappers.Incremental(kind(3, random_state=0), shuffle_blocks=False).fit(lazy)
    expected = kind(3, random_state=0)
    for batch in np.split(X, 3):
        expected.partial_fit(batch)
    assert_array_equal(wrapped.estimator_.means_, expected.means_)
    assert wrapped.estimator_.n_steps_ == 3
    assert_array_equal(wrapped.predict(lazy).compute(), expected.predict(X))
