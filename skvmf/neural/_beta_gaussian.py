"""Beta-Gaussians: densities between a parabola of finite support and the Gaussian."""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

from ..distributions._arguments import checked_alpha
from ._entmax import widened

# Coefficients of the series of Stirling for log Gamma, from the highest power of 1 / x^2 on. They
# reach 1e-16 from x = 10 on.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_MIN_STIRLING = 10


class BetaGaussian(Distribution):
    """The beta-Gaussian distribution, also called xi-Gaussian with xi = 2 - alpha.

    The density that maximizes the mean of ``-|z - loc|^2 / (2 scale^2)`` minus the Tsallis negative
    entropy. alpha = 1 is the Gaussian, 4/3 the triweight, 3/2 the biweight and 2 the Epanechnikov
    density. For alpha > 1 the support is finite.

    Parameters
    ----------
    loc : float or Tensor
        Centers. Half precision is converted to float32.
    scale : float or Tensor
        Positive scales, broadcast against `loc`. They are standard deviations for alpha = 1 only;
        see `variance`.
    alpha : float, default=2.0
        At least 1. One number without a gradient.
    event_dim : {0, 1}, default=0
        0 treats each entry as a variable of its own. 1 treats the last dimension as one vector,
        whose support is an ellipsoid.
    validate_args : bool, default=None
        Whether to check the parameters, and that values are inside the support; as in
        ``torch.distributions.Distribution``.

    Raises
    ------
    ValueError
        If alpha is below 1, `event_dim` is neither 0 nor 1, or parameters are not valid.

    Notes
    -----
    With N dimensions, e = 1 / (alpha - 1), Q = sum ((z - loc) / scale)^2 and a normalizing rho,
    p(z) = ((alpha - 1)/2 (rho^2 - Q))_+^e, and the covariance is diag(scale^2) rho^2 / (N + 2 + 2
    e). Draws are ``loc + scale rho g / sqrt(|g|^2 + 2 G)`` with g standard normal and G from the
    Gamma distribution of shape e + 1, so gradients pass through. The digits are kept as alpha tends
    to 1. In ``torch.distributions.MixtureSameFamily`` pass ``validate_args=False`` to both: a value
    outside the support of one component may be inside that of another.

    References
    ----------
    .. [1] Martins et al., "Sparse continuous distributions and Fenchel-Young losses", JMLR 2022.
    .. [2] Sklaviadis et al., "Fenchel-Young variational learning", section 4.2.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import BetaGaussian
    >>> parabola = BetaGaussian(torch.tensor(0.0), torch.tensor(1.0), alpha=2)
    >>> parabola.log_prob(torch.tensor([0.0, 1.0])).exp()
    tensor([0.6552, 0.1552])
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        alpha: float = 2.0,
        *,
        event_dim: int = 0,
        validate_args: bool | None = None,
    ) -> None:
        self.alpha = checked_alpha(alpha)
        if event_dim not in (0, 1):
            raise ValueError(f"event_dim must be 0 or 1, not {event_dim!r}.")
        self.loc, self.scale = map(widened, broadcast_all(loc, scale))
        if event_dim > self.loc.dim():
            raise ValueError("event_dim=1 needs a vector for loc or scale.")
        batch_dim = self.loc.dim() - event_dim
        batch_shape = self.loc.shape[:batch_dim]
        event_shape = self.loc.shape[batch_dim:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, alpha: {self.alpha:g}, event_dim: {self.event_dim})"

    @property
    def event_dim(self) -> int:
        """Number of dimensions of one event."""
        return len(self.event_shape)

    @property
    def _size(self) -> int:
        """Number N of dimensions of an event."""
        return int(self.event_shape.numel())

    def _per_event(self, terms: Tensor) -> Tensor:
        """Sum a value per coordinate over the coordinates of an event."""
        if self.event_dim == 0:
            return terms
        return terms.sum(-1)

    def _spread(self, events: Tensor) -> Tensor:
        """Give a value per event the shape of the coordinates."""
        if self.event_dim == 0:
            return events
        return events.unsqueeze(-1)

    @property
    def _log_peak(self) -> Tensor:
        """Log-density at the center: (2 D - N log(2 pi) - log det) / (N (alpha - 1) + 2)."""
        n = self._size
        c = self.alpha - 1
        log_det = self._per_event(2 * self.scale.log())
        normalizer = 2 * _log_gamma_ratio(n / 2, c) - n * math.log(2 * math.pi)
        return (normalizer - log_det) / (n * c + 2)

    @property
    def _height(self) -> Tensor:
        """Density at the center to the power alpha - 1: rho^2 (alpha - 1) / 2."""
        return ((self.alpha - 1) * self._log_peak).exp()

    @property
    def _width(self) -> float:
        """rho^2 / variance for scale 1, times (alpha - 1) / 2."""
        return 1 + (self.alpha - 1) * (self._size + 2) / 2

    @property
    def _shrinkage(self) -> Tensor:
        """Variance / scale^2, one number per event."""
        return self._height / self._width

    @property
    def radius(self) -> Tensor:
        """Half the length of the support along each coordinate; inf for alpha = 1."""
        if self.alpha == 1:
            return torch.full_like(self.scale, math.inf)
        return self.scale * self._spread((2 * self._height / (self.alpha - 1)).sqrt())

    @constraints.dependent_property  # type: ignore[untyped-decorator]
    def support(self) -> constraints.Constraint:
        """Values of positive density, with the edge and draws that rounding puts beyond it."""
        if self.alpha == 1:
            return constraints.independent(constraints.real, self.event_dim)
        # Four roundings of a coordinate, relative to the radius.
        rounding = 4 * torch.finfo(self.loc.dtype).eps * (self.loc.abs() / self.radius + 1)
        edge = self.radius * (1 + self._spread(self._per_event(rounding.square()).sqrt()))
        if self.event_dim:
            return _Ellipsoid(self.loc, edge)
        return constraints.interval(self.loc - edge, self.loc + edge)

    @property
    def mean(self) -> Tensor:
        """The centers, which are also the mode."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """Variance of each coordinate: not `scale` squared unless alpha is 1."""
        return self.scale.square() * self._spread(self._shrinkage)

    def expand(
        self, batch_shape: Sequence[int], _instance: "BetaGaussian | None" = None
    ) -> "BetaGaussian":
        """Return the distribution with parameters expanded to a batch shape.

        Parameters
        ----------
        batch_shape : tuple of int
            The new batch shape.
        _instance : BetaGaussian, default=None
            For subclasses.

        Returns
        -------
        BetaGaussian
            The expanded distribution.
        """
        new: BetaGaussian = self._get_checked_instance(BetaGaussian, _instance)
        batch = torch.Size(batch_shape)
        shape = batch + self.event_shape
        new.alpha = self.alpha
        new.loc = self.loc.expand(shape)
        new.scale = self.scale.expand(shape)
        super(BetaGaussian, new).__init__(batch, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws through which gradients reach `loc` and `scale`.

        Parameters
        ----------
        sample_shape : tuple of int, default=()
            Number of draws.

        Returns
        -------
        Tensor of shape sample_shape + batch_shape + event_shape
            The draws.
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        if self.alpha == 1:
            return self.loc + self.scale * noise
        squares = self._per_event(noise.square())
        shapes = torch.full_like(squares, 1 + 1 / (self.alpha - 1))
        lengths = (squares + 2 * torch._standard_gamma(shapes)).sqrt()
        return self.loc + self.radius * noise / self._spread(lengths)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density, -inf outside the support.

        Parameters
        ----------
        value : Tensor
            The values.

        Returns
        -------
        Tensor
            One number per event.

        Raises
        ------
        ValueError
            If arguments are validated and a value is outside the support.
        """
        if self._validate_args:
            self._validate_sample(value)
        # Infinite values are outside, and replaced: derivatives of infinity are nan.
        infinite = value.isinf()
        gaps = (value.masked_fill(infinite, 0) - self.loc) / self.scale
        squares = self._per_event(gaps.square())

        # The decline from the peak: of the log-density for alpha = 1, else of its power c over c.
        c = self.alpha - 1
        decline = -0.5 * squares / self._height
        inside = (c * decline > -1) & (self._per_event(infinite) == 0)
        # Replaced outside, too, where log1p has no gradient.
        decline = torch.where(inside, decline, 0)
        logs = self._log_peak + (torch.log1p(c * decline) / c if c else decline)
        return torch.where(inside, logs, -math.inf)

    def entropy(self) -> Tensor:
        """Raise a NotImplementedError: the entropy of this family is that of Tsallis."""
        raise NotImplementedError("BetaGaussian has a Tsallis entropy: use -tsallis_negentropy().")

    def tsallis_negentropy(self) -> Tensor:
        """Return the Tsallis negative entropy of the density; for alpha = 1 Shannon's.

        Returns
        -------
        Tensor
            (integral of p^alpha - 1) / (alpha (alpha - 1)), one number per event.
        """
        powers = _expm1_rate(self._log_peak, self.alpha - 1)
        return (powers - 0.5 * self._size / self.alpha) / self._width

    def fenchel_young_divergence(
        self, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0
    ) -> Tensor:
        """Return the Fenchel-Young divergence from the score -sum ((z - loc) / scale)^2 / 2.

        It is not negative, and zero for this `loc` and `scale`. For alpha = 1 it is the
        Kullback-Leibler divergence to the Gaussian. The :doc:`user guide </user_guide/neural>` has
        the formula. See Sklaviadis et al., "Fenchel-Young variational learning", eq. 5 and section
        4.2.

        Parameters
        ----------
        loc, scale : float or Tensor
            Center and scale of the score; the standard Gaussian's by default.

        Returns
        -------
        Tensor
            One number per event; for ``event_dim=0`` the sum is the divergence of the product.
        """
        n = self._size
        c = self.alpha - 1
        ratio = self.scale / scale
        stretch = self._per_event(2 * ratio.log()) / (n * c + 2)
        # Variance / scale^2, of this density and of the score's own.
        v = self._shrinkage
        v0 = v * (c * stretch).exp()
        information = v0 * _expm1_rate(-stretch, c)
        squared_gap = self._per_event(((self.loc - loc) / scale).square())
        trace = v * self._per_event(ratio.square())
        return information + 0.5 * (squared_gap + trace - n * v0)


def _expm1_rate(x: Tensor, c: float) -> Tensor:
    """Return (exp(c x) - 1) / c, which is x for c = 0."""
    if c == 0:
        return x
    return torch.expm1(c * x) / c


def _log_gamma_ratio(s: float, c: float) -> float:
    """Return D = log(Gamma(e + 1 + s) / (Gamma(e + 1) e^s)) for e = 1 / c; 0 for c = 0.

    The logarithms grow as e log e, and D as s^2 / e: Stirling's series keeps the digits of their
    difference. The recurrence of Gamma raises small e to where the series does.
    """
    if c == 0:
        return 0.0
    a = 1 / c + 1
    steps = max(0, math.ceil(_MIN_STIRLING - a))
    b = a + steps
    raised = sum(math.log1p(s / (a + step)) for step in range(steps))
    remainder = _stirling_remainder(b + s) - _stirling_remainder(b)
    main = (b - 0.5) * math.log1p(s / b) - s + s * math.log1p((1 + steps + s) * c)
    return main + remainder - raised


def _stirling_remainder(x: float) -> float:
    """Return log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, to 1e-16 for x >= 10."""
    series = 0.0
    for coefficient in _STIRLING:
        series = series / x**2 + coefficient
    return series / x


class _Ellipsoid(constraints.Constraint):
    """Vectors within half-axes of a center."""

    event_dim = 1

    def __init__(self, center: Tensor, axes: Tensor) -> None:
        self.center = center
        self.axes = axes
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Return whether each vector is inside."""
        return ((value - self.center) / self.axes).square().sum(-1) <= 1
