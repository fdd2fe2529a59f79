"""Differentiable maps onto the simplex: softmax, sparsemax and alpha-entmax."""

import math

import torch

from ..distributions._arguments import checked_alpha

# Newton from the left takes 4 to 9 steps for alpha <= 2; halving the bracket, one for each bit.
MAX_STEPS = 64


def entmax(scores, alpha, dim=-1):
    """Map scores to probabilities, sparse ones for alpha > 1; differentiable.

    The same map as :func:`skvmf.distributions.simplex.entmax`, for tensors on any device. Half
    precision is computed in float32.

    Parameters
    ----------
    scores : Tensor
        Floating-point scores; -inf forbids an entry. Where an entry is nan or +inf, or all are
        -inf, the probabilities are nan, as for ``torch.softmax``.
    alpha : float
        At least 1: softmax. 2 is sparsemax. One number, without a gradient.
    dim : int, default=-1
        The dimension along which the probabilities sum to 1.

    Returns
    -------
    Tensor
        The probabilities, of the shape and dtype of `scores`.

    Raises
    ------
    ValueError
        If alpha is below 1 or not finite.
    TypeError
        If the scores are not of a floating-point dtype.

    Notes
    -----
    With s = p^(2 - alpha) on the support and 0 elsewhere, the Jacobian is
    diag(s) - s s' / sum(s): the backward pass costs a few products whatever alpha is, and can
    be differentiated again. ``vmap``, ``grad`` and ``jacrev`` of ``torch.func`` go through it, and
    ``torch.compile`` without ``fullgraph``.

    References
    ----------
    .. [1] Sklaviadis et al., "Fenchel-Young variational learning", eq. 8 and 15.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import entmax
    >>> scores = torch.tensor([1.0, 0.5, -2.0], requires_grad=True)
    >>> p = entmax(scores, alpha=2)
    >>> p.detach()
    tensor([0.7500, 0.2500, 0.0000])
    >>> p[0].backward()
    >>> scores.grad
    tensor([ 0.5000, -0.5000,  0.0000])
    """
    alpha = checked_alpha(alpha)
    wide = checked_scores(scores)
    if alpha == 1 or wide.dim() == 0 or wide.numel() == 0:  # all are the same for one or none
        return torch.softmax(wide, dim).to(scores.dtype)
    return _Entmax.apply(wide.movedim(dim, -1), alpha).movedim(-1, dim).to(scores.dtype)


def binary_entmax(scores, alpha):
    """Map each score to the probability of its class against a class of score 0.

    Parameters
    ----------
    scores : Tensor
        Floating-point scores.
    alpha : float
        At least 1: the logistic function. For 2, probabilities are (1 + score) / 2 between
        the scores -1 and 1, and exactly 0 and 1 beyond.

    Returns
    -------
    Tensor
        The probabilities, of the shape and dtype of `scores`.

    Raises
    ------
    ValueError
        If alpha is below 1 or not finite.
    TypeError
        If the scores are not of a floating-point dtype.

    See Also
    --------
    BinaryEntmaxLoss : The loss whose gradient is ``binary_entmax(scores) - target``.

    References
    ----------
    .. [1] Sklaviadis et al., "Fenchel-Young variational learning", section 4.2.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import binary_entmax
    >>> binary_entmax(torch.tensor([-2.0, 0.0, 0.5]), alpha=2)
    tensor([0.0000, 0.5000, 0.7500])
    """
    alpha = checked_alpha(alpha)
    wide = checked_scores(scores)
    if alpha == 1:
        p = torch.sigmoid(wide)
    elif alpha == 2:
        p = (0.5 * wide + 0.5).clamp(0, 1)
    else:
        p = entmax(torch.stack([wide, torch.zeros_like(wide)], dim=-1), alpha)[..., 0]
    return p.to(scores.dtype)


def checked_scores(scores):
    """Return scores in single precision at least, or raise a TypeError if they are not numbers."""
    if not scores.is_floating_point():
        raise TypeError(f"scores must be of a floating-point dtype, not {scores.dtype}.")
    return widened(scores)


def widened(values):
    """Return half precision as float32: half of it is too coarse for sums and for Newton."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def negentropy_terms(p, alpha):
    """Return terms that add up to the Tsallis negative entropy of probabilities that sum to 1.

    Each is p (p^(alpha - 1) - 1) / (alpha (alpha - 1)), which keeps its digits as alpha tends
    to 1 and p log p.
    """
    if alpha == 1:
        return torch.xlogy(p, p)
    if alpha == 2:
        return 0.5 * p * (p - 1)
    logs = torch.where(p > 0, p, 1).log()
    return p * torch.expm1((alpha - 1) * logs) / (alpha * (alpha - 1))


class _Entmax(torch.autograd.Function):
    """alpha-entmax along the last dimension, alpha > 1."""

    @staticmethod
    def forward(scores, alpha):
        solve = _newton if alpha <= 2 else _bisect
        p = solve(scores - scores.amax(-1, keepdim=True), alpha - 1)
        return p / p.sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.alpha = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def vmap(info, in_dims, scores, alpha):
        return _Entmax.apply(scores.movedim(in_dims[0], 0), alpha), 0

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        inside = p > 0
        slopes = torch.where(inside, torch.where(inside, p, 1) ** (2 - ctx.alpha), 0)
        flow = slopes * grad
        return flow - slopes * flow.sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True), None


def _newton(gaps, c):
    """Solve sum (1 + c (gap - T))_+^(1/c) = 1 for T, with 0 < c <= 1; return the terms.

    Newton's method on the norm f^c, which is convex: from T = 0 it never passes the solution.
    """
    shift = torch.zeros_like(gaps[..., :1])
    tolerance = 4 * torch.finfo(gaps.dtype).eps
    for _ in range(MAX_STEPS):
        p, slope = _power((c * (gaps - shift)).clamp_(min=-1), c)
        total = p.sum(-1, keepdim=True)
        step = -total * torch.expm1(-c * total.log()) / (c * slope)
        shift += step
        if not (step > tolerance).any():
            break
    return p


def _power(excess, c):
    """Return p = (1 + excess)^(1/c) and sum p^(1 - c), for two c without logarithms."""
    base = 1 + excess
    if c == 1:
        return base, (base > 0).sum(-1, keepdim=True)
    if c == 0.5:
        return base * base, base.sum(-1, keepdim=True)
    p = (torch.log1p(excess) / c).exp()
    return p, (p / torch.where(base > 0, base, 1)).sum(-1, keepdim=True)


def _bisect(gaps, c):
    """Solve the same equation for c > 1, where the norm is not convex, bit by bit.

    In float64: the rounding of a term of size u is (1/c) u^(1/c - 1) times as large in p.
    """
    scaled = c * gaps.double()
    low = torch.full_like(scaled[..., :1], -1.0)
    width = -math.expm1(-c * math.log(gaps.shape[-1]))
    for _ in range(MAX_STEPS):
        width /= 2
        terms = (scaled - (low + width)).clamp_(min=0) ** (1 / c)
        low = torch.where(terms.sum(-1, keepdim=True) >= 1, low + width, low)
    return ((scaled - low).clamp_(min=0) ** (1 / c)).to(gaps.dtype)
