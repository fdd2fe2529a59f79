"""Gradients of von Mises-Fisher mixtures, for Fisher vectors."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..._kernels import fisher as kernels
from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..contracts.gradients import (
    Bags,
    Gradients,
    ParameterBlock,
    VectorResponsibilities,
    repeat_columns,
)
from .vonmises_fisher_products import DirectionalComponents


class VonMisesFisherGradients(Gradients):
    """Gradients in mean directions, concentrations and weights (derived here).

    With g the responsibilities, S = sum g x and N = sum g of a component, A its mean resultant
    length and T the size of the bag, statistics are S, its part across the mean direction m if
    `tangent`, m.S - A N and N - w T; their variances per vector are w/d (the second moment,
    averaged over dimensions), w A/kappa, w A' and w.
    """

    names: ClassVar[dict[str, str]] = {
        "means": "mean",
        "concentrations": "concentration",
        "weights": "weight",
    }

    def __init__(self, weights: Array, components: DirectionalComponents, *, tangent: bool) -> None:
        self._weights, self._tangent = weights, tangent
        self._directions = np.ascontiguousarray(components.directions.T)
        K, d = self._directions.shape
        kappa = components.concentrations
        lengths = vmf.mean_resultant_length(kappa, d)
        complements = vmf.mean_resultant_length(kappa, d, complement=True)
        along, across = vmf.variance_eigenvalues(lengths, d, complement=complements)
        self._lengths = lengths
        spread = across if tangent else np.full(K, 1 / d)
        self.blocks = {
            "means": ParameterBlock(*repeat_columns(kappa, weights * spread, d)),
            "concentrations": ParameterBlock(np.ones(K), weights * along),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        n, (K, d) = len(bags[0]) - 1, self._directions.shape
        counts, sums = np.empty((n, K)), np.empty((n, K, d))
        add = kernels.packed_direction_sums if responsibilities.packed else kernels.direction_sums
        add(
            bags,
            responsibilities.resp,
            responsibilities.table,
            responsibilities.scales,
            counts,
            sums,
        )
        sizes = counts.sum(axis=1)
        statistics = {"means": sums}
        if "concentrations" in kinds or self._tangent:
            along = np.einsum("nkd,kd->nk", sums, self._directions)
            statistics["concentrations"] = along - self._lengths * counts
            if self._tangent:
                sums -= along[:, :, None] * self._directions
        if "weights" in kinds:
            statistics["weights"] = counts - sizes[:, None] * self._weights
        return statistics, sizes
