"""Differentiable maps onto the simplex, beside the same maps with many digits."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacrev, vmap

from skvmf.neural import binary_entmax, entmax

from ..pairwise import pairwise
from . import exact

ALPHAS = [1.0, 1.25, 4 / 3, 1.5, 2.0, 3.0]
LARGE = [4.0, 10.0, 50.0]
INF, NAN = np.inf, np.nan
INFINITE = [
    [INF, 0, 1, -INF],
    [INF, 2, INF, -INF],
    [-INF, -INF, -INF, -INF],
    [-INF, 1, 0.5, -INF],
    [-INF, 1, INF, 1],
]


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


SCORES = {
    "random": np.random.default_rng(0).normal(size=(2, 4)),
    "spread": 3 * np.random.default_rng(1).normal(size=(2, 5)),
    "ties": [[1.0, 1, 1, 0.5], [0.5, 0.5, -3, -3]],
    "forbidden": [[0.3, -INF, 0.1], [-INF, 0.2, -INF], [0.5, 0.5, -INF]],
    "one": [[0.7], [-2.0]],
    "equal": [0.0, 0, 0],
}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_derivatives(scores, alpha):
    assert gradcheck(lambda z: entmax(z, alpha), leaf(scores))
    assert gradgradcheck(lambda z: entmax(z, alpha), leaf(scores))


CLOSE = {  # scores times alpha: a share is lost where they are 1 apart
    "two": [[0.0, -0.3], [0.0, -1e-3], [-0.999, 0.0], [0.0, -1e-14], [1.0, 3.5]],
    "random": 0.1 * np.random.default_rng(2).normal(size=(3, 6)),
    "ties": [[0.0, 0, -0.5, -0.5, -0.5, -1], [0.1, 0, 0, 0, 0, 0], [7.0, 7, 7, 7, 7, 7]],
    "apart": 5 * np.random.default_rng(3).normal(size=(3, 6)),
}


@pairwise(
    alpha=[1.0, 1 + 1e-5, 1.01, 1.05, 1.2, 1.5, 2.0, 3.0, 6.0, 10.0, 50.0, 100.0],
    kind=CLOSE,
    dtype=[torch.float32, torch.float64],
)
def test_values_and_derivatives_with_many_digits(alpha, kind, dtype):
    eps = torch.finfo(dtype).eps
    for row in CLOSE[kind]:
        z = torch.tensor(row, dtype=dtype) / alpha
        shares = exact.entmax(z, alpha)
        p = exact.floats(shares)
        np.testing.assert_allclose(entmax(z, alpha).numpy(), p, rtol=0, atol=4 * eps)
        result = torch.autograd.functional.jacobian(lambda z: entmax(z, alpha), z).numpy()
        expected = exact.floats(exact.entmax_jacobian(shares, alpha), result.dtype)
        # a share's slope is its power of 2 - alpha, and the share has an error of eps
        rounding = 4 * alpha * eps / p[p > 0].min()
        np.testing.assert_allclose(result, expected, rtol=rounding, atol=0 if alpha > 2 else eps)


@pairwise(
    alpha=[1.01, 1.5, 2.0, 2.1, 6.0, 50.0],
    spread=[1e-4, 0.02, 3.0],
    dtype=[torch.float32, torch.float64],
)
def test_wide_rows(alpha, dtype, spread, rng):
    """All shares to the power c are scores less one threshold, and their sum is 1."""
    scores = torch.from_numpy(spread * rng.normal(size=(2, 50_000))).to(dtype).requires_grad_()
    p, c = entmax(scores, alpha), alpha - 1
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(p.double().sum(-1), torch.ones(2).double(), rtol=0, atol=64 * eps)
    z, shares = scores.detach().double(), p.detach().double()
    inside = shares > 0
    thresholds = torch.where(inside, z - shares**c / c, torch.inf)
    least = thresholds.amin(-1, keepdim=True)
    most = torch.where(inside, thresholds, -torch.inf).amax(-1, keepdim=True)
    assert (most - least <= 64 * eps * (1 / c + z.abs().amax())).all()
    assert (z[~inside] <= most.expand_as(z)[~inside]).all()
    p.square().sum().backward()
    assert scores.grad.isfinite().all()
    # what is added to all scores changes nothing
    terms = scores.grad.double().abs() if alpha > 2 else 2 * shares ** (3 - alpha)
    assert (scores.grad.double().sum(-1).abs() <= 64 * eps * terms.sum(-1)).all()


@pytest.mark.parametrize("alpha", [3.0, 6.0, 50.0, 1e3, 1e10, 1e300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_are_never_nan(alpha, dtype):
    """Where they are beyond the largest number they are that number."""
    rows = [[0.0] * 9, [1, 1, 0, 0, 0, 0, 0, 0, 0], [1e30, 1, 1, 0, 0, 0, 0, 0, -1e30]]
    scores = torch.tensor(rows, dtype=dtype, requires_grad=True)
    p = entmax(scores, alpha)
    expected = [[1 / 9] * 9, [0.5, 0.5, *[0.0] * 7], [1.0, *[0.0] * 8]]
    torch.testing.assert_close(p, torch.tensor(expected, dtype=dtype))
    for i in range(9):
        (grad,) = torch.autograd.grad(p[:, i].sum(), scores, retain_graph=True)
        assert grad.isfinite().all()
        assert grad[0, i] > 0
        assert (grad[2] == 0).all()


@pytest.mark.parametrize("alpha", [*ALPHAS, *LARGE])
def test_huge_and_forbidden_scores(alpha):
    scores = [[1e15, -1e15, 1e15], [-INF, 0.0, -INF], [-1e300, 1e300, 0.0]]
    expected = [[0.5, 0, 0.5], [0, 1, 0], [0, 1, 0]]
    p = entmax(torch.tensor(scores, dtype=torch.float64), alpha)
    np.testing.assert_allclose(p, expected, atol=1e-15)
    near = entmax(1e15 + torch.tensor([0.0, 0.25, -1], dtype=torch.float64), alpha)
    far = entmax(torch.tensor([0.0, 0.25, -1], dtype=torch.float64), alpha)
    torch.testing.assert_close(near, far, rtol=0, atol=1e-15)


@pytest.mark.parametrize("alpha", [*ALPHAS, *LARGE])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_infinite_scores_are_the_limit_of_large_ones(alpha, dtype):
    """The largest take all, in equal parts; -inf beside a finite score takes none."""
    infinite = torch.tensor(INFINITE, dtype=dtype, requires_grad=True)
    large = infinite.detach().double().clamp(-1e30, 1e30).requires_grad_()
    weights = torch.tensor([1.0, -2, 3, 0.5])
    result, expected = (
        (p, *torch.autograd.grad((p * weights).sum(), scores))
        for scores in (infinite, large)
        for p in [entmax(scores, alpha)]
    )
    for one, other in zip(result, expected, strict=True):
        torch.testing.assert_close(one, other.to(dtype))
    pair = infinite.detach()[:, 0].requires_grad_()
    p = binary_entmax(pair, alpha)
    torch.testing.assert_close(p, (pair > 0).to(dtype))
    assert torch.autograd.grad(p.sum(), pair)[0].count_nonzero() == 0
    assert entmax(infinite[0, 0], alpha) == 1  # a row of one score


@pytest.mark.parametrize("alpha", [*ALPHAS, *LARGE])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_with_nan_is_nan_and_leaves_others_alone(alpha, dtype):
    rows = [[NAN, 0, 1], [1, NAN, -INF], [INF, 1, NAN], [1, 0, 0.5]]
    p = entmax(torch.tensor(rows, dtype=dtype), alpha)
    assert p[:3].isnan().all()
    torch.testing.assert_close(p[3], entmax(torch.tensor([1, 0, 0.5], dtype=dtype), alpha))
    assert binary_entmax(torch.tensor([NAN, 0.5], dtype=dtype), alpha).isnan().tolist() == [1, 0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_binary_map_is_that_of_two_classes(alpha):
    scores = torch.linspace(-6, 6, 101, dtype=torch.float64).reshape(1, 101)
    p = binary_entmax(scores, alpha)
    pair = entmax(torch.stack([scores, 0 * scores], dim=0), alpha, dim=0)
    torch.testing.assert_close(p, pair[0], rtol=0, atol=1e-15)
    torch.testing.assert_close(1 - p, binary_entmax(-scores, alpha), rtol=0, atol=1e-15)
    assert binary_entmax(torch.tensor(0.0), alpha) == 0.5
    assert binary_entmax(scores.float(), alpha).dtype == torch.float32


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_that_of_single_precision_rounded(alpha, dtype):
    generator = torch.Generator().manual_seed(0)
    many = 0.02 * torch.randn(1, 128_000, generator=generator)
    few = 3 * torch.randn(20, 6, generator=generator)
    for function in (entmax, binary_entmax):
        for scores in (few.to(dtype), many.to(dtype)):
            p = function(scores, alpha)
            assert p.dtype == dtype
            assert torch.equal(p, function(scores.float(), alpha).to(dtype))
        leaf = few.to(dtype).requires_grad_()
        function(leaf, alpha).square().sum().backward()
        assert leaf.grad.dtype == dtype
        assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("function", [entmax, binary_entmax])
def test_transforms_of_functions(function, alpha, rng):
    scores = torch.from_numpy(rng.normal(size=(4, 3, 5)))
    expected = function(scores, alpha)
    for dim in range(2):
        result = vmap(lambda z: function(z, alpha), in_dims=dim, out_dims=dim)(scores)
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-15)
    jacobians = vmap(vmap(jacrev(lambda z: function(z, alpha))))(scores)
    expected = torch.autograd.functional.jacobian(lambda z: function(z, alpha), scores[1, 2])
    torch.testing.assert_close(jacobians[1, 2], expected, rtol=0, atol=1e-15)


NUMBER = "alpha must be a finite number of at least 1"
MANY = r"alpha should be one number, not .* shape \(2,\)"


@pytest.mark.parametrize("function", [entmax, binary_entmax])
@pytest.mark.parametrize(
    ("scores", "alpha", "error", "message"),
    [
        *[(torch.zeros(2), alpha, ValueError, NUMBER) for alpha in (0.99, 0, -1, NAN, INF)],
        *[(torch.zeros(2), f([1.5, 2.0]), ValueError, MANY) for f in (list, torch.tensor)],
        (torch.zeros(2), leaf(1.5), ValueError, r"alpha should be .* requires grad"),
        *[(torch.tensor([1, 2]), alpha, TypeError, "floating-point") for alpha in ALPHAS],
    ],
)
def test_bad_arguments_are_refused(function, scores, alpha, error, message):
    with pytest.raises(error, match=message):
        function(scores, alpha)


@pytest.mark.parametrize("function", [entmax, binary_entmax])
def test_alpha_may_be_a_tensor(function):
    assert torch.equal(function(torch.ones(2), torch.tensor(1.5)), function(torch.ones(2), 1.5))
