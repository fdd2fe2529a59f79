"""ComponentPath: one fit, and a mixture of every number of components."""

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral, Real
from time import perf_counter
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from .._engine.em.fitted import FittedMixture
from .._engine.em.spec import MixtureSpec
from .._engine.parallel.blas import limited_blas
from .._publish import all_or_nothing
from .._sklearn import (
    BaseEstimator,
    Interval,
    StrOptions,
    check_sample_weight,
    fit_context,
    safe_indexing,
)
from .._typing import Array
from .._version import stamp, unstamp
from ..mixture._base import BaseMixture
from ._best import BestPredictions, refitted
from ._criteria import CRITERIA, slope_criterion, warn_without_slope
from ._merge_path import MergePath
from ._tree import make_linkage, parts_of_leaves

Step: TypeAlias = tuple[FittedMixture, Array, dict[str, float]]  # fit, nodes, measures

_EACH = 30  # steps are at most this part of what they start from


class ComponentPath(BestPredictions, MetaEstimatorMixin, BaseEstimator):
    """Choose the number of components (clusters) of a mixture, and see their hierarchy.

    A mixture of `max_components` is fitted. Then the two components whose union loses least
    are joined [1]_ and the mixture is fitted for a few steps, again and again, down to
    `min_components`: a path that costs far less than a fit for each number, and on which every
    mixture comes from the one before. What has been joined when is a tree: `linkage_` draws as
    a dendrogram, and :meth:`cut` gives labels for every number of clusters.

    Parameters
    ----------
    estimator : estimator instance
        A mixture of skvmf: :class:`~skvmf.VonMisesFisherMixture`,
        :class:`~skvmf.SparseGaussianMixture`, :class:`~skvmf.StudentTMixture` or
        :class:`~skvmf.RelativeGMM`. It is cloned; its `n_components` is not used.
    max_components : int, default=50
        Where the path begins: two to four times as many components as there may be.
    min_components : int, default=1
        Where it ends.
    criterion : {'slope', 'bic', 'icl', 'held_out'} or callable, default='slope'
        What chooses among the mixtures; the smallest value of it wins, the fewest components
        of equals. 'slope' takes off twice what a parameter gains in the upper third of
        the path, where components are far too many, and at least 1.5 nats [2]_. 'bic' finds the
        number where components are of the very shape of the family, and goes on without end
        in embeddings. 'icl' adds twice the entropy of the shares to that, and wants
        components apart [3]_. 'held_out' is minus the mean log-density of rows held out. A
        callable is called with `results_` and returns an array (n_steps,) like those.
    validation_fraction : float, default=None
        Fraction of the rows that the path does not see; None is 0.2 for ``criterion=
        "held_out"`` and otherwise no row.
    refit : bool, default=True
        Whether the best mixture goes on until it has converged on all rows, as
        `best_estimator_`.
    random_state : int, RandomState instance or None, default=None
        Seed of what is held out; the estimator has a seed of its own.
    verbose : int, default=0
        Whether to print a line for each mixture of the path, with the seconds since it began
        and its lower bound. The estimator's own `verbose` is about the first fit.

    Attributes
    ----------
    best_estimator_ : estimator instance
        The best mixture, fitted to all rows; where `refit` is true.
    best_n_components_ : int
        Its number of components.
    best_index_ : int
        Its place in `results_`.
    best_nodes_ : ndarray of shape (best_n_components_,)
        Which node of the tree each of its components is: below `max_components` a component
        of the first mixture, else that of row ``node - max_components`` of `linkage_`.
    results_ : dict of ndarrays of shape (n_steps,)
        For each step, by rising `n_components`: `n_parameters`, `lower_bound`,
        `log_likelihood` (the sum over the rows), `bic`, `icl`, `slope`, `held_out` where rows
        are held out, and `criterion`, which of them chose or what the callable returned. A
        path has every number below 60, and further up steps of a thirtieth; it begins with
        the components of the first mixture that have weight.
    linkage_ : ndarray of shape (max_components - 1, 4)
        The tree, in the format of :func:`scipy.cluster.hierarchy.linkage`: two nodes, the
        log-likelihood that their union loses, or a little more than that of the union before
        where this is more, and how many components of the first mixture it joins.
    leaf_labels_ : ndarray of shape (n_samples,)
        The component of the first mixture that has each row.
    leaf_weights_ : ndarray of shape (max_components,)
        The weights of the first mixture.
    labels_ : ndarray of shape (n_samples,)
        Labels of the best mixture; where `refit` is true.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names seen in `fit`, where X has them.

    See Also
    --------
    skvmf.plotting.ComponentPathDisplay : The criterion by number, and the dendrogram.
    sklearn.model_selection.GridSearchCV : To choose other parameters, by held-out rows.

    Notes
    -----
    No criterion finds the number of topics that a person would name; the user guide says how
    near each comes. A path is bit-identical for every number of threads.

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
    >>> X, y = make_vonmises_fisher_blobs(
    ...     1000, 10, centers=5, concentration=50.0, random_state=0
    ... )
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=12).fit(X)
    >>> path.best_n_components_
    5
    >>> len(set(path.cut(3)))
    3
    """

    _parameter_constraints = {
        "estimator": "no_validation",  # with a message of our own
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "min_components": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions(set(CRITERIA)), callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "refit": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        max_components: int = 50,
        min_components: int = 1,
        criterion: str | Callable[[dict[str, Any]], Any] = "slope",
        validation_fraction: float | None = None,
        refit: bool = True,
        random_state: Any = None,
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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a mixture of each number of components, and choose one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight counts like that many repetitions of its row.

        Returns
        -------
        self : object
            The fitted path.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says why.
        TypeError
            If the estimator is no mixture of skvmf.
        """
        first = self._first()
        X, sample_weight = indexable(X, sample_weight)
        with all_or_nothing(self), limited_blas() as limit, limit:
            seen, weights, held_out = self._split(X, sample_weight)
            self._check_size(seen)
            first.fit(seen, sample_weight=weights)
            path = self._path(first, seen, weights)
            steps = self._walk(path, first, held_out)
            self._choose(steps)
            fitted, self.best_nodes_, _ = steps[self.best_index_]
            self.linkage_ = make_linkage(self.max_components, path.merges)
            self.leaf_weights_ = np.array(first.weights_)
            leaf_labels = first.labels_ if held_out is None else first.predict(X)
            self.leaf_labels_ = np.asarray(leaf_labels)
            self.n_features_in_ = first.n_features_in_
            if hasattr(first, "feature_names_in_"):
                self.feature_names_in_ = first.feature_names_in_
            if self.refit:
                self.best_estimator_ = _refined(first, fitted, X, sample_weight)
                self.labels_ = self.best_estimator_.labels_
        return self

    def cut(self, n_components: int) -> Array:
        """Return labels of the rows of the fit for any number of clusters, without a fit.

        Cuts are nested: one more cluster divides one in two and leaves the others. They are
        coarser than the mixtures of the path, which are fitted again after each union.

        Parameters
        ----------
        n_components : int
            Number of clusters, from 1 to `max_components`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from 0, in the order of the dendrogram from left to right.
        """
        check_is_fitted(self)
        n_leaves = len(self.linkage_) + 1
        if not isinstance(n_components, Integral) or not 1 <= n_components <= n_leaves:
            raise ValueError(
                f"n_components should be a whole number from 1 to the {n_leaves} components "
                f"that the path began with, got {n_components!r}."
            )
        parts = parts_of_leaves(self.linkage_, int(n_components))
        labels: Array = np.append(parts, -1)[self.leaf_labels_]  # -1 is of no component
        return labels

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit the path and return the labels of the best mixture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels.
        """
        refitted(self)
        labels: Array = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    # The steps of a fit.

    def _first(self) -> BaseMixture:
        """Return the mixture that the path begins with, not fitted; refuse what is none."""
        if not isinstance(self.estimator, BaseMixture):
            raise TypeError(
                "estimator should be a mixture of skvmf, such as VonMisesFisherMixture(), got "
                f"{self.estimator!r}. A ComponentPath can be a step of a Pipeline, after what "
                "prepares the rows."
            )
        if self.min_components > self.max_components:
            raise ValueError(
                f"min_components={self.min_components} is larger than "
                f"max_components={self.max_components}."
            )
        first: BaseMixture = clone(self.estimator).set_params(n_components=self.max_components)
        self._check_fixed_parameters(first)
        for name in ("weight_concentration_prior", "degrees_of_freedom"):
            if np.ndim(getattr(first, name, 0.0)) > 0:
                raise ValueError(
                    f"{name} should be one for all components: the mixtures of a path have "
                    "different numbers of them."
                )
        return first

    def _check_fixed_parameters(self, first: BaseMixture) -> None:
        """Refuse fixed parameters that are given for one number of components only."""
        for fixed, name in [("weights", "weights_init"), ("covariances", "precisions_init")]:
            if fixed in first.free_parameters or getattr(first, name, None) is None:
                continue
            shared = name == "precisions_init" and getattr(first, "covariance_type", "") == "tied"
            if not shared and self.min_components < self.max_components:
                raise ValueError(
                    f"free_parameters={first.free_parameters!r} keeps {name}, which is given for "
                    f"{self.max_components} components: mixtures of a path have fewer and fewer. "
                    f"Leave out {name}, or add {fixed!r} to free_parameters."
                )

    def _split(self, X: Any, sample_weight: Any) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """Return the rows of the path and their weights, and those held out."""
        fraction = self.validation_fraction
        if fraction is None and self.criterion != "held_out":
            return X, sample_weight, None
        seen, held_out = train_test_split(
            np.arange(_n_rows(X)),
            test_size=0.2 if fraction is None else float(fraction),
            random_state=self.random_state,
        )
        parts = []
        for part in (np.sort(seen), np.sort(held_out)):
            weights = None if sample_weight is None else safe_indexing(sample_weight, part)
            parts.append((safe_indexing(X, part), weights))
        return *parts[0], parts[1]

    def _check_size(self, X: Any) -> None:
        n_rows = _n_rows(X)
        if 0 < n_rows < self.max_components:  # no rows at all are the estimator's to refuse
            raise ValueError(
                f"max_components={self.max_components} is more than the rows that the path is "
                f"fitted to, n_samples = {n_rows}: lower it."
            )

    def _path(self, first: BaseMixture, X: Any, sample_weight: Any) -> MergePath:
        """Return the path that begins with a fitted mixture."""
        X = first._validated(X, reset=False)
        rows = first._make_rows(X, check_sample_weight(sample_weight, X), moments=True)

        def make_spec(n_components: int) -> MixtureSpec:
            mixture = clone(first).set_params(n_components=n_components)
            spec: MixtureSpec = mixture._spec(rows, "stream")
            return spec

        return MergePath(make_spec, first._fitted, first.lower_bound_, rows, first.tol)

    def _walk(self, path: MergePath, first: BaseMixture, held_out: Any) -> list[Step]:
        """Go down the path; return its steps by rising size."""
        steps, began = [], perf_counter()
        path.to(int(self.max_components))
        while True:
            measures = path.measures()
            if held_out is not None:
                X, weights = held_out
                mixture = _published(first, path.fitted)
                measures["held_out"] = -mixture.score(X, sample_weight=weights)
            steps.append((path.fitted, path.nodes, measures))
            K = len(path.nodes)
            if self.verbose:
                bound = measures["lower_bound"]
                print(f"{K} components\t time {perf_counter() - began:.3f} s\t bound {bound:.6g}")
            if self.min_components >= K:
                break
            path.to(max(K - max(1, (K - 1) // _EACH), int(self.min_components)))
        path.end()
        return steps[::-1]

    def _choose(self, steps: list[Step]) -> None:
        """Set the results, and which of them is best."""
        measures = [own for _, _, own in steps]
        results = {name: np.array([own[name] for own in measures]) for name in measures[0]}
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
                warn_without_slope(results, self.max_components)
        self.results_ = results | {"criterion": values}
        self.best_index_ = int(np.argmin(values))
        self.best_n_components_ = int(results["n_components"][self.best_index_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseMixture):
            own = get_tags(self.estimator)
            tags.estimator_type = own.estimator_type
            tags.input_tags = own.input_tags
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return stamp(dict(super().__getstate__()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unstamp(state, type(self).__name__))


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if getattr(X, "shape", ()) else len(X)


def _published(mixture: BaseMixture, fitted: FittedMixture) -> BaseMixture:
    """Return a mixture with the parameters of another one, fitted to one of its path's steps."""
    step: BaseMixture = clone(mixture).set_params(n_components=fitted.n_components)
    step._publish(fitted)
    step.n_features_in_ = mixture.n_features_in_
    if hasattr(mixture, "feature_names_in_"):
        step.feature_names_in_ = mixture.feature_names_in_
    return step


def _refined(mixture: BaseMixture, fitted: FittedMixture, X: Any, sample_weight: Any) -> Any:
    """Return a mixture that goes on from a step of the path until it has converged."""
    best = _published(mixture, fitted).set_params(warm_start=True)
    if best.checkpoint is not None:  # which is that of the first fit
        best.set_params(checkpoint=None)
    best.fit(X, sample_weight=sample_weight)
    return best.set_params(warm_start=mixture.warm_start)
