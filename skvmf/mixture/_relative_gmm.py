"""RelativeGMM: a Gaussian mixture whose components are in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._engine.em.mixture import Mixture, MixtureResult, Point
from .._engine.families.background import Background
from .._engine.families.family import AnyFamily, Update
from .._engine.families.gaussian import Gaussian
from .._engine.families.ordering import Ordering, RelativeECM, RelativeEM, ScaleOrder, ScaleUpdate
from .._engine.rows.sources import RowSource
from .._engine.search.starts import Start
from .._sklearn import Interval, SomeOf, StrOptions
from .._typing import Array, Attributes, Numbers, ParameterConstraints, RandomState
from ._base import Beginning, n_with_weight
from ._checks import checked_means
from ._gaussian import BaseGaussianMixture
from ._parameters import CovarianceType, InitParams
from ._rows import Data
from ._sparse_gaussian import SparseGaussianMixture


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
    solver : {'ecm', 'em'}, default='ecm'
        How the ordered parameters are updated. 'ecm' maximizes over the first mean and then over
        one gap after the other [1]_. 'em' maximizes over all of them at once, which is ordinary
        EM if no gap is at its clearance. All other parameters have closed-form updates. Where
        components begin far from their clusters, as after a warm start with one more, 'ecm' may
        need hundreds of iterations for what 'em' does in five, and `tol` may stop it before.
    order : {'means', 'scales', 'both'}, default='means'
        What is sorted along the ordering feature: the means, the standard deviations, or both.
        'both' restricts the model: a component with a larger mean is at least as wide.
    ordering_feature : int, default=0
        The feature that orders the components.
    clearance : float, default=0.0
        Smallest gap between neighbours along that feature, in its unit. Starts are sorted, and
        moved apart if necessary.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights) and
        'covariances' (the inverses of `precisions_init`, or the identity). With `warm_start` and
        in `partial_fit`, they keep the values of the last fit.
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

    Notes
    -----
    What is given for each component (`weights_init`, `precisions_init`, priors) belongs to those of
    `means_init` or, if that is None, to the sorted components.

    With ``reg_covar=0``, the bound never decreases, with either solver, except where a component
    without rows is moved to a row.

    The clearance holds between components that have rows; a component without rows lies
    between its neighbours. A start whose components all have the same width, such as
    'random_from_data', cannot be sorted by width: with ``order='scales'`` use another one.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", sections 2, 3.1 and 4.

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

    if TYPE_CHECKING:  # not annotated when the program runs: it is part of a pickle
        scale_differences_: Array

    _marginal_class = SparseGaussianMixture  # whose components keep their numbers in any order
    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseGaussianMixture._parameter_constraints,
        "solver": [StrOptions({"ecm", "em"})],
        "order": [StrOptions({"means", "scales", "both"})],
        "ordering_feature": [Interval(Integral, 0, None, closed="left")],
        "clearance": [Interval(Real, 0, None, closed="left")],
        "fixed": [SomeOf({"weights", "covariances"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        solver: Literal["ecm", "em"] = "ecm",
        order: Literal["means", "scales", "both"] = "means",
        ordering_feature: int = 0,
        clearance: float = 0.0,
        covariance_type: CovarianceType = "full",
        reg_covar: float = 1e-6,
        precisions_init: ArrayLike | None = None,
        fixed: Sequence[Literal["weights", "covariances"]] = (),
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
        self.solver = solver
        self.order = order
        self.ordering_feature = ordering_feature
        self.clearance = clearance
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.precisions_init = precisions_init
        self.fixed = fixed
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
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.learning_decay = learning_decay
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def _constraint(self) -> Ordering:
        state = None
        if self.covariance_type == "tied":
            state = "tied"
        elif "covariances" in self.fixed:
            state = "fixed"
        if self.order != "means" and state is not None:
            raise ValueError(
                f"order={self.order!r} sorts standard deviations, but covariances are {state}. "
                "Choose order='means', another covariance_type, or covariances that are estimated."
            )
        feature, clearance = self._room()
        return Ordering(self.order, feature, clearance, self._covariance_type)

    def _room(self) -> tuple[int, float]:
        """Return the feature that orders components, and the clearance along it."""
        return int(self.ordering_feature), float(self.clearance)

    def _family_on(self, rows: RowSource, weight_seen: float) -> Gaussian:
        self._constraint().check(rows.n_features)
        return super()._family_on(rows, weight_seen)

    def _begin_warm(self, data: Data, continued: Point) -> Beginning:
        beginning = super()._begin_warm(data, continued)
        self._check_clearance(data.rows, beginning.n_components)
        return beginning

    def _assembled(self, family: AnyFamily, background: Background) -> Mixture:
        mixture = replace(super()._assembled(family, background), update=self._update())
        if self.means_init is None or np.ndim(mixture.weight_prior.alpha) == 0:
            return mixture
        # Priors by number belong to the means given, as weights do.
        means = checked_means(self.means_init, "means_init", (self.n_components, family.dim))
        order = self._constraint().argsort(means, self._first_shapes(family.dim))
        return mixture.renumbered(order)

    def _start(self, rows: RowSource) -> Start:
        ordering = self._constraint()
        ordering.check(rows.n_features)
        start = super()._start(rows)
        self._check_clearance(rows, n_with_weight(start))
        return start if start.means is None else _in_order(start, ordering)

    def _check_clearance(self, rows: RowSource, n_components: int) -> None:
        """Refuse a clearance with which the means would not fit between the rows."""
        if self.clearance == 0:
            return
        (lowest,), (highest,) = rows.extent([int(self.ordering_feature)])
        spanned = highest - lowest
        needed = (n_components - 1) * self.clearance
        if needed > spanned:
            raise ValueError(
                f"clearance={self.clearance} is too wide: {n_components} components need "
                f"{needed:.6g} along feature {self.ordering_feature}, where the data spans "
                f"{spanned:.6g}. Reduce clearance or n_components."
            )

    def _update(self) -> Update:
        feature, clearance = self._room()
        is_em = self.solver == "em"
        means: Update = RelativeECM(feature, clearance)
        if is_em:
            means = RelativeEM(feature, clearance)
        if self.order == "means":
            return means
        if self.order == "scales":
            means = Update()  # in any order
        return ScaleUpdate(means, ScaleOrder(feature, clearance), is_em)

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        components = fitted.params.components
        ordering = fitted.mixture.constraint
        attributes = super()._attributes(fitted, result)
        attributes["differences_"] = np.diff(components.means, axis=0)
        if isinstance(ordering, Ordering):  # else they are in the pickle
            kind = fitted.family.type
            variances = kind.along(components.covariances, len(components), ordering.feature)
            attributes["scale_differences_"] = np.diff(np.sqrt(variances))
        return attributes


def _in_order(start: Start, ordering: Ordering) -> Start:
    """Return a start whose given means, and what belongs to them, are in order and apart."""
    weights = start.weights
    covariances = start.shapes
    order = ordering.argsort(start.means, covariances)
    are_present = np.ones(len(order), dtype=bool)
    if weights is not None:
        weights = weights[order]
        are_present = weights > 0
    means = ordering.apart(start.means[order], are_present)
    if covariances is not None:
        covariances = ordering.covariance_type.select(covariances, order)
    return replace(start, means=means, weights=weights, shapes=covariances)
