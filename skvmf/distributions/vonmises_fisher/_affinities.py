"""Bhattacharyya coefficients of von Mises-Fisher distributions."""

import numpy as np

from ..._typing import Array
from ._maps import log_partition_deficit


def log_affinities(directions: Array, concentrations: Array) -> Array:
    """Return the logarithms (K, K) of the Bhattacharyya coefficients of all pairs.

    Phi(R) - (Phi(kappa_i) + Phi(kappa_j)) / 2 for half the length R of the sum of the natural
    parameters, in a form without cancellation (derived here).
    """
    kappa, dim = concentrations, directions.shape[1]
    gaps = [((directions - direction) ** 2).sum(axis=1) for direction in directions]
    sums = kappa + kappa[:, np.newaxis]
    squared_gaps = kappa * kappa[:, np.newaxis] * np.array(gaps)
    R = np.sqrt(np.maximum(sums**2 - squared_gaps, 0)) / 2
    peaks = log_partition_deficit(kappa, dim)
    deficits = (peaks + peaks[:, np.newaxis]) / 2 - log_partition_deficit(R, dim)
    totals = np.maximum(2 * R + sums, np.finfo(np.float64).tiny)
    return np.minimum(deficits - 0.5 * squared_gaps / totals, 0)
