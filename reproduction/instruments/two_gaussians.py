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


def park_ozeki_coordinates(means, *, weight=0.5, coordinates="absolute"):
    """Return (v, u, w), the coordinates of Park and Ozeki for the dynamics near the overlap.

    In absolute coordinates u = mu_1 - mu_2, in relative ones u = Delta = mu_2 - mu_1; w is the
    common mean v mu_1 + (1 - v) mu_2 in both. Gradient ascent in the means moves (v, u, w) with
    velocity J g, for the Jacobian J and the gradient g, or J J' times the gradient with respect to
    (v, u, w).

    Returns
    -------
    bunch : Bunch
        The `position` (v, u, w) and the `jacobian` (3, 3) with respect to (v, mu_1, mu_2), or to
        (v, mu_1, Delta). In relative coordinates its last row is (-Delta, 1, 1 - v); the paper
        prints another.
    """
    first, second = means
    u = first - second if coordinates == "absolute" else second - first
    by_means = [[1, -1], [weight, 1 - weight]] @ JACOBIANS[coordinates]
    if coordinates == "relative":
        by_means[0] *= -1
    return Bunch(
        position=np.array([weight, u, weight * first + (1 - weight) * second]),
        jacobian=np.vstack([[1, 0, 0], np.column_stack([[0, first - second], by_means])]),
    )


def ascend(x, means, coordinates, *, rate, tol, max_iter=20_000):
    """Return the path (n_iter + 1, 2) of two means by gradient ascent, for rows x.

    Of the mean log-likelihood for equal weights, until a step changes it by at most `tol`. In
    relative coordinates the root of the gap moves, which needs no bounds and cannot leave 0. A
    step that lowers the likelihood is halved.
    """
    path, value = [np.array(means, dtype=np.float64)], mean_log_likelihood(x, means)
    for _ in range(max_iter):
        first, second = path[-1]
        root = np.sqrt(second - first) if coordinates == "relative" else None
        resp = expit(0.5 * ((x - second) ** 2 - (x - first) ** 2))
        gradient = np.array([np.mean(resp * (x - first)), np.mean((1 - resp) * (x - second))])
        step, before = rate, value
        while True:
            if root is None:
                moved = path[-1] + step * gradient
            else:
                low = first + step * gradient.sum()
                moved = np.array([low, low + (root + step * 2 * root * gradient[1]) ** 2])
            value = mean_log_likelihood(x, moved)
            if value >= before:
                break
            step /= 2
        path.append(moved)
        if value - before <= tol:
            break
    return np.array(path)


def mean_log_likelihood(x, means):
    """Return the mean log-likelihood of rows for equal weights."""
    squares = -0.5 * (x[:, np.newaxis] - np.asarray(means)) ** 2
    return np.logaddexp(*squares.T).mean() - np.log(2 * np.sqrt(2 * np.pi))
