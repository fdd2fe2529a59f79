"""Hints for the names of other libraries, and for wrong ones."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from reprlib import repr as short
from typing import Any

from .._sklearn import Method

_NO_PRIOR = (
    "means and covariances have no prior; reg_covar regularizes covariances, and "
    "weight_concentration_prior is the prior on the weights"
)
_NUMBER = "n_components is the number of components, and skvmf.ComponentPath recommends one"
_OUTLIERS = "background=True gives outliers the label -1, and score_samples is low for them"
_SIZES = (
    "size_limits of VonMisesFisherMixture and SparseGaussianMixture are the least and the largest "
    "size of a cluster, such as (20, 100) rows or (0.5, 1.25) times the mean"
)
NUMBERS = "n_clusters", "k", "n_topics", "nr_topics", "min_topic_size", "eps"
_LIMITS = "size_min", "size_max", "max_points_per_centroid", "balanced", "size_limits"
# Parameters and attributes of other libraries, as the migration guide lists them, and of other
# estimators here.
HINTS = {
    **dict.fromkeys(NUMBERS, _NUMBER),
    **dict.fromkeys(_LIMITS, _SIZES),
    "min_cluster_size": f"{_NUMBER}; {_SIZES}",
    **dict.fromkeys(["min_samples", "contamination", "outlier_scores_"], _OUTLIERS),
    "cluster_selection_method": "skvmf.ComponentPath(mixture) has a criterion, and cut returns "
    "labels of any number of clusters",
    "init": "starts are chosen by init_params",
    **dict.fromkeys(["nruns", "nredo"], "n_init is the number of starts"),
    **dict.fromkeys(["n_iter", "niter"], "max_iter is the maximum number of EM steps"),
    **dict.fromkeys(["seed", "random_seed"], "random_state is the seed"),
    "metric": "a VonMisesFisherMixture compares rows by the cosine, Gaussian mixtures by "
    "Mahalanobis distances",
    **dict.fromkeys(
        ["spherical", "normalize"], "a VonMisesFisherMixture uses only the direction of rows"
    ),
    "reltol": "tol is the smallest gain per step of the mean log-likelihood",
    "copy_x": "X is never changed",
    "n_jobs": "a fit uses all cores; limit them with threadpoolctl.threadpool_limits or "
    "OMP_NUM_THREADS",
    "batch_size": "partial_fit takes batches of any size",
    "grow": "partial_fit keeps its number of components; warm_start=True with a larger "
    "n_components adds some, and a fresh fit may have any number",
    "posterior_type": "temperature=0 is hard, and temperature=1 (the default) soft",
    "force_weights": "fixed=('weights',) keeps the weights of weights_init",
    "weights": "the weights of rows are the argument sample_weight of fit, and weights_init are "
    "the first weights of components",
    "kappa": "concentrations_init sets the first concentrations, and fixed=('concentrations',) "
    "keeps them",
    "df": "a StudentTMixture has degrees_of_freedom",
    "modelNames": "Gaussian mixtures have covariance_type, and VonMisesFisherMixture has "
    "concentration_type",
    "weight_concentration_prior_type": "the prior is always a modified Dirichlet distribution; a "
    "weight_concentration_prior below 0 removes components",
    **dict.fromkeys(["mean_prior", "mean_precision_prior", "covariance_prior"], _NO_PRIOR),
    "degrees_of_freedom_prior": _NO_PRIOR,
    "covariance_type": "use concentration_type='free' or 'tied'",
    "reg_covar": "concentration_prior keeps concentrations finite",
    "precisions_init": "use concentrations_init",
    "concentrations_init": "use precisions_init",
    "concentration_type": "use covariance_type",
    "concentration_prior": "reg_covar regularizes covariances",
    "missing_values": "Gaussian and Student-t mixtures have it; impute values of directions first",
    "negentropy": "it is a parameter of VonMisesFisherMixture",
    **dict.fromkeys(
        ["degrees_of_freedom", "scale_matrices_init"], "it is a parameter of StudentTMixture"
    ),
    **dict.fromkeys(["order", "ordering_feature", "clearance"], "it is a parameter of RelativeGMM"),
    **dict.fromkeys(
        ["cluster_centers_", "components_", "centroids"], "component means are in means_"
    ),
    "row_labels_": "the labels are in labels_",
    "inertia_": "the objective is in lower_bound_, and score returns the mean log-density",
    "feature_names_in_": "only a fit to rows with names sets it, such as a data frame",
    "approximate_predict": "predict and predict_proba take new rows",
    "condensed_tree_": "skvmf.ComponentPath(mixture) has a tree, in linkage_",
    "get_topic_info": "skvmf.component_summary(mixture, X, texts=texts) is such a table",
}


_SIMILARITY = 0.8  # a letter or two apart; with less, other words are suggested


def hint(hints: Mapping[str, str], name: str, known: Iterable[str]) -> str | None:
    """Return what to write instead of a wrong name, None without an idea."""
    if name in hints:
        return hints[name]
    similar = get_close_matches(name, known, n=1, cutoff=_SIMILARITY)
    return f"did you mean {similar[0]!r}" if similar else None


def attribute_hint(hints: Mapping[str, str], name: str, attributes: Iterable[str]) -> str | None:
    """Return what to write instead of a wrong attribute, None without an idea."""
    if name in hints or name.startswith("_") or not name.endswith("_"):
        return hints.get(name)
    fitted = [each for each in attributes if each.endswith("_") and not each.startswith("_")]
    if not fitted:
        return "there are no fitted attributes before fit"
    return hint(hints, name, fitted)


def with_hints(constructor: Method) -> Method:
    """Decorate a constructor: wrong arguments raise an error that helps."""

    @wraps(constructor)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return constructor(self, *args, **named)
        except TypeError:
            wrong = _wrong_arguments(self, constructor, args, named)
            if wrong is None:
                raise
            raise TypeError(wrong) from None

    return call  # type: ignore[return-value]


def _wrong_arguments(
    self: Any, constructor: Method, args: Sequence[object], named: Iterable[str]
) -> str | None:
    """Return what is wrong with arguments and what to write instead, None without an idea."""
    known = signature(constructor).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
        return None
    who = type(self).__name__
    to_name = [name for name, each in known.items() if each.kind is Parameter.KEYWORD_ONLY]
    n_positional = len(known) - len(to_name) - 1
    if to_name and len(args) > n_positional:
        return (
            f"{who} takes {n_positional} of its arguments by position, got {len(args)}: name the "
            f"others, such as {to_name[0]}={short(args[n_positional])}."
        )
    for name in named:
        if name not in known:
            advice = hint(self._hints, name, known)
            if advice is not None:
                return f"{who} has no parameter {name!r}: {advice}."
    return None
