"""What components say of a bag of vectors: gradients of its log-likelihood.

A block of a Fisher vector belongs to one kind of parameter. Its gradient is a `slope` times a
statistic of the bag, a sum over the bag's vectors; the statistic of one vector has a `variance`
under the mixture, taken as if components did not overlap. Slope and variance are all that
normalizations differ in.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from ..._kernels import fisher as kernels
from ...distributions import vonmises_fisher as vmf
from ..data.blocks import Array

if TYPE_CHECKING:
    from ..families.gaussian_products import GaussianComponents
    from ..families.vonmises_fisher import DirectionalComponents

Bags: TypeAlias = tuple[Array, Array, Array]  # as `pad_bags` prepares them
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class VectorShares:
    """Each component's share of each vector of a table, as the kernels take it.

    `resp` is (V, K), or compressed rows where most shares are zero; a vector that is left out
    has none. `table` (V, d) and `scales` (V,) are the vectors as the mixture sees them.
    """

    resp: Array | tuple[Array, Array, Array]
    table: Array
    scales: Array

    @property
    def packed(self) -> bool:
        """Whether shares are compressed rows."""
        return isinstance(self.resp, tuple)


@dataclass(frozen=True)
class Block:
    """Slope and variance of a statistic, each (K,) or (K, d)."""

    slope: Array
    variance: Array

    def factor(self, normalization: str | None) -> Array:
        """Return what to multiply the statistic by: finite; 0 for a component without weight."""
        if normalization is None:
            return self.slope
        if normalization == "fisher":
            return _inverse(np.sqrt(self.variance))
        return _inverse(self.slope * self.variance)


class Gradients(ABC):
    """Gradients in the parameters of a mixture: what a family says of a bag.

    Parameters
    ----------
    weights : ndarray of shape (K,)
        The mixture's weights.
    components : object
        The family's components.
    tangent : bool
        Whether gradients in directions are taken along the sphere.
    """

    names: ClassVar[dict[str, str]]
    """The kinds of parameters, each with the name of one of them."""

    blocks: dict[str, Block]
    """Slopes and variances of the statistics of each kind."""

    @abstractmethod
    def __init__(self, weights: Array, components: Any, *, tangent: bool) -> None: ...

    @abstractmethod
    def statistics(
        self, bags: Bags, shares: VectorShares, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""


GradientsType: TypeAlias = type[Gradients]


class VonMisesFisherGradients(Gradients):
    """Gradients in mean directions, concentrations and weights (derived here).

    With g the shares, S = sum g x and N = sum g of a component, A its mean resultant length and
    T the size of the bag, statistics are S, its part across the mean direction m if `tangent`,
    m.S - A N and N - w T; their variances per vector are w/d (the second moment, averaged over
    dimensions), w A/kappa, w A' and w.
    """

    names = {"means": "mean", "concentrations": "concentration", "weights": "weight"}

    def __init__(
        self, weights: Array, components: "DirectionalComponents", *, tangent: bool
    ) -> None:
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
            "means": Block(*_columns(kappa, weights * spread, d)),
            "concentrations": Block(np.ones(K), weights * along),
            "weights": Block(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, shares: VectorShares, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""
        n, (K, d) = len(bags[0]) - 1, self._directions.shape
        counts, sums = np.empty((n, K)), np.empty((n, K, d))
        add = kernels.packed_direction_sums if shares.packed else kernels.direction_sums
        add(bags, shares.resp, shares.table, shares.scales, counts, sums)
        sizes = counts.sum(axis=1)
        found = {"means": sums}
        if "concentrations" in kinds or self._tangent:
            along = np.einsum("nkd,kd->nk", sums, self._directions)
            found["concentrations"] = along - self._lengths * counts
            if self._tangent:
                sums -= along[:, :, None] * self._directions
        if "weights" in kinds:
            found["weights"] = counts - sizes[:, None] * self._weights
        return found, sizes


class DiagonalGradients(Gradients):
    """Gradients in means, variances and weights of diagonal Gaussians.

    With z = (x - mu)/sigma and shares g, statistics are sum g z, sum g (z^2 - 1) and N - w T;
    their variances per vector are w, 2 w and w [1]_.

    References
    ----------
    .. [1] Sanchez, Perronnin, Mensink and Verbeek, "Image classification with the Fisher
       vector: theory and practice", IJCV 105, 2013, eq. 16-18.
    """

    names = {"means": "mean", "variances": "variance", "weights": "weight"}

    def __init__(self, weights: Array, components: "GaussianComponents", *, tangent: bool) -> None:
        self._weights, self._means = weights, components.means
        self._variances = components.covariances
        K, d = self._variances.shape
        _, each = _columns(weights, weights, d)
        self.blocks = {
            "means": Block(1 / np.sqrt(self._variances), each),
            "variances": Block(0.5 / self._variances, 2 * each),
            "weights": Block(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, shares: VectorShares, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""
        n, (K, d) = len(bags[0]) - 1, self._means.shape
        counts, first, second = np.empty((n, K)), np.empty((n, K, d)), np.empty((n, K, d))
        add = kernels.packed_moment_sums if shares.packed else kernels.moment_sums
        add(bags, shares.resp, shares.table, self._means, counts, first, second)
        sizes = counts.sum(axis=1)
        first /= np.sqrt(self._variances)
        found = {"means": first}
        if "variances" in kinds:
            with np.errstate(over="ignore"):  # beyond the largest float it is taken for that
                second /= self._variances
            second -= counts[:, :, None]
            found["variances"] = second
        if "weights" in kinds:
            found["weights"] = counts - sizes[:, None] * self._weights
        return found, sizes


def _columns(first: Array, second: Array, d: int) -> tuple[Array, Array]:
    """Repeat (K,) values for each of d dimensions."""
    return np.tile(first[:, None], d), np.tile(second[:, None], d)


def _inverse(values: Array) -> Array:
    with np.errstate(over="ignore"):
        inverses = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return np.minimum(inverses, _LARGEST)
