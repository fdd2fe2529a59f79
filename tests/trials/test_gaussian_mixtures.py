"""A user of scikit-learn's GaussianMixture and BayesianGaussianMixture, with the same code."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skvmf import SparseGaussianMixture

X, y = make_blobs(600, 4, centers=5, random_state=0)


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
