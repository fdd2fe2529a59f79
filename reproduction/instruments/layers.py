"""Layers with units in strict order (Esser and Nielsen, section 6)."""

import torch
from torch.nn.utils import parametrize


class OrderedUnits(torch.nn.Module):
    """Weights whose units are in order along the first input.

    The first unit's weight is free; each further one is ``w[i] = w[i-1] + delta[i]^2 + clearance``.
    Two units then never have the same weights, for which a network is singular (overlap). The
    weights of other inputs stay free.
    """

    def __init__(self, clearance):
        super().__init__()
        self.clearance = clearance

    def forward(self, raw):
        """Return the weights of deltas in the first column."""
        column = raw[:, 0]
        steps = torch.cat([column[:1], column[1:].square() + self.clearance])
        return torch.cat([steps.cumsum(0)[:, None], raw[:, 1:]], dim=1)

    def right_inverse(self, weight):
        """Return the deltas of weights in order; gaps below the clearance grow to it."""
        column = weight[:, 0]
        deltas = (column.diff() - self.clearance).clamp(min=1e-4 * self.clearance).sqrt()
        return torch.cat([torch.cat([column[:1], deltas])[:, None], weight[:, 1:]], dim=1)


def relative_units(layer, following, *, clearance):
    """Sort the units of a linear layer and keep them in strict order from then on.

    The columns of the following layer are sorted in the same way, so that the network computes the
    same as before, except for gaps below the clearance.
    """
    with torch.no_grad():
        order = layer.weight[:, 0].argsort(stable=True)
        layer.weight.copy_(layer.weight[order])
        layer.bias.copy_(layer.bias[order])
        following.weight.copy_(following.weight[:, order])
    parametrize.register_parametrization(layer, "weight", OrderedUnits(clearance))
