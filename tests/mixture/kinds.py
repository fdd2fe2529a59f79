"""The mixtures, and covariances and scale matrices of every type."""

from inspect import signature

import numpy as np

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

MIXTURES = VonMisesFisherMixture, SparseGaussianMixture, RelativeGMM, StudentTMixture
PLANE = MIXTURES[1:]  # those with covariances or scale matrices
FLAT = {"weight_concentration_prior": 1.0}
GROWING = {  # mixtures to which components may be added
    "directions": (VonMisesFisherMixture, {}),
    "tied directions": (VonMisesFisherMixture, {"concentration_type": "tied"}),
    "background": (VonMisesFisherMixture, {"background": True}),
    "hard": (VonMisesFisherMixture, {"temperature": 0}),
    "full": (SparseGaussianMixture, {}),
    "tied": (SparseGaussianMixture, {"covariance_type": "tied"}),
    "sparse": (SparseGaussianMixture, {"covariance_type": "diag", "entmax_alpha": 1.5}),
    "heavy tails": (StudentTMixture, {"covariance_type": "spherical"}),
    "heavy tails, tied": (StudentTMixture, {"covariance_type": "tied"}),
}
TYPES = ["full", "tied", "diag", "spherical"]


def matrices(mixture):
    """Return the covariances or scale matrices of all components as matrices (K, d, d)."""
    t = hasattr(mixture, "scale_matrices_")
    shapes = mixture.scale_matrices_ if t else mixture.covariances_
    K, d = mixture.means_.shape
    if mixture.covariance_type == "tied":
        return np.tile(shapes, (K, 1, 1))
    return shapes if shapes.ndim == 3 else np.eye(d) * np.reshape(shapes, (K, -1, 1))


def in_type(kind, full, counts):
    """Return what matrices (K, d, d) are in a covariance type, as matrices."""
    full, d = np.asarray(full), np.shape(full)[1]
    if kind == "tied":
        return np.tile(np.average(full, axis=0, weights=counts), (len(full), 1, 1))
    if kind == "spherical":
        return np.trace(full, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    return full * np.eye(d) if kind == "diag" else full


def as_given(kind, full):
    """Return what a covariance type takes of matrices (K, d, d), in the shape that it is given."""
    full = np.asarray(full)
    variances = np.diagonal(full, axis1=1, axis2=2)
    return {"full": full, "tied": full[0], "diag": variances, "spherical": variances[:, 0]}[kind]


def parameters_of(mixture):
    """Return by name what `from_parameters` takes to build a fitted mixture again."""
    names = set(signature(type(mixture).from_parameters).parameters)
    names -= {"means"} if "mean_directions" in names else set()  # which say the same
    return {name: getattr(mixture, f"{name}_") for name in names - {"params"}}
