"""Maps onto the simplex, softmax, sparsemax and alpha-entmax, and their Fenchel-Young losses."""

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import binary_cross_entropy_with_logits

from ..distributions._arguments import checked_alpha

# Inputs of losses: scores, target and alpha.
Inputs = tuple[Tensor, Tensor, float]

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda loss: loss,
    "mean": torch.mean,
    "sum": torch.sum,
}

# A limit that is not reached: Newton's method takes 4 to 9 steps for alpha <= 2, and hardly more
# above.
MAX_STEPS = 64

# Numbers of a tensor that a core keeps in its cache: 1 MiB in float32.
CACHED_SIZE = 2**18

# The largest of the slopes p^(2 - alpha): their sums stay finite in float64.
MAX_SLOPE = 1e250


def entmax(scores: Tensor, alpha: float, dim: int = -1) -> Tensor:
    """Map scores to probabilities, sparse ones for alpha > 1; differentiable.

    Half precision is computed in float32. See Sklaviadis et al., "Fenchel-Young variational
    learning", eq. 8 and 15.

    Parameters
    ----------
    scores : Tensor
        Floating-point scores; -inf forbids an entry beside others. Where the largest score is
        infinite, all that equal it have the same probability, and others none: the limit for large
        scores. Probabilities are nan if an entry is nan.
    alpha : float
        At least 1, which is softmax; 2 is sparsemax. One number without a gradient.
    dim : int, default=-1
        The dimension along which the probabilities sum to 1.

    Returns
    -------
    Tensor
        The probabilities, with the shape and dtype of `scores`.

    Raises
    ------
    TypeError, ValueError
        If alpha is below 1 or not finite, or the scores are not of a floating-point dtype.

    Notes
    -----
    With s = p^(2 - alpha) on the support and 0 elsewhere, the Jacobian is diag(s) - s s' / sum(s);
    it can be differentiated again. For alpha > 2, derivatives are cut at the dtype's largest number
    (1e250 in float64). ``vmap``, ``grad`` and ``jacrev`` of ``torch.func`` work, and
    ``torch.compile`` without ``fullgraph``.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import entmax
    >>> entmax(torch.tensor([1.0, 0.5, -2.0]), alpha=2)
    tensor([0.7500, 0.2500, 0.0000])
    """
    alpha = checked_alpha(alpha)
    wide = checked_scores(scores)
    # For one score or none, all alphas are the same.
    if wide.dim() == 0 or wide.numel() == 0:
        return torch.softmax(wide.masked_fill(wide.isinf(), 0), dim).to(scores.dtype)
    return _Entmax.apply(wide.movedim(dim, -1), alpha).movedim(-1, dim).to(scores.dtype)


def binary_entmax(scores: Tensor, alpha: float) -> Tensor:
    """Map each score to the probability of its class against a class of score 0.

    See Sklaviadis et al., "Fenchel-Young variational learning", section 4.2.

    Parameters
    ----------
    scores : Tensor
        Floating-point scores.
    alpha : float
        At least 1, which is the logistic function. For 2, probabilities are (1 + score) / 2 between
        the scores -1 and 1, and exactly 0 and 1 beyond.

    Returns
    -------
    Tensor
        The probabilities, with the shape and dtype of `scores`.

    Raises
    ------
    TypeError, ValueError
        As `entmax`.

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


def checked_scores(scores: Tensor) -> Tensor:
    """Return scores in at least single precision, or raise a TypeError if they are not floats."""
    if not scores.is_floating_point():
        raise TypeError(f"scores must be of a floating-point dtype, not {scores.dtype}.")
    return widened(scores)


def widened(values: Tensor) -> Tensor:
    """Return half precision as float32, which sums and Newton's method need."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def by_rows(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Apply a function of rows; on a CPU to parts that fit its caches: in a third of the time."""
    first = tensors[0]
    if first.device.type != "cpu" or first.dim() < 2:
        return function(*tensors)
    n_rows = max(1, CACHED_SIZE * torch.get_num_threads() * len(first) // max(1, first.numel()))
    if n_rows >= len(first):
        return function(*tensors)
    parts = zip(*(tensor.split(n_rows) for tensor in tensors), strict=True)
    return torch.cat([function(*part) for part in parts])


def negentropy_terms(p: Tensor, alpha: float) -> Tensor:
    """Return the terms of the Tsallis negative entropy of probabilities that sum to 1.

    Each is p (p^(alpha - 1) - 1) / (alpha (alpha - 1)), accurate also as alpha tends to 1.
    """
    if alpha == 1:
        return torch.xlogy(p, p)
    if alpha == 2:
        return 0.5 * p * (p - 1)
    if alpha == 1.5:
        # Roots of zeros take long, and where p is that small they change nothing.
        roots = p.clamp(min=torch.finfo(p.dtype).eps ** 2).sqrt()
        return p * (p - 1) / (0.75 * roots + 0.75)
    logs = torch.where(p > 0, p, 1).log()
    return p * torch.expm1((alpha - 1) * logs) / (alpha * (alpha - 1))


class _Entmax(torch.autograd.Function):
    """alpha-entmax along the last dimension."""

    @staticmethod
    def forward(scores: Tensor, alpha: float) -> Tensor:
        if alpha == 1:
            return torch.softmax(_with_finite_top(scores)[0], -1)
        solve = _newton_of_dense if alpha <= 2 else _newton_of_few
        p = by_rows(lambda part: solve(*_with_finite_top(part), alpha - 1), scores)
        return p / p.sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, float], output: Tensor) -> None:
        _, ctx.alpha = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int, None], scores: Tensor, alpha: float
    ) -> tuple[Tensor, int]:
        return _Entmax.apply(scores.movedim(in_dims[0], 0), alpha), 0

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        product = _gentle_product if ctx.alpha <= 2 else _steep_product
        return product(p, grad, ctx.alpha), None


def _with_finite_top(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores and their largest: 0 for an infinite one, beside which others are -inf."""
    top = scores.amax(-1, keepdim=True)
    infinite = top.isinf()
    if infinite.any():
        scores = torch.where(infinite, torch.where(scores == top, 0, -math.inf), scores)
        top = top.masked_fill(infinite, 0)
    return scores, top


def _gentle_product(p: Tensor, grad: Tensor, alpha: float) -> Tensor:
    """Return the Jacobian times a vector for alpha <= 2, for which slopes are at most 1."""
    if alpha == 1:
        flow = p * grad
        return flow - p * flow.sum(-1, keepdim=True)
    inside = p > 0
    slopes = torch.where(inside, torch.where(inside, p, 1) ** (2 - alpha), 0)
    flow = slopes * grad
    return flow - slopes * flow.sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True)


def _steep_product(p: Tensor, grad: Tensor, alpha: float) -> Tensor:
    """Return the same for alpha > 2, for which slopes grow without limit as p tends to 0.

    A constant added to the vector changes nothing: take the one that is zero at the steepest slope.
    """
    dtype = p.dtype
    limit = torch.finfo(dtype).max
    p = p.double()
    grad = grad.double()
    inside = p > 0
    powers = (2 - alpha) * torch.where(inside, p, 1).log()
    slopes = torch.where(inside, powers.clamp(max=math.log(MAX_SLOPE)).exp(), 0)
    flow = slopes * (grad - grad.gather(-1, slopes.argmax(-1, keepdim=True)))
    weights = slopes / slopes.sum(-1, keepdim=True)
    product = flow - weights * flow.sum(-1, keepdim=True)
    return product.clamp(-limit, limit).to(dtype)


def _newton_of_dense(scores: Tensor, largest: Tensor, c: float) -> Tensor:
    """Solve sum (1 + c (z - max(z) - T))_+^(1/c) = 1 for T, with 0 < c <= 1; return the terms.

    Newton's method on the norm f^c, which is convex: from T = 0 it never passes the solution.
    """
    gaps = scores - largest
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


def _power(excess: Tensor, c: float) -> tuple[Tensor, Tensor]:
    """Return p = (1 + excess)^(1/c) and sum p^(1 - c), for two c without logarithms."""
    base = 1 + excess
    if c == 1:
        return base, (base > 0).sum(-1, keepdim=True)
    if c == 0.5:
        return base * base, base.sum(-1, keepdim=True)
    p = (torch.log1p(excess) / c).exp()
    return p, (p / torch.where(base > 0, base, 1)).sum(-1, keepdim=True)


def _newton_of_few(scores: Tensor, largest: Tensor, c: float) -> Tensor:
    """Solve the same equation for c > 1, for which T has fewer digits than the terms need.

    Scores within 1 / c of the largest are converted to float64. With v the smallest positive term
    and g >= 0 the excess of c z over its score, p = (g + v^c)^(1/c). The sum is convex in v with a
    slope of at least 1, and Newton falls from v = 1 / count.
    """
    near = (scores - largest >= -1 / c).sum(-1)
    top, columns = scores.topk(max(1, int(near.max())), -1)
    top = top.double()
    gaps = c * (top - _last_of_support(top, c))
    is_last = gaps == 0
    is_above = gaps > 0
    # Below the last there are no terms, and powers of negative gaps would be nan.
    gaps = gaps.clamp(min=0)
    v = 1 / (is_last | is_above).sum(-1, keepdim=True).double()
    tolerance = 4 * torch.finfo(v.dtype).eps
    for _ in range(MAX_STEPS):
        p = torch.where(is_above, (gaps + v**c) ** (1 / c), is_last * v)
        slope = torch.where(is_above, (v / p) ** (c - 1), is_last).sum(-1, keepdim=True)
        step = (p.sum(-1, keepdim=True) - 1) / slope
        v = (v - step).clamp(min=0)
        if not (step > tolerance).any():
            break
    return torch.zeros_like(scores).scatter(-1, columns, p.to(scores.dtype))


def _last_of_support(top: Tensor, c: float) -> Tensor:
    """Return the smallest score in the support, by bisection of scores in falling order.

    Score i is in it if and only if sum_j (c (z_j - z_i))_+^(1/c) < 1.
    """
    # The largest is always in it.
    low = torch.zeros_like(top[..., :1], dtype=torch.int64)
    high = low + top.shape[-1] - 1
    for _ in range((top.shape[-1] - 1).bit_length()):
        middle = (low + high + 1) // 2
        terms = (c * (top - top.gather(-1, middle))).clamp(min=0) ** (1 / c)
        inside = terms.sum(-1, keepdim=True) < 1
        low = torch.where(inside, middle, low)
        high = torch.where(inside, high, middle - 1)
    return top.gather(-1, low)


class _EntmaxLoss(torch.nn.Module):
    """The base class of both losses, which define `_loss` of scores, target and alpha."""

    _loss: Callable[[Tensor, Tensor, float], Tensor]

    def __init__(
        self, alpha: float = 1.5, *, reduction: Literal["mean", "sum", "none"] = "mean"
    ) -> None:
        super().__init__()
        self.alpha = checked_alpha(alpha)
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {list(REDUCTIONS)}, not {reduction!r}.")
        self.reduction = reduction

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha:g}, reduction={self.reduction!r})"

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        scores, target : Tensor
            Scores, and counts or proportions of the classes along the last dimension or, of a
            :class:`BinaryEntmaxLoss`, values from 0 to 1, in the same shape.

        Returns
        -------
        Tensor
            The loss, by the reduction.
        """
        if scores.shape != target.shape:
            raise ValueError(
                f"scores and target must have one shape, not {tuple(scores.shape)} and "
                f"{tuple(target.shape)}. Convert class indices with torch.nn.functional.one_hot."
            )
        if target.requires_grad:
            raise ValueError("The loss has no gradient in the target: detach it.")
        scores = checked_scores(scores)
        return REDUCTIONS[self.reduction](self._loss(scores, target.to(scores.dtype), self.alpha))


class EntmaxLoss(_EntmaxLoss):
    """The Fenchel-Young loss of scores for counts or proportions.

    It is zero if ``entmax(scores, alpha)`` is the target and positive otherwise. Its gradient is
    their difference. See Sklaviadis et al., "Fenchel-Young variational learning", section 4.3.

    Parameters
    ----------
    alpha : float, default=1.5
        At least 1, which is the cross-entropy of softmax minus the target's entropy. 2 is the
        sparsemax loss.
    reduction : {'mean', 'sum', 'none'}, default='mean'
        Mean or sum over the rows, or one loss per row.

    Raises
    ------
    TypeError, ValueError
        If alpha or the reduction is out of range, scores are no floats or differ in shape from the
        target, or the target requires a gradient.

    Notes
    -----
    Counts have the loss of their proportions times their sum; a row of zeros has loss zero. The
    values of targets are not checked. Infinite scores have the limits of large ones: the loss is
    inf if the target has a share where there is no probability, and the gradient is finite. Half
    precision is computed in float32, and so is the loss. It can be differentiated twice.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import EntmaxLoss
    >>> loss = EntmaxLoss(alpha=2, reduction="none")
    >>> scores = torch.tensor([[1.0, 0.5, -2.0], [1.0, 0.5, -2.0]])
    >>> loss(scores, torch.tensor([[0.75, 0.25, 0.0], [0.0, 2.0, 0.0]]))
    tensor([0.0000, 1.1250])
    """

    @staticmethod
    def _loss(scores: Tensor, target: Tensor, alpha: float) -> Tensor:
        return by_rows(lambda *part: _Categorical.apply(*part, alpha)[0], scores, target)


class BinaryEntmaxLoss(_EntmaxLoss):
    """The Fenchel-Young loss of scores for values in [0, 1], one loss per value.

    It is zero if ``binary_entmax(scores, alpha)`` is the target and positive otherwise. Its
    gradient is their difference. See Sklaviadis et al., "Fenchel-Young variational learning",
    section 4.2.

    Parameters
    ----------
    alpha : float, default=1.5
        At least 1, which is the logistic loss minus the target's entropy. For 2, the loss is (p -
        y) (s + 1 - p - y) with p = binary_entmax(s): zero beyond a score of 1 on the right side.
    reduction : {'mean', 'sum', 'none'}, default='mean'
        Mean or sum over all values, or one loss per value.

    See Also
    --------
    EntmaxLoss : The loss for several classes; the notes and errors there apply here.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import BinaryEntmaxLoss
    >>> loss = BinaryEntmaxLoss(alpha=2, reduction="none")
    >>> loss(torch.tensor([0.0, 3.0, -3.0]), torch.tensor([1.0, 1.0, 1.0]))
    tensor([0.2500, 0.0000, 3.0000])
    """

    @staticmethod
    def _loss(s: Tensor, y: Tensor, alpha: float) -> Tensor:
        if alpha in (1, 2):
            return _Binary.apply(s, y, alpha)
        scores = torch.stack([s, torch.zeros_like(s)], dim=-1)
        return EntmaxLoss._loss(scores, torch.stack([y, 1 - y], dim=-1), alpha)


class _Categorical(torch.autograd.Function):
    """Total times the loss, and its gradient: ``torch.func`` saves inputs and outputs only."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, target: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
        totals, y = _proportions(target)
        p = entmax(scores, alpha)
        difference = p - y
        gaps = scores - scores.amax(-1, keepdim=True)
        # Nothing where both are 0 and the gap is not finite, nor between equal infinite scores.
        terms = (difference * gaps).nan_to_num(0, math.inf, -math.inf)
        terms += negentropy_terms(y, alpha) - negentropy_terms(p, alpha)
        # By rounding their sum may be below 0.
        losses = terms.sum(-1).clamp(min=0)
        return totals[..., 0] * losses, totals * difference

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: Inputs, output: tuple[Tensor, Tensor]) -> None:
        scores, target, ctx.alpha = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(scores, target, output[1])

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        scores, target, slopes = ctx.saved_tensors
        # Gradients that will be differentiated again are computed from the scores.
        if torch.is_grad_enabled():
            totals, y = _proportions(target)
            slopes = totals * (entmax(scores, ctx.alpha) - y)
        return grad[..., None] * slopes, None, None


def _proportions(target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of each row, and its proportions."""
    totals = target.sum(-1, keepdim=True)
    return totals, target / torch.where(totals > 0, totals, 1)


class _Binary(torch.autograd.Function):
    """The binary loss for alpha = 1 and 2, in closed form."""

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, y: Tensor, alpha: float) -> Tensor:
        p = binary_entmax(s, alpha)
        if alpha == 2:
            loss = (p - y) * (s + 1 - p - y)
        else:
            loss = binary_cross_entropy_with_logits(s, y, reduction="none")
            loss += torch.xlogy(y, y) + torch.xlogy(1 - y, 1 - y)
        # Of infinite scores the limit, and not below 0 by rounding.
        return torch.where(s.isinf(), torch.where(p == y, 0, math.inf), loss.relu_())

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: Inputs, output: Tensor) -> None:
        s, y, ctx.alpha = inputs
        ctx.save_for_backward(s, y)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        s, y = ctx.saved_tensors
        return grad * (binary_entmax(s, ctx.alpha) - y), None, None
