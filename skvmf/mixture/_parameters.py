"""The parameters that all mixtures share, hints for misspelt ones, and shared docstrings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from inspect import Parameter, Signature, cleandoc, signature
from numbers import Integral, Real
from os import PathLike
from textwrap import shorten
from typing import Any, ClassVar, Literal, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._engine.checkpoint import WARM_START, Description, digest
from .._engine.contracts import as_dict
from .._engine.model import FenchelYoungPosterior, FittedMixture, ModifiedDirichlet
from .._engine.rows import RowSource
from .._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    Interval,
    SomeOf,
    StrOptions,
    TransformerMixin,
)
from .._typing import Numbers, ParameterConstraints, RandomState
from .._version import __version__
from ..distributions._arguments import checked_array

# Docstrings of estimators: what several have in common is written once, in a base class.


_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_NAME = re.compile(r"^(?=\w)", re.MULTILINE)


def complete_docstring(cls: type) -> None:
    """Add the descriptions of the bases to a class that has a constructor of its own.

    Parameters are listed in the order of the signature. Attributes of the class come before those
    of its bases. A description replaces that of a base.
    """
    if cls.__doc__ is None or "__init__" not in vars(cls):
        return
    own = _sections(cls.__doc__)
    described: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in cls.__mro__:
        sections = _sections(base.__doc__ or "")
        for title, known in described.items():
            entries = _entries(sections.get(title, ""))
            known |= {name: text for name, text in entries.items() if name not in known}
    parameters = described["Parameters"]
    in_order = [name for name in signature(cls).parameters if name in parameters]
    described["Parameters"] = {name: parameters[name] for name in in_order}
    summary = own.pop("")
    own = dict.fromkeys(described, "") | own
    own |= {title: "\n".join(known.values()) + "\n\n" for title, known in described.items()}
    parts = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in own.items()]
    cls.__doc__ = summary + "".join(parts).rstrip() + "\n"


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes before has no title."""
    before, *rest = _TITLE.split(cleandoc(docstring))
    return {"": before} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entry of each name that a section describes."""
    entries = [entry.rstrip() for entry in _NAME.split(section) if entry.strip()]
    return {entry.partition(" :")[0]: entry for entry in entries}


# Hints.


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


# The parameters that all mixtures share: what they mean, their ranges, and what they stand for.


InitParams: TypeAlias = (
    Literal["merging", "kmeans", "k-means++", "random", "random_from_data"] | Numbers
)
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


class MixtureParameters(
    ArgumentHints,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DensityMixin,
    BaseEstimator,
):
    """The parameters of every mixture. Estimators describe only what is different.

    Parameters
    ----------
    n_components : int, default=1
        Number of components. With a `weight_concentration_prior` below 1 it is an upper bound.
    entmax_alpha : float, default=1.0
        How rows are assigned to components. 1 is softmax, as in standard EM. Above 1 it is
        alpha-entmax, which gives responsibilities that are exactly 0.
    temperature : float, default=1.0
        Divides the log-densities. Larger values make responsibilities softer, and 0 is hard
        (classification) EM. With ``entmax_alpha=1``, responsibilities are proportional to
        ``(pi_k p_k) ** (1 / temperature)``. 1 is low enough for any number of features. If it is
        far too large, all rows get the same memberships and `fit` warns.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Parameter of the modified Dirichlet prior on the weights: any real number. 1 is a flat
        prior. A number below 1, and especially below 0, removes small components.
    weight_floor : float, default=None
        Smallest weight of a component that is not pruned. None is 0 if every prior is at
        least 1, otherwise ``min(1e-5, 1 / (2 * n_components))``.
    flat_start : bool, default=True
        Whether a fit with a prior below 1 first converges with a flat prior. Without it, a
        strong prior may remove all components before they have formed.
    background : bool, default=False
        Whether to add a background: a uniform density, whose weight is fitted, for rows that
        belong to no component. Its domain is the sphere for directions, otherwise the box
        around the data. Rows that most likely belong to it get the label -1.
    n_init : int, default=1
        Number of starts. The fit with the largest lower bound is kept. Starts by merging are
        compared on the sample, and only the best one is fitted to all rows. So more of them can
        end with a slightly lower `lower_bound_`, which more of the other starts cannot.
    init_params : {'merging', 'kmeans', 'k-means++', 'random', 'random_from_data'} or \
array-like, default='merging'
        How a fit starts. 'merging' fits four times too many components to a sample and merges
        pairs that lose the least likelihood. Then it splits and merges as long as that helps. It
        is the most reliable start. 'kmeans' is k-means (spherical k-means for directions), and
        'k-means++' only its seeds, both on a sample. 'random' assigns rows to components at
        random. 'random_from_data' uses distinct random rows as means, with equal weights and the
        spread of all rows. An array is a given partition: labels (n_samples,) or
        responsibilities (n_samples, n_components).
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn in proportion
        to the sample weights. None is 100 per component and at least 10,000, or twice as many
        with a background.
    weights_init : array-like of shape (n_components,), default=None
        Initial weights.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, instead of `init_params`.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights) and
        'means' (`means_init`). With `warm_start` and in `partial_fit`, they keep the values of
        the last fit.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most `tol`.
    max_iter : int, default=100
        Maximum number of EM steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit.
    learning_decay : float, default=0.7
        How fast `partial_fit` forgets. A batch with a fraction w of the weight seen so far
        gets the weight ``w ** learning_decay`` in the running average. With 1, all rows count
        equally. Smaller values follow a stream that changes. On a stationary stream any value
        above 0.5 converges.
    checkpoint : str or path-like, default=None
        A file in which `fit` saves its progress. If the file exists, `fit` continues from it,
        and the result is bit-identical to that of an uninterrupted fit. A checkpoint of other
        data, parameters or versions raises an error.
    verbose : int, default=0
        1 prints each start (rows of the sample, components before and after merging) and the
        progress of the iterations (seconds, bound, gain, tolerance).
    verbose_interval : int, default=10
        Number of iterations between two lines.
    """

    # Defaults for estimators whose constructors do not have a parameter.
    n_components: int = 1
    entmax_alpha: float = 1.0
    temperature: float = 1.0
    weight_concentration_prior: float | Numbers | None = 1.0
    weight_floor: float | None = None
    flat_start: bool = True
    background: bool = False
    n_init: int = 1
    init_params: InitParams = "merging"
    init_size: int | None = None
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    fixed: Sequence[str] = ()
    tol: float = 1e-3
    max_iter: int = 100
    random_state: RandomState = None
    warm_start: bool = False
    learning_decay: float = 0.7
    checkpoint: str | PathLike[str] | None = None
    verbose: int = 0
    verbose_interval: int = 10
    store_path: bool = False

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "background": ["boolean"],
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "weight_concentration_prior": [Real, "array-like"],
        "weight_floor": [Interval(Real, 0, 1, closed="left"), None],
        "flat_start": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [
            StrOptions({"merging", "kmeans", "k-means++", "random", "random_from_data"}),
            "array-like",
        ],
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "fixed": [SomeOf({"weights", "means"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "learning_decay": [Interval(Real, 0, 1, closed="right")],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def _posterior(self) -> FenchelYoungPosterior:
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self) -> ModifiedDirichlet:
        given = self.weight_concentration_prior
        if given is None:
            given = 1.0 if self.entmax_alpha > 1 or "weights" in self.fixed else 0.0
        alpha = checked_array(given, "weight_concentration_prior")
        K = self.n_components
        if alpha.shape not in [(), (K,)] or not np.isfinite(alpha).all():
            raise ValueError(
                "weight_concentration_prior should be a finite number or one for each of the "
                f"{K} components, got {self.weight_concentration_prior!r}."
            )
        floor = self.weight_floor
        if "weights" in self.fixed and ((alpha != 1).any() or floor or self.background):
            raise ValueError(
                f"fixed={self.fixed!r} keeps the weights, but weight_concentration_prior, "
                "weight_floor and background need weights that are estimated. Leave them out, or "
                "remove 'weights' from fixed."
            )
        if floor is None:
            floor = 0.0 if (alpha >= 1).all() else min(1e-5, 1 / (2 * K))
        if floor == 0 and (alpha < 1).any():
            raise ValueError(
                "weight_floor=0 cannot be used with a weight_concentration_prior below 1: the "
                "density would be unbounded. Give a positive weight_floor, or None."
            )
        n_weights = K + bool(self.background)
        if floor * n_weights > 1:
            what = "components and a background" if self.background else "components"
            raise ValueError(
                f"weight_floor={floor} is too high: {K} {what} need at most 1/{n_weights}."
            )
        alpha = alpha.astype(np.float64)
        if self.background and (alpha != 1).any():  # the background's own prior is flat
            alpha = np.append(np.broadcast_to(alpha, K), 1.0)
        return ModifiedDirichlet(alpha[()], float(floor))


# What two runs of one fit have in common, so that the second may resume from the first.


_WITHOUT_EFFECT = {"checkpoint", "verbose", "verbose_interval", "warm_start", "learning_decay"}


def fit_description(
    estimator: str, params: dict[str, object], rows: RowSource, warm_start: FittedMixture | None
) -> Description:
    """Return what two runs of one fit have in common, by name."""
    description = {
        "the version of skvmf": __version__,
        "the estimator": estimator,
        "the number of rows": str(rows.n_rows),
        "the number of features": str(rows.n_features),
        "the dtype": rows.dtype.name,
    }
    if warm_start is not None:
        parts = [
            warm_start.params.to_dict(),
            *map(as_dict, (warm_start.family, warm_start.background)),
        ]
        description[WARM_START] = digest(parts)
    given = sorted(params.items())
    return description | {n: _as_text(value) for n, value in given if n not in _WITHOUT_EFFECT}


def _as_text(value: Any) -> str:
    """Return a parameter as a short text that tells it from others."""
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state(legacy=False)
        return f"RandomState {state['bit_generator']} {digest(state)}"
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real):
        return f"{float(value):.17g}"  # 1 and 1.0 are the same
    if isinstance(value, str | tuple) or np.ndim(value) == 0:
        return repr(value.item() if isinstance(value, np.generic) else value)
    array = np.asarray(value)
    return f"array of shape {array.shape} {digest(array)}"
