"""Fenchel-Young losses of counts, proportions and values in [0, 1]."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import binary_cross_entropy_with_logits

from ..distributions._arguments import checked_alpha
from ._entmax import binary_entmax, by_rows, checked_scores, entmax, negentropy_terms

Inputs = tuple[Tensor, Tensor, float]  # scores, target and alpha
REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda loss: loss,
    "mean": torch.mean,
    "sum": torch.sum,
}


class _EntmaxLoss(torch.nn.Module):
    """The base class of both losses: alpha and the reduction."""

    def __init__(
        self, alpha: float = 1.5, *, reduction: Literal["mean", "sum", "none"] = "mean"
    ) -> None:
        super().__init__()
        self.alpha = checked_alpha(alpha)
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {list(REDUCTIONS)}, not {reduction!r}.")
        self.reduction = reduction

    def extra_repr(self) -> str:
        """Return the parameters, for the module's representation.

        Returns
        -------
        str
            The parameters and their values.
        """
        return f"alpha={self.alpha:g}, reduction={self.reduction!r}"

    def _reduced(
        self, scores: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor, float], Tensor]
    ) -> Tensor:
        if scores.shape != target.shape:
            raise ValueError(
                f"scores and target must have one shape, not {tuple(scores.shape)} and "
                f"{tuple(target.shape)}. Convert class indices with torch.nn.functional.one_hot."
            )
        if target.requires_grad:
            raise ValueError("The loss has no gradient in the target: detach it.")
        scores = checked_scores(scores)
        return REDUCTIONS[self.reduction](loss(scores, target.to(scores.dtype), self.alpha))


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
    ValueError
        If alpha is below 1 or not finite, the reduction is unknown, scores and target differ in
        shape, or the target requires a gradient.
    TypeError
        If the scores are not of a floating-point dtype.

    See Also
    --------
    skvmf.distributions.simplex.fenchel_young_loss : The same loss for arrays.

    Notes
    -----
    Counts have the loss of their proportions times their sum; a row of zeros has loss zero. The
    values of targets are not checked. Infinite scores have the limits of large ones, as in
    :func:`entmax`: the loss is inf if the target has a share where there is no probability, and the
    gradient is finite. Half precision is computed in float32, and so is the loss. It
    can be differentiated twice in the scores, also by ``torch.func``.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import EntmaxLoss
    >>> loss = EntmaxLoss(alpha=2, reduction="none")
    >>> scores = torch.tensor([[1.0, 0.5, -2.0], [1.0, 0.5, -2.0]])
    >>> loss(scores, torch.tensor([[0.75, 0.25, 0.0], [0.0, 2.0, 0.0]]))
    tensor([0.0000, 1.1250])
    """

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        scores : Tensor of shape (..., n_classes)
            Scores.
        target : Tensor of shape (..., n_classes)
            Counts, or proportions that sum to 1.

        Returns
        -------
        Tensor of shape () or (...)
            The loss, by the reduction.
        """
        return self._reduced(scores, target, _categorical)


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

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        scores, target : Tensor
            Scores, and values from 0 to 1 in the same shape.

        Returns
        -------
        Tensor of shape () or of the scores
            The loss, by the reduction.
        """
        return self._reduced(scores, target, _binary)


def _categorical(scores: Tensor, target: Tensor, alpha: float) -> Tensor:
    return by_rows(lambda *part: _Categorical.apply(*part, alpha)[0], scores, target)


class _Categorical(torch.autograd.Function):
    """Total of the target times the loss of its proportions, and the gradient of this.

    The gradient is an output because ``torch.func`` saves inputs and outputs only.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, target: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
        totals, y = _proportions(target)
        p = entmax(scores, alpha)
        apart = p - y
        gaps = scores - scores.amax(-1, keepdim=True)
        # nothing where both are 0 and the gap is not finite, nor between equal infinite scores
        terms = (apart * gaps).nan_to_num(0, math.inf, -math.inf)
        terms += negentropy_terms(y, alpha) - negentropy_terms(p, alpha)
        return totals[..., 0] * terms.sum(-1).clamp(min=0), totals * apart

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: Inputs, output: tuple[Tensor, Tensor]) -> None:
        scores, target, ctx.alpha = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(scores, target, output[1])

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        scores, target, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # it will be differentiated again
            totals, y = _proportions(target)
            slopes = totals * (entmax(scores, ctx.alpha) - y)
        return grad[..., None] * slopes, None, None


def _proportions(target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of each row, and its proportions."""
    totals = target.sum(-1, keepdim=True)
    return totals, target / torch.where(totals > 0, totals, 1)


def _binary(s: Tensor, y: Tensor, alpha: float) -> Tensor:
    if alpha in (1, 2):
        return _Binary.apply(s, y, alpha)
    scores = torch.stack([s, torch.zeros_like(s)], dim=-1)
    return _categorical(scores, torch.stack([y, 1 - y], dim=-1), alpha)


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
        return torch.where(s.isinf(), torch.where(p == y, 0, math.inf), loss.relu_())

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: Inputs, output: Tensor) -> None:
        s, y, ctx.alpha = inputs
        ctx.save_for_backward(s, y)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        s, y = ctx.saved_tensors
        return grad * (binary_entmax(s, ctx.alpha) - y), None, None
