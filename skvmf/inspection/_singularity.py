"""Distances of a mixture from singular ones."""

from __future__ import annotations

import itertools

import numpy as np
from sklearn.utils import Bunch

from ._components import Mixture, Parameters, read_components


def singularity_distances(mixture: Mixture | Parameters) -> Bunch:
    """Return the distances of a mixture from the overlap and from the loss of components.

    A mixture is singular if two components coincide (overlap) or one has no weight (elimination)
    [1]_. Its parameters are then not identifiable, and its Fisher information is singular. Both
    distances are Hellinger distances, from 0 at the singularity to 1.

    Parameters
    ----------
    mixture : estimator or tuple
        A fitted mixture, or its parameters, as for :func:`fisher_information`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        The entries are

        overlap : ndarray of shape (n_components, n_components)
            Distance between each two components as distributions.
        elimination : ndarray of shape (n_components,)
            Distance of the weights from the nearest ones without the component, which are the other
            weights scaled up: sqrt(1 - sqrt(1 - weight)).
        closest : tuple of int or None
            The two components that overlap most; None for one component.

    Raises
    ------
    ValueError
        If the mixture has other components.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", section 2.

    Examples
    --------
    >>> from skvmf.inspection import singularity_distances
    >>> distances = singularity_distances(([0.5, 0.5, 0.0], [0.0, 0.1, 5.0]))
    >>> distances.closest
    (0, 1)
    >>> distances.elimination.round(3)
    array([0.541, 0.541, 0.   ])
    """
    components = read_components(mixture)
    weights = np.minimum(components.weights, 1)
    overlap = np.sqrt(np.maximum(-np.expm1(components.log_affinities()), 0.0))
    np.fill_diagonal(overlap, 0.0)
    pairs = itertools.combinations(range(len(weights)), 2)
    return Bunch(
        overlap=overlap,
        elimination=np.sqrt(weights / (1 + np.sqrt(1 - weights))),
        closest=min(pairs, key=lambda pair: overlap[pair], default=None),
    )
