"""Clusters that are clear come again where rows are resampled; halves of one do not."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.inspection import component_stability, component_summary
from skvmf.plotting import MixtureDisplay

RNG = np.random.default_rng(0)
MERGED = RNG.normal(size=(400, 2))
MERGED *= 4 * np.sqrt(RNG.uniform(size=(400, 1))) / np.linalg.norm(MERGED, axis=1, keepdims=True)
CENTRES = np.array([[0.0, 20], [20, 0], [20, 20]])
PLANE = np.vstack([MERGED, np.repeat(CENTRES, 100, axis=0) + RNG.normal(size=(300, 2))])
CLEAR = np.arange(700) >= 400


SPHERE = np.column_stack([PLANE, np.full(700, 20.0)])
KIND = {"covariance_type": "spherical", "weight_concentration_prior": 1.0, "random_state": 0}


@pytest.fixture(scope="module")
def mixture():
    return SparseGaussianMixture(5, **KIND).fit(PLANE)


@pytest.mark.parametrize("X", [PLANE, SPHERE], ids=["plane", "sphere"])
def test_three_clear_clusters_and_two_merged_ones(mixture, X):
    if X is SPHERE:
        mixture = VonMisesFisherMixture(5, random_state=0).fit(X)
    assert len(np.unique(mixture.labels_[CLEAR])) == 3
    stability = component_stability(mixture, X, n_resamples=10, random_state=0)
    clear = np.isin(np.arange(5), mixture.labels_[CLEAR])
    assert stability.components[clear].min() > 0.97 > stability.components[~clear].mean()
    assert (stability.rows[CLEAR] == 1).all()
    assert stability.rows[~CLEAR].mean() < 0.9
    assert len(stability.scores) == 10
    low, high = stability.interval
    assert stability.scores.min() <= low <= high <= stability.scores.max() < 1


def test_numbers_are_those_of_the_mixture(mixture):
    """The shares of rows, averaged over components, are those of a fit with the same weights."""
    stability = component_stability(mixture, PLANE, n_resamples=1, random_state=3)
    rng = np.random.RandomState(3)
    again = SparseGaussianMixture(5, **KIND).set_params(random_state=rng.randint(2**31 - 1))
    times = np.bincount(rng.randint(700, size=700), minlength=700)
    labels = again.fit(PLANE, sample_weight=times).predict(PLANE)
    assert stability.scores[0] == adjusted_rand_score(mixture.labels_, labels)
    same = stability.rows == 1
    pairs = {*zip(mixture.labels_[same], labels[same], strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_a_component_that_every_fit_loses_has_0(mixture):
    """Fits with a strong prior keep fewer components than the mixture has."""
    pruned = SparseGaussianMixture.from_parameters(
        mixture.weights_,
        mixture.means_,
        mixture.covariances_,
        covariance_type="spherical",
        weight_concentration_prior=-300,
        max_iter=200,
    )
    stability = component_stability(pruned, PLANE, n_resamples=3, random_state=0)
    assert stability.components.min() == 0
    assert np.isfinite(stability.reliability.after.prob_true).all()
    del stability["reliability"]
    assert all(np.isfinite(each).all() for each in stability.values())
    assert (stability.rows[pruned.predict(PLANE) == stability.components.argmin()] == 0).all()


def test_rows_of_the_background_and_rows_without_weight():
    X = np.vstack([PLANE, [[300.0, -300]]])
    mixture = SparseGaussianMixture(
        4, background=True, weight_concentration_prior=1.0, random_state=0
    ).fit(X)
    assert mixture.labels_[-1] == -1
    stability = component_stability(mixture, X, n_resamples=3, random_state=0)
    assert stability.rows[-1] == 1
    weights = np.append(np.ones(700), 0)
    weighted = component_stability(mixture, X, n_resamples=2, sample_weight=weights, random_state=0)
    assert weighted.components.shape == (4,)


def test_one_weight_is_that_of_each_row(mixture):
    options = {"n_resamples": 2, "random_state": 0}
    one = component_stability(mixture, PLANE, sample_weight=2.0, **options)
    weights = np.full(len(PLANE), 2.0)
    each = component_stability(mixture, PLANE, sample_weight=weights, **options)
    assert_array_equal(one.rows, each.rows)
    assert one.temperature == each.temperature


def test_it_is_the_same_again_and_leaves_the_mixture_as_it_is(mixture):
    before = mixture.means_.copy()
    first, second = (
        component_stability(mixture, PLANE, n_resamples=2, random_state=1) for _ in range(2)
    )
    assert_array_equal(
        first.pop("reliability").after.prob_true, second.pop("reliability").after.prob_true
    )
    for name, values in first.items():
        assert_array_equal(values, second[name])
    assert_array_equal(mixture.means_, before)


def test_summary_and_pictures_show_it(mixture):
    stability = component_stability(mixture, PLANE, n_resamples=2, random_state=0)
    summary = component_summary(mixture, PLANE, stability=stability)
    assert_array_equal(summary.stability, stability.components[summary.labels])
    assert summary.columns["stability"] == [f"{each:.2f}" for each in summary.stability]
    assert_array_equal(summary.to_frame()["stability"], summary.stability)
    display = MixtureDisplay.from_estimator(
        mixture, PLANE, scatter_kwargs={"alpha": stability.rows}
    )
    assert_array_equal(display.scatter_.get_alpha(), stability.rows)


def test_bad_input(mixture):
    for n_resamples in (0, 2.5):
        with pytest.raises(ValueError, match="n_resamples should be a whole number"):
            component_stability(mixture, PLANE, n_resamples=n_resamples)
    with pytest.raises(TypeError, match=r"a mixture of skvmf, got GaussianMixture"):
        component_stability(GaussianMixture().fit(PLANE), PLANE)


def test_known_labels_are_known_again():
    """Two classes that the rows do not show come again, as their labels are known."""
    known = np.full(700, -1)
    known[:400:2] = MERGED[::2, 0] > 0
    mixture = SparseGaussianMixture(5, **KIND).fit(PLANE, known_labels=known)
    options = {"n_resamples": 5, "random_state": 0}
    stability = component_stability(mixture, PLANE, known_labels=known, **options)
    assert stability.components.min() > 0.95
    with pytest.warns(UserWarning, match="fitted with known labels, and it is fitted again"):
        without = component_stability(mixture, PLANE, **options)
    assert without.components[:2].mean() < stability.components[:2].mean() - 0.05


def test_a_class_of_which_no_row_is_drawn_is_found_as_others_are():
    known = np.full(700, -1)
    known[[400, 500]] = 0, 1
    mixture = SparseGaussianMixture(5, **KIND).fit(PLANE, known_labels=known)
    stability = component_stability(
        mixture, PLANE, known_labels=known, n_resamples=5, random_state=0
    )
    assert stability.components[:2].min() > 0.97
    with pytest.raises(ValueError, match=r"known_labels should be integers.*got shape \(699,\)"):
        component_stability(mixture, PLANE, known_labels=known[1:], n_resamples=1)


def test_a_mixture_remembers_that_labels_were_known():
    mixture = SparseGaussianMixture(5, **KIND)
    known = np.where(CLEAR, np.arange(700) // 100 - 4, -1)
    for knowing in (mixture.fit(PLANE, known_labels=known), mixture.partial_fit(PLANE)):
        copied = pickle.loads(pickle.dumps(knowing))
        with pytest.warns(UserWarning, match="fitted with known labels"):
            component_stability(copied, PLANE, n_resamples=1)
    component_stability(mixture.fit(PLANE), PLANE, n_resamples=1)  # warnings are errors
