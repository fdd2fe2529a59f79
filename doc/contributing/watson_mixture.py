"""The estimator that "Add an estimator" builds on the family of watson.py."""

import numpy as np
from watson import Watson, WatsonComponents, draw

from skvmf.mixture._base import BaseMixture


class WatsonMixture(BaseMixture):
    """Mixture of Watson distributions: clusters of axes, where x and -x are the same.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    n_init : int, default=1
        Number of starts; the largest lower bound wins.
    init_params : str or array-like, default='kmeans'
        Kind of start, as in `VonMisesFisherMixture`.
    means_init : array-like of shape (n_components, n_features), default=None
        First axes, of any positive length.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most this.
    max_iter : int, default=100
        Largest number of EM steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.

    Attributes
    ----------
    axes_ : ndarray of shape (n_components, n_features)
        Unit vectors, of either sign.
    concentrations_ : ndarray of shape (n_components,)
        Concentrations kappa, not negative.
    """

    _unit_rows = True  # the engine scales rows to unit length
    _family_class = Watson
    _components_class = WatsonComponents
    _parameter_attributes = BaseMixture._parameter_attributes | {"axes_", "concentrations_"}

    # What other mixtures offer as parameters, and this one does not.
    entmax_alpha = temperature = weight_concentration_prior = 1.0
    weight_floor = weights_init = init_size = None
    flat_start, warm_start, verbose = True, False, 0

    def __init__(
        self,
        n_components=1,
        *,
        n_init=1,
        init_params="kmeans",
        means_init=None,
        tol=1e-3,
        max_iter=100,
        random_state=None,
    ):
        self.n_components = n_components
        self.n_init = n_init
        self.init_params = init_params
        self.means_init = means_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _make_family(self, rows):
        return Watson(rows.n_features)

    def _attributes(self, fitted):
        components = fitted.params.components
        own = {"axes_": components.axes, "concentrations_": components.concentrations}
        return super()._attributes(fitted) | own

    def _n_parameters(self):
        return self.n_active_components_ * (self.n_features_in_ + 1) - 1

    def _draw(self, counts, rng):
        parts = zip(self.axes_, self.concentrations_, counts, strict=True)
        return np.vstack([draw(axis, kappa, size, rng) for axis, kappa, size in parts])

    def _check_values(self, rows):
        if rows.n_features < 2:
            raise ValueError(f"n_features = {rows.n_features}: axes need at least two features.")

    def _checked_means_init(self, rows):
        axes = super()._checked_means_init(rows)
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError("means_init contains a zero row, which has no axis.")
        return axes / lengths
