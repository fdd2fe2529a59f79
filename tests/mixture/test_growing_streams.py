"""With `grow`, partial_fit adds a component for a new topic, and none to a stationary stream."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import match_components

from .kinds import GROWING

RNG = np.random.default_rng(0)
CENTRES = 6 * np.eye(6)[[3, 0, 4, 1]]
OLD, EVERY = RNG.integers(3, size=1200), RNG.choice(4, size=900, p=[0.28, 0.28, 0.28, 0.16])
BATCH, LAST = 300, np.arange(6) == 5


def rows(labels):
    return CENTRES[labels] + RNG.normal(size=(len(labels), 6))


BEFORE, AFTER = rows(OLD), rows(EVERY)


def stream(mixture, X, form=np.asarray):
    for start in range(0, len(X), BATCH):
        mixture.partial_fit(form(X[start : start + BATCH]))
    return mixture


def started(case, form=np.asarray, **params):
    cls, own = GROWING[case]
    return stream(cls(3, random_state=0, **own | params), BEFORE, form)


@pytest.fixture(scope="module")
def begun():
    return started("directions", grow=6)


@pytest.fixture
def mixture(begun):
    """Return a mixture of directions that may grow, after rows of three topics."""
    return deepcopy(begun)


@pytest.mark.parametrize("case", GROWING)
def test_a_new_topic_gets_one_component_and_a_stationary_stream_none(case):
    plain, mixture = started(case), started(case, grow=6)
    assert mixture.n_components == 3
    assert_array_equal(mixture.means_, plain.means_)
    assert_array_equal(mixture.weights_, plain.weights_)
    before, seen = pickle.loads(pickle.dumps(mixture)), mixture.weight_seen_
    stream(mixture, AFTER)
    assert mixture.n_components == len(mixture.weights_) == 4
    assert mixture.weight_seen_ == seen + len(AFTER)
    assert_array_equal(match_components(before, mixture).indices, [0, 1, 2])
    assert (mixture.predict(AFTER[EVERY == 3]) == 3).mean() > 0.99
    assert_array_equal(mixture.predict(BEFORE), before.predict(BEFORE))
    assert 0 < mixture.weights_[3] < mixture.weights_[:3].min()


def test_rows_in_csr_and_after_a_pickle_give_the_same(mixture):
    dense = stream(mixture, AFTER)
    csr = started("directions", form=sparse.csr_array, grow=6)
    again = stream(pickle.loads(pickle.dumps(csr)), AFTER, form=sparse.csr_array)
    np.testing.assert_allclose(again.means_, dense.means_, atol=1e-8)


def test_dask_arrays_give_the_same_bits():
    da = pytest.importorskip("dask.array")
    dense = stream(started("full", grow=6), AFTER)
    lazy = stream(started("full", grow=6), AFTER, form=lambda X: da.from_array(X, chunks=(100, 6)))
    assert lazy.n_components == 4
    assert_array_equal(lazy.means_, dense.means_)


def test_there_are_at_most_so_many(mixture):
    labels = RNG.permutation(np.repeat(np.arange(4), 150))
    one = VonMisesFisherMixture(1, random_state=0, grow=3)
    stream(one, np.vstack([rows(np.zeros(300, int)), rows(labels), rows(labels)]))
    assert one.n_components == 3
    assert stream(mixture.set_params(grow=2), AFTER).n_components == 3


def test_it_goes_on_from_a_fit_and_from_parameters(mixture):
    stream(mixture.fit(BEFORE), AFTER)
    assert set(mixture.predict(AFTER[EVERY == 3])) == {3}
    given = VonMisesFisherMixture.from_parameters(mixture.weights_, mixture.means_, grow=9)
    assert stream(given, AFTER).n_components == 4


def test_small_batches_and_rows_without_direction_add_none(mixture):
    mixture.partial_fit(AFTER[EVERY == 3][:3])
    mixture.partial_fit(np.zeros((10, 6)))
    assert mixture.n_components == 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fixed": ("weights",)}, "leaves new components no place"),
        ({"weight_concentration_prior": [1.0, 1, 0.5]}, "each of the 4 components"),
        ({"grow": 0}, "grow"),
    ],
)
def test_what_cannot_grow_is_refused_and_stays(mixture, params, message):
    before = mixture.weights_
    with pytest.raises(ValueError, match=message):
        mixture.set_params(**params).partial_fit(AFTER)
    assert mixture.n_components == len(mixture.weights_) == 3
    assert mixture.weights_ is before


@pytest.mark.parametrize("missing", [np.random.default_rng(0).random((BATCH, 6)) < 0.1, LAST])
def test_a_new_topic_with_missing_values(missing):
    """At random, or of a feature, which later batches may lack; far from zero, where none is."""

    def holed(X):
        return np.where(missing, np.nan, X)

    mixture = SparseGaussianMixture(3, missing_values="marginal", grow=6, random_state=0)
    stream(mixture, BEFORE[:BATCH] + 1000)
    assert stream(mixture, BEFORE + 1000, holed).n_components == 3
    assert stream(mixture, AFTER + 1000, holed).n_components == 4
    assert (mixture.predict(AFTER[EVERY == 3] + 1000) == 3).mean() > 0.95


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture])
def test_no_component_is_added_where_the_background_has_every_row(kind):
    rng = np.random.default_rng(0)
    mixture = kind(1, grow=8, background=True, random_state=0).partial_fit(rng.normal(size=(1, 3)))
    for scale in (1e30, 1.0, 1e-3):
        mixture.partial_fit(scale * rng.normal(size=(19, 3)))
        assert mixture.n_components == 1
        assert mixture.weights_.sum() + mixture.background_weight_ == pytest.approx(1)


def test_no_component_is_added_for_rows_that_have_no_share_in_any():
    rng = np.random.default_rng(0)
    mixture = SparseGaussianMixture(1, grow=5, reg_covar=1e-300, random_state=0)
    mixture.partial_fit(np.ones((20, 2)))
    mixture.partial_fit(1e9 * rng.normal(size=(20, 2)))
    assert mixture.n_components == 1
    assert np.isfinite(mixture.means_).all()
    assert_array_equal(mixture.weights_, [1])
