"""SparseGaussianMixture: a Gaussian mixture that empties what the data does not need."""

from numbers import Real
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from ._gaussian import BaseGaussianMixture


class SparseGaussianMixture(BaseGaussianMixture):
    """Gaussian mixture of dense rows whose weights or responsibilities may be sparse.

    Does what :class:`~sklearn.mixture.GaussianMixture` does, takes sample weights and
    float32, and stays exact for clusters far from the origin. The prior on the weights is a
    modified Dirichlet: a parameter alpha takes 1 - alpha rows from each component and gives
    them to those that have more, so that -alpha is about the number of rows below which a
    component is not worth keeping. The default of 0 only removes what is almost empty.
    ``entmax_alpha=2`` gives exact zeros in the responsibilities instead, so that outliers do
    not bend every component.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, an upper bound under a prior below 1.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Shape of the covariances, as in scikit-learn.
    reg_covar : float, default=1e-6
        Added to the diagonal of the covariances.
    entmax_alpha : float, default=1.0
        1 divides each row among components by softmax, as in standard EM; above 1 by
        alpha-entmax, which gives exact zeros [1]_.
    temperature : float, default=1.0
        Divides the log-densities: 0 is hard (classification) EM. With ``entmax_alpha=1``
        responsibilities are proportional to (pi_k p_k) ** (1 / temperature). 1 suits any
        number of features; far above, all rows share alike, of which a warning tells.
    weight_concentration_prior : float or array-like of shape (n_components,), default=None
        Parameter of the modified Dirichlet prior on the weights, any real number [2]_: 1 is
        flat, below 1 and above all below 0 it empties small components. None is 0, or 1 where
        ``entmax_alpha`` is above 1.
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
        that helps; it finds the optimum where the others find one nearby. 'kmeans'
        is k-means, 'k-means++' its seeds alone, both on a sample, 'random' a random partition
        of the rows, and 'random_from_data' distinct random rows with equal weights and the
        covariance of the data. An array is a first partition: labels (n_samples,) or
        responsibilities (n_samples, n_components).
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn by weight.
        None is 100 for each component, and at least 10,000; with a background twice as many.
    weights_init : array-like of shape (n_components,), default=None
        First weights.
    means_init : array-like of shape (n_components, n_features), default=None
        First means; the first covariances are that of all rows.
    precisions_init : array-like, default=None
        First precisions, of the shape that `covariance_type` asks for.
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
        Component means.
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
    VonMisesFisherMixture : For rows whose direction alone matters.
    sklearn.mixture.BayesianGaussianMixture : Prunes by a prior on the covariances too.

    Notes
    -----
    Pruning has one rule: a component leaves, with weight 0 and its last parameters, when its
    covariance would be singular, when its weight rests on the floor for two steps while it
    has fewer than ``max(n_features + 1, 1 - weight_concentration_prior)`` rows, or when it
    has no rows left for the second time (the first time it is moved to the least likely row).

    Fits are bit-identical for every number of threads.

    References
    ----------
    .. [1] Sklaviadis et al., "Fenchel-Young variational learning", sections 3.3 and 4.1.
    .. [2] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce
       stronger sparsity", sections 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))])
    >>> mixture = SparseGaussianMixture(
    ...     n_components=6, weight_concentration_prior=-5, random_state=0
    ... ).fit(X)
    >>> mixture.n_active_components_
    2
    """

    _parameter_constraints = BaseGaussianMixture._parameter_constraints | {
        "weight_concentration_prior": [Real, "array-like", None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        entmax_alpha: float = 1.0,
        temperature: float = 1.0,
        weight_concentration_prior: ArrayLike | None = None,
        weight_floor: float | None = None,
        flat_start: bool = True,
        background: bool = False,
        n_init: int = 1,
        init_params: ArrayLike = "merging",
        init_size: int | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
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
        self.precisions_init = precisions_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.learning_decay = learning_decay
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.verbose_interval = verbose_interval
