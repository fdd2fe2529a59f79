"""What every mixture estimator has in common: the scikit-learn contract, and no algorithm."""

from abc import ABC, abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import entr
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._engine.contracts.constraint import Constraint
from .._engine.contracts.model_parts import Family, Update, WeightUpdate
from .._engine.contracts.statistics import Params
from .._engine.data.base import RowSource
from .._engine.data.rows import make_rows
from .._engine.data.validation import READABLE
from .._engine.em.checkpoint import Checkpoint
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.em.multi_start import MultiStart
from .._engine.em.online import flat_at_first, step
from .._engine.em.progress import Progress
from .._engine.em.spec import MixtureSpec
from .._engine.families.background import Background
from .._engine.initialization.start import Initialization
from .._engine.parallel.blas import limited_blas
from .._engine.posteriors.fenchel_young import FenchelYoungPosterior
from .._engine.updates.closed_form import ClosedForm
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from .._engine.weights.updates import FixedWeights, MapWeights
from .._publish import all_or_nothing
from .._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    Interval,
    StrOptions,
    callback_tasks,
    fit_context,
    validate_data,
    with_callbacks,
)
from .._typing import Array
from .._warnings import warn
from ..distributions._arguments import checked_array
from ._attributes import FittedAttributes
from ._checkpoint import fit_description
from ._chunkwise import checked_row_weights, is_lazy
from ._given import checked_means, checked_partition, checked_weights, checked_weights_beside
from ._hints import ArgumentHints, refuse_texts
from ._vectors import VectorPredictions

_ROWS_PER_COMPONENT = 100  # in the sample that a start is made on
_LEAST_SAMPLE = 10_000
# Of the way from the largest weight to one, which the mean of the rows' largest responsibilities
# has to go. Measured: .05 and less if labels say nothing any more, .25 and more if they still do.
_NEARLY_UNIFORM = 0.05
_OF_WHOLE_FITS = {"n_iter_", "converged_", "lower_bound_", "lower_bounds_", "path_"}
PARAMETERS = ("weights", "means", "covariances")


class BaseMixture(
    ArgumentHints,
    FittedAttributes,
    CallbackSupportMixin,
    VectorPredictions,
    DensityMixin,
    BaseEstimator,
    ABC,
):
    """Validation and the fit.

    A subclass turns its parameters into a `MixtureSpec` (`_spec`), and the parameters of a fit
    into public attributes (`_attributes`). `_fitted` is the fit.
    """

    # Of estimators whose constructors do not have them.
    background: bool = False
    learning_decay: float = 0.7
    checkpoint: str | PathLike[str] | None = None
    free_parameters: Any = PARAMETERS
    store_path: bool = False

    _family_class: ClassVar[type[Family]]

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
            warm = bool(self.warm_start) and hasattr(self, "_fitted")
            X = self._validated(X, reset=not warm)
            rows = self._make_rows(X, checked_row_weights(sample_weight, X), moments=True)
            self._check_rows(rows)
            spec = self._spec(rows, "warm_start" if warm else "start")
            tasks = callback_tasks(self, data, 3 * self.n_init)
            with Progress(tasks, self.verbose, self.verbose_interval) as progress:
                starts = self._multi_start(
                    rows, progress, self._checkpoint(rows, warm), self.max_iter
                )
                if warm:
                    self._check_warm_start()
                    spec, params = spec.continued(self._fitted)
                    result = starts.run(spec, params)
                else:
                    spec, result = starts.best(spec, self._generator())
                fitted, stats = spec.fitted(result.params, result.stats)
                labels, probabilities = self._labelled(fitted, X, rows)
                self._publish(
                    fitted,
                    stats,
                    result,
                    labels_=labels,
                    probabilities_=probabilities,
                    n_steps_=0,
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
        self._validate_params()  # which the decorator leaves out after the first call
        with all_or_nothing(self), limited_blas() as limit, limit:
            memory, continues = getattr(self, "_memory", None), hasattr(self, "_fitted")
            X = self._validated(X, reset=not continues)
            rows = self._make_rows(X, checked_row_weights(sample_weight, X), moments=True)
            if memory is None:
                self._check_rows(rows)
            seen_before = 0.0 if memory is None else memory.total
            if continues:
                self._check_same_mixture()
                spec = self._spec(rows, "stream", seen_before)
                fitted = self._fitted
            else:
                spec = self._spec(rows)
                fitted = self._first_fit(spec, rows)
            if self.flat_start:
                spec = flat_at_first(spec, self.n_components, seen_before + rows.total_weight)
            fitted, memory = step(spec, rows, fitted, memory, decay=float(self.learning_decay))
            labels, probabilities = self._labelled(fitted, X, rows)
            n_steps = getattr(self, "n_steps_", 0) + 1
            for name in _OF_WHOLE_FITS & set(vars(self)):
                delattr(self, name)
            self._publish(
                fitted, memory, labels_=labels, probabilities_=probabilities, n_steps_=n_steps
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
        params, _ = self._constraint().sort(fitted.family, fitted.params)
        fitted = replace(fitted, params=params)
        self._publish(fitted, n_iter_=0, converged_=False, n_steps_=0)
        return self

    # What a subclass names.

    @abstractmethod
    def _spec(self, rows: RowSource, stage: str = "start", seen_before: float = 0.0) -> MixtureSpec:
        """Return the mixture that the parameters describe, for a fit on rows.

        Refuses parameters and rows that do not go together, before any other work.

        Parameters
        ----------
        rows : RowSource
            The rows of the fit, or of a batch.
        stage : {'start', 'warm_start', 'stream'}
            'start' also says where the fit starts; 'warm_start' goes on from the last fit, and
            'stream' from that and with its background.
        seen_before : float
            The weight of the rows of a stream before.
        """

    def _constraint(self) -> Constraint:
        """Return what components must fulfil; refuses parameters that do not go together."""
        return Constraint()

    def _attributes(self, fitted: FittedMixture, result: EMResult | None = None) -> dict[str, Any]:
        """Return the fitted attributes that follow from the parameters, or from a whole fit."""
        weights = fitted.weights
        if weights.any():
            weights = weights / weights.sum()
        attributes: dict[str, Any] = {
            "weights_": fitted.weights,
            "background_weight_": fitted.background_weight,
            "n_active_components_": int(np.count_nonzero(weights)),
            "effective_n_components_": float(np.exp(entr(weights).sum())) if weights.any() else 0.0,
        }
        if result is not None:
            attributes |= {
                "n_iter_": result.n_iter,
                "converged_": result.converged,
                "lower_bounds_": result.bounds,
                "lower_bound_": result.bounds[-1],
            }
        return attributes

    def _warn_if_degenerate(self, fitted: FittedMixture) -> None:
        """Warn if responsibilities are nearly uniform: components have then become alike."""
        if self.temperature <= 1 or self.background:
            return
        largest = fitted.weights.max()
        if float(self.probabilities_.mean()) - largest < _NEARLY_UNIFORM * (1 - largest):
            warn(
                f"temperature={self.temperature} makes the responsibilities of all rows nearly "
                "uniform, so that components have become alike. Take a lower one: 1 suits any "
                "number of features.",
                UserWarning,
            )

    # Parameters as the engine takes them.

    def _assembled(
        self,
        family: Family,
        background: Background | None,
        update: Update | None = None,
    ) -> MixtureSpec:
        """Return a mixture of components, without a start."""
        weight_update: WeightUpdate = MapWeights()
        if "weights" not in self.free_parameters:
            weight_update = FixedWeights()
        return MixtureSpec(
            family=family,
            posterior=self._posterior(),
            weight_prior=self._weight_prior(),
            weight_update=weight_update,
            update=ClosedForm() if update is None else update,
            background=background,
            constraint=self._constraint(),
        )

    def _posterior(self) -> FenchelYoungPosterior:
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self) -> ModifiedDirichlet:
        given = self.weight_concentration_prior
        if given is None:
            given = 1.0 if self.entmax_alpha > 1 else 0.0
        alpha = checked_array(given, "weight_concentration_prior")
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

    def _n_parameters(self) -> int:
        """Return the number of free parameters of the active components."""
        check_is_fitted(self)
        return self._fitted.n_parameters(free_weights="weights" in self.free_parameters)

    # Where a fit begins.

    def _multi_start(
        self, rows: RowSource, progress: Progress, checkpoint: Checkpoint, max_iter: int
    ) -> MultiStart:
        return MultiStart(
            rows,
            progress,
            checkpoint,
            max_iter=max_iter,
            tol=self.tol,
            flat_start=self.flat_start,
            keep_path=self.store_path,
        )

    def _first_fit(self, spec: MixtureSpec, rows: RowSource) -> FittedMixture:
        """Return the best start on the first batch of a stream, before any step."""
        flat = replace(spec, weight_prior=ModifiedDirichlet())
        starts = self._multi_start(rows, Progress(None), Checkpoint(), 0)
        best, result = starts.best(flat, check_random_state(self.random_state))
        return best.fitted(result.params)[0]

    def _checkpoint(self, rows: RowSource, warm: bool) -> Checkpoint:
        begins_with = self._fitted.params if warm else None
        params = self.get_params(deep=False)
        return Checkpoint(
            self.checkpoint,
            lambda: fit_description(type(self).__name__, params, rows, begins_with),
        )

    def _generator(self) -> np.random.RandomState:
        if self.random_state is None and self.checkpoint is not None:
            return np.random.RandomState()  # its state may be set, unlike that of all NumPy
        generator: np.random.RandomState = check_random_state(self.random_state)
        return generator

    def _check_warm_start(self) -> None:
        n_components = self._fitted.n_components
        if n_components != self.n_components:
            raise ValueError(
                f"warm_start: the fitted mixture has {n_components} components, "
                f"n_components is {self.n_components}. Set warm_start=False to start afresh."
            )

    def _check_same_mixture(self) -> None:
        """Refuse parameters with which a stream cannot go on."""
        for name, before in [
            ("n_components", self._fitted.n_components),
            ("background", self._fitted.background is not None),
        ]:
            now = getattr(self, name)
            if now != before:
                raise ValueError(
                    f"partial_fit goes on with {name}={before}, and {name} is {now} now: set it "
                    "back, or start afresh with a clone of the mixture."
                )

    def _start(
        self,
        spec: MixtureSpec,
        rows: RowSource,
        means: Array | None,
        covariances: Array | None = None,
    ) -> Initialization:
        """Return what fits begin with; refuse what cannot be used before any work."""
        K, partition, weights = self.n_components, self.init_params, self.weights_init
        if not isinstance(partition, str):
            partition = checked_partition(partition, rows, K, spec.background is not None)
        if weights is not None:
            weights = checked_weights(weights, K, "weights_init")
        size = max(_ROWS_PER_COMPONENT * K, _LEAST_SAMPLE)
        start = Initialization(
            K,
            partition,
            weights,
            means,
            covariances,
            n_init=int(self.n_init),
            # twice as large a sample if much may be background
            init_size=int(self.init_size or size * (1 + self.background)),
            background=None if spec.background is None else spec.background.log_density,
        )
        if start.given and start.n_init > 1:
            warn(
                "Every start from the given means or partition is the same: one is made instead "
                f"of n_init={self.n_init}.",
                RuntimeWarning,
            )
        return start

    def _checked_means_init(self, rows: RowSource) -> Array | None:
        if self.means_init is None:
            return None
        return checked_means(self.means_init, "means_init", (self.n_components, rows.n_features))

    def _check_rows(self, rows: RowSource) -> None:
        """Refuse rows that cannot be fitted with any parameters."""
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
                accept_sparse="csr" if self._family_class.sparse_rows else False,
                dtype=[np.float64, np.float32] if sparse.issparse(X) else READABLE,
                ensure_all_finite=False,  # the engine looks, in a pass that it makes anyway
                reset=reset,
            )

    def _make_rows(self, X: Any, weights: Array | None, *, moments: bool = False) -> RowSource:
        columns = moments and self._posterior().temperature > 0
        width = int(self.n_components)  # without moments each block is read once
        options: dict[str, Any] = {"unit": self._family_class.unit_rows, "columns": columns}
        if is_lazy(X):
            from ._dask import make_lazy_rows

            return make_lazy_rows(X, weights, width=width, **options)
        return make_rows(X, weights, width=width, ahead=moments, **options)

    def _labelled(self, fitted: FittedMixture, X: Any, rows: RowSource) -> tuple[Any, Any]:
        """Return the labels of the fit's rows and the shares of their components."""
        if is_lazy(X):
            from ._dask import labels_and_shares

            return labels_and_shares(self, fitted, X)
        return fitted.labels_and_shares(rows, self._posterior())
