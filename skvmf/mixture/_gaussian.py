"""Mixtures with covariance types: what the Gaussian and Student-t estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._engine.covariance import COVARIANCE_TYPES, CovarianceType
from .._engine.gaussian import Gaussian
from .._engine.model import NO_BACKGROUND, Background, FittedMixture, MixtureResult
from .._engine.rows import RowSource
from .._sklearn import Interval, SomeOf, StrOptions
from .._typing import Array, Attributes, ParameterConstraints
from ..distributions._arguments import checked_array
from ._base import BaseMixture
from ._validation import background_in, checked_means, refuse_overflow, with_background


class BaseEllipticalMixture(BaseMixture):
    """Components with a mean and a matrix of some covariance type: validation and starts.

    Parameters
    ----------
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Shape of the covariances, as in scikit-learn.
    reg_covar : float, default=1e-6
        Added to the diagonal of estimated covariances. If a row is 1e8 times as far away as the
        rest, 'full' and 'tied' covariances may be singular for any value, and `fit` raises an
        error: leave that row out, or set `background`.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, instead of `init_params`. The initial covariances are then that of all
        rows.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Component means.
    background_bounds_ : ndarray of shape (2, n_features) or None
        The lower and the upper corner of the box in which the background is uniform.
    """

    means_: Array
    background_bounds_: Array | None

    covariance_type: str
    reg_covar: float

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseMixture._parameter_constraints,
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
    }

    @classmethod
    def _from_matrices(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        matrices: ArrayLike,
        name: str,
        params: dict[str, object],
        background_weight: float,
        background_bounds: ArrayLike | None,
    ) -> Self:
        given = means
        means = checked_means(means, "means")
        refuse_overflow(np.abs(means).max(), "means holds")
        mixture = cls._from_parameters(len(means), with_background(background_weight, params))
        background = background_in(background_bounds, means.shape[1], mixture.background)
        family = mixture._family(means.shape[1])
        matrices = mixture._checked_matrices(matrices, means.shape[1], name)
        components = family.components(means, matrices)
        first = mixture._given_params(weights, components, background_weight)
        fitted = FittedMixture(mixture._assembled(family, background), first)
        return mixture._publish_given(fitted, given)

    @property
    def _covariance_type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @abstractmethod
    def _family(self, n_features: int, scale: float = 1.0) -> Any:
        """Return the family that the parameters name; `scale` is the rows' mean variance."""

    def _family_on(self, rows: RowSource, weight_seen: float) -> Any:
        refuse_overflow(rows.largest, "The data holds")
        return self._family(rows.n_features, rows.mean_variance() or 1.0)

    def _background_on(self, rows: RowSource, family: Any) -> Background:
        if not self.background:
            return NO_BACKGROUND
        return Background.around(rows, float(self.reg_covar), family.scale)

    def _first_means(self, rows: RowSource) -> Array | None:
        means = super()._first_means(rows)
        if means is not None:
            refuse_overflow(np.abs(means).max(), "means_init holds")
        return means

    def _checked_matrices(
        self, matrices: ArrayLike, d: int, name: str, *, inverted: bool = False
    ) -> Array:
        """Return matrices, or the inverses of those given; refuse singular ones."""
        matrices = checked_array(matrices, name).astype(np.float64)
        kind = self._covariance_type
        expected = kind.shape(self.n_components, d)
        if matrices.shape != expected or not np.isfinite(matrices).all():
            raise ValueError(
                f"{name} should be finite and, for covariance_type={self.covariance_type!r}, of "
                f"shape {expected}, got {matrices.shape}."
            )
        if not kind.is_definite(matrices):
            raise ValueError(f"{name} should be {kind.definite}.")
        family, origin = Gaussian(d, self.covariance_type), np.zeros((self.n_components, d))
        with np.errstate(over="ignore", invalid="ignore"):
            if inverted:
                matrices = kind.precisions(kind.cholesky(matrices))  # of precisions
            components = family.components(origin, matrices)
            parts = matrices, components.log_det, components.cholesky**2
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError(
                f"{name} should be symmetric and positive definite, with finite inverses."
            )
        return matrices

    def _identity_if_fixed(self, d: int, name: str) -> Array | None:
        if name not in self.fixed:
            return None
        return self._covariance_type.identity(self.n_components, d)

    def _attributes(self, fitted: FittedMixture, result: MixtureResult | None = None) -> Attributes:
        return super()._attributes(fitted, result) | {
            "means_": fitted.params.components.means,
            "background_bounds_": fitted.background.bounds,
        }


def ellipses(mixture: object) -> tuple[str, Array] | None:
    """Return type and matrices of elliptical components, also of scikit-learn's; None of others."""
    if isinstance(mixture, BaseEllipticalMixture):
        fitted = mixture._fitted
        return fitted.family.covariance_type, fitted.params.components.covariances
    if hasattr(mixture, "covariance_type") and hasattr(mixture, "covariances_"):
        return mixture.covariance_type, mixture.covariances_
    return None


class BaseGaussianMixture(BaseEllipticalMixture):
    """Gaussian components.

    Parameters
    ----------
    precisions_init : array-like, default=None
        Initial precisions, of the shape that belongs to `covariance_type`.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights),
        'means' (`means_init`) and 'covariances' (the inverses of `precisions_init`, or the
        identity). With `warm_start` and in `partial_fit`, they keep the values of the last fit.

    Attributes
    ----------
    covariances_ : ndarray
        Covariances, of shape (n_components, n_features, n_features) for 'full', (n_features,
        n_features) for 'tied', (n_components, n_features) for 'diag' and (n_components,) for
        'spherical'.
    precisions_ : ndarray
        Their inverses, of the same shape.
    precisions_cholesky_ : ndarray
        Upper triangular U with precision U U', or the square roots of the precisions.
    """

    precisions_init: ArrayLike | None

    covariances_: Array
    precisions_: Array
    precisions_cholesky_: Array

    _family_class = Gaussian
    _hints: ClassVar[Mapping[str, str]] = {
        **BaseEllipticalMixture._hints,
        "concentrations_": "covariances_ say how wide components are",
    }
    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseEllipticalMixture._parameter_constraints,
        "precisions_init": ["array-like", None],
        "fixed": [SomeOf({"weights", "means", "covariances"})],
    }

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        background_weight: float = 0.0,
        background_bounds: ArrayLike | None = None,
        **params: object,
    ) -> Self:
        """Build a usable mixture without a fit.

        Parameters
        ----------
        means : array-like of shape (n_components, n_features)
            Component means.
        covariances : array-like
            Covariances, of the shape that belongs to `covariance_type`.

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
        return cls._from_matrices(
            weights,
            means,
            covariances,
            "covariances",
            params,
            background_weight,
            background_bounds,
        )

    def _family(self, n_features: int, scale: float = 1.0) -> Gaussian:
        fixed = "covariances" in self.fixed, "means" in self.fixed
        return Gaussian(n_features, self.covariance_type, float(self.reg_covar), *fixed, scale)

    def _first_shapes(self, n_features: int) -> Array | None:
        given, name = self.precisions_init, "precisions_init"
        if given is None:
            return self._identity_if_fixed(n_features, "covariances")
        return self._checked_matrices(given, n_features, name, inverted=True)

    def _attributes(self, fitted: FittedMixture, result: MixtureResult | None = None) -> Attributes:
        components = fitted.params.components
        return super()._attributes(fitted, result) | {
            "covariances_": components.covariances,
            "precisions_cholesky_": components.cholesky,
            "precisions_": fitted.family.type.precisions(components.cholesky),
        }
