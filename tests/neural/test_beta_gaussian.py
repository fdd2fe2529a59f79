"""Beta-Gaussians against quadrature of their definition, and as a torch distribution."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

import mpmath
from scipy.optimize import brentq
from scipy.stats import beta, kstest
from torch.autograd import gradcheck

from skvmf.neural import BetaGaussian

from ..pairwise import pairwise
from . import exact

SPARSE = [4 / 3, 1.5, 2.0, 3.0]
ALPHAS = [1.0, *SPARSE]
LOC = [[0.3], [0.3, -1.0], [0.3, -1.0, 0.5]]
SCALE = [[1.7], [1.7, 0.4], [1.7, 0.4, 0.9]]


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def directions(n):
    """Points on the sphere of n dimensions, and weights that integrate over it."""
    if n == 1:
        return np.array([[-1.0], [1.0]]), np.ones(2)
    angles = np.arange(24) * (2 * np.pi / 24)
    circle, weights = np.column_stack([np.cos(angles), np.sin(angles)]), np.full(24, np.pi / 12)
    return circle, weights


class Quadrature:
    """The continuous entmax of -sum ((z - loc) / scale)^2 / 2, by its definition.

    It is ((alpha - 1) (score + bound))_+^(1 / (alpha - 1)), with the bound that makes the
    integral one: found by bisection, and all integrals over points of the ellipsoid. With radius
    r sin(t) all that is integrated over t is smooth.
    """

    def __init__(self, alpha, loc, scale):
        self.alpha, self.loc, self.scale = alpha, np.array(loc), np.array(scale)
        self.sphere, self.areas = directions(len(loc))
        nodes, weights = np.polynomial.legendre.leggauss(60)
        self.angles, self.steps = np.pi / 4 * (nodes + 1), np.pi / 4 * weights
        self.radius = brentq(lambda r: self.place(r) - 1, 1e-3, 1e3, xtol=1e-15, rtol=1e-15)
        self.place(self.radius)

    def place(self, radius):
        """Put points into the ellipsoid of this radius, and return the integral there."""
        n, lengths = len(self.loc), radius * np.sin(self.angles)
        around = lengths[:, None, None] * self.sphere
        jacobian = np.prod(self.scale) * lengths ** (n - 1) * radius * np.cos(self.angles)
        density = ((self.alpha - 1) / 2 * (radius * np.cos(self.angles)) ** 2) ** (
            1 / (self.alpha - 1)
        )
        self.z = (self.loc + self.scale * around).reshape(-1, n)
        self.weights = np.outer(self.steps * jacobian, self.areas).ravel()
        self.p = np.repeat(density, len(self.sphere))
        return self.weights @ self.p

    def mean(self, values):
        return (self.weights * self.p) @ values

    @property
    def negentropy(self):
        integral = self.weights @ self.p**self.alpha
        return (integral - 1) / (self.alpha * (self.alpha - 1))


@pytest.fixture(scope="module", params=SPARSE, ids=lambda alpha: f"alpha={alpha:.3g}")
def alpha(request):
    return request.param


@pytest.fixture(scope="module", params=[1, 2], ids=lambda n: f"n={n}")
def pair(request, alpha):
    """A joint distribution of some dimensions, and the same by quadrature."""
    loc, scale = LOC[request.param - 1], SCALE[request.param - 1]
    joint = BetaGaussian(tensor(loc), tensor(scale), alpha, event_dim=1)
    return joint, Quadrature(alpha, loc, scale)


def test_density_moments_and_negentropy(pair):
    joint, truth = pair
    p = joint.log_prob(tensor(truth.z)).exp().numpy()
    # at the edge a difference of equal squares is rounded
    np.testing.assert_allclose(p, truth.p, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(truth.weights @ p, 1, rtol=0, atol=1e-10)
    np.testing.assert_allclose(joint.radius, truth.radius * truth.scale, rtol=1e-10)
    np.testing.assert_allclose(truth.mean(truth.z), joint.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(truth.mean((truth.z - truth.loc) ** 2), joint.variance, rtol=1e-10)
    np.testing.assert_allclose(joint.stddev, joint.variance.sqrt(), rtol=1e-15)
    np.testing.assert_allclose(joint.tsallis_negentropy(), truth.negentropy, rtol=1e-9)
    assert torch.equal(joint.mode, joint.loc)


NEAR_ONE = [1 + excess for excess in (2.3e-16, 1e-12, 1e-8, 1e-6, 1e-4, 0.01, 0.1, 0.11, 0.12)]


@pairwise(
    alpha=[1.0, *NEAR_ONE, *SPARSE, 6.0, 50.0], n=[1, 3, 64], dtype=[torch.float32, torch.float64]
)
def test_values_and_derivatives_with_many_digits(alpha, n, dtype):
    draws = torch.Generator().manual_seed(n)
    loc, direction = torch.randn(2, n, generator=draws, dtype=dtype)
    scale = torch.randn(n, generator=draws, dtype=dtype).exp()
    around = BetaGaussian(loc, scale, alpha, event_dim=1)
    width = around.radius.clamp(max=2 * n**0.5 * scale)
    arguments = [loc, scale, loc + 0.6 * width * direction / direction.norm()]
    arguments = [argument.detach().requires_grad_() for argument in arguments]
    exactly = [exact.numbers(argument.tolist()) for argument in arguments]

    def result(loc, scale, z):
        bell = BetaGaussian(loc, scale, alpha, event_dim=1)
        divergence = bell.fenchel_young_divergence(0.5, 2.0)
        return [bell.log_prob(z), bell.tsallis_negentropy(), divergence, bell.variance[0]]

    def expected(loc, scale, z):
        bell = exact.BetaGaussian(alpha, loc, scale)
        divergence = bell.divergence([0.5] * n, [2.0] * n)
        return [bell.log_prob(z), bell.negentropy(), divergence, bell.shrinkage * scale[0] ** 2]

    def moved(k, step):
        parts = [list(part) for part in exactly]
        parts[k][0] += step
        return np.array(expected(*parts))

    step = mpmath.mpf(10) ** -25
    slopes = [(moved(k, step) - moved(k, -step)) / (2 * step) for k in range(3)]
    for which, (value, truth) in enumerate(
        zip(result(*arguments), map(float, expected(*exactly)), strict=True)
    ):
        rounding = 4 * torch.finfo(dtype).eps * (n + abs(truth))
        assert abs(value.item() - truth) <= rounding
        grads = torch.autograd.grad(value, arguments, materialize_grads=True)
        for grad, slope in zip(grads, slopes, strict=True):
            assert abs(grad[0].item() - float(slope[which])) <= rounding


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("n", "event_dim"), [(1, 0), (2, 1), (3, 1)])
def test_draws(alpha, n, event_dim):
    """Squared distances within the support are those of beta variables."""
    bell = BetaGaussian(tensor(LOC[n - 1]), tensor(SCALE[n - 1]), alpha, event_dim=event_dim)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = bell.sample((100_000,))
    assert draws.shape == (100_000, n)
    assert bell.support.check(draws).all()
    assert bell.log_prob(draws).isfinite().all()
    units = ((draws - bell.loc) / bell.stddev).numpy()
    np.testing.assert_allclose(units.mean(axis=0), 0, atol=5 / 1e5**0.5)
    np.testing.assert_allclose(np.cov(units.T), np.eye(n).squeeze(), atol=5 * (2 / 1e5) ** 0.5)
    if alpha > 1:
        squares = (((draws - bell.loc) / bell.radius) ** 2).sum(-1).numpy()
        assert squares.max() <= 1
        assert kstest(squares, beta(n / 2, 1 / (alpha - 1) + 1).cdf).pvalue > 1e-3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("event_dim", [0, 1])
def test_derivatives(alpha, event_dim):
    loc, scale = tensor([0.3, -1.0]).requires_grad_(), tensor([1.7, 0.4]).requires_grad_()

    def bell(loc, scale):
        return BetaGaussian(loc, scale, alpha, event_dim=event_dim)

    def draws(loc, scale):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return bell(loc, scale).rsample((4,))

    inside = (loc + 0.3 * scale).detach().requires_grad_()
    others = tensor([0.1, 0.2]).requires_grad_(), tensor([0.5, 2.0]).requires_grad_()
    for function, rest in [
        (draws, ()),
        (lambda m, s, z: bell(m, s).log_prob(z), (inside,)),
        (lambda m, s: bell(m, s).tsallis_negentropy(), ()),
        (lambda m, s: bell(m, s).variance, ()),
        (lambda m, s, *other: bell(m, s).fenchel_young_divergence(*other), others),
    ]:
        assert gradcheck(function, (loc, scale, *rest))
    assert not bell(loc, scale).sample().requires_grad


@pytest.mark.parametrize("event_dim", [0, 1])
def test_outside_of_the_support(alpha, event_dim):
    loc, scale = tensor([0.3, -1.0]).requires_grad_(), tensor([1.7, 0.4])
    checked = BetaGaussian(loc, scale, alpha, event_dim=event_dim, validate_args=True)
    # 0.8 along each of two axes: inside of the box, outside of the ellipse
    far = loc.detach() + (0.8 if event_dim else 1.1) * checked.radius.detach()
    assert not checked.support.check(far).any()
    with pytest.raises(ValueError, match="within the support"):
        checked.log_prob(far)
    free = BetaGaussian(loc, scale, alpha, event_dim=event_dim, validate_args=False)
    log_prob = free.log_prob(far)
    assert (log_prob == -math.inf).all()
    log_prob.sum().backward()
    assert (loc.grad == 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("event_dim", [0, 1])
def test_infinite_values_have_no_density(alpha, event_dim):
    loc, scale = (tensor(part).requires_grad_() for part in ([0.3, -1.0], [1.7, 0.4]))
    value = tensor([[0.3, math.inf], [-math.inf, -1.0]]).requires_grad_()
    bell = BetaGaussian(loc, scale, alpha, event_dim=event_dim, validate_args=False)
    log_prob = bell.log_prob(value)
    assert (log_prob == -math.inf).sum() == 2
    for slopes in torch.autograd.grad(log_prob.sum(), (value, loc, scale)):
        assert slopes.isfinite().all()


def test_derivatives_at_the_edge_are_not_nan(alpha):
    bell = BetaGaussian(tensor(0.0), tensor(1.7), alpha, validate_args=False)
    steps = torch.arange(-20, 21, dtype=torch.float64)
    z = bell.radius * (1 + steps * torch.finfo(torch.float64).eps)
    log_prob = bell.log_prob(z.requires_grad_())
    log_prob[log_prob.isfinite()].sum().backward()
    assert not z.grad.isnan().any()
    assert (z.grad[-15:] == 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("event_dim", [0, 1])
def test_expand(alpha, event_dim):
    small = BetaGaussian(torch.zeros(3), torch.ones(3), alpha, event_dim=event_dim)
    large = small.expand((4, *small.batch_shape))
    assert isinstance(large, BetaGaussian)
    assert (large.batch_shape, large.event_shape) == ((4, *small.batch_shape), small.event_shape)
    for bell in (small, large):
        assert (bell.alpha, bell.event_dim, bell.support.event_dim) == (alpha, event_dim, event_dim)
        assert repr(bell).endswith(f"alpha: {alpha:g}, event_dim: {event_dim})")
    z = torch.full((4, 3), 0.2)
    torch.testing.assert_close(large.log_prob(z), small.log_prob(z))
    torch.testing.assert_close(large.variance, small.variance.expand(4, 3))
    assert large.sample((2,)).shape == (2, 4, 3)
    checked = BetaGaussian(torch.zeros(3), torch.ones(3), 2.0, validate_args=True)
    with pytest.raises(ValueError, match="within the support"):
        checked.expand((2, 3)).log_prob(torch.full((2, 3), 9.0))


def test_entropy_is_refused():
    with pytest.raises(NotImplementedError, match="use -tsallis_negentropy"):
        BetaGaussian(0.0, 1.0).entropy()


def test_numbers():
    bell = BetaGaussian(0, 1.0)
    assert bell.batch_shape == bell.event_shape == ()
    assert bell.alpha == 2
    assert bell.sample().shape == ()
    assert bell.sample((3,)).dtype == torch.float32
    assert BetaGaussian(tensor(0.0), 1.0).sample().dtype == torch.float64
    assert repr(bell) == "BetaGaussian(loc: 0.0, scale: 1.0, alpha: 2, event_dim: 0)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, 0.5), "alpha must be"),
        ((0.0, 1.0, math.nan), "alpha must be"),
        ((0.0, -1.0), "scale .* constraint"),
        ((0.0, 0.0), "scale .* constraint"),
        ((math.nan, 1.0), "loc .* constraint"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BetaGaussian(*arguments, validate_args=True)


@pytest.mark.parametrize("event_dim", [2, -1, None, 1])
def test_bad_event_dim_is_refused(event_dim):
    loc, message = (0.0, "needs a vector") if event_dim == 1 else (torch.zeros(3), "must be 0 or 1")
    with pytest.raises(ValueError, match=message):
        BetaGaussian(loc, 1.0, event_dim=event_dim)
