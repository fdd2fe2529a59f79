"""What every mixture estimator has in common: the scikit-learn contract, and no algorithm."""

from abc import ABC, abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import entr
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning

from .._engine.contracts.model_parts import Family
from .._engine.contracts.statistics import Params, Statistics
from .._engine.data.base import RowSource
from .._engine.data.rows import make_rows
from .._engine.data.validation import READABLE
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.em.mixture_model import MixtureModel
from .._engine.em.progress import Progress
from .._engine.families.background import Background
from .._engine.initialization.base import Proposal
from .._engine.parallel.blas import limited_blas
from .._engine.posteriors.fenchel_young import FenchelYoungPosterior
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from .._engine.weights.updates import MapWeights
from .._publish import all_or_nothing
from .._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    Interval,
    StrOptions,
    fit_context,
    validate_data,
    with_callbacks,
)
from .._typing import Array
from .._warnings import warn
from ..distributions._arguments import checked_array
from ._attributes import FittedAttributes
from ._checkpoint import Checkpoint
from ._chunkwise import checked_row_weights, is_lazy
from ._climb import MultiStart
from ._hints import ArgumentHints, refuse_texts
from ._initialization import (
    Initialization,
    checked_means,
    checked_partition,
    checked_weights,
    checked_weights_beside,
)
from ._stream import Batch
from ._vectors import VectorPredictions

_ROWS_A_COMPONENT = 100  # in the sample that a start is made on
_LEAST_SAMPLE = 10_000
# Of the way from the largest weight to one, which the mean share of a row's own component has to
# go. Measured: .05 and less where labels say nothing any more, .25 and more where they still do.
_ALIKE = 0.05


class BaseMixture(
    ArgumentHints,
    FittedAttributes,
    CallbackSupportMixin,
    VectorPredictions,
    DensityMixin,
    BaseEstimator,
    ABC,
):
    """Validation and the fit; a subclass names the answers.

    `_fitted` is the fit, and `_attributes` derives the public attributes from it.
    """

    # Of estimators whose constructors do not have them.
    background: bool = False
    learning_decay: float = 0.7
    checkpoint: str | PathLike[str] | None = None
    _accept_sparse = False
    _unit_rows = False

    _parameter_constraints = {
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
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "learning_decay": [Interval(Real, 0, 1, closed="right")],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture by expectation maximization.

        The fit starts `n_init` times and keeps the parameters with the largest lower bound.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The rows, dense of any number type or CSR of float32 or float64; anything else is
            converted to float64. They are read block by block, from a `numpy.memmap` too:
            float16 and integers of up to 16 bits as float32, which holds them
            exactly, wider integers as float64. Sparse rows are accepted where the estimator's
            tags say so. The rows of a Dask array, of dense blocks or of CSR ones, stay where
            they are, and give the same bits; `labels_` and `probabilities_` are then Dask
            arrays, made chunk by chunk, and agree to rounding.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight counts like that many repetitions of its row.

        Returns
        -------
        self : object
            The fitted mixture.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says why.
        """
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with all_or_nothing(self), limited_blas() as limit, limit:
            warm = self._is_warm()
            X = self._validated(X, reset=not warm)
            rows = self._make_rows(X, checked_row_weights(sample_weight, X), moments=True)
            self._check_values(rows)
            self._check_rows(rows)
            family, prior = self._make_family(rows), self._weight_prior()
            background = self._background(rows, family) if self.background else None
            given = None if warm else self._initialization(rows, family, background)
            with Progress(self, data, 3 * self.n_init) as progress:
                recorder = self._recorder(progress)
                checkpoint = Checkpoint(self, rows, self._fitted.params if warm else None)
                climb = MultiStart(self, rows, prior, recorder, background, checkpoint)
                if given is None:
                    fitted, result = climb.from_params(*self._warm_start(family))
                else:
                    fitted, result = climb.best(given, family)
                labels, responsibilities = self._labelled(fitted, X, rows)
                found = replace(fitted, params=result.params)
                self._publish(
                    fitted,
                    self._sorted(found, result.stats)[1],
                    labels_=labels,
                    probabilities_=responsibilities,
                    n_steps_=0,
                    **self._result_attributes(result, recorder),
                )
        self._warn_if_degenerate(fitted)
        if not result.converged and not result.stopped and self.max_iter > 0:
            best = "The fit" if warm else f"The best of {self.n_init} starts"
            warn(
                f"{best} did not reach tol={self.tol} within max_iter={self.max_iter} "
                "iterations. Increase max_iter or tol, or check for degenerate data.",
                ConvergenceWarning,
            )
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take one step on a batch of a stream: online EM [1]_.

        Statistics of what was seen fade as batches come, so that the mixture follows a stream
        and converges where that stays the same; `learning_decay` says how fast. The first
        call starts on its batch, as `fit` does; after `fit` or `from_parameters` the first
        call goes on from there.

        Batches should be drawn at random, of 25 rows or more for each component and the first
        of 100 or more. Rows that come sorted, such as by class, ruin any online method:
        shuffle them, or use `fit`. A prior below 1 counts from when twice the rows that it
        takes have been seen (`flat_start`).

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The batch. The first one, and the first after `from_parameters`, needs as many rows
            as there are components; later ones may have any number.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight counts like that many repetitions of its row.

        Returns
        -------
        self : object
            The mixture after the step. `labels_` and `probabilities_` are those of the batch.

        Raises
        ------
        ValueError
            If the batch or a parameter cannot be used; the mixture is then as it was before.

        References
        ----------
        .. [1] Cappé and Moulines, "On-line expectation-maximization algorithm for latent data
           models", Journal of the Royal Statistical Society B 71, 2009.
        """
        with all_or_nothing(self), limited_blas() as limit, limit:
            memory, goes_on = getattr(self, "_memory", None), hasattr(self, "_fitted")
            X = self._validated(X, reset=not goes_on)
            rows = self._make_rows(X, checked_row_weights(sample_weight, X), moments=True)
            self._check_values(rows)
            if memory is None:
                self._check_rows(rows)
            batch = Batch(self, rows, memory)
            fitted = self._fitted if goes_on else batch.begin()
            fitted, memory = self._sorted(*batch.step(fitted))
            labels, responsibilities = self._labelled(fitted, X, rows)
            n_steps = getattr(self, "n_steps_", 0) + 1
            for name in self._of_whole_fits & set(vars(self)):
                delattr(self, name)
            self._publish(
                fitted, memory, labels_=labels, probabilities_=responsibilities, n_steps_=n_steps
            )
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit the mixture and return the most probable component of each row.

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
            Component labels; -1 where the background has the largest share.
        """
        labels: Array = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    @classmethod
    def _from_parameters(cls, n_components: int, params: dict[str, Any]) -> Self:
        """Return an estimator of so many components with the constructor parameters given."""
        if params.get("n_components", n_components) != n_components:
            raise ValueError(
                f"n_components={params['n_components']!r} does not agree with the parameters "
                f"given, which are of {n_components} components: leave it out."
            )
        mixture = cls(**(params | {"n_components": n_components}))
        mixture._validate_params()
        return mixture

    @classmethod
    def _beside(cls, background_weight: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Return constructor parameters that say whether there is a background."""
        given = bool(np.any(np.not_equal(background_weight, 0)))
        if given and not params.get("background", True):
            raise ValueError(
                f"background=False does not go with background_weight={background_weight!r}: leave "
                "background out, or the weight."
            )
        return {"background": given} | params

    def _given_params(self, weights: Any, components: Any, background_weight: Any) -> Params:
        """Return parameters that were given, checked."""
        if self.background:
            weights = checked_weights_beside(weights, self.n_components, background_weight)
        else:
            weights = checked_weights(weights, self.n_components, "weights")
        return Params.first(weights, components).pruned()

    def _publish_given(self, fitted: FittedMixture, given: Any) -> Self:
        """Publish parameters that were given: nothing was fitted, so there are no labels."""
        self.n_features_in_ = fitted.family.dim
        names = getattr(given, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._publish(self._finished(fitted), n_iter_=0, converged_=False, n_steps_=0)
        return self

    # What a subclass names.

    @abstractmethod
    def _make_family(self, rows: RowSource) -> Family:
        """Return the family for a fit on rows."""

    def _family_after(self, rows: RowSource, seen_before: float) -> Family:
        """Return the family for a batch that comes after rows of so much weight."""
        return self._make_family(rows)

    def _background(self, rows: RowSource, family: Any) -> Background:
        """Return the background of a fit on rows."""
        raise ValueError(f"{type(self).__name__} has no background: set background=False.")

    def _attributes(self, fitted: FittedMixture) -> dict[str, Any]:
        """Return the fitted attributes that follow from the parameters."""
        weights = fitted.weights
        if fitted.background is not None and weights.any():
            weights = weights / weights.sum()
        n_effective = float(np.exp(entr(weights).sum())) if weights.any() else 0.0
        return {
            "weights_": fitted.weights,
            "background_weight_": fitted.background_weight,
            "n_active_components_": int(np.count_nonzero(weights)),
            "effective_n_components_": n_effective,
        }

    def _result_attributes(self, result: EMResult, recorder: Any) -> dict[str, Any]:
        """Return the fitted attributes that say how the fit went."""
        return {
            "n_iter_": result.n_iter,
            "converged_": result.converged,
            "lower_bounds_": result.bounds,
            "lower_bound_": result.bounds[-1],
        }

    def _warn_if_degenerate(self, fitted: FittedMixture) -> None:
        """Warn of a fit that is not what a user wants."""
        if self.temperature <= 1 or self.background:
            return
        largest = fitted.weights.max()
        if float(self.probabilities_.mean()) - largest < _ALIKE * (1 - largest):
            warn(
                f"temperature={self.temperature} makes the shares of all rows nearly the same, so "
                "that components have become alike. Take a lower one: 1 suits any number of "
                "features.",
                UserWarning,
            )

    def _finished(self, fitted: FittedMixture) -> FittedMixture:
        """Return the fit as it is published."""
        return self._sorted(fitted, None)[0]

    def _sorted(
        self, fitted: FittedMixture, memory: Statistics | None
    ) -> tuple[FittedMixture, Statistics | None]:
        """Return a fit and its statistics with components in the order that is published."""
        return fitted, memory

    def _converted(self, family: Any, components: Any) -> Any:
        """Return components of another fit as they may be today."""
        return components

    def _recorder(self, progress: Progress) -> Any:
        """Return what is told of every stage of a fit."""
        return progress

    def _check_values(self, rows: RowSource) -> None:
        """Refuse rows that hold values out of range."""

    def _check_rows(self, rows: RowSource) -> None:
        """Refuse rows that cannot be fitted with the parameters, at any start."""
        if rows.n_rows < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components},"
                f" n_samples = {rows.n_rows}: use fewer components."
            )
        if rows.total_weight == 0:
            raise ValueError(
                "All rows with positive weight are zero: a zero row has no direction, so "
                "there is nothing to fit. Remove empty rows or check the preprocessing."
            )

    # Parameters as the engine takes them.

    def _posterior(self) -> FenchelYoungPosterior:
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self) -> ModifiedDirichlet:
        alpha = checked_array(self._prior_parameter(), "weight_concentration_prior")
        K = self.n_components
        if alpha.shape not in [(), (K,)] or not np.isfinite(alpha).all():
            raise ValueError(
                "weight_concentration_prior should be a finite number or one for each of the "
                f"{K} components, got {self.weight_concentration_prior!r}."
            )
        floor = self.weight_floor
        if floor is None:
            floor = 0.0 if (alpha >= 1).all() else min(1e-5, 1 / (2 * K))
        if floor == 0 and (alpha < 1).any():
            raise ValueError(
                "weight_floor=0 does not go with a weight_concentration_prior below 1: the "
                "density is then unbounded. Give a positive weight_floor, or None."
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

    def _prior_parameter(self) -> Any:
        return self.weight_concentration_prior

    def _model(self, family: Family, weight_prior: ModifiedDirichlet) -> MixtureModel:
        return MixtureModel(family, self._posterior(), weight_prior, MapWeights())

    # Where a fit begins.

    def _is_warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "_fitted")

    def _warm_start(self, family: Any) -> tuple[Any, Params]:
        """Return the family and the parameters that a fit goes on from."""
        fitted = self._fitted
        if fitted.n_components != self.n_components:
            raise ValueError(
                f"warm_start: the fitted mixture has {fitted.n_components} components, "
                f"n_components is {self.n_components}. Set warm_start=False to start afresh."
            )
        family = fitted.family.refreshed(family)
        components = self._converted(family, fitted.params.components)
        weights = fitted.weights_with(bool(self.background))
        return family, Params.first(weights, components).pruned()

    def _initialization(
        self, rows: RowSource, family: Any, background: Background | None
    ) -> Initialization:
        """Return what fits begin with; refuse what cannot be used before any work."""
        K, partition = self.n_components, self.init_params
        weights, means = self.weights_init, self.means_init
        if not isinstance(partition, str):
            partition = checked_partition(partition, rows, K, background is not None)
        if weights is not None:
            weights = checked_weights(weights, K, "weights_init")
        if means is not None:
            means = self._checked_means_init(rows)
        given = Initialization(
            K,
            partition,
            weights,
            means,
            seeding=self._seeding(family),
            background=None if background is None else background.log_density,
            n_init=int(self.n_init),
            init_size=self._sample_size(),
        )
        if given.given and given.n_init > 1:
            warn(
                f"Every start from the given means or partition is the same: one is made instead "
                f"of n_init={self.n_init}.",
                RuntimeWarning,
            )
        return given

    def _sample_size(self) -> int:
        """Return the size of a start's sample: twice as large where much may be background."""
        size = max(_ROWS_A_COMPONENT * self.n_components, _LEAST_SAMPLE) * (1 + self.background)
        return int(self.init_size or size)

    def _seeding(self, family: Any) -> Proposal | None:
        """Return what a start by merging needs of the family; None is k-means instead."""
        return None

    def _checked_means_init(self, rows: RowSource) -> Array:
        return checked_means(self.means_init, "means_init", (self.n_components, rows.n_features))

    def _constrained(self, given: Initialization, family: Any, params: Params) -> Params:
        """Return first parameters as the user and the estimator's constraints want them."""
        return params

    def _order(self, components: Any) -> Array:
        """Return the order (n_components,) in which the components are kept."""
        return np.arange(self.n_components)

    # Data.

    def _validated(self, X: Any, *, reset: bool) -> Any:
        refuse_texts(X)
        if is_lazy(X):
            from ._dask import validated

            return validated(self, X, reset=reset)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest floats
            return validate_data(
                self,
                X,
                accept_sparse="csr" if self._accept_sparse else False,
                dtype=[np.float64, np.float32] if sparse.issparse(X) else READABLE,
                ensure_all_finite=False,  # the engine looks, in a pass that it makes anyway
                reset=reset,
            )

    def _make_rows(self, X: Any, weights: Array | None, *, moments: bool = False) -> RowSource:
        columns = moments and self._posterior().temperature > 0
        width = int(self.n_components)  # without moments each block is read once
        if is_lazy(X):
            from ._dask import make_lazy_rows

            return make_lazy_rows(X, weights, unit=self._unit_rows, width=width, columns=columns)
        where: dict[str, Any] = {"columns": columns, "ahead": moments}
        return make_rows(X, weights, unit=self._unit_rows, width=width, **where)

    def _labelled(self, fitted: FittedMixture, X: Any, rows: RowSource) -> tuple[Any, Any]:
        """Return the labels of the fit's rows and the shares of their components."""
        if is_lazy(X):
            from ._dask import labels_and_shares

            return labels_and_shares(self, fitted, X)
        return fitted.labels_and_shares(rows, self._posterior())
