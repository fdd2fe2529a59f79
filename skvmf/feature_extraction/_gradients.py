"""What the components of a mixture say of a bag: gradients of its log-likelihood.

A block of a Fisher vector belongs to one kind of parameter. Its gradient is a `slope` times a
statistic of the bag, a sum over the bag's vectors; the statistic of one vector has a `variance`
under the mixture, taken as if components did not overlap. Slope and variance are all that
normalizations differ in.
"""

from dataclasses import dataclass

import numpy as np

from .._kernels import fisher as kernels
from ..distributions import vonmises_fisher as vmf


@dataclass(frozen=True)
class Block:
    """Slope and variance of a statistic, each (K,) or (K, d)."""

    slope: np.ndarray
    variance: np.ndarray

    def factor(self, normalization):
        """Return what to multiply the statistic by; 0 for a component without weight."""
        if normalization is None:
            return self.slope
        if normalization == "fisher":
            return _inverse(np.sqrt(self.variance))
        return _inverse(self.slope * self.variance)


def _inverse(values):
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


class VonMisesFisherGradients:
    """Gradients in mean directions, concentrations and weights (derived here).

    With g the shares, S = sum g x and N = sum g of a component, A its mean resultant length and
    T the size of the bag, statistics are S, its part across the mean direction m if `tangent`,
    m.S - A N and N - w T; their variances per vector are w/d (the second moment, averaged over
    dimensions), w A/kappa, w A' and w.
    """

    singular = {"means": "mean", "concentrations": "concentration", "weights": "weight"}

    def __init__(self, mixture, tangent):
        self.mixture = mixture
        self._tangent = tangent
        self._directions = mixture.mean_directions_
        K, d = self._directions.shape
        weights, kappa = mixture.weights_, mixture.concentrations_
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

    def statistics(self, bags, shares, kinds):
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""
        n, (K, d) = len(bags[0]) - 1, self._directions.shape
        counts, sums = np.empty((n, K)), np.empty((n, K, d))
        add = kernels.packed_direction_sums if shares.sparse else kernels.direction_sums
        add(bags, shares.resp, shares.table, shares.scales, counts, sums)
        sizes = counts.sum(axis=1)
        found = {"means": sums}
        if "concentrations" in kinds or self._tangent:
            along = np.einsum("nkd,kd->nk", sums, self._directions)
            found["concentrations"] = along - self._lengths * counts
            if self._tangent:
                sums -= along[:, :, None] * self._directions
        if "weights" in kinds:
            found["weights"] = counts - sizes[:, None] * self.mixture.weights_
        return found, sizes


class GaussianGradients:
    """Gradients in means, variances and weights of diagonal Gaussians.

    With z = (x - mu)/sigma and shares g, statistics are sum g z, sum g (z^2 - 1) and N - w T;
    their variances per vector are w, 2 w and w [1]_.

    References
    ----------
    .. [1] Sanchez, Perronnin, Mensink and Verbeek, "Image classification with the Fisher
       vector: theory and practice", IJCV 105, 2013, eq. 16-18.
    """

    singular = {"means": "mean", "variances": "variance", "weights": "weight"}

    def __init__(self, mixture):
        self.mixture = mixture
        weights, variances = mixture.weights_, mixture.covariances_
        K, d = variances.shape
        _, each = _columns(weights, weights, d)
        self._means, self._variances = mixture.means_, variances
        self.blocks = {
            "means": Block(1 / np.sqrt(variances), each),
            "variances": Block(0.5 / variances, 2 * each),
            "weights": Block(np.ones(K), weights),
        }

    def statistics(self, bags, shares, kinds):
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""
        n, (K, d) = len(bags[0]) - 1, self._means.shape
        counts, first, second = np.empty((n, K)), np.empty((n, K, d)), np.empty((n, K, d))
        add = kernels.packed_moment_sums if shares.sparse else kernels.moment_sums
        add(bags, shares.resp, shares.table, self._means, counts, first, second)
        sizes = counts.sum(axis=1)
        first /= np.sqrt(self._variances)
        found = {"means": first}
        if "variances" in kinds:
            second /= self._variances
            second -= counts[:, :, None]
            found["variances"] = second
        if "weights" in kinds:
            found["weights"] = counts - sizes[:, None] * self.mixture.weights_
        return found, sizes


def _columns(first, second, d):
    """Repeat (K,) values for each of d dimensions."""
    return np.tile(first[:, None], d), np.tile(second[:, None], d)
