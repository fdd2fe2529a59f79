"""The negative entropy as a function of the mean parameter: gradient, Hessian, divergence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Array, Values
from ._density import axial, split
from ._negentropy import concentration, negentropy

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)


def mean_negentropy(mean: ArrayLike) -> Values:
    """Return the negative entropy Psi at mean parameters.

    See section 1 of Nonnenmacher and Sahani.

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
    """Return the natural parameters at mean parameters: the gradient of Psi.

    See appendix A.1 of Nonnenmacher and Sahani.

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
    """Return the Hessian matrices of Psi at mean parameters.

    See section 2.2 and appendix A.1 of Nonnenmacher and Sahani.

    Parameters
    ----------
    mean : array_like of shape (..., d)
        Mean parameters, inside the unit ball.

    Returns
    -------
    ndarray of float64, shape (..., d, d)
        The Fisher information in mean parameters, the inverse of `variance_function`.

    See Also
    --------
    negentropy_hessian_product : The same times vectors, without the matrix.

    Examples
    --------
    >>> from skvmf.distributions.vonmises_fisher import negentropy_hessian
    >>> negentropy_hessian([0.0, 0.0])
    array([[2., 0.],
           [0., 2.]])
    """
    return axial(*_hessian_eigenvalues(mean))


def negentropy_hessian_product(mean: ArrayLike, vector: ArrayLike) -> Array:
    """Return the Hessians of Psi at mean parameters times vectors.

    See section 2.2 and appendix A.1 of Nonnenmacher and Sahani.

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
    rest = vectors - inner
    return np.asarray(along[..., np.newaxis] * inner + across[..., np.newaxis] * rest)


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

    Notes
    -----
    With lengths r and s and directions m and n it is the divergence of psi from r to s plus psi'(s)
    r ||m - n||^2 / 2. For r close to s, an integral of (r - t) psi''(t) keeps the digits of the
    first.

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
    gap = m - n
    turn = 0.5 * np.einsum("...i,...i->...", gap, gap)
    return _radial_divergence(r, s, m.shape[-1]) + concentration(s, m.shape[-1]) * r * turn


def _radial_divergence(r: Array, s: Array, d: int) -> Values:
    """Return psi(r) - psi(s) - psi'(s) (r - s)."""
    r, s = np.broadcast_arrays(r, s)
    close = np.abs(r - s) <= 0.1 * (1 - np.maximum(r, s))
    far = negentropy(r, d) - negentropy(s, d) - concentration(s, d) * (r - s)
    fractions = 0.5 * (1 + _NODES)
    t = s[..., np.newaxis] + (r - s)[..., np.newaxis] * fractions
    curvature = negentropy(t, d, order=2) @ (0.5 * _NODE_WEIGHTS * (1 - fractions))
    return np.where(close, (r - s) ** 2 * curvature, far)[()]


def _hessian_eigenvalues(mean: ArrayLike) -> tuple[Array, Array, Array]:
    """Return mean directions and the eigenvalues of the Hessian along and across them."""
    direction, lengths = split(mean)
    d = direction.shape[-1]
    along = np.asarray(negentropy(lengths, d, order=2))
    positive = np.where(lengths > 0, lengths, 1.0)
    across = np.where(lengths > 0, concentration(lengths, d) / positive, float(d))
    return direction, along, across
