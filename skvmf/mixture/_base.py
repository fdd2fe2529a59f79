"""The one class under all mixtures: fits, predictions and fitted attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import entr
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._engine.em import predictions
from .._engine.em.calibration import Reliability, best_temperature, reliability
from .._engine.em.checkpoint import Checkpoint
from .._engine.em.limited import limited_labels
from .._engine.em.merge_path import MergePath
from .._engine.em.mixture import Mixture, MixtureResult, Point
from .._engine.em.online import flat_at_first, step, weight_seen
from .._engine.em.progress import Progress
from .._engine.em.size_limits import SizeLimits
from .._engine.em.vectors import VectorModel
from .._engine.em.weight_prior import FLAT, ModifiedDirichlet
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.families.family import AnyFamily, Constraint
from .._engine.families.params import Components, Params, as_dict
from .._engine.families.statistics import Statistics, select_statistics
from .._engine.fit import MultiStart
from .._engine.rows.parallel import limited_blas
from .._engine.rows.sources import RowSource
from .._engine.search.growth import centres_of_added
from .._engine.search.overseeding import MIN_COMPONENTS_OF_MANY
from .._engine.search.partitions import Assignment
from .._engine.search.starts import Start, make_start
from .._sklearn import (
    CallbackTasks,
    all_or_nothing,
    fit_context,
    outputs_frames,
    validate_data,
    validate_parameter_constraints,
    with_callbacks,
)
from .._typing import Array, Attributes, MatrixLike, RandomState, warn
from ..distributions._arguments import check_count, checked_generator
from ._calibration import N_BINS, is_softmax, judged_rows, probabilities_of_labels
from ._checks import (
    check_stream_continues,
    check_warm_start,
    checked_means,
    checked_partition,
    checked_weights,
    checked_weights_and_background,
)
from ._hints import attribute_hint
from ._parameters import MixtureParameters, fit_description
from ._rows import Data, Role, chunkwise, read_rows, rows_in_memory, validated_chunks
from ._warnings import (
    has_empty_components,
    warn_if_unfinished,
    warn_if_uniform,
    warn_of_empty_components,
)

# How many rows the sample of a start has: more take longer, and fewer may miss small clusters.
_ROWS_PER_COMPONENT = 100
_MIN_ROWS = 10_000
# A start of directions that sees too few grows its sample up to this: for a hundred clusters with a
# mean resultant length of .2 in 384 features, 300 for each missed .04 nats a row, 600 none.
_MAX_ROWS_PER_COMPONENT = 600
# Where there are many components, a start looks at regions of the rows one after the other, so that
# it can look at more rows; up to so many in all. With 1,000 clusters of directions in 128 features
# 200, 250 and 400 for each ended within .002 nats a row of each other, and 100 lost .035.
_ROWS_PER_COMPONENT_OF_MANY = 250
_MAX_ROWS_OF_MANY = 10**6
# That callbacks see: the search, the flat start, the start; with limits on sizes a run within them.
_STAGES_OF_A_START = 3
_OF_PREDICTIONS = "entmax_alpha", "temperature", "missing_values"
_OF_CALIBRATION = ("membership_temperature_", "_skvmf_reliability")
_OF_WHOLE_FITS = {"n_iter_", "converged_", "lower_bound_", "lower_bounds_"}


class Beginning(NamedTuple):
    """Where a fit begins: at a start, or at the parameters of the fit that it continues."""

    mixture: Mixture
    first: Start | Point
    n_starts: int  # that compete
    n_components: int  # with a weight


class BaseMixture(MixtureParameters, ABC):
    """The fit, predictions and fitted attributes of every mixture.

    A subclass turns its parameters into a `Mixture` (`_family`, `_assembled`), and the parameters
    of a fit into public attributes (`_attributes`). `_fitted` is the fit, set by a fit or
    `from_parameters` only. Attributes that a class annotates follow from the fit's parameters:
    they are not part of a pickle, but computed again. `_family_class` restores the family.

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
        have no rows; ``np.unique(labels_, return_inverse=True)[1]`` are labels without gaps. For
        a small pickle, delete `labels_` and `probabilities_`: predictions do not need them.
    probabilities_ : ndarray of shape (n_samples,)
        Responsibility of that component, the largest one of the row; 0 if the label is -1.
    membership_temperature_ : float
        What `calibrate` divides log-odds of components by where memberships are published. It is
        1 until then.
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
        membership_temperature_: float
        n_steps_: int
        weight_seen_: float
        n_features_in_: int
        feature_names_in_: Array
        _skvmf_reliability: Reliability | None  # of memberships, where they are calibrated

    _fitted: Point
    _running_statistics: Statistics | None  # of all rows since the last fit began
    _family_class: ClassVar[type[AnyFamily]]
    # Parameters that may have a value for each component, and say what a component is. They are
    # read where a fit begins, and stay with their components from there.
    _by_number: ClassVar[tuple[str, ...]] = ("weight_concentration_prior",)
    _read_by_number: dict[str, Array]  # as they were read
    _skvmf_has_known_labels: bool = False  # whether the fit knew labels of rows

    # Fits: in one call, batch by batch, or from given parameters.

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
        that of an exact step. A fit forgets the temperature that `calibrate` has found, also with
        `warm_start`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The rows: dense of any number type, or CSR of float32 or float64 if the mixture takes
            sparse rows. They are read block by block, also from a `numpy.memmap`. float16 and
            integers of up to 16 bits are read as float32, without rounding, and wider integers as
            float64. A Dask array is read chunk by chunk, and parameters are bit-identical to
            those of a fit in memory. `labels_` and `probabilities_` are then Dask arrays, which
            agree to rounding; copies and pickles of the mixture leave them out.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known, otherwise -1; -2 is a row of the
            background. The fit keeps these rows there and starts with their means, so component k
            is class k. Rows of a component that has left the mixture count as unknown. `labels_`
            are, like `predict`, free of `known_labels`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        progress = self._progress(X, y, sample_weight, known_labels)
        with all_or_nothing(self), limited_blas(), progress:
            continued = self._fit_to_continue()
            data = read_rows(self, X, sample_weight, known_labels, role="fit", fitted=continued)
            checkpoint = self._checkpoint(data, continued)
            beginning = self._begin(data, continued)
            starts = MultiStart(data.rows, progress, checkpoint, **self._stops())
            if isinstance(beginning.first, Start):
                result = starts.best(beginning.mixture, beginning.first, self._generator())
            else:
                result = starts.run(beginning.first)
            fitted, statistics = result.point.sorted(result.stats)
            if statistics is not None:
                statistics = replace(statistics, unit=data.rows.weight_unit)
            # Truncated steps note labels, which hold if components were not sorted since.
            if result.of_rows is not None and fitted.params is result.point.params:
                labelled = result.of_rows
            else:
                labelled = self._labelled(fitted, data)
            limits = beginning.mixture.size_limits
            if limits is not None:
                labelled = limited_labels(fitted, limits, data.rows, *labelled)
            self._publish_labelled(fitted, statistics, labelled, n_steps=0, result=result)
            are_known = continued is not None and self._skvmf_has_known_labels
            self._skvmf_has_known_labels = are_known or data.known is not None
        self._warn_if_degenerate(fitted)
        if has_empty_components(self):
            warn_of_empty_components(self, data.rows, beginning.n_components)
        if not result.stopped:
            warn_if_unfinished(self, beginning.n_starts)
        return self

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

        A step forgets the temperature that `calibrate` has found.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The batch. The first one, and the first after `from_parameters`, needs as many rows
            as components; later ones may have any number.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known, otherwise -1; -2 is a row of the
            background. The fit keeps these rows there and starts with their means, so component k
            is class k. Rows of a component that has left the mixture count as unknown. `labels_`
            are, like `predict`, free of `known_labels`.

        Returns
        -------
        self : object
            The mixture after the step. `labels_` and `probabilities_` are those of the batch.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        self._validate_params()  # which the decorator leaves out after the first call
        with all_or_nothing(self), limited_blas():
            continued = self._stream_to_continue()
            before = getattr(self, "_running_statistics", None)
            role: Role = "first batch" if before is None else "batch"
            data = read_rows(self, X, sample_weight, known_labels, role=role, fitted=continued)
            seen = weight_seen(before, data.rows)
            if continued is None:
                mixture = self._mixture(data, seen)
                continued = self._first_components(mixture, data.rows)
            else:
                mixture = self._continuing(continued)._mixture(data, seen, continued.background)
            if self.flat_start:
                mixture = flat_at_first(mixture, self.n_components, seen)
            decay = float(self.learning_decay)
            fitted, statistics = step(mixture, data.rows, continued, before, decay=decay)
            labelled = self._labelled(fitted, data)
            n_steps = getattr(self, "n_steps_", 0) + 1
            self._publish_labelled(fitted, statistics, labelled, n_steps)
            self._skvmf_has_known_labels = self._skvmf_has_known_labels or data.known is not None
        return self

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
            background. The fit keeps these rows there and starts with their means, so component k
            is class k. Rows of a component that has left the mixture count as unknown. `labels_`
            are, like `predict`, free of `known_labels`.

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

    def _publish_given(self, fitted: Point, given: ArrayLike) -> Self:
        """Publish parameters that were given: nothing was fitted, so there are no labels."""
        validate_data(self, given, reset=True, skip_check_array=True)  # for its names
        constraint = self._constraint()
        order = constraint.order(fitted.params.components)
        if order is not None:
            self._renumber_parameters(order, fitted.n_components)
        params, _ = constraint.sort(fitted.family, fitted.params)
        mixture = replace(fitted.mixture, weight_prior=self._weight_prior())
        self._publish(Point(mixture, params), n_iter_=0, converged_=False, n_steps_=0)
        self._read_by_number = self._parameters_by_number()
        return self

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

    def _size_limits_of(self, data: Data) -> SizeLimits | None:
        """Return limits on the sizes of components of a fit, None if there are none."""
        return None

    def _warn_if_degenerate(self, fitted: Point) -> None:
        """Warn if responsibilities are nearly uniform, so that components have become equal."""
        if self.temperature > 1 and not self.background:
            warn_if_uniform(self.temperature, self.probabilities_, fitted.weights)

    # Parameters as the engine takes them.

    def _mixture(
        self, data: Data, weight_seen: float, background: Background | None = None
    ) -> Mixture:
        """Return the mixture that the parameters describe, for rows of a fit.

        A stream keeps the background that it has; others have that of the rows.
        """
        family = self._family_on(data.rows, weight_seen)
        if background is None and self.background:
            background = self._background_on(data.rows, family)
        elif background is None:
            background = NO_BACKGROUND
        mixture = self._assembled(family, background)
        if self.weight_concentration_prior is None:
            mixture = replace(mixture, weight_prior=self._weight_prior(weight_seen))
        return replace(mixture, known=data.known, size_limits=self._size_limits_of(data))

    def _assembled(self, family: AnyFamily, background: Background) -> Mixture:
        """Return a mixture of a family and of what else the parameters choose."""
        return Mixture(
            family=family,
            posterior=self._posterior(),
            weight_prior=self._weight_prior(),
            fixed_weights="weights" in self.fixed,
            background=background,
            constraint=self._constraint(),
        )

    # Parameters that describe components by number, and travel with these.

    def _parameters_by_number(self) -> dict[str, Array]:
        """Return the parameters that have a value for each component, by name."""
        values = {name: np.array(getattr(self, name)) for name in self._by_number}
        return {name: value for name, value in values.items() if value.ndim > 0}

    def _by_number_in(self, fitted: Point) -> dict[str, tuple[Array, float]]:
        """Return parameters by number as a fit has them, and what added components get."""
        alpha = fitted.mixture.weight_prior.alpha
        of_each = np.broadcast_to(alpha, len(fitted.params.weights))[: fitted.n_components]
        return {"weight_concentration_prior": (of_each, 1.0)}

    def _continuing(self, fitted: Point) -> Self:
        """Return an estimator with the parameters of this one, for a fit that goes on.

        Parameters by number are those of the fit unless they were set since; what is given for a
        start from scratch is left out. So nothing has to be as long as `n_components` is now.
        """
        read = getattr(self, "_read_by_number", {})
        of_fit = self._by_number_in(fitted)
        continuing = type(self).__new__(type(self))  # without a copy of anything
        continuing.__dict__ = vars(self) | dict.fromkeys(self._first_values())
        for name, value in self._parameters_by_number().items():
            if name in read and np.array_equal(value, read[name]):
                values, value_of_added = of_fit[name]
                added = np.full(int(self.n_components) - len(values), value_of_added)
                setattr(continuing, name, np.append(values, added))
        return continuing

    def _first_values(self) -> dict[str, Any]:
        """Return what is given for components to begin with, by the names of the parameters."""
        names = [name for name in self._parameter_constraints if name.endswith("_init")]
        return {name: getattr(self, name) for name in names if name != "n_init"}

    def _renumber_parameters(self, numbers: Array, n_components: int) -> None:
        """Let parameters that are given for each component follow these to other numbers."""
        for name, value in (self._first_values() | self._parameters_by_number()).items():
            if value is not None and np.shape(value)[:1] == (n_components,):
                setattr(self, name, np.asarray(value)[numbers])
        for name, value in getattr(self, "_read_by_number", {}).items():
            if len(value) == n_components:  # else it was given before components were added
                self._read_by_number[name] = value[numbers]

    # The steps of a fit: where it begins, what it runs, and what it publishes.

    def _fit_to_continue(self) -> Point | None:
        """Return the fit that a warm start continues, None without one."""
        if not self.warm_start or not hasattr(self, "_fitted"):
            return None
        check_warm_start(self._fitted, self)
        return self._fitted

    def _begin(self, data: Data, continued: Point | None) -> Beginning:
        """Return where a fit begins; refuse what cannot be used before any work."""
        if continued is not None:
            return self._begin_warm(data, continued)
        start = self._start(data.rows)
        mixture = self._mixture(data, data.rows.total_weight)
        return Beginning(mixture, start, int(self.n_init), n_with_weight(start))

    def _begin_warm(self, data: Data, continued: Point) -> Beginning:
        """Return a beginning where the last fit has ended, with more components if asked for."""
        mixture = self._continuing(continued)._mixture(data, data.rows.total_weight)
        centres: Array | None = None
        if continued.n_components < self.n_components:
            start = self._start_of_added_components()
            rng = self._generator()
            centres = centres_of_added(start, mixture, continued, data.rows, rng)
        first = continued.continued_as(mixture, data.rows, centres)
        n_components = int(np.count_nonzero(first.weights))
        return Beginning(mixture, first, n_starts=1, n_components=n_components)

    def _start(self, rows: RowSource) -> Start:
        """Return how fits begin that continue none."""
        K = int(self.n_components)  # a uint8 would wrap around
        means: Array | None = None
        if self.means_init is not None:
            given = checked_means(self.means_init, "means_init", (K, rows.n_features))
            means = self._first_means(given)
        shapes = self._first_shapes(rows.n_features)
        partition: str | Assignment
        if isinstance(self.init_params, str):
            partition = self.init_params
        else:
            partition = checked_partition(self.init_params, rows, K, self.background)
        weights: Array | None = None
        if self.weights_init is not None:
            weights = checked_weights(self.weights_init, K, "weights_init")
        elif "weights" in self.fixed:
            weights = np.full(K, 1 / K)
        for name, first in [("means", means), ("concentrations", shapes)]:
            if name in self.fixed and first is None:
                raise ValueError(f"fixed={self.fixed!r} keeps the first {name}: give {name}_init.")
        n_init = int(self.n_init)
        sizes = self._sample_sizes()
        start = make_start(
            K, partition, means, weights=weights, shapes=shapes, n_init=n_init, **sizes
        )
        if start.given and n_init > 1:
            warn(
                f"n_init={self.n_init} has no effect with means_init or a given partition: every "
                "start would be the same, so there is one.",
                RuntimeWarning,
            )
        return start

    def _start_of_added_components(self) -> Start:
        """Return the start at whose clusters a warm start puts more components.

        What is given for the components of a start from scratch is not used: the old ones are where
        they are. A given partition leaves it to k-means to find clusters.
        """
        search = self.init_params if isinstance(self.init_params, str) else "kmeans"
        K, n_init = int(self.n_components), int(self.n_init)
        return make_start(K, search, n_init=n_init, **self._sample_sizes())

    def _sample_sizes(self) -> dict[str, Any]:
        """Return how many rows a start looks at, and how many at most if it needs more."""
        if self.init_size is not None:
            return {"init_size": int(self.init_size)}
        K = int(self.n_components)
        size = max(_ROWS_PER_COMPONENT * K, _MIN_ROWS)
        if K >= MIN_COMPONENTS_OF_MANY:
            size = max(size, min(_ROWS_PER_COMPONENT_OF_MANY * K, _MAX_ROWS_OF_MANY))
        if self.background:
            size *= 2  # as much of the sample may be background
        return {"init_size": size, "max_init_size": _MAX_ROWS_PER_COMPONENT * K}

    def _generator(self) -> np.random.Generator:
        return checked_generator(self.random_state)

    def _checkpoint(self, data: Data, continued: Point | None) -> Checkpoint:
        # Known labels are no parameter, and yet the result depends on them.
        params = self._all_params()
        if data.known is not None:
            params["known_labels"] = data.known
        name = type(self).__name__
        described = partial(fit_description, name, params, data.rows, continued)
        return Checkpoint(self.checkpoint, described)

    def _progress(
        self,
        X: MatrixLike,
        y: object,
        sample_weight: ArrayLike | None,
        known_labels: ArrayLike | None,
    ) -> Progress:
        """Return what shows a fit to its user, and to callbacks, which may ask for arguments."""
        metadata = {"sample_weight": sample_weight, "known_labels": known_labels}
        arguments = {"X": X, "y": y, "metadata": metadata}
        n_stages = _STAGES_OF_A_START + (self.size_limits is not None)
        tasks = CallbackTasks(self, arguments, n_stages * int(self.n_init))
        return Progress(tasks, self.verbose, self.verbose_interval)

    def _stops(self) -> dict[str, Any]:
        """Return when the runs of a fit stop, and what its callbacks see."""
        return {
            "max_iter": int(self.max_iter),
            "tol": self.tol,
            "flat_start": self.flat_start,
            "attributes": self._public_attributes,
        }

    # The steps of `partial_fit`.

    def _stream_to_continue(self) -> Point | None:
        """Return the fit that a batch continues, None if there is none yet."""
        if not hasattr(self, "_fitted"):
            return None
        check_stream_continues(self._fitted, self)
        return self._fitted

    def _first_components(self, mixture: Mixture, rows: RowSource) -> Point:
        """Return the components that the first batch of a stream begins with: those of a start."""
        no_steps = self._stops() | {"max_iter": 0}
        starts = MultiStart(rows, Progress(), Checkpoint(), **no_steps)
        # A prior that removes components waits for more rows than those of a batch.
        flat = replace(mixture, weight_prior=FLAT)
        result = starts.best(flat, self._start(rows), self._generator())
        return result.point.sorted()[0]

    # Memberships that hold.

    def calibrate(
        self,
        X: MatrixLike,
        *,
        n_resamples: int = 3,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Soften memberships until they are those that other fits of such rows give.

        In many dimensions a mixture says 0.95 where another fit gives the row's component 0.75:
        features depend on each other within components, so log-densities are too far apart, by
        about one factor, the temperature (Guo et al., "On calibration of modern neural networks",
        ICML 2017). It is found by fits from new starts to rows drawn with replacement, a bootstrap.
        At this temperature the mean largest membership is what these fits give to the same
        components, of rows that they have not drawn (Clarté et al., "Expectation consistency for
        calibration of neural networks", UAI 2023). Components are matched by the rows that they
        share. One number serves all components: it does not tell clusters that come again from
        others, as :func:`~skvmf.inspection.component_stability` does.

        From then on `predict_proba`, `responsibilities`, `transform` and `probabilities_` are
        those at this temperature. Labels, densities, criteria, samples, Fisher vectors and the
        fit itself stay. The next `fit` or `partial_fit` forgets the temperature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the fit, or a random sample of them, twice as many as components at least.
            With fewer than some 300 for each component, the temperature is too high: fits to few
            rows differ more. Each fit copies two thirds of them. After a sample, `probabilities_`
            is removed, as it would be that of other rows; `predict_proba` takes any.
        n_resamples : int, default=3
            Number of fits, of which each takes about as long as `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the rows in the fit.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known, as `fit` took them: new fits then keep
            the known rows that they have drawn, and the others say what holds: the mean largest
            membership is then the share of them that get their own component.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws and of the starts.

        Returns
        -------
        self : object
            The mixture, with `membership_temperature_` of at least 1 and at most 10,000.

        Raises
        ------
        TypeError, ValueError
            If rows are too few or a Dask array, memberships have exact zeros, or an argument is
            wrong. The estimator then stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from skvmf import SparseGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(500, 20)) * np.arange(20)
        >>> mixture = SparseGaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
        >>> print(f"{mixture.probabilities_.mean():.2f}")
        0.99
        >>> print(f"{mixture.calibrate(X, random_state=0).probabilities_.mean():.2f}")
        0.94
        """
        judged = judged_rows(self, X, n_resamples, sample_weight, known_labels, random_state)
        with all_or_nothing(self):
            self.membership_temperature_ = best_temperature(judged)
            self._skvmf_reliability = reliability(judged, self.membership_temperature_, N_BINS)
            if hasattr(self, "probabilities_"):
                found = probabilities_of_labels(self, X)
                if found is None:
                    del self.probabilities_
                else:
                    self.probabilities_ = found
        return self

    # Predictions, scores and samples.

    @chunkwise(dtype=np.int64)
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
            mixture of directions) or without density under any component gets -1 with a
            background, otherwise the component with the largest weight.
        """
        rows = self._new_rows(X)
        return predictions.labels(self._as_published(), rows)

    @chunkwise(columns="components", is_sparse=True)
    def responsibilities(self, X: MatrixLike) -> sparse.csr_array:
        """Return the responsibilities of the components for each row, without the zeros.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : csr_array of shape (n_samples, n_components)
            What `predict_proba` returns, as a sparse array: small if the posterior is sparse
            or hard.
        """
        rows = self._new_rows(X)
        blocks = predictions.responsibilities(self._calibrated(), rows)
        sizes = np.concatenate([np.diff(block.ends, prepend=0) for block in blocks])
        columns = np.concatenate([block.columns for block in blocks])
        values = np.concatenate([block.values for block in blocks], dtype=rows.dtype)
        index = np.int32 if len(columns) <= np.iinfo(np.int32).max else np.int64  # as SciPy's
        ends = np.concatenate([[0], np.cumsum(sizes)], dtype=index)
        return sparse.csr_array((values, columns, ends), (rows.n_rows, self._fitted.n_components))

    @chunkwise(columns="components")
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the responsibilities of the components for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Responsibilities, which depend on `entmax_alpha` and `temperature`, and after
            `calibrate` on `membership_temperature_`. Rows sum to one, or with a background to one
            minus its responsibility. Rows without a direction, or without density under any
            component, get `weights_`, or 0 with a background.
        """
        rows = self._new_rows(X)
        return predictions.probabilities(self._calibrated(), rows)

    def transform(self, X: MatrixLike) -> Any:
        """Return the responsibilities of the components for each row, as new features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

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
        rows = self._new_rows(X)
        return predictions.log_densities(self._fitted, rows)

    def _labels_and_log_densities(self, X: MatrixLike) -> tuple[Array, Array]:
        """Return what `predict` and `score_samples` do of rows in memory."""
        return predictions.labels_and_log_densities(self._as_published(), self._new_rows(X))

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
        rows = self._new_rows(X, sample_weight)
        total, weight = predictions.log_likelihood(self._fitted, rows)
        return total / weight if weight > 0 else self._fitted.family.zero_row_log_density

    def aic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Akaike information criterion on X; the lower the better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        aic : float
            Twice `n_parameters_` less twice the log-likelihood.
        """
        rows = self._new_rows(X, sample_weight)
        total, _ = predictions.log_likelihood(self._fitted, rows)
        return -2 * total * rows.weight_unit + 2 * self.n_parameters_

    def bic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion on X; the lower the better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        bic : float
            `n_parameters_` times log n_samples less twice the log-likelihood.
        """
        rows = self._new_rows(X, sample_weight)
        total, n_samples = predictions.log_likelihood(self._fitted, rows)
        unit = rows.weight_unit
        return predictions.bic(self._fitted, total * unit, n_samples * unit)

    def icl(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood on X; the lower the better.

        It prefers components that do not overlap, as :class:`skvmf.model_selection.ComponentPath`
        says.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        icl : float
            The BIC plus twice the entropy of the responsibilities.
        """
        rows = self._new_rows(X, sample_weight)
        total, n_samples, entropy = predictions.evaluate(self._as_published(), rows)
        unit = rows.weight_unit
        bic = predictions.bic(self._fitted, total * unit, n_samples * unit)
        return bic + 2 * entropy * unit

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component; rows of the background come last.
        y : ndarray of shape (n_samples,)
            The component of each row; -1 is the background.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        return predictions.sample(self._fitted, n_samples, self._generator())

    # What other parts of the package need. As in scikit-learn (`_sklearn_output_config`), names
    # that begin with the package's name are neither public nor private to a mixture.

    def _skvmf_gradient_names(self) -> Mapping[str, str]:
        """Return the kinds of gradients, each with a name, also before a fit; or raise."""
        self._validate_params()
        return self._family(2).gradients.names

    def _skvmf_vector_model(self) -> VectorModel:
        """Return the fit as the engine has it, and as bags of vectors need it."""
        self._check_ready()
        # Gradients are those of log-densities, which limits on sizes do not change.
        published = self._as_published()
        plain = published.at(replace(published.params, offsets=None))
        return VectorModel(plain, self._vector_rows)

    def _skvmf_merge_path(
        self,
        X: MatrixLike,
        sample_weight: ArrayLike | None,
        known_labels: ArrayLike | None = None,
        n_classes: int = 0,
    ) -> MergePath:
        """Return the path from this fit down to fewer components, for the rows of the fit.

        The first components are those of `n_classes` classes, of which labels are known.
        """
        data = read_rows(self, X, sample_weight, known_labels, role="batch", fitted=self._fitted)
        rows = data.rows

        def of_size(n_components: int) -> Mixture:
            continuing = self._continuing(self._fitted)
            continuing.n_components = n_components
            family = continuing._family_on(rows, rows.total_weight)
            return continuing._assembled(family, self._fitted.background)

        return MergePath(
            of_size, self._fitted, self.lower_bound_, rows, self.tol, data.known, n_classes
        )

    def _skvmf_with_fit(self, fitted: Point, statistics: Statistics | None = None) -> Self:
        """Return a mixture with the parameters and features of this one and another fit."""
        mixture: Self = clone(self).set_params(n_components=fitted.n_components)
        mixture._publish(fitted, statistics)
        for name in ("n_features_in_", "feature_names_in_", "_skvmf_has_known_labels"):
            if name in vars(self):
                setattr(mixture, name, getattr(self, name))
        return mixture

    def _skvmf_renumbered(self, numbers: Array) -> Self:
        """Return a mixture of some of the components, by their numbers; -1 is a pruned one."""
        fitted = self._fitted
        if self._constraint().order(fitted.params.components) is not None:
            raise ValueError(f"{type(self).__name__} sorts its components: they keep no numbers.")
        are_kept = numbers >= 0
        chosen = np.where(are_kept, numbers, 0)
        background_weight = fitted.params.weights[fitted.n_components :]
        weights = np.append(np.where(are_kept, fitted.weights[chosen], 0.0), background_weight)
        components = fitted.family.select(fitted.params.components, chosen)
        offsets = None if fitted.params.offsets is None else fitted.params.offsets[chosen]
        statistics = self._running_statistics
        if statistics is not None:
            statistics = select_statistics(fitted.family, statistics, numbers)
        params = replace(Params.first(weights, components).pruned(), offsets=offsets)
        mixture = fitted.mixture.renumbered(chosen)
        result = self._skvmf_with_fit(Point(mixture, params), statistics)
        # A component that is gone has the parameters of another one, which nothing uses.
        result._read_by_number = dict(getattr(self, "_read_by_number", {}))
        result._renumber_parameters(chosen, fitted.n_components)
        for name in _OF_CALIBRATION:
            setattr(result, name, getattr(self, name))
        return result

    def _as_published(self) -> Point:
        """Return the fit with responsibilities as the parameters ask for them now."""
        return self._fitted.with_posterior(self._posterior())

    def _calibrated(self) -> Point:
        """Return the fit with memberships at the temperature that `calibrate` has found."""
        posterior = self._posterior()
        if is_softmax(posterior):
            temperature = posterior.temperature * self.membership_temperature_
            posterior = replace(posterior, temperature=temperature)
        return self._fitted.with_posterior(posterior)

    def _vector_rows(self, vectors: Array) -> RowSource:
        """Wrap vectors, as what predictions take; those of another size are refused."""
        if vectors.shape[1] == self._fitted.family.dim:
            return rows_in_memory(self, vectors)
        return self._new_rows(vectors)

    # Rows of predictions.

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._family_class.sparse_rows
        tags.input_tags.allow_nan = self.missing_values == "marginal"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_ready(self) -> None:
        """Check that there was a fit, and the parameters that predictions read.

        All others were checked by the fit, and to check them again takes longer than one row does.
        """
        if "_fitted" not in vars(self):
            check_is_fitted(self)  # which says so, and takes longer where there was one
        constraints = self._parameter_constraints
        read = [name for name in _OF_PREDICTIONS if name in constraints]
        validate_parameter_constraints(
            {name: constraints[name] for name in read},
            {name: getattr(self, name) for name in read},
            caller_name=type(self).__name__,
        )

    def _new_rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> RowSource:
        self._check_ready()
        return read_rows(self, X, sample_weight, fitted=self._fitted).rows

    def _predict_chunks(
        self, method: str, X: MatrixLike, dtype: Any, columns: str | None, is_sparse: bool
    ) -> Array:
        """Return what a method returns for a Dask array: one too, in the chunks of X."""
        from ._dask import mapped

        self._check_ready()
        chunks = validated_chunks(self, X, reset=False)
        n_columns = {"components": self._fitted.n_components, "features": self.n_features_in_}
        width = None if columns is None else n_columns[columns]
        mixture = self._without_data(self._fitted)
        mixture.membership_temperature_ = self.membership_temperature_
        return mapped(mixture, method, chunks, dtype, width, is_sparse)

    def _labelled(self, fitted: Point, data: Data) -> tuple[Array, Array]:
        """Return labels and the responsibilities of those components, of Dask arrays as such."""
        if data.chunks is None:
            return predictions.labels_and_probabilities(fitted, data.rows)
        from ._dask import mapped

        mixture = self._without_data(fitted)
        labels = mapped(mixture, "predict", data.chunks, np.int64)
        return labels, mapped(mixture, "_largest_responsibilities", data.chunks)

    def _largest_responsibilities(self, X: MatrixLike) -> Array:
        return predictions.labels_and_probabilities(self._calibrated(), self._new_rows(X))[1]

    def _without_data(self, fitted: Point) -> Self:
        """Return an estimator with a fit and without what only fits need, to send to workers."""
        without = dict.fromkeys(self._first_values()) | {"init_params": "kmeans"}
        mixture = self._with_params(self._all_params() | without)
        mixture._publish(fitted)
        mixture.n_features_in_ = fitted.family.dim
        return mixture

    # Fitted attributes.

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        """Return the fitted attributes that follow from the parameters, or from a whole fit."""
        weights = fitted.weights
        effective_n_components = 0.0
        if weights.any():
            shares = weights / weights.sum()
            effective_n_components = float(np.exp(entr(shares).sum()))
        attributes: dict[str, Any] = {
            "weights_": weights,
            "background_weight_": fitted.params.background_weight,
            "n_active_components_": int(np.count_nonzero(weights)),
            "n_parameters_": fitted.n_parameters,
            "effective_n_components_": effective_n_components,
        }
        if result is not None:
            attributes |= {
                "n_iter_": result.n_iter,
                "converged_": result.converged,
                "lower_bounds_": result.bounds,
                "lower_bound_": result.bounds[-1],
            }
        return attributes

    def _publish_labelled(
        self,
        fitted: Point,
        statistics: Statistics | None,
        labelled: tuple[Array, Array],
        n_steps: int,
        result: MixtureResult | None = None,
    ) -> None:
        """Publish a fit with the labels and probabilities of its rows, or of a batch."""
        if result is None:
            for name in _OF_WHOLE_FITS & set(vars(self)):
                delattr(self, name)
        labels, probabilities = labelled
        self._publish(
            fitted,
            statistics,
            result,
            labels_=labels,
            probabilities_=probabilities,
            n_steps_=n_steps,
            _read_by_number=self._parameters_by_number(),
        )

    def _publish(
        self,
        fitted: Point,
        statistics: Statistics | None = None,
        result: MixtureResult | None = None,
        **others: object,
    ) -> None:
        """Set the fit, the statistics of its rows and all its attributes, in one step."""
        self.__dict__ = vars(self) | self._public_attributes(fitted, statistics, result) | others

    def _public_attributes(
        self,
        fitted: Point,
        statistics: Statistics | None = None,
        result: MixtureResult | None = None,
    ) -> Attributes:
        """Return the attributes of a fit by name, and the fit itself with them."""
        attributes = self._attributes(fitted, result)
        attributes = {name: read_only(value) for name, value in attributes.items()}
        weight = 0.0
        if statistics is not None:
            # Buffers are as large as the parameters, and whoever goes on has some.
            statistics = replace(statistics, buffers=None)
            weight = min(float(statistics.total) * statistics.unit, np.finfo(float).max)
        of_fit = {"_fitted": fitted, "_running_statistics": statistics}
        # How memberships of another fit hold says nothing about this one.
        uncalibrated = {"membership_temperature_": 1.0, "_skvmf_reliability": None}
        return attributes | {"weight_seen_": weight} | of_fit | uncalibrated

    if not TYPE_CHECKING:  # every attribute would then exist

        def __getattr__(self, name: str) -> Any:
            hint = attribute_hint(self._hints, name, vars(self))
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message if hint is None else f"{message}: {hint}")

    def __getstate__(self) -> Attributes:
        state: dict[str, Any] = dict(super().__getstate__())
        fitted = state.pop("_fitted", None)
        statistics = state.pop("_running_statistics", None)
        if fitted is not None:
            # Arrays alone, without classes of ours: what follows from them is computed again.
            annotated = {name for base in type(self).__mro__ for name in get_annotations(base)}
            follows = {name for name in annotated if name.endswith("_")}
            # Labels of a Dask array are its graph, or a cluster's, and stay with it.
            graphs = {k for k, v in state.items() if hasattr(v, "__dask_graph__")}
            state = {k: v for k, v in state.items() if k not in follows | graphs}
            state["_fit"] = fitted.params.to_dict() | {
                "family": as_dict(fitted.family),
                "background": as_dict(fitted.background),
                "fixed_weights": fitted.mixture.fixed_weights,
                "alpha": fitted.mixture.weight_prior.alpha,
                "floor": fitted.mixture.weight_prior.floor,
                "statistics": None if statistics is None else as_dict(statistics),
            }
            if self._skvmf_reliability is not None:
                state["_skvmf_reliability"] = as_dict(self._skvmf_reliability)
        return state

    def __setstate__(self, state: Attributes) -> None:
        state = dict(state)
        fit = state.pop("_fit", None)
        super().__setstate__(state)
        if fit is not None:
            family = self._family_class(**fit["family"])
            params = Params.from_dict(family.components_class, fit)
            statistics = None if fit["statistics"] is None else Statistics(**fit["statistics"])
            mixture = Mixture(
                family,
                fixed_weights=fit["fixed_weights"],
                weight_prior=ModifiedDirichlet(fit["alpha"], fit["floor"]),
                background=Background(**fit["background"]),
            )
            calibrated = {name: state[name] for name in _OF_CALIBRATION if name in state}
            if calibrated.get("_skvmf_reliability") is not None:
                calibrated["_skvmf_reliability"] = Reliability(**calibrated["_skvmf_reliability"])
            self._publish(Point(mixture, params), statistics, **calibrated)


def n_with_weight(start: Start) -> int:
    """Return how many components a start does not prune from the beginning."""
    if start.weights is None:
        return start.n_components
    return int(np.count_nonzero(start.weights))


def read_only(value: Any) -> Any:
    """Return a view of an array that cannot be written to; the engine's own stays writable."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
