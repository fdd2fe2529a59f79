"""RelativeGMM: a Gaussian mixture whose components are in order."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._engine.contracts.model_parts import Update
from .._engine.data.base import RowSource
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.em.spec import MixtureSpec
from .._engine.families.background import extent_of
from .._engine.initialization.start import Initialization
from .._engine.updates.closed_form import ClosedForm
from .._engine.updates.coordinates import AbsoluteCoordinates, RelativeCoordinates
from .._engine.updates.ordered_means import GradientStep, RelativeECM, RelativeEM
from .._engine.updates.ordered_scales import ScaleOrder, ScaleUpdate
from .._engine.updates.ordering import Ordering
from .._sklearn import Interval, StrOptions
from .._typing import Array
from ._base import PARAMETERS
from ._gaussian import BaseGaussianMixture


class RelativeGMM(BaseGaussianMixture):
    """Gaussian mixture with ordered, identifiable components.

    The means are a reference and gaps to it along one feature [1]_: component 0 has the
    smallest mean there, component 1 the next, in every iteration and every fit. So may be the
    standard deviations along that feature, instead or as well. So labels keep their meaning
    from fit to fit, and a positive `clearance` keeps components apart, away from the overlap
    where a mixture is singular. What the coordinates do not give is faster convergence: see
    the user guide.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    coordinates : {'relative', 'absolute'}, default='relative'
        What is optimized: a reference and ordered gaps, or the means and covariances
        themselves, whose components are put in order after the fit.
    solver : {'ecm', 'em', 'gradient'}, default='ecm'
        How what is in order is updated. 'ecm' maximizes over the reference, then over one gap
        after the other [1]_; 'em' over all at once, which is ordinary EM wherever no gap is at
        its clearance; 'gradient' takes a step of `learning_rate` with the means, and moves
        standard deviations as 'em' does. In absolute coordinates 'ecm' and 'em' are the same.
        All else has closed forms throughout.
    order : {'means', 'scales', 'both'}, default='means'
        What is in ascending order along the ordering feature: the means, the standard
        deviations, or both at once. 'both' is a smaller model and not only a way to number
        components: one with a larger mean is as wide or wider.
    ordering_feature : int, default=0
        The feature that orders the components.
    clearance : float, default=0.0
        The least gap between neighbours in what is in order along that feature, in its unit;
        in relative coordinates.
    learning_rate : float, default=0.1
        Step along the gradient of the mean log-likelihood, for ``solver='gradient'``. A step
        that overshoots is halved until it does not.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Shape of the covariances, as in scikit-learn.
    reg_covar : float, default=1e-6
        Added to the diagonal of free covariances.
    precisions_init : array-like, default=None
        First precisions, of the shape that `covariance_type` asks for; of fixed covariances,
        what they are. They belong to the components of `means_init`, or where that is None
        to the components in order.
    free_parameters : tuple of str, default=("weights", "means", "covariances")
        What is estimated. Means are always; fixed weights are `weights_init`, else equal;
        fixed covariances come from `precisions_init`, else they are the identity.
    store_path : bool, default=False
        Whether to keep the means of every iteration in `path_`.
    entmax_alpha : float, default=1.0
        1 divides each row among components by softmax, as in standard EM; above 1 by
        alpha-entmax, which gives exact zeros [2]_.
    temperature : float, default=1.0
        Divides the log-densities: 0 is hard (classification) EM.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Parameter of the modified Dirichlet prior on free weights, any real number [3]_: 1 is
        flat, below 1 and above all below 0 it empties small components.
    weight_floor : float, default=None
        Least weight of a component that is not pruned. None is 0 where every prior is at
        least 1, else min(1e-5, 1 / (2 n_components)).
    flat_start : bool, default=True
        Whether a fit with a prior below 1 first converges under a flat prior.
    background : bool, default=False
        Whether rows may belong to none of the components: to a background that is uniform in
        the box around the data, and whose weight is fitted. Rows that most likely do have the
        label -1.
    n_init : int, default=1
        Number of starts; the largest lower bound wins. Starts by merging compete on the
        sample, and the best goes on to all rows.
    init_params : {'merging', 'kmeans', 'k-means++', 'random', 'random_from_data'} or \
array-like, default='merging'
        Where a start comes from. 'merging' puts four times too many spherical components on a
        sample, merges most of them by what their union loses, gives the rest covariances of
        their own, joins those whose union costs least, and cuts and joins again as long as
        that helps; it finds the optimum where the others find one nearby. 'kmeans'
        is k-means, 'k-means++' its seeds alone, both on a sample, 'random' a random partition
        of the rows, and 'random_from_data' distinct random rows with equal weights and the
        covariance of the data. An array is a first partition: labels (n_samples,) or
        responsibilities (n_samples, n_components).
        Starts are put in order, and moved apart where the clearance asks for it.
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn by weight.
        None is 100 for each component, and at least 10,000; with a background twice as many.
    weights_init : array-like of shape (n_components,), default=None
        First weights, of the components of `means_init`, or of the components in order.
    means_init : array-like of shape (n_components, n_features), default=None
        First means, in any order; the first covariance of each is that of the data. With
        ``order='scales'`` they are in the order of the components, unless `precisions_init`
        says how wide these are.
    tol : float, default=1e-3
        The fit stops when a step changes `lower_bound_` by at most this.
    max_iter : int, default=100
        Largest number of steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit.
    learning_decay : float, default=0.7
        How fast `partial_fit` forgets: a batch that is the share w of the weight seen so far
        has the share w ** learning_decay in what is remembered. 1 remembers all rows alike,
        less follows a stream that changes; the fit converges above 0.5.
    checkpoint : str or path-like, default=None
        A file in which `fit` keeps how far it is. Where it exists, `fit` goes on from there, with
        the bits of a fit that was never interrupted; other data, parameters or versions are
        refused.
    verbose : int, default=0
        1 prints starts and iterations, 2 also time and bound.
    verbose_interval : int, default=10
        Iterations between two lines.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Mixture weights; 0 for a pruned component. They sum to one, together with
        `background_weight_`.
    means_ : ndarray of shape (n_components, n_features)
        Component means, in ascending order of the ordering feature; with ``order='scales'``
        in that of their standard deviations.
    differences_ : ndarray of shape (n_components - 1, n_features)
        Gaps from each mean to the next.
    scale_differences_ : ndarray of shape (n_components - 1,)
        Gaps from each standard deviation along the ordering feature to the next.
    path_ : ndarray of shape (n_iter + 1, n_components, n_features) or None
        The means at the start and after each step of the best start, with `store_path`.
    covariances_ : ndarray
        Covariances, of shape (n_components, n_features, n_features) for 'full', (n_features,
        n_features) for 'tied', (n_components, n_features) for 'diag' and (n_components,) for
        'spherical'.
    precisions_ : ndarray
        Their inverses, of the same shape.
    precisions_cholesky_ : ndarray
        Upper triangular U with precision U U', or the roots of the precisions.
    background_weight_ : float
        Weight of the background, which `weights_` leave for it; 0 where there is none.
    background_bounds_ : ndarray of shape (2, n_features) or None
        The least and the largest corner of the box in which the background is uniform.
    converged_ : bool
        Whether the best start reached `tol`.
    n_iter_ : int
        Steps of the best start.
    lower_bound_ : float
        Fenchel-Young value plus the log prior of the weights, per unit of sample weight; the
        log-likelihood for softmax responsibilities and a flat prior.
    lower_bounds_ : list of float
        The bound at the start and after each step of the best start.
    labels_ : ndarray of shape (n_samples,)
        Most probable component of each row of the fit; -1 is the background. Pruned components
        have no rows: ``np.unique(labels_, return_inverse=True)[1]`` are labels without gaps,
        of which the background, if it has rows, is the first.
    probabilities_ : ndarray of shape (n_samples,)
        The share that this component has in the row, the largest of its responsibilities; 0
        where the label is -1.
    n_steps_ : int
        Calls of `partial_fit`, since `fit` where that came before.
    weight_seen_ : float
        Weight of the rows that `fit` and `partial_fit` after it have seen.
    n_active_components_ : int
        Components with positive weight.
    effective_n_components_ : float
        Exponential of the entropy of the weights.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names seen in `fit`, where X has them.

    See Also
    --------
    SparseGaussianMixture : Empties components that the data does not need.
    sklearn.mixture.GaussianMixture : Components in any order.

    Notes
    -----
    With ``reg_covar=0`` the bound never falls, whatever the solver. Gradient ascent in
    relative coordinates moves the roots of what the gaps have above the clearance; since a
    root of 0 is stationary, its start clears the bound by 1 % of the data's standard deviation.

    The clearance holds between components that have rows; a component without rows lies
    between its neighbours. A start whose components are all as wide, such as from random rows,
    cannot know which is to be wider: with ``order='scales'`` take another one. Fits are
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

    _parameter_constraints = BaseGaussianMixture._parameter_constraints | {
        "coordinates": [StrOptions({"relative", "absolute"})],
        "solver": [StrOptions({"ecm", "em", "gradient"})],
        "order": [StrOptions({"means", "scales", "both"})],
        "ordering_feature": [Interval(Integral, 0, None, closed="left")],
        "clearance": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "free_parameters": [tuple, list],
        "store_path": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        coordinates: str = "relative",
        solver: str = "ecm",
        order: str = "means",
        ordering_feature: int = 0,
        clearance: float = 0.0,
        learning_rate: float = 0.1,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        precisions_init: ArrayLike | None = None,
        free_parameters: Sequence[str] = PARAMETERS,
        store_path: bool = False,
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: ArrayLike = 1.0,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        n_init: int = 1,
        init_params: ArrayLike = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Any = None,
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
        self.free_parameters = free_parameters
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
        free = list(self.free_parameters)
        if "means" not in free or not set(free) <= set(PARAMETERS):
            raise ValueError(
                f"free_parameters should hold 'means' and any others of {PARAMETERS}, "
                f"got {self.free_parameters!r}."
            )
        if self.store_path and self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} does not hold the means of every iteration, "
                "which store_path=True asks for: leave out one of them."
            )
        if self.clearance > 0 and self.coordinates == "absolute":
            raise ValueError(
                f"clearance={self.clearance} is a bound on gaps, and absolute coordinates have "
                "none: choose coordinates='relative', or clearance=0."
            )
        self._check_order(free)
        if "weights" not in free and not np.all(np.equal(self.weight_concentration_prior, 1)):
            raise ValueError(
                "weight_concentration_prior is a prior on free weights, and free_parameters="
                f"{self.free_parameters!r} fixes them: add 'weights', or leave the prior at 1."
            )
        if "weights" not in free and self.background:
            raise ValueError(
                "background=True adds a component whose weight is estimated, and free_parameters="
                f"{self.free_parameters!r} fixes the weights: add 'weights', or leave it out."
            )

    def _check_order(self, free: list[str]) -> None:
        """Refuse an order of standard deviations that are not free to have one."""
        if self.order == "means":
            return
        if self.covariance_type == "tied" or "covariances" not in free:
            why = "tied" if self.covariance_type == "tied" else "fixed"
            raise ValueError(
                f"order={self.order!r} is one of standard deviations, and covariances are {why}: "
                "choose order='means', or free covariances of another covariance_type."
            )
        if self.order == "both" and self.coordinates == "absolute":
            raise ValueError(
                "order='both' holds only for some mixtures, and absolute coordinates reach all: "
                "choose coordinates='relative', or order='means' or 'scales'."
            )

    def _constraint(self) -> Ordering:
        self._check_names()
        return Ordering(
            int(self.ordering_feature),
            self.order == "scales",
            self._coordinates(),
            self._scale_order(),
            self._covariance_type,
            fixed_weights="weights" not in self.free_parameters,
        )

    def _spec(self, rows: RowSource, stage: str = "start", seen_before: float = 0.0) -> MixtureSpec:
        ordering = self._constraint()
        ordering.check(rows.n_features)
        if stage != "stream":
            self._check_clearance(rows)
        spec = replace(super()._spec(rows, stage, seen_before), update=self._update())
        start = spec.start
        if not isinstance(start, Initialization) or start.means is None:
            return spec
        return replace(spec, start=_in_order(start, ordering, rows))

    def _check_clearance(self, rows: RowSource) -> None:
        """Refuse a clearance with which the means would not fit between the rows."""
        if self.clearance == 0:
            return
        extent = rows.map_reduce(partial(extent_of, [int(self.ordering_feature)]))
        lowest, highest = float(extent.low[0]), float(extent.high[0])
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
            return ClosedForm()
        return RelativeEM(coordinates) if self.solver == "em" else RelativeECM(coordinates)

    def _attributes(self, fitted: FittedMixture, result: EMResult | None = None) -> dict[str, Any]:
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

    def _path(self, result: EMResult) -> Array:
        """Return the means (n_iter + 1, K, d) of every iteration."""
        order = self._constraint().order(result.params.components)
        return np.array([params.components.means for params in result.path])[:, order]


def _in_order(start: Initialization, ordering: Ordering, rows: RowSource) -> Initialization:
    """Return a start whose given means, and what belongs to them, are in order and apart."""
    means, weights, covariances = start.means, start.weights, start.covariances
    assert means is not None
    order = np.arange(len(means))
    if covariances is not None or not ordering.by_scales:
        order = ordering.argsort(means, covariances)
    return replace(
        start,
        means=ordering.apart(means[order], rows.mean_variance()),
        weights=None if weights is None else weights[order],
        covariances=(
            None if covariances is None else ordering.covariance_type.select(covariances, order)
        ),
    )
