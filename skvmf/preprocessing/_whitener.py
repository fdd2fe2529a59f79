"""DirectionWhitener: directions, centred and partly whitened."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._engine.families.tiles import tiles
from .._engine.rows.parallel import limited_blas
from .._kernels.rows import normalize_rows
from .._sklearn import (
    Interval,
    RowsEstimator,
    TransformerMixin,
    all_or_nothing,
    check_sample_weight,
    fit_context,
)
from .._typing import Array, MatrixLike, ParameterConstraints
from ..mixture._rows import is_lazy, validated_rows

# A block of float64 rows has at most so many bytes: enough rows for fast products of matrices, and
# copies that are small beside the data.
_BLOCK_BYTES = 2**25


class DirectionWhitener(OneToOneFeatureMixin, TransformerMixin, RowsEstimator):
    """Centre directions and make their principal axes more equal.

    Rows are scaled to unit length, their mean is subtracted, and each principal axis is divided by
    its standard deviation to the power of `strength`. Embeddings often share a large mean and a few
    axes with most of the variance, which hide smaller differences (Su, Cao, Liu and Ou, "Whitening
    sentence representations for better semantics and faster retrieval", 2021; Mu and Viswanath,
    "All-but-the-top", ICLR 2018). The :ref:`user guide <whiten-directions>` shows for which data
    this improves clusters, and for which it does not.

    Parameters
    ----------
    strength : float, default=0.25
        How far the variances of the axes are made equal: 0 only subtracts the mean, and 1 gives
        all axes the same variance. The default improved the clusters of texts and of images in the
        measurements of the user guide, or left them as they were; 0.5 is a little better for some.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean of the rows of unit length.
    covariance_ : ndarray of shape (n_features, n_features)
        The covariance of the rows of unit length.
    whitening_ : ndarray of shape (n_features, n_features)
        The symmetric matrix that multiplies centred rows.
    weight_seen_ : float
        The total weight of the rows seen, without rows of zeros.

    Notes
    -----
    The whitened rows are rotated back from the principal axes, so that features keep their meaning
    and the result does not depend on the signs and the order of the axes. Axes without more
    variance than the rounding of the rows gives are left as they are. A row of zeros has no
    direction: it is ignored in a fit and remains zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.preprocessing import DirectionWhitener
    >>> X = np.random.default_rng(0).normal(1, [1, 2, 4], size=(100, 3))
    >>> pipeline = make_pipeline(DirectionWhitener(), VonMisesFisherMixture(2, random_state=0))
    >>> pipeline.fit_predict(X).shape
    (100,)
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "strength": [Interval(Real, 0, 1, closed="both")]
    }

    def __init__(self, strength: float = 0.25) -> None:
        self.strength = strength

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the mean and the principal axes of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any length.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        return self._learn(X, sample_weight, reset=True)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the mean and the principal axes with more rows.

        All batches together give what `fit` gives for all rows, up to rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any length.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        return self._learn(X, sample_weight, reset=not hasattr(self, "whitening_"))

    def transform(self, X: MatrixLike) -> Array:
        """Return rows scaled to unit length, centred and whitened.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any length.

        Returns
        -------
        whitened : ndarray of shape (n_samples, n_features)
            float32 if X is, otherwise float64.

        Raises
        ------
        TypeError
            If X is sparse or a Dask array.
        ValueError
            If the data does not fit that of `fit`.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        whitened = np.empty(X.shape, dtype=X.dtype)
        with limited_blas():
            for block in _blocks(X):
                units, has_direction = _directions(X[block])
                centred = (units - self.mean_) * has_direction[:, np.newaxis]
                whitened[block] = centred @ self.whitening_
        return whitened

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _learn(self, X: MatrixLike, sample_weight: ArrayLike | None, *, reset: bool) -> Self:
        with all_or_nothing(self), limited_blas():
            rows = self._rows(X, reset=reset)
            weights = check_sample_weight(sample_weight, rows)
            if weights is None:
                weights = np.ones(len(rows))
            if reset:
                n_features = rows.shape[1]
                self.weight_seen_ = 0.0
                self.mean_ = np.zeros(n_features)
                self.covariance_ = np.zeros((n_features, n_features))
                self._rounding = 0.0

            # The largest relative error of an entry in all batches, which may have several types.
            self._rounding = max(self._rounding, float(np.finfo(rows.dtype).eps) / 2)
            for block in _blocks(rows):
                self._add(rows[block], weights[block])
            power = -float(self.strength) / 2
            self.whitening_ = _power(self.covariance_, power, self._rounding**2)
        return self

    def _add(self, rows: Array, weights: Array) -> None:
        """Merge the moments of a block with those of the rows before.

        By the formulas of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
        computing sample variances", 1979: sums of squares of rows that are not centred would lose
        their digits.
        """
        units, has_direction = _directions(rows)
        shares = has_direction * weights
        total = shares.sum()
        if total == 0:
            return
        shares /= total
        mean = shares @ units
        # A second time, as the error of a long sum would look like variance.
        mean += shares @ (units - mean)
        centred = np.sqrt(shares)[:, np.newaxis] * (units - mean)

        weight_seen = self.weight_seen_ + total
        proportion = total / weight_seen
        shift = mean - self.mean_
        between = proportion * (1 - proportion) * np.outer(shift, shift)
        within = (1 - proportion) * self.covariance_ + proportion * (centred.T @ centred)
        self.covariance_ = within + between
        self.mean_ = self.mean_ + proportion * shift
        self.weight_seen_ = float(weight_seen)

    def _rows(self, X: MatrixLike, *, reset: bool) -> Array:
        """Return validated rows, or say what to do with rows of other kinds."""
        if sparse.issparse(X):
            raise TypeError(
                "DirectionWhitener takes dense rows and got sparse ones. Make them dense first, "
                "with fewer features: make_pipeline(TruncatedSVD(100), DirectionWhitener())."
            )
        if is_lazy(X):
            raise TypeError(
                "DirectionWhitener takes rows in memory and got a Dask array: call partial_fit "
                "with one block after another, and X.map_blocks(whitener.transform)."
            )
        return validated_rows(self, X, dtype=[np.float64, np.float32], reset=reset)


def _blocks(X: Array) -> list[slice]:
    return tiles(len(X), max(1, _BLOCK_BYTES // (8 * X.shape[1])))


def _directions(rows: Array) -> tuple[Array, Array]:
    """Return rows of unit length in float64, and 1 for each that has a direction, otherwise 0."""
    units: Array = rows.astype(np.float64)
    normalize_rows(units)
    has_direction = np.asarray(units.any(axis=1), dtype=np.float64)
    return units, has_direction


def _power(covariance: Array, power: float, rounding: float) -> Array:
    """Return a power of a covariance matrix; axes of variance up to rounding stay as they are."""
    if power == 0:
        return np.eye(len(covariance))
    variances, axes = np.linalg.eigh(covariance)
    # An axis of less variance is noise: of the rounding of the rows, or of the eigenvalues, which
    # is relative to the largest one, but at least to the rounding of unit rows.
    eps = np.finfo(np.float64).eps
    noise = max(rounding, max(variances.max(), eps) * len(variances) * eps)
    varies = variances > noise
    scales = np.ones(len(variances))
    scales[varies] = variances[varies] ** power
    return (axes * scales) @ axes.T
