"""A user of scikit-learn's GaussianMixture and BayesianGaussianMixture, with the same code."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

X, y = make_blobs(600, 4, centers=5, random_state=0)
COVARIANCE_TYPES = ["full", "tied", "diag", "spherical"]


def first(covariance_type):
    """Return parameters from which both fits start."""
    precisions = {
        "full": np.tile(np.eye(4), (5, 1, 1)),
        "tied": np.eye(4),
        "diag": np.ones((5, 4)),
        "spherical": np.ones(5),
    }
    return dict(
        covariance_type=covariance_type,
        weights_init=np.full(5, 0.2),
        means_init=X[[np.flatnonzero(y == k)[0] for k in range(5)]],
        precisions_init=precisions[covariance_type],
        tol=1e-8,
        max_iter=1000,
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_same_parameters_give_the_same_fit(covariance_type):
    start = first(covariance_type)
    theirs = GaussianMixture(5, **start).fit(X)
    ours = SparseGaussianMixture(5, weight_concentration_prior=1, **start).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-5)
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), atol=1e-5)
    for method in ("score", "bic", "aic"):
        np.testing.assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-8)


def test_every_parameter_attribute_and_method_has_its_name():
    theirs = GaussianMixture(5, random_state=0).fit(X)
    ours = SparseGaussianMixture(5, random_state=0).fit(X)
    assert set(theirs.get_params()) <= set(ours.get_params())
    assert [name for name in dir(theirs) if name[0] != "_" and not hasattr(ours, name)] == []


def test_a_default_fit_is_as_good_as_the_best_of_ten():
    theirs = GaussianMixture(5, n_init=10, random_state=0).fit(X)
    ours = SparseGaussianMixture(5, random_state=0).fit(X)
    assert ours.score(X) > theirs.score(X) - 1e-3


def test_a_prior_finds_the_number_that_bayesian_gaussian_mixture_finds():
    """Clusters have 120 rows: a component needs more than 41 to stay."""
    theirs = BayesianGaussianMixture(
        n_components=10, weight_concentration_prior=1e-2, max_iter=500, random_state=0
    ).fit(X)
    ours = SparseGaussianMixture(10, weight_concentration_prior=-40, random_state=0).fit(X)
    assert ours.n_active_components_ == np.sum(theirs.weights_ > 0.01) == 5
    assert adjusted_rand_score(theirs.predict(X), ours.labels_) > 0.95


@pytest.mark.parametrize(
    "name",
    [
        "mean_prior",
        "mean_precision_prior",
        "covariance_prior",
        "degrees_of_freedom_prior",
        "weight_concentration_prior_type",
    ],
)
def test_a_prior_that_is_missing_is_named_with_the_one_that_is_there(name):
    with pytest.raises(TypeError, match=f"no parameter '{name}': .*weight_concentration_prior"):
        SparseGaussianMixture(5, **{name: 1})


def test_their_names_on_directions_lead_to_ours():
    with pytest.raises(TypeError, match="concentration_type='free' or 'tied'"):
        VonMisesFisherMixture(3, covariance_type="spherical")
    with pytest.raises(AttributeError, match="concentrations_"):
        _ = VonMisesFisherMixture(3, random_state=0).fit(X).covariances_
