"""Mixtures with covariance types: what the Gaussian and Student-t estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils import Bunch

from .._engine.em.conditional import moments_and_quantiles
from .._engine.em.mixture import MixtureResult, Point
from .._engine.em.predictions import conditional_means
from .._engine.families.background import Background
from .._engine.families.covariance import COVARIANCE_TYPES, CovarianceType
from .._engine.families.gaussian import Gaussian
from .._engine.families.missing import conditional
from .._engine.rows.sources import RowSource, make_rows
from .._sklearn import Interval, SomeOf, StrOptions, as_frame, outputs_frames
from .._typing import Array, Attributes, MatrixLike, Numbers, ParameterConstraints
from ..distributions._arguments import checked_array
from ._base import BaseMixture
from ._checks import (
    background_in,
    checked_features,
    checked_means,
    refuse_overflow,
    with_background,
)
from ._rows import chunkwise, in_memory

# Parameters of a mixture that those of some of its features take over.
_MARGINAL_PARAMETERS = (
    "entmax_alpha",
    "temperature",
    "weight_concentration_prior",
    "missing_values",
    "random_state",
)


class BaseEllipticalMixture(BaseMixture):
    """Components with a mean and a matrix of some covariance type: validation and starts.

    Parameters
    ----------
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Shape of the covariances, or scale matrices, as in scikit-learn.
    reg_covar : float, default=1e-6
        Added to the diagonal of estimated ones. If a row is 1e8 times as far away as the
        rest, 'full' and 'tied' covariances may be singular for any value, and `fit` raises an
        error: leave that row out, or set `background`.
    missing_values : {'error', 'marginal'}, default='error'
        What NaN in X means. 'error' refuses it. 'marginal' takes it for a value that is missing at
        random, in dense rows of floats: densities, responsibilities and fits use the observed
        features of each row, and `lower_bound_` is their log-likelihood. A row without any has
        the weights as responsibilities. Starts look at whole rows where these are half of all,
        else also at rows that are filled, and judge what they find by the rows as they are.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, instead of `init_params`. The initial covariances, or scale matrices, are
        then the covariance of all rows.

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

    _shapes: ClassVar[tuple[str, str]]  # names of matrices, if they are fixed and at first
    # What `marginal` and `condition` return; None is the class itself.
    _marginal_class: ClassVar[type[BaseEllipticalMixture] | None] = None
    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseMixture._parameter_constraints,
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "missing_values": [StrOptions({"error", "marginal"})],
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
        centres = checked_means(means, "means")
        refuse_overflow(np.abs(centres).max(), "means holds")
        K, d = centres.shape
        mixture = cls._from_parameters(K, with_background(background_weight, params))
        background = background_in(background_bounds, d, mixture.background)
        family = mixture._family(d)
        matrices = mixture._checked_matrices(matrices, d, name)
        components = family.components(centres, matrices)
        first = mixture._given_params(weights, components, background_weight)
        fitted = Point(mixture._assembled(family, background), first)
        return mixture._publish_given(fitted, means)  # as they are given: they may name features

    @property
    def _covariance_type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @chunkwise(columns="features")
    def impute(self, X: MatrixLike) -> Any:
        """Return rows whose missing values are filled with their conditional means.

        They are the means of the components given what is observed (Ghahramani and Jordan, NIPS
        1994), weighted by softmax responsibilities: the guess with the least expected squared
        error. A background is left out. It needs ``missing_values='marginal'``.

        Parameters
        ----------
        X : {array-like, dask array} of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        X_filled : {ndarray, frame} of shape (n_samples, n_features)
            The rows, where observed as they are; a frame if `set_output` asks for one.

        Examples
        --------
        >>> from skvmf import SparseGaussianMixture
        >>> mixture = SparseGaussianMixture.from_parameters(
        ...     [1.0], [[0.0, 0.0]], [[[1.0, 0.8], [0.8, 1.0]]], missing_values="marginal"
        ... )
        >>> mixture.impute([[1.0, float("nan")]])
        array([[1. , 0.8]])
        """
        rows = self._new_rows(X)
        largest = float(np.finfo(rows.dtype).max)
        fill = partial(conditional_means, self._fitted, largest)
        filled = rows.per_row(fill, rows.dtype, rows.n_features)
        if not outputs_frames(self):
            return filled
        numbered = [f"x{i}" for i in range(rows.n_features)]  # as scikit-learn names features
        return as_frame(self, filled, X, getattr(self, "feature_names_in_", numbered))

    def marginal(self, features: Numbers | str | Sequence[str]) -> Any:
        """Return the mixture of some features.

        Parameters
        ----------
        features : str or array-like of int, str or bool
            Distinct features, by number, by the names that `fit` has seen, or as a mask.

        Returns
        -------
        mixture : object
            A mixture of the same class with these features in this order; of a RelativeGMM, a
            SparseGaussianMixture, so that components keep their numbers.

        Raises
        ------
        ValueError
            If features are none or repeat.

        Examples
        --------
        >>> from skvmf import StudentTMixture
        >>> mixture = StudentTMixture.from_parameters(
        ...     [1.0], [[0.0, 5.0]], [[[1.0, 0.8], [0.8, 2.0]]], 3.0
        ... )
        >>> mixture.marginal([1]).means_
        array([[5.]])
        """
        nothing = np.empty(0, dtype=int)
        return self._marginal(checked_features(self, features), nothing, nothing)

    def condition(self, features: Numbers | str | Sequence[str], values: Numbers) -> Any:
        """Return the mixture of the other features given the values of some.

        Its weights are the components' posterior probabilities. Those of Student-t components have
        as many more degrees of freedom as features are given, and wider scale matrices for values
        far from them (Ding, The American Statistician 70, 2016); 'tied' ones become 'full'.

        Parameters
        ----------
        features : str or array-like of int, str or bool
            Distinct features, by number, by the names that `fit` has seen, or as a mask; not all.
        values : float or array-like of float, of shape (n_given,) or (n_samples, n_given)
            Their values, of one row or of many.

        Returns
        -------
        mixture : object or list of object
            A mixture of the other features in their order; its class is as that of `marginal`.
            Of many rows a list, one for each. If you only need means, variances and quantiles,
            `predict_features` takes much less time.

        Raises
        ------
        ValueError
            If features or values cannot be used, or the density there is 0.

        Examples
        --------
        >>> from skvmf import SparseGaussianMixture
        >>> mixture = SparseGaussianMixture.from_parameters(
        ...     [1.0], [[0.0, 0.0]], [[[1.0, 0.8], [0.8, 1.0]]]
        ... )
        >>> given = mixture.condition([0], [1.0])
        >>> given.means_, given.covariances_.round(2)
        (array([[0.8]]), array([[[0.36]]]))
        """
        given = checked_features(self, features)
        others = np.delete(np.arange(self._fitted.family.dim), given)
        known = np.atleast_1d(checked_array(values, "values").astype(np.float64))
        fits = known.ndim <= 2 and known.shape[-1:] == given.shape
        if not fits or not np.isfinite(known).all() or len(others) == 0:
            raise ValueError(
                f"values should be finite, one for each of the {len(given)} features, of which "
                f"there should be fewer than {self._fitted.family.dim}, or rows of them; got "
                f"{values!r}."
            )
        if known.ndim == 2:
            return [self._marginal(others, given, row) for row in known]
        return self._marginal(others, given, known)

    def predict_features(
        self, features: Numbers | str | Sequence[str], X: MatrixLike, *, quantiles: Numbers = ()
    ) -> Bunch:
        """Predict some features from the others: a regression with intervals.

        The distribution of a row's features is that of `condition`, of the components alone: a
        background is left out, as in `impute`.

        Parameters
        ----------
        features : str or array-like of int, str or bool
            Distinct features to predict, by number, by the names that `fit` has seen, or as a
            mask; not all.
        X : {array-like, dask array} of shape (n_samples, n_features - n_predicted)
            Rows of the other features, in their order. With ``missing_values='marginal'``, NaN is
            a missing value. A Dask array is read into memory.
        quantiles : array-like of float, default=()
            Levels between 0 and 1, such as ``[0.05, 0.95]`` for an interval that should hold nine
            in ten values.

        Returns
        -------
        prediction : :class:`~sklearn.utils.Bunch`
            Dictionary-like object, with these arrays in the dtype of the rows. A row without
            density under any component gets the predictions of components by `weights_`.

            mean : ndarray of shape (n_samples, n_predicted)
                Conditional means: predictions with the least expected squared error.
            variance : ndarray of shape (n_samples, n_predicted)
                Conditional variances; infinite if a Student-t component has two or fewer degrees
                of freedom, the given values included.
            quantiles : ndarray of shape (n_samples, n_predicted, n_quantiles)
                Conditional quantiles.

        Raises
        ------
        ValueError
            If features, rows or levels cannot be used.

        Examples
        --------
        >>> from skvmf import SparseGaussianMixture
        >>> mixture = SparseGaussianMixture.from_parameters(
        ...     [1.0], [[0.0, 0.0]], [[[1.0, 0.8], [0.8, 1.0]]]
        ... )
        >>> prediction = mixture.predict_features([1], [[1.0], [-2.0]], quantiles=[0.05, 0.95])
        >>> prediction.mean.ravel(), prediction.variance.ravel().round(2)
        (array([ 0.8, -1.6]), array([0.36, 0.36]))
        >>> prediction.quantiles[0].round(2)
        array([[-0.19,  1.79]])
        """
        wanted = checked_features(self, features)
        d = self._fitted.family.dim
        others = np.delete(np.arange(d), wanted)
        if len(others) == 0:
            raise ValueError(
                f"features should be fewer than all {d}: there is nothing to predict them from."
            )
        levels = checked_array(quantiles, "quantiles").astype(np.float64)
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(
                f"quantiles should be a list of levels between 0 and 1, got {quantiles!r}."
            )
        X = in_memory(X)
        if np.shape(X)[1:] == (d,):
            raise ValueError(
                f"X should hold the other {len(others)} features, and has all {d}: leave out those "
                f"to predict, {features!r}."
            )
        # Read as rows of a mixture of the other features: by its names, and nan where it may be.
        given = self.marginal(others)._new_rows(X)
        rows = np.full((given.n_rows, d), np.nan, dtype=given.dtype)
        rows[:, others] = given.per_row(lambda block: block.X, given.dtype, len(others))
        parts = moments_and_quantiles(self._fitted, wanted, rows, levels)
        mean, variance, of_levels = (part.astype(rows.dtype) for part in parts)
        return Bunch(mean=mean, variance=variance, quantiles=of_levels)

    def _marginal(self, features: Array, given: Array, values: Array) -> Any:
        """Return the mixture of features `features`, given `values` of all others or none."""
        fitted = self._fitted
        family = fitted.family
        weights = fitted.params.weights
        latent = None
        if len(given):
            refuse_overflow(np.abs(values).max(), "values holds")
            # The values are a row that misses the other features: its E-step weights components.
            row = np.full((1, family.dim), np.nan)
            row[0, given] = values
            rows = make_rows(row, None, unit=False, missing=True)
            scores = fitted.scores(rows.block(0))
            latent = scores.cache
            with np.errstate(divide="ignore"):
                log_joint = scores.log_density()[0] + np.log(weights)
            if not np.isfinite(log_joint.max()):
                raise ValueError(f"The mixture has no density at the values {values}.")
            # Not by an E-step, which takes responsibilities of less than e^-60 for zero.
            weights = softmax(log_joint)
        means, shapes = conditional(family.type, fitted.params.components, features, given, values)
        bounds = fitted.background.bounds
        if bounds is not None:
            bounds = bounds[:, features]
        continuing = self._continuing(fitted)
        params = {name: getattr(continuing, name) for name in _MARGINAL_PARAMETERS}
        params["covariance_type"] = family.covariance_type
        params["reg_covar"] = family.reg_covar
        params["background"] = len(fitted.background) > 0
        kind: Any = self._marginal_class or type(self)
        marginal = kind.from_parameters(
            weights[: fitted.n_components],
            means,
            background_weight=float(weights[fitted.n_components :].sum()),
            background_bounds=bounds,
            **params | self._marginal_matrices(shapes, latent, len(given)),
        )
        if hasattr(self, "feature_names_in_"):
            marginal.feature_names_in_ = self.feature_names_in_[features]
        return marginal

    @abstractmethod
    def _marginal_matrices(
        self, shapes: Array, latent: Array | None, n_given: int
    ) -> dict[str, Any]:
        """Return arguments of `from_parameters`: matrices (K, ...), and what belongs to them."""

    def _family(self, n_features: int, scale: float = 1.0) -> Any:
        """Return the family that the parameters name; `scale` is the rows' mean variance."""
        family: Any = self._family_class
        fixes_matrices = self._shapes[0] in self.fixed
        fixes_means = "means" in self.fixed
        reg_covar = float(self.reg_covar)
        return family(
            n_features, self.covariance_type, reg_covar, fixes_matrices, fixes_means, scale
        )

    def _family_on(self, rows: RowSource, weight_seen: float) -> Any:
        variances = rows.variances()
        family = self._family(rows.n_features, float(variances.mean()) or 1.0)
        return family.with_units(variances)

    def _background_on(self, rows: RowSource, family: Any) -> Background:
        return Background.around(rows, family)

    def _first_means(self, means: Array) -> Array:
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
        # Matrices that are definite may still be singular to floats: what follows is not finite.
        family = Gaussian(d, self.covariance_type)
        with np.errstate(over="ignore", invalid="ignore"):
            if inverted:
                matrices = kind.precisions(kind.cholesky(matrices))  # of precisions
            components = family.components(np.zeros((self.n_components, d)), matrices)
            derived = [matrices, components.log_det, components.cholesky**2]
        if not all(np.isfinite(values).all() for values in derived):
            raise ValueError(
                f"{name} should be symmetric and positive definite, with finite inverses."
            )
        return matrices

    def _first_shapes(self, n_features: int) -> Array | None:
        matrices, name = self._shapes
        given = getattr(self, name)
        if given is not None:
            inverted = name == "precisions_init"
            return self._checked_matrices(given, n_features, name, inverted=inverted)
        if matrices in self.fixed:
            return self._covariance_type.identity(self.n_components, n_features)
        return None

    def _renumber_parameters(self, numbers: Array, n_components: int) -> None:
        shapes = self._shapes[1]
        given = getattr(self, shapes)
        super()._renumber_parameters(numbers, n_components)
        if self._covariance_type.shared:  # one matrix for all, whose rows are features
            setattr(self, shapes, given)

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        return super()._attributes(fitted, result) | {
            "means_": fitted.params.components.means,
            "background_bounds_": fitted.background.bounds,
        }


def ellipses(mixture: Any, features: Any = slice(None)) -> Array | None:
    """Return covariances or scale matrices of features (K, m, m), of scikit-learn too, or None."""
    if isinstance(mixture, BaseEllipticalMixture):
        kind = mixture._fitted.family.covariance_type
        matrices = mixture._fitted.params.components.covariances
    elif hasattr(mixture, "covariance_type") and hasattr(mixture, "covariances_"):
        kind = mixture.covariance_type
        matrices = mixture.covariances_
    else:
        return None
    K, d = mixture.means_.shape
    if kind in ("full", "tied"):
        return np.broadcast_to(matrices, (K, d, d))[:, features][:, :, features]
    variances = np.broadcast_to(np.reshape(matrices, (K, -1)), (K, d))[:, features, np.newaxis]
    return np.eye(variances.shape[1]) * variances


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

    covariances_: Array
    precisions_: Array
    precisions_cholesky_: Array

    _family_class = Gaussian
    _shapes = "covariances", "precisions_init"
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
        weights : array-like of shape (n_components,)
            Mixture weights; they sum to one, together with `background_weight`.
        means : array-like of shape (n_components, n_features)
            Component means.
        covariances : array-like
            Covariances, of the shape that belongs to `covariance_type`.
        background_weight : float, default=0.0
            Weight of a background; 0 is none.
        background_bounds : array-like of shape (2, n_features), default=None
            The lower and the upper corner of the background's box.
        **params : dict
            Constructor parameters; `n_components` may be left out.

        Returns
        -------
        self : object
            The fitted estimator.

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
            weights, means, covariances, "covariances", params, background_weight, background_bounds
        )

    def _marginal_matrices(
        self, shapes: Array, latent: Array | None, n_given: int
    ) -> dict[str, Any]:
        return {"covariances": shapes}

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        components = fitted.params.components
        return super()._attributes(fitted, result) | {
            "covariances_": components.covariances,
            "precisions_cholesky_": components.cholesky,
            "precisions_": fitted.family.type.precisions(components.cholesky),
        }
