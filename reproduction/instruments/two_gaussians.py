"""How gradient ascent moves the means of two unit Gaussians on the line (Esser and Nielsen)."""

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import Bunch

REACH = 12  # standard deviations, beyond which densities are below 1e-31
BLOCK = 2**20  # entries of an array of nodes by points
RELATIVE = np.array([[1.0, 0.0], [1.0, 1.0]])  # d (mu_1, mu_2) / d (mu_1, Delta)
JACOBIANS = {"absolute": np.eye(2), "relative": RELATIVE}


def expected_gradient(means, truth, *, weight=0.5, coordinates="absolute"):
    """Return the expected gradient of the log-density of v N(mu_1, 1) + (1 - v) N(mu_2, 1).

    In relative coordinates (v, mu_1, Delta = mu_2 - mu_1), the velocity of (mu_1, mu_2) is the
    absolute gradient times [[1, 1], [1, 2]]. Integrals by the trapezoidal rule are accurate to
    about 12 digits. The paper's polynomials (appendix D) still contain x, over which the
    expectation is taken.

    Parameters
    ----------
    means : array-like of shape (..., 2)
        The points (mu_1, mu_2), in either coordinates.
    truth : tuple
        The mixture that rows are of: weights (K,), means (K,) and, unless they are one,
        variances (K,).

    Returns
    -------
    bunch : Bunch
        The `gradient` (..., 2) with respect to (mu_1, mu_2) or (mu_1, Delta), the `velocity`
        (..., 2) of (mu_1, mu_2), and the `weight_gradient` (...).
    """
    means = np.asarray(means, dtype=np.float64)
    gradients = _gradients(means.reshape(-1, 2), truth, weight)
    jacobian = JACOBIANS[coordinates]
    pulled = gradients[:, 1:] @ jacobian
    return Bunch(
        gradient=pulled.reshape(means.shape),
        velocity=(pulled @ jacobian.T).reshape(means.shape),
        weight_gradient=gradients[:, 0].reshape(means.shape[:-1]),
    )


def _gradients(points, truth, weight):
    """Return the expected gradients (n, 3) with respect to v, mu_1 and mu_2 at points (n, 2)."""
    nodes, masses = _nodes(*truth, widest=np.abs(points[:, 0] - points[:, 1]).max())
    gradients, size = [], BLOCK // len(nodes)
    for start in range(0, len(points), size):
        first, second = (column[:, np.newaxis] for column in points[start : start + size].T)
        log_ratio = 0.5 * ((nodes - second) ** 2 - (nodes - first) ** 2)
        first_resp = expit(log_ratio + logit(weight))
        second_resp = expit(-log_ratio - logit(weight))
        gradients.append(
            [
                (first_resp / weight - second_resp / (1 - weight)) @ masses,
                (first_resp * (nodes - first)) @ masses,
                (second_resp * (nodes - second)) @ masses,
            ]
        )
    return np.concatenate(gradients, axis=1).T


def _nodes(weights, means, variances=None, *, widest):
    """Return nodes and masses of the trapezoidal rule over each component of the truth.

    Responsibilities change over 1 / gap, with poles pi / gap off the real line, so that the error
    is exp(-2 pi^2 / (gap step)).
    """
    nodes, masses = [], []
    variances = np.ones(len(means)) if variances is None else variances
    for weight, mean, scale in zip(weights, means, np.sqrt(variances), strict=True):
        step = min(0.1, 0.5 / max(widest, 1)) / max(scale, 1)
        standard, step = np.linspace(-REACH, REACH, int(2 * REACH / step) + 2, retstep=True)
        nodes.append(mean + scale * standard)
        masses.append(weight * step * np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi))
    return np.concatenate(nodes), np.concatenate(masses)
