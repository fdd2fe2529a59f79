"""Components about equal rows: as tight as a component may be given, in every dimension."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skvmf import VonMisesFisherMixture

from ..pairwise import pairwise


@pytest.mark.parametrize("dim", [2, 3, 40, 1000, 20_000])
def test_equal_rows_have_the_largest_concentration(dim):
    X = np.repeat(np.eye(2, dim), 3, axis=0)
    mixture = VonMisesFisherMixture(2, concentration_prior=0, random_state=0).fit(X)
    np.testing.assert_allclose(mixture.concentrations_, 1e12, rtol=1e-14)
    given = VonMisesFisherMixture.from_parameters(
        mixture.weights_,
        mean_directions=mixture.mean_directions_,
        concentrations=np.minimum(mixture.concentrations_, 1e12),
    )
    np.testing.assert_allclose(given.score_samples(X), mixture.score_samples(X), rtol=1e-9)


@pairwise(
    negentropy=["exact", "ode", "rational", "banerjee", "newton"],
    largest=[0.0, 1e-9, 3.1, 700.0, 1e12],
    concentration_type=["free", "tied"],
    dim=[2, 3, 40],
)
def test_given_and_fixed_concentrations_are_kept(negentropy, largest, concentration_type, dim):
    X = np.random.default_rng(0).normal(size=(60, dim))
    kappa = np.full(2, largest) if concentration_type == "tied" else [largest, 0.3]
    options = {"concentration_type": concentration_type, "negentropy": negentropy}
    given = VonMisesFisherMixture.from_parameters(
        [0.4, 0.6], mean_directions=X[:2], concentrations=kappa, **options
    )
    np.testing.assert_array_equal(given.concentrations_, kappa)
    given.set_params(warm_start=True, fixed=("concentrations",), max_iter=3, tol=0)
    fresh = VonMisesFisherMixture(
        2, fixed=("concentrations",), concentrations_init=kappa, max_iter=3, tol=0, **options
    )
    for mixture in (given.fit(X), given.partial_fit(X), fresh.fit(X), fresh.partial_fit(X)):
        np.testing.assert_array_equal(mixture.concentrations_, kappa)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("largest", [1e6, 3e38])
def test_first_components_of_equal_directions_do_not_follow_rounding(dtype, form, largest):
    """The same rows, weighted and repeated, sum to lengths of 1 that differ by rounding."""
    rows = form(np.array([[-1.0, -1.0], [-largest, -largest], [-7.0, -7.0]], dtype))
    counts = np.array([3, 1, 0])  # the largest makes others be scaled
    options = dict(n_components=1, concentration_prior=1e-9, max_iter=0)
    once = VonMisesFisherMixture(**options).fit(rows, sample_weight=counts)
    often = VonMisesFisherMixture(**options).fit(rows[[0, 0, 0, 0]])
    np.testing.assert_allclose(once.lower_bounds_[0], often.lower_bounds_[0], rtol=1e-9)
