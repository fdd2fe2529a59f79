"""Updates of ordered Gaussian means, and gradient ascent, from the statistics alone.

With responsibilities and covariances given, what of the bound depends on the means is a concave
quadratic. An update raises it, and the family takes covariances about the new means; so the bound
never falls. See Esser and Nielsen, section 4.2 and algorithm 2.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import Update
from ..contracts.statistics import Statistics
from ..families.covariance_type import per_component
from ..families.gaussian import Gaussian
from ..families.gaussian_products import GaussianComponents
from .coordinates import Coordinates, RelativeCoordinates

MAX_HALVINGS = 1100  # from the largest to the smallest float


def alive_components(stats: Statistics) -> Array:
    """Return which components (K,) have rows: counts above rounding."""
    return stats.counts > 10 * np.finfo(np.float64).eps * stats.counts.sum()


@dataclass(frozen=True)
class MeanObjective:
    """The bound as a function of the means: -sum_k (m_k - mu_k)' N_k P_k (m_k - mu_k) / 2 N."""

    best: Array  # the weighted means m_k of the rows, (K, d)
    precisions: Array  # N_k P_k / N, (K, d, d), or their diagonals, (K, d)

    def gradient(self, means: Array) -> Array:
        """Return the gradient at means (K, d)."""
        gaps = self.best - means
        axes = "kd,kd->kd" if self.precisions.ndim == 2 else "kde,ke->kd"
        return np.einsum(axes, self.precisions, gaps)

    def value(self, means: Array) -> float:
        """Return the value at means (K, d)."""
        return -0.5 * float(np.sum(self.gradient(means) * (self.best - means)))


def objective(family: Gaussian, stats: Statistics, components: GaussianComponents) -> MeanObjective:
    """Return the objective of the means for the covariances of the components."""
    precisions = family.type.each_precision(components.cholesky, *components.means.shape)
    fractions = per_component(stats.counts / stats.total, precisions)
    return MeanObjective(family.sample_means(stats, components), fractions * precisions)


@dataclass(frozen=True)
class MeanUpdate(Update):
    """Means first, within the order of the coordinates; then covariances about them.

    Components without rows do not count in the order: they lie between their neighbours.
    """

    coordinates: Coordinates

    def __call__(
        self, family: Gaussian, stats: Statistics, components: GaussianComponents
    ) -> tuple[GaussianComponents, Array]:
        alive = alive_components(stats)
        target = objective(family, stats, components)
        of_alive = MeanObjective(target.best[alive], target.precisions[alive])
        means = components.means.copy()
        means[alive] = self.move(of_alive, means[alive])
        means = self.coordinates.keep_order(means, alive)
        fresh, broken = family.maximize(stats, components, means)
        if broken.any():  # these are back where they were
            means = self.coordinates.keep_order(fresh.means, alive & ~broken)
            fresh = family.components(means, fresh.covariances)
        return fresh, broken

    def reseed(
        self, family: Gaussian, components: GaussianComponents, alive: Array, k: int, row: Array
    ) -> GaussianComponents:
        """Move component k to a row, or as near to it as the order of those alive allows."""
        fresh = family.reseed(components, k, row)
        means = self.coordinates.place(components.means, alive, k, row)
        return family.components(means, fresh.covariances)

    @abstractmethod
    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return better means (K, d)."""


@dataclass(frozen=True)
class RelativeEM(MeanUpdate):
    """The exact M-step in relative coordinates: EM, if no gap is at its clearance.

    Along the ordering feature it is an isotonic regression of the weighted means with weights
    N_k / Sigma_k,ll; the other features follow by regression on this one (derived here).
    """

    coordinates: RelativeCoordinates

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return the best means that have the clearance."""
        feature = self.coordinates.feature
        columns = np.array([_covariance_column(P, feature) for P in target.precisions])
        best = target.best[:, feature]
        values = self.coordinates.project(best, 1 / columns[:, feature])
        slopes = columns / columns[:, feature, None]
        moved: Array = target.best + slopes * (values - best)[:, None]
        moved[:, feature] = values
        return moved


@dataclass(frozen=True)
class RelativeECM(MeanUpdate):
    """Conditional maximization: the reference mean first, then one gap after the other.

    The paper's algorithm 1, line 6, loses a sign and takes the wrong count; for K = 2 and unit
    variances it is mu_1 = (T_1 + T_2 - N_2 Delta) / (N_1 + N_2), with T_k the weighted sums of
    rows. A gap below its clearance is set to it, and the other features are solved for again.
    """

    coordinates: RelativeCoordinates

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return means after one conditional maximum each over the reference and the gaps."""
        feature, clearance = self.coordinates.feature, self.coordinates.clearance
        moved = means.copy()
        for k in range(len(moved)):  # a gap moves all means after it
            precision = target.precisions[k:].sum(axis=0)
            shift = _solve(precision, target.gradient(moved)[k:].sum(axis=0))
            if k > 0:
                gap = moved[k, feature] + shift[feature] - moved[k - 1, feature]
                if gap < clearance:
                    column = _covariance_column(precision, feature)
                    shift += column * ((clearance - gap) / column[feature])
            moved[k:] += shift
        return moved


@dataclass(frozen=True)
class GradientStep(MeanUpdate):
    """One step up the gradient of the bound per unit of weight; halved until the bound rises."""

    learning_rate: float

    def move(self, target: MeanObjective, means: Array) -> Array:
        """Return means after one step."""
        here = self.coordinates.from_means(means)
        gradient = self.coordinates.pull_back(here, target.gradient(means))
        rate, value = self.learning_rate, target.value(means)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(MAX_HALVINGS):
                moved = self.coordinates.to_means(here + rate * gradient)
                if target.value(moved) >= value:
                    return moved
                rate /= 2
        return means


def _solve(precision: Array, vector: Array) -> Array:
    """Solve for a vector (d,); the matrix (d, d) or its diagonal (d,) is positive."""
    return np.linalg.solve(precision, vector) if precision.ndim == 2 else vector / precision


def _covariance_column(precision: Array, feature: int) -> Array:
    """Return one column (d,) of the inverse."""
    return _solve(precision, np.eye(1, len(precision), feature)[0])
