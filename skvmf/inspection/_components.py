"""Fitted mixtures, or given parameters, as the engine has them; Gaussian ones with matrices."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._engine.em.mixture import FittedMixture, Mixture
from .._engine.families.background import NO_BACKGROUND
from .._engine.families.family import Params
from .._engine.families.gaussian import Gaussian
from .._engine.families.merging import MAX_PAIRED, NEAREST, nearest_points
from .._engine.rows.blocks import DenseBlock
from .._typing import Array
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._density import axial
from ..distributions.vonmises_fisher._maps import log_affinities as log_affinities_of_directions
from ..mixture import SparseGaussianMixture, VonMisesFisherMixture
from ..mixture._base import BaseMixture
from ..mixture._gaussian import ellipses

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

    from ..mixture._gaussian import BaseEllipticalMixture

AnyMixture: TypeAlias = "VonMisesFisherMixture | BaseEllipticalMixture | GaussianMixture"
Parameters: TypeAlias = tuple[ArrayLike, ...] | list[ArrayLike]


def read_mixture(mixture: "AnyMixture | Parameters") -> FittedMixture:
    """Return the engine's mixture of a fitted one, or of a tuple of parameters.

    The tuple holds weights (K,), means (K,) or (K, d) and maybe covariances (K, d, d) or variances
    (K,). Of Student-t components the scale matrices are taken for covariances.
    """
    if isinstance(mixture, tuple | list):
        if len(mixture) not in (2, 3):
            raise ValueError(
                "Parameters should be weights, means and optionally covariances, got "
                f"{len(mixture)} entries."
            )
        return _from_parameters(*mixture)
    check_is_fitted(mixture)
    if isinstance(mixture, VonMisesFisherMixture):
        return mixture._skvmf_vector_model().fitted
    covariances = ellipses(mixture)
    if covariances is None:
        raise ValueError(
            f"{type(mixture).__name__} is not a mixture of Gaussian or von Mises-Fisher "
            "components: it has neither covariances_ nor concentrations_."
        )
    family = Gaussian(mixture.means_.shape[1], "full")
    components = family.components(mixture.means_, covariances)
    weights, background = mixture.weights_, NO_BACKGROUND
    if isinstance(mixture, BaseMixture):
        fitted = mixture._skvmf_vector_model().fitted
        weights, background = fitted.params.weights, fitted.background
    return FittedMixture(Mixture.plain(family, background), Params.first(weights, components))


def _from_parameters(
    weights: ArrayLike, means: ArrayLike, covariances: ArrayLike | None = None
) -> FittedMixture:
    given = np.asarray(means)
    means = given[:, np.newaxis] if given.ndim == 1 else given
    d = means.shape[-1]
    if covariances is None:
        covariances = np.tile(np.eye(d), (len(means), 1, 1))
    elif np.ndim(covariances) == d == 1:
        covariances = np.reshape(covariances, (-1, 1, 1))
    mixture = SparseGaussianMixture.from_parameters(weights, means, covariances)
    return mixture._skvmf_vector_model().fitted


def select(fitted: FittedMixture, index: Array) -> FittedMixture:
    """Return some of the components, and the background, with weights that sum to one."""
    family, params, old = fitted.family, fitted.params, fitted.params.components
    if is_directional(fitted):
        components = family.from_natural(old.directions.T[index], old.concentrations[index])
    else:
        components = family.components(old.means[index], old.covariances[index])
    weights = np.append(fitted.weights[index], params.weights[fitted.n_components :])
    return replace(fitted, params=Params.first(weights / (weights.sum() or 1.0), components))


def join(first: FittedMixture, second: FittedMixture) -> FittedMixture:
    """Return the components of two mixtures, which must be of one kind and of the same features."""
    kinds = [(is_directional(each), each.family.dim) for each in (first, second)]
    if kinds[0] != kinds[1]:
        names = ["directions" if kind else "Gaussian or Student-t components" for kind, _ in kinds]
        raise ValueError(
            "Mixtures should have the same features, and both be of directions or neither, got "
            f"{names[0]} of {kinds[0][1]} features and {names[1]} of {kinds[1][1]}."
        )
    family, parts = first.family, [first.params.components, second.params.components]
    if kinds[0][0]:
        kappa = np.concatenate([np.broadcast_to(p.concentrations, len(p)) for p in parts])
        components = family.from_natural(np.hstack([p.directions for p in parts]).T, kappa)
    else:
        means, covariances = ([getattr(p, n) for p in parts] for n in ("means", "covariances"))
        components = family.components(np.vstack(means), np.concatenate(covariances))
    weights = np.full(len(components), 1 / len(components))
    return FittedMixture(Mixture.plain(family), Params.first(weights, components))


def is_directional(fitted: FittedMixture) -> bool:
    """Return whether components are von Mises-Fisher distributions, otherwise Gaussian ones."""
    return not isinstance(fitted.family, Gaussian)


def means_of(fitted: FittedMixture) -> Array:
    components = fitted.params.components
    if not is_directional(fitted):
        return np.asarray(components.means)
    return np.ascontiguousarray((components.directions * components.lengths).T)


def precisions(fitted: FittedMixture) -> Array:
    """Return P_k (K, d, d), with d log p_k / d mean = P_k (x - mean): inverse covariances."""
    family, components = fitted.family, fitted.params.components
    if not is_directional(fitted):
        return np.asarray(family.type.precisions(components.cholesky))
    lengths, complements = components.lengths, components.complements
    along, across = vmf.variance_eigenvalues(lengths, family.dim, complement=complements)
    return axial(components.directions.T, 1 / along, 1 / across)


def log_affinities(fitted: FittedMixture, parts: Array, others: Array) -> tuple[Array, Array]:
    """Return logarithms (m, n) of the Bhattacharyya coefficients of components with others.

    Before them are the numbers of those others (m, n): all, if they are few, else the nearest.
    """
    if len(others) <= MAX_PAIRED:
        near = np.tile(others, (len(parts), 1))
    else:
        points = means_of(fitted)
        near = others[nearest_points(points[parts], points[others], NEAREST)]
    values = [_log_affinities(fitted, i, of) for i, of in zip(parts, near, strict=True)]
    return near, np.reshape(values, near.shape)


def _log_affinities(fitted: FittedMixture, i: int, others: Array) -> Array:
    components = fitted.params.components
    if is_directional(fitted):
        directions, kappa = components.directions.T, components.concentrations
        return log_affinities_of_directions(directions, kappa, i, others)
    gaps = components.means[others] - components.means[i]
    own, covariances = components.covariances[i], components.covariances[others]
    between = (own + covariances) / 2
    log_dets = (np.linalg.slogdet(own)[1] + np.linalg.slogdet(covariances)[1]) / 2
    log_dets -= np.linalg.slogdet(between)[1]
    solved = np.linalg.solve(between, gaps[:, :, np.newaxis])[:, :, 0]
    affinities = 0.5 * log_dets - 0.125 * np.einsum("nd,nd->n", gaps, solved)
    affinities[np.isnan(affinities)] = -np.inf  # infinitely far: zeros were multiplied by that
    return np.minimum(affinities, 0)  # but for rounding they are


def log_densities(fitted: FittedMixture, X: Array) -> Array:
    ones = np.ones(len(X))
    return fitted.scores(DenseBlock(X, ones, ones, 0)).log_density()


def log_joint(fitted: FittedMixture, X: Array) -> Array:
    return log_densities(fitted, X) + np.log(fitted.params.weights)


def scores(fitted: FittedMixture, X: Array) -> Array:
    """Return d log p / d theta at rows X, for means and all weights but the last one."""
    joint = log_joint(fitted, X)
    resp = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    ratios = resp / fitted.params.weights
    gaps, own = X[:, np.newaxis, :] - means_of(fitted), resp[:, : fitted.n_components]
    by_means = np.einsum("nk,kde,nke->nkd", own, precisions(fitted), gaps, optimize=True)
    return np.hstack([ratios[:, :-1] - ratios[:, -1:], by_means.reshape(len(X), -1)])
