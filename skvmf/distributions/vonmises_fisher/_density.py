"""Density, entropy, divergence, samples and maximum likelihood of the von Mises-Fisher."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._kernels import rows as sampling
from ..._typing import Array, RandomState, Values
from .._arguments import checked_generator, checked_size
from ._maps import (
    checked_kappa,
    concentration,
    log_partition_deficit,
    log_sphere_area,
    mean_resultant_length,
    negentropy,
)

# Of a squared length: float32 rows pass.
_UNIT_TOLERANCE = 1e-5

# A Gauss-Legendre rule for the second derivative between two close mean resultant lengths.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)


def logpdf(
    x: ArrayLike,
    mu: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
) -> Values:
    """Return the log-density with respect to surface area.

    The distribution is given by `mu` and `kappa`, or by `mean`. See section 1 of Nonnenmacher and
    Sahani; the form used, (kappa - Phi(kappa)) - kappa ||x - m||^2/2 - log area, does not cancel
    for high concentrations.

    Parameters
    ----------
    x : array_like of shape (..., d)
        Points on the unit sphere.
    mu : array_like of shape (..., d), default=None
        Mean direction, of unit length. Leading axes broadcast against those of `x`.
    kappa : float or array_like of shape (...), default=None
        Concentration, from 0 to 1e150.
    mean : array_like of shape (..., d), default=None
        Mean parameter, inside the unit ball.

    Returns
    -------
    float or ndarray of float64
        One value per point.

    Raises
    ------
    ValueError
        If points or parameters are out of range, or neither `mean` nor both `mu` and `kappa` are
        given.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import logpdf
    >>> logpdf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 0.0, 0.0], 2.0).round(6)
    array([-1.126244, -3.126244])
    """
    points = unit_rows(x, "x")
    direction, kappas = parameters(mu, kappa, mean)
    d = points.shape[-1]
    if direction.shape[-1] != d:
        raise ValueError(f"x has {d} coordinates, the parameters have {direction.shape[-1]}.")
    gap = points - direction
    half_squares = 0.5 * np.einsum("...i,...i->...", gap, gap)
    top = log_partition_deficit(kappas, d) - log_sphere_area(d)
    return (top - kappas * half_squares)[()]


def entropy(kappa: ArrayLike, dim: ArrayLike) -> Values:
    """Return the differential entropy with respect to surface area.

    Parameters
    ----------
    kappa : float or array_like
        Concentration, from 0 to 1e150.
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.

    Returns
    -------
    float or ndarray of float64
        log area - psi(A(kappa)): minus the expected log-density.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import entropy
    >>> print(round(entropy(0.0, 3), 6))  # log(4 pi)
    2.531024
    """
    # psi(r) is (kappa - Phi(kappa)) - kappa (1 - r), without the difference of large numbers.
    gap = np.asarray(kappa) * mean_resultant_length(kappa, dim, complement=True)
    return log_sphere_area(dim) - (log_partition_deficit(kappa, dim) - gap)


def variance_eigenvalues(
    r: ArrayLike, dim: ArrayLike, *, complement: ArrayLike | None = None
) -> tuple[Values, Values]:
    """Return the two eigenvalues of the covariance: along the mean and across it.

    The trace along + (d - 1) across is 1 - r^2. See sections 2.1 and 2.4 of Nonnenmacher and
    Sahani.

    Parameters
    ----------
    r : float or array_like
        Mean resultant length in [0, 1).
    dim : int or array_like of int
        Dimension d of the ambient space, from 2 to 1e15.
    complement : float or array_like, default=None
        1 - r, if it is known more precisely than by subtraction.

    Returns
    -------
    along : float or ndarray of float64
        1/psi''(r), the variance along the mean.
    across : float or ndarray of float64
        r/psi'(r), the variance in each of the d - 1 directions across it.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import variance_eigenvalues
    >>> along, across = variance_eigenvalues(0.8, 3)
    >>> print(round(along + 2 * across, 12))  # 1 - 0.8^2
    0.36
    """
    along = 1.0 / negentropy(r, dim, order=2, complement=complement)
    lengths = np.asarray(r, dtype=np.float64)
    q = 1 - lengths if complement is None else np.asarray(complement, dtype=np.float64)
    across = (q * (1 + lengths) - along) / (np.asarray(dim) - 1.0)
    return along, across


def variance_function(mean: ArrayLike) -> Array:
    """Return the covariance matrix for a mean parameter (Nonnenmacher and Sahani, section 2.4).

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameters, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        across (I - m m^T) + along m m^T for direction m, with `variance_eigenvalues`.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import variance_function
    >>> variance_function([0.0, 0.0])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    direction, lengths = split(mean)
    return axial(direction, *variance_eigenvalues(lengths, direction.shape[-1]))


def axial(direction: Array, along: Array, across: Array) -> Array:
    """Return matrices with the given eigenvalues along and across directions."""
    outer = direction[..., :, np.newaxis] * direction[..., np.newaxis, :]
    matrix: Array = (along - across)[..., np.newaxis, np.newaxis] * outer
    diagonal = np.arange(direction.shape[-1])
    matrix[..., diagonal, diagonal] += across[..., np.newaxis]
    return matrix


def parameters(
    mu: ArrayLike | None, kappa: ArrayLike | None, mean: ArrayLike | None
) -> tuple[Array, Values]:
    """Return mean direction and concentration from either parametrization."""
    if mean is None and mu is not None and kappa is not None:
        return unit_rows(mu, "mu"), checked_kappa(kappa)
    if mean is None or mu is not None or kappa is not None:
        raise ValueError("Give mu and kappa, or mean alone.")
    direction, lengths = split(mean)
    return direction, concentration(lengths, direction.shape[-1])


def split(mean: ArrayLike) -> tuple[Array, Array]:
    """Return directions (the first axis for zero) and lengths of mean parameters."""
    means = np.asarray(mean, dtype=np.float64)
    if means.ndim == 0 or means.shape[-1] < 2:
        raise ValueError(f"mean must have at least two coordinates, not shape {means.shape}.")
    lengths = np.linalg.norm(means, axis=-1)
    if not np.all(lengths < 1):
        raise ValueError("mean, the mean parameter, must be finite and inside the unit ball.")
    direction = means / np.where(lengths > 0, lengths, 1.0)[..., np.newaxis]
    direction[lengths == 0, 0] = 1.0
    return direction, lengths


def unit_rows(x: ArrayLike, name: str) -> Array:
    """Scale rows to unit length; they must have it to single precision."""
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] < 2:
        raise ValueError(f"{name} must have at least two coordinates, not shape {rows.shape}.")
    squares = np.einsum("...i,...i->...", rows, rows)
    if not np.all(np.abs(squares - 1) < _UNIT_TOLERANCE):
        raise ValueError(f"{name} must be finite and of unit length: scale each row by its norm.")
    return np.asarray(rows / np.sqrt(squares)[..., np.newaxis])


def mean_negentropy(mean: ArrayLike) -> Values:
    """Return the negative entropy Psi at mean parameters (Nonnenmacher and Sahani, section 1).

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameters, inside the unit ball.

    Returns
    -------
    float or ndarray of float64, shape (...)
        Psi(mean) = psi(||mean||), see `negentropy`.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import mean_negentropy
    >>> mean_negentropy([[0.0, 0.0, 0.0], [0.3, 0.0, 0.4]]).round(6)
    array([0.      , 0.408639])
    """
    direction, lengths = split(mean)
    return negentropy(lengths, direction.shape[-1])


def natural_parameter(mean: ArrayLike) -> Array:
    """Return natural parameters, the gradient of Psi (Nonnenmacher and Sahani, appendix A.1).

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameters, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d)
        kappa m for concentration kappa = psi'(||mean||) and mean direction m.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import natural_parameter
    >>> natural_parameter([0.3, 0.0, 0.4]).round(6)
    array([1.078054, 0.      , 1.437405])
    """
    direction, lengths = split(mean)
    kappa = np.asarray(concentration(lengths, direction.shape[-1]))
    return np.asarray(kappa[..., np.newaxis] * direction)


def negentropy_hessian(mean: ArrayLike) -> Array:
    """Return the Hessian matrices of Psi (Nonnenmacher and Sahani, section 2.2, appendix A.1).

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameters, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        The Fisher information in mean parameters, the inverse of `variance_function`.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import negentropy_hessian
    >>> negentropy_hessian([0.0, 0.0])
    array([[2., 0.],
           [0., 2.]])
    """
    return axial(*_hessian_eigenvalues(mean))


def negentropy_hessian_product(mean: ArrayLike, vector: ArrayLike) -> Array:
    """Return Hessians of Psi times vectors (Nonnenmacher and Sahani, section 2.2, appendix A.1).

    Parameters
    ----------
    mean, vector : array_like of shape (..., d)
        Mean parameters, inside the unit ball, and vectors. Leading axes broadcast.

    Returns
    -------
    ndarray of float64, shape (..., d)
        psi''(r) along the mean direction plus psi'(r)/r across it.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import negentropy_hessian_product
    >>> negentropy_hessian_product([0.3, 0.4], [[0.4, -0.3], [0.3, 0.4]]).round(4)
    array([[ 0.9275, -0.6956],
           [ 0.9413,  1.255 ]])
    """
    direction, along, across = _hessian_eigenvalues(mean)
    vectors = np.asarray(vector, dtype=np.float64)
    if vectors.ndim == 0 or vectors.shape[-1] != direction.shape[-1]:
        raise ValueError(
            f"vector must have as many coordinates as mean, {direction.shape[-1]}, "
            f"not shape {vectors.shape}."
        )
    inner = np.einsum("...i,...i->...", direction, vectors)[..., np.newaxis] * direction
    outer = vectors - inner
    return np.asarray(along[..., np.newaxis] * inner + across[..., np.newaxis] * outer)


def kl_divergence(mean: ArrayLike, other: ArrayLike) -> Values:
    """Return the Kullback-Leibler divergence between distributions given by mean parameters.

    It is the Bregman divergence of Psi (section 1 of Nonnenmacher and Sahani).

    Parameters
    ----------
    mean, other : array_like of shape (..., d)
        Mean parameters of both distributions, inside the unit ball. Leading axes broadcast.

    Returns
    -------
    float or ndarray of float64, shape (...)
        KL(p_mean || p_other) = Psi(mean) - Psi(other) - <grad Psi(other), mean - other> >= 0.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import kl_divergence
    >>> kl_divergence([[0.8, 0.0], [0.1, 0.0]], [0.0, 0.0]).round(6)
    array([0.815345, 0.010025])
    """
    m, r = split(mean)
    n, s = split(other)
    if m.shape[-1] != n.shape[-1]:
        raise ValueError(f"mean has {m.shape[-1]} coordinates, other has {n.shape[-1]}.")
    d = m.shape[-1]
    r, s = np.broadcast_arrays(r, s)
    kappa = concentration(s, d)

    # The divergence of psi from r to s, by its remainder of second order if they are close.
    far = negentropy(r, d) - negentropy(s, d) - kappa * (r - s)
    fractions = 0.5 * (1 + _NODES)
    t = s[..., np.newaxis] + (r - s)[..., np.newaxis] * fractions
    curvature = negentropy(t, d, order=2) @ (0.5 * _NODE_WEIGHTS * (1 - fractions))
    close = np.abs(r - s) <= 0.1 * (1 - np.maximum(r, s))
    radial = np.where(close, (r - s) ** 2 * curvature, far)[()]

    # The other part comes from the angle between both directions.
    gap = m - n
    return radial + kappa * r * (0.5 * np.einsum("...i,...i->...", gap, gap))


def _hessian_eigenvalues(mean: ArrayLike) -> tuple[Array, Array, Array]:
    """Return mean directions and the eigenvalues of the Hessian along and across them."""
    direction, lengths = split(mean)
    d = direction.shape[-1]
    along = np.asarray(negentropy(lengths, d, order=2))
    positive = np.where(lengths > 0, lengths, 1.0)
    across = np.where(lengths > 0, concentration(lengths, d) / positive, float(d))
    return direction, along, across


def rvs(
    mu: ArrayLike | None = None,
    kappa: float | None = None,
    size: int | tuple[int, ...] | None = 1,
    random_state: RandomState = None,
    *,
    mean: ArrayLike | None = None,
) -> Array:
    """Draw random points on the sphere.

    The distribution is given by `mu` and `kappa`, or by `mean`, and sampled exactly (Ulrich,
    Applied Statistics 1984; Wood, Communications in Statistics 1994).

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

    # A direction across the mean, uniform as a normal vector's is, as long as the sine.
    points = rng.standard_normal((len(gaps), len(direction)))
    points -= np.outer(points @ direction, direction)
    points *= (np.sqrt(gaps * (2 - gaps)) / np.linalg.norm(points, axis=1))[:, np.newaxis]
    points += np.outer(1 - gaps, direction)
    return points.reshape(*shape, len(direction))


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
        If points or weights are out of range, or all points are the same.

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
    weights = np.ones(len(points)) if sample_weight is None else np.asarray(sample_weight, float)
    if weights.shape != points.shape[:1]:
        raise ValueError(f"sample_weight must have shape ({len(points)},), not {weights.shape}.")
    if not (weights.min() >= 0 and 0 < weights.max() < np.inf):
        raise ValueError("sample_weight must be finite, at least 0 and not all 0.")
    # By the largest first: the sum may overflow.
    weights = weights / weights.max()
    weights = weights / weights.sum()

    mean = weights @ points
    r = float(np.linalg.norm(mean))
    mu = mean / r if r > 0 else np.eye(1, points.shape[1])[0]
    # 1 - r has more digits as a sum than as a difference if r is large.
    q = 1 - r
    if r > 0.5:
        gap = points - mu
        q = float(0.5 * weights @ np.einsum("ij,ij->i", gap, gap))
    if q <= np.finfo(np.float64).eps ** 2:
        raise ValueError(
            "All points with positive weight are the same: the likelihood grows without bound "
            "with kappa. Give distinct points, or bound kappa by a prior."
        )
    return mu, float(concentration(min(r, 1.0), points.shape[1], complement=q))
