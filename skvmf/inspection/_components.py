"""Fitted mixtures, or given parameters, as the engine has them; elliptical ones with matrices."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._engine.em.mixture import Mixture, Point
from .._engine.families.background import NO_BACKGROUND
from .._engine.families.elliptical import Elliptical
from .._engine.families.family import AnyFamily
from .._engine.families.gaussian import Gaussian
from .._engine.families.merge_costs import MAX_PAIRED
from .._engine.families.merging import NEAREST
from .._engine.families.neighbours import nearest_points
from .._engine.families.params import Params
from .._engine.families.student_t import StudentT
from .._engine.rows.blocks import DenseBlock
from .._typing import Array
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._density import axial
from ..distributions.vonmises_fisher._maps import log_affinities as log_affinities_of_directions
from ..mixture import SparseGaussianMixture, VonMisesFisherMixture
from ..mixture._base import BaseMixture
from ..mixture._gaussian import BaseEllipticalMixture, ellipses
from ._student_t_overlaps import log_affinities as log_affinities_of_student_t

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

# Student-t components up to which all pairs are compared: each pair takes an integral, all of them
# seconds.
_MAX_INTEGRATED = 512

AnyMixture: TypeAlias = "VonMisesFisherMixture | BaseEllipticalMixture | GaussianMixture"
Parameters: TypeAlias = tuple[ArrayLike, ...] | list[ArrayLike]


def read_mixture(mixture: "AnyMixture | Parameters") -> Point:
    """Return the engine's mixture of a fitted one, or of a tuple of parameters.

    The tuple holds weights (K,), means (K,) or (K, d) and maybe covariances (K, d, d) or variances
    (K,).
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
    dof = getattr(mixture, "degrees_of_freedom_", None)
    family, components = _elliptical(mixture.means_, covariances, dof)
    weights = mixture.weights_
    background = NO_BACKGROUND
    if isinstance(mixture, BaseMixture):
        fitted = mixture._skvmf_vector_model().fitted
        # With the background's weight as the last.
        weights = fitted.params.weights
        background = fitted.background.with_units(None)
    return Point(Mixture.plain(family, background), Params.first(weights, components))


def _elliptical(
    means: Array, covariances: Array, degrees_of_freedom: Array | None
) -> tuple[AnyFamily, Any]:
    """Return components with matrices (K, d, d), Gaussian ones without degrees of freedom (K,)."""
    dim = means.shape[1]
    if degrees_of_freedom is None:
        gaussian = Gaussian(dim, "full")
        return gaussian, gaussian.components(means, covariances)
    student_t = StudentT(dim, "full")
    return student_t, student_t.components(means, covariances, degrees_of_freedom)


def _from_parameters(
    weights: ArrayLike, means: ArrayLike, covariances: ArrayLike | None = None
) -> Point:
    means = np.asarray(means)
    if means.ndim == 1:
        means = means[:, np.newaxis]
    d = means.shape[-1]
    if covariances is None:
        covariances = np.tile(np.eye(d), (len(means), 1, 1))
    elif np.ndim(covariances) == d == 1:
        covariances = np.reshape(covariances, (-1, 1, 1))
    mixture = SparseGaussianMixture.from_parameters(weights, means, covariances)
    return mixture._skvmf_vector_model().fitted


def select(fitted: Point, index: Array) -> Point:
    """Return some of the components, and the background, with weights that sum to one."""
    components = fitted.family.select(fitted.params.components, index)
    background_weight = fitted.params.weights[fitted.n_components :]
    weights = np.append(fitted.weights[index], background_weight)
    # Without any weight, they stay zeros.
    weights = weights / (weights.sum() or 1.0)
    return replace(fitted, params=Params.first(weights, components))


def join(first: Point, second: Point) -> Point:
    """Return the components of two mixtures, which must be of one kind and of the same features."""
    family = first.family
    directional = is_directional(first)
    if is_directional(second) != directional or second.family.dim != family.dim:
        raise ValueError(
            "Mixtures should have the same features, and both be of directions or neither, got "
            f"{_kind(first)} and {_kind(second)}."
        )
    parts = [first.params.components, second.params.components]
    if directional:
        # Tied components have one concentration.
        kappa = np.concatenate([np.broadcast_to(p.concentrations, len(p)) for p in parts])
        components = family.from_natural(np.hstack([p.directions for p in parts]).T, kappa)
    else:
        means = np.vstack([p.means for p in parts])
        covariances = np.concatenate([p.covariances for p in parts])
        dof = np.concatenate([_degrees_of_freedom(p) for p in parts])
        if np.isinf(dof).all():
            family, components = _elliptical(means, covariances, None)
        else:
            family, components = _elliptical(means, covariances, dof)
    weights = np.full(len(components), 1 / len(components))
    return Point(Mixture.plain(family), Params.first(weights, components))


def with_features_of(reference: object, mixture: object, fitted: Point) -> Point:
    """Return the engine's mixture of `mixture` with features in the order of a reference.

    Features are told by their names where both have some; else they are taken as they come.
    """
    names = getattr(reference, "feature_names_in_", None)
    own_names = getattr(mixture, "feature_names_in_", None)
    if names is None or own_names is None or np.array_equal(names, own_names):
        return fitted
    different = sorted(set(map(str, names)) ^ set(map(str, own_names)))
    if different:
        some = ", ".join(different[:5])
        if len(different) > 5:
            some += " ..."
        raise ValueError(
            "Mixtures should have the same features, and these are features of one of them only: "
            f"{some}."
        )
    number = {name: i for i, name in enumerate(own_names.tolist())}
    order = np.array([number[name] for name in names.tolist()])
    family = fitted.family
    components = fitted.params.components
    if is_directional(fitted):
        kappa = np.broadcast_to(components.concentrations, len(components))
        components = family.from_natural(components.directions[order].T, kappa)
    else:
        covariances = components.covariances[:, order][:, :, order]
        dof = getattr(components, "degrees_of_freedom", None)
        family, components = _elliptical(components.means[:, order], covariances, dof)
    params = Params.first(fitted.params.weights, components)
    return Point(Mixture.plain(family, fitted.background), params)


def _kind(fitted: Point) -> str:
    kind = "directions" if is_directional(fitted) else "Gaussian or Student-t components"
    return f"{kind} of {fitted.family.dim} features"


def is_directional(fitted: Point) -> bool:
    """Return whether components are von Mises-Fisher distributions, otherwise elliptical ones."""
    return not isinstance(fitted.family, Elliptical)


def _degrees_of_freedom(components: Any) -> Array:
    """Return the degrees of freedom of elliptical components, (K,): infinity if Gaussian."""
    return getattr(components, "degrees_of_freedom", np.full(len(components), np.inf))


def means_of(fitted: Point) -> Array:
    """Return the means of elliptical components, or the mean parameters of directions, (K, d)."""
    components = fitted.params.components
    if not is_directional(fitted):
        return np.asarray(components.means)
    return np.ascontiguousarray((components.directions * components.lengths).T)


def precisions(fitted: Point) -> Array:
    """Return P_k (K, d, d), with d log p_k / d mean = P_k (x - mean): inverse covariances."""
    components = fitted.params.components
    if not is_directional(fitted):
        return np.asarray(fitted.family.type.precisions(components.cholesky))
    along, across = vmf.variance_eigenvalues(
        components.lengths, fitted.family.dim, complement=components.complements
    )
    return axial(components.directions.T, 1 / along, 1 / across)


def log_affinities(fitted: Point, parts: Array, others: Array) -> tuple[Array, Array]:
    """Return logarithms (m, n) of the Bhattacharyya coefficients of components with others.

    Before them are the numbers of those others (m, n): all, if they are few, else the nearest.
    """
    if len(others) <= _max_paired(fitted):
        near = np.tile(others, (len(parts), 1))
        if np.array_equal(parts, others):
            return near, _log_affinities_of_all(fitted, parts)
    else:
        points = means_of(fitted)
        near = others[nearest_points(points[parts], points[others], NEAREST)]
    values = [_log_affinities(fitted, i, of) for i, of in zip(parts, near, strict=True)]
    return near, np.reshape(values, near.shape)


def log_affinities_with_first(fitted: Point, parts: Array, others: Array) -> Array:
    """Return logarithms (n, m) of the Bhattacharyya coefficients of others with the first parts.

    These are all, or so many that there are no more pairs than are compared of all components.
    """
    n_pairs = _max_paired(fitted) ** 2
    first = parts[: max(1, n_pairs // max(len(others), 1))]
    if np.array_equal(first, others):
        return _log_affinities_of_all(fitted, others)
    return np.column_stack([_log_affinities(fitted, i, others) for i in first])


def _log_affinities_of_all(fitted: Point, parts: Array) -> Array:
    """Return logarithms (m, m) of the Bhattacharyya coefficients of all pairs, each taken once."""
    values = np.empty((len(parts), len(parts)))
    for row, i in enumerate(parts):
        values[row, row:] = _log_affinities(fitted, i, parts[row:])
        values[row:, row] = values[row, row:]
    return values


def _max_paired(fitted: Point) -> int:
    """Return the number of components up to which all pairs are compared."""
    return _MAX_INTEGRATED if isinstance(fitted.family, StudentT) else MAX_PAIRED


def _log_affinities(fitted: Point, i: int, others: Array) -> Array:
    """Return logarithms (n,) of the Bhattacharyya coefficients of component i with others."""
    components = fitted.params.components
    if is_directional(fitted):
        kappa = components.concentrations
        return log_affinities_of_directions(components.directions.T, kappa, i, others)
    if isinstance(fitted.family, StudentT):
        dof = components.degrees_of_freedom
        return log_affinities_of_student_t(components.means, components.covariances, dof, i, others)

    between = (components.covariances[i] + components.covariances[others]) / 2
    # Of roots of inverse covariances.
    log_dets = components.log_det[i] + components.log_det[others]
    log_ratios = -log_dets - np.linalg.slogdet(between)[1]
    gaps = components.means[others] - components.means[i]
    solved = np.linalg.solve(between, gaps[:, :, np.newaxis])[:, :, 0]
    affinities = 0.5 * log_ratios - 0.125 * np.einsum("nd,nd->n", gaps, solved)
    # Means infinitely far apart: zeros of a matrix were multiplied by that.
    affinities[np.isnan(affinities)] = -np.inf
    # But for rounding, they are at most 0.
    return np.minimum(affinities, 0)


def log_densities(fitted: Point, X: Array) -> Array:
    """Return the log-densities of all components at rows X, (n, K)."""
    ones = np.ones(len(X))
    block = DenseBlock(X, ones, ones, 0)
    return fitted.scores(block).log_density() - fitted.family.log_units(block)


def log_joint(fitted: Point, X: Array) -> Array:
    """Return the log-densities at rows X plus the log-weights."""
    return log_densities(fitted, X) + np.log(fitted.params.weights)


def scores(fitted: Point, X: Array) -> Array:
    """Return d log p / d theta at rows X, for means and all weights but the last one."""
    joint = log_joint(fitted, X)
    resp = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    ratios = resp / fitted.params.weights
    # The last weight is one minus the others.
    by_weights = ratios[:, :-1] - ratios[:, -1:]
    gaps = X[:, np.newaxis, :] - means_of(fitted)
    resp_of_components = resp[:, : fitted.n_components]
    by_means = np.einsum(
        "nk,kde,nke->nkd", resp_of_components, precisions(fitted), gaps, optimize=True
    )
    return np.hstack([by_weights, by_means.reshape(len(X), -1)])
