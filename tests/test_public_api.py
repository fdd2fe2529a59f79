"""Frozen: public names, constructor signatures and fitted attributes.

Changing one of these takes a release of deprecation and a note in doc/whats_new/upcoming.
"""

import importlib
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import skvmf
from skvmf import (
    ClusterTracker,
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
    __version__,
)
from skvmf.grammar import DependencyModelWithValence
from skvmf.model_selection import ComponentPath
from skvmf.preprocessing import DirectionWhitener

NAMES = {
    "skvmf": """ClusterTracker ComponentPath FisherVectorTransformer RelativeGMM
        SparseGaussianMixture StudentTMixture VonMisesFisherMixture __version__
        component_summary""",
    "skvmf.datasets": "load_conllu load_docstrings make_vonmises_fisher_blobs",
    "skvmf.distributions.modified_dirichlet": """log_kernel log_normalizer logpdf mean mode
        posterior rvs""",
    "skvmf.distributions.simplex": """entmax fenchel_young_loss fenchel_young_posterior
        tsallis_negentropy""",
    "skvmf.distributions.vonmises_fisher": """concentration entropy fit
        kl_divergence log_partition log_partition_deficit log_sphere_area logpdf mean_negentropy
        mean_resultant_length natural_parameter negentropy negentropy_hessian
        negentropy_hessian_product rvs variance_eigenvalues variance_function""",
    "skvmf.families": """BaseMixture Constraint Family FenchelYoungPosterior Gradients MergeCost
        Mixture ModifiedDirichlet ParameterBlock Proposal Scores SeedFamily Statistics Update
        as_dense labels make_rows make_start repeat_columns run_em""",
    "skvmf.feature_extraction": "FisherVectorTransformer embedding_table",
    "skvmf.grammar": "DependencyModelWithValence attachment_score",
    "skvmf.inspection": """ComponentSummary component_stability component_summary coverage_curve
        fisher_information match_components membership_reliability renumber_components""",
    "skvmf.mixture": """ClusterTracker RelativeGMM SparseGaussianMixture StudentTMixture
        VonMisesFisherMixture""",
    "skvmf.model_selection": "ComponentPath",
    "skvmf.preprocessing": "DirectionWhitener",
    "skvmf.testing": "check_family",
    "skvmf.plotting": """ClusterTrackerDisplay ComponentPathDisplay DirectionsDisplay
        MixtureDisplay ReliabilityDisplay cluster_report""",
}

MIXTURE_PARAMETERS = {
    **{"n_components": 1, "entmax_alpha": 1.0, "temperature": 1.0, "background": False},
    **{"weight_concentration_prior": 1.0, "weight_floor": None, "flat_start": True},
    **{"n_init": 1, "init_params": "merging", "init_size": None},
    **{
        "weights_init": None,
        "means_init": None,
        "fixed": (),
        "random_state": None,
        "warm_start": False,
    },
    **{"tol": 1e-3, "max_iter": 100, "learning_decay": 0.7, "checkpoint": None},
    **{"verbose": 0, "verbose_interval": 10},
}
SHAPE = {"covariance_type": "full", "reg_covar": 1e-6, "missing_values": "error"}
GAUSSIAN_PARAMETERS = MIXTURE_PARAMETERS | SHAPE | {"precisions_init": None}
PARAMETERS = {
    VonMisesFisherMixture: MIXTURE_PARAMETERS
    | {"concentration_type": "free", "concentration_prior": None, "negentropy": "exact"}
    | {"concentrations_init": None, "size_limits": None},
    SparseGaussianMixture: GAUSSIAN_PARAMETERS
    | {"weight_concentration_prior": None, "size_limits": None},
    StudentTMixture: MIXTURE_PARAMETERS
    | SHAPE
    | {"degrees_of_freedom": "estimated", "scale_matrices_init": None},
    RelativeGMM: {name: GAUSSIAN_PARAMETERS[name] for name in GAUSSIAN_PARAMETERS.keys() - {"grow"}}
    | {"n_components": 2, "solver": "ecm", "order": "means"}
    | {"ordering_feature": 0, "clearance": 0.0},
    FisherVectorTransformer: {
        **{"mixture": None, "embeddings": None, "embedding_dim": 50, "fit_on": "types"},
        **{"gradients": ("means",), "geometry": "euclidean", "normalization": "fisher"},
        **{"power": 1.0, "norm": "l2", "random_state": None},
    },
    ClusterTracker: {
        **{"mixture": inspect.Parameter.empty, "window": 10, "reservoir_size": 4000},
        **{"min_size": 25, "half_life": 20.0, "significance": 0.05, "max_clusters": None},
        "random_state": None,
    },
    ComponentPath: {
        **{"estimator": inspect.Parameter.empty, "max_components": 50, "min_components": 1},
        **{"criterion": "slope", "validation_fraction": None, "refit": True},
        **{"random_state": None, "verbose": 0},
    },
    DirectionWhitener: {"strength": 0.25},
    DependencyModelWithValence: {
        **{"inference": "map", "init": "harmonic", "distance_power": 1.0, "temperature": 1.0},
        **{"tags": None, "unknown_tags": "error"},
        **{"weight_concentration_prior": 1.0, "weight_floor": 1e-4, "tol": 1e-4, "max_iter": 50},
        **{"random_state": None, "verbose": 0, "verbose_interval": 10},
    },
}
POSITIONAL = {"n_components", "mixture", "estimator", "strength"}

FIT = "converged_ n_iter_ lower_bound_ lower_bounds_"
ROWS = "n_features_in_ feature_names_in_"
MIXTURE = f"""{FIT} {ROWS} weights_ background_weight_ means_ labels_ probabilities_
    n_active_components_ n_parameters_ n_steps_ weight_seen_ effective_n_components_
    membership_temperature_"""
GAUSSIAN = f"{MIXTURE} background_bounds_ covariances_ precisions_ precisions_cholesky_"
ATTRIBUTES = {
    VonMisesFisherMixture: f"{MIXTURE} mean_directions_ concentrations_ size_offsets_",
    SparseGaussianMixture: f"{GAUSSIAN} size_offsets_",
    StudentTMixture: f"{MIXTURE} background_bounds_ scale_matrices_ degrees_of_freedom_",
    RelativeGMM: f"{GAUSSIAN} differences_ scale_differences_",
    FisherVectorTransformer: f"{ROWS} mixture_ embeddings_ n_missing_embeddings_",
    ClusterTracker: f"{ROWS} mixture_ ids_ labels_ clusters_ sizes_ events_ n_batches_",
    ComponentPath: f"""{ROWS} best_estimator_ best_n_components_ best_index_ best_nodes_ results_
        linkage_ leaf_labels_ leaf_weights_ labels_""",
    DirectionWhitener: f"{ROWS} mean_ covariance_ whitening_ weight_seen_",
    DependencyModelWithValence: f"{FIT} tags_ root_log_prob_ stop_log_prob_ choose_log_prob_",
}
MIXTURE_METHODS = {
    **dict.fromkeys(["fit", "partial_fit", "fit_predict"], "X y sample_weight known_labels"),
    "score": "X y sample_weight",
    **dict.fromkeys(["aic", "bic", "icl"], "X sample_weight"),
    **dict.fromkeys(["predict", "predict_proba", "responsibilities"], "X"),
    **{"score_samples": "X", "transform": "X", "sample": "n_samples"},
    "calibrate": "X n_resamples sample_weight known_labels random_state",
}
BOX = "background_weight background_bounds params"
ELLIPTICAL_METHODS = MIXTURE_METHODS | {
    **{"impute": "X", "marginal": "features", "condition": "features values"},
    "predict_features": "features X quantiles",
}
GAUSSIAN_METHODS = ELLIPTICAL_METHODS | {"from_parameters": f"weights means covariances {BOX}"}
METHODS = {
    VonMisesFisherMixture: MIXTURE_METHODS
    | {
        "divergence": "X",
        "from_parameters": """weights means mean_directions concentrations background_weight
            params""",
    },
    SparseGaussianMixture: GAUSSIAN_METHODS,
    StudentTMixture: ELLIPTICAL_METHODS
    | {"from_parameters": f"weights means scale_matrices degrees_of_freedom {BOX}"},
    RelativeGMM: GAUSSIAN_METHODS,
    FisherVectorTransformer: {
        **{"fit": "X y", "transform": "X", "fit_transform": "X y fit_params"},
        "get_feature_names_out": "input_features",
    },
    ClusterTracker: {
        **dict.fromkeys(["fit", "partial_fit"], "X y sample_weight known_labels"),
        "predict": "X",
    },
    ComponentPath: {
        **dict.fromkeys(["fit", "fit_predict"], "X y sample_weight known_labels"),
        "score": "X y sample_weight",
        **dict.fromkeys(["predict", "predict_proba", "score_samples"], "X"),
        "cut": "n_components X",
    },
    DirectionWhitener: {
        **dict.fromkeys(["fit", "partial_fit"], "X y sample_weight"),
        **{"transform": "X", "get_feature_names_out": "input_features"},
    },
    DependencyModelWithValence: {
        **{"fit": "X y", "predict": "X", "score": "X y", "score_samples": "X"},
        **{"from_parameters": "tags root stop choose options", "sample": "n_samples max_length"},
    },
}


@pytest.mark.parametrize("module", NAMES)
def test_names(module):
    if module == "skvmf.plotting":
        pytest.importorskip("matplotlib")
    result = importlib.import_module(module)
    assert set(result.__all__) == set(NAMES[module].split())
    assert all(getattr(result, name) is not None for name in result.__all__)


def loaded_by(code):
    """Return the modules that are loaded after some lines of code."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_packages_are_loaded_when_they_are_asked_for():
    packages = {f"skvmf.{name}" for name in dir(skvmf) if name not in skvmf.__all__}
    assert packages >= {module for module in NAMES if module.count(".") == 1}
    assert not loaded_by("import skvmf") & {*packages, "numba", "sklearn"}


def test_a_mixture_is_loaded_without_others():
    packages = {f"skvmf.{name}" for name in dir(skvmf) if name not in skvmf.__all__}
    loaded = loaded_by("from skvmf import VonMisesFisherMixture")
    assert loaded & packages == {"skvmf.distributions", "skvmf.mixture"}
    assert "skvmf.mixture._vonmises_fisher" in loaded
    others = {"_cluster_tracker", "_relative_gmm", "_sparse_gaussian", "_student_t"}
    assert not loaded & {f"skvmf.mixture.{name}" for name in others}
    optional = {"matplotlib", "torch", "dask", "distributed", "gensim", "skimage", "mpmath"}
    assert not loaded & optional


def test_names_of_the_package_are_those_of_its_parts():
    assert skvmf.mixture.VonMisesFisherMixture is skvmf.VonMisesFisherMixture
    assert set(dir(skvmf.mixture)) == set(skvmf.mixture.__all__)
    with pytest.raises(AttributeError, match=r"module 'skvmf\.mixture' has no attribute 'GMM'"):
        _ = skvmf.mixture.GMM
    assert skvmf.ComponentPath is ComponentPath
    assert skvmf.component_summary is skvmf.inspection.component_summary
    with pytest.raises(AttributeError, match="module 'skvmf' has no attribute 'clustering'"):
        _ = skvmf.clustering


@pytest.mark.parametrize("estimator", PARAMETERS)
def test_signature(estimator):
    signature = inspect.signature(estimator).parameters
    assert {name: p.default for name, p in signature.items()} == PARAMETERS[estimator]
    positional = [name for name, p in signature.items() if p.kind is not p.KEYWORD_ONLY]
    assert positional == [name for name in signature if name in POSITIONAL]


@pytest.mark.parametrize("estimator", METHODS)
def test_methods(estimator):
    for name, expected in METHODS[estimator].items():
        parameters = inspect.signature(getattr(estimator, name)).parameters
        assert [parameter for parameter in parameters if parameter != "self"] == expected.split(), (
            name
        )


@pytest.mark.parametrize("module", NAMES)
def test_help_shows_the_names_of_types(module):
    pytest.importorskip("matplotlib")
    package = importlib.import_module(module)
    public = [getattr(package, name) for name in package.__all__]
    functions = [member for member in public if inspect.isroutine(member)]
    for member in filter(inspect.isclass, public):
        functions += [
            member,
            *(f for name, f in inspect.getmembers(member, callable) if name[0] != "_"),
        ]
    for function in functions:
        if function.__module__.startswith("skvmf"):
            for name, parameter in inspect.signature(function).parameters.items():
                assert len(str(parameter.annotation)) < 160, (function, name)


def fitted(estimator):
    """Return an estimator fitted to data that has names where it may."""
    if estimator is DependencyModelWithValence:
        return estimator(max_iter=2, tol=1e9).fit([["N", "V"], ["V", "N", "N"]])
    pandas = pytest.importorskip("pandas")
    data = np.abs(np.random.default_rng(0).normal(size=(30, 3)))
    frame = pandas.DataFrame(data, columns=["a", "b", "c"])
    if estimator is FisherVectorTransformer:
        mixture = VonMisesFisherMixture(2, tol=1e9, random_state=0)
        return estimator(mixture, embeddings=np.eye(3, 4) + 0.1).fit(frame)
    if estimator is ComponentPath:
        mixture = VonMisesFisherMixture(tol=1e9, random_state=0)
        return estimator(mixture, max_components=3).fit(frame)
    if estimator is ClusterTracker:
        return estimator(VonMisesFisherMixture(2, tol=1e9, random_state=0)).fit(frame)
    if estimator is DirectionWhitener:
        return estimator().fit(frame)
    return estimator(random_state=0, tol=1e9).fit(frame)


@pytest.mark.parametrize("estimator", ATTRIBUTES)
def test_fitted_attributes_are_documented_and_no_others(estimator):
    result = {name for name in vars(fitted(estimator)) if name[-1] == "_" and name[0] != "_"}
    assert result == set(ATTRIBUTES[estimator].split())
    section = inspect.getdoc(estimator).split("Attributes\n")[1].split("\n\n")[0]
    documented = {line.split(" : ")[0] for line in section.splitlines() if " : " in line}
    assert result == {name for name in documented if name.isidentifier()}


@pytest.mark.parametrize("estimator", ATTRIBUTES)
def test_a_pickle_of_another_version_warns(estimator):
    result = fitted(estimator)
    state, again = result.__getstate__(), pickle.loads(pickle.dumps(result))
    assert state["_skvmf_version"] == __version__
    assert "_skvmf_version" not in vars(again)
    with pytest.warns(UserWarning, match=rf"{estimator.__name__} was pickled with skvmf 0\.0"):
        again.__setstate__(state | {"_skvmf_version": "0.0"})
