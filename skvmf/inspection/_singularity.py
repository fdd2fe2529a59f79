"""Distances of a mixture to its singularities."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ._components import read_components


def singularity_distances(mixture: Any) -> Bunch:
    """Return the distances of a mixture to the overlap and to the loss of components.

    A mixture is singular where two components coincide (overlap) or one has no weight
    (elimination) [1]_: there its parameters are not identifiable, and its Fisher information is
    singular. Both distances are Hellinger distances, from 0 at the singularity to 1.

    Parameters
    ----------
    mixture : estimator or tuple
        A fitted mixture of Gaussian or von Mises-Fisher components, or its parameters: weights
        (K,), means (K,) or (K, d) and, unless they are the identity, covariances (K, d, d) or
        for d = 1 variances (K,).

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        overlap : ndarray of shape (n_components, n_components)
            Distance between each two components as distributions.
        elimination : ndarray of shape (n_components,)
            Distance of the weights to the nearest weights without the component, which are the
            other weights scaled up: sqrt(1 - sqrt(1 - weight)).
        closest : tuple of int or None
            The two components that overlap most; None where there is one.

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
    >>> distances.overlap.round(3)
    array([[0.   , 0.035, 0.978],
           [0.035, 0.   , 0.975],
           [0.978, 0.975, 0.   ]])
    >>> distances.elimination.round(3)
    array([0.541, 0.541, 0.   ])
    """
    components = read_components(mixture)
    weights = np.minimum(components.weights, 1)
    K = len(weights)
    overlap = np.zeros((K, K))
    pairs = [(i, j) for i in range(K) for j in range(i + 1, K)]
    for i, j in pairs:
        distance = np.sqrt(max(-np.expm1(components.log_affinity(i, j)), 0.0))
        overlap[i, j] = overlap[j, i] = distance
    return Bunch(
        overlap=overlap,
        elimination=np.sqrt(weights / (1 + np.sqrt(1 - weights))),
        closest=min(pairs, key=lambda pair: overlap[pair], default=None),
    )
