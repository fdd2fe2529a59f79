"""The components of a mixture, read from public attributes or from given parameters."""

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._engine.model import NO_BACKGROUND, Background
from .._typing import Array
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._maps import log_affinities

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

    from ..mixture import VonMisesFisherMixture
    from ..mixture._gaussian import BaseEllipticalMixture

Mixture: TypeAlias = "VonMisesFisherMixture | BaseEllipticalMixture | GaussianMixture"
Parameters: TypeAlias = tuple[ArrayLike, ...] | list[ArrayLike]


class _Mixture:
    """Attributes and methods of both kinds of components."""

    weights: Array
    background: Background
    background_weight: float

    @property
    def all_weights(self) -> Array:
        """The weights of the components, followed by that of a background."""
        return np.append(self.weights, np.full(len(self.background), self.background_weight))

    def _shared(self, active: Array) -> dict[str, Any]:
        """Return weights of some components and the background that sum to one."""
        total = float(self.weights[active].sum() + self.background_weight) or 1.0  # of none
        return {
            "weights": self.weights[active] / total,
            "background_weight": self.background_weight / total,
        }


@dataclass(frozen=True)
class GaussianComponents(_Mixture):
    """Weights (K,), means (K, d) and full covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array
    background: Background = NO_BACKGROUND
    background_weight: float = 0.0

    @cached_property
    def precisions(self) -> Array:
        """P_k (K, d, d), with d log p_k / d mean = P_k (x - mean)."""
        return np.linalg.inv(self.covariances)

    def log_densities(self, X: Array) -> Array:
        """Return the log-density (n, K) of each component at rows X."""
        n, d = X.shape
        log_densities = np.empty((n, len(self.means)))
        for k, mean in enumerate(self.means):
            lower = np.linalg.cholesky(self.covariances[k])
            white = np.linalg.solve(lower, (X - mean).T)
            log_det = np.log(np.diagonal(lower)).sum()
            with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
                log_densities[:, k] = -0.5 * (white**2).sum(axis=0) - log_det
        return log_densities - 0.5 * d * np.log(2 * np.pi)

    def draw(self, k: int, n: int, rng: np.random.RandomState) -> Array:
        """Return n rows of component k."""
        lower = np.linalg.cholesky(self.covariances[k])
        return self.means[k] + rng.standard_normal((n, self.means.shape[1])) @ lower.T

    def log_affinities(self) -> Array:
        """Return the logarithms (K, K) of the Bhattacharyya coefficients of all pairs."""
        K = len(self.weights)
        affinities = np.zeros((K, K))
        for i, j in itertools.combinations(range(K), 2):
            gap = self.means[i] - self.means[j]
            pair = self.covariances[[i, j]]
            between = pair.mean(axis=0)
            log_dets = np.linalg.slogdet(pair)[1].mean() - np.linalg.slogdet(between)[1]
            affinity = 0.5 * log_dets - 0.125 * gap @ np.linalg.solve(between, gap)
            affinities[i, j] = affinities[j, i] = affinity
        return affinities

    def some(self, active: Array) -> "GaussianComponents":
        """Return some of the components, with weights that sum to one."""
        means, covariances = self.means[active], self.covariances[active]
        return replace(self, **self._shared(active), means=means, covariances=covariances)


@dataclass(frozen=True)
class DirectionalComponents(_Mixture):
    """Von Mises-Fisher components: weights (K,), directions (K, d), concentrations (K,)."""

    weights: Array
    directions: Array
    concentrations: Array
    background: Background = NO_BACKGROUND
    background_weight: float = 0.0

    @cached_property
    def means(self) -> Array:
        """Mean parameters (K, d)."""
        lengths = vmf.mean_resultant_length(self.concentrations, self.directions.shape[1])
        return self.directions * lengths[:, np.newaxis]

    @cached_property
    def precisions(self) -> Array:
        """P_k (K, d, d), with d log p_k / d mean = P_k (x - mean): inverse covariances."""
        K, d = self.directions.shape
        lengths = vmf.mean_resultant_length(self.concentrations, d)
        complements = vmf.mean_resultant_length(self.concentrations, d, complement=True)
        along, across = vmf.variance_eigenvalues(lengths, d, complement=complements)
        squares = self.directions[:, :, np.newaxis] * self.directions[:, np.newaxis, :]
        scale = np.reshape([1 / along - 1 / across, 1 / across], (2, K, 1, 1))
        return scale[0] * squares + scale[1] * np.eye(d)

    def log_densities(self, X: Array) -> Array:
        """Return the log-density (n, K) of each component at rows X."""
        parameters = zip(self.directions, self.concentrations, strict=True)
        return np.column_stack([vmf.logpdf(X, mu, kappa) for mu, kappa in parameters])

    def draw(self, k: int, n: int, rng: np.random.RandomState) -> Array:
        """Return n rows of component k."""
        return vmf.rvs(self.directions[k], self.concentrations[k], size=n, random_state=rng)

    def log_affinities(self) -> Array:
        """Return the logarithms (K, K) of the Bhattacharyya coefficients of all pairs."""
        return log_affinities(self.directions, self.concentrations)

    def some(self, active: Array) -> "DirectionalComponents":
        """Return some of the components, with weights that sum to one."""
        directions, concentrations = self.directions[active], self.concentrations[active]
        return replace(
            self, **self._shared(active), directions=directions, concentrations=concentrations
        )


Components = GaussianComponents | DirectionalComponents


def read_components(mixture: "Mixture | Parameters") -> Components:
    """Return the components of a fitted mixture, or of a tuple of parameters.

    The tuple holds weights (K,), means (K,) or (K, d) and, unless they are the identity,
    covariances (K, d, d) or, for one feature, variances (K,).
    """
    if isinstance(mixture, tuple | list):
        if len(mixture) not in (2, 3):
            raise ValueError(
                "Parameters should be weights, means and optionally covariances, got "
                f"{len(mixture)} entries."
            )
        return _from_parameters(*mixture)
    check_is_fitted(mixture)
    if hasattr(mixture, "concentrations_") and hasattr(mixture, "mean_directions_"):
        sphere = Background.on_sphere(mixture.mean_directions_.shape[1])
        return DirectionalComponents(
            mixture.weights_,
            mixture.mean_directions_,
            mixture.concentrations_,
            *_background(mixture, sphere),
        )
    if hasattr(mixture, "covariances_") and hasattr(mixture, "covariance_type"):
        return GaussianComponents(
            mixture.weights_,
            mixture.means_,
            full_covariances(mixture.covariances_, mixture.covariance_type, mixture.means_),
            *_background(mixture),
        )
    raise ValueError(
        f"{type(mixture).__name__} is not a mixture of Gaussian or von Mises-Fisher components: "
        "it has neither covariances_ nor concentrations_."
    )


def _background(mixture: object, sphere: Background = NO_BACKGROUND) -> tuple[Background, float]:
    """Return the background of a mixture, on the sphere or in a box, and its weight."""
    weight = float(getattr(mixture, "background_weight_", 0.0))
    if weight == 0:
        return NO_BACKGROUND, weight
    bounds = getattr(mixture, "background_bounds_", None)
    return sphere if bounds is None else Background.in_box(bounds), weight


def read_active_components(mixture: "Mixture | Parameters") -> Components:
    """Return the components of a mixture that have weight, or raise a ValueError."""
    components = read_components(mixture)
    active = components.weights > 0
    if not active.any():
        raise ValueError("No component has weight: the background has every row.")
    return components.some(active)


def box_edges(components: GaussianComponents) -> list[tuple[float, float]]:
    """Return the ends of a background's box, of one feature; nothing without a background."""
    bounds = components.background.bounds
    return [] if bounds is None else [(bounds[0, 0], bounds[1, 0])]


def box_nodes(low: float, high: float, length: float) -> tuple[Array, Array]:
    """Return nodes and masses of the mean over an interval: Gauss-Legendre on equal parts.

    `length` is the maximum length of a part.
    """
    edges = np.linspace(low, high, int(np.ceil((high - low) / length)) + 1)
    points, masses = np.polynomial.legendre.leggauss(16)
    halves = np.diff(edges)[:, np.newaxis] / 2
    nodes = (edges[:-1, np.newaxis] + halves * (points + 1)).ravel()
    return nodes, (halves * masses).ravel() / (high - low)


def full_covariances(covariances: Array, covariance_type: str, means: Array) -> Array:
    """Return covariances, or scale matrices, of any covariance type as matrices (K, d, d)."""
    K, d = means.shape
    if covariance_type == "full":
        return covariances
    if covariance_type == "tied":
        return np.tile(covariances, (K, 1, 1))
    diagonals: Array = np.reshape(covariances, (K, -1))[:, :, np.newaxis]
    return np.eye(d) * diagonals


def log_joint(components: Components, X: Array) -> Array:
    """Return log weights plus log-densities, (n, K), with a background in the last column."""
    last = np.tile(components.background.log_densities, (len(X), 1))
    log_joint: Array = np.hstack([components.log_densities(X), last])
    log_joint += np.log(components.all_weights)
    return log_joint


def responsibilities(components: Components, X: Array) -> Array:
    """Return the posterior probability of each component at rows X, (n, K), as `log_joint`."""
    scores = log_joint(components, X)
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


def scores(components: Components, X: Array) -> Array:
    """Return d log p / d theta at rows X, for all weights but the last and means.

    The last weight, that of a background if there is one, is one minus the others.
    """
    resp = responsibilities(components, X)
    ratios = resp / components.all_weights
    gaps = X[:, np.newaxis, :] - components.means
    own = resp[:, : len(components.means)]
    by_means = np.einsum("nk,kde,nke->nkd", own, components.precisions, gaps, optimize=True)
    return np.hstack([ratios[:, :-1] - ratios[:, -1:], by_means.reshape(len(X), -1)])


def _from_parameters(
    weights: ArrayLike, means: ArrayLike, covariances: ArrayLike | None = None
) -> GaussianComponents:
    weights = np.array(weights, dtype=np.float64)
    means = np.array(means, dtype=np.float64)
    means = means[:, np.newaxis] if means.ndim == 1 else means
    if weights.ndim != 1 or means.ndim != 2 or len(means) != len(weights):
        raise ValueError(
            "Parameters should be weights (n_components,) and means (n_components,) or "
            f"(n_components, n_features), got shapes {weights.shape} and {means.shape}."
        )
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(f"weights should be non-negative and sum to 1, got {weights}.")
    K, d = means.shape
    covariances = np.array(
        np.tile(np.eye(d), (K, 1, 1)) if covariances is None else covariances, dtype=np.float64
    )
    if covariances.shape == (K,) and d == 1:
        covariances = covariances[:, np.newaxis, np.newaxis]
    if covariances.shape != (K, d, d):
        raise ValueError(f"covariances should be of shape {(K, d, d)}, got {covariances.shape}.")
    if not np.isfinite(means).all() or not np.isfinite(covariances).all():
        raise ValueError("means and covariances should be finite.")
    symmetric = np.allclose(covariances, covariances.transpose(0, 2, 1))
    if not symmetric or not (np.linalg.eigvalsh(covariances) > 0).all():
        raise ValueError("covariances should be symmetric and positive definite.")
    return GaussianComponents(weights, means, covariances)
