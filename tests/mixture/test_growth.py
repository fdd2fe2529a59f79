"""A warm start with more components: old ones stay, new ones begin where no old one is."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, VonMisesFisherMixture
from skvmf.inspection import match_components

from .checks import assert_bound_never_falls
from .kinds import GROWING

CENTRES = 4 * np.eye(5)[[3, 0, 4, 1]]
LABELS = np.repeat(np.arange(4), [60, 50, 40, 10])
X = CENTRES[LABELS] + np.random.default_rng(0).normal(0, 0.5, (160, 5))
OLD = LABELS < 3


def fitted(case, **params):
    cls, own = GROWING[case]
    params = {"random_state": 0, "warm_start": True, "tol": 1e-5} | own | params
    return cls(3, **params).fit(X[OLD])


@pytest.mark.parametrize("case", GROWING)
def test_old_components_keep_their_numbers_and_the_new_one_finds_the_new_rows(case):
    mixture = fitted(case)
    before, old = mixture.predict(X), mixture._skvmf_vector_model().fitted.params
    begun = deepcopy(mixture).set_params(n_components=5, max_iter=0).fit(X)
    new = begun._skvmf_vector_model().fitted  # old ones begin where they are
    centres = [new.family.centres(params.components) for params in (new.params, old)]
    assert_array_equal(centres[0][:3], centres[1])
    assert_allclose(begun.weights_[:3], old.component_weights * 3 / 5)
    assert begun.weights_.sum() + begun.background_weight_ == pytest.approx(1)
    mixture.set_params(n_components=4).fit(X)
    assert_bound_never_falls(mixture)
    assert_array_equal(mixture.predict(X)[OLD], before[OLD])
    assert set(mixture.predict(X[~OLD])) == {3}


def test_several_more_and_old_ones_are_matched():
    mixture = VonMisesFisherMixture(1, random_state=0, warm_start=True).fit(X[LABELS == 1])
    old = VonMisesFisherMixture(1, random_state=0).fit(X[LABELS == 1])
    mixture.set_params(n_components=4).fit(X)
    assert (mixture.labels_[LABELS == 1] == 0).all()
    assert_array_equal(match_components(old, mixture).indices, [0])
    assert len({*zip(LABELS, mixture.labels_, strict=True)}) == 4


def test_the_new_component_begins_at_rows_whose_label_is_known():
    known = np.where(np.arange(len(X)) == np.flatnonzero(~OLD)[0], 3, -1)
    mixture = fitted("directions").set_params(n_components=4).fit(X, known_labels=known)
    assert set(mixture.predict(X[~OLD])) == {3}


def test_components_in_order_are_sorted():
    rows = X[:, [3]]
    mixture = RelativeGMM(1, warm_start=True, random_state=0).fit(rows[LABELS == 0])
    mixture.set_params(n_components=2).fit(rows)
    assert mixture.means_[0, 0] < 1 < 3 < mixture.means_[1, 0]


def test_fewer_components_and_fixed_ones_are_refused():
    mixture = fitted("directions").set_params(n_components=2)
    with pytest.raises(ValueError, match=r"has 3 components.*is 2.*ComponentPath"):
        mixture.fit(X)
    mixture.set_params(n_components=4, fixed=("weights",))
    with pytest.raises(ValueError, match="leaves new components no place"):
        mixture.fit(X)
    assert mixture.weights_.shape == (3,)
