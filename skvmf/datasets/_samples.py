"""Generated samples with known clusters."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils import shuffle as shuffle_together

from .._typing import Array, RandomState, is_integer
from ..distributions import vonmises_fisher
from ..distributions._arguments import checked_array


@overload
def make_vonmises_fisher_blobs(
    n_samples: int | ArrayLike = ...,
    n_features: int = ...,
    *,
    centers: int | ArrayLike | None = ...,
    concentration: float | ArrayLike = ...,
    shuffle: bool = ...,
    random_state: RandomState = ...,
    return_centers: Literal[False] = ...,
) -> tuple[Array, Array]: ...


@overload
def make_vonmises_fisher_blobs(
    n_samples: int | ArrayLike = ...,
    n_features: int = ...,
    *,
    centers: int | ArrayLike | None = ...,
    concentration: float | ArrayLike = ...,
    shuffle: bool = ...,
    random_state: RandomState = ...,
    return_centers: Literal[True],
) -> tuple[Array, Array, Array]: ...


def make_vonmises_fisher_blobs(
    n_samples: int | ArrayLike = 100,
    n_features: int = 3,
    *,
    centers: int | ArrayLike | None = None,
    concentration: float | ArrayLike = 10.0,
    shuffle: bool = True,
    random_state: RandomState = None,
    return_centers: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Draw clusters of directions, each from a von Mises-Fisher distribution.

    Like :func:`sklearn.datasets.make_blobs`, but on the unit sphere, with concentrations instead of
    standard deviations.

    Parameters
    ----------
    n_samples : int or array-like of int, default=100
        The number of rows, divided evenly among the clusters, or that of each cluster.
    n_features : int, default=3
        The number of features, at least two; unused if `centers` is an array.
    centers : int or array-like of shape (n_centers, n_features), default=None
        The number of centers, drawn uniformly from the sphere, or fixed ones of any positive
        length. The default is three, or one per entry of `n_samples`.
    concentration : float or array-like of shape (n_centers,), default=10.0
        The concentration of all or of each cluster; 0 is uniform on the sphere.
    shuffle : bool, default=True
        Whether to shuffle the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample.
    return_centers : bool, default=False
        Whether to return the centers too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows of unit length, float64.
    y : ndarray of shape (n_samples,)
        The cluster of each row.
    centers : ndarray of shape (n_centers, n_features)
        The unit mean directions. Only with ``return_centers=True``.

    Examples
    --------
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> X, y = make_vonmises_fisher_blobs(30, 5, centers=2, concentration=50, random_state=0)
    >>> X.shape, y.shape
    ((30, 5), (30,))
    """
    rng = check_random_state(random_state)
    sizes = checked_array(n_samples, "n_samples")
    if centers is None:
        centers = 3 if sizes.ndim == 0 else len(sizes)
    directions = _directions(centers, n_features, rng)
    n_centers = len(directions)
    if is_integer(n_samples):
        size, n_larger = divmod(int(n_samples), n_centers)
        sizes = size + (np.arange(n_centers) < n_larger)
    _check_one_each("n_samples", sizes, n_centers)
    kappa = checked_array(concentration, "concentration").astype(np.float64)
    if kappa.ndim == 0:
        kappa = np.full(n_centers, kappa)
    _check_one_each("concentration", kappa, n_centers)

    rows = [
        vonmises_fisher.rvs(direction, k, size=n, random_state=rng)
        for direction, k, n in zip(directions, kappa.tolist(), sizes.tolist(), strict=True)
    ]
    X = np.concatenate(rows)
    y = np.repeat(np.arange(n_centers), sizes)
    if shuffle:
        X, y = shuffle_together(X, y, random_state=rng)
    if return_centers:
        return X, y, directions
    return X, y


def _directions(centers: int | ArrayLike, n_features: int, rng: np.random.RandomState) -> Array:
    """Return unit rows: the given ones, scaled, or a given number drawn from the sphere."""
    if is_integer(centers):
        if not is_integer(n_features) or centers < 1 or n_features < 2:
            raise ValueError(
                "A sphere needs whole numbers of at least one center and two features, "
                f"got centers={centers!r} and n_features={n_features!r}."
            )
        # Normal vectors have no preferred direction.
        centers = rng.standard_normal((centers, n_features))
    given = checked_array(centers, "centers").astype(np.float64)
    if given.ndim != 2 or given.shape[0] < 1 or given.shape[1] < 2:
        raise ValueError(
            "centers must be an integer or of shape (n_centers, n_features) with at least two "
            f"features, got shape {given.shape}."
        )
    # Scaled first, as the squares of very large and very small floats are none.
    largest = np.abs(given).max(axis=1, keepdims=True)
    if not (np.isfinite(largest).all() and (largest > 0).all()):
        raise ValueError("centers must be finite and none of them zero: a zero has no direction.")
    scaled = given / largest
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _check_one_each(name: str, values: Array, n_centers: int) -> None:
    if values.shape != (n_centers,):
        raise ValueError(
            f"{name} must be one number or one for each of the {n_centers} centers, "
            f"got shape {values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative, got {values}.")
    if name == "n_samples" and not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"n_samples must hold whole numbers, got {values.dtype}.")
