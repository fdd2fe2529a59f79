"""ComponentPath: one fit, and a mixture of every number of components."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral, Real
from threading import Timer
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cut_tree, leaves_list
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from .._engine.em.merge_path import MergePath
from .._engine.em.mixture import Point
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
from ..mixture import RelativeGMM
from ..mixture._base import BaseMixture
from ..mixture._hints import HINTS, NUMBERS, with_hints
from ..mixture._rows import array_in_memory, in_memory, refuse_no_rows

CriterionName: TypeAlias = Literal["slope", "bic", "icl", "held_out"]
CRITERIA = frozenset(get_args(CriterionName))
Criterion: TypeAlias = CriterionName | Callable[[dict[str, Any]], Any]

# The share of max_components from which components are far too many, and the nats that a parameter
# costs at least, those of AIC3: chosen on the data sets with labels of the user guide's tables.
_FAR_TOO_MANY = 2 / 3
_MIN_PENALTY = 1.5
# The share of max_components up to which a choice by the slope needs a second look.
_TOO_FEW = 1 / 10
# A step removes at most one component in 30, so that a path has every number below 60. Above 1000,
# where each step takes longest, one in 5.
_FINE_STEP = 30
_COARSE_STEP = 5
_MAX_FINE_STEPS = 1000
# By how much a distance of the tree is above the one before, relatively: more than rounding. Where
# two were equal, a cut by distance would leave out a number of clusters.
_MIN_RISE = 1e-12
# Seconds after which a path that prints nothing says that it is at work: by then a user wonders
# whether it hangs.
_PATIENCE = 30.0


def slope_criterion(results: dict[str, Array], max_components: int) -> Array:
    """Return twice the penalised negative log-likelihood for each number of components.

    The penalty per parameter is twice the slope of the log-likelihood from two thirds of the
    largest number on (Birge and Massart, Probability Theory and Related Fields 138, 2007), and at
    least that of AIC3 (Bozdogan, 1994): a path does not find all that additional components could
    gain.
    """
    p = results["n_parameters"]
    log_likelihood = results["log_likelihood"]
    large = _far_too_many(results, max_components)
    slope = 0.0
    if len(np.unique(p[large])) > 1:
        slope = np.polyfit(p[large], log_likelihood[large], 1)[0]
    return 2 * (max(2 * slope, _MIN_PENALTY) * p - log_likelihood)


def warn_of_slope(results: dict[str, Array], max_components: int) -> None:
    """Warn if components are too few for the slope, or the likelihood asks for all of them."""
    K = results["n_components"]
    n_large = np.count_nonzero(_far_too_many(results, max_components))
    if len(K) > 1 and K.max() < max_components and n_large < 2:
        warn(
            f"criterion='slope' could not estimate a slope and used the penalty of AIC3: of "
            f"max_components={max_components}, only {K.max()} were left after pruning. Raise "
            "weight_concentration_prior, or choose another criterion.",
            UserWarning,
        )
    best_by_slope = K[np.argmin(results["slope"])]
    best_by_bic = K[np.argmin(results["bic"])]
    if best_by_slope <= _TOO_FEW * max_components and best_by_bic == K.max():
        warn(
            f"criterion='slope' chose {best_by_slope} of up to {max_components} components, but "
            f"'bic' {K.max()}: the last components help as much as the first ones, so the slope "
            "cannot tell which are needed. Raise max_components, or choose a number from results_.",
            UserWarning,
        )


def _far_too_many(results: dict[str, Array], max_components: int) -> Array:
    """Return which numbers of components are in the upper third."""
    return results["n_components"] >= _FAR_TOO_MANY * max_components


def make_linkage(n_leaves: int, merges: Sequence[tuple[int, int, float]]) -> Array:
    """Return the linkage matrix of merges (node, node, loss) in order; distances rise strictly."""
    linkage = np.empty((len(merges), 4))
    sizes = np.ones(n_leaves + len(merges))
    distance = 0.0
    for i, (a, b, loss) in enumerate(merges):
        distance = max(loss, distance * (1 + _MIN_RISE), np.finfo(float).tiny)
        sizes[n_leaves + i] = sizes[a] + sizes[b]
        linkage[i] = min(a, b), max(a, b), distance, sizes[n_leaves + i]
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
        raise ValueError(
            f"min_components={min_components} is larger than max_components={max_components}."
        )
    if "n_components" not in estimator.get_params(deep=False):
        raise TypeError(
            f"A path sets n_components, which the constructor of {type(estimator).__name__} should "
            "take as a parameter."
        )
    first: BaseMixture = clone(estimator).set_params(n_components=max_components)
    # Merging components would change the fixed parameters.
    if first.fixed and min_components < max_components:
        raise ValueError(
            f"fixed={first.fixed!r} does not go with a path, which merges components and "
            "estimates their parameters. Leave it out, or choose n_components with "
            "sklearn.model_selection.GridSearchCV."
        )
    if first.size_limits is not None:
        raise ValueError(
            f"size_limits={first.size_limits!r} does not go with a path, which merges components: "
            "choose n_components with a path of the mixture without limits, and then fit that many "
            "with them."
        )
    for name in ("weight_concentration_prior", "degrees_of_freedom"):
        if np.ndim(getattr(first, name, 0.0)) > 0:
            raise ValueError(
                f"{name} should be one for all components: the mixtures of a path have "
                "different numbers of them."
            )
    return first


class Step(NamedTuple):
    """A mixture on the path, the nodes of its components, and its measures by name.

    `classes` are the components of known classes; -1 is one that has left.
    """

    fitted: Point
    nodes: Array
    measures: dict[str, float]
    classes: Array


def fewer_components(K: int, least: int) -> list[int]:
    """Return the numbers of components of the steps that follow one with K."""
    numbers = []
    while K > least:
        divisor = _FINE_STEP if K <= _MAX_FINE_STEPS else _COARSE_STEP
        K = max(K - max(1, (K - 1) // divisor), least)
        numbers.append(K)
    return numbers


@contextmanager
def _saying_that_it_works(path: ComponentPath) -> Iterator[None]:
    """Print a line to stderr if a fit that prints nothing takes long."""
    text = (
        f"ComponentPath has been at work for {_PATIENCE:.0f} seconds: it fits "
        f"{path.max_components} components and then merges them, down to {path.min_components}. "
        "To watch it, set verbose=1, and that of its estimator for the first fit."
    )
    timer = Timer(_PATIENCE, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    if not (path.verbose or getattr(path.estimator, "verbose", 0)):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _refitted(path: Any) -> bool:
    """Return True if there is a best mixture, otherwise raise the reason."""
    if not path.refit:
        raise AttributeError("With refit=False there is no best_estimator_: set refit=True.")
    return True


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
        is for the first fit. If both are 0 and the fit takes longer than 30 seconds, one line on
        stderr says so.

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
        first mixture in the merged one. What is lost is that of the rows of both under their own
        components, less that under the merged one; weights have no part in it.
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
        **dict.fromkeys(
            ["n_components", "min_cluster_size", *NUMBERS], "max_components is the largest number"
        ),
    }
    best_estimator_: BaseMixture

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        # `first_mixture` refuses others, and says more.
        "estimator": "no_validation",
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
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit a mixture of each number of components, and choose one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known, otherwise -1; -2 is a row of the
            background. Components of classes up to the largest label are not merged with each
            other, so component k of each mixture is class k, unless a class has left it. The path
            ends at the number of classes. A row of each class is not held out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        first = first_mixture(self.estimator, int(self.min_components), int(self.max_components))
        refuse_no_rows(X)
        if isinstance(sample_weight, int | float | np.number):
            # A number is the weight of each row, as in fits of mixtures.
            sample_weight = np.full(num_samples(X), sample_weight)
        known = None if known_labels is None else _checked_known(known_labels, first)
        X, sample_weight, known = indexable(X, sample_weight, known)
        with all_or_nothing(self), limited_blas(), _saying_that_it_works(self):
            X_train, weights, known_train, held_out = self._split(X, sample_weight, known)
            n_rows = num_samples(X_train)
            # The estimator refuses data without rows.
            if 0 < n_rows < self.max_components:
                raise ValueError(
                    f"max_components={self.max_components} is more than the number of rows, "
                    f"n_samples = {n_rows}: lower it."
                )
            first.fit(X_train, sample_weight=weights, known_labels=known_train)
            n_classes = 0 if known is None else max(int(known.max()) + 1, 0)
            path = first._skvmf_merge_path(X_train, weights, known_train, n_classes)
            steps = self._walk(path, first, held_out)
            self._choose(steps)
            best = steps[self.best_index_]
            self.best_nodes_ = best.nodes
            self.linkage_ = make_linkage(self.max_components, path.merges)
            self.leaf_weights_ = np.array(first.weights_)
            # Held-out rows have no labels yet.
            leaf_labels = first.labels_ if held_out is None else first.predict(X)
            self.leaf_labels_ = np.asarray(leaf_labels)
            # Only what predictions need: neither labels nor statistics.
            self._first = first._skvmf_with_fit(first._skvmf_vector_model().fitted)
            self.n_features_in_ = first.n_features_in_
            if hasattr(first, "feature_names_in_"):
                self.feature_names_in_ = first.feature_names_in_
            if self.refit:
                refined = first._skvmf_with_fit(best.fitted)
                # By attributes: a contributor's mixture need not have all parameters of ours.
                refined.warm_start = True
                # The file is the first fit's.
                refined.checkpoint = None
                if known is not None:
                    known = _as_numbered(known, best.classes)
                refined.fit(X, sample_weight=sample_weight, known_labels=known)
                refined.warm_start = first.warm_start
                self.best_estimator_ = refined
                self.labels_ = refined.labels_
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
        clusters = np.zeros(1, dtype=np.intp)
        if n_leaves > 1:
            unordered = cut_tree(self.linkage_, int(n_components))[:, 0]
            # Numbered along the dendrogram: by the first of its leaves that each cluster has.
            _, first_leaves = np.unique(unordered[leaves_list(self.linkage_)], return_index=True)
            clusters = np.argsort(np.argsort(first_leaves))[unordered]
        leaves = self.leaf_labels_ if X is None else np.asarray(self._first.predict(X))
        # Rows of the background have the label -1, which is the last entry.
        return np.append(clusters, -1)[leaves]

    def fit_predict(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Array:
        """Fit the mixture and return the most probable component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known, otherwise -1; -2 is a row of the
            background. Components of classes up to the largest label are not merged with each
            other, so component k of each mixture is class k, unless a class has left it. The path
            ends at the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels, as `predict` returns them; -1 is the background.
        """
        _refitted(self)
        return self.fit(X, sample_weight=sample_weight, known_labels=known_labels).labels_

    # Predictions are those of the best mixture.

    @available_if(_refitted)
    def predict(self, X: MatrixLike) -> Array:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels; -1 is the background. A row without a direction (a row of zeros to a
            mixture of directions) or without density under any component gets -1 with a background,
            otherwise the component with the largest weight.
        """
        return self._best().predict(X)

    @available_if(_refitted)
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the responsibilities of the components for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Responsibilities, which depend on `entmax_alpha` and `temperature`. Rows sum to one, or
            with a background to one minus its responsibility. Rows without a direction, or without
            density under any component, get `weights_`, or 0 with a background.
        """
        return self._best().predict_proba(X)

    @available_if(_refitted)
    def score_samples(self, X: MatrixLike) -> Array:
        """Return the log-density of the mixture at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities in the rows' dtype, at least its lowest number. They do not depend on
            `entmax_alpha` and `temperature`.
        """
        return self._best().score_samples(X)

    @available_if(_refitted)
    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted mean log-density of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        log_likelihood : float
            Mean log-density.
        """
        return self._best().score(X, sample_weight=sample_weight)

    def _best(self) -> BaseMixture:
        check_is_fitted(self)
        return self.best_estimator_

    # The steps of a fit.

    def _split(
        self, X: MatrixLike, sample_weight: ArrayLike | None, known: Array | None
    ) -> tuple[Any, Any, Any, tuple[Any, Any] | None]:
        """Return the rows of the path, their weights and known labels, and the held-out rows."""
        fraction = self.validation_fraction
        if fraction is None and self.criterion != "held_out":
            return X, sample_weight, known, None
        all_rows = np.arange(num_samples(X))
        with_weight = all_rows
        if sample_weight is not None:
            with_weight = np.flatnonzero(check_sample_weight(in_memory(sample_weight), all_rows))
        if len(with_weight) < 2:
            raise ValueError(
                "Some rows are held out and the others are fitted, so at least two must have "
                f"weight, got n_samples = {len(with_weight)}."
            )
        size = 0.2 if fraction is None else float(fraction)
        kept, drawn = train_test_split(with_weight, test_size=size, random_state=self.random_state)
        drawn = np.sort(drawn)
        if known is not None:
            drawn = drawn[~_only_ones_of_classes(known, drawn, kept)]
        if len(drawn) == 0:
            raise ValueError(
                "The rows that would be held out are the only ones of known classes, which a path "
                "needs: raise validation_fraction, or give the labels of more rows."
            )
        train = np.setdiff1d(all_rows, drawn)
        held_out = _taken(X, drawn), _taken(sample_weight, drawn)
        of_path = _taken(X, train), _taken(sample_weight, train), _taken(known, train)
        return *of_path, held_out

    def _walk(self, path: MergePath, first: BaseMixture, held_out: Any) -> list[Step]:
        """Go down the path; return its steps by increasing number of components."""
        steps = []
        began = perf_counter()
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
                mixture = first._skvmf_with_fit(path.fitted)
                measures["held_out"] = -mixture.score(X, sample_weight=weights)
            steps.append(Step(path.fitted, path.nodes, measures, path.classes))
            K = len(path.nodes)
            below = fewer_components(K, max(int(self.min_components), path.n_kept_apart))
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
        result = str(super().__repr__(N_CHAR_MAX))
        if hasattr(self, "best_n_components_"):
            result += f" with best_n_components_={self.best_n_components_}"
        return result

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseMixture):
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.input_tags = inner.input_tags
        return tags


def _taken(values: Any, indices: Array) -> Any:
    if values is None:
        return None
    if hasattr(values, "rechunk"):
        # Dask takes nothing from more chunks than rows: those without rows are left out.
        values = values.rechunk({0: tuple(filter(None, values.chunks[0]))})
    return safe_indexing(values, indices)


def _checked_known(known_labels: ArrayLike, first: BaseMixture) -> Array:
    """Return known labels for a path from a mixture; the fits check what is left."""
    if isinstance(first, RelativeGMM):
        raise ValueError(
            "known_labels number the components of a RelativeGMM in their order, in which they "
            "have other numbers in each mixture of a path. Fit a RelativeGMM of each n_components, "
            "or take a SparseGaussianMixture as the estimator."
        )
    known = array_in_memory(known_labels, "known_labels")
    largest = first.n_components - 1
    if not np.isin(known, np.arange(-2, largest + 1)).all():
        raise ValueError(
            f"known_labels should be integers from -1, or -2 with a background, to "
            f"max_components - 1 = {largest}, got {known}."
        )
    return known


def _only_ones_of_classes(known: Array, drawn: Array, kept: Array) -> Array:
    """Return which of the rows that are drawn are the first of a class without rows that are kept.

    Without any, nothing would tell a path which of its components is that class.
    """
    classes, first = np.unique(known[drawn], return_index=True)
    has_none = (classes >= 0) & ~np.isin(classes, known[kept])
    return np.isin(np.arange(len(drawn)), first[has_none])


def _as_numbered(known: Array, classes: Array) -> Array:
    """Return known labels with the components that classes have now, -1 for those that have none.

    -1 and -2 stay.
    """
    components = np.concatenate([classes, [-2, -1]])
    return components[known.astype(np.intp)]
