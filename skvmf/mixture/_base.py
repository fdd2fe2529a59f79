"""The fit of every mixture: in one call, batch by batch, or from given parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._engine.contracts.constraint import Constraint
from .._engine.contracts.model_parts import AnyFamily
from .._engine.contracts.statistics import Components, Params
from .._engine.data.base import RowSource
from .._engine.em.checkpoint import Checkpoint
from .._engine.em.fitted import FittedMixture
from .._engine.em.multi_start import MultiStart
from .._engine.em.online import flat_at_first, step
from .._engine.em.progress import Progress
from .._engine.em.spec import MixtureSpec
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.initialization.start import Initialization
from .._engine.parallel.blas import limited_blas
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from .._engine.weights.updates import FixedWeights, MapWeights
from .._sklearn import (
    all_or_nothing,
    callback_tasks,
    fit_context,
    with_callbacks,
)
from .._typing import Array, MatrixLike
from .._warnings import warn
from ._background import checked_weights_beside
from ._checkpoint import fit_description
from ._checks import (
    check_enough_rows,
    check_stream_continues,
    check_warm_start,
    warn_if_few_distinct,
)
from ._chunkwise import checked_row_weights
from ._given import checked_means, checked_partition, checked_weights
from ._vectors import VectorPredictions

_ROWS_PER_COMPONENT = 100  # in the sample that a start is made on
_LEAST_SAMPLE = 10_000
# The mean of the rows' largest responsibilities should go this far from the largest weight to one.
# Measured: .05 and less if labels mean nothing any more, .25 and more if they still do.
_NEARLY_UNIFORM = 0.05
_WHOLE_FIT_ATTRIBUTES = {"n_iter_", "converged_", "lower_bound_", "lower_bounds_", "path_"}


class BaseMixture(VectorPredictions, ABC):
    """The fit. Below it are predictions, rows, fitted attributes and parameters, a file each.

    A subclass turns its parameters into a `MixtureSpec` (`_spec`), and the parameters of a fit
    into public attributes (`_attributes`).
    """

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the mixture by expectation maximization.

        The fit starts `n_init` times and keeps the parameters with the largest lower bound.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The rows: dense of any number type, or CSR of float32 or float64 if the mixture takes
            sparse rows. They are read block by block, also from a `numpy.memmap`. float16 and
            integers of up to 16 bits are read as float32, without rounding, and wider integers as
            float64. A Dask array is read chunk by chunk, and the fit is bit-identical to one in
            memory. `labels_` and `probabilities_` are then Dask arrays, which agree to rounding.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

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
            check_enough_rows(rows, self.n_components)
            spec = self._spec(rows, "warm_start" if warm else "start")
            tasks = callback_tasks(self, data, 3 * self.n_init)
            with Progress(tasks, self.verbose, self.verbose_interval) as progress:
                starts = self._multi_start(
                    rows, progress, self._checkpoint(rows, warm), self.max_iter
                )
                if warm:
                    check_warm_start(self._fitted, self.n_components)
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
        if isinstance(labels, np.ndarray):  # those of a Dask array are not computed here
            warn_if_few_distinct(rows, labels, self.n_components)
        if not result.converged and not result.stopped and self.max_iter > 0:
            best = "The fit" if warm or self.n_init == 1 else f"The best of {self.n_init} starts"
            warn(
                f"{best} did not reach tol={self.tol} within max_iter={self.max_iter} "
                "iterations. Increase max_iter or tol, or check for degenerate data.",
                ConvergenceWarning,
            )
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Take one step on a batch of a stream: online EM [1]_.

        A running average of statistics forgets earlier batches at the rate `learning_decay`. So
        the mixture follows a stream that changes, and converges if the stream is stationary. The
        first call finds initial components in its batch, as `fit` does. After `fit` or
        `from_parameters`, it continues from their parameters.

        Batches should be random samples of at least 25 rows per component, and the first batch of
        at least 100 rows per component. Sorted rows, for example by class, ruin any online
        method: shuffle them, or use `fit`. With `flat_start`, a prior below 1 is used after twice
        the number of rows that it subtracts.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The batch. The first one, and the first after `from_parameters`, needs as many rows
            as components; later ones may have any number.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

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
                check_enough_rows(rows, self.n_components, first_batch=not continues)
            seen_before = 0.0 if memory is None else memory.total
            if continues:
                fitted = self._fitted
                check_stream_continues("n_components", fitted.n_components, self.n_components)
                check_stream_continues("background", len(fitted.background) > 0, self.background)
                spec = self._spec(rows, "stream", seen_before)
            else:
                spec = self._spec(rows)
                fitted = self._first_fit(spec, rows)
            if self.flat_start:
                spec = flat_at_first(spec, self.n_components, seen_before + rows.total_weight)
            fitted, memory = step(spec, rows, fitted, memory, decay=float(self.learning_decay))
            labels, probabilities = self._labelled(fitted, X, rows)
            n_steps = getattr(self, "n_steps_", 0) + 1
            for name in _WHOLE_FIT_ATTRIBUTES & set(vars(self)):
                delattr(self, name)
            self._publish(
                fitted, memory, labels_=labels, probabilities_=probabilities, n_steps_=n_steps
            )
        return self

    def fit_predict(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Array:
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
            Component labels, as `predict` returns them; -1 is the background.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    @classmethod
    def _from_parameters(cls, n_components: int, params: dict[str, object]) -> Self:
        """Return an estimator of `n_components` with the constructor parameters given."""
        if params.get("n_components", n_components) != n_components:
            raise ValueError(
                f"n_components={params['n_components']!r} does not agree with the given "
                f"parameters of {n_components} components: leave it out."
            )
        mixture = cls(**(params | {"n_components": n_components}))
        mixture._validate_params()
        return mixture

    def _given_params(
        self, weights: ArrayLike, components: Components, background_weight: ArrayLike
    ) -> Params:
        """Return parameters that were given, checked."""
        if self.background:
            weights = checked_weights_beside(weights, self.n_components, background_weight)
        else:
            weights = checked_weights(weights, self.n_components, "weights")
        return Params.first(weights, components).pruned()

    def _publish_given(self, fitted: FittedMixture, given: ArrayLike) -> Self:
        """Publish parameters that were given: nothing was fitted, so there are no labels."""
        self.n_features_in_ = fitted.family.dim
        names = getattr(given, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        params, _ = self._constraint().sort(fitted.family, fitted.params)
        fitted = replace(fitted, params=params)
        self._publish(fitted, n_iter_=0, converged_=False, n_steps_=0)
        return self

    # What a subclass defines.

    @abstractmethod
    def _spec(self, rows: RowSource, stage: str = "start", seen_before: float = 0.0) -> MixtureSpec:
        """Return the mixture that the parameters describe, for a fit on rows.

        Refuses parameters and rows that do not go together, before any other work.

        Parameters
        ----------
        rows : RowSource
            The rows of the fit, or of a batch.
        stage : {'start', 'warm_start', 'stream'}
            'start' also says how the fit starts; 'warm_start' continues from the last fit, and
            'stream' continues with its background, too.
        seen_before : float
            Weight of the rows of the earlier batches.
        """

    def _constraint(self) -> Constraint:
        """Return what components must fulfil; refuses parameters that do not go together."""
        return Constraint()

    def _warn_if_degenerate(self, fitted: FittedMixture) -> None:
        """Warn if responsibilities are nearly uniform, so that components have become equal."""
        if self.temperature <= 1 or self.background:
            return
        largest = fitted.weights.max()
        if float(self.probabilities_.mean()) - largest < _NEARLY_UNIFORM * (1 - largest):
            warn(
                f"temperature={self.temperature} is far too large: all rows have nearly the same "
                "responsibilities, and all components are nearly equal. Use a lower one; 1 is low "
                "enough for any number of features.",
                UserWarning,
            )

    # Parameters as the engine takes them.

    def _assembled(self, family: AnyFamily, background: Background = NO_BACKGROUND) -> MixtureSpec:
        """Return a mixture of components, without a start."""
        return MixtureSpec(
            family=family,
            posterior=self._posterior(),
            weight_prior=self._weight_prior(),
            weight_update=FixedWeights() if "weights" in self.fixed else MapWeights(),
            background=background,
            constraint=self._constraint(),
        )

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
        return check_random_state(self.random_state)

    def _start(
        self,
        spec: MixtureSpec,
        rows: RowSource,
        means: Array | None,
        shapes: Array | None = None,
    ) -> Initialization:
        """Return how fits start; refuse what cannot be used before any work."""
        partition: Any = self.init_params
        K, weights = self.n_components, self.weights_init
        if not isinstance(partition, str):
            partition = checked_partition(partition, rows, K, least=-int(self.background))
        if weights is not None:
            weights = checked_weights(weights, K, "weights_init")
        elif "weights" in self.fixed:
            weights = np.full(K, 1 / K)
        for name, first in [("means", means), ("concentrations", shapes)]:
            if name in self.fixed and first is None:
                raise ValueError(f"fixed={self.fixed!r} keeps the first {name}: give {name}_init.")
        size = max(_ROWS_PER_COMPONENT * K, _LEAST_SAMPLE)
        start = Initialization(
            K,
            partition,
            weights,
            means,
            shapes,
            n_init=int(self.n_init),
            # twice as large a sample if much may be background
            init_size=int(self.init_size or size * (1 + self.background)),
            background=spec.background,
        )
        if start.given and start.n_init > 1:
            warn(
                f"n_init={self.n_init} has no effect with means_init or a given partition: every "
                "start would be the same, so there is one.",
                RuntimeWarning,
            )
        return start

    def _checked_means_init(self, rows: RowSource) -> Array | None:
        if self.means_init is None:
            return None
        return checked_means(self.means_init, "means_init", (self.n_components, rows.n_features))
