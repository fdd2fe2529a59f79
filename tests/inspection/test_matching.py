"""Components of two mixtures are matched by their overlap, whatever their numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import component_summary, match_components, renumber_components

MEANS = np.random.default_rng(0).normal(size=(5, 3))
COVARIANCES = np.random.default_rng(1).uniform(0.01, 0.03, 5)[:, None, None] * np.eye(3)


def of_components(family, numbers):
    """A mixture of some of five components, in a given order."""
    numbers = np.array(numbers)
    weights = np.arange(1.0, 6)[numbers]
    weights /= weights.sum()
    if family is VonMisesFisherMixture:
        kappa = 20 + 10.0 * numbers
        return family.from_parameters(weights, mean_directions=MEANS[numbers], concentrations=kappa)
    if family is GaussianMixture:
        mixture = GaussianMixture(len(numbers))
        mixture.weights_, mixture.means_ = weights, MEANS[numbers]
        mixture.covariances_ = COVARIANCES[numbers]
        mixture.precisions_cholesky_ = np.sqrt(np.linalg.inv(COVARIANCES[numbers]))
        return mixture
    freedom = {"degrees_of_freedom": 5.0} if family is StudentTMixture else {}
    return family.from_parameters(weights, MEANS[numbers], COVARIANCES[numbers], **freedom)


FAMILIES = [VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture, GaussianMixture]


@pytest.mark.parametrize("family", FAMILIES)
def test_permuted_components_are_found(family):
    matched = match_components(
        of_components(family, range(5)), of_components(family, [3, 0, 4, 2, 1])
    )
    assert_array_equal(matched.indices, [1, 4, 3, 0, 2])
    assert_allclose(matched.overlaps, 1)
    assert len(matched.new) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_some_are_new_and_some_are_gone(family):
    more, fewer = of_components(family, [3, 0, 4, 2, 1]), of_components(family, [4, 0])
    found, lost = match_components(fewer, more), match_components(more, fewer)
    assert_array_equal(found.indices, [2, 1])
    assert_array_equal(found.new, [0, 3, 4])
    assert_array_equal(lost.indices, [-1, 1, 0, -1, -1])
    assert_array_equal(lost.overlaps == 0, lost.indices < 0)
    one = match_components(of_components(family, [2]), more)
    assert_array_equal(one.indices, [3])


def test_kinds_of_gaussian_components_are_compared_with_each_other():
    ordered = of_components(RelativeGMM, [3, 0, 4])
    matched = match_components(of_components(GaussianMixture, range(5)), ordered)
    kept = matched.indices >= 0
    assert_array_equal(np.flatnonzero(kept), [0, 3, 4])
    assert_allclose(ordered.means_[matched.indices[kept]], MEANS[kept])


def test_pairs_that_hardly_overlap_are_none():
    old, new = (
        of_components(SparseGaussianMixture, [0, 1]),
        of_components(SparseGaussianMixture, [2, 1]),
    )
    assert_array_equal(match_components(old, new).indices, [0, 1])
    matched = match_components(old, new, min_overlap=0.5)
    assert_array_equal(matched.indices, [-1, 1])
    assert_array_equal(matched.new, [0])


def test_pruned_components_match_none():
    pruned = SparseGaussianMixture.from_parameters([0.5, 0.5, 0], MEANS[:3], COVARIANCES[:3])
    matched = match_components(pruned, of_components(SparseGaussianMixture, range(3)))
    assert_array_equal(matched.indices, [0, 1, -1])
    assert_array_equal(matched.new, [2])


def test_mixtures_of_other_kinds_are_refused():
    directions, rows = (of_components(each, [0]) for each in FAMILIES[:2])
    with pytest.raises(ValueError, match="directions of 3 features and Gaussian"):
        match_components(directions, rows)
    flat = SparseGaussianMixture.from_parameters([1], [[0.0, 0]], [np.eye(2)])
    with pytest.raises(ValueError, match="of 3 features and Gaussian or Student-t components of 2"):
        match_components(rows, flat)


@pytest.mark.parametrize("family", [VonMisesFisherMixture, SparseGaussianMixture])
def test_many_components_are_compared_with_their_nearest(family, monkeypatch):
    """Of components of one size the pairs are those of all comparisons."""
    rng = np.random.default_rng(0)
    means, numbers = rng.normal(size=(60, 5)), rng.permutation(60)[:50]
    mixtures = []
    for centres in (means, means[numbers] + 1e-3 * rng.normal(size=(50, 5))):
        weights = np.full(len(centres), 1 / len(centres))
        if family is VonMisesFisherMixture:
            given = {"mean_directions": centres, "concentrations": np.full(len(centres), 30.0)}
        else:
            given = {
                "means": centres,
                "covariances": np.tile(0.05 * np.eye(5), (len(centres), 1, 1)),
            }
        mixtures.append(family.from_parameters(weights, **given))
    nearest = component_summary(mixtures[0]).nearest
    monkeypatch.setattr("skvmf.inspection._components.MAX_PAIRED", 40)
    monkeypatch.setattr("skvmf.inspection._components.NEAREST", 8)
    assert_array_equal(component_summary(mixtures[0]).nearest, nearest)
    matched = match_components(*mixtures[::-1])
    assert_array_equal(matched.indices, numbers)
    assert matched.overlaps.min() > 0.99
    assert_array_equal(matched.new, np.setdiff1d(np.arange(60), numbers))
    matched = match_components(*mixtures, min_overlap=0.99)
    assert_array_equal(matched.indices[numbers], np.arange(50))
    assert len(matched.new) == 0


def fit_again(family, X, **params):
    free = {} if family is VonMisesFisherMixture else {"weight_concentration_prior": 1.0}
    return family(len(MEANS), random_state=3, **free, **params).fit(X)


@pytest.mark.parametrize("family", [VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture])
def test_a_mixture_gets_the_numbers_of_a_reference(family):
    reference = of_components(family, range(5))
    X, _ = reference.sample(1500)
    mixture = fit_again(family, X)
    renumbered = renumber_components(reference, mixture)
    assert_array_equal(match_components(reference, renumbered).indices, range(5))
    matched = match_components(reference, mixture).indices
    assert_array_equal(matched[renumbered.predict(X)], mixture.predict(X))
    assert_array_equal(renumbered.means_, mixture.means_[matched])
    assert_array_equal(renumbered.weights_, mixture.weights_[matched])
    assert_allclose(renumbered.score(X), mixture.score(X))


@pytest.mark.parametrize("params", [{}, {"background": True}])
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_a_stream_continues_with_other_numbers(kind, params):
    X, _ = of_components(SparseGaussianMixture, range(5)).sample(1500)
    mixture = fit_again(SparseGaussianMixture, X, covariance_type=kind, **params)
    reference = of_components(SparseGaussianMixture, [0, 3])
    renumbered = renumber_components(reference, mixture)
    for each in (mixture, renumbered):
        each.partial_fit(X[:200])
    matched = match_components(mixture, renumbered)
    assert_allclose(matched.overlaps, 1)
    assert_allclose(renumbered.means_[matched.indices], mixture.means_)
    assert renumbered.weight_seen_ == mixture.weight_seen_ == 1700


def test_a_number_whose_component_is_gone_stays_free():
    reference = of_components(SparseGaussianMixture, [0, 1, 2])
    mixture = of_components(SparseGaussianMixture, [2, 4, 0])
    renumbered = renumber_components(reference, mixture, min_overlap=0.9)
    assert_allclose(renumbered.weights_, mixture.weights_[[2, 1, 0, 1]] * [1, 0, 1, 1])
    assert_array_equal(renumbered.predict(MEANS[[0, 2, 4]]), [0, 2, 3])
    assert renumbered.n_components == 4


def test_mixtures_without_numbers_of_their_own_are_refused():
    with pytest.raises(ValueError, match="RelativeGMM sorts its components"):
        renumber_components(of_components(RelativeGMM, [0, 1]), of_components(RelativeGMM, [0, 1]))
    other = of_components(GaussianMixture, [0, 1])
    with pytest.raises(TypeError, match="got GaussianMixture"):
        renumber_components(other, other)


def test_priors_by_number_move_with_their_components():
    reference = of_components(SparseGaussianMixture, range(5))
    mixture = of_components(SparseGaussianMixture, [3, 1, 4, 0, 2])
    mixture.set_params(weight_concentration_prior=np.array([3.0, 1.0, 4.0, 0.5, 2.0]))
    renumbered = renumber_components(reference, mixture)
    assert_array_equal(renumbered.weight_concentration_prior, [0.5, 1, 2, 3, 4])
    assert_array_equal(mixture.weight_concentration_prior, [3, 1, 4, 0.5, 2])


@pytest.mark.parametrize("estimator", [VonMisesFisherMixture, SparseGaussianMixture])
def test_features_are_told_by_their_names(estimator):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = np.repeat(4 * np.eye(3), 60, axis=0) + rng.normal(size=(180, 3))
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    mixture = estimator(3, random_state=0).fit(rows)
    other = estimator(3, random_state=0).fit(rows[["c", "a", "b"]])
    matched = match_components(mixture, other)
    expected = other.predict(rows[["c", "a", "b"]])
    assert (matched.indices[mixture.predict(rows)] == expected).mean() > 0.98
    assert matched.overlaps.min() > 0.98
    third = estimator(3, random_state=0).fit(rows.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="only: c, d"):
        match_components(mixture, third)
