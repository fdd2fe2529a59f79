"""Predictions of the best of several mixtures."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._sklearn import available_if
from .._typing import Array, MatrixLike
from ..mixture._base import BaseMixture


def refitted(path: Any) -> bool:
    """Return True if there is a best estimator, otherwise raise the reason."""
    if not path.refit:
        raise AttributeError(
            "This ComponentPath has refit=False and so no best_estimator_. Set refit=True."
        )
    return True


class BestPredictions:
    """Predictions and scores of `best_estimator_`, with `refit`."""

    best_estimator_: BaseMixture

    @available_if(refitted)
    def predict(self, X: MatrixLike) -> Array:
        """Return the best mixture's most probable component of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Component labels.
        """
        return self._best().predict(X)

    @available_if(refitted)
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the responsibilities of the best mixture's components for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        resp : ndarray of shape (n_samples, best_n_components_)
            Responsibilities.
        """
        return self._best().predict_proba(X)

    @available_if(refitted)
    def score_samples(self, X: MatrixLike) -> Array:
        """Return the log-density of the best mixture at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities.
        """
        return self._best().score_samples(X)

    @available_if(refitted)
    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the best mixture's weighted mean log-density of the rows.

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
        return self._best().score(X, sample_weight=sample_weight)

    def _best(self) -> BaseMixture:
        check_is_fitted(self)
        return self.best_estimator_
