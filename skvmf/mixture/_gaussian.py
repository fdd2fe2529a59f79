"""What Gaussian mixtures have in common: covariances of four shapes, and plain data checks."""

from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._engine.gaussian import Gaussian
from .._engine.statistics import Params
from .._sklearn import Interval, StrOptions
from ..distributions._arguments import checked_array
from ._base import BaseMixture
from ._starts import checked_means, checked_weights

_FAR = 1e100  # beyond, rows are moved in along their direction, so that squares stay finite


class BaseGaussianMixture(BaseMixture):
    """Means and covariances: validation, starts, attributes and samples."""

    _parameter_constraints = BaseMixture._parameter_constraints | {
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "precisions_init": ["array-like", None],
    }

    @classmethod
    def from_parameters(cls, weights, means, covariances, **params):
        """Build a usable mixture without a fit.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Mixture weights; they sum to one.
        means : array-like of shape (n_components, n_features)
            Component means.
        covariances : array-like
            Covariances, of the shape that `covariance_type` asks for.
        **params : dict
            Constructor parameters; `n_components` may be left out.

        Returns
        -------
        mixture : object
            As if it had been fitted.

        Raises
        ------
        ValueError
            If shapes do not agree or a covariance is not positive definite.

        Examples
        --------
        >>> from skvmf import SparseGaussianMixture
        >>> mixture = SparseGaussianMixture.from_parameters(
        ...     [0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], covariance_type="spherical"
        ... )
        >>> mixture.predict([[1.0], [3.0]])
        array([0, 1])
        """
        means = checked_means(means, "means")
        refuse_overflow(means, "means holds")
        mixture = cls._for_parameters(len(means), params)
        mixture._family = Gaussian(means.shape[1], mixture.covariance_type, mixture.reg_covar)
        covariances = mixture._check_matrices(covariances, means.shape[1], "covariances")
        components = mixture._family.components(means, covariances)
        refuse_singular(components, "covariances")
        mixture.n_features_in_ = means.shape[1]
        weights = checked_weights(weights, len(means), "weights")
        mixture._publish(Params.start(weights, components))
        return mixture

    def _validate(self, X, reset):
        X = super()._validate(X, reset)
        if reset:
            refuse_overflow(X, "The data holds")
        elif largest(X) > _FAR:
            return X * np.minimum(1, _FAR / np.maximum(np.abs(X).max(axis=1, keepdims=True), _FAR))
        return X

    def _make_family(self, rows):
        scale = rows.mean_variance() or 1.0
        return Gaussian(rows.n_features, self.covariance_type, float(self.reg_covar), scale=scale)

    def _checked_start(self, rows):
        covariances = None
        if self.precisions_init is not None:
            covariances = self._first_covariances(rows.n_features)
        return replace(super()._checked_start(rows), covariances=covariances)

    def _checked_means_init(self, rows):
        means = super()._checked_means_init(rows)
        refuse_overflow(means, "means_init holds")
        return means

    def _start(self, start, rows, rng):
        family, params = super()._start(start, rows, rng)
        if start.covariances is None:
            return family, params
        components = family.components(params.components.means, start.covariances)
        return family, Params.start(params.weights, components)

    def _first_covariances(self, d):
        """Return the inverses of `precisions_init`."""
        precisions = self._check_matrices(self.precisions_init, d, "precisions_init")
        family, origin = Gaussian(d, self.covariance_type), np.zeros((self.n_components, d))
        with np.errstate(over="ignore", divide="ignore"):
            try:
                covariances = invert(precisions, self.covariance_type)
            except np.linalg.LinAlgError:
                covariances = np.full_like(precisions, np.nan)
            refuse_singular(family.components(origin, covariances), "precisions_init")
        return covariances

    def _check_matrices(self, matrices, d, name):
        K = self.n_components
        shapes = {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}
        matrices = checked_array(matrices, name).astype(np.float64)
        expected = shapes[self.covariance_type]
        if matrices.shape != expected or not np.isfinite(matrices).all():
            raise ValueError(
                f"{name} should be finite and, for covariance_type={self.covariance_type!r}, of "
                f"shape {expected}, got {matrices.shape}."
            )
        if matrices.ndim > 1 and self.covariance_type in ("full", "tied"):
            if not np.allclose(matrices, np.swapaxes(matrices, -1, -2)):
                raise ValueError(f"{name} should be symmetric and positive definite.")
        elif not (matrices > 0).all():
            raise ValueError(f"{name} should be positive.")
        return matrices

    def _attributes(self, params):
        components = params.components
        cholesky = components.cholesky
        square = self._family.covariance_type in ("full", "tied")
        return super()._attributes(params) | {
            "means_": components.means,
            "covariances_": components.covariances,
            "precisions_cholesky_": cholesky,
            "precisions_": cholesky @ np.swapaxes(cholesky, -1, -2) if square else cholesky**2,
        }

    def _n_parameters(self):
        check_is_fitted(self)
        K, d = self.n_active_components_, self.n_features_in_
        return self._n_covariance_parameters() + K * d + K - 1

    def _n_covariance_parameters(self):
        K, d = self.n_active_components_, self.n_features_in_
        sizes = {
            "full": K * d * (d + 1) // 2,
            "tied": d * (d + 1) // 2,
            "diag": K * d,
            "spherical": K,
        }
        return sizes[self._family.covariance_type]

    def _draw(self, counts, rng):
        return np.vstack(
            [
                mean + rng.standard_normal((count, len(mean))) @ root.T
                for mean, root, count in zip(self.means_, self._roots(), counts, strict=True)
            ]
        )

    def _roots(self):
        """Return a root of each covariance, (n_components, n_features, n_features)."""
        K, d = self.means_.shape
        if self._family.covariance_type == "full":
            return np.linalg.cholesky(self.covariances_)
        if self._family.covariance_type == "tied":
            return np.tile(np.linalg.cholesky(self.covariances_), (K, 1, 1))
        variances = np.reshape(self.covariances_, (K, -1))
        return np.eye(d) * np.sqrt(variances)[:, :, None]


def largest(X):
    """Return the largest magnitude in an array."""
    return max(abs(float(X.max())), abs(float(X.min())))


def refuse_overflow(X, holder):
    """Refuse rows or means whose squares overflow."""
    if X.size and largest(X) > _FAR:
        raise ValueError(
            f"{holder} values up to {largest(X):.3g}, whose squares overflow. Rescale "
            "the features, for example with sklearn.preprocessing.StandardScaler."
        )


def refuse_singular(components, name):
    """Refuse covariances or precisions, given by name, that are singular."""
    with np.errstate(over="ignore", invalid="ignore"):
        sound = np.isfinite(components.covariances).all() and np.isfinite(components.log_det).all()
        if not sound or not np.isfinite(components.cholesky**2).all():
            raise ValueError(
                f"{name} should be symmetric and positive definite, with finite inverses."
            )


def invert(matrices, covariance_type):
    """Return the inverses of covariances or precisions of one shape."""
    if covariance_type in ("full", "tied"):
        return np.linalg.inv(matrices)
    return 1 / matrices
