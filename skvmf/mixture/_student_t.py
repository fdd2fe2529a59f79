"""StudentTMixture: Gaussian-like components whose tails are heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._engine.em.mixture import MixtureResult, Point
from .._engine.families.covariance import per_component
from .._engine.families.student_t import INITIAL_DOF, KNOWN_RANGE, StudentT
from .._sklearn import SomeOf, StrOptions
from .._typing import Array, Attributes, Numbers, ParameterConstraints, RandomState
from ..distributions._arguments import checked_array
from ._gaussian import BaseEllipticalMixture
from ._parameters import CovarianceType, InitParams


class StudentTMixture(BaseEllipticalMixture):
    """Mixture of multivariate Student-t distributions: Gaussian-like clusters, heavy tails.

    Rows far from every component have little influence: a row has the weight
    (nu + n_features) / (nu + D) in the estimates, where D is its squared Mahalanobis distance and
    nu the degrees of freedom [1]_. 1 is a Cauchy distribution, and with many the mixture becomes
    Gaussian. The default start leaves out rows that are far from all others; the other starts are
    attracted by them.

    Parameters
    ----------
    degrees_of_freedom : {'estimated', 'tied'}, float or array-like of shape (n_components,), \
default='estimated'
        'estimated' fits one number per component and 'tied' one for all, between 0.1 and a
        million, starting from 4. Numbers from 0.001 to 1e100 are not changed by a fit; 4 is a
        common choice if there are too few rows to estimate them [2]_.
    scale_matrices_init : array-like, default=None
        Initial scale matrices, of the shape that belongs to `covariance_type`. None is the
        covariances of the initial partition.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights),
        'means' (`means_init`) and 'scale_matrices' (`scale_matrices_init`, or the identity).
        With `warm_start` and in `partial_fit`, they keep the values of the last fit. Degrees of
        freedom are fixed if `degrees_of_freedom` is a number.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most `tol`. Degrees of freedom converge
        last: use 1e-6 for two correct digits.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Locations of the components: their means if these exist, with nu > 1.
    scale_matrices_ : ndarray
        Scale matrices, of shape (n_components, n_features, n_features) for 'full', (n_features,
        n_features) for 'tied', (n_components, n_features) for 'diag' and (n_components,) for
        'spherical'. The covariance of a component is ``nu / (nu - 2)`` times its scale matrix if
        nu > 2; with fewer degrees of freedom it has none.
    degrees_of_freedom_ : ndarray of shape (n_components,)
        Degrees of freedom nu.

    Notes
    -----
    The fit uses parameter-expanded EM (PX-EM [3]_), which needs fewer steps than plain EM.
    Degrees of freedom maximize a bound on the log-likelihood that is tighter than that of
    ECM [4]_ and, like it, increases in every step [5]_. With ``reg_covar=0``, `lower_bound_`
    never decreases, except where a component without rows is moved to a row.

    Components are pruned by the same rule as in :class:`SparseGaussianMixture`.

    References
    ----------
    .. [1] Peel and McLachlan, "Robust mixture modelling using the t distribution", Statistics
       and Computing 10, 2000.
    .. [2] Lange, Little and Taylor, "Robust statistical modeling using the t distribution",
       Journal of the American Statistical Association 84, 1989.
    .. [3] Liu, Rubin and Wu, "Parameter expansion to accelerate EM: the PX-EM algorithm",
       Biometrika 85, 1998.
    .. [4] Liu and Rubin, "ML estimation of the t distribution using EM and its extensions, ECM
       and ECME", Statistica Sinica 5, 1995.
    .. [5] Hasannasab, Hertrich, Laus and Steidl, "Alternatives to the EM algorithm for ML
       estimation of location, scatter matrix, and degree of freedom of the Student t
       distribution", Numerical Algorithms 87, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import StudentTMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, 200), rng.normal(10, 1, 200), [30, 60, -80]])
    >>> mixture = StudentTMixture(2, degrees_of_freedom=4, random_state=0).fit(X[:, np.newaxis])
    >>> np.sort(mixture.means_.ravel()).round()
    array([ 0., 10.])
    """

    scale_matrices_: Array
    degrees_of_freedom_: Array

    _family_class = StudentT
    _by_number = (*BaseEllipticalMixture._by_number, "degrees_of_freedom")
    _shapes = "scale_matrices", "scale_matrices_init"
    _hints: ClassVar[Mapping[str, str]] = {
        **BaseEllipticalMixture._hints,
        "covariances_": "they are nu / (nu - 2) times scale_matrices_, for nu in "
        "degrees_of_freedom_ above 2",
        "precisions_": "scale_matrices_ take the place of covariances",
        "concentrations_": "scale_matrices_ say how wide components are",
        **dict.fromkeys(["precisions_init", "concentrations_init"], "use scale_matrices_init"),
    }
    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseEllipticalMixture._parameter_constraints,
        "degrees_of_freedom": [Real, "array-like", StrOptions({"estimated", "tied"})],
        "scale_matrices_init": ["array-like", None],
        "fixed": [SomeOf({"weights", "means", "scale_matrices"})],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        degrees_of_freedom: Literal["estimated", "tied"] | float | Numbers = "estimated",
        covariance_type: CovarianceType = "full",
        reg_covar: float = 1e-6,
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: float | Numbers = 1.0,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        missing_values: Literal["error", "marginal"] = "error",
        n_init: int = 1,
        init_params: InitParams = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        scale_matrices_init: ArrayLike | None = None,
        fixed: Sequence[Literal["weights", "means", "scale_matrices"]] = (),
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: RandomState = None,
        warm_start: bool = False,
        learning_decay: float = 0.7,
        checkpoint: str | PathLike[str] | None = None,
        verbose: int = 0,
        verbose_interval: int = 10,
    ) -> None:
        self.n_components = n_components
        self.degrees_of_freedom = degrees_of_freedom
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.entmax_alpha = entmax_alpha
        self.temperature = temperature
        self.weight_concentration_prior = weight_concentration_prior
        self.weight_floor = weight_floor
        self.flat_start = flat_start
        self.background = background
        self.missing_values = missing_values
        self.n_init = n_init
        self.init_params = init_params
        self.init_size = init_size
        self.weights_init = weights_init
        self.means_init = means_init
        self.scale_matrices_init = scale_matrices_init
        self.fixed = fixed
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.learning_decay = learning_decay
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        scale_matrices: ArrayLike,
        degrees_of_freedom: ArrayLike,
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
            Locations of the components.
        scale_matrices : array-like
            Scale matrices, of the shape that belongs to `covariance_type`.
        degrees_of_freedom : float or array-like of shape (n_components,)
            Degrees of freedom, which are then fixed.
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
            If shapes do not agree, a scale matrix is not positive definite or degrees of
            freedom are not from 0.001 to 1e100.

        Examples
        --------
        >>> from skvmf import StudentTMixture
        >>> mixture = StudentTMixture.from_parameters(
        ...     [0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], 3.0, covariance_type="spherical"
        ... )
        >>> mixture.predict([[1.0], [3.0]])
        array([0, 1])
        """
        checked_array(degrees_of_freedom, "degrees_of_freedom")  # no text, such as 'estimated'
        params = params | {"degrees_of_freedom": degrees_of_freedom}
        return cls._from_matrices(
            weights,
            means,
            scale_matrices,
            "scale_matrices",
            params,
            background_weight,
            background_bounds,
        )

    def _marginal_matrices(
        self, shapes: Array, latent: Array | None, n_given: int
    ) -> dict[str, Any]:
        fitted = self._fitted
        dof = fitted.params.components.degrees_of_freedom + n_given
        if latent is None:
            return {"degrees_of_freedom": dof, "scale_matrices": shapes}
        covariance_type = fitted.family.covariance_type
        if covariance_type == "tied":  # the matrices of components differ by their latent weights
            shapes = np.repeat(shapes[np.newaxis], latent.shape[1], axis=0)
            covariance_type = "full"
        return {
            "degrees_of_freedom": dof,
            "covariance_type": covariance_type,
            "scale_matrices": shapes / per_component(latent[0], shapes),
        }

    def _by_number_in(self, fitted: Point) -> dict[str, tuple[Array, float]]:
        dof = fitted.params.components.degrees_of_freedom
        return super()._by_number_in(fitted) | {"degrees_of_freedom": (dof, INITIAL_DOF)}

    def _family(self, n_features: int, scale: float = 1.0) -> StudentT:
        family: StudentT = super()._family(n_features, scale)
        if isinstance(self.degrees_of_freedom, str):
            return replace(family, tied=self.degrees_of_freedom == "tied")
        fixed = checked_array(self.degrees_of_freedom, "degrees_of_freedom").astype(np.float64)
        low, high = KNOWN_RANGE
        are_possible = (fixed >= low) & (fixed <= high)
        if fixed.shape not in [(), (self.n_components,)] or not are_possible.all():
            raise ValueError(
                f"degrees_of_freedom should be 'estimated', 'tied', a number from {low:g} to "
                f"{high:g} or one for each of the {self.n_components} components, got "
                f"{self.degrees_of_freedom!r}."
            )
        return replace(family, degrees_of_freedom=fixed, estimated=False)

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        components = fitted.params.components
        return super()._attributes(fitted, result) | {
            "scale_matrices_": components.covariances,
            "degrees_of_freedom_": components.degrees_of_freedom,
        }
