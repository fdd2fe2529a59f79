"""Layers with units in strict order."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.utils import parametrize


class OrderedUnits(torch.nn.Module):
    """Relative parametrization of a weight matrix: units in strict order along one input.

    The first unit's weight is free; each further one is ``w[i] = w[i-1] + delta[i]^2 + clearance``.
    Two units then never have the same weights, for which a network is singular (overlap) and its
    units are not identifiable. The weights of other inputs stay free.

    Parameters
    ----------
    input_index : int, default=0
        The input along which units are in order.
    clearance : float, default=0.01
        Positive minimum gap between neighbours.
    odd : bool, default=False
        Whether the first weight is ``delta[0]^2 + clearance``, so that all are positive. Under an
        odd activation such as tanh, no unit is then the negative of another.

    Raises
    ------
    ValueError
        If the clearance is not positive and finite.

    See Also
    --------
    relative_units : Sort the units of a layer, and register this.

    Notes
    -----
    ``torch.nn.utils.parametrize.register_parametrization`` calls `right_inverse` with the layer's
    weights: the units must be in order, and gaps below the clearance grow to it. The clearance is a
    buffer, which loaded weights bring along. If weights become so large that rounding loses the
    clearance, neighbours are one float apart.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", section 6.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.utils import parametrize
    >>> from skvmf.neural import OrderedUnits
    >>> layer = torch.nn.Linear(1, 3)
    >>> with torch.no_grad():
    ...     layer.weight[:] = torch.tensor([[-1.0], [0.5], [2.0]])
    >>> _ = parametrize.register_parametrization(layer, "weight", OrderedUnits())
    >>> layer.weight.detach()
    tensor([[-1.0000],
            [ 0.5000],
            [ 2.0000]])
    """

    def __init__(self, input_index: int = 0, *, clearance: float = 0.01, odd: bool = False) -> None:
        super().__init__()
        if not 0 < clearance < torch.inf:
            raise ValueError(f"clearance must be positive and finite, not {clearance}.")
        self.input_index, self.odd = input_index, odd
        self.clearance: Tensor
        self.register_buffer("clearance", torch.tensor(clearance, dtype=torch.float64))

    def __repr__(self) -> str:
        options = f"input_index={self.input_index}, clearance={self.clearance:g}, odd={self.odd}"
        return f"{type(self).__name__}({options})"

    def forward(self, raw: Tensor) -> Tensor:
        """Return the weights.

        Parameters
        ----------
        raw : Tensor of shape (n_units, n_inputs)
            The weights, with the first weight and deltas in the column of `input_index`.

        Returns
        -------
        Tensor of shape (n_units, n_inputs)
            Weights whose units are in order.
        """
        column = raw[:, self.input_index]
        steps = column.square() + self.clearance
        if not self.odd:
            steps = torch.cat([column[:1], steps[1:]])
        return self._with_column(raw, _strictly_rising(steps.cumsum(0)))

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Return the free parameters that give these weights.

        Parameters
        ----------
        weight : Tensor of shape (n_units, n_inputs)
            Weights whose units are in order along `input_index`.

        Returns
        -------
        Tensor of shape (n_units, n_inputs)
            The free parameters.

        Raises
        ------
        ValueError
            If the units are not in order, the first weight must be positive and is not, or the
            clearance is below the rounding of the weights.
        """
        column = weight[:, self.input_index]
        self._check_clearance(column)
        steps = torch.cat([column[:1], column.diff()])
        bounded = steps if self.odd else steps[1:]
        if (bounded < 0).any():
            raise ValueError(
                f"The units must be sorted by their weights of input {self.input_index}"
                f"{', all positive' if self.odd else ''}: relative_units(layer) does so."
            )
        deltas = (steps - self.clearance).clamp(min=1e-4 * self.clearance).sqrt()
        if not self.odd:
            deltas = torch.cat([column[:1], deltas[1:]])
        return self._with_column(weight, deltas)

    def _check_clearance(self, column: Tensor) -> None:
        """Refuse a clearance that rounding loses when it is added to these weights."""
        numbers, largest = torch.finfo(column.dtype), float(column.detach().abs().max())
        least = max(numbers.eps * largest, 1e4 * numbers.tiny)
        if self.clearance < least:
            raise ValueError(
                f"clearance={float(self.clearance):g} is lost in the rounding of {column.dtype} "
                f"weights of up to {largest:g}: take {2 * least:.2g} or more, or float64."
            )

    def _with_column(self, matrix: Tensor, column: Tensor) -> Tensor:
        index = torch.tensor([self.input_index % matrix.shape[1]], device=matrix.device)
        return matrix.index_copy(1, index, column[:, None])


def _strictly_rising(values: Tensor) -> Tensor:
    """Return the values, raised to the float above the one before if they are not above it.

    Floats are ordered as their bits are as integers, the negative ones after a reflection.
    """
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    bits, lowest = values.detach().view(whole).long(), torch.iinfo(whole).min
    steps = torch.arange(len(bits), device=bits.device)
    ranks = torch.where(bits < 0, lowest - bits, bits) - steps
    ranks = ranks.cummax(0).values + steps
    moved = torch.where(ranks < 0, lowest - ranks, ranks).to(whole).view(values.dtype)
    return values + (moved - values).detach()


def relative_units(
    layer: Linear,
    following: Linear | None = None,
    *,
    input_index: int = 0,
    clearance: float = 0.01,
    odd: bool = False,
) -> Linear:
    """Sort the units of a linear layer and keep them in strict order from then on.

    With `following`, the network computes the same as before, except for gaps below the clearance.
    See Esser and Nielsen, section 6 (cited in :class:`OrderedUnits`).

    Parameters
    ----------
    layer : torch.nn.Linear
        The layer, changed in place.
    following : torch.nn.Linear, default=None
        The next layer, after an activation, whose inputs are sorted in the same way.
    input_index : int, default=0
        The input along which units are in order.
    clearance : float, default=0.01
        Positive minimum gap between neighbours.
    odd : bool, default=False
        Whether the activation is odd, such as tanh: units with a negative weight are then negated
        first, and all these weights stay positive.

    Returns
    -------
    torch.nn.Linear
        The layer, with :class:`OrderedUnits` as the parametrization of its weight.

    Raises
    ------
    TypeError
        If one of the layers is not a ``torch.nn.Linear``.
    ValueError
        If a layer is parametrized already, both are the same or do not fit together, the input does
        not exist, or the clearance is not positive and finite or is lost in rounding. The layers
        then stay as they are.

    Examples
    --------
    >>> import torch
    >>> from skvmf.neural import relative_units
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
    ... )
    >>> layer = relative_units(net[0], net[2])
    >>> bool((layer.weight[:, 0].diff() >= 0.0099).all())
    True
    """
    _check_layers(layer, following)
    if following is layer:
        raise ValueError("following must be another layer: its inputs are sorted, not its units.")
    if parametrize.is_parametrized(layer, "weight"):
        raise ValueError("The layer's weight is parametrized already.")
    if following is not None and parametrize.is_parametrized(following, "weight"):
        raise ValueError(
            "following's weight is parametrized already, and its inputs cannot be sorted: begin "
            "with the first layer."
        )
    n_inputs = layer.weight.shape[1]
    if not -n_inputs <= input_index < n_inputs:
        raise ValueError(f"The layer has {n_inputs} inputs, and no input {input_index}.")
    ordered = OrderedUnits(input_index, clearance=clearance, odd=odd)
    ordered._check_clearance(layer.weight[:, input_index])
    ordered.to(layer.weight)
    with torch.no_grad():
        column = layer.weight[:, input_index]
        signs = torch.where((column < 0) & odd, -1, 1).to(column.dtype)
        order = (column * signs).argsort(stable=True)
        signs = signs[order]
        layer.weight.copy_(layer.weight[order] * signs[:, None])
        if layer.bias is not None:
            layer.bias.copy_(layer.bias[order] * signs)
        if following is not None:
            following.weight.copy_(following.weight[:, order] * signs)
    parametrize.register_parametrization(layer, "weight", ordered)
    return layer


def _check_layers(layer: Linear, following: Linear | None) -> None:
    """Refuse layers that are not linear, or do not follow each other."""
    for one in [layer] if following is None else [layer, following]:
        if not isinstance(one, Linear):
            raise TypeError(f"A layer must be a torch.nn.Linear, not a {type(one).__name__}.")
    if following is not None and following.weight.shape[1] != len(layer.weight):
        raise ValueError(
            f"following takes {following.weight.shape[1]} values, and the layer has "
            f"{len(layer.weight)} units."
        )
