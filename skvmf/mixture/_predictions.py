"""Predictions, scores and samples of a fitted mixture, in scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._sklearn import outputs_frames
from .._typing import Array, MatrixLike, is_integer
from ._chunkwise import chunkwise
from ._rows import MixtureRows


class MixturePredictions(MixtureRows):
    """Predictions, scores and samples."""

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
        return self._fitted.labels(rows, self._posterior())

    @chunkwise(wide=True, is_sparse=True)
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
        parts = self._fitted.responsibilities(rows, self._posterior())
        sizes = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
        columns = np.concatenate([part.columns for part in parts])
        values = np.concatenate([part.values for part in parts], dtype=rows.dtype)
        index = sparse.get_index_dtype(maxval=len(columns))
        ends = np.concatenate([[0], np.cumsum(sizes)], dtype=index)
        return sparse.csr_array((values, columns, ends), (rows.n_rows, self._fitted.n_components))

    @chunkwise(wide=True)
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the responsibilities of the components for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

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
        return self._fitted.log_densities(rows)

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
            Non-negative weights.

        Returns
        -------
        log_likelihood : float
            Mean log-density.
        """
        rows = self._new_rows(X, sample_weight)
        total, weight = self._fitted.log_likelihood(rows)
        return total / weight if weight > 0 else self._fitted.family.zero_row_log_density

    def aic(self, X: MatrixLike) -> float:
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

    def bic(self, X: MatrixLike) -> float:
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
            Rows, grouped by component; rows of the background come last.
        y : ndarray of shape (n_samples,)
            The component of each row; -1 is the background.
        """
        check_is_fitted(self)
        if not is_integer(n_samples) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. It should be a whole number of at "
                "least 1."
            )
        rng = check_random_state(self.random_state)
        fitted, K = self._fitted, self._fitted.n_components
        counts = rng.multinomial(n_samples, fitted.params.weights)
        X = fitted.family.sample(fitted.params.components, counts[:K], rng)
        y = np.repeat(np.arange(K), counts[:K])
        others = fitted.background.draw(counts[K:], X.shape[1], rng)
        return np.vstack([X, others]), np.append(y, np.full(len(others), -1))

    def _n_parameters(self) -> int:
        """Return the number of free parameters of the active components."""
        return self._fitted.n_parameters(free_weights="weights" not in self.fixed)
