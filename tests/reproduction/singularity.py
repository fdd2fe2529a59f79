"""Distances of a Gaussian mixture from singular ones (Esser and Nielsen, section 2)."""

import numpy as np


def overlap(means, covariances):
    """Return the Hellinger distance (K, K) between each two components, (K, d) and (K, d, d).

    It is 0 where components coincide, so that their weights are not identified, and 1 far away.
    """
    between = 0.5 * (covariances[:, None] + covariances)
    gaps = means[:, None] - means
    log_dets = np.linalg.slogdet(covariances)[1]
    log_affinities = 0.25 * (log_dets[:, None] + log_dets) - 0.5 * np.linalg.slogdet(between)[1]
    solved = np.linalg.solve(between, gaps[..., None])[..., 0]
    log_affinities -= 0.125 * np.sum(gaps * solved, axis=-1)
    return np.sqrt(np.maximum(-np.expm1(log_affinities), 0))


def elimination(weights):
    """Return the Hellinger distance (K,) of weights from the nearest ones without a component.

    Those are the other weights scaled up: the distance is sqrt(1 - sqrt(1 - weight)).
    """
    return np.sqrt(weights / (1 + np.sqrt(1 - weights)))
