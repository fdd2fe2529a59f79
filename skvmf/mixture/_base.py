"""What every mixture estimator has in common: the scikit-learn contract, and no algorithm."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from scipy.special import entr
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._engine import initialization as starts
from .._engine.em import run_em
from .._engine.mixture import MixtureModel
from .._engine.posterior import FenchelYoungPosterior, dense_resp
from .._engine.priors import ModifiedDirichlet
from .._engine.rows import make_rows
from .._engine.statistics import Params
from .._engine.threads import workers
from .._engine.updates import MapWeights
from .._sklearn import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    check_sample_weight,
    fit_context,
    validate_data,
    with_callbacks,
)
from .._version import stamp, unstamp
from ._progress import Progress

_LOG_DENSITY = FenchelYoungPosterior()


def check_weights(weights, n_components, name):
    """Return weights as float64 that sum to one, or raise a ValueError that names them."""
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {weights.shape}.")
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(
            f"{name} should be non-negative and sum to 1, "
            f"got minimum {weights.min():.5g} and sum {weights.sum():.5g}."
        )
    return weights / weights.sum()


class BaseMixture(CallbackSupportMixin, DensityMixin, BaseEstimator, ABC):
    """Validation, starts, predictions and scores; a subclass names the answers.

    `_family` and `_params` (weights and components) are the fit; `_attributes` derives the
    public attributes from them.
    """

    _accept_sparse = False
    _unit_rows = False

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "weight_concentration_prior": [Real, "array-like"],
        "weight_floor": [Interval(Real, 0, 1, closed="left"), None],
        "flat_start": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [
            StrOptions({"kmeans", "k-means++", "random", "random_from_data"}),
            "array-like",
        ],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture by expectation maximization.

        The fit starts `n_init` times and keeps the parameters with the largest lower bound.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, float32 or float64; anything else is converted to float64. Sparse
            rows are accepted where the estimator's tags say so.
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
        X = self._validate(X, reset=not self._is_warm())
        weights = check_sample_weight(sample_weight, X)
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components},"
                f" n_samples = {X.shape[0]}: use fewer components."
            )
        with workers():
            rows = self._make_rows(X, weights, moments=True)
            if not rows.sampling_weights().any():
                raise ValueError(
                    "All rows with positive weight are zero: a zero row has no direction, so "
                    "there is nothing to fit. Remove empty rows or check the preprocessing."
                )
            progress = Progress(self, data, self._n_starts())
            earlier = getattr(self, "_family", None)
            try:
                result = self._best_start(rows, progress)
            except BaseException:
                self._family = earlier  # goes with the earlier parameters
                raise
            self._publish(result.params)
            self.labels_ = self._labels(rows)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.lower_bounds_ = result.bounds
        self.lower_bound_ = result.bounds[-1]
        progress.end()
        if not self.converged_ and not result.stopped and self.max_iter > 0:
            warnings.warn(
                f"The best of {self._n_starts()} starts did not reach tol={self.tol} within "
                f"max_iter={self.max_iter} iterations. Increase max_iter or tol, or check for "
                "degenerate data.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
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
            Component labels.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Return the most probable component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels.
        """
        return self._labels(self._new_rows(X))

    def responsibilities(self, X):
        """Return each component's share of each row, without the zeros.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : csr_array of shape (n_samples, n_components)
            What `predict_proba` returns, in compressed rows: small where the posterior is
            sparse or hard.
        """
        rows = self._new_rows(X)
        parts = {}

        def write(shares, values, span):
            resp = dense_resp(shares, len(self.weights_)).astype(rows.dtype, copy=False)
            resp[~rows.has_direction[span]] = self.weights_
            parts[span.start] = sparse.csr_array(resp)

        self._expect(rows, self._posterior(), write)
        return sparse.csr_array(sparse.vstack([parts[start] for start in sorted(parts)]))

    def predict_proba(self, X):
        """Return each component's share of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Responsibilities under the mixture's own posterior; rows sum to one.
        """
        rows = self._new_rows(X)
        resp = np.empty((rows.n_rows, len(self.weights_)), dtype=rows.dtype)

        def write(shares, values, span):
            resp[span] = dense_resp(shares, resp.shape[1])

        self._expect(rows, self._posterior(), write)
        resp[~rows.has_direction] = self.weights_
        return resp

    def score_samples(self, X):
        """Return the log-density of the mixture at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities, whatever the posterior of the fit.
        """
        rows = self._new_rows(X)
        log_density = np.empty(rows.n_rows, dtype=rows.dtype)

        def write(shares, values, span):
            log_density[span] = np.maximum(values, np.finfo(rows.dtype).min)

        self._expect(rows, _LOG_DENSITY, write)
        if not rows.has_direction.all():
            log_density[~rows.has_direction] = self._family.blank_log_density
        return log_density

    def score(self, X, y=None, sample_weight=None):
        """Return the weighted mean log-density of the rows.

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
        log_likelihood : float
            Mean log-density.
        """
        total, weight = self._log_likelihood(X, sample_weight)
        return total / weight if weight > 0 else self._family.blank_log_density

    def aic(self, X):
        """Return the Akaike information criterion on X; the lower the better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        aic : float
            Twice the number of free parameters of the active components less twice the
            log-likelihood.
        """
        return -2 * self._log_likelihood(X)[0] + 2 * self._n_parameters()

    def bic(self, X):
        """Return the Bayesian information criterion on X; the lower the better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        bic : float
            Free parameters of the active components times log n_samples less twice the
            log-likelihood.
        """
        total, n_samples = self._log_likelihood(X)
        return -2 * total + np.log(max(n_samples, 1)) * self._n_parameters()

    def sample(self, n_samples=1):
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component.
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. "
                "Sampling requires at least one sample, a whole number of them."
            )
        rng = check_random_state(self.random_state)
        counts = rng.multinomial(n_samples, self.weights_)
        return self._draw(counts, rng), np.repeat(np.arange(len(counts)), counts)

    # What a subclass names.

    @abstractmethod
    def _make_family(self, rows):
        """Return the family for a fit on rows."""

    def _attributes(self, params):
        """Return the fitted attributes that describe params."""
        return {
            "_params": params,
            "weights_": params.weights,
            "n_active_components_": int(np.count_nonzero(params.weights)),
            "effective_n_components_": float(np.exp(entr(params.weights).sum())),
        }

    @abstractmethod
    def _n_parameters(self):
        """Return the number of free parameters of the active components."""

    @abstractmethod
    def _draw(self, counts, rng):
        """Return rows of each component in turn."""

    # Plumbing.

    def _publish(self, params):
        for name, value in self._attributes(params).items():
            setattr(self, name, value)

    def _posterior(self):
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self):
        alpha = np.asarray(self._prior_parameter(), dtype=np.float64)
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
        if floor * K > 1:
            raise ValueError(
                f"weight_floor={floor} is too high: {K} components need at most 1/{K}."
            )
        return ModifiedDirichlet(alpha[()], float(floor))

    def _prior_parameter(self):
        return self.weight_concentration_prior

    def _model(self, weight_prior):
        return MixtureModel(self._family, self._posterior(), weight_prior, MapWeights())

    def _n_starts(self):
        return 1 if self._is_warm() else self.n_init

    def _is_warm(self):
        return self.warm_start and hasattr(self, "_params")

    def _validate(self, X, reset):
        with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest floats
            return validate_data(
                self,
                X,
                accept_sparse="csr" if self._accept_sparse else False,
                dtype=[np.float64, np.float32],
                reset=reset,
            )

    def _make_rows(self, X, weights, *, moments=False):
        columns = moments and self._posterior().temperature > 0
        return make_rows(X, weights, unit=self._unit_rows, columns=columns)

    def _new_rows(self, X, sample_weight=None):
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if X.shape[1] != self._family.dim:  # n_features_in_ may be of a later fit that failed
            raise ValueError(
                f"X has {X.shape[1]} features, but the mixture was fitted to {self._family.dim}."
            )
        return self._make_rows(X, check_sample_weight(sample_weight, X))

    def _log_likelihood(self, X, sample_weight=None):
        """Return the weighted sum of log-densities, and of the weights of rows that count."""
        rows = self._new_rows(X, sample_weight)
        model = MixtureModel(self._family, _LOG_DENSITY, ModifiedDirichlet(), MapWeights())
        total, weight = rows.fold(partial(model.evaluate, self._params))
        return float(total), float(weight)

    def _expect(self, rows, posterior, write):
        """Call ``write(shares, values, span)`` with the unweighted shares of each block."""

        def share(chunk, span):
            shares, _, values = posterior.assign(*self._scores(chunk))
            write(shares, values, span)

        rows.for_each(share)

    def _labels(self, rows):
        labels = np.empty(rows.n_rows, dtype=np.int64)
        posterior = self._posterior()

        def write(chunk, span):
            labels[span], _, _ = posterior.label(*self._scores(chunk))

        rows.for_each(write)
        if not rows.has_direction.all():
            labels[~rows.has_direction] = np.argmax(self.weights_)
        return labels

    def _scores(self, chunk):
        """Return what a posterior takes, with weight one for every row."""
        scores, slopes, bias = self._family.scores(chunk, self._params.components)
        ones = np.ones(len(slopes))
        plain = replace(chunk, weights=ones, scales=ones)
        return scores, slopes, bias, self._params.weights, plain

    # Starts.

    def _best_start(self, rows, progress):
        rng = check_random_state(self.random_state)
        prior = self._weight_prior()
        best = None
        for i in range(self._n_starts()):
            if self._is_warm():
                self._family, params = self._warm_params(rows)
            else:
                family, params = self._start(rows, rng)
                # one anchor for all starts, so that their bounds can be compared
                self._family = family if best is None else best[0].refreshed(family)
                params = self._after_flat_start(rows, params, prior, progress.flat_start(i))
            params = replace(params, weights=prior.lift(params.weights))
            on_iteration, finish = progress.start(i)
            result = run_em(
                self._model(prior),
                rows,
                params,
                max_iter=self.max_iter,
                tol=self.tol,
                on_iteration=on_iteration,
            )
            finish(result)
            if best is None or result.bounds[-1] > best[1].bounds[-1]:
                best = self._family, result
        self._family, result = best
        return result

    def _after_flat_start(self, rows, params, prior, on_iteration):
        """Run EM under a flat prior first, where the prior would take weight away."""
        if np.all(prior.alpha >= 1) or self.max_iter == 0:
            return params
        if self.flat_start:
            model = self._model(ModifiedDirichlet())
            params = run_em(
                model,
                rows,
                params,
                max_iter=self.max_iter,
                tol=self.tol,
                on_iteration=on_iteration,
            ).params
        largest = np.max(params.weights) * rows.total_weight
        if self.n_components > 1 and np.all(params.weights * rows.total_weight + prior.alpha <= 1):
            warnings.warn(
                f"weight_concentration_prior={self._prior_parameter()} outweighs the data at "
                f"once and leaves one component: the largest holds {largest:.6g} rows, and only "
                f"above {1 - largest:.6g} does the prior leave more than one.",
                UserWarning,
                stacklevel=5,
            )
        return params

    def _warm_params(self, rows):
        if len(self._params.weights) != self.n_components:
            raise ValueError(
                f"warm_start: the fitted mixture has {len(self._params.weights)} components, "
                f"n_components is {self.n_components}. Set warm_start=False to start afresh."
            )
        family = self._family.refreshed(self._make_family(rows))
        return family, self._params.pruned()

    def _start(self, rows, rng):
        """Return a family anchored on a first partition, and first parameters."""
        family = self._make_family(rows)
        (stats, about), seeds = self._first_partition(family, rows, rng)
        family = family.anchored(stats)
        K = self.n_components
        if self.weights_init is not None:
            weights = check_weights(self.weights_init, K, "weights_init")
        elif seeds is not None and self.means_init is None:  # random rows
            weights = np.full(K, 1 / K)
        else:
            weights = stats.counts / stats.counts.sum()
        params = Params.start(weights, family.start(stats, about, seeds))
        return family, params if self.weights_init is None else params.pruned()

    def _first_partition(self, family, rows, rng):
        """Return the statistics of a partition, and centres where those are kept."""
        K = self.n_components
        if self.means_init is not None:
            seeds = self._check_means_init(rows)
            return starts.nearest_partition(family, rows, seeds), seeds
        if isinstance(self.init_params, str) and self.init_params != "random":
            if self.init_params == "random_from_data":
                seeds = starts.random_rows(rows, K, rng)
                return starts.nearest_partition(family, rows, seeds), seeds
            centres = starts.kmeans_plusplus(family, rows, K, rng)
            n_steps = starts.KMEANS_MAX_ITER if self.init_params == "kmeans" else 0
            return starts.nearest_partition(family, rows, centres, max_iter=n_steps), None
        if isinstance(self.init_params, str):
            share = partial(starts.share_labels, starts.random_labels(rows, K, rng), K)
        else:
            share = self._check_partition(rows)
        centre = np.tile(starts.first_row(rows), (K, 1))
        return starts.partition_statistics(family, rows, centre, share), None

    def _check_means_init(self, rows):
        means = np.array(self.means_init, dtype=np.float64)
        expected = (self.n_components, rows.n_features)
        if means.shape != expected:
            raise ValueError(f"means_init should have the shape {expected}, got {means.shape}.")
        if not np.isfinite(means).all():
            raise ValueError("means_init contains nan or inf: give finite means.")
        return means

    def _check_partition(self, rows):
        """Return how `init_params`, labels or responsibilities, shares out a block."""
        given = np.asarray(self.init_params)
        shape = (rows.n_rows, self.n_components)
        if given.shape == shape[:1] and np.isin(given, np.arange(self.n_components)).all():
            labels = given.astype(np.int32)
            return partial(starts.share_labels, labels, self.n_components)
        if (
            given.shape == shape
            and np.isfinite(given).all()
            and (given >= 0).all()
            and (rows.sampling_weights() @ given).any()
        ):
            return partial(starts.share_responsibilities, given.astype(rows.dtype))
        raise ValueError(
            f"init_params as an array should hold labels from 0 to {self.n_components - 1} of "
            f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
            f"got shape {given.shape} and values from {given.min()} to {given.max()}."
        )

    # Pickles.

    def __getstate__(self):
        return stamp(super().__getstate__())

    def __setstate__(self, state):
        super().__setstate__(unstamp(state, type(self).__name__))
