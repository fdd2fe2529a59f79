"""Samples and maximum likelihood of the von Mises-Fisher distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._kernels import sampling
from ..._typing import Array
from .._random import RandomState, checked_generator, checked_size
from ._density import parameters, unit_rows
from ._negentropy import concentration


def rvs(
    mu: ArrayLike | None = None,
    kappa: float | None = None,
    size: int | tuple[int, ...] | None = 1,
    random_state: RandomState = None,
    *,
    mean: ArrayLike | None = None,
) -> Array:
    """Draw random points on the sphere.

    The distribution is given by `mu` and `kappa`, or by `mean`, and sampled exactly [1]_, [2]_.

    Parameters
    ----------
    mu : array_like of shape (d,), default=None
        Mean direction, of unit length.
    kappa : float, default=None
        Concentration, from 0 to 1e150.
    size : int, tuple of int or None, default=1
        Number of points, or their shape; None is one point without an axis for it.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; None is NumPy's global state.
    mean : array_like of shape (d,), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (size, d), size + (d,) or (d,)
        Points of unit length.

    Raises
    ------
    ValueError
        If there is more than one distribution, or the parameters or `size` are not valid.

    References
    ----------
    .. [1] Ulrich, "Computer generation of distributions on the m-sphere", Applied Statistics 1984.
    .. [2] Wood, "Simulation of the von Mises Fisher distribution", Comm. in Statistics 1994.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import rvs
    >>> rvs([0.0, 0.0, 1.0], 50.0, size=4, random_state=0).shape
    (4, 3)
    """
    direction, kappas = parameters(mu, kappa, mean)
    if direction.ndim != 1 or np.ndim(kappas) != 0:
        raise ValueError("rvs draws from one distribution: mu or mean of shape (d,), one kappa.")
    shape = checked_size(size)
    rng = checked_generator(random_state)
    gaps = np.empty(int(np.prod(shape, dtype=np.int64)))
    sampling.one_minus_cosines(rng, float(kappas), len(direction), gaps)
    across = rng.standard_normal((len(gaps), len(direction)))
    across -= np.outer(across @ direction, direction)
    across *= (np.sqrt(gaps * (2 - gaps)) / np.linalg.norm(across, axis=1))[:, np.newaxis]
    across += np.outer(1 - gaps, direction)
    return across.reshape(*shape, len(direction))


def fit(X: ArrayLike, sample_weight: ArrayLike | None = None) -> tuple[Array, float]:
    """Return the maximum likelihood estimate of mean direction and concentration.

    The mean parameter is the mean of the points (Nonnenmacher and Sahani, section 1).

    Parameters
    ----------
    X : array_like of shape (n, d)
        Points on the unit sphere.
    sample_weight : array_like of shape (n,), default=None
        Weights, at least 0 and not all 0; None weighs all points equally.

    Returns
    -------
    mu : ndarray of float64, shape (d,)
        Mean direction; the first axis for points with mean zero.
    kappa : float
        Concentration, accurate also for high ones: 1 - r is the mean of ||x - m||^2/2, not a
        difference.

    Raises
    ------
    ValueError
        If a point is not of unit length, the weights do not fit, or all points are the same, so
        that the likelihood has no maximum.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import fit, rvs
    >>> mu, kappa = fit(rvs([1.0, 0.0, 0.0], 30.0, size=2000, random_state=0))
    >>> print(bool(mu[0] > 0.999), bool(28 < kappa < 32))
    True True
    """
    points = unit_rows(X, "X")
    if points.ndim != 2 or len(points) == 0:
        raise ValueError(f"X must have shape (n, d) with n > 0, not {points.shape}.")
    weights = _normalized(sample_weight, len(points))
    total = weights @ points
    r = float(np.linalg.norm(total))
    mu = total / r if r > 0 else np.eye(1, points.shape[1])[0]
    gap = points - mu
    q = float(0.5 * weights @ np.einsum("ij,ij->i", gap, gap)) if r > 0.5 else 1 - r
    if q <= np.finfo(np.float64).eps ** 2:
        raise ValueError(
            "All points with positive weight are the same: the likelihood grows without bound "
            "with kappa. Give distinct points, or bound kappa by a prior."
        )
    return mu, float(concentration(min(r, 1.0), points.shape[1], complement=q))


def _normalized(sample_weight: ArrayLike | None, n: int) -> Array:
    """Return weights that sum to one."""
    if sample_weight is None:
        return np.full(n, 1 / n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), not {weights.shape}.")
    if not (weights.min() >= 0 and 0 < weights.max() < np.inf):
        raise ValueError("sample_weight must be finite, at least 0 and not all 0.")
    weights = weights / weights.max()
    return np.asarray(weights / weights.sum())
