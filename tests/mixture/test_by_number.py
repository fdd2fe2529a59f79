"""Parameters that are given for each component stay with it, whatever its number becomes."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import renumber_components

from .kinds import matrices

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
LABELS = np.repeat(np.arange(4), 100)
X = CENTRES[LABELS] + RNG.normal(size=(400, 2))
OLD = LABELS < 3
PRIORS = np.array([20.0, 1.0, 60.0])  # rows that the prior adds to each component, and one


def priors_by_cluster(mixture, n_rows_each):
    """Return the prior of the component at each cluster, as its weight shows it.

    Weights of clusters apart are at the mode of their posterior, in proportion to n + alpha - 1.
    """
    clusters = np.linalg.norm(CENTRES[:, None] - mixture.means_, axis=2).argmin(axis=0)
    total = n_rows_each * len(clusters) + (PRIORS - 1).sum()
    alpha = mixture.weights_ * total - n_rows_each + 1
    return dict(zip(clusters.tolist(), alpha.round().tolist(), strict=True))


def test_degrees_of_freedom_stay_with_renumbered_components():
    two = LABELS < 2
    start = {"means_init": CENTRES[:2], "random_state": 0}
    mixture = StudentTMixture(2, degrees_of_freedom=[50.0, 2.0], **start).fit(X[two])
    reference = StudentTMixture.from_parameters(
        [0.5, 0.5], CENTRES[1::-1], np.tile(np.eye(2), (2, 1, 1)), 4.0
    )
    renumbered = renumber_components(reference, mixture)
    for batch in np.array_split(RNG.permutation(X[two]), 2):
        assert_array_equal(renumbered.degrees_of_freedom_, [2.0, 50.0])
        renumbered.partial_fit(batch)
    assert_array_equal(renumbered.degrees_of_freedom_, [2.0, 50.0])
    assert_array_equal(mixture.degrees_of_freedom, [50.0, 2.0])  # it stays as it was
    renumbered.fit(X[two])  # from scratch, with the numbers that components have now
    assert_allclose(renumbered.means_, CENTRES[1::-1], atol=1)
    assert_array_equal(renumbered.degrees_of_freedom_, [2.0, 50.0])


@pytest.mark.parametrize("negentropy", ["exact", "rational", "banerjee"])
@pytest.mark.parametrize("dim", [2, 5])
def test_given_concentrations_are_those_of_renumbered_components(negentropy, dim):
    directions, kappa = np.eye(dim)[:2], np.array([3.0, 1e6])
    options = {"weights": [0.5, 0.5], "negentropy": negentropy}
    given, turned = (
        VonMisesFisherMixture.from_parameters(
            mean_directions=directions[order], concentrations=kappa[order], **options
        )
        for order in ([0, 1], [1, 0])
    )
    renumbered = renumber_components(given, turned)
    assert_array_equal(renumbered.concentrations_, kappa)
    rows = RNG.normal(size=(50, dim))
    assert_array_equal(renumbered.score_samples(rows), given.score_samples(rows))


@pytest.mark.parametrize("change", [{"covariance_type": "diag"}, {"background": True}])
@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
def test_parts_are_those_of_the_fit(kind, change):
    mixture = kind(3, random_state=0).fit(X[OLD])
    before = mixture.condition([0], [1.0]), mixture.marginal([1])
    mixture.set_params(**change)
    after = mixture.condition([0], [1.0]), mixture.marginal([1])
    for one, other in zip(before, after, strict=True):
        assert_array_equal(one.means_, other.means_)
        assert_array_equal(matrices(one), matrices(other))
        assert one.background_weight_ == other.background_weight_ == 0


def test_parts_of_a_mixture_with_a_background_keep_it():
    mixture = SparseGaussianMixture(3, background=True, random_state=0).fit(X[OLD])
    before = mixture.marginal([1])
    after = mixture.set_params(background=False).marginal([1])
    assert after.background_weight_ == before.background_weight_ > 0
    assert_array_equal(after.background_bounds_, before.background_bounds_)


@pytest.mark.parametrize("copied", [deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("kind", [SparseGaussianMixture, RelativeGMM])
def test_priors_stay_with_the_components_that_a_stream_goes_on_with(kind, copied):
    """A RelativeGMM keeps components in another order than that of the means that it is given."""
    order = [1, 2, 0]
    mixture = kind(
        3, means_init=CENTRES[order], weight_concentration_prior=PRIORS, learning_decay=1.0
    )
    mixture = copied(mixture.fit(X[OLD]))
    expected = dict(zip(order, PRIORS, strict=True))
    assert priors_by_cluster(mixture, 100) == expected
    assert priors_by_cluster(mixture.partial_fit(X[OLD]), 200) == expected
    part = mixture.marginal([1, 0])
    assert_array_equal(part.means_, mixture.means_[:, ::-1])
    part.set_params(warm_start=True).fit(X[OLD][:, ::-1])
    assert_allclose(part.weights_, mixture.set_params(warm_start=True).fit(X[OLD]).weights_)


GIVEN = [
    {},
    {"means_init": CENTRES[[2, 0, 1]]},
    {"weights_init": [0.2, 0.3, 0.5], "means_init": CENTRES[[2, 0, 1]]},
    {"precisions_init": np.tile(np.eye(2), (3, 1, 1))},
    {"init_params": LABELS[OLD]},
    {"init_params": np.eye(3)[LABELS[OLD]]},
]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("kind", [SparseGaussianMixture, RelativeGMM])
def test_priors_of_old_components_stay_where_more_are_added(kind, given):
    """What a start from scratch was given has the old size; new components have a flat prior."""
    options = {"weight_concentration_prior": PRIORS, "warm_start": True, "random_state": 0}
    mixture = kind(3, tol=1e-6, **options, **given).fit(X[OLD])
    before = priors_by_cluster(mixture, 100)
    assert sorted(before.values()) == sorted(PRIORS)
    mixture.set_params(n_components=4).fit(X)
    assert priors_by_cluster(mixture, 100) == before | {3: 1.0}
    assert_allclose(
        mixture.weights_, pickle.loads(pickle.dumps(mixture)).fit(X).weights_, rtol=1e-4
    )


def test_degrees_of_freedom_of_old_components_stay_where_more_are_added():
    options = {"degrees_of_freedom": [3.0, 30.0], "means_init": CENTRES[:2], "warm_start": True}
    mixture = StudentTMixture(2, random_state=0, **options).fit(X[LABELS < 2])
    mixture.set_params(n_components=3).fit(X[OLD])
    assert_array_equal(mixture.degrees_of_freedom_, [3.0, 30.0, 4.0])
    mixture.partial_fit(X[OLD])
    assert_array_equal(mixture.degrees_of_freedom_, [3.0, 30.0, 4.0])
    mixture.set_params(degrees_of_freedom=[5.0, 6.0, 7.0]).fit(X[OLD])
    assert_array_equal(mixture.degrees_of_freedom_, [5.0, 6.0, 7.0])
    with pytest.raises(ValueError, match="one for each of the 3 components"):
        mixture.set_params(degrees_of_freedom=[5.0, 6.0]).fit(X[OLD])


def test_added_components_may_be_renumbered():
    options = {"degrees_of_freedom": [3.0, 30.0], "means_init": CENTRES[:2], "warm_start": True}
    mixture = StudentTMixture(2, random_state=0, **options).fit(X[LABELS < 2])
    mixture.set_params(n_components=3).fit(X[OLD])
    reference = StudentTMixture.from_parameters(
        np.full(3, 1 / 3), CENTRES[[2, 0, 1]], np.tile(np.eye(2), (3, 1, 1)), 4.0
    )
    renumbered = renumber_components(reference, mixture)
    assert_array_equal(renumbered.degrees_of_freedom_, [4.0, 3.0, 30.0])
    assert_array_equal(renumbered.partial_fit(X[OLD]).degrees_of_freedom_, [4.0, 3.0, 30.0])
    assert_array_equal(renumbered.fit(X[OLD]).degrees_of_freedom_, [4.0, 3.0, 30.0])


def test_an_added_component_may_be_between_the_others():
    line = np.repeat([0.0, 9.0, 18.0], 100)[:, None] + RNG.normal(size=(300, 1))
    ends = np.abs(line[:, 0] - 9) > 4
    mixture = RelativeGMM(2, warm_start=True, random_state=0, tol=1e-6).fit(line[ends])
    mixture.set_params(n_components=3).fit(line)
    fresh = RelativeGMM(3, random_state=0, tol=1e-6).fit(line)
    assert mixture.n_iter_ > 0
    assert_allclose(mixture.means_, fresh.means_, atol=1e-3)
    assert_allclose(mixture.lower_bound_, fresh.lower_bound_, rtol=1e-6)
