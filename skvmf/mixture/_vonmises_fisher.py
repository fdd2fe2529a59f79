"""VonMisesFisherMixture: clusters of directions."""

from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._engine.data.base import RowSource
from .._engine.data.blocks import Block
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.em.spec import MixtureSpec
from .._engine.families.background import Background
from .._engine.families.vonmises_fisher import VonMisesFisher
from .._sklearn import Interval, StrOptions
from .._typing import Array
from .._warnings import warn
from ..distributions import vonmises_fisher as vmf
from ..distributions._arguments import checked_array
from ._base import BaseMixture
from ._broad import broad_component
from ._chunkwise import chunkwise
from ._given import checked_means

# Features up to which concentrations are a component's own, and by how many pseudo-rows a row
# they are pooled for each feature more.
_OWN_FEATURES, _POOLING = 20, 0.1


class VonMisesFisherMixture(BaseMixture):
    """Mixture of von Mises-Fisher distributions on the unit sphere.

    For rows whose direction matters and whose length does not: text and image embeddings,
    tf-idf rows, directional measurements. Rows are scaled to unit length as they are read,
    without a copy and without loss from subnormal to huge magnitudes. A zero row has no
    direction: it is left out of `fit` and `score`, its probabilities are `weights_` and
    its log-density is the uniform one.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    concentration_type : {'free', 'tied'}, default='free'
        Whether each component has a concentration of its own or all share one. Tied is the
        exact maximum likelihood for a shared concentration, and clusters tf-idf rows far
        better.
    concentration_prior : float, default=None
        Number of pseudo-rows of the pooled concentration that each component has beside its
        own rows; 0 is maximum likelihood, up to concentrations of 1e12. None is one, and
        beyond 20 features a tenth of a pseudo-row more for every further feature and every row
        that components have on average: in embeddings and texts, where concentrations of
        their own let one broad component swallow a third of the rows, it keeps them nearly
        equal.
    negentropy : {'exact', 'ode', 'rational', 'banerjee', 'newton'}, default='exact'
        Route from mean resultant lengths to densities. 'exact', 'ode' and the closed forms
        'rational' [1]_ and 'banerjee' [2]_ work in mean parameters (Bregman clustering),
        'newton' in natural parameters by root finding.
    entmax_alpha : float, default=1.0
        1 divides each row among components by softmax, as in standard EM; above 1 by
        alpha-entmax, which gives exact zeros [3]_.
    temperature : float, default=1.0
        Divides the log-densities: 0 is hard (classification) EM. With ``entmax_alpha=1``
        responsibilities are proportional to (pi_k p_k) ** (1 / temperature). 1 suits any
        number of features. More makes shares softer; up to a third of the median gap between a
        row's two largest log-densities it leaves the clusters as they are, and far above (the
        number of features is) all rows share alike, of which a warning tells.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Parameter of the modified Dirichlet prior on the weights, any real number [4]_: 1 is
        flat, below 1 and above all below 0 it empties small components.
    weight_floor : float, default=None
        Least weight of a component that is not pruned. None is 0 where every prior is at
        least 1, else min(1e-5, 1 / (2 n_components)).
    flat_start : bool, default=True
        Whether a fit with a prior below 1 first converges under a flat prior, so that the
        prior does not outweigh the data before components have formed.
    background : bool, default=False
        Whether rows may belong to none of the components: to a background that is uniform on
        the sphere, and whose weight is fitted. Rows that most likely do have the label -1.
    n_init : int, default=1
        Number of starts; the largest lower bound wins. Starts by merging compete on the
        sample, and the best goes on to all rows.
    init_params : {'merging', 'kmeans', 'k-means++', 'random', 'random_from_data'} or \
array-like, default='merging'
        Where a start comes from. 'merging' puts four times too many components on a sample,
        merges them by what their union loses, and adds and merges more where rows are badly
        explained; it finds the optimum where the others find one nearby. 'kmeans' is spherical
        k-means, 'k-means++' its seeds alone, both on a sample, 'random' a random partition of
        the rows, and 'random_from_data' the directions of distinct random rows with equal
        weights. An array is a first partition: labels (n_samples,) or responsibilities
        (n_samples, n_components).
        First concentrations are pooled over the components.
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn by weight.
        None is 100 for each component, and at least 10,000; with a background twice as many.
    weights_init : array-like of shape (n_components,), default=None
        First weights.
    means_init : array-like of shape (n_components, n_features), default=None
        First directions, of any positive length; `init_params` is then not used.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most this.
    max_iter : int, default=100
        Largest number of EM steps.
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
        Component means: inside the unit ball, mean resultant length times mean direction.
    mean_directions_ : ndarray of shape (n_components, n_features)
        Unit vectors.
    concentrations_ : ndarray of shape (n_components,)
        Concentrations kappa.
    background_weight_ : float
        Weight of the background, which `weights_` leave for it; 0 where there is none.
    converged_ : bool
        Whether the best start reached `tol`.
    n_iter_ : int
        EM steps of the best start.
    lower_bound_ : float
        Penalised log-likelihood per unit of sample weight of the fitted parameters.
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
    sklearn.mixture.GaussianMixture : For rows whose length matters.
    sklearn.cluster.KMeans : On unit rows close to tied hard EM.

    Notes
    -----
    Log-densities are with respect to surface area. Fits are bit-identical for every number
    of threads; BLAS's limit (``threadpoolctl``, ``OMP_NUM_THREADS``) says how many there are.
    A component that loses its mass is moved to the least likely row once in a fit; when it
    loses it again it is pruned: its weight is 0, its parameters are the last finite ones.

    References
    ----------
    .. [1] Nonnenmacher and Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", sections 2.5 and 3.1.
    .. [2] Banerjee, Dhillon, Ghosh and Sra, "Clustering on the unit hypersphere using von
       Mises-Fisher distributions", JMLR 6, 2005.
    .. [3] Sklaviadis et al., "Fenchel-Young variational learning", section 3.3.
    .. [4] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.

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
    _attribute_hints = {"cluster_centers_": "mean_directions_"}
    _parameter_constraints = BaseMixture._parameter_constraints | {
        "concentration_type": [StrOptions({"free", "tied"})],
        "concentration_prior": [Interval(Real, 0, None, closed="left"), None],
        "negentropy": [StrOptions({"exact", "ode", "rational", "banerjee", "newton"})],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        concentration_type: str = "free",
        concentration_prior: float | None = None,
        negentropy: str = "exact",
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
        self.concentration_type = concentration_type
        self.concentration_prior = concentration_prior
        self.negentropy = negentropy
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

    @classmethod
    def from_parameters(
        cls,
        weights: Any,
        means: Any = None,
        *,
        mean_directions: Any = None,
        concentrations: Any = None,
        background_weight: float = 0.0,
        **params: Any,
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
        mixture : VonMisesFisherMixture
            As if it had been fitted.

        Raises
        ------
        ValueError
            If the parameters are incomplete or out of range.

        Examples
        --------
        >>> from skvmf import VonMisesFisherMixture
        >>> mixture = VonMisesFisherMixture.from_parameters([0.5, 0.5], [[0.9, 0], [0, 0.9]])
        >>> mixture.predict([[1, 0.1], [0.1, 1]])
        array([0, 1])
        """
        given = means is not None, mean_directions is not None, concentrations is not None
        if given not in [(True, False, False), (False, True, True)]:
            raise ValueError("Give either means or mean_directions together with concentrations.")
        natural = means is None
        name = "mean_directions" if natural else "means"
        given_centres = mean_directions if natural else means
        centres = checked_means(given_centres, name)
        if centres.shape[1] < 2:
            raise ValueError(f"{name} should have at least two features, got {centres.shape[1]}.")
        if natural and not centres.any(axis=1).all():
            raise ValueError("mean_directions contains a zero row, which has no direction.")
        mixture = cls._from_parameters(len(centres), cls._beside(background_weight, params))
        family = mixture._family(centres.shape[1])
        if natural:
            kappa = checked_array(concentrations, "concentrations").astype(np.float64)
            if kappa.shape != (len(centres),):
                raise ValueError(
                    f"concentrations should have the shape ({len(centres)},), got {kappa.shape}."
                )
            components = family.from_natural(centres, kappa)
        else:
            longest = np.linalg.norm(centres, axis=1).max()
            if longest >= 1:
                raise ValueError(
                    f"Means should lie inside the unit ball, got one of length {longest:.17g}. "
                    "For unit vectors give mean_directions and concentrations."
                )
            components = family.from_means(centres)
        kappa = components.concentrations
        if family.tied and not np.allclose(kappa, kappa[0]):
            raise ValueError(f"concentration_type='tied' asks for one concentration, got {kappa}.")
        pooled = min(float(components.lengths.mean()), 1 - 1e-6)
        anchored = replace(family, prior_length=pooled)  # for a warm start
        first = mixture._given_params(weights, components, background_weight)
        background = Background.on_sphere(family.dim) if mixture.background else None
        return mixture._publish_given(FittedMixture(anchored, first, background), given_centres)

    @chunkwise(wide=True)
    def divergence(self, X: Any) -> Array:
        """Return the Bregman divergence of each row to each component mean.

        The divergence of the negative entropy psi is infinite on the sphere by psi(x) alone,
        which is the same for every mean; without that constant it is minus the log-density
        with respect to the uniform distribution, ``kappa (r - m.x) - psi(r)`` [1]_.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        divergence : ndarray of shape (n_samples, n_components)
            Divergences less psi(x); the nearest mean has the smallest.

        References
        ----------
        .. [1] Nonnenmacher and Sahani, "A solution for the mean parametrization of the von
           Mises-Fisher distribution", section 1.
        """
        rows = self._new_rows(X)
        fitted = self._fitted
        log_area = vmf.log_sphere_area(rows.n_features)
        divergence = np.empty((rows.n_rows, fitted.n_components), dtype=rows.dtype)

        def write(block: Block, span: slice) -> None:
            scores = fitted.family.scores(block, fitted.params.components)
            own = -(scores.log_density() + log_area)
            own[~block.has_direction] = 0
            divergence[span] = own

        rows.for_each(write)
        return divergence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _family(self, n_features: int) -> VonMisesFisher:
        tied = self.concentration_type == "tied"
        return VonMisesFisher(n_features, tied=tied, method=self.negentropy)

    def _spec(self, rows: RowSource, stage: str = "start", seen_before: float = 0.0) -> MixtureSpec:
        d = rows.n_features
        if d < 2:
            raise ValueError(
                f"n_features = {d}: directions need at least two features. "
                "For rows of one feature use a Gaussian mixture."
            )
        n_pseudo = self._n_pseudo_rows(rows, seen_before + rows.total_weight)
        family = replace(self._family(d), prior_strength=n_pseudo)
        spec = self._assembled(family, Background.on_sphere(d) if self.background else None)
        if stage != "start":
            return spec
        means = self._checked_means_init(rows)
        directions = None if means is None else _directions(means)
        return replace(spec, start=self._start(spec, rows, directions))

    def _n_pseudo_rows(self, rows: RowSource, total_weight: float) -> float:
        """Return how many pseudo-rows the prior on a concentration has beside so much weight."""
        n_each = 1.0 if self.concentration_prior is None else float(self.concentration_prior)
        n_pseudo = n_each * self.n_components
        if total_weight < n_pseudo and rows.n_rows >= n_pseudo:
            warn(
                f"The weights of the rows sum to {total_weight:.3g}, less than the "
                f"{n_pseudo:.3g} pseudo-rows of concentration_prior, which then decides the "
                "concentrations. A weight counts rows: let them sum to about n_samples, or "
                "lower concentration_prior.",
                UserWarning,
            )
        if self.concentration_prior is None:
            pooling = _POOLING * max(rows.n_features - _OWN_FEATURES, 0)
            n_each += pooling * total_weight / self.n_components
        return n_each

    def _warn_if_degenerate(self, fitted: FittedMixture) -> None:
        """Warn, too, where free concentrations let one broad component swallow most rows."""
        super()._warn_if_degenerate(fitted)
        if fitted.family.tied or fitted.family.dim <= _OWN_FEATURES:
            return
        found = broad_component(fitted.weights, fitted.params.components.concentrations)
        if found is not None:
            warn(
                f"Component {found} is by far the broadest and holds {fitted.weights[found]:.0%} "
                "of the rows, as happens with free concentrations in many dimensions. Unless there "
                "is such a cluster, take concentration_type='tied' or a larger "
                "concentration_prior; where the rows are outliers, background=True.",
                UserWarning,
            )

    def _attributes(self, fitted: FittedMixture, result: EMResult | None = None) -> dict[str, Any]:
        components = fitted.params.components
        directions = np.ascontiguousarray(components.directions.T)
        return super()._attributes(fitted, result) | {
            "means_": directions * components.lengths[:, None],
            "mean_directions_": directions,
            "concentrations_": components.concentrations,
        }


def _directions(means: Array) -> Array:
    """Return means at unit length, or raise a ValueError."""
    largest = np.abs(means).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError("means_init contains a zero row, which has no direction.")
    means = means / largest
    directions: Array = means / np.linalg.norm(means, axis=1, keepdims=True)
    return directions
