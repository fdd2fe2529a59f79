"""ComponentPath: one fit, and a mixture of every number of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from numbers import Integral, Real
from time import perf_counter
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
)

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cut_tree, leaves_list
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from .._engine.em.merge_path import MergePath
from .._engine.em.mixture import FittedMixture
from .._engine.rows.parallel import limited_blas
from .._sklearn import (
    Interval,
    MetaEstimatorMixin,
    RowsEstimator,
    StrOptions,
    all_or_nothing,
    available_if,
    check_sample_weight,
    fit_context,
    num_samples,
    safe_indexing,
)
from .._typing import Array, MatrixLike, ParameterConstraints, RandomState, is_integer, warn
from ..mixture._base import BaseMixture
from ..mixture._hints import HINTS, NUMBERS, with_hints
from ..mixture._rows import in_memory, refuse_no_rows

CriterionName: TypeAlias = Literal["slope", "bic", "icl", "held_out"]
CRITERIA = frozenset(get_args(CriterionName))
Criterion: TypeAlias = CriterionName | Callable[[dict[str, Any]], Any]

_FAR_TOO_MANY = 2 / 3  # of max_components, from which components are far too many
_MIN_PENALTY = 1.5  # nats per parameter
_TOO_FEW = 1 / 10  # of max_components, up to which a choice by the slope needs a second look


def slope_criterion(results: dict[str, Array], max_components: int) -> Array:
    """Return twice the penalised negative log-likelihood for each number of components.

    The penalty per parameter is twice the slope of the log-likelihood from two thirds of the
    largest number on (Birge and Massart, Probability Theory and Related Fields 138, 2007), and at
    least that of AIC3 (Bozdogan, 1994): a path does not find all that additional components could
    gain.
    """
    p, L = results["n_parameters"], results["log_likelihood"]
    large = _far_too_many(results, max_components)
    slope = np.polyfit(p[large], L[large], 1)[0] if len(np.unique(p[large])) > 1 else 0.0
    return 2 * (max(2 * slope, _MIN_PENALTY) * p - L)


def warn_of_slope(results: dict[str, Array], max_components: int) -> None:
    """Warn if components are too few for the slope, or the likelihood asks for all of them."""
    K = results["n_components"]
    large = _far_too_many(results, max_components)
    if len(K) > 1 and K.max() < max_components and np.count_nonzero(large) < 2:
        warn(
            f"criterion='slope' could not estimate a slope and used the penalty of AIC3: of "
            f"max_components={max_components}, only {K.max()} were left after pruning. Raise "
            "weight_concentration_prior, or choose another criterion.",
            UserWarning,
        )
    chosen = K[np.argmin(results["slope"])]
    if chosen <= _TOO_FEW * max_components and np.argmin(results["bic"]) == len(K) - 1:
        warn(
            f"criterion='slope' chose {chosen} of up to {max_components} components, but 'bic' "
            f"{K.max()}: the last components help as much as the first ones, so the slope cannot "
            "tell which are needed. Raise max_components, or choose a number from results_.",
            UserWarning,
        )


def _far_too_many(results: dict[str, Array], max_components: int) -> Array:
    """Return which numbers of components are in the upper third."""
    return results["n_components"] >= _FAR_TOO_MANY * max_components


_RISE = 1e-12  # least relative difference of a distance from the one before


def make_linkage(n_leaves: int, merges: Sequence[tuple[int, int, float]]) -> Array:
    """Return the linkage matrix of merges (node, node, loss) in order; distances rise strictly."""
    linkage = np.empty((len(merges), 4))
    sizes = np.ones(n_leaves + len(merges))
    before = 0.0
    for i, (a, b, loss) in enumerate(merges):
        before = max(loss, before * (1 + _RISE), np.finfo(float).tiny)
        sizes[n_leaves + i] = sizes[a] + sizes[b]
        linkage[i] = min(a, b), max(a, b), before, sizes[n_leaves + i]
    return linkage


def first_mixture(estimator: object, min_components: int, max_components: int) -> BaseMixture:
    """Return the mixture that a path begins with, not fitted; refuse other estimators."""
    if not isinstance(estimator, BaseMixture):
        raise TypeError(
            "estimator should be a mixture of skvmf, such as VonMisesFisherMixture(), got "
            f"{estimator!r}. A ComponentPath can be a step of a Pipeline, after the steps that "
            "prepare the rows."
        )
    if min_components > max_components:
        larger = f"min_components={min_components} is larger"
        raise ValueError(f"{larger} than max_components={max_components}.")
    if "n_components" not in estimator.get_params(deep=False):
        raise TypeError(
            f"A path sets n_components, which the constructor of {type(estimator).__name__} should "
            "take as a parameter."
        )
    first: BaseMixture = clone(estimator).set_params(n_components=max_components)
    if first.fixed and min_components < max_components:  # merging components would change them
        raise ValueError(
            f"fixed={first.fixed!r} does not go with a path, which merges components and "
            "estimates their parameters. Leave it out, or choose n_components with "
            "sklearn.model_selection.GridSearchCV."
        )
    for name in ("weight_concentration_prior", "degrees_of_freedom"):
        if np.ndim(getattr(first, name, 0.0)) > 0:
            raise ValueError(
                f"{name} should be one for all components: the mixtures of a path have "
                "different numbers of them."
            )
    return first


class Step(NamedTuple):
    """A mixture on the path, the nodes of its components, and its measures by name."""

    fitted: FittedMixture
    nodes: Array
    measures: dict[str, float]


_MANY = 1000  # components: up to so many a step removes at most one in 30, above one in 5


def fewer_components(K: int, least: int) -> list[int]:
    """Return the numbers of components of the steps that follow one with K."""
    numbers = []
    while least < K:
        K = max(K - max(1, (K - 1) // (30 if K <= _MANY else 5)), least)
        numbers.append(K)
    return numbers


P = ParamSpec("P")
R = TypeVar("R")


def _refitted(path: Any) -> bool:
    """Return True if there is a best estimator, otherwise raise the reason."""
    if not path.refit:
        raise AttributeError("With refit=False there is no best_estimator_: set refit=True.")
    return True


def _of_best(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method of mixtures as one of a path: that of its best mixture."""

    @wraps(method)
    def of_best(path: Any, /, *args: P.args, **named: P.kwargs) -> R:
        check_is_fitted(path)
        result: R = getattr(path.best_estimator_, method.__name__)(*args, **named)
        return result

    return available_if(_refitted)(of_best)


class ComponentPath(MetaEstimatorMixin, RowsEstimator):
    """Choose the number of components (clusters) of a mixture, and see their hierarchy.

    First, a mixture with `max_components` components is fitted. Then the two components whose merge
    loses the least likelihood are merged [1]_, and a few EM steps improve the mixture, down to
    `min_components`. Such a path takes much less time than separate fits. The merges form a tree:
    :class:`~skvmf.plotting.ComponentPathDisplay` draws `linkage_`, and :meth:`cut` returns labels
    for any number of clusters.

    Parameters
    ----------
    estimator : estimator instance
        Any mixture of skvmf, such as :class:`~skvmf.VonMisesFisherMixture`. It is cloned; its
        `n_components` is not used.
    max_components : int, default=50
        Number of components of the first mixture: three to five times the number that you expect.
    min_components : int, default=1
        Number of components of the last mixture.
    criterion : {'slope', 'bic', 'icl', 'held_out'} or callable, default='slope'
        How one of the mixtures is chosen: by the smallest value, and of equal values by the
        fewest components. 'slope' penalizes each parameter by twice the gain per parameter in
        the upper third of the path, which has far too many components, and by at least 1.5
        nats [2]_. 'bic' is right if clusters have exactly the shape of the components, and too
        large on embeddings. 'icl' adds twice the entropy of the responsibilities to it and prefers
        components that do not overlap [3]_. 'held_out' is minus the mean log-density of held-out
        rows. A callable gets `results_` and returns an array (n_steps,).
    validation_fraction : float, default=None
        Fraction of the rows that is held out. None is 0.2 for ``criterion="held_out"``,
        otherwise 0.
    refit : bool, default=True
        Whether the best mixture is fitted to convergence on all rows, as `best_estimator_`.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of held-out rows. The estimator has its own `random_state`.
    verbose : int, default=0
        Whether to print every tenth mixture of the path and the last. The estimator's own `verbose`
        is for the first fit.

    Attributes
    ----------
    best_estimator_ : estimator instance
        The best mixture, fitted to all rows; only with `refit`.
    best_n_components_ : int
        Its number of components.
    best_index_ : int
        Its position in `results_`.
    best_nodes_ : ndarray of shape (best_n_components_,)
        The node of the tree for each of its components, as numbered in `linkage_`.
    results_ : dict of ndarrays of shape (n_steps,)
        For each step, by increasing `n_components`: `n_parameters`, `lower_bound`,
        `log_likelihood` (the sum over the rows), `bic`, `icl`, `slope`, `held_out` if rows
        are held out, and `criterion`, the one that chose or what the callable returned. A
        path has every number below 60, above it steps of a thirtieth, and from 1000 on of a fifth.
        It ends before `min_components` if the background has every row of a smaller mixture.
    linkage_ : ndarray of shape (max_components - 1, 4)
        The tree, in the format of :func:`scipy.cluster.hierarchy.linkage`: two nodes, the
        log-likelihood that merging them loses, made to rise, and the number of components of the
        first mixture in the merged one.
    leaf_labels_ : ndarray of shape (n_samples,)
        The component of the first mixture that has each row.
    leaf_weights_ : ndarray of shape (max_components,)
        The weights of the first mixture.
    labels_ : ndarray of shape (n_samples,)
        Labels of the best mixture; only with `refit`.

    References
    ----------
    .. [1] Ward, "Hierarchical grouping to optimize an objective function", Journal of the
       American Statistical Association 58, 1963.
    .. [2] Birge and Massart, "Minimal penalties for Gaussian model selection", Probability
       Theory and Related Fields 138, 2007; Baudry, Maugis and Michel, "Slope heuristics:
       overview and implementation", Statistics and Computing 22, 2012.
    .. [3] Biernacki, Celeux and Govaert, "Assessing a mixture model for clustering with the
       integrated completed likelihood", IEEE Transactions on Pattern Analysis and Machine
       Intelligence 22, 2000.

    Examples
    --------
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.model_selection import ComponentPath
    >>> X, y = make_vonmises_fisher_blobs(1000, 10, centers=5, concentration=50, random_state=0)
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=12).fit(X)
    >>> path.best_n_components_
    5
    >>> len(set(path.cut(3)))
    3
    """

    _hints: ClassVar[Mapping[str, str]] = {
        **HINTS,
        **dict.fromkeys(BaseMixture._parameter_constraints, "it is a parameter of the estimator"),
        **dict.fromkeys(["n_components", *NUMBERS], "max_components is the largest number"),
    }
    best_estimator_: BaseMixture

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "estimator": "no_validation",  # with a message of our own
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "min_components": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions(set(CRITERIA)), callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "refit": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @with_hints
    def __init__(
        self,
        estimator: BaseMixture,
        *,
        max_components: int = 50,
        min_components: int = 1,
        criterion: Criterion = "slope",
        validation_fraction: float | None = None,
        refit: bool = True,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.max_components = max_components
        self.min_components = min_components
        self.criterion = criterion
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a mixture of each number of components, and choose one."""
        first = first_mixture(self.estimator, int(self.min_components), int(self.max_components))
        refuse_no_rows(X)
        if isinstance(sample_weight, int | float | np.number):  # as in fits of mixtures
            sample_weight = np.full(num_samples(X), sample_weight)
        X, sample_weight = indexable(X, sample_weight)
        with all_or_nothing(self), limited_blas():
            seen, weights, held_out = self._split(X, sample_weight)
            n_rows = num_samples(seen)
            if 0 < n_rows < self.max_components:  # the estimator refuses data without rows
                raise ValueError(
                    f"max_components={self.max_components} is more than the number of rows, "
                    f"n_samples = {n_rows}: lower it."
                )
            first.fit(seen, sample_weight=weights)
            path = first.__merge_path__(seen, weights)
            steps = self._walk(path, first, held_out)
            self._choose(steps)
            best = steps[self.best_index_]
            self.best_nodes_ = best.nodes
            self.linkage_ = make_linkage(self.max_components, path.merges)
            self.leaf_weights_ = np.array(first.weights_)
            leaf_labels = first.labels_ if held_out is None else first.predict(X)
            self.leaf_labels_ = np.asarray(leaf_labels)
            self._first = first.__with_fit__(first.__vector_model__().fitted)  # without labels
            self.n_features_in_ = first.n_features_in_
            if hasattr(first, "feature_names_in_"):
                self.feature_names_in_ = first.feature_names_in_
            if self.refit:
                refined = first.__with_fit__(best.fitted)
                refined.warm_start, refined.checkpoint = True, None  # the first fit has that file
                refined.fit(X, sample_weight=sample_weight)
                refined.warm_start = first.warm_start
                self.best_estimator_, self.labels_ = refined, refined.labels_
        return self

    def cut(self, n_components: int, X: MatrixLike | None = None) -> Array:
        """Return labels of rows for any number of clusters, without a fit.

        Cuts are nested: one more cluster splits one in two and leaves the others. They are
        coarser than the mixtures of the path, which are fitted again after each merge.

        Parameters
        ----------
        n_components : int
            Number of clusters, from 1 to `max_components`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            New rows: each gets the cluster of its component in the first mixture. None is the rows
            of the fit.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from 0, in the order of the dendrogram from left to right.
        """
        check_is_fitted(self)
        n_leaves = len(self.linkage_) + 1
        if not is_integer(n_components) or not 1 <= n_components <= n_leaves:
            raise ValueError(
                f"n_components should be a whole number from 1 to the {n_leaves} components "
                f"that the path began with, got {n_components!r}."
            )
        parts = np.zeros(1, dtype=np.intp)
        if n_leaves > 1:  # numbered along the dendrogram
            uncut = cut_tree(self.linkage_, int(n_components))[:, 0]
            _, first = np.unique(uncut[leaves_list(self.linkage_)], return_index=True)
            parts = np.argsort(np.argsort(first))[uncut]
        leaves = self.leaf_labels_ if X is None else np.asarray(self._first.predict(X))
        return np.append(parts, -1)[leaves]  # -1 is the background

    def fit_predict(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        _refitted(self)
        return self.fit(X, sample_weight=sample_weight).labels_

    fit_predict.__doc__ = BaseMixture.fit_predict.__doc__
    predict = _of_best(BaseMixture.predict)
    predict_proba = _of_best(BaseMixture.predict_proba)
    score_samples = _of_best(BaseMixture.score_samples)
    score = _of_best(BaseMixture.score)

    # The steps of a fit.

    def _split(
        self, X: MatrixLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """Return the rows of the path and their weights, and the held-out ones."""
        fraction = self.validation_fraction
        if fraction is None and self.criterion != "held_out":
            return X, sample_weight, None
        rows = counting = np.arange(num_samples(X))
        if sample_weight is not None:
            counting = np.flatnonzero(check_sample_weight(in_memory(sample_weight), rows))
        if len(counting) < 2:
            raise ValueError(
                "Some rows are held out and the others are fitted, so at least two must have "
                f"weight, got n_samples = {len(counting)}."
            )
        size = 0.2 if fraction is None else float(fraction)
        _, held_out = train_test_split(counting, test_size=size, random_state=self.random_state)
        parts = []
        for part in (np.setdiff1d(rows, held_out), np.sort(held_out)):
            weights = None if sample_weight is None else _taken(sample_weight, part)
            parts.append((_taken(X, part), weights))
        return *parts[0], parts[1]

    def _walk(self, path: MergePath, first: BaseMixture, held_out: Any) -> list[Step]:
        """Go down the path; return its steps by increasing number of components."""
        steps, began = [], perf_counter()
        path.to(int(self.max_components))
        if len(path.alive) == 0:
            raise ValueError(
                f"With {self.max_components} components, all rows belong to the background, and "
                "there is nothing to merge. Raise weight_concentration_prior (now "
                f"{first.weight_concentration_prior}), or set background=False."
            )
        while len(path.alive) > 0:
            measures = path.measures()
            if held_out is not None:
                X, weights = held_out
                mixture = first.__with_fit__(path.fitted)
                measures["held_out"] = -mixture.score(X, sample_weight=weights)
            steps.append(Step(path.fitted, path.nodes, measures))
            K = len(path.nodes)
            below = fewer_components(K, int(self.min_components))
            if self.verbose and (len(steps) % 10 == 0 or not below):
                numbers = f"{perf_counter() - began:.3f} s, bound {measures['lower_bound']:.6g}"
                print(f"  Step {len(steps)} of {len(steps) + len(below)}, K={K}: {numbers}")
            if not below:
                break
            path.to(below[0])
        path.end()
        return steps[::-1]

    def _choose(self, steps: list[Step]) -> None:
        measures = [step.measures for step in steps]
        results = {name: np.array([each[name] for each in measures]) for name in measures[0]}
        results["slope"] = slope_criterion(results, self.max_components)
        if callable(self.criterion):
            values = np.asarray(self.criterion(deepcopy(results)), dtype=np.float64)
            if values.shape != (len(steps),) or np.isnan(values).any():
                raise ValueError(
                    f"criterion should return one number for each of the {len(steps)} steps, "
                    f"got {values!r}."
                )
        else:
            values = results[self.criterion]
            if self.criterion == "slope":
                warn_of_slope(results, self.max_components)
        self.results_ = results | {"criterion": values}
        self.best_index_ = int(np.argmin(values))
        self.best_n_components_ = int(results["n_components"][self.best_index_])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        chosen = getattr(self, "best_n_components_", None)
        result = str(super().__repr__(N_CHAR_MAX))
        return result if chosen is None else f"{result} with best_n_components_={chosen}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseMixture):
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.input_tags = inner.input_tags
        return tags


def _taken(values: Any, indices: Array) -> Any:
    if hasattr(values, "rechunk"):  # Dask takes nothing from more chunks than rows
        values = values.rechunk({0: tuple(filter(None, values.chunks[0]))})
    return safe_indexing(values, indices)
