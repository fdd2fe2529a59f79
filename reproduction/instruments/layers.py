"""Distances of linear layers from singular ones: section 6 of Esser and Nielsen."""

from __future__ import annotations

from functools import partial

import torch
from sklearn.utils import Bunch
from torch import Tensor
from torch.nn import Linear

from skvmf.neural._entmax import widened


def singularity_distances(
    layer: Linear, following: Linear | None = None, *, odd: bool = False
) -> Bunch:
    """Return the distances of a linear layer from singular ones.

    A unit is the vector of its weights and bias. If two units coincide (overlap), only the sum of
    their outgoing weights is determined. If a unit's outgoing weights are zero, its own weights are
    not determined; if its own are zero, it is a constant like the next bias (elimination). If a
    unit is a combination of two others (linear dependence), a linear network does not determine the
    outgoing weights of the three; with another activation the units are identifiable, but learning
    is slow nearby.

    Parameters
    ----------
    layer : torch.nn.Linear
        The layer.
    following : torch.nn.Linear, default=None
        The next layer, after an activation.
    odd : bool, default=False
        Whether the activation is odd, such as tanh: a unit then coincides with its negative.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        The entries are, in at least single precision,

        overlap : Tensor of shape (n_units, n_units)
            Euclidean distance between each two units, or to the nearer of a unit and its negative.
        elimination : Tensor of shape (n_units,)
            Euclidean length of each unit's weights or, if smaller, of those in `following`.
        dependence : Tensor of shape (n_units,)
            Euclidean distance of each unit to the nearest combination of two others; inf for fewer
            than three units.
        closest : tuple of int or None
            The two units that overlap most; None for one unit.
    """
    with torch.no_grad():
        bias = [] if layer.bias is None else [layer.bias[:, None]]
        units = widened(torch.cat([layer.weight, *bias], dim=1))
        distances = partial(torch.cdist, units, compute_mode="donot_use_mm_for_euclid_dist")
        overlap = distances(units)
        if odd:
            overlap = torch.minimum(overlap, distances(-units))
        elimination = widened(layer.weight).norm(dim=1)
        if following is not None:
            elimination = torch.minimum(elimination, widened(following.weight).norm(dim=0))
    closest = None
    if len(units) > 1:
        apart = overlap.clone().fill_diagonal_(torch.inf)
        closest = tuple(sorted(divmod(int(apart.argmin()), len(units))))
    return Bunch(
        overlap=overlap, elimination=elimination, dependence=_dependence(units), closest=closest
    )


def _dependence(units: Tensor) -> Tensor:
    """Return the distance of each row from the planes through zero and two other rows.

    The Gram matrix finds the nearest plane, and least squares the distance.
    """
    n, vectors = len(units), units.double()
    distances = torch.full((n,), torch.inf, dtype=torch.float64, device=units.device)
    if n < 3:
        return distances.to(units.dtype)
    lengths = vectors.norm(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    directions = vectors / lengths
    gram = directions @ directions.T
    square_sines = (1 - gram.square()).clamp(min=1e-14)
    for k in range(n):
        a = gram[k]
        explained = (a[:, None] ** 2 + a**2 - 2 * a[:, None] * a * gram) / square_sines
        explained[k] = explained[:, k] = -torch.inf
        explained.fill_diagonal_(-torch.inf)
        i, j = divmod(int(explained.argmax()), n)
        plane = torch.linalg.svd(directions[[i, j]], full_matrices=False)
        basis = plane.Vh[plane.S > 1e-12]
        rest = vectors[k] - (vectors[k] @ basis.T) @ basis
        distances[k] = rest.norm()
    return distances.to(units.dtype)
