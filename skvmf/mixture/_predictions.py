"""What a fitted mixture says of rows, as scikit-learn's users expect it."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._engine.data.base import RowSource
from .._engine.em.fitted import FittedMixture
from .._engine.posteriors.fenchel_young import FenchelYoungPosterior
from .._typing import Array
from ._chunkwise import checked_row_weights, chunkwise


class MixturePredictions:
    """Predictions, scores and samples; `BaseMixture` brings the fit."""

    random_state: Any
    _fitted: FittedMixture

    @chunkwise(dtype=np.int64)
    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels; -1 where the background has the largest share.
        """
        rows = self._new_rows(X)
        return self._fitted.labels(rows, self._posterior())

    @chunkwise(wide=True, is_sparse=True)
    def responsibilities(self, X: Any) -> sparse.csr_array:
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

        def keep(resp: Array, span: slice) -> None:
            parts[span.start] = sparse.csr_array(resp)

        self._fitted.share_densely(rows, self._posterior(), keep)
        return sparse.csr_array(sparse.vstack([parts[start] for start in sorted(parts)]))

    @chunkwise(wide=True)
    def predict_proba(self, X: Any) -> Array:
        """Return each component's share of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, n_components)
            Responsibilities under the mixture's own posterior; rows sum to one, or with a
            background to one minus its share. A row that has no direction, or no density
            under any component, has `weights_`.
        """
        rows = self._new_rows(X)
        proba = np.empty((rows.n_rows, self._fitted.n_components), dtype=rows.dtype)

        def keep(resp: Array, span: slice) -> None:
            proba[span] = resp

        self._fitted.share_densely(rows, self._posterior(), keep)
        return proba

    @chunkwise()
    def score_samples(self, X: Any) -> Array:
        """Return the log-density of the mixture at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities, whatever the posterior of the fit, in the rows' dtype; what is below
            its lowest number stays at it.
        """
        rows = self._new_rows(X)
        return self._fitted.log_densities(rows)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
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
        rows = self._new_rows(X, sample_weight)
        total, weight = self._fitted.log_likelihood(rows)
        return total / weight if weight > 0 else self._fitted.family.zero_row_log_density

    def aic(self, X: Any) -> float:
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
        rows = self._new_rows(X)
        total, _ = self._fitted.log_likelihood(rows)
        return -2 * total + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
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
        rows = self._new_rows(X)
        total, n_samples = self._fitted.log_likelihood(rows)
        return -2 * total + float(np.log(max(n_samples, 1))) * self._n_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, grouped by component; those of the background come last.
        y : ndarray of shape (n_samples,)
            The component of each row; -1 is the background.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. "
                "Sampling requires at least one sample, a whole number of them."
            )
        rng = check_random_state(self.random_state)
        fitted, K = self._fitted, self._fitted.n_components
        counts = rng.multinomial(n_samples, fitted.params.weights)
        X = fitted.family.sample(fitted.params.components, counts[:K], rng)
        y = np.repeat(np.arange(K), counts[:K])
        if fitted.background is None:
            return X, y
        others = fitted.background.draw(counts[K], X.shape[1], rng)
        return np.vstack([X, others]), np.append(y, np.full(len(others), -1))

    # What the rest of a mixture brings.

    def _posterior(self) -> FenchelYoungPosterior:
        raise NotImplementedError

    def _n_parameters(self) -> int:
        """Return the number of free parameters of the active components."""
        raise NotImplementedError

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return rows as scikit-learn validates them, or raise a ValueError."""
        raise NotImplementedError

    def _make_rows(self, X: Any, weights: Array | None, *, moments: bool = False) -> RowSource:
        """Wrap validated rows for the engine."""
        raise NotImplementedError

    def _largest_shares(self, X: Any) -> Array:
        """Return the share that each row's most probable component has in it."""
        return self._fitted.labels_and_shares(self._new_rows(X), self._posterior())[1]

    def _new_rows(self, X: Any, sample_weight: Any = None) -> RowSource:
        """Return rows for a fitted mixture."""
        check_is_fitted(self)
        self._validate_params()
        X = self._validated(X, reset=False)
        return self._make_rows(X, checked_row_weights(sample_weight, X))

    def _validate_params(self) -> None:
        """Refuse parameters that are out of range, also where they were set after the fit."""
        super()._validate_params()  # type: ignore[misc]
