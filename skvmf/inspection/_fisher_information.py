"""The Fisher information of a row about the parameters of a mixture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.linalg import block_diag
from scipy.special import logsumexp
from sklearn.utils import Bunch, gen_batches

from .._engine.em.mixture import Point
from .._engine.em.predictions import sample
from .._engine.rows.parallel import limited_blas
from .._typing import Array
from ..distributions._arguments import checked_generator
from ._components import (
    AnyMixture,
    Parameters,
    is_directional,
    log_joint,
    means_of,
    read_mixture,
    scores,
    select,
)

# Nodes of the quadrature: components that need more are so unlike that a sample does.
_MAX_NODES = 2**18
# Rows whose scores are in memory at a time.
_BLOCK_SIZE = 4096
# Standard deviations beyond the outer means, where densities are below 1e-31 of their peaks.
_MAX_DEVIATIONS = 12


@limited_blas()
def fisher_information(
    mixture: AnyMixture | Parameters,
    *,
    coordinates: Literal["absolute", "relative"] = "absolute",
    parameters: Sequence[Literal["weights", "means"]] = ("weights", "means"),
    ordering_feature: int | None = None,
    n_samples: int = 100_000,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Return the Fisher information matrix of a mixture, with its eigenvalues.

    Its entries are E[s_i s_j] for the scores s = d log p / d theta, with the expectation under the
    mixture itself. If components coincide, the matrix is singular in any coordinates. Relative ones
    change its eigenvalues, but not its rank, its determinant or the lengths that it measures (Esser
    and Nielsen, "On the influence of enforcing model identifiability", section 5.1).

    Parameters
    ----------
    mixture : estimator or tuple
        A fitted mixture of Gaussian or von Mises-Fisher components, or its parameters: weights
        (K,), means (K,) or (K, d) and, unless they are the identity, covariances (K, d, d) or for d
        = 1 variances (K,).
    coordinates : {'absolute', 'relative'}, default='absolute'
        The means themselves, or the first and the gaps from each to the next.
    parameters : tuple of str, default=("weights", "means")
        The unknown parameters: 'weights', 'means' (mean parameters of von Mises-Fisher components)
        or both.
    ordering_feature : int, default=None
        The feature that orders the components in relative coordinates; None is that of the
        estimator, or 0.
    n_samples : int, default=100_000
        Size of the sample for a Monte Carlo average.
    random_state : int, RandomState instance or None, default=None
        Seed of that sample.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        The entries are

        information : ndarray of shape (n_parameters, n_parameters)
            The parameters are the weights of all components but the last, or of all if there is a
            background, then the means by components, or the first mean and the gaps. Components
            without weight are left out.
        eigenvalues : ndarray of shape (n_parameters,)
            In ascending order.
        method : str
            'quadrature' for one feature, accurate to about 12 digits; otherwise 'monte carlo'.

    Raises
    ------
    ValueError
        If the mixture has other components, or another argument cannot be used.

    Examples
    --------
    >>> from skvmf.inspection import fisher_information
    >>> overlap = [0.5, 0.5], [0.0, 0.0]
    >>> fisher_information(overlap).eigenvalues.round(10) + 0.0
    array([0. , 0. , 0.5])
    """
    is_sequence = isinstance(parameters, tuple | list) and len(parameters) > 0
    if not is_sequence or not {"weights", "means"}.issuperset(parameters):
        raise ValueError(f"parameters should hold 'weights', 'means' or both, got {parameters!r}.")
    if n_samples < 1:
        raise ValueError(f"n_samples should be at least 1, got {n_samples}.")
    if hasattr(mixture, "degrees_of_freedom_"):
        raise ValueError("mixture should have Gaussian or von Mises-Fisher components.")
    fitted = read_mixture(mixture)
    active = np.flatnonzero(fitted.weights)
    if len(active) == 0:
        raise ValueError("No component has weight: the background has every row.")
    fitted = select(fitted, active)
    K, d = means_of(fitted).shape
    jacobian: Array = np.eye(K * d)
    if coordinates == "relative":
        feature = _ordering_feature(mixture, ordering_feature, d)
        fitted = select(fitted, np.argsort(means_of(fitted)[:, feature], kind="stable"))
        # Means are sums of gaps.
        jacobian = np.kron(np.tri(K), np.eye(d))
    elif coordinates != "absolute":
        raise ValueError(f"coordinates should be 'absolute' or 'relative', got {coordinates!r}.")

    quadrature = _quadrature(fitted)
    if quadrature is None:
        method = "monte carlo"
        nodes, _ = sample(fitted, n_samples, checked_generator(random_state))
        masses = np.full(n_samples, 1 / n_samples)
    else:
        method = "quadrature"
        nodes, masses = quadrature
    n_weights = len(fitted.params.weights) - 1
    information = np.zeros((n_weights + K * d, n_weights + K * d))
    for block in gen_batches(len(nodes), _BLOCK_SIZE):
        s = scores(fitted, nodes[block])
        information += (s * masses[block, np.newaxis]).T @ s

    J = block_diag(np.eye(n_weights), jacobian)
    information = J.T @ information @ J
    unknown = np.repeat(["weights" in parameters, "means" in parameters], [n_weights, K * d])
    information = information[np.ix_(unknown, unknown)]
    eigenvalues = np.linalg.eigvalsh(information)
    return Bunch(information=information, eigenvalues=eigenvalues, method=method)


def _ordering_feature(mixture: object, given: int | None, n_features: int) -> int:
    """Return the feature that is given, else that of the mixture, else the first."""
    feature = given
    if feature is None:
        feature = getattr(mixture, "ordering_feature", 0)
    if not 0 <= feature < n_features:
        raise ValueError(
            f"ordering_feature={feature} is out of range: there are {n_features} features, "
            "counted from 0."
        )
    return int(feature)


def _quadrature(fitted: Point) -> tuple[Array, Array] | None:
    """Return nodes (n, 1) of the trapezoidal rule and their masses, None if there is none.

    The step resolves the narrowest component and the posterior between the two furthest apart,
    whose poles lie pi over the slope of its logit away from the real line (derived here).
    """
    if is_directional(fitted) or fitted.family.dim > 1:
        return None
    means = fitted.params.components.means[:, 0]
    scales = np.sqrt(fitted.params.components.covariances[:, 0, 0])
    lowest = (means - _MAX_DEVIATIONS * scales).min()
    highest = (means + _MAX_DEVIATIONS * scales).max()
    width = scales.min()
    step = width * min(0.1, 0.5 * width / max(np.ptp(means), width))
    # Towards a background, the edge of a component is sharper than its middle.
    step /= 1 + len(fitted.background)
    n_nodes = np.ceil((highest - lowest) / step) + 1
    if n_nodes > _MAX_NODES:
        return None

    nodes, step = np.linspace(lowest, highest, int(n_nodes), retstep=True)
    nodes = nodes[:, np.newaxis]
    log_parts = log_joint(fitted, nodes)[:, : len(means)]
    masses = step * np.exp(logsumexp(log_parts, axis=1))
    if fitted.background.bounds is None:
        return nodes, masses

    # The box of a background has jumps, which the trapezoidal rule would see in one of its steps.
    low, high = fitted.background.bounds[:, 0]
    edges = np.unique(np.clip([low, lowest, highest, high], low, high))
    for a, b in itertools.pairwise(edges):
        # Away from all components, the scores are constant: one interval does.
        length = b - a
        if a >= lowest and b <= highest:
            length = 8 * step
        nodes_in_box, shares = _box_nodes(a, b, length)
        weight = fitted.params.background_weight * (b - a) / (high - low)
        nodes = np.vstack([nodes, nodes_in_box[:, np.newaxis]])
        masses = np.append(masses, weight * shares)
    return nodes, masses


def _box_nodes(low: float, high: float, length: float) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and masses of the mean over an interval, in parts of `length`."""
    edges = np.linspace(low, high, int(np.ceil((high - low) / length)) + 1)
    # 16 nodes in each part: of a part of eight steps, two per step.
    points, masses = np.polynomial.legendre.leggauss(16)
    halves = np.diff(edges)[:, np.newaxis] / 2
    nodes = (edges[:-1, np.newaxis] + halves * (points + 1)).ravel()
    return nodes, (halves * masses).ravel() / (high - low)
