"""Fenchel-Young losses: of arrays, by their definition, and by their gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from torch.autograd import gradcheck
from torch.func import grad, jacrev, vmap

from skvmf.distributions import simplex
from skvmf.neural import BinaryEntmaxLoss, EntmaxLoss, binary_entmax, entmax

ALPHAS = [1.0, 1.25, 4 / 3, 1.5, 2.0, 3.0]
LOSSES = [EntmaxLoss, BinaryEntmaxLoss]
EPS = {torch.float32: 1.2e-7, torch.float64: 2.3e-16}
INF = np.inf


def pairs(rng, *shape):
    """Scores, and proportions of the last dimension."""
    target = rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1])
    target[..., 0, :] = np.eye(shape[-1])[0]
    return torch.from_numpy(2 * rng.normal(size=shape)), torch.from_numpy(target)


@pytest.mark.parametrize(
    ("alpha", "reduction"), zip(ALPHAS, 2 * ["none", "mean", "sum"], strict=True)
)
def test_derivatives(alpha, reduction, rng):
    scores, target = pairs(rng, 2, 2, 3)
    loss = EntmaxLoss(alpha, reduction=reduction)
    assert gradcheck(lambda z: loss(z, 3 * target), scores.requires_grad_())
    loss = BinaryEntmaxLoss(alpha, reduction=reduction)
    assert gradcheck(lambda s: loss(s, target), scores)


@pytest.mark.parametrize("alpha", [1.0, 1 + 1e-5, *ALPHAS[1:], 4.0, 10.0, 50.0])
def test_same_as_for_arrays(alpha, rng):
    scores, target = pairs(rng, 200, 9)
    expected = simplex.fenchel_young_loss(scores.numpy(), target.numpy(), alpha)
    result = EntmaxLoss(alpha, reduction="none")(scores, target)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-14)
    single = EntmaxLoss(alpha, reduction="none")(scores.float(), target.float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_binary_loss_is_that_of_two_classes(alpha, rng):
    s, y = torch.from_numpy(3 * rng.normal(size=100)), torch.from_numpy(rng.random(100))
    y[:20], y[20:40] = 0, 1
    scores, target = torch.stack([s, 0 * s], dim=-1), torch.stack([y, 1 - y], dim=-1)
    expected = EntmaxLoss(alpha, reduction="none")(scores, target)
    result = BinaryEntmaxLoss(alpha, reduction="none")(s, y)
    torch.testing.assert_close(result, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", EPS)
def test_zero_at_the_prediction_only_and_never_below(alpha, dtype, rng):
    scores, target = (x.to(dtype) for x in pairs(rng, 200, 6))
    loss, tiny = EntmaxLoss(alpha, reduction="none"), 4 * EPS[dtype]
    # sums of six terms, each rounded
    at_prediction = loss(scores, entmax(scores, alpha))
    assert 0 <= at_prediction.min() <= at_prediction.max() <= tiny
    assert (loss(scores, target) >= 0).all()
    assert (loss(scores, torch.full_like(scores, 1 / 6)) > 1e-6).all()
    loss = BinaryEntmaxLoss(alpha, reduction="none")
    at_prediction = loss(scores, binary_entmax(scores, alpha))
    assert 0 <= at_prediction.min() <= at_prediction.max() <= tiny
    near = binary_entmax(scores, alpha) + EPS[dtype] * torch.randn_like(scores)
    assert (loss(scores, near.clamp(0, 1)) >= 0).all()
    assert (loss(scores, target) >= 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradient_is_prediction_less_target(alpha, rng):
    scores, target = pairs(rng, 30, 5)
    scores.requires_grad_()
    EntmaxLoss(alpha, reduction="sum")(scores, 7 * target).backward()
    expected = 7 * (entmax(scores, alpha) - target)
    torch.testing.assert_close(scores.grad, expected.detach(), rtol=0, atol=1e-14)
    scores.grad = None
    BinaryEntmaxLoss(alpha, reduction="sum")(scores, target).backward()
    expected = binary_entmax(scores, alpha) - target
    torch.testing.assert_close(scores.grad, expected.detach(), rtol=0, atol=1e-15)


SCORES = [[INF, 0, 1, -INF], [INF, 2, INF, -INF], [-INF] * 4, [-INF, 1, 0.5, -INF]]
TARGETS = [
    [1, 0, 0, 0],
    [0.5, 0, 0.5, 0],
    [0.3, 0, 0.7, 0],
    [0, 0.5, 0.5, 0],
    [0, 0, 0, 1],
    [0] * 4,
]


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_infinite_scores_are_the_limit_of_large_ones(kind, alpha, dtype):
    """The loss is infinite where large scores have a large one, and gradients are theirs."""
    pairs = [(scores, target) for scores in SCORES for target in TARGETS]
    scores, target = (torch.tensor(part, dtype=torch.float64) for part in zip(*pairs, strict=True))
    infinite = scores.to(dtype).requires_grad_()
    large = scores.clamp(-1e30, 1e30).requires_grad_()
    loss = kind(alpha, reduction="none")
    result, expected = loss(infinite, target), loss(large, target)
    expected = torch.where(expected > 1e20, INF, expected).to(result.dtype)
    torch.testing.assert_close(result, expected)
    (slopes,) = torch.autograd.grad(result.sum(), infinite, create_graph=True)
    expected = torch.autograd.grad(loss(large, target).sum(), large)[0]
    torch.testing.assert_close(slopes, expected.to(dtype))
    assert torch.autograd.grad(slopes.square().sum(), infinite)[0].isfinite().all()
    torch.testing.assert_close(
        vmap(grad(kind(alpha, reduction="sum")))(infinite.detach(), target), slopes.detach()
    )


@pytest.mark.parametrize("kind", LOSSES)
def test_reductions(kind, rng):
    scores, target = pairs(rng, 2, 3, 4)
    each = kind(1.5, reduction="none")(scores, target)
    assert each.shape == ((2, 3) if kind is EntmaxLoss else (2, 3, 4))
    torch.testing.assert_close(kind(1.5)(scores, target), each.mean())
    torch.testing.assert_close(kind(1.5, reduction="sum")(scores, target), each.sum())
    one = kind(1.5, reduction="none")(scores[1, 2], target[1, 2])
    torch.testing.assert_close(one, each[1, 2], rtol=0, atol=1e-15)
    assert repr(kind(1.5, reduction="sum")) == f"{kind.__name__}(alpha=1.5, reduction='sum')"


@pytest.mark.parametrize("kind", LOSSES)
def test_bad_arguments_are_refused(kind):
    with pytest.raises(ValueError, match="alpha must be a finite number of at least 1"):
        kind(0.5)
    with pytest.raises(ValueError, match="reduction must be one of"):
        kind(reduction="median")
    for target in (torch.zeros(3, 2), torch.zeros(2), torch.zeros(1, 2, 3)):
        with pytest.raises(ValueError, match=r"one shape, not \(2, 3\) and .*one_hot"):
            kind()(torch.zeros(2, 3), target)
    with pytest.raises(ValueError, match="no gradient in the target: detach it"):
        kind()(torch.zeros(2), torch.zeros(2, requires_grad=True))
    with pytest.raises(TypeError, match=r"floating-point dtype, not torch.int64"):
        kind()(torch.tensor([1, 2]), torch.zeros(2))


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_of_half_precision_are_in_float32(kind, alpha, dtype):
    scores = torch.tensor([[0.5, -1.0, 3.0]], dtype=dtype, requires_grad=True)
    target = torch.tensor([[0.25, 0.0, 0.75]], dtype=dtype)
    loss = kind(alpha)(scores, target)
    assert loss.dtype == torch.float32
    assert loss == kind(alpha)(scores.float(), target.float())
    loss.backward()
    assert scores.grad.dtype == dtype
    if kind is EntmaxLoss:  # of counts beyond half precision
        many = kind(alpha)(scores, 200_000 * target.float())
        torch.testing.assert_close(many, 200_000 * kind(alpha)(scores, target))


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_transforms_of_functions(kind, alpha, rng):
    loss = kind(alpha)
    scores, target = pairs(rng, 4, 3, 5)
    leaf = scores.clone().requires_grad_()
    sum(map(loss, leaf, target)).backward()
    torch.testing.assert_close(vmap(grad(loss))(scores, target), leaf.grad)
    one = vmap(grad(loss), in_dims=(None, 0))(scores[0], target)
    torch.testing.assert_close(one[0], leaf.grad[0])
    one = vmap(grad(loss), in_dims=(0, None))(scores, target[0])
    torch.testing.assert_close(one[0], leaf.grad[0])
    losses = torch.stack(list(map(loss, scores, target)))
    torch.testing.assert_close(vmap(loss)(scores, target), losses)
    result = jacrev(jacrev(loss))(scores[0, 0], target[0, 0])
    second = torch.autograd.functional.hessian(lambda z: loss(z, target[0, 0]), scores[0, 0])
    torch.testing.assert_close(result, second)
