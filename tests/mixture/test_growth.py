"""A warm start with more components: old ones stay, new ones begin where no old one is."""

from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import match_components, renumber_components

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


WIDTHS = np.array([0.2, 0.5, 1.0])
UNLIKE = CENTRES[LABELS] + np.random.default_rng(1).normal(size=(160, 5))
UNLIKE[OLD] += (WIDTHS[LABELS[OLD], None] - 1) * (UNLIKE[OLD] - CENTRES[LABELS[OLD]])
UNLIKE[LABELS == 2] += np.random.default_rng(2).standard_cauchy((40, 1))


@pytest.mark.parametrize("case", GROWING)
def test_a_new_component_is_the_same_whatever_numbers_old_ones_have(case):
    cls, own = GROWING[case]
    options = {"random_state": 0, "warm_start": True} | own
    mixture = cls(3, **options).fit(UNLIKE[OLD])
    grown = []
    for order in permutations(range(3)):
        reference = deepcopy(mixture)._skvmf_renumbered(np.array(order))
        renumbered = renumber_components(reference, mixture)
        grown.append(renumbered.set_params(n_components=4, max_iter=0).fit(UNLIKE))
    for other in grown[1:]:
        assert_allclose(other.lower_bound_, grown[0].lower_bound_, rtol=1e-10)
        assert_allclose(other.means_[3], grown[0].means_[3], rtol=1e-10)
        if hasattr(other, "degrees_of_freedom_"):
            assert_allclose(other.degrees_of_freedom_[3], grown[0].degrees_of_freedom_[3])


@pytest.mark.parametrize("given", [[4.0, 4.0, 4.0], [3.0, 9.0, 2.0]])
def test_given_concentrations_stay_where_one_is_added(given):
    mixture = VonMisesFisherMixture.from_parameters(
        [0.5, 0.3, 0.2],
        mean_directions=CENTRES[:3],
        concentrations=given,
        negentropy="banerjee",
        fixed=("concentrations",),
        warm_start=True,
        random_state=0,
    )
    mixture.set_params(n_components=4, max_iter=0).fit(X)
    assert_array_equal(mixture.concentrations_[:3], given)
    assert mixture.concentrations_[3] == pytest.approx(np.mean(given))


@pytest.mark.parametrize("cls", [SparseGaussianMixture, StudentTMixture, RelativeGMM])
def test_a_pruned_component_stays_so_and_takes_no_cluster(cls):
    """It stands where the new rows are."""
    rows = X[:, :2] + 4 * (LABELS == 3)[:, None]
    centres = np.array([rows[LABELS == k].mean(axis=0) for k in range(4)])
    parts = [np.cov(rows[LABELS == 0].T)] * 3
    given = [np.array([0.5, 0.5, 0.0]), centres[[0, 1, 3]], parts]
    if cls is StudentTMixture:
        given.append(5.0)
    mixture = cls.from_parameters(*given, warm_start=True, random_state=0)
    is_pruned = mixture.weights_ == 0
    mixture.set_params(n_components=4, max_iter=0).fit(np.delete(rows, LABELS == 2, axis=0))
    gone = mixture.weights_ == 0
    assert_allclose(mixture.weights_[~gone], 1 / 3)
    assert gone.sum() == is_pruned.sum() == 1
    gaps = np.linalg.norm(mixture.means_[~gone] - centres[[0, 1, 3], None], axis=2)
    assert gaps.min(axis=1).max() < 0.5
    assert (mixture.set_params(max_iter=50).fit(rows).weights_ == 0).sum() == 1
    for batch in (rows, rows):
        assert (mixture.partial_fit(batch).weights_ == 0).sum() == 1


@pytest.mark.parametrize("cls", [SparseGaussianMixture, StudentTMixture, RelativeGMM])
@pytest.mark.parametrize("entrance", ["fit", "partial_fit", "more"])
def test_rows_known_as_outliers_have_no_part_in_where_components_begin(cls, entrance):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(100, 2)), [12.0, 0] + rng.normal(size=(100, 2))])
    outliers = [40.0, 40] + rng.normal(size=(80, 2))
    known = np.repeat([-1, -2], [200, 80])
    options = {"background": True, "random_state": 0}
    if entrance == "more":
        mixture = cls(1, warm_start=True, **options).fit(rows[:100]).set_params(n_components=2)
    else:
        mixture = cls(2, **options)
    method = "partial_fit" if entrance == "partial_fit" else "fit"
    if method == "fit":
        mixture.set_params(max_iter=0)
    getattr(mixture, method)(np.vstack([rows, outliers]), known_labels=known)
    means = mixture.means_[mixture.means_[:, 0].argsort()]
    assert_allclose(means, [[0, 0], [12, 0]], atol=0.5)


def test_directions_known_as_outliers_have_no_part_either():
    known = np.where(OLD, -1, -2)
    mixture = VonMisesFisherMixture(3, background=True, random_state=0, max_iter=0)
    mixture.fit(X, known_labels=known)
    reference = VonMisesFisherMixture(3, background=True, random_state=0, max_iter=0).fit(X[OLD])
    assert_allclose(mixture.mean_directions_, reference.mean_directions_)


def test_degrees_of_freedom_by_component_where_one_has_been_pruned():
    """The search for more components has those of the components that are left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 9 * rng.integers(-1, 2, size=(60, 1))
    mixture = StudentTMixture(
        4,
        degrees_of_freedom=[5.0, 9.0, 20.0, 30.0],
        weight_concentration_prior=[0.5, 1.0, 2.0, -30.0],
        warm_start=True,
        random_state=0,
    ).fit(X)
    assert mixture.n_active_components_ < 4
    of_old = mixture.degrees_of_freedom_
    alive = mixture.weights_ > 0
    mixture.set_params(
        n_components=6,
        max_iter=0,
        degrees_of_freedom=[5.0, 9.0, 20.0, 30.0, 7.0, 8.0],
        weight_concentration_prior=1.0,
    ).fit(X)
    assert_array_equal(mixture.degrees_of_freedom_[:4][alive], of_old[alive])
