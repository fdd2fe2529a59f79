"""StudentTMixture: Gaussian-like components whose tails are heavy."""

from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import EMResult
from .._engine.families.student_t import INITIAL_DOF, KNOWN_RANGE, KnownTails, StudentT
from .._sklearn import StrOptions
from .._typing import Array
from ..distributions._arguments import checked_array
from ._gaussian import BaseEllipticalMixture, refuse_singular


class StudentTMixture(BaseEllipticalMixture):
    """Mixture of multivariate Student-t distributions: Gaussian-like clusters, heavy tails.

    Rows far from every component hardly move it: in the estimates a row counts with the weight
    (nu + n_features) / (nu + D), where D is its squared Mahalanobis distance and nu the
    degrees of freedom [1]_. Few degrees of freedom stand for many outliers, 1 is a Cauchy
    distribution, and with many the mixture is a Gaussian one. Starts by merging or k-means are
    drawn by rows that are very far away; where there are such rows take
    ``init_params="random_from_data"`` and ``n_init=10`` or more.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, an upper bound under a prior below 1.
    degrees_of_freedom : {'estimated', 'tied'}, float or array-like of shape (n_components,), \
default='estimated'
        'estimated' finds those of each component, 'tied' one number for all, between 0.1 and
        a million; the fit begins with 4. Numbers, from 0.001 to 1e100, are known degrees of
        freedom; 4 is a common choice where rows are too few to estimate them [2]_.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Shape of the scale matrices, as of scikit-learn's covariances.
    reg_covar : float, default=1e-6
        Added to the diagonal of the scale matrices.
    entmax_alpha : float, default=1.0
        1 divides each row among components by softmax, as in standard EM; above 1 by
        alpha-entmax, which gives exact zeros [3]_.
    temperature : float, default=1.0
        Divides the log-densities: 0 is hard (classification) EM. With ``entmax_alpha=1``
        responsibilities are proportional to (pi_k p_k) ** (1 / temperature). 1 suits any
        number of features; far above, all rows share alike, of which a warning tells.
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
        that helps; it finds the optimum where the others find one nearby, unless rows
        are very far away. 'kmeans' is k-means, 'k-means++' its seeds alone, both on a sample,
        'random' a random partition of the rows, and 'random_from_data' distinct random rows
        with equal weights and the covariance of the data. An array is a first partition:
        labels (n_samples,) or responsibilities (n_samples, n_components). First scale matrices
        are the covariances of the partition.
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn by weight.
        None is 100 for each component, and at least 10,000; with a background twice as many.
    weights_init : array-like of shape (n_components,), default=None
        First weights.
    means_init : array-like of shape (n_components, n_features), default=None
        First means; the first scale matrices are the covariance of all rows.
    scale_matrices_init : array-like, default=None
        First scale matrices, of the shape that `covariance_type` asks for.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most this. Degrees of freedom come
        last: for two digits of them take 1e-6.
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
        Locations of the components: their means where these exist, with nu > 1.
    scale_matrices_ : ndarray
        Scale matrices, of shape (n_components, n_features, n_features) for 'full', (n_features,
        n_features) for 'tied', (n_components, n_features) for 'diag' (their diagonals) and
        (n_components,) for 'spherical' (multiples of the identity). They are in squared units:
        the covariance of a component is ``nu / (nu - 2)`` times its scale matrix where
        nu > 2; with fewer degrees of freedom it has none.
    degrees_of_freedom_ : ndarray of shape (n_components,)
        Degrees of freedom nu.
    background_weight_ : float
        Weight of the background, which `weights_` leave for it; 0 where there is none.
    background_bounds_ : ndarray of shape (2, n_features) or None
        The least and the largest corner of the box in which the background is uniform.
    converged_ : bool
        Whether the best start reached `tol`.
    n_iter_ : int
        EM steps of the best start, after the flat start.
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
    SparseGaussianMixture : Gaussian components, and outliers by sparse responsibilities.
    scipy.stats.multivariate_t : One such distribution; its ``shape`` is a scale matrix.

    Notes
    -----
    Steps are those of EM with latent weights of any mean (PX-EM [5]_), which takes fewer of
    them than plain EM, and degrees of freedom maximize a bound on the log-likelihood that
    is closer than that of ECM [6]_ and like that rises in every step [7]_. With
    ``reg_covar=0`` `lower_bound_` never falls.

    A component leaves, with weight 0 and its last parameters, by the same rule as in
    :class:`SparseGaussianMixture`. Fits are bit-identical for every number of threads.

    References
    ----------
    .. [1] Peel and McLachlan, "Robust mixture modelling using the t distribution", Statistics
       and Computing 10, 2000; McLachlan and Peel, "Finite mixture models", 2000, chapter 7.
    .. [2] Lange, Little and Taylor, "Robust statistical modeling using the t distribution",
       Journal of the American Statistical Association 84, 1989.
    .. [3] Sklaviadis et al., "Fenchel-Young variational learning", section 3.3.
    .. [4] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", section 2.
    .. [5] Liu, Rubin and Wu, "Parameter expansion to accelerate EM: the PX-EM algorithm",
       Biometrika 85, 1998.
    .. [6] Liu and Rubin, "ML estimation of the t distribution using EM and its extensions, ECM
       and ECME", Statistica Sinica 5, 1995.
    .. [7] Hasannasab, Hertrich, Laus and Steidl, "Alternatives to the EM algorithm for ML
       estimation of location, scatter matrix, and degree of freedom of the Student t
       distribution", Numerical Algorithms 87, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import StudentTMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, 200), rng.normal(10, 1, 200), [30, 60, -80]])
    >>> mixture = StudentTMixture(2, degrees_of_freedom=4, init_params="random_from_data",
    ...     n_init=5, random_state=0).fit(X[:, np.newaxis])
    >>> np.sort(mixture.means_.ravel()).round()
    array([ 0., 10.])
    """

    scale_matrices_: Array
    degrees_of_freedom_: Array

    _family_class = StudentT
    _parameter_constraints = BaseEllipticalMixture._parameter_constraints | {
        "degrees_of_freedom": [Real, "array-like", StrOptions({"estimated", "tied"})],
        "scale_matrices_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        degrees_of_freedom: ArrayLike = "estimated",
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
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
        scale_matrices_init: ArrayLike | None = None,
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
        self.degrees_of_freedom = degrees_of_freedom
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
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
        self.scale_matrices_init = scale_matrices_init
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
        means: Any,
        scale_matrices: Any,
        degrees_of_freedom: Any,
        *,
        background_weight: float = 0.0,
        background_bounds: Any = None,
        **params: Any,
    ) -> Self:
        """Build a usable mixture without a fit.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Mixture weights; they sum to one, together with `background_weight`.
        means : array-like of shape (n_components, n_features)
            Locations of the components.
        scale_matrices : array-like
            Scale matrices, of the shape that `covariance_type` asks for.
        degrees_of_freedom : float or array-like of shape (n_components,)
            Degrees of freedom, which then are known ones.
        background_weight : float, default=0.0
            Weight of a background; 0 is none.
        background_bounds : array-like of shape (2, n_features), default=None
            The least and the largest corner of the background's box.
        **params : dict
            Other constructor parameters; `n_components` may be left out.

        Returns
        -------
        mixture : StudentTMixture
            As if it had been fitted.

        Raises
        ------
        ValueError
            If shapes do not agree, a scale matrix is not positive definite or degrees of
            freedom are no numbers in their range.

        Examples
        --------
        >>> from skvmf import StudentTMixture
        >>> mixture = StudentTMixture.from_parameters(
        ...     [0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], 3.0, covariance_type="spherical"
        ... )
        >>> mixture.predict([[1.0], [3.0]])
        array([0, 1])
        """
        checked_array(degrees_of_freedom, "degrees_of_freedom")
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

    def _family(self, n_features: int, scale: float = 1.0) -> StudentT:
        tails = self.degrees_of_freedom
        return StudentT(
            n_features,
            self.covariance_type,
            float(self.reg_covar),
            scale=scale,
            degrees_of_freedom=INITIAL_DOF if isinstance(tails, str) else self._known_tails(),
            estimated=isinstance(tails, str),
            tied=isinstance(tails, str) and tails == "tied",
        )

    def _known_tails(self) -> Array:
        known = checked_array(self.degrees_of_freedom, "degrees_of_freedom").astype(np.float64)
        low, high = KNOWN_RANGE
        within = (known >= low) & (known <= high)
        if known.shape not in [(), (self.n_components,)] or not within.all():
            raise ValueError(
                f"degrees_of_freedom should be 'estimated', 'tied', a number from {low:g} to "
                f"{high:g} or one for each of the {self.n_components} components, got "
                f"{self.degrees_of_freedom!r}."
            )
        checked: Array = known
        return checked

    def _constraint(self) -> KnownTails:
        return KnownTails()

    def _first_covariances(self, d: int) -> Array | None:
        """Return `scale_matrices_init`."""
        if self.scale_matrices_init is None:
            return None
        name = "scale_matrices_init"
        matrices = self._checked_matrices(self.scale_matrices_init, d, name)
        origin = np.zeros((self.n_components, d))
        refuse_singular(self._family(d).components(origin, matrices), name)
        return matrices

    def _attributes(self, fitted: FittedMixture, result: EMResult | None = None) -> dict[str, Any]:
        components = fitted.params.components
        return super()._attributes(fitted, result) | {
            "scale_matrices_": components.covariances,
            "degrees_of_freedom_": components.degrees_of_freedom,
        }
