"""The estimator that "Add an estimator" builds on the family of watson.py."""

import numpy as np
from watson import Watson

from skvmf.families import BaseMixture


class WatsonMixture(BaseMixture):
    """Mixture of Watson distributions: clusters of axes, where x and -x are the same.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    n_init : int, default=1
        Number of starts; the largest lower bound wins.
    init_params : str or array-like, default='merging'
        Kind of start, as in `VonMisesFisherMixture`.
    means_init : array-like of shape (n_components, n_features), default=None
        First axes, of any positive length.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most this.
    max_iter : int, default=100
        Largest number of EM steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the last fit.

    Attributes
    ----------
    axes_ : ndarray of shape (n_components, n_features)
        Unit vectors, of either sign.
    concentrations_ : ndarray of shape (n_components,)
        Concentrations kappa, not negative.
    """

    axes_: np.ndarray
    concentrations_: np.ndarray

    _family_class = Watson

    # What other mixtures offer as parameters, and this one does not.
    entmax_alpha = temperature = weight_concentration_prior = 1.0
    weight_floor = weights_init = init_size = None
    flat_start, verbose, verbose_interval = True, False, 1

    def __init__(
        self,
        n_components=1,
        *,
        n_init=1,
        init_params="merging",
        means_init=None,
        tol=1e-3,
        max_iter=100,
        random_state=None,
        warm_start=False,
    ):
        self.n_components = n_components
        self.n_init = n_init
        self.init_params = init_params
        self.means_init = means_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start

    def _family(self, n_features):
        return Watson(n_features)

    def _family_on(self, rows, weight_seen):
        if rows.n_features < 2:
            raise ValueError(f"n_features = {rows.n_features}: axes need at least two features.")
        return self._family(rows.n_features)

    def _first_means(self, means):
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError("means_init contains a zero row, which has no axis.")
        return means / lengths

    def _attributes(self, fitted, result=None):
        components = fitted.params.components
        axes = {"axes_": components.axes, "concentrations_": components.concentrations}
        return super()._attributes(fitted, result) | axes
