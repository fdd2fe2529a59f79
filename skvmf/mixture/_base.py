"""The one class under all mixtures: fits, predictions and fitted attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import entr
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._engine.em.checkpoint import Checkpoint
from .._engine.em.merge_path import MergePath
from .._engine.em.mixture import FittedMixture, Mixture, MixtureResult
from .._engine.em.online import flat_at_first, step, weight_seen
from .._engine.em.progress import Progress
from .._engine.em.vectors import VectorModel
from .._engine.em.weight_prior import FLAT
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.families.family import AnyFamily, Constraint
from .._engine.families.params import Components, Params, as_dict
from .._engine.families.statistics import Statistics, select_statistics
from .._engine.fit import MultiStart
from .._engine.rows.parallel import limited_blas
from .._engine.rows.reading import READABLE
from .._engine.rows.sources import RowSource, make_rows
from .._engine.search.growth import grown, newcomer
from .._engine.search.overseeding import MANY
from .._engine.search.starts import Start, make_start
from .._sklearn import (
    all_or_nothing,
    callback_tasks,
    check_sample_weight,
    fit_context,
    outputs_frames,
    validate_data,
    with_callbacks,
)
from .._typing import Array, Attributes, MatrixLike, warn
from ..distributions._arguments import check_count
from ._parameters import (
    MixtureParameters,
    attribute_hint,
    fit_description,
    refuse_sparse_rows,
    with_hints,
)
from ._validation import (
    check_enough_rows,
    check_stream_continues,
    check_warm_start,
    checked_known_labels,
    checked_means,
    checked_partition,
    checked_weights,
    checked_weights_and_background,
    chunkwise,
    in_memory,
    is_lazy,
    read_only,
    refuse_unobserved,
    validated_rows,
    warn_if_encoded,
    warn_if_few_distinct,
    warn_if_fewer,
    warn_if_unfinished,
    warn_if_uniform,
)

_ROWS_PER_COMPONENT = 100  # in the sample that a start is made on
_LEAST_SAMPLE = 10_000
_ROWS_OF_MANY, _MANY_ROWS = 250, 10**6  # per component where there are many, up to so many rows
_WHOLE_FIT_ATTRIBUTES = {"n_iter_", "converged_", "lower_bound_", "lower_bounds_"}


class BaseMixture(MixtureParameters, ABC):
    """The fit, predictions and fitted attributes of every mixture.

    A subclass turns its parameters into a `Mixture` (`_spec`), and the parameters of a fit
    into public attributes (`_attributes`). `_fitted` is the fit, set by a fit or `from_parameters`
    only. Attributes that a class annotates follow from the fit's parameters: they are not part of
    a pickle, but computed again. `_family_class` restores the family.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Mixture weights; 0 for a pruned component. Together with `background_weight_` they sum
        to one.
    background_weight_ : float
        Weight of the background; 0 without one.
    converged_ : bool
        Whether the best start reached `tol`.
    n_iter_ : int
        EM steps of the best start, after the flat start.
    lower_bound_ : float
        Objective of the fit per unit of sample weight: the Fenchel-Young value, which is the
        log-likelihood for softmax responsibilities, plus the log-density of the priors.
    lower_bounds_ : list of float
        The bound at the start and after each step of the best start. It may fall in a step that
        moves components without rows to the least likely rows.
    labels_ : ndarray of shape (n_samples,)
        Most probable component of each row of the fit; -1 is the background. Pruned components
        have no rows; ``np.unique(labels_, return_inverse=True)[1]`` are labels without gaps.
    probabilities_ : ndarray of shape (n_samples,)
        Responsibility of that component, the largest one of the row; 0 if the label is -1.
    n_steps_ : int
        Calls of `partial_fit` since the last `fit`.
    weight_seen_ : float
        Weight of the rows that `fit` and `partial_fit` after it have seen.
    n_active_components_ : int
        Components with positive weight.
    n_parameters_ : int
        Free parameters of these components and of the weights.
    effective_n_components_ : float
        Exponential of the entropy of the weights.
    """

    weights_: Array
    background_weight_: float
    n_active_components_: int
    n_parameters_: int
    effective_n_components_: float

    if TYPE_CHECKING:  # not annotated when the program runs: they are part of a pickle
        converged_: bool
        n_iter_: int
        lower_bound_: float
        lower_bounds_: list[float]
        labels_: Array
        probabilities_: Array
        n_steps_: int
        weight_seen_: float
        n_features_in_: int
        feature_names_in_: Array

    _fitted: FittedMixture
    _memory: Statistics | None
    _family_class: ClassVar[type[AnyFamily]]

    # Fits: in one call, batch by batch, or from given parameters.

    @with_hints
    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture by expectation maximization.

        The fit starts `n_init` times and keeps the parameters with the largest lower bound. From
        4,000 components on, an iteration on dense rows is an exact step and up to 42 truncated
        ones, which look at the components near each row's last label only. What is returned is
        that of an exact step.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The rows: dense of any number type, or CSR of float32 or float64 if the mixture takes
            sparse rows. They are read block by block, also from a `numpy.memmap`. float16 and
            integers of up to 16 bits are read as float32, without rounding, and wider integers as
            float64. A Dask array is read chunk by chunk, and the fit is bit-identical to one in
            memory. `labels_` and `probabilities_` are then Dask arrays, which agree to rounding;
            copies and pickles of the mixture leave them out.
        """
        metadata = {"sample_weight": sample_weight, "known_labels": known_labels}
        data = {"X": X, "y": y, "metadata": metadata}
        with all_or_nothing(self), limited_blas():
            warm = bool(self.warm_start) and hasattr(self, "_fitted")
            X = self._validated(X, reset=not warm)
            if warm:
                check_warm_start(self._fitted, self)
            rows = self._make_rows(X, sample_weight, moments=True)
            check_enough_rows(rows, self.n_components)
            known = checked_known_labels(known_labels, rows, self, start=not warm)
            warn_if_encoded(X)
            spec, start = self._spec(rows, known), None if warm else self._start(rows)
            given = self._fitted.weights if start is None else start.weights
            tasks = callback_tasks(self, data, 3 * int(self.n_init))
            with Progress(tasks, self.verbose, self.verbose_interval) as progress:
                checkpoint = self._checkpoint(rows, warm, known)
                stops = int(self.max_iter), self.tol, self.flat_start
                starts = MultiStart(rows, progress, checkpoint, *stops, self._published)
                if start is None:
                    continued = self._fitted
                    if continued.n_components < self.n_components:
                        larger = self._start(rows)
                        continued = grown(larger, spec, continued, rows, self._generator())
                    spec, params = spec.continued(continued)
                    result = starts.run(spec, params)
                else:
                    spec, result = starts.best(spec, start, self._generator())
                fitted, stats = spec.fitted(result.params, result.stats)
                if stats is not None:
                    stats = replace(stats, unit=rows.weight_unit)
                found = result.of_rows if fitted.params is result.params else None
                labels, probabilities = found or self._labelled(fitted, X, rows)
                of_rows = {"labels_": labels, "probabilities_": probabilities, "n_steps_": 0}
                self._publish(fitted, stats, result, **of_rows)
        self._warn_if_degenerate(fitted)
        is_array = isinstance(labels, np.ndarray)  # else that of Dask, not computed here
        few = is_array and warn_if_few_distinct(rows, labels, int(self.n_components))
        if not few and self.max_iter > 0 and np.all(spec.weight_prior.alpha >= 1):
            n_first = self.n_components if given is None else int(np.count_nonzero(given))
            warn_if_fewer(int(np.count_nonzero(fitted.weights)), n_first)
        if not result.stopped:
            warn_if_unfinished(self, warm)
        return self

    @with_hints
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Self:
        """Take one step on a batch of a stream: online EM.

        A running average of statistics forgets earlier batches at the rate `learning_decay`
        (Cappé and Moulines, Journal of the Royal Statistical Society B 71, 2009). So the mixture
        follows a stream that changes, and converges if the stream is stationary. The first call
        finds initial components in its batch, as `fit` does. After `fit` or `from_parameters`, it
        continues from their parameters.

        Batches should be random samples of at least 25 rows per component, and the first batch of
        at least 100 rows per component. Sorted rows, for example by class, ruin any online
        method: shuffle them, or use `fit`. With `flat_start`, a prior below 1 is used after twice
        the number of rows that it subtracts.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The batch. The first one, and the first after `from_parameters`, needs as many rows
            as components; later ones may have any number.

        Returns
        -------
        self : object
            The mixture after the step. `labels_` and `probabilities_` are those of the batch.
        """
        self._validate_params()  # which the decorator leaves out after the first call
        with all_or_nothing(self), limited_blas():
            memory, continues = getattr(self, "_memory", None), hasattr(self, "_fitted")
            X = self._validated(X, reset=not continues)
            rows = self._make_rows(X, sample_weight, moments=True)
            if memory is None:
                check_enough_rows(rows, self.n_components, first_batch=not continues)
                warn_if_encoded(X)
            known = checked_known_labels(known_labels, rows, self, start=not continues)
            seen = weight_seen(memory, rows)
            if continues:
                fitted, memory = self._grown(rows, memory, seen)
                family = self._family_on(rows, seen)
                spec = replace(self._assembled(family, fitted.background), known=known)
            else:
                spec = self._spec(rows, known)
                stops = 0, self.tol, self.flat_start
                starts = MultiStart(rows, Progress(None), Checkpoint(), *stops, self._published)
                rng, flat = check_random_state(self.random_state), replace(spec, weight_prior=FLAT)
                best, result = starts.best(flat, self._start(rows), rng)
                fitted, _ = best.fitted(result.params)
            if self.flat_start:
                spec = flat_at_first(spec, self.n_components, seen)
            fitted, memory = step(spec, rows, fitted, memory, decay=float(self.learning_decay))
            labels, probabilities = self._labelled(fitted, X, rows)
            of_rows: Attributes = {"labels_": labels, "probabilities_": probabilities}
            of_rows["n_steps_"] = getattr(self, "n_steps_", 0) + 1
            for name in _WHOLE_FIT_ATTRIBUTES & set(vars(self)):
                delattr(self, name)
            self._publish(fitted, memory, **of_rows)
        return self

    @with_hints
    def fit_predict(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Array:
        """Fit the mixture and return the most probable component of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels, as `predict` returns them; -1 is the background.
        """
        return self.fit(X, sample_weight=sample_weight, known_labels=known_labels).labels_

    @classmethod
    def _from_parameters(cls, n_components: int, params: dict[str, object]) -> Self:
        """Return an estimator of `n_components` with the constructor parameters given."""
        if params.get("n_components", n_components) != n_components:
            raise ValueError(
                f"n_components={params['n_components']!r} does not agree with the given "
                f"parameters of {n_components} components: leave it out."
            )
        mixture = cls._with_params(params | {"n_components": n_components})
        mixture._validate_params()
        return mixture

    def _given_params(
        self, weights: ArrayLike, components: Components, background_weight: ArrayLike
    ) -> Params:
        beside = background_weight if self.background else None
        weights = checked_weights_and_background(weights, self.n_components, beside)
        return Params.first(weights, components).pruned()

    def _publish_given(self, fitted: FittedMixture, given: ArrayLike) -> Self:
        """Publish parameters that were given: nothing was fitted, so there are no labels."""
        validate_data(self, given, reset=True, skip_check_array=True)  # for its names
        constraint, prior = self._constraint(), np.asarray(self.weight_concentration_prior)
        order = constraint.order(fitted.params.components)
        if order is not None and prior.ndim:
            self.weight_concentration_prior = prior[order]  # each stays with its component
        params, _ = constraint.sort(fitted.family, fitted.params)
        fitted = replace(fitted, params=params)
        self._publish(fitted, n_iter_=0, converged_=False, n_steps_=0)
        return self

    def _grown(
        self, rows: RowSource, memory: Statistics | None, seen: float
    ) -> tuple[FittedMixture, Statistics | None]:
        """Return the fit that a batch continues, and its memory; the batch may add a component."""
        fitted, K = self._fitted, self._fitted.n_components
        check_stream_continues("n_components", K, self.n_components)
        check_stream_continues("background", len(fitted.background) > 0, self.background)
        if self.grow is None or K >= self.grow or rows.n_rows <= K or rows.total_weight == 0:
            return fitted, memory
        if {"weights", "means"} & set(self.fixed):
            raise ValueError(
                f"fixed={self.fixed!r} leaves new components no place: change it, or leave out "
                "grow."
            )
        larger = self._lean(fitted)
        larger.n_components, larger.init_params = K + 1, "merging"
        spec = larger._assembled(larger._family_on(rows, seen), fitted.background)
        rng = check_random_state(self.random_state)
        larger_fit = newcomer(larger._start(rows), spec, fitted, rows, rng)
        if larger_fit is None:
            return fitted, memory
        self.n_components = K + 1
        if memory is not None:
            memory = select_statistics(fitted.family, memory, np.append(np.arange(K), -1))
        return larger_fit, memory

    # What a subclass defines.

    @abstractmethod
    def _family(self, n_features: int) -> AnyFamily:
        """Return the family that the parameters describe, without what data adds."""

    def _family_on(self, rows: RowSource, weight_seen: float) -> AnyFamily:
        """Return the family for rows, and batches before by weight; refuse what does not fit."""
        return self._family(rows.n_features)

    def _background_on(self, rows: RowSource, family: Any) -> Background:
        """Return the background of rows, where the parameters ask for one."""
        raise NotImplementedError

    def _first_means(self, means: Array) -> Array:
        """Return finite first means (K, d) as components take them, or refuse them."""
        return means

    def _first_shapes(self, n_features: int) -> Array | None:
        """Return the first covariances or concentrations that the user gives, checked, or None."""
        return None

    def _constraint(self) -> Constraint:
        """Return what components must fulfil; refuses parameters that do not go together."""
        return Constraint()

    def _warn_if_degenerate(self, fitted: FittedMixture) -> None:
        """Warn if responsibilities are nearly uniform, so that components have become equal."""
        if self.temperature > 1 and not self.background:
            warn_if_uniform(self.temperature, self.probabilities_, fitted.weights)

    # Parameters as the engine takes them.

    def _spec(self, rows: RowSource, known: Array | None) -> Mixture:
        """Return the mixture that the parameters describe, for a fit on rows."""
        if rows.incomplete:
            refuse_unobserved(rows, getattr(self, "feature_names_in_", None))
        family = self._family_on(rows, rows.total_weight)
        background = self._background_on(rows, family) if self.background else NO_BACKGROUND
        return replace(self._assembled(family, background), known=known)

    def _assembled(self, family: AnyFamily, background: Background) -> Mixture:
        return Mixture(
            family=family,
            posterior=self._posterior(),
            weight_prior=self._weight_prior(),
            fixed_weights="weights" in self.fixed,
            background=background,
            constraint=self._constraint(),
        )

    # Where a fit begins.

    def _checkpoint(self, rows: RowSource, warm: bool, known: Array | None) -> Checkpoint:
        begins_with = self._fitted if warm else None
        params = self._all_params() | ({} if known is None else {"known_labels": known})
        described = partial(fit_description, type(self).__name__, params, rows, begins_with)
        return Checkpoint(self.checkpoint, described)

    def _generator(self) -> np.random.RandomState:
        if self.random_state is None and self.checkpoint is not None:
            return np.random.RandomState()  # its state may be set, unlike that of all NumPy
        return check_random_state(self.random_state)

    def _start(self, rows: RowSource) -> Start:
        """Return how fits start; refuse what cannot be used before any work."""
        K, weights = int(self.n_components), self.weights_init  # a uint8 would wrap around
        partition: Any = self.init_params
        means: Array | None = None
        if self.means_init is not None:
            given = checked_means(self.means_init, "means_init", (K, rows.n_features))
            means = self._first_means(given)
        shapes = self._first_shapes(rows.n_features)
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
        if K >= MANY:
            size = max(size, min(_ROWS_OF_MANY * K, _MANY_ROWS))
        start = make_start(
            K,
            partition,
            means,
            weights=weights,
            shapes=shapes,
            n_init=int(self.n_init),
            # twice as large a sample if much may be background
            init_size=int(self.init_size or size * (1 + self.background)),
        )
        if start.given and start.n_init > 1:
            warn(
                f"n_init={self.n_init} has no effect with means_init or a given partition: every "
                "start would be the same, so there is one.",
                RuntimeWarning,
            )
        return start

    # Predictions, scores and samples.

    @chunkwise(dtype=np.int64)
    def predict(self, X: MatrixLike) -> Array:
        """Return the most probable component of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels; -1 is the background. A row without a direction (a row of zeros to a
            mixture of directions) or without density under any component gets -1 with a
            background, otherwise the component with the largest weight.
        """
        rows = self._new_rows(X)
        return self._fitted.labels(rows, self._posterior())

    @chunkwise(wide=True, is_sparse=True)
    def responsibilities(self, X: MatrixLike) -> sparse.csr_array:
        """Return the responsibilities of the components for each row, without the zeros.

        Returns
        -------
        resp : csr_array of shape (n_samples, n_components)
            What `predict_proba` returns, as a sparse array: small if the posterior is sparse
            or hard.
        """
        rows = self._new_rows(X)
        parts = self._fitted.responsibilities(rows, self._posterior())
        sizes = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
        columns = np.concatenate([part.columns for part in parts])
        values = np.concatenate([part.values for part in parts], dtype=rows.dtype)
        index = np.int32 if len(columns) <= np.iinfo(np.int32).max else np.int64
        ends = np.concatenate([[0], np.cumsum(sizes)], dtype=index)
        return sparse.csr_array((values, columns, ends), (rows.n_rows, self._fitted.n_components))

    @chunkwise(wide=True)
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the responsibilities of the components for each row.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Responsibilities, which depend on `entmax_alpha` and `temperature`. Rows sum to one,
            or with a background to one minus its responsibility. Rows without a direction, or
            without density under any component, get `weights_`, or 0 with a background.
        """
        rows = self._new_rows(X)
        return self._fitted.probabilities(rows, self._posterior())

    def transform(self, X: MatrixLike) -> Any:
        """Return the responsibilities of the components for each row, as new features.

        Returns
        -------
        X_new : {ndarray, csr_array} of shape (n_samples, n_components)
            With exact zeros, which ``entmax_alpha > 1`` and ``temperature=0`` give, what
            `responsibilities` returns: a sparse array, which needs little memory for many
            components. Otherwise, or if `set_output` asks for frames, what `predict_proba`
            returns.
        """
        check_is_fitted(self)
        posterior = self._posterior()
        is_sparse = posterior.alpha > 1 or posterior.temperature == 0
        if is_sparse and not outputs_frames(self):
            return self.responsibilities(X)
        return self.predict_proba(X)

    @property
    def _n_features_out(self) -> int:
        return self._fitted.n_components

    @chunkwise()
    def score_samples(self, X: MatrixLike) -> Array:
        """Return the log-density of the mixture at each row.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities in the rows' dtype, at least its lowest number. They do not depend on
            `entmax_alpha` and `temperature`.
        """
        rows = self._new_rows(X)
        return self._fitted.log_densities(rows)

    @with_hints
    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted mean log-density of the rows.

        Returns
        -------
        log_likelihood : float
            Mean log-density.
        """
        rows = self._new_rows(X, sample_weight)
        total, weight = self._fitted.log_likelihood(rows)
        return total / weight if weight > 0 else self._fitted.family.zero_row_log_density

    def aic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Akaike information criterion on X; the lower the better.

        Returns
        -------
        aic : float
            Twice `n_parameters_` less twice the log-likelihood.
        """
        rows = self._new_rows(X, sample_weight)
        total, _ = self._fitted.log_likelihood(rows)
        return -2 * total + 2 * self.n_parameters_

    def bic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion on X; the lower the better.

        Returns
        -------
        bic : float
            `n_parameters_` times log n_samples less twice the log-likelihood.
        """
        rows = self._new_rows(X, sample_weight)
        return self._fitted.bic(*self._fitted.log_likelihood(rows))

    def icl(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood on X; the lower the better.

        It prefers components that do not overlap, as :class:`skvmf.model_selection.ComponentPath`
        says.

        Returns
        -------
        icl : float
            The BIC plus twice the entropy of the responsibilities.
        """
        rows = self._new_rows(X, sample_weight)
        total, n_samples, entropy = self._fitted.evaluate(rows, self._posterior())
        return self._fitted.bic(total, n_samples) + 2 * entropy

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component; rows of the background come last.
        y : ndarray of shape (n_samples,)
            The component of each row; -1 is the background.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        return self._fitted.sample(n_samples, check_random_state(self.random_state))

    # What other parts of the package need. As in scikit-learn's protocols, names with underscores
    # on both sides are neither public nor private to a mixture.

    def __gradient_names__(self) -> Mapping[str, str]:
        """Return the kinds of gradients, each with a name, also before a fit; or raise."""
        self._validate_params()
        return self._family(2).gradients.names

    def __vector_model__(self) -> VectorModel:
        """Return the fit as the engine has it, and as bags of vectors need it."""
        self._check_ready()
        return VectorModel(self._fitted, self._posterior(), self._vector_rows)

    def __merge_path__(self, X: MatrixLike, sample_weight: ArrayLike | None) -> MergePath:
        """Return the path from this fit down to fewer components, for the rows of the fit."""
        X = self._validated(X, reset=False)
        rows = self._make_rows(X, sample_weight, moments=True)

        def of_size(n_components: int) -> Mixture:
            mixture = clone(self).set_params(n_components=n_components)
            family = mixture._family_on(rows, rows.total_weight)
            return mixture._assembled(family, self._fitted.background)

        return MergePath(of_size, self._fitted, self.lower_bound_, rows, self.tol)

    def __with_fit__(self, fitted: FittedMixture, memory: Statistics | None = None) -> Self:
        """Return a mixture with the parameters and features of this one and another fit."""
        mixture: Self = clone(self).set_params(n_components=fitted.n_components)
        mixture._publish(fitted, memory)
        seen = {"n_features_in_", "feature_names_in_"} & vars(self).keys()
        vars(mixture).update({name: getattr(self, name) for name in seen})
        return mixture

    def __renumbered__(self, numbers: Array) -> Self:
        """Return a mixture of some of the components, by their numbers; -1 is a pruned one."""
        fitted, memory, kept = self._fitted, self._memory, numbers >= 0
        if self._constraint().order(fitted.params.components) is not None:
            raise ValueError(f"{type(self).__name__} sorts its components: they keep no numbers.")
        rest, chosen = fitted.params.weights[fitted.n_components :], np.where(kept, numbers, 0)
        weights = np.append(fitted.weights[chosen] * kept, rest)
        components = fitted.family.select(fitted.params.components, chosen)
        if memory is not None:
            memory = select_statistics(fitted.family, memory, numbers)
        params = Params.first(weights, components).pruned()
        result = self.__with_fit__(replace(fitted, params=params), memory)
        prior = np.asarray(self.weight_concentration_prior)
        if prior.ndim > 0:  # each stays with its component; one that is gone gets any
            result.weight_concentration_prior = prior[chosen]
        return result

    def _vector_rows(self, vectors: Array) -> RowSource:
        """Wrap vectors, as what predictions take; those of another size are refused."""
        if vectors.shape[1] == self._fitted.family.dim:
            return self._make_rows(vectors, None)
        return self._new_rows(vectors)

    # From what users give as X to rows that the engine reads.

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._family_class.sparse_rows
        tags.input_tags.allow_nan = self.missing_values == "marginal"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validated(self, X: MatrixLike, *, reset: bool) -> Any:
        """Return rows as scikit-learn validates them, or raise a ValueError."""
        accepts_sparse = self._family_class.sparse_rows
        if is_lazy(X):
            from ._dask import checked_rows

            rows, row = checked_rows(X, sparse_rows=accepts_sparse)
            validate_data(self, row, reset=reset)
        elif sparse.issparse(X) and not accepts_sparse:
            refuse_sparse_rows("X.toarray()")
        else:
            rows = validated_rows(
                self,
                X,
                accept_sparse="csr" if accepts_sparse else False,
                dtype=[np.float64, np.float32] if sparse.issparse(X) else READABLE,
                ensure_all_finite=False,  # the engine looks, in a pass that it makes anyway
                reset=reset,
            )
        if self.missing_values == "marginal" and rows.dtype.kind != "f":
            raise ValueError(
                f"missing_values='marginal' needs rows of floats: X is of {rows.dtype}, which has "
                "no NaN. Give X.astype(float), with NaN where a value is missing."
            )
        return rows

    def _make_rows(
        self, X: MatrixLike, sample_weight: ArrayLike | None, *, moments: bool = False
    ) -> RowSource:
        """Wrap validated rows for the engine, with weights that are checked here."""
        columns = moments and self._posterior().temperature > 0
        width = int(self.n_components)  # without moments each block is read once
        options = {"unit": self._family_class.unit_rows, "columns": columns}
        options["missing"] = self.missing_values == "marginal"
        if is_lazy(X):
            from ._dask import make_lazy_rows

            return make_lazy_rows(X, sample_weight, width=width, **options)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(in_memory(sample_weight), X)
        return make_rows(X, weights, width=width, ahead=moments, **options)

    def _new_rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> RowSource:
        self._check_ready()
        X = self._validated(X, reset=False)
        return self._make_rows(X, sample_weight)

    def _predict_lazily(
        self, method: str, X: MatrixLike, dtype: Any, wide: bool | str, is_sparse: bool
    ) -> Array:
        """Return what a method returns for a Dask array: one too, in the chunks of X."""
        from ._dask import mapped

        self._check_ready()
        X = self._validated(X, reset=False)
        width = {True: self._fitted.n_components, "features": self.n_features_in_}.get(wide)
        return mapped(self._lean(self._fitted), method, X, dtype, width, is_sparse)

    def _labelled(
        self, fitted: FittedMixture, X: MatrixLike, rows: RowSource
    ) -> tuple[Array, Array]:
        """Return the labels of validated rows, and the responsibilities of those components."""
        if not is_lazy(X):
            return fitted.most_responsible(rows, self._posterior())
        from ._dask import mapped

        lean = self._lean(fitted)
        return mapped(lean, "predict", X, np.int64), mapped(lean, "_largest_responsibilities", X)

    def _largest_responsibilities(self, X: MatrixLike) -> Array:
        return self._fitted.most_responsible(self._new_rows(X), self._posterior())[1]

    def _lean(self, fitted: FittedMixture) -> Self:
        """Return an estimator with a fit and without what only fits need, to send to workers."""
        params = self._all_params()
        defaults = {name: None for name in params if name.endswith("_init") and name != "n_init"}
        lean = self._with_params(params | defaults | {"init_params": "kmeans"})
        lean._publish(fitted)
        lean.n_features_in_ = fitted.family.dim
        return lean

    # Fitted attributes.

    def _attributes(self, fitted: FittedMixture, result: MixtureResult | None = None) -> Attributes:
        """Return the fitted attributes that follow from the parameters, or from a whole fit."""
        weights = fitted.weights
        if weights.any():
            weights = weights / weights.sum()
        attributes: dict[str, Any] = {
            "weights_": fitted.weights,
            "background_weight_": fitted.params.background_weight,
            "n_active_components_": int(np.count_nonzero(weights)),
            "n_parameters_": fitted.n_parameters,
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

    def _publish(
        self,
        fitted: FittedMixture,
        memory: Statistics | None = None,
        result: MixtureResult | None = None,
        **others: object,
    ) -> None:
        """Set the fit, the statistics of its rows and all its attributes, in one step."""
        self.__dict__ = vars(self) | self._published(fitted, memory, result) | others

    def _published(
        self,
        fitted: FittedMixture,
        memory: Statistics | None = None,
        result: MixtureResult | None = None,
    ) -> Attributes:
        attributes, weight = self._attributes(fitted, result), 0.0
        published = {name: read_only(value) for name, value in attributes.items()}
        if memory is not None:
            memory = replace(memory, buffers=None)
            weight = min(float(memory.total) * memory.unit, np.finfo(float).max)
        return published | {"weight_seen_": weight, "_fitted": fitted, "_memory": memory}

    if not TYPE_CHECKING:  # every attribute would then exist

        def __getattr__(self, name: str) -> Any:
            hint = attribute_hint(self._hints, name, vars(self))
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message if hint is None else f"{message}: {hint}")

    def __getstate__(self) -> Attributes:
        state: dict[str, Any] = dict(super().__getstate__())
        fitted, memory = state.pop("_fitted", None), state.pop("_memory", None)
        if fitted is not None:
            annotated = {name for base in type(self).__mro__ for name in get_annotations(base)}
            follows = {name for name in annotated if name.endswith("_")}
            # Labels of a Dask array are its graph, or a cluster's, and stay with it.
            graphs = {k for k, v in state.items() if hasattr(v, "__dask_graph__")}
            state = {k: v for k, v in state.items() if k not in follows | graphs}
            state["_fit"] = fitted.params.to_dict() | {
                "family": as_dict(fitted.family),
                "background": as_dict(fitted.background),
                "fixed_weights": fitted.mixture.fixed_weights,
                "memory": None if memory is None else as_dict(memory),
            }
        return state

    def __setstate__(self, state: Attributes) -> None:
        state = dict(state)
        fit = state.pop("_fit", None)
        super().__setstate__(state)
        if fit is not None:
            family = self._family_class(**fit["family"])
            params = Params.from_dict(family.components_class, fit)
            memory = None if fit["memory"] is None else Statistics(**fit["memory"])
            fixed, background = fit["fixed_weights"], Background(**fit["background"])
            mixture = Mixture(family, fixed_weights=fixed, background=background)
            self._publish(FittedMixture(mixture, params), memory)
