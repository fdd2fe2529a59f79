"""SparseGaussianMixture: a Gaussian mixture that empties what the data does not need."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from os import PathLike
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from .._typing import Numbers, ParameterConstraints, RandomState
from ._gaussian import BaseGaussianMixture
from ._parameters import CovarianceType, InitParams
from ._size_limits import SizeLimitedMixture


class SparseGaussianMixture(BaseGaussianMixture, SizeLimitedMixture):
    """Gaussian mixture of dense rows whose weights or responsibilities may be sparse.

    It takes the parameters of :class:`~sklearn.mixture.GaussianMixture`, accepts sample weights
    and float32, and is accurate for clusters far from the origin. A parameter alpha of the prior on
    the weights subtracts 1 - alpha rows from each component. So -alpha is about the number of rows
    below which a component is removed. The default of 0 only removes components that are almost
    empty, and 1 gives the results of scikit-learn. With ``entmax_alpha=2``, responsibilities have
    exact zeros, so that outliers do not influence every component.

    Parameters
    ----------
    weight_concentration_prior : float or array-like of shape (n_components,), default=None
        Parameter of the modified Dirichlet prior on the weights: any real number. 1 is a flat
        prior. A number below 1, and especially below 0, removes small components. None is 0, or 1
        if `entmax_alpha` is above 1, the weights are fixed, there are `size_limits`, or there are
        no more rows than components.

    Notes
    -----
    A component is pruned, with weight 0 and its last parameters, when its covariance would be
    singular, when its weight stays at the floor for two steps and it has fewer than
    ``max(n_features + 1, 1 - weight_concentration_prior)`` rows, or when it has no rows for
    the second time (the first time it is moved to the least likely row).

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))])
    >>> mixture = SparseGaussianMixture(
    ...     n_components=6, weight_concentration_prior=-5, random_state=2
    ... ).fit(X)
    >>> mixture.n_active_components_
    2
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **SizeLimitedMixture._parameter_constraints,
        **BaseGaussianMixture._parameter_constraints,
        "weight_concentration_prior": [Real, "array-like", None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: CovarianceType = "full",
        reg_covar: float = 1e-6,
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: float | Numbers | None = None,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        missing_values: Literal["error", "marginal"] = "error",
        size_limits: tuple[float | None, float | None] | None = None,
        n_init: int = 1,
        init_params: InitParams = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        fixed: Sequence[Literal["weights", "means", "covariances"]] = (),
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
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.entmax_alpha = entmax_alpha
        self.temperature = temperature
        self.weight_concentration_prior = weight_concentration_prior
        self.weight_floor = weight_floor
        self.flat_start = flat_start
        self.background = background
        self.missing_values = missing_values
        self.size_limits = size_limits
        self.n_init = n_init
        self.init_params = init_params
        self.init_size = init_size
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.fixed = fixed
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.learning_decay = learning_decay
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.verbose_interval = verbose_interval
