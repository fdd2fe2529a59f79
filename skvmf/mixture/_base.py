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

from .._engine.em import run_em
from .._engine.mixture import MixtureModel
from .._engine.posterior import FenchelYoungPosterior, dense_resp
from .._engine.priors import ModifiedDirichlet
from .._engine.progress import Progress
from .._engine.rows import make_rows
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
from ..distributions._arguments import checked_array
from ._starts import Start, checked_means, checked_partition, checked_weights

_LOG_DENSITY = FenchelYoungPosterior()


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
            progress = Progress(self, data, 2 * self._n_starts())
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
        parts = {}

        def keep(resp, span):
            parts[span.start] = sparse.csr_array(resp)

        self._share_out(self._new_rows(X), keep)
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
            Responsibilities under the mixture's own posterior; rows sum to one. A row that
            has no direction, or no density under any component, has `weights_`.
        """
        rows = self._new_rows(X)
        proba = np.empty((rows.n_rows, len(self.weights_)), dtype=rows.dtype)

        def write(resp, span):
            proba[span] = resp

        self._share_out(rows, write)
        return proba

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

    @classmethod
    def _for_parameters(cls, n_components, params):
        """Return an estimator of so many components with the constructor parameters given."""
        if params.get("n_components", n_components) != n_components:
            raise ValueError(
                f"n_components={params['n_components']!r} does not agree with the parameters "
                f"given, which are of {n_components} components: leave it out."
            )
        mixture = cls(**(params | {"n_components": n_components}))
        mixture._validate_params()
        return mixture

    def _publish(self, params):
        for name, value in self._attributes(params).items():
            setattr(self, name, value)

    def _posterior(self):
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self):
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
        if floor * K > 1:
            raise ValueError(
                f"weight_floor={floor} is too high: {K} components need at most 1/{K}."
            )
        return ModifiedDirichlet(alpha.astype(np.float64)[()], float(floor))

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

    def _share_out(self, rows, write):
        """Call ``write(resp, span)`` with the responsibilities of each block.

        Rows without a direction, and those so far that no component has a density there, are
        shared out by weight.
        """

        def give(shares, values, span):
            resp = dense_resp(shares, len(self.weights_)).astype(rows.dtype, copy=False)
            resp[~rows.has_direction[span] | np.isneginf(values)] = self.weights_
            write(resp, span)

        self._expect(rows, self._posterior(), give)

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
            labels[span], _, values = posterior.label(*self._scores(chunk))
            labels[span][~rows.has_direction[span] | np.isneginf(values)] = np.argmax(self.weights_)

        rows.for_each(write)
        return labels

    def _scores(self, chunk):
        """Return what a posterior takes, with weight one for every row."""
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores, slopes, bias = self._family.scores(chunk, self._params.components)
        ones = np.ones(len(slopes))
        plain = replace(chunk, weights=ones, scales=ones)
        return scores, slopes, bias, self._params.weights, plain

    # Starts.

    def _best_start(self, rows, progress):
        rng = check_random_state(self.random_state)
        prior = self._weight_prior()
        start = None if self._is_warm() else self._checked_start(rows)
        best = None
        for i in range(self._n_starts()):
            if start is None:
                self._family, params = self._warm_params(rows)
            else:
                family, params = self._start(start, rows, rng)
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

    def _checked_start(self, rows):
        """Return what fits start from; refuse what cannot be used before any work."""
        K, partition = self.n_components, self.init_params
        weights, means = self.weights_init, self.means_init
        if not isinstance(partition, str):
            partition = checked_partition(partition, rows, K)
        if weights is not None:
            weights = checked_weights(weights, K, "weights_init")
        if means is not None:
            means = self._checked_means_init(rows)
        return Start(K, partition, weights, means)

    def _checked_means_init(self, rows):
        return checked_means(self.means_init, "means_init", (self.n_components, rows.n_features))

    def _start(self, start, rows, rng):
        """Return a family anchored on a first partition, and first parameters."""
        return start.params(self._make_family(rows), rows, rng)

    # Pickles.

    def __getstate__(self):
        return stamp(super().__getstate__())

    def __setstate__(self, state):
        super().__setstate__(unstamp(state, type(self).__name__))
