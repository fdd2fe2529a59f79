"""RelativeGMM: a Gaussian mixture whose components are in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._engine.contracts import AnyFamily, Update
from .._engine.gaussian import Gaussian
from .._engine.model import Background, FittedMixture, Mixture, MixtureResult
from .._engine.ordered import (
    AbsoluteCoordinates,
    GradientStep,
    Ordering,
    RelativeCoordinates,
    RelativeECM,
    RelativeEM,
    ScaleOrder,
    ScaleUpdate,
)
from .._engine.rows import RowSource
from .._engine.starts import Start
from .._sklearn import Interval, SomeOf, StrOptions
from .._typing import Array, Attributes, Numbers, ParameterConstraints, RandomState
from ._gaussian import BaseGaussianMixture
from ._parameters import CovarianceType, InitParams


class RelativeGMM(BaseGaussianMixture):
    """Gaussian mixture with ordered, identifiable components.

    Component 0 has the smallest mean along one feature, component 1 the next, and so on, in every
    iteration and every fit [1]_. The standard deviations along that feature can be ordered in
    addition to the means, or instead of them. So labels keep their meaning from fit to fit, and a
    positive `clearance` keeps components apart. A fit does not converge faster: see the user
    guide.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    coordinates : {'relative', 'absolute'}, default='relative'
        'relative' optimizes the first mean and the ordered gaps between means. 'absolute'
        optimizes the means themselves and sorts the components after the fit.
    solver : {'ecm', 'em', 'gradient'}, default='ecm'
        How the ordered parameters are updated. 'ecm' maximizes over the first mean and then over
        one gap after the other [1]_. 'em' maximizes over all of them at once, which is ordinary
        EM if no gap is at its clearance. 'gradient' moves the means by one gradient step and
        updates standard deviations as 'em' does. In absolute coordinates, 'ecm' and 'em' are
        the same. All other parameters have closed-form updates.
    order : {'means', 'scales', 'both'}, default='means'
        What is sorted along the ordering feature: the means, the standard deviations, or both.
        'both' restricts the model: a component with a larger mean is at least as wide.
    ordering_feature : int, default=0
        The feature that orders the components.
    clearance : float, default=0.0
        Smallest gap between neighbours along that feature, in its unit. It needs relative
        coordinates. Starts are sorted, and moved apart if necessary.
    learning_rate : float, default=0.1
        Step size along the gradient of the mean log-likelihood, for ``solver='gradient'``. A
        step that is too large is halved.
    precisions_init : array-like, default=None
        Initial precisions, of the shape that belongs to `covariance_type`. They belong to the
        components of `means_init` or, if that is None, to the sorted components.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights) and
        'covariances' (the inverses of `precisions_init`, or the identity). With `warm_start` and
        in `partial_fit`, they keep the values of the last fit.
    store_path : bool, default=False
        Whether to store the means of every iteration in `path_`.
    weights_init : array-like of shape (n_components,), default=None
        Initial weights. They belong to the components of `means_init` or, if that is None, to
        the sorted components.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, in any order. The initial covariances are then that of all rows. With
        ``order='scales'``, give the means in the order of the components, unless
        `precisions_init` defines their widths.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Component means, in ascending order of the ordering feature; with ``order='scales'``
        in the order of their standard deviations.
    differences_ : ndarray of shape (n_components - 1, n_features)
        Gaps from each mean to the next.
    scale_differences_ : ndarray of shape (n_components - 1,)
        Gaps from each standard deviation along the ordering feature to the next.
    path_ : ndarray of shape (n_iter + 1, n_components, n_features) or None
        The means at the start and after each step of the best start, with `store_path`.

    See Also
    --------
    SparseGaussianMixture : Removes components that the data do not need.
    sklearn.mixture.GaussianMixture : Components in any order.

    Notes
    -----
    With ``reg_covar=0``, `lower_bound_` never decreases, with any solver. Gradient ascent in
    relative coordinates updates the square roots of the gaps minus the clearance. A root of 0
    would stay 0, so each initial gap exceeds the clearance by at least 1 % of the standard
    deviation of the data.

    The clearance holds between components that have rows; a component without rows lies
    between its neighbours. A start whose components all have the same width, such as
    'random_from_data', cannot be sorted by width: with ``order='scales'`` use another one.

    `entmax_alpha` and the prior on the weights are described in [2]_ and [3]_. Fits are
    bit-identical for every number of threads.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", sections 2, 3.1 and 4.
    .. [2] Sklaviadis et al., "Fenchel-Young variational learning", section 3.3.
    .. [3] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import RelativeGMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(9, 1, 200), rng.normal(3, 1, 100)])[:, np.newaxis]
    >>> mixture = RelativeGMM(n_components=2, random_state=0).fit(X)
    >>> mixture.means_.ravel().round()
    array([3., 9.])
    >>> mixture.predict([[3.0], [9.0]])
    array([0, 1])
    """

    differences_: Array
    scale_differences_: Array

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseGaussianMixture._parameter_constraints,
        "coordinates": [StrOptions({"relative", "absolute"})],
        "solver": [StrOptions({"ecm", "em", "gradient"})],
        "order": [StrOptions({"means", "scales", "both"})],
        "ordering_feature": [Interval(Integral, 0, None, closed="left")],
        "clearance": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "fixed": [SomeOf({"weights", "covariances"})],
        "store_path": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        coordinates: Literal["relative", "absolute"] = "relative",
        solver: Literal["ecm", "em", "gradient"] = "ecm",
        order: Literal["means", "scales", "both"] = "means",
        ordering_feature: int = 0,
        clearance: float = 0.0,
        learning_rate: float = 0.1,
        covariance_type: CovarianceType = "full",
        reg_covar: float = 1e-6,
        precisions_init: ArrayLike | None = None,
        fixed: Sequence[Literal["weights", "covariances"]] = (),
        store_path: bool = False,
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: float | Numbers = 1.0,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        n_init: int = 1,
        init_params: InitParams = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
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
        self.coordinates = coordinates
        self.solver = solver
        self.order = order
        self.ordering_feature = ordering_feature
        self.clearance = clearance
        self.learning_rate = learning_rate
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.precisions_init = precisions_init
        self.fixed = fixed
        self.store_path = store_path
        self.entmax_alpha = entmax_alpha
        self.temperature = temperature
        self.weight_concentration_prior = weight_concentration_prior
        self.weight_floor = weight_floor
        self.flat_start = flat_start
        self.background = background
        self.n_init = n_init
        self.init_params = init_params
        self.init_size = init_size
        self.weights_init = weights_init
        self.means_init = means_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.learning_decay = learning_decay
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def _check_names(self) -> None:
        """Refuse parameters that do not go together."""
        if self.store_path and self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} cannot be used with store_path=True: a "
                "checkpoint does not contain the means of every iteration. Leave out one of them."
            )
        if self.clearance > 0 and self.coordinates == "absolute":
            raise ValueError(
                f"clearance={self.clearance} needs gaps, which are parameters in relative "
                "coordinates only: choose coordinates='relative', or clearance=0."
            )
        self._check_order()

    def _check_order(self) -> None:
        """Refuse an order of standard deviations that are not free to have one."""
        if self.order == "means":
            return
        if self.covariance_type == "tied" or "covariances" in self.fixed:
            why = "tied" if self.covariance_type == "tied" else "fixed"
            raise ValueError(
                f"order={self.order!r} sorts standard deviations, but covariances are {why}. "
                "Choose order='means', another covariance_type, or covariances that are estimated."
            )
        if self.order == "both" and self.coordinates == "absolute":
            raise ValueError(
                "order='both' needs coordinates='relative': sorting components after a fit in "
                "absolute coordinates orders means or standard deviations, not both. Or choose "
                "order='means' or 'scales'."
            )

    def _constraint(self) -> Ordering:
        self._check_names()
        return Ordering(
            int(self.ordering_feature),
            self.order == "scales",
            self._coordinates(),
            self._scale_order(),
            self._covariance_type,
        )

    def _family_on(self, rows: RowSource, weight_seen: float) -> Gaussian:
        self._constraint().check(rows.n_features)
        return super()._family_on(rows, weight_seen)

    def _spec(self, rows: RowSource) -> Mixture:
        self._constraint().check(rows.n_features)
        self._check_clearance(rows)
        return super()._spec(rows)

    def _assembled(self, family: AnyFamily, background: Background) -> Mixture:
        return replace(super()._assembled(family, background), update=self._update())

    def _start(self, rows: RowSource) -> Start:
        start = super()._start(rows)
        return start if start.means is None else _in_order(start, self._constraint(), rows)

    def _check_clearance(self, rows: RowSource) -> None:
        """Refuse a clearance with which the means would not fit between the rows."""
        if self.clearance == 0:
            return
        (lowest,), (highest,) = rows.extent([int(self.ordering_feature)])
        needed = (self.n_components - 1) * self.clearance
        if needed > highest - lowest:
            raise ValueError(
                f"clearance={self.clearance} is too wide: {self.n_components} components need "
                f"{needed:.6g} along feature {self.ordering_feature}, where the data spans "
                f"{highest - lowest:.6g}. Reduce clearance or n_components."
            )

    def _coordinates(self) -> AbsoluteCoordinates | RelativeCoordinates:
        if self.coordinates == "absolute" or self.order == "scales":
            return AbsoluteCoordinates()
        squared = self.solver == "gradient"
        return RelativeCoordinates(int(self.ordering_feature), float(self.clearance), squared)

    def _scale_order(self) -> ScaleOrder | None:
        """Return the order of standard deviations that a fit keeps, if there is one."""
        if self.coordinates == "absolute" or self.order == "means":
            return None
        return ScaleOrder(int(self.ordering_feature), float(self.clearance))

    def _update(self) -> Update:
        means, order = self._mean_update(), self._scale_order()
        if order is None:
            return means
        return ScaleUpdate(means, order, joint=self.solver != "ecm")

    def _mean_update(self) -> Update:
        coordinates = self._coordinates()
        if self.solver == "gradient":
            return GradientStep(coordinates, float(self.learning_rate))
        if isinstance(coordinates, AbsoluteCoordinates):
            return Update()
        return RelativeEM(coordinates) if self.solver == "em" else RelativeECM(coordinates)

    def _attributes(self, fitted: FittedMixture, result: MixtureResult | None = None) -> Attributes:
        components, kind = fitted.params.components, self._covariance_type
        scales = ScaleOrder(int(self.ordering_feature))
        attributes = super()._attributes(fitted, result) | {
            "differences_": np.diff(components.means, axis=0),
            "scale_differences_": np.diff(
                scales.scales(kind, components.covariances, len(components))
            ),
        }
        if result is not None:
            attributes["path_"] = self._path(result) if self.store_path else None
        return attributes

    def _path(self, result: MixtureResult) -> Array:
        """Return the means (n_iter + 1, K, d) of every iteration."""
        order = self._constraint().order(result.params.components)
        return np.array([params.components.means for params in result.path])[:, order]


def _in_order(start: Start, ordering: Ordering, rows: RowSource) -> Start:
    """Return a start whose given means, and what belongs to them, are in order and apart."""
    means, weights, covariances = start.means, start.weights, start.shapes
    assert means is not None
    order = np.arange(len(means))
    if covariances is not None or not ordering.by_scales:
        order = ordering.argsort(means, covariances)
    return replace(
        start,
        means=ordering.apart(means[order], rows.mean_variance()),
        weights=None if weights is None else weights[order],
        shapes=(
            None if covariances is None else ordering.covariance_type.select(covariances, order)
        ),
    )
