"""What Fisher vectors ask of a mixture: gradients, and its shares of a table of vectors."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.preprocessing import normalize

from skvmf import RelativeGMM, SparseGaussianMixture

from ..pairwise import pairwise
from .mixtures import MIXTURES, plane, sphere

V, K, D = 40, 4, 3


def table(dtype=np.float64):
    return np.random.default_rng(1).normal(size=(V, D)).astype(dtype)


def dense(responsibilities, n=V):
    """Shares as a matrix (n, K)."""
    if not responsibilities.packed:
        return responsibilities.resp
    starts, components, values = responsibilities.resp
    return sparse.csr_array((values, components, starts), shape=(n, K)).toarray()


FAMILIES = MIXTURES | {"relative": partial(plane, kind=RelativeGMM)}
USED = np.arange(V) % 3 > 0


@pairwise(
    family=FAMILIES,
    options=[{}, {"temperature": 0.0}, {"entmax_alpha": 2.0}],
    used=[None, USED, np.zeros(V, dtype=bool), np.ones(V, dtype=bool)],
    dtype=[np.float64, np.float32],
)
def test_shares_are_what_the_mixture_predicts(family, options, used, dtype):
    fitted, X = FAMILIES[family](K, D, **options), table(dtype)
    responsibilities = fitted._skvmf_vector_model().responsibilities(X, used)
    on = np.ones(V, dtype=bool) if used is None else used
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    assert_allclose(dense(responsibilities), fitted.predict_proba(X) * on[:, None], atol=tolerance)
    assert responsibilities.table is X
    lengths = np.linalg.norm(X, axis=1) if family == "vmf" else np.ones(V)
    assert_allclose(responsibilities.scales, on / lengths, rtol=tolerance)


def test_shares_are_packed_where_few_are_not_zero():
    hard = sphere(K, D, temperature=0.0)
    assert hard._skvmf_vector_model().responsibilities(table(), None).packed
    assert not sphere(K, D)._skvmf_vector_model().responsibilities(table(), None).packed
    warm = sphere(K, D, entmax_alpha=1.01)  # shares have zeros, yet not enough of them
    assert not warm._skvmf_vector_model().responsibilities(table(), None).packed


@pytest.mark.parametrize("options", [{}, {"temperature": 0.0}, {"entmax_alpha": 2.0}])
def test_tables_longer_than_a_block_are_shared_out_in_parts(options):
    n = 3 * 2**23 // (8 * D)
    X = np.resize(table(), (n, D))
    used = np.ones(n, dtype=bool)
    used[::7] = False
    responsibilities = plane(K, D, **options)._skvmf_vector_model().responsibilities(X, used)
    alone = dense(plane(K, D, **options)._skvmf_vector_model().responsibilities(X[:V], None))
    expected = np.resize(alone, (n, K)) * used[:, None]
    assert_allclose(dense(responsibilities, n), expected, atol=1e-14)


def test_some_blocks_with_zeros_and_some_without_make_one_table():
    X = np.repeat(np.array([[0.0, 0.0, 0.0], [200.0, 0.0, 0.0]]), 5000, axis=0)
    means = np.outer([-1.0, -2.0, -3.0, 1.0], [1, 0, 0])
    fitted = SparseGaussianMixture.from_parameters(
        [0.1, 0.2, 0.3, 0.4], means, np.ones((4, 3)), covariance_type="diag"
    )
    responsibilities = fitted._skvmf_vector_model().responsibilities(X, None)
    assert not responsibilities.packed
    assert_allclose(responsibilities.resp, fitted.predict_proba(X), atol=1e-14)
    last = responsibilities.resp[-1]
    assert (last == 0).sum() == 3  # so the last block alone would have been packed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_vectors_are_brought_into_range_in_a_copy(family, size):
    X = table()
    X[5] *= size
    given = X.copy()
    responsibilities = FAMILIES[family](K, D)._skvmf_vector_model().responsibilities(X, None)
    assert_array_equal(X, given)
    assert_allclose(dense(responsibilities).sum(axis=1), 1)
    moved = responsibilities.table * responsibilities.scales[:, None]
    assert np.isfinite(moved).all()
    assert np.abs(moved).max() <= 1e100
    rest = np.delete(X, 5, axis=0)
    assert_allclose(np.delete(moved, 5, axis=0), normalize(rest) if family == "vmf" else rest)
