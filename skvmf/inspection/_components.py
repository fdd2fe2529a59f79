"""The components of a mixture, read from public attributes or from given parameters."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._affinities import log_affinities as vonmises_fisher_affinities


@dataclass(frozen=True)
class Background:
    """A density that is the same at every row: its weight, and the box (2, d) it is drawn in.

    `bounds` are None on the sphere.
    """

    weight: float
    log_density: float
    bounds: Array | None

    def draw(self, n: int, d: int, rng: np.random.RandomState) -> Array:
        """Return n rows."""
        if self.bounds is None:
            return vmf.rvs(np.eye(1, d)[0], 0.0, size=n, random_state=rng)
        low, high = self.bounds
        return rng.uniform(low, high, size=(n, d))


class _Mixture:
    """What components of both kinds have."""

    weights: Array
    background: Background | None

    @property
    def all_weights(self) -> Array:
        """The weights of the components, and that of a background behind them."""
        if self.background is None:
            return self.weights
        return np.append(self.weights, self.background.weight)

    def _shared(self, active: Array) -> dict[str, Any]:
        """Return weights of some components and the background that sum to one."""
        if self.background is None:
            return {"weights": self.weights[active] / self.weights[active].sum()}
        total = self.weights[active].sum() + self.background.weight
        background = replace(self.background, weight=self.background.weight / total)
        return {"weights": self.weights[active] / total, "background": background}


@dataclass(frozen=True)
class GaussianComponents(_Mixture):
    """Weights (K,), means (K, d) and full covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array
    background: Background | None = None

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
            log_densities[:, k] = -0.5 * (white**2).sum(axis=0) - log_det
        normalized: Array = log_densities - 0.5 * d * np.log(2 * np.pi)
        return normalized

    def draw(self, k: int, n: int, rng: np.random.RandomState) -> Array:
        """Return n rows of component k."""
        lower = np.linalg.cholesky(self.covariances[k])
        rows: Array = self.means[k] + rng.standard_normal((n, self.means.shape[1])) @ lower.T
        return rows

    def log_affinity(self, i: int, j: int) -> Any:
        """Return the logarithm of the Bhattacharyya coefficient of two components."""
        gap = self.means[i] - self.means[j]
        pair = self.covariances[[i, j]]
        between = pair.mean(axis=0)
        log_dets = np.linalg.slogdet(pair)[1].mean() - np.linalg.slogdet(between)[1]
        return 0.5 * log_dets - 0.125 * gap @ np.linalg.solve(between, gap)

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
    background: Background | None = None

    @cached_property
    def means(self) -> Array:
        """Mean parameters (K, d)."""
        lengths = vmf.mean_resultant_length(self.concentrations, self.directions.shape[1])
        means: Array = self.directions * lengths[:, np.newaxis]
        return means

    @cached_property
    def precisions(self) -> Array:
        """P_k (K, d, d), with d log p_k / d mean = P_k (x - mean): inverse covariances."""
        K, d = self.directions.shape
        lengths = vmf.mean_resultant_length(self.concentrations, d)
        complements = vmf.mean_resultant_length(self.concentrations, d, complement=True)
        along, across = vmf.variance_eigenvalues(lengths, d, complement=complements)
        squares = self.directions[:, :, np.newaxis] * self.directions[:, np.newaxis, :]
        scale = np.reshape([1 / along - 1 / across, 1 / across], (2, K, 1, 1))
        precisions: Array = scale[0] * squares + scale[1] * np.eye(d)
        return precisions

    def log_densities(self, X: Array) -> Array:
        """Return the log-density (n, K) of each component at rows X."""
        parameters = zip(self.directions, self.concentrations, strict=True)
        return np.column_stack([vmf.logpdf(X, mu, kappa) for mu, kappa in parameters])

    def draw(self, k: int, n: int, rng: np.random.RandomState) -> Array:
        """Return n rows of component k."""
        return vmf.rvs(self.directions[k], self.concentrations[k], size=n, random_state=rng)

    def log_affinity(self, i: int, j: int) -> Any:
        """Return the logarithm of the Bhattacharyya coefficient of two components."""
        pair = [i, j]
        return vonmises_fisher_affinities(self.directions[pair], self.concentrations[pair])[0, 1]

    def some(self, active: Array) -> "DirectionalComponents":
        """Return some of the components, with weights that sum to one."""
        directions, concentrations = self.directions[active], self.concentrations[active]
        return replace(
            self,
            **self._shared(active),
            directions=directions,
            concentrations=concentrations,
        )


Components = GaussianComponents | DirectionalComponents


def log_affinities(components: Components) -> Array:
    """Return the logarithms (K, K) of the Bhattacharyya coefficients of all pairs."""
    K = len(components.weights)
    if isinstance(components, DirectionalComponents):
        return vonmises_fisher_affinities(components.directions, components.concentrations)
    affinities = np.zeros((K, K))
    for i in range(K):
        for j in range(i):
            affinities[i, j] = affinities[j, i] = components.log_affinity(i, j)
    return affinities


def read_components(mixture: Any) -> Components:
    """Return the components of a fitted mixture, or of a tuple of parameters.

    The tuple holds weights (K,), means (K,) or (K, d) and, unless they are the identity,
    covariances (K, d, d) or, of one feature, variances (K,).
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
        log_density = -float(vmf.log_sphere_area(mixture.mean_directions_.shape[1]))
        return DirectionalComponents(
            mixture.weights_,
            mixture.mean_directions_,
            mixture.concentrations_,
            _background(mixture, log_density, None),
        )
    if hasattr(mixture, "covariances_") and hasattr(mixture, "covariance_type"):
        bounds = getattr(mixture, "background_bounds_", None)
        log_density = 0.0 if bounds is None else -float(np.log(bounds[1] - bounds[0]).sum())
        return GaussianComponents(
            mixture.weights_,
            mixture.means_,
            full_covariances(mixture),
            _background(mixture, log_density, bounds),
        )
    raise ValueError(
        f"{type(mixture).__name__} is not a mixture of Gaussian or von Mises-Fisher components: "
        "it has neither covariances_ nor concentrations_."
    )


def _background(mixture: Any, log_density: float, bounds: Array | None) -> Background | None:
    """Return the background of a mixture, None where it has none or that has no weight."""
    weight = float(getattr(mixture, "background_weight_", 0.0))
    return Background(weight, log_density, bounds) if weight > 0 else None


def read_active_components(mixture: Any) -> Components:
    """Return the components of a mixture that have weight, or raise a ValueError."""
    components = read_components(mixture)
    active = components.weights > 0
    if not active.any():
        raise ValueError("No component has weight: the background has every row.")
    return components.some(active)


def box_nodes(low: float, high: float, length: float) -> tuple[Array, Array]:
    """Return nodes and masses of the mean over an interval: Gauss-Legendre on equal parts.

    `length` is the greatest length of a part.
    """
    edges = np.linspace(low, high, int(np.ceil((high - low) / length)) + 1)
    points, masses = np.polynomial.legendre.leggauss(16)
    halves = np.diff(edges)[:, np.newaxis] / 2
    nodes = (edges[:-1, np.newaxis] + halves * (points + 1)).ravel()
    return nodes, (halves * masses).ravel() / (high - low)


def full_covariances(mixture: Any) -> Array:
    """Return the covariances, or scale matrices, (K, d, d) of a mixture of any covariance type."""
    K, d = mixture.means_.shape
    heavy_tails = hasattr(mixture, "scale_matrices_")
    covariances: Array = mixture.scale_matrices_ if heavy_tails else mixture.covariances_
    if mixture.covariance_type == "full":
        return covariances
    if mixture.covariance_type == "tied":
        return np.tile(covariances, (K, 1, 1))
    return np.eye(d) * np.reshape(covariances, (K, -1))[:, :, np.newaxis]


def log_joint(components: Components, X: Array) -> Array:
    """Return log weights plus log-densities, (n, K), and those of a background behind them."""
    log_densities = components.log_densities(X)
    if components.background is not None:
        last = np.full((len(X), 1), components.background.log_density)
        log_densities = np.hstack([log_densities, last])
    return np.log(components.all_weights) + log_densities


def responsibilities(components: Components, X: Array) -> Array:
    """Return the posterior probability of each component at rows X, (n, K), as `log_joint`."""
    scores = log_joint(components, X)
    resp: Array = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    return resp


def scores(components: Components, X: Array) -> Array:
    """Return d log p / d theta at rows X, for all weights but the last and means.

    The last weight, that of a background where there is one, is one minus the others.
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
