"""Maps onto the probability simplex and their losses: softmax, sparsemax and alpha-entmax.

With the Tsallis negative entropy Omega(p) = (sum p^alpha - 1) / (alpha (alpha - 1)), or sum p log p
for alpha = 1, alpha-entmax of scores z is the p that maximizes <p, z> - Omega(p). Softmax is alpha
= 1, sparsemax alpha = 2. For alpha > 1 small probabilities are exactly zero. For alpha < 1 they
fall as a power of the gap in scores, more slowly than those of softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from .._kernels import simplex as kernels
from .._typing import Array, Values
from ._arguments import checked_array, checked_positive

__all__ = ["entmax", "fenchel_young_loss", "fenchel_young_posterior", "tsallis_negentropy"]

# A limit that is not reached: Newton's method, for alpha < 1, takes a few steps.
_MAX_ITER = 100


def entmax(scores: ArrayLike, alpha: float, axis: int = -1) -> Array:
    """Map scores to probabilities, sparse ones for alpha > 1.

    See Sklaviadis et al., "Fenchel-Young variational learning", eq. 8 and 15.

    Parameters
    ----------
    scores : array_like
        Scores of any finite size; -inf forbids an entry.
    alpha : float
        Above 0; 1 is softmax. 1.5 and 2 (sparsemax) are the fastest, then 1.25. Below 1 no
        probability is zero.
    axis : int, default=-1
        The axis along which the probabilities sum to 1.

    Returns
    -------
    ndarray of the shape of `scores`
        The probabilities, float32 for float32 scores and float64 otherwise.

    Raises
    ------
    ValueError
        If alpha, the scores or the axis are out of range, or no score is above -inf.

    Notes
    -----
    With c = alpha - 1, p_i = (1 + c (z_i - max(z) - T))_+^(1/c). T is exact for alpha = 1.5 and 2,
    and found by Newton's method otherwise; the absolute error of p is below 1e-15. Softmax is
    exactly zero below exp(-60) of its largest entry, exp(-36) in float32.

    Examples
    --------
    >>> from skvmf.distributions.simplex import entmax
    >>> entmax([1.0, 0.5, -2.0], alpha=2)
    array([0.75, 0.25, 0.  ])
    """
    alpha = checked_positive(alpha, "alpha")
    rows, shape = _rows(checked_array(scores, "scores"), axis, "scores")
    return _restored(_entmax_rows(rows, alpha), shape, axis)


def tsallis_negentropy(p: ArrayLike, alpha: float, axis: int = -1) -> Values:
    """Return the Tsallis negative entropy of probabilities; Shannon's for alpha = 1.

    See Sklaviadis et al., "Fenchel-Young variational learning", eq. 6.

    Parameters
    ----------
    p : array_like
        Probabilities, with sums of 1 along the axis.
    alpha : float
        Above 0.
    axis : int, default=-1
        The axis along which the probabilities sum to 1.

    Returns
    -------
    float or ndarray of float64
        (sum p^alpha - 1) / (alpha (alpha - 1)), or sum p log p for alpha = 1, without `axis`. The
        digits are kept as alpha tends to 1.

    Raises
    ------
    ValueError
        If alpha is not above 0 or not finite, p holds no probabilities, or there is no such axis.

    Examples
    --------
    >>> from skvmf.distributions.simplex import tsallis_negentropy
    >>> print(tsallis_negentropy([0.5, 0.5], alpha=2))
    -0.25
    """
    alpha = checked_positive(alpha, "alpha")
    rows, shape = _rows(checked_array(p, "p"), axis, "p")
    _check_probabilities(rows, "p")
    return _negentropy_rows(rows, alpha).reshape(shape[:-1])[()]


def fenchel_young_loss(
    scores: ArrayLike,
    target: ArrayLike,
    alpha: float,
    axis: int = -1,
    return_gradient: bool = False,
) -> Values:
    """Return the Fenchel-Young loss of scores for target probabilities.

    It is zero if ``entmax(scores)`` is the target and positive otherwise. For alpha = 1 it is the
    Kullback-Leibler divergence of softmax from the target. See Sklaviadis et al., "Fenchel-Young
    variational learning", eq. 8 and 9.

    Parameters
    ----------
    scores : array_like
        Scores z of any finite size; -inf forbids an entry.
    target : array_like
        Target probabilities y, broadcast to the shape of `scores`.
    alpha : float
        Above 0.
    axis : int, default=-1
        The axis along which the probabilities sum to 1.
    return_gradient : bool, default=False
        Whether to return the gradient too.

    Returns
    -------
    loss : float or ndarray of float64
        Omega*(z) - <z, y> + Omega(y), without `axis`; inf if a forbidden entry is in the target, or
        the loss is beyond the largest float.
    gradient : ndarray of the shape of `scores`
        The gradient with respect to `scores`, entmax(z) - y. Only with ``return_gradient=True``.

    Raises
    ------
    ValueError
        As `entmax`, or if the target is negative, does not sum to 1 or does not fit.

    Examples
    --------
    >>> from skvmf.distributions.simplex import fenchel_young_loss
    >>> loss, gradient = fenchel_young_loss([1, 0], [0, 1], alpha=2, return_gradient=True)
    >>> print(loss, gradient)
    1.0 [ 1. -1.]
    """
    alpha = checked_positive(alpha, "alpha")
    scores = checked_array(scores, "scores")
    target = checked_array(target, "target")
    rows, shape = _rows(scores, axis, "scores")
    try:
        target = np.broadcast_to(target, np.atleast_1d(scores).shape)
    except ValueError as error:
        raise ValueError(
            f"target, of shape {target.shape}, does not broadcast to scores of shape "
            f"{scores.shape}."
        ) from error
    y, _ = _rows(target, axis, "target")
    _check_probabilities(y, "target")

    p = _entmax_rows(rows, alpha)
    # Scores are halved, so that their differences are finite.
    halves = 0.5 * rows.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = halves - halves.max(axis=1, keepdims=True)
        # Where p = y there is nothing, also of an infinite gap.
        gain = 2 * np.where(p != y, (p - y) * gaps, 0.0).sum(axis=1)
    loss = gain - _negentropy_rows(p, alpha) + _negentropy_rows(y, alpha)
    # By rounding it may be below 0.
    loss = np.maximum(loss, 0.0).reshape(shape[:-1])[()]
    if not return_gradient:
        return loss
    return loss, _restored((p - y).astype(rows.dtype), shape, axis)


def fenchel_young_posterior(
    losses: ArrayLike, weights: ArrayLike, alpha: float, temperature: float = 1.0
) -> Array:
    """Return responsibilities of alternatives by their losses: an expectation step.

    Any loss per row and alternative, such as the squared error of several regressions, can be
    learned by this step and a weighted fit in turn. See Sklaviadis et al., "Fenchel-Young
    variational learning", eq. 13 and 15.

    Parameters
    ----------
    losses : array_like of shape (..., K)
        The loss of each alternative, such as negative log-densities; +inf excludes it.
    weights : array_like of shape (K,)
        Prior probabilities of the alternatives.
    alpha : float
        Above 0. 1 gives responsibilities proportional to weights * exp(-losses / temperature);
        above 1 they are sparse.
    temperature : float, default=1.0
        Above 0: the price of responsibilities that differ from the weights, the paper's beta.

    Returns
    -------
    ndarray of the shape of `losses`
        The responsibilities q that minimize <q, losses> + temperature * L(eta; q), where L is the
        Fenchel-Young loss and eta = (weights^(alpha - 1) - 1) / (alpha - 1), or log(weights) for
        alpha = 1: ``entmax(eta - losses / temperature)``.

    Raises
    ------
    ValueError
        If an argument is out of range, or losses exclude every alternative of positive weight.

    Examples
    --------
    >>> from skvmf.distributions.simplex import fenchel_young_posterior
    >>> fenchel_young_posterior([[0.0, 0.4], [0.0, 3.0]], [0.5, 0.5], alpha=2)
    array([[0.7, 0.3],
           [1. , 0. ]])
    """
    alpha = checked_positive(alpha, "alpha")
    temperature = checked_positive(temperature, "temperature")
    values = checked_array(losses, "losses")
    prior = checked_array(weights, "weights")
    if values.ndim == 0 or prior.shape != values.shape[-1:]:
        raise ValueError(
            f"weights must have one entry for each column of losses: their shapes are "
            f"{prior.shape} and {values.shape}."
        )
    _check_probabilities(prior[np.newaxis], "weights")
    with np.errstate(divide="ignore"):
        logs = np.log(prior.astype(np.float64))
    eta = logs if alpha == 1 else np.expm1((alpha - 1) * logs) / (alpha - 1)
    dtype = _result_dtype(values)
    offsets = np.where(prior > 0, eta, -np.inf).astype(dtype)
    return entmax(np.subtract(offsets, values / temperature, dtype=dtype), alpha)


def _entmax_rows(rows: Array, alpha: float) -> Array:
    """Return entmax of rows (n, K) for any alpha, or raise a ValueError if one has none."""
    if alpha < 1:
        p, valid = _entmax_below_one(rows, alpha - 1)
    elif alpha == 1:
        p, valid = _softmax(rows)
    else:
        # `zeros_like` would write the zeros, which memory of `zeros` has at no cost.
        p = np.zeros(rows.shape, rows.dtype)
        thresholds = np.empty(len(rows))
        kernels.entmax(rows, alpha, p, thresholds)
        valid = thresholds >= 0
    if not valid.all():
        raise ValueError(
            "scores hold nan, +inf, or nothing but -inf along the axis; the first such slice is "
            f"number {valid.argmin()}."
        )
    return p


def _softmax(rows: Array) -> tuple[Array, Array]:
    """Return softmax of rows (n, K), and which rows have one."""
    n, K = rows.shape
    p = rows.copy()
    slopes = np.ones(n, dtype=rows.dtype)
    offsets = np.zeros(K, dtype=rows.dtype)
    ones = np.ones(n)
    counts = np.zeros(K)
    values = np.empty(n)
    work = kernels.work_space(p)
    kernels.softmax_rows(p, slopes, offsets, ones, ones, counts, values, work)
    return p, (values > -np.inf) & (rows < np.inf).all(axis=1)


def _entmax_below_one(rows: Array, c: float) -> tuple[Array, Array]:
    """Return entmax of rows for -1 < c = alpha - 1 < 0, and which rows have one.

    Newton on sum(p)^c, which is concave and rises with T: from T = 0 it never overshoots.
    """
    tops = rows.max(axis=1, initial=-np.inf)
    valid = np.isfinite(tops) & ~np.isnan(rows).any(axis=1)
    # Gaps of the largest floats may overflow: an infinite gap has probability 0, as -inf has.
    with np.errstate(over="ignore"):
        y = np.where(valid[:, np.newaxis], rows.astype(np.float64), 0.0)
        y -= y.max(axis=1, keepdims=True)

    T = np.zeros(len(y))
    for _ in range(_MAX_ITER):
        b = c * (y - T[:, np.newaxis])
        p = np.exp(np.log1p(b) / c)
        total = p.sum(axis=1)
        slope = (p / (1 + b)).sum(axis=1)
        step = -total * np.expm1(-c * np.log(total)) / (c * slope)
        T += step
        if not np.any(step > 1e-15 * np.maximum(T, 1)):
            break
    return (p / total[:, np.newaxis]).astype(rows.dtype), valid


def _negentropy_rows(rows: Array, alpha: float) -> Array:
    """Return the Tsallis negative entropy of each row of probabilities, in float64."""
    p = rows.astype(np.float64)
    if alpha == 1:
        terms = xlogy(p, p)
    else:
        powers = np.expm1(xlogy(alpha - 1, np.where(p > 0, p, 1.0)))
        terms = p * powers / (alpha * (alpha - 1))
    return np.asarray(np.sum(terms, axis=1))


def _rows(x: Array, axis: int, name: str) -> tuple[Array, tuple[int, ...]]:
    """Return the slices along an axis as contiguous rows, and the shape with it moved last."""
    x = np.atleast_1d(x)
    if not isinstance(axis, int | np.integer) or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis={axis!r} is not an axis of {name}, whose shape is {x.shape}.")
    moved = np.moveaxis(x, axis, -1)
    K = moved.shape[-1]
    if K == 0:
        raise ValueError(f"{name} needs at least one entry along the axis, got shape {x.shape}.")
    rows = moved.reshape(moved.size // K, K)
    return np.ascontiguousarray(rows, dtype=_result_dtype(moved)), moved.shape


def _result_dtype(x: Array) -> type[np.floating[Any]]:
    """Return the type of results: single precision if the argument has it, else double."""
    return np.float32 if x.dtype == np.float32 else np.float64


def _check_probabilities(rows: Array, name: str) -> None:
    """Raise a ValueError unless rows are probabilities, to single precision."""
    sums = rows.sum(axis=1, dtype=np.float64)
    if not np.all(rows >= 0) or not np.all(np.abs(sums - 1) <= 1e-6):
        raise ValueError(f"{name} must hold probabilities: not negative, with sums of 1.")


def _restored(rows: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Undo `_rows`."""
    return np.moveaxis(rows.reshape(shape), -1, axis)
