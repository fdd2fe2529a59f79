"""Density, moments, samples and maximum likelihood of the von Mises-Fisher distribution."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._kernels import sampling
from ._vonmises_fisher_maps import (
    concentration,
    log_partition_deficit,
    log_sphere_area,
    mean_resultant_length,
    negentropy,
)

Array = NDArray[np.float64]
RandomState = int | np.random.RandomState | np.random.Generator | None

_UNIT_TOLERANCE = 1e-5  # of a squared length: float32 rows pass


def logpdf(
    x: ArrayLike,
    mu: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
) -> Any:
    """Return the log-density with respect to surface area.

    The distribution is given by `mu` and `kappa`, or by `mean`.

    Parameters
    ----------
    x : array_like of shape (..., d)
        Points on the unit sphere; float32 and float64 are both computed in float64.
    mu : array_like of shape (..., d), default=None
        Mean direction, of unit length. Leading axes broadcast against those of `x`.
    kappa : float or array_like of shape (...), default=None
        Concentration, at least 0.
    mean : array_like of shape (..., d), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    float or ndarray of float64
        One value for each point.

    Raises
    ------
    ValueError
        If points or mean direction are not of unit length, dimensions differ, the parameters
        are incomplete or outside their range.

    Notes
    -----
    Computed as (kappa - Phi(kappa)) - kappa ||x - m||^2/2 - log area, which does not cancel
    when the distribution is concentrated (derived here).

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf.distributions.vonmises_fisher import logpdf
    >>> logpdf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 0.0, 0.0], 2.0).round(6)
    array([-1.126244, -3.126244])
    >>> print(np.exp(logpdf([0.0, 1.0], mean=[0.0, 0.0])).round(6))  # 1/(2 pi)
    0.159155
    """
    points = _unit_rows(x, "x")
    direction, kappas = _parameters(mu, kappa, mean)
    d = points.shape[-1]
    if direction.shape[-1] != d:
        raise ValueError(f"x has {d} coordinates, the parameters have {direction.shape[-1]}.")
    gap = points - direction
    half_squares = 0.5 * np.einsum("...i,...i->...", gap, gap)
    top = log_partition_deficit(kappas, d) - log_sphere_area(d)
    return (top - kappas * half_squares)[()]


def entropy(kappa: ArrayLike, dim: ArrayLike) -> Any:
    """Return the differential entropy with respect to surface area.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, at least 0.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `kappa`.

    Returns
    -------
    float or ndarray of float64
        log area - psi(A(kappa)): minus the expected log-density.

    Raises
    ------
    ValueError
        If a concentration is negative, not finite or above 1e150, or a dimension is not an
        integer of at least 2.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import entropy
    >>> print(round(entropy(0.0, 3), 6))  # log(4 pi)
    2.531024
    """
    rest = np.asarray(kappa) * mean_resultant_length(kappa, dim, complement=True)
    return log_sphere_area(dim) - (log_partition_deficit(kappa, dim) - rest)


def variance_eigenvalues(
    r: ArrayLike, dim: ArrayLike, *, complement: ArrayLike | None = None
) -> tuple[Any, Any]:
    """Return the two eigenvalues of the covariance: along the mean and across it.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1), the length of the mean parameter.
    dim : int or array_like of int
        Dimension d of the ambient space, at least 2. Broadcast against `r`.
    complement : float or array_like, default=None
        1 - r, where it is known better than the difference.

    Returns
    -------
    along : float or ndarray of float64
        1/psi''(r), the variance along the mean.
    across : float or ndarray of float64
        r/psi'(r), the variance in each of the d - 1 directions across it.

    Raises
    ------
    ValueError
        If r is outside [0, 1) or does not go with its complement, or a dimension is not an
        integer of at least 2.

    Notes
    -----
    The trace is along + (d - 1) across = 1 - r^2, because all mass is on the sphere.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", sections 2.1 and 2.4.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import variance_eigenvalues
    >>> along, across = variance_eigenvalues(0.8, 3)
    >>> print(round(along + 2 * across, 12))  # 1 - 0.8^2
    0.36
    """
    along = 1.0 / negentropy(r, dim, order=2, complement=complement)
    lengths = np.asarray(r, dtype=np.float64)
    rest = 1 - lengths if complement is None else np.asarray(complement, dtype=np.float64)
    return along, (rest * (1 + lengths) - along) / (np.asarray(dim) - 1.0)


def variance_function(mean: ArrayLike) -> Array:
    """Return the covariance matrix of the distribution with a given mean parameter.

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameter, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        across (I - m m^T) + along m m^T for direction m, with `variance_eigenvalues`.

    Raises
    ------
    ValueError
        If the mean is not inside the unit ball or has fewer than two coordinates.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf.distributions.vonmises_fisher import variance_function
    >>> variance_function(np.zeros(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    direction, lengths = _split(mean)
    d = direction.shape[-1]
    along, across = (np.asarray(v)[..., np.newaxis] for v in variance_eigenvalues(lengths, d))
    covariance: Array = ((along - across) * direction)[..., np.newaxis] * direction[
        ..., np.newaxis, :
    ]
    diagonal = np.arange(d)
    covariance[..., diagonal, diagonal] += across
    return covariance


def rvs(
    mu: ArrayLike | None = None,
    kappa: float | None = None,
    size: int | tuple[int, ...] = 1,
    random_state: RandomState = None,
    *,
    mean: ArrayLike | None = None,
) -> Array:
    """Draw random points on the sphere.

    The distribution is given by `mu` and `kappa`, or by `mean`.

    Parameters
    ----------
    mu : array_like of shape (d,), default=None
        Mean direction, of unit length.
    kappa : float, default=None
        Concentration, at least 0; every dimension and concentration is sampled exactly.
    size : int or tuple of int, default=1
        Number of points, or their shape.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness; None is NumPy's global state, an int reproduces.
    mean : array_like of shape (d,), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (size, d) or size + (d,)
        Points of unit length.

    Raises
    ------
    ValueError
        If there is more than one distribution, the direction is not of unit length, or the
        parameters are incomplete or outside their range.

    References
    ----------
    .. [1] G. Ulrich, "Computer generation of distributions on the m-sphere", Applied
       Statistics 33, 1984.
    .. [2] A. Wood, "Simulation of the von Mises Fisher distribution", Communications in
       Statistics 23, 1994.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import rvs
    >>> rvs([0.0, 0.0, 1.0], 50.0, size=4, random_state=0).shape
    (4, 3)
    """
    direction, kappas = _parameters(mu, kappa, mean)
    if direction.ndim != 1 or np.ndim(kappas) != 0:
        raise ValueError("rvs draws from one distribution: mu or mean of shape (d,), one kappa.")
    shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
    rng = _generator(random_state)
    gaps = np.empty(int(np.prod(shape, dtype=np.int64)))
    sampling.one_minus_cosines(rng, float(kappas), len(direction), gaps)
    across = rng.standard_normal((len(gaps), len(direction)))
    across -= np.outer(across @ direction, direction)
    across *= (np.sqrt(gaps * (2 - gaps)) / np.linalg.norm(across, axis=1))[:, np.newaxis]
    across += np.outer(1 - gaps, direction)
    return across.reshape(*shape, -1)


def fit(X: ArrayLike, sample_weight: ArrayLike | None = None) -> tuple[Array, float]:
    """Return the maximum likelihood estimate of mean direction and concentration.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Points on the unit sphere.
    sample_weight : array_like of shape (n,), default=None
        Weights, at least 0, not all 0; None weighs all points alike.

    Returns
    -------
    mu : ndarray of float64, shape (d,)
        Mean direction. Where the points have mean zero any direction is as good; it is the
        first axis.
    kappa : float
        Concentration, exact to rounding even for tight points: 1 - r is the mean of
        ||x - m||^2/2, not a difference.

    Raises
    ------
    ValueError
        If a point is not of unit length, the weights do not fit, or all points are the same,
        for which the likelihood has no maximum.

    References
    ----------
    .. [1] M. Nonnenmacher, M. Sahani, "A solution for the mean parametrization of the von
       Mises-Fisher distribution", section 1: the mean parameter is the mean of the points.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import fit, rvs
    >>> mu, kappa = fit(rvs([1.0, 0.0, 0.0], 30.0, size=2000, random_state=0))
    >>> print(bool(mu[0] > 0.999), bool(28 < kappa < 32))
    True True
    """
    points = _unit_rows(X, "X")
    if points.ndim != 2 or len(points) == 0:
        raise ValueError(f"X must have shape (n, d) with n > 0, not {points.shape}.")
    weights = _shares(sample_weight, len(points))
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


def _parameters(
    mu: ArrayLike | None, kappa: ArrayLike | None, mean: ArrayLike | None
) -> tuple[Array, Any]:
    """Return mean direction and concentration from either parametrization."""
    if mean is None and mu is not None and kappa is not None:
        return _unit_rows(mu, "mu"), np.asarray(kappa, dtype=np.float64)
    if mean is None or mu is not None or kappa is not None:
        raise ValueError("Give mu and kappa, or mean alone.")
    direction, lengths = _split(mean)
    return direction, concentration(lengths, direction.shape[-1])


def _split(mean: ArrayLike) -> tuple[Array, Array]:
    """Return direction and length of mean parameters; the first axis is zero's direction."""
    means = np.asarray(mean, dtype=np.float64)
    if means.ndim == 0 or means.shape[-1] < 2:
        raise ValueError(f"mean must have at least two coordinates, not shape {means.shape}.")
    lengths = np.linalg.norm(means, axis=-1)
    if not np.all(lengths < 1):
        raise ValueError("mean, the mean parameter, must be finite and inside the unit ball.")
    direction = means / np.where(lengths > 0, lengths, 1.0)[..., np.newaxis]
    direction[lengths == 0, 0] = 1.0
    return direction, lengths


def _unit_rows(x: ArrayLike, name: str) -> Array:
    """Return rows of unit length to the last digit; they must be so to single precision."""
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] < 2:
        raise ValueError(f"{name} must have at least two coordinates, not shape {rows.shape}.")
    squares = np.einsum("...i,...i->...", rows, rows)
    if not np.all(np.abs(squares - 1) < _UNIT_TOLERANCE):
        raise ValueError(f"{name} must be finite and of unit length: scale each row by its norm.")
    return np.asarray(rows / np.sqrt(squares)[..., np.newaxis])


def _shares(sample_weight: ArrayLike | None, n: int) -> Array:
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


def _generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator that kernels take; what is drawn from a RandomState seeds it."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(words)
