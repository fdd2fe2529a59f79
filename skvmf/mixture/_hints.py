"""Error messages for wrong names, and for what is not rows of numbers."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from inspect import Parameter, Signature, signature
from os import PathLike
from textwrap import shorten
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from ._docstrings import complete_docstring

_NO_PRIOR = (
    "means and covariances have no prior; reg_covar regularizes covariances, and "
    "weight_concentration_prior is the prior on the weights"
)
# What to write instead of the parameters of other libraries, as the migration guide lists them, and
# of mixtures of other families here.
_PARAMETERS = {
    "n_clusters": "n_components is the number of components",
    "k": "n_components is the number of components",
    "init": "starts are chosen by init_params",
    "nruns": "n_init is the number of starts",
    "nredo": "n_init is the number of starts",
    "n_iter": "max_iter is the maximum number of EM steps",
    "niter": "max_iter is the maximum number of EM steps",
    "seed": "random_state is the seed",
    "max_points_per_centroid": "EM uses all rows, and init_size is the size of the start's sample",
    "min_cluster_size": "n_components is the number of components, and "
    "skvmf.model_selection.ComponentPath recommends one",
    "metric": "a VonMisesFisherMixture compares rows by the cosine, Gaussian mixtures by "
    "Mahalanobis distances",
    "spherical": "a VonMisesFisherMixture uses only the direction of rows",
    "reltol": "tol is the smallest gain per step of the mean log-likelihood",
    "normalize": "a VonMisesFisherMixture uses only the direction of rows",
    "copy_x": "X is never changed",
    "n_jobs": "a fit uses all cores; limit them with threadpoolctl.threadpool_limits or "
    "OMP_NUM_THREADS",
    "batch_size": "partial_fit takes batches of any size",
    "posterior_type": "temperature=0 is hard, and temperature=1 (the default) soft",
    "force_weights": "fixed=('weights',) keeps the weights of weights_init",
    "kappa": "concentrations_init sets the first concentrations, and fixed=('concentrations',) "
    "keeps them",
    "weight_concentration_prior_type": "the prior is always a modified Dirichlet distribution; a "
    "weight_concentration_prior below 0 removes components",
    "mean_prior": _NO_PRIOR,
    "mean_precision_prior": _NO_PRIOR,
    "covariance_prior": _NO_PRIOR,
    "degrees_of_freedom_prior": _NO_PRIOR,
    "covariance_type": "use concentration_type='free' or 'tied'",
    "reg_covar": "concentration_prior keeps concentrations finite",
    "precisions_init": "use concentrations_init",
    "concentrations_init": "use precisions_init",
    "concentration_type": "use covariance_type",
    "concentration_prior": "reg_covar regularizes covariances",
}


class _Unquoted(str):
    """An annotation as it is written, which signatures would show in quotes."""

    __repr__ = str.__str__


def _unquoted(parameter: Parameter) -> Parameter:
    if not isinstance(parameter.annotation, str):
        return parameter
    return parameter.replace(annotation=_Unquoted(parameter.annotation))


class ArgumentHints:
    """A constructor that says what to write instead of wrong arguments."""

    __signature__: ClassVar[Signature]
    _parameter_hints: ClassVar[dict[str, str]] = _PARAMETERS
    _estimators: ClassVar[list[type["ArgumentHints"]]] = []  # all that have been defined

    def __init_subclass__(cls, **options: object) -> None:
        """Let `help` show the parameters of `__init__`, and what base classes say about them."""
        super().__init_subclass__(**options)
        of_init = signature(cls.__init__)
        cls.__signature__ = of_init.replace(
            parameters=[_unquoted(each) for each in list(of_init.parameters.values())[1:]]
        )
        complete_docstring(cls)
        ArgumentHints._estimators.append(cls)

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse arguments that the constructor does not have."""
        known = cls.__signature__.parameters
        named = [name for name, each in known.items() if each.kind is Parameter.KEYWORD_ONLY]
        n_positional = len(known) - len(named)
        if named and len(args) > n_positional:
            raise TypeError(
                f"{cls.__name__} takes {n_positional} of its arguments by position, got "
                f"{len(args)}: name the others, such as {named[0]}={args[n_positional]!r}."
            )
        for name in parameters.keys() - known.keys() if named else ():
            hint = cls._parameter_hints.get(name) or cls._guessed_hint(name)
            if hint is not None:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}: {hint}.")
        return super().__new__(cls)

    @classmethod
    def _guessed_hint(cls, name: str) -> str | None:
        """Return the most similar parameter, or the estimator that has the parameter."""
        similar = get_close_matches(name, cls.__signature__.parameters, n=1, cutoff=0.8)
        if similar:
            return f"did you mean {similar[0]!r}"
        owners = [each for each in cls._estimators if name in each.__signature__.parameters]
        return f"it is a parameter of {owners[0].__name__}" if owners else None


def attribute_hint(name: str, attributes: Iterable[str]) -> str | None:
    """Return what to write instead of a wrong name of a fitted attribute, None without an idea."""
    if name.startswith("_") or not name.endswith("_"):
        return None
    fitted = [each for each in attributes if each.endswith("_") and not each.startswith("_")]
    if not fitted:
        return "there are no fitted attributes before fit"
    similar = get_close_matches(name, fitted, n=1, cutoff=0.8)
    return f"did you mean {similar[0]!r}" if similar else None


def holds_texts(X: object) -> bool:
    """Return whether X is a text or a sequence of texts."""
    if hasattr(type(X), "to_numpy") and getattr(X, "ndim", 2) == 1:  # a series of texts
        X = np.asarray(X)
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and len(X) > 0 else None
    return isinstance(X, str) or isinstance(first, str)


def refuse_no_rows(X: object) -> None:
    """Refuse texts, paths and generators."""
    if isinstance(X, str | PathLike) or holds_texts(X):
        subject = (
            f"X={X!r} is a text or a path" if isinstance(X, str | PathLike) else "X holds texts"
        )
        raise ValueError(
            f"{subject}, and a mixture takes rows of numbers. Read a file first, for example with "
            "numpy.load or pandas.read_csv. Turn texts into rows first, for example with "
            "sklearn.feature_extraction.text.TfidfVectorizer or a sentence encoder; both can be "
            "steps of a Pipeline."
        )
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, and a fit reads the rows "
            "many times. Give all rows, for example np.vstack(list(X)), or call partial_fit with "
            "each batch."
        )


def refuse_text_column(X: Any) -> None:
    """Refuse a data frame with a column that does not hold numbers."""
    for name in getattr(X, "columns", ()):
        values = np.asarray(X[name])
        try:
            if values.dtype.kind in "mM":  # which NumPy would turn into numbers
                raise TypeError(f"its type is {values.dtype}")
            values.astype(np.float64)
        except (TypeError, ValueError) as error:
            reason = shorten(str(error), 80, placeholder=" ...")
            raise ValueError(
                f"Column {name!r} of X does not hold numbers: {reason}. Leave it out, or encode "
                "it, for example with sklearn.compose.make_column_transformer."
            ) from error


def refuse_sparse_rows(to_dense: str) -> NoReturn:
    """Refuse sparse rows if components need dense ones."""
    raise TypeError(
        "Sparse data was passed, and this mixture takes dense rows. VonMisesFisherMixture takes "
        "sparse rows; sklearn.decomposition.TruncatedSVD makes dense rows of fewer features; "
        f"{to_dense} makes rows dense as they are."
    )
