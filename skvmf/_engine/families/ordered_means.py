"""Updates of Gaussian means that are in order along one feature, from the statistics alone.

With responsibilities and covariances given, what of the bound depends on the means is a concave
quadratic. An update raises it, and the family takes covariances about the new means; so the bound
never falls. See Esser and Nielsen, "On the influence of enforcing model identifiability on learning
dynamics of Gaussian mixture models", section 4.2 and algorithm 2.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from .covariance import per_component
from .family import Update
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .isotonic import insert, keep_order, project
from .statistics import Statistics


@dataclass(frozen=True)
class MeanUpdate(Update):
    """Means first, in order along a feature; then covariances about them."""

    feature: int
    clearance: float = 0.0

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        non_empty = stats.non_empty
        precisions = family.type.each_precision(components.cholesky, *components.means.shape)
        precisions = per_component(stats.counts / stats.total, precisions) * precisions
        best = family.sample_means(stats, components)
        means = components.means.copy()
        means[non_empty] = self.move(best[non_empty], precisions[non_empty], means[non_empty])
        self._keep_order(means, non_empty)
        updated, singular = family.maximize(stats, components, means)
        if singular.any():  # these are back where they were
            means = updated.means.copy()
            self._keep_order(means, non_empty & ~singular)
            updated = family.components(means, updated.covariances)
        return updated, singular

    def _keep_order(self, means: Array, non_empty: Array) -> None:
        """Put means in order in place."""
        means[:, self.feature] = keep_order(means[:, self.feature], non_empty, self.clearance)

    def reseed(
        self, family: Gaussian, components: GaussianComponents, non_empty: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, or as near to it as the order of the others allows."""
        moved = family.reseed(components, k, row)
        means = components.means.copy()
        means[k] = row
        along = components.means[:, self.feature]
        means[:, self.feature] = insert(along, non_empty, k, row[self.feature], self.clearance)
        return family.components(means, moved.covariances)

    @abstractmethod
    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        """Return better means mu (K, d), by the bound -sum_k (m_k - mu_k)' Q_k (m_k - mu_k) / 2.

        `best` (K, d) are the weighted means m_k of the rows; `precisions` are Q_k = N_k P_k / N,
        (K, d, d), or their diagonals, (K, d).
        """


@dataclass(frozen=True)
class RelativeEM(MeanUpdate):
    """The exact M-step in relative coordinates: EM, if no gap is at its clearance.

    Along the ordering feature it is an isotonic regression of the weighted means with weights
    N_k / Sigma_k,ll; the other features follow by regression on this one (derived here).
    """

    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        feature = self.feature
        columns = np.array([_covariance_column(P, feature) for P in precisions])
        values = project(best[:, feature], 1 / columns[:, feature], self.clearance)
        slopes = columns / columns[:, feature, None]
        moved: Array = best + slopes * (values - best[:, feature])[:, None]
        moved[:, feature] = values
        return moved


@dataclass(frozen=True)
class RelativeECM(MeanUpdate):
    """Conditional maximization: the reference mean first, then one gap after the other.

    The paper's algorithm 1, line 6, loses a sign and takes the wrong count; for K = 2 and unit
    variances it is mu_1 = (T_1 + T_2 - N_2 Delta) / (N_1 + N_2), with T_k the weighted sums of
    rows. A gap below its clearance is set to it, and the other features are solved for again.
    """

    def move(self, best: Array, precisions: Array, means: Array) -> Array:
        """Return means after one conditional maximum each over the reference and the gaps."""
        feature = self.feature
        moved = means.copy()
        axes = "kd,kd->kd" if precisions.ndim == 2 else "kde,ke->kd"
        for k in range(len(moved)):  # a gap moves all means after it
            precision = precisions[k:].sum(axis=0)
            gradients = np.einsum(axes, precisions, best - moved)
            shift = _solve(precision, gradients[k:].sum(axis=0))
            if k > 0:
                gap = moved[k, feature] + shift[feature] - moved[k - 1, feature]
                if gap < self.clearance:
                    column = _covariance_column(precision, feature)
                    shift += column * ((self.clearance - gap) / column[feature])
            moved[k:] += shift
        return moved


def _solve(precision: Array, vector: Array) -> Array:
    """Solve for a vector (d,); the matrix (d, d) or its diagonal (d,) is positive."""
    return np.linalg.solve(precision, vector) if precision.ndim == 2 else vector / precision


def _covariance_column(precision: Array, feature: int) -> Array:
    """Return one column (d,) of the inverse."""
    return _solve(precision, np.eye(1, len(precision), feature)[0])
