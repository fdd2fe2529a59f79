"""Frozen: public names, constructor signatures and fitted attributes.

Changing one of these takes a release of deprecation and a line in doc/whats_new.rst.
"""

import inspect

import numpy as np
import pytest

import skvmf
from skvmf import SparseGaussianMixture, VonMisesFisherMixture

COMMON_PARAMETERS = {
    "n_components": 1,
    "entmax_alpha": 1.0,
    "temperature": 1.0,
    "weight_concentration_prior": 1.0,
    "weight_floor": None,
    "flat_start": True,
    "n_init": 1,
    "init_params": "kmeans",
    "weights_init": None,
    "means_init": None,
    "tol": 1e-3,
    "max_iter": 100,
    "random_state": None,
    "warm_start": False,
    "verbose": 0,
    "verbose_interval": 10,
}
PARAMETERS = {
    VonMisesFisherMixture: COMMON_PARAMETERS
    | {"concentration_type": "free", "concentration_prior": 1.0, "negentropy": "exact"},
    SparseGaussianMixture: COMMON_PARAMETERS
    | {
        "covariance_type": "full",
        "reg_covar": 1e-6,
        "precisions_init": None,
        "weight_concentration_prior": None,
    },
}
COMMON_ATTRIBUTES = {
    "weights_",
    "means_",
    "labels_",
    "converged_",
    "n_iter_",
    "lower_bound_",
    "lower_bounds_",
    "n_active_components_",
    "effective_n_components_",
    "n_features_in_",
}
ATTRIBUTES = {
    VonMisesFisherMixture: COMMON_ATTRIBUTES | {"mean_directions_", "concentrations_"},
    SparseGaussianMixture: COMMON_ATTRIBUTES
    | {"covariances_", "precisions_", "precisions_cholesky_"},
}
METHODS = {
    "aic",
    "bic",
    "fit",
    "fit_predict",
    "from_parameters",
    "predict",
    "predict_proba",
    "responsibilities",
    "sample",
    "score",
    "score_samples",
}
DATA = np.random.default_rng(0).normal(size=(30, 3))


def test_names_of_the_package():
    assert {"SparseGaussianMixture", "VonMisesFisherMixture"} <= set(skvmf.__all__)
    for name in skvmf.__all__:
        assert getattr(skvmf, name) is not None


@pytest.mark.parametrize("estimator", PARAMETERS)
def test_signature(estimator):
    signature = inspect.signature(estimator).parameters
    assert {name: p.default for name, p in signature.items()} == PARAMETERS[estimator]
    keyword_only = [name for name, p in signature.items() if p.kind is p.KEYWORD_ONLY]
    assert set(keyword_only) == set(PARAMETERS[estimator]) - {"n_components"}


@pytest.mark.parametrize("estimator", ATTRIBUTES)
def test_fitted_attributes_and_methods(estimator):
    fitted = estimator(random_state=0).fit(DATA)
    found = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert found == ATTRIBUTES[estimator]
    documented = inspect.getdoc(estimator).split("Attributes\n")[1]
    assert all(f"\n{name} : " in documented for name in found)
    assert METHODS <= set(dir(fitted))
    built = {name for name in vars(estimator.from_parameters(**built_from(fitted)))}
    assert {"weights_", "means_"} <= built


def built_from(fitted):
    parameters = {"weights": fitted.weights_, "means": fitted.means_}
    if isinstance(fitted, SparseGaussianMixture):
        parameters["covariances"] = fitted.covariances_
    return parameters
