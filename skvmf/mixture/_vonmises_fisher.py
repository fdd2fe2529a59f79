"""VonMisesFisherMixture: clusters of directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._engine.em.mixture import MixtureResult, Point
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.families.vonmises_fisher import VonMisesFisher
from .._engine.rows.blocks import Block
from .._engine.rows.sources import RowSource
from .._sklearn import Interval, SomeOf, StrOptions
from .._typing import (
    Array,
    Attributes,
    MatrixLike,
    Numbers,
    ParameterConstraints,
    RandomState,
    warn,
)
from ..distributions import vonmises_fisher as vmf
from ._checks import (
    checked_concentrations,
    checked_directions,
    checked_means,
    refuse_unequal,
    with_background,
)
from ._parameters import InitParams
from ._rows import chunkwise
from ._size_limits import SizeLimitedMixture
from ._warnings import warn_if_broad

# Up to so many features concentrations are estimated well from the rows of their components alone.
_FREE_FEATURES = 20
# Each further feature adds so many pseudo-rows per row to the prior: with many features one broad
# component would otherwise often take a third of the rows.
_POOLING = 0.1


_LONGEST_POOLED = 1 - 1e-6  # mean resultant length of a prior: at 1 no concentration is finite


class VonMisesFisherMixture(SizeLimitedMixture):
    """Mixture of von Mises-Fisher distributions on the unit sphere.

    Use it for rows whose direction matters and whose length does not: text and image embeddings,
    tf-idf rows, measured directions. Rows of any length are scaled to unit length when they are
    read, without a copy. `fit` and `score` leave out rows of zeros, whose log-density is that of
    the uniform distribution; `predict` says which label they get.

    Parameters
    ----------
    concentration_type : {'free', 'tied'}, default='free'
        Whether each component has its own concentration ('free') or all share one ('tied').
        'tied' is the safe choice for tf-idf rows.
    concentration_prior : float, default=None
        Strength of the prior that makes concentrations similar, in rows per component. By
        default the prior counts as 1 row up to 20 features. Each further feature adds 10 % of
        the average number of rows per component, so the concentrations of embeddings and texts
        become nearly equal. Otherwise one broad component often takes a third of the rows. Set 1
        to estimate concentrations separately. 0 is maximum likelihood, up to 1e12.
    negentropy : {'exact', 'ode', 'rational', 'banerjee', 'newton'}, default='exact'
        How densities are computed from mean resultant lengths. Change it only to compare
        methods. 'exact', 'ode' and the closed forms 'rational' [1]_ and 'banerjee' [2]_ use mean
        parameters (Bregman clustering). 'newton' solves for natural parameters.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial directions, of any positive length, instead of `init_params`.
    concentrations_init : float or array-like of shape (n_components,), default=None
        Initial concentrations. None estimates one for all components from the initial partition.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights),
        'means' (the directions of `means_init`) and 'concentrations' (`concentrations_init`).
        With `warm_start` and in `partial_fit`, they keep the values of the last fit.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Component means, inside the unit ball: mean resultant length times mean direction.
    mean_directions_ : ndarray of shape (n_components, n_features)
        Unit vectors.
    concentrations_ : ndarray of shape (n_components,)
        Concentrations kappa.

    Notes
    -----
    Log-densities are with respect to surface area. At the start of a fit, all components have
    the same concentration. A component without rows is moved to the least likely row once per fit.
    The next time it is pruned: its weight is 0, and it keeps its last parameters.

    References
    ----------
    .. [1] Nonnenmacher and Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", sections 2.5 and 3.1.
    .. [2] Banerjee, Dhillon, Ghosh and Sra, "Clustering on the unit hypersphere using von
       Mises-Fisher distributions", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import VonMisesFisherMixture
    >>> X = np.array([[1.0, 0.1], [2.0, -0.1], [0.1, 3.0], [-0.1, 1.0]])
    >>> mixture = VonMisesFisherMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.predict([[5.0, 0.0]]) == mixture.labels_[0]
    array([ True])
    >>> mixture.means_.shape, mixture.concentrations_.shape
    ((2, 2), (2,))
    """

    means_: Array
    mean_directions_: Array
    concentrations_: Array

    _family_class = VonMisesFisher
    _hints: ClassVar[Mapping[str, str]] = {
        **SizeLimitedMixture._hints,
        **dict.fromkeys(
            ["cluster_centers_", "components_", "centroids"], "unit vectors are in mean_directions_"
        ),
        **dict.fromkeys(
            ["covariances_", "precisions_", "kappa_", "kappas_"],
            "the larger concentrations_, the narrower the component",
        ),
    }
    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **SizeLimitedMixture._parameter_constraints,
        "concentration_type": [StrOptions({"free", "tied"})],
        "concentration_prior": [Interval(Real, 0, None, closed="left"), None],
        "negentropy": [StrOptions({"exact", "ode", "rational", "banerjee", "newton"})],
        "concentrations_init": [Real, "array-like", None],
        "fixed": [SomeOf({"weights", "means", "concentrations"})],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        concentration_type: Literal["free", "tied"] = "free",
        concentration_prior: float | None = None,
        negentropy: Literal["exact", "ode", "rational", "banerjee", "newton"] = "exact",
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: float | Numbers = 1.0,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        size_limits: tuple[float | None, float | None] | None = None,
        n_init: int = 1,
        init_params: InitParams = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        concentrations_init: float | Numbers | None = None,
        fixed: Sequence[Literal["weights", "means", "concentrations"]] = (),
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
        self.concentration_type = concentration_type
        self.concentration_prior = concentration_prior
        self.negentropy = negentropy
        self.entmax_alpha = entmax_alpha
        self.temperature = temperature
        self.weight_concentration_prior = weight_concentration_prior
        self.weight_floor = weight_floor
        self.flat_start = flat_start
        self.background = background
        self.size_limits = size_limits
        self.n_init = n_init
        self.init_params = init_params
        self.init_size = init_size
        self.weights_init = weights_init
        self.means_init = means_init
        self.concentrations_init = concentrations_init
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
        means: ArrayLike | None = None,
        *,
        mean_directions: ArrayLike | None = None,
        concentrations: ArrayLike | None = None,
        background_weight: float = 0.0,
        **params: object,
    ) -> Self:
        """Build a usable mixture without a fit.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Mixture weights; they sum to one, together with `background_weight`.
        means : array-like of shape (n_components, n_features), default=None
            Mean parameters, inside the unit ball.
        mean_directions : array-like of shape (n_components, n_features), default=None
            Directions of any positive length, together with `concentrations`, instead of
            `means`.
        concentrations : array-like of shape (n_components,), default=None
            Concentrations kappa >= 0.
        background_weight : float, default=0.0
            Weight of a background; 0 is none.
        **params : dict
            Constructor parameters; `n_components` may be left out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a mean is outside the unit ball, a direction is zero, a concentration is not from 0
            to 1e12, weights do not sum to one, or shapes do not agree.

        Examples
        --------
        >>> from skvmf import VonMisesFisherMixture
        >>> mixture = VonMisesFisherMixture.from_parameters([0.5, 0.5], [[0.9, 0], [0, 0.9]])
        >>> mixture.predict([[1, 0.1], [0.1, 1]])
        array([0, 1])
        """
        if means is not None and mean_directions is None and concentrations is None:
            name, given = "means", means
        elif means is None and mean_directions is not None and concentrations is not None:
            name, given = "mean_directions", mean_directions
        else:
            raise ValueError("Give either means or mean_directions together with concentrations.")
        centres = checked_means(given, name)
        K, d = centres.shape
        if d < 2:
            raise ValueError(f"{name} should have at least two features, got {d}.")
        if means is None and not centres.any(axis=1).all():
            raise ValueError("mean_directions contains a zero row, which has no direction.")
        mixture = cls._from_parameters(K, with_background(background_weight, params))
        family = mixture._family(d)
        if means is None:
            kappa = checked_concentrations(concentrations, K, "concentrations")
            components = family.from_natural(centres, kappa)
        else:
            longest = np.linalg.norm(centres, axis=1).max()
            if longest >= 1:
                raise ValueError(
                    f"Means should lie inside the unit ball, got one of length {longest:.17g}. "
                    "For unit vectors give mean_directions and concentrations."
                )
            components = family.from_means(centres)
        refuse_unequal(components.concentrations, family.tied)
        # A warm start centres the prior where a fit would have: on the pooled resultant length.
        pooled = min(float(components.lengths.mean()), _LONGEST_POOLED)
        anchored = replace(family, prior_length=pooled)
        background = NO_BACKGROUND
        if mixture.background:
            background = Background.on_sphere(d)
        first = mixture._given_params(weights, components, background_weight)
        fitted = Point(mixture._assembled(anchored, background), first)
        return mixture._publish_given(fitted, given)

    @chunkwise(columns="components")
    def divergence(self, X: MatrixLike) -> Array:
        """Return the Bregman divergence of each row to each component mean.

        On the sphere the divergence of the negative entropy psi is infinite, but only by psi(x),
        which is the same for every mean. Without that constant it is minus the log-density
        with respect to the uniform distribution, ``kappa (r - m.x) - psi(r)`` (Nonnenmacher and
        Sahani, section 1).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        divergence : ndarray of shape (n_samples, n_components)
            Divergences minus psi(x); the nearest mean has the smallest.
        """
        rows = self._new_rows(X)
        fitted = self._fitted
        log_area = vmf.log_sphere_area(rows.n_features)  # minus the uniform log-density

        def of_block(block: Block) -> Array:
            scores = fitted.family.scores(block, fitted.params.components)
            divergence = -(scores.log_density() + log_area)
            divergence[~block.has_direction] = 0
            return divergence

        return rows.per_row(of_block, rows.dtype, fitted.n_components)

    def _family(self, n_features: int) -> VonMisesFisher:
        return VonMisesFisher(
            n_features,
            tied=self.concentration_type == "tied",
            method=self.negentropy,
            fixed_means="means" in self.fixed,
            fixed_concentrations="concentrations" in self.fixed,
        )

    def _background_on(self, rows: RowSource, family: VonMisesFisher) -> Background:
        return Background.on_sphere(family.dim)

    def _family_on(self, rows: RowSource, weight_seen: float) -> VonMisesFisher:
        d = rows.n_features
        if d < 2:
            raise ValueError(
                f"n_features = {d}: directions need at least two features. "
                "For rows of one feature use a Gaussian mixture; angles are directions if they "
                "are written as np.column_stack([np.cos(angles), np.sin(angles)]), in radians."
            )
        family = self._family(d)
        prior = self.concentration_prior
        if family.fixed_concentrations:
            if prior is None:
                return family
            raise ValueError(
                f"fixed={self.fixed!r} keeps the concentrations, but concentration_prior needs "
                "concentrations that are estimated. Leave it out, or remove 'concentrations' from "
                "fixed."
            )
        n_each = 1.0  # pseudo-rows of a component
        if prior is not None:
            n_each = float(prior)
        n_pseudo = n_each * self.n_components
        if weight_seen < n_pseudo and rows.n_rows >= n_pseudo:  # as weights far below 1 are
            warn(
                f"The sample weights sum to {weight_seen * rows.weight_unit:.3g}, less than the "
                f"{n_pseudo:.3g} pseudo-rows of concentration_prior, so the prior determines the "
                "concentrations. A weight of 1 counts as one row: scale the weights so that they "
                "sum to about n_samples, or lower concentration_prior.",
                UserWarning,
            )
        if prior is None:
            n_each += _POOLING * max(d - _FREE_FEATURES, 0) * weight_seen / self.n_components
        return replace(family, prior_strength=n_each)

    def _first_means(self, means: Array) -> Array:
        return checked_directions(means, "means_init")

    def _first_shapes(self, n_features: int) -> Array | None:
        given = self.concentrations_init
        K = self.n_components
        if given is None:
            return None
        if np.ndim(given) == 0:
            given = np.full(K, given)
        kappa = checked_concentrations(given, K, "concentrations_init")
        refuse_unequal(kappa, self.concentration_type == "tied")
        return kappa

    def _warn_if_degenerate(self, fitted: Point) -> None:
        """Warn also if free concentrations let one broad component take most rows."""
        super()._warn_if_degenerate(fitted)
        family = fitted.family
        if family.tied or family.fixed_concentrations or family.dim <= _FREE_FEATURES:
            return
        warn_if_broad(fitted.weights, fitted.params.components.concentrations)

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        components = fitted.params.components
        directions = np.ascontiguousarray(components.directions.T)
        return super()._attributes(fitted, result) | {
            "means_": directions * components.lengths[:, None],
            "mean_directions_": directions,
            "concentrations_": components.concentrations,
        }
