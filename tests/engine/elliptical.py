"""Small problems for families of ellipses, Gaussian and Student-t."""

import numpy as np

from skvmf._engine.contracts import DenseResponsibilities, Statistics
from skvmf._engine.rows import make_rows

TYPES = ["full", "tied", "diag", "spherical"]
COVARIANCES = {
    "full": np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]),
    "tied": np.array([[2.0, 0.5], [0.5, 1.0]]),
    "diag": np.array([[2.0, 1.0], [0.5, 3.0]]),
    "spherical": np.array([2.0, 0.5]),
}
MEANS = np.array([[0.0, 0.0], [3.0, 1.0]])


def matrices(kind, covariances):
    """Return the covariances of two components as matrices (2, 2, 2)."""
    if kind == "tied":
        covariances = [covariances, covariances]
    return np.array([np.diag(np.broadcast_to(c, 2)) if np.ndim(c) < 2 else c for c in covariances])


def in_kind(kind, full, counts):
    """Return what matrices (2, 2, 2) are in a kind, as such; the tied one is pooled by count."""
    if kind == "tied":
        return np.tile(np.average(full, axis=0, weights=counts), (2, 1, 1))
    if kind == "spherical":
        return np.trace(full, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(2)
    return full * np.eye(2) if kind == "diag" else np.asarray(full)


def some_rows(n_outliers=0):
    """Return rows and responsibilities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 2.0] + 2
    X[:n_outliers] *= 50
    return X, rng.dirichlet(np.ones(2), size=60)


def whole(X):
    """Return all rows as one block."""
    return make_rows(X, None, unit=False).map_reduce(lambda block: block)


def statistics(family, components, X, resp):
    moments = family.moments(whole(X), DenseResponsibilities(resp.copy()), components)
    counts, origins = resp.sum(axis=0), family.origins(components)
    return Statistics(0.0, float(resp.sum()), counts, moments, origins)
