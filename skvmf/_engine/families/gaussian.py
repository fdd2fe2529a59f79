"""Gaussian components, and those with covariances shrunk to the pooled one for large starts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.random import RandomState

from ..._kernels import fisher as kernels
from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import COVARIANCE_TYPES, CovarianceType, per_component
from .family import AnyFamily, Family, MergeCost, Proposal, Scores, SeedFamily
from .gaussian_products import GaussianComponents, squared_distances
from .gradients import (
    Bags,
    Gradients,
    GradientsType,
    ParameterBlock,
    VectorResponsibilities,
    repeat_columns,
)
from .merge_costs import EllipticalMergeCost, SphericalMergeCost
from .missing import ObservedRows
from .responsibilities import Responsibilities, as_dense
from .statistics import Statistics

_EPS = float(np.finfo(np.float64).eps)
_ADVICE = (
    "If a few rows lie far from all others, no reg_covar helps: leave them out, set "
    "background=True, or take a StudentTMixture."
)


Shape = TypeVar("Shape", bound=GaussianComponents)


@dataclass(frozen=True)
class Elliptical(Family[Shape]):
    """Components with a mean and a matrix of some covariance type: what families of them share."""

    dim: int
    covariance_type: str
    reg_covar: float = 0.0  # added to the diagonals
    fixed_covariances: bool = False
    fixed_means: bool = False
    scale: float = 1.0  # mean variance of the features: that of components that have none yet

    @property
    def type(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    @property
    def min_rows(self) -> int:
        return self.dim + 1

    def n_parameters(self, n_components: int) -> int:
        n_means = 0 if self.fixed_means else n_components * self.dim
        if self.fixed_covariances:
            return n_means
        return n_means + self.type.n_parameters(n_components, self.dim)

    def kmeans(self) -> "Gaussian":
        return Gaussian(self.dim, "spherical", fixed_covariances=True, scale=self.scale)

    @property
    def component_axes(self) -> tuple[int | None, ...]:
        return 0, None if self.type.shared else 0

    def centres(self, components: Shape) -> Array:
        return components.means

    def distances(self, block: DenseBlock, centres: Array) -> Array:
        """Return squared distances in units of the data's variance, (n, m)."""
        return squared_distances(block.X, centres, np.full(len(centres), 1 / self.scale))

    def origins(self, components: Shape) -> Array:
        return components.origins

    def continued_by(self, fresh: AnyFamily) -> AnyFamily:
        """Return the new family, after a check of its type of covariance."""
        assert isinstance(fresh, Elliptical)
        if fresh.covariance_type != self.covariance_type:
            raise ValueError(
                f"The fitted mixture has covariance_type={self.covariance_type!r}, and "
                f"covariance_type is {fresh.covariance_type!r} now: set it back, or start from "
                "scratch with a clone of the mixture."
            )
        return fresh

    def merge_cost(self, stats: Statistics, components: Shape, parts: Array) -> MergeCost:
        counts, means = stats.counts[parts], components.means[parts]
        if self.type.shared:
            return EllipticalMergeCost(counts, means @ components.cholesky, None, self.type)
        return EllipticalMergeCost(counts, means, components.covariances[parts], self.type)


@dataclass(frozen=True)
class Gaussian(Elliptical[GaussianComponents]):
    """Gaussian components with full, tied, diagonal or spherical covariances.

    Rows are taken in float64: products of float32 features are wrong for clusters ten standard
    deviations apart. Scores of float32 rows under diagonal covariances alone are taken in float32,
    by differences, where that moves a mean by a millionth of a standard deviation, and a
    responsibility by less than 1e-4: see `GaussianComponents.single_precision`.
    """

    components_class: ClassVar[type] = GaussianComponents

    def sample(self, components: GaussianComponents, counts: Array, rng: RandomState) -> Array:
        return self.type.draw(components.means, components.covariances, counts, rng)

    def components(self, means: Array, covariances: Array) -> GaussianComponents:
        return self.type.components(means, covariances)

    def from_centres(self, centres: Array) -> GaussianComponents:
        """Return components at centres (K, d) with the data's scale."""
        return self.components(centres, self.scale * self.type.identity(*centres.shape))

    def chosen(self, components: GaussianComponents, numbers: Array) -> GaussianComponents:
        covariances = self.type.select(components.covariances, numbers)
        return self.components(components.means[numbers], covariances)

    def reshaped(self, components: GaussianComponents, shapes: Array) -> GaussianComponents:
        return self.components(components.means, shapes)

    def scores(self, block: DenseBlock, components: GaussianComponents) -> Scores:
        if block.missing is None:
            products = self.type.scores(block.X, components)
        else:
            products, normalizers = ObservedRows(self.type, block, components).scores()
            products += normalizers
        return Scores(products, components.log_det - 0.5 * self.dim * np.log(2 * np.pi))

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: GaussianComponents,
        cache: None = None,
        shares: Responsibilities | None = None,
    ) -> tuple[Array, ...]:
        """Return moments; `shares` weigh conditional covariances, else the responsibilities do."""
        if block.missing is None:
            return self.type.moments(block.X, responsibilities, components)
        K, shares = len(components), shares or responsibilities
        own = as_dense(responsibilities, K), as_dense(shares, K)
        return ObservedRows(self.type, block, components).moments(*own)

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        assert origins is not None
        assert stats.origins is not None
        shifts = origins - stats.origins
        first, second = stats.moments
        moved = self.type.moved(stats.counts, first, second, shifts)
        first = first - stats.counts[:, None] * shifts
        return replace(stats, moments=(first, moved), origins=origins)

    def sample_means(self, stats: Statistics, components: GaussianComponents) -> Array:
        """Return the weighted means of the rows (K, d); an empty component stays."""
        assert stats.origins is not None
        means = stats.origins + _first(stats)
        empty = stats.counts <= 0
        means[empty] = components.means[empty]
        return means

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        """Return the best components, about `means` if given, and which ones are singular."""
        empty = stats.counts <= 0
        sample_means = self.sample_means(stats, components)
        if means is None:
            means = components.means if self.fixed_means else sample_means
        if self.fixed_covariances:
            return self.components(means, components.covariances), np.zeros_like(empty)
        covariances = self._covariances(stats, components.covariances)
        if means is not sample_means:
            covariances = covariances + self.type.scatter(stats.counts, means - sample_means)
        covariances = self.type.replaced(covariances, empty, by=components.covariances)
        fresh = self._regular_components(means, covariances, stats)
        broken = np.isnan(fresh.log_det)
        if not broken.any():
            return fresh, broken
        if broken[~empty].all():
            raise ValueError(
                "Every covariance is singular: the rows of each component lie in a subspace. "
                f"Increase reg_covar (now {self.reg_covar}), reduce n_components, or choose a "
                f"simpler covariance_type. {_ADVICE}"
            )
        means = np.where(broken[:, None], components.means, means)
        covariances = self.type.replaced(fresh.covariances, broken, by=components.covariances)
        return self.components(means, covariances), broken

    def reseed(self, components: GaussianComponents, k: int, row: Array) -> GaussianComponents:
        """Move component k to a row, with the mean covariance of all."""
        if self.fixed_means:
            return components
        means = components.means.copy()
        means[k] = row
        covariances = components.covariances
        if self.fixed_covariances:
            return self.components(means, covariances)
        average = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        moved = np.arange(len(means)) == k
        return self.components(means, self.type.replaced(covariances, moved, by=average))

    def kept(
        self, first: GaussianComponents, old: GaussianComponents, numbers: Array, merged: Array
    ) -> GaussianComponents:
        if not (self.fixed_means or self.fixed_covariances):
            return first
        means = old.means[numbers] if self.fixed_means else first.means
        if not self.fixed_covariances:
            return self.components(means, first.covariances)
        return self.components(means, self.type.select(old.covariances, numbers))

    def initial(
        self, stats: Statistics, components: GaussianComponents, centres: Array | None = None
    ) -> GaussianComponents:
        """Make first components from a partition whose moments are about `components`.

        `centres` (K, d) overrides the means, and then covariances are that of all rows; so
        is a covariance that the partition leaves empty or singular.
        """
        assert stats.origins is not None
        means = stats.origins + _first(stats)
        if self.fixed_covariances:
            means = means if centres is None else centres
            return self.components(means, components.covariances)
        covariances = self._covariances(stats, components.covariances)
        of_data = self.type.of_data(stats.counts, means, covariances)
        if centres is not None:
            fresh = self.components(centres, of_data)
        else:
            fresh = self._regular_components(means, covariances, stats)
            unusable = np.isnan(fresh.log_det) | (stats.counts <= 0)
            if np.isnan(fresh.log_det).all():
                fresh = self.components(means, of_data)
            elif unusable.any():
                covariances = self.type.replaced(fresh.covariances, unusable, by=of_data)
                fresh = self.components(means, covariances)
        if np.isnan(fresh.log_det).any():
            raise ValueError(
                "The covariance of the data is singular: the rows lie in a subspace. Increase "
                f"reg_covar (now {self.reg_covar}) or choose a simpler covariance_type. {_ADVICE}"
            )
        return fresh

    def _regular_components(
        self, means: Array, covariances: Array, stats: Statistics
    ) -> GaussianComponents:
        """Return components; covariances that are singular by rounding alone grow by that much."""
        fresh = self.components(means, covariances)
        singular = np.isnan(fresh.log_det)
        if singular.any() and self.reg_covar > 0:  # else the rows may lie in a subspace
            regular = self.type.regularized(covariances, 8 * self.dim * self._rounding(stats))
            covariances = self.type.replaced(covariances, singular, by=regular)
            fresh = self.components(means, covariances)
        return fresh

    def _covariances(self, stats: Statistics, old: Array) -> Array:
        """Return covariances; the old ones where moments have lost their digits.

        Moments about a point far from the rows cancel. A mean that has come from there is at the
        rows now, so the next step knows better, and the bound does not fall meanwhile.
        """
        kind, first, second = self.type, _first(stats), stats.moments[1]
        each = np.where(stats.counts > 0, stats.counts, 1.0)
        second = second / (stats.counts.sum() if kind.shared else per_component(each, second))
        estimate = kind.estimate(stats.counts, first, second)
        covariances = kind.regularized(estimate, self.reg_covar)
        negligible = np.maximum(1e-6 * kind.variances(covariances), 1e-12 * kind.variances(old))
        inexact = self._rounding(stats) > negligible
        if kind.shared:
            return old if inexact.any() else covariances
        return kind.replaced(covariances, np.asarray(inexact.any(axis=1)), by=old)

    def _rounding(self, stats: Statistics) -> Array:
        """Return what moments about points that are not the means lose of variances."""
        return _EPS * self.type.variances(self.type.scatter(stats.counts, _first(stats)))

    def proposal(self) -> Proposal:
        """Start with spherical Gaussians, and give them covariances where rows suffice."""
        return Proposal(
            ShrunkSpherical.of(self),
            None if self.fixed_covariances else ShrunkGaussian.of(self),
            trimmed=lambda scale: replace(self, scale=scale).proposal(),
        )

    @property
    def gradients(self) -> GradientsType:
        if self.covariance_type != "diag":
            raise ValueError(
                f"Gaussian components with covariance_type={self.covariance_type!r} have no "
                "Fisher vectors: use covariance_type='diag'."
            )
        return DiagonalGradients


def _first(stats: Statistics) -> Array:
    """Return first moments per unit of count."""
    return stats.moments[0] / np.where(stats.counts > 0, stats.counts, 1.0)[:, None]


class DiagonalGradients(Gradients):
    """Gradients in means, variances and weights of diagonal Gaussians.

    With z = (x - mu)/sigma and responsibilities g, statistics are sum g z, sum g (z^2 - 1) and
    N - w T; their variances per vector are w, 2 w and w (Sanchez, Perronnin, Mensink and Verbeek,
    "Image classification with the Fisher vector", IJCV 105, 2013, eq. 16-18).
    """

    names: ClassVar[dict[str, str]] = {
        "means": "mean",
        "variances": "variance",
        "weights": "weight",
    }

    def __init__(self, weights: Array, components: GaussianComponents, *, tangent: bool) -> None:
        self._weights, self._means = weights, components.means
        self._variances = components.covariances
        K, d = self._variances.shape
        _, each = repeat_columns(weights, weights, d)
        self.blocks = {
            "means": ParameterBlock(1 / np.sqrt(self._variances), each),
            "variances": ParameterBlock(0.5 / self._variances, 2 * each),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        n, (K, d) = len(bags[0]) - 1, self._means.shape
        counts, first, second = np.empty((n, K)), np.empty((n, K, d)), np.empty((n, K, d))
        add = kernels.packed_moment_sums if responsibilities.packed else kernels.moment_sums
        add(bags, responsibilities.resp, responsibilities.table, self._means, counts, first, second)
        sizes = counts.sum(axis=1)
        first /= np.sqrt(self._variances)
        statistics = {"means": first}
        if "variances" in kinds:
            with np.errstate(over="ignore"):  # beyond the largest float it is taken for that
                second /= self._variances
            second -= counts[:, :, None]
            statistics["variances"] = second
        if "weights" in kinds:
            statistics["weights"] = counts - sizes[:, None] * self._weights
        return statistics, sizes


MIN_ROWS_PER_COMPONENT = 8  # with a covariance of its own


@dataclass(frozen=True)
class ShrunkSpherical(Gaussian, SeedFamily[GaussianComponents]):
    """Spherical Gaussians with n0 pseudo-observations each of the pooled variance."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: Gaussian) -> "ShrunkSpherical":
        """Return the family for the same data with n0 = 1 + 8/d."""
        return cls(family.dim, "spherical", scale=family.scale, n_pseudo=1 + 8 / family.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        empty = stats.counts <= 0
        variances = np.where(empty, 0.0, self._covariances(stats, components.covariances))
        pooled = max(stats.counts @ variances / stats.counts.sum(), 1e-12 * self.scale)
        means = self.sample_means(stats, components)
        return self._shrunk(means, variances, stats.counts, pooled), np.zeros_like(empty)

    def at_points(
        self, points: Array, like: GaussianComponents | None = None
    ) -> GaussianComponents:
        """Return components at points (M, d), of the median variance of others."""
        variance = self.scale if like is None else float(np.median(like.covariances))
        return self.components(points, np.full(len(points), variance))

    def append(
        self, components: GaussianComponents, others: GaussianComponents
    ) -> GaussianComponents:
        return self.components(
            np.vstack([components.means, others.means]),
            np.append(components.covariances, others.covariances),
        )

    def peaks(self, components: GaussianComponents) -> Array:
        return components.log_det - 0.5 * self.dim * np.log(2 * np.pi)

    def merge_cost(
        self, stats: Statistics, components: GaussianComponents, parts: Array
    ) -> SphericalMergeCost:
        """Return what merging components costs, by sums about the mean of all means."""
        centre = components.means.mean(axis=0)
        moved = self.recenter(stats, np.tile(centre, (len(stats.counts), 1)))
        counts, sums, squares = stats.counts[parts], *(part[parts] for part in moved.moments)
        scatter = np.maximum(squares - np.einsum("kd,kd->k", sums, sums) / counts, 0)
        pooled = max(scatter.sum() / (counts.sum() * self.dim), 1e-12 * self.scale)
        return SphericalMergeCost(sums, counts, squares, centre, self.n_pseudo, float(pooled))

    def fit_parts(self, cost: SphericalMergeCost, parts: Array) -> GaussianComponents:
        counts, means = cost.counts[parts], cost.sums[parts] / cost.counts[parts, None]
        squares = np.einsum("kd,kd->k", means, means)
        variances = np.maximum(cost.row_squares[parts] / counts - squares, 0) / self.dim
        return self._shrunk(cost.centre + means, variances, counts, cost.pooled)

    def _shrunk(
        self, means: Array, variances: Array, counts: Array, pooled: float
    ) -> GaussianComponents:
        """Return components with the variances (n s^2 + n0 pooled) / (n + n0)."""
        weighted = counts * variances + self.n_pseudo * pooled
        return self.components(means, weighted / (counts + self.n_pseudo))


@dataclass(frozen=True)
class ShrunkGaussian(Gaussian):
    """Gaussians with n0 pseudo-observations each, of the pooled shape and of their own size.

    `SplitAndMerge` splits and merges these.
    """

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: Gaussian) -> "ShrunkGaussian":
        """Return the family with the n0 that its type of covariance asks for."""
        kind, n_pseudo = family.covariance_type, family.type.pseudo_rows(family.dim)
        return cls(family.dim, kind, family.reg_covar, scale=family.scale, n_pseudo=n_pseudo)

    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether there are enough rows to estimate the components."""
        n_parameters = self.type.n_parameters(n_components, self.dim)
        return n_rows >= max(MIN_ROWS_PER_COMPONENT * n_components, 2 * n_parameters / self.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        counts, kind = stats.counts, self.type
        covariances = self._covariances(stats, components.covariances)
        pooled = covariances
        if not kind.shared:
            pooled = np.tensordot(counts / counts.sum(), covariances, 1)
        floor = max(1e-9 * float(np.mean(kind.variances(pooled))), 1e-12 * self.scale)
        pooled = kind.regularized(pooled, floor)
        shrunk = pooled if kind.shared else self._shrunk(covariances, counts, pooled)
        result = self.components(self.sample_means(stats, components), shrunk)
        singular = np.isnan(result.log_det)
        if singular.any():  # by rounding, beside a row very far away: then a sphere of its size
            sizes = np.maximum(kind.sizes(shrunk), floor)  # rounding can take them below zero
            sizes = sizes if kind.shared else sizes[:, None]
            spheres = kind.regularized(np.zeros_like(shrunk), sizes)
            covariances = spheres if kind.shared else kind.replaced(shrunk, singular, spheres)
            result = self.components(result.means, covariances)
        return result, np.zeros(len(counts), dtype=bool)

    def split(self, components: GaussianComponents, steps: Array) -> GaussianComponents:
        """Return components moved by -steps (K, d), followed by the same moved by steps."""
        twice = np.tile(np.arange(len(steps)), 2)
        means = np.vstack([components.means - steps, components.means + steps])
        return self.components(means, self.type.select(components.covariances, twice))

    def merge_pairs(
        self, components: GaussianComponents, weights: Array, pairs: Array
    ) -> list[GaussianComponents]:
        """Return a component for each pair (m, 2), with the mean and covariance of the two."""
        kind, (a, b) = self.type, pairs.T
        total = weights[a] + weights[b]
        fractions = np.where(total > 0, weights[a] / np.where(total > 0, total, 1.0), 0.5)
        gaps = components.means[a] - components.means[b]
        means = components.means[b] + fractions[:, None] * gaps
        covariances = kind.select(components.covariances, a)
        if not kind.shared:
            others = kind.select(components.covariances, b)
            covariances = kind.merged(1 - fractions, covariances, others, gaps)
        merged = self.components(means, covariances)
        return [
            GaussianComponents(
                means[part],
                kind.select(merged.covariances, part),
                kind.select(merged.cholesky, part),
                merged.log_det[part],
                origins=means[part],
                spread=0.0,
            )
            for part in (slice(k, k + 1) for k in range(len(pairs)))
        ]

    def merge_statistics(
        self, stats: Statistics, components: GaussianComponents, pairs: Array
    ) -> tuple[Statistics, GaussianComponents]:
        """Add statistics of the second of each pair (m, 2) to the first; return components, too."""
        kind, (a, b) = self.type, pairs.T
        assert stats.origins is not None
        origins = stats.origins.copy()
        origins[b] = origins[a]
        stats = self.recenter(stats, origins)
        counts, (first, second) = stats.counts, stats.moments
        for sums in (counts, first) if kind.shared else (counts, first, second):
            sums[a] += sums[b]
        left = np.delete(np.arange(len(counts)), b)
        moments = (first[left], kind.select(second, left))
        covariances = kind.select(components.covariances, left)
        return (
            replace(stats, counts=counts[left], moments=moments, origins=origins[left]),
            self.components(components.means[left], covariances),
        )

    def _shrunk(self, covariances: Array, counts: Array, pooled: Array) -> Array:
        """Return (n C + n0 s pooled) / (n + n0), with C's own size s in units of the pooled one.

        The size has 1 + 2/d pseudo-observations of 1.
        """
        ratios = self.type.variances(covariances) / self.type.variances(pooled)
        ratios = ratios.reshape(len(counts), -1).mean(axis=1)
        n_of_size = 1 + 2 / self.dim
        sizes = (counts * ratios + n_of_size) / (counts + n_of_size)
        total = counts + self.n_pseudo
        of_rows, of_pseudo = counts / total, self.n_pseudo * sizes / total
        shrunk: Array = per_component(of_rows, covariances) * covariances
        shrunk += per_component(of_pseudo, covariances) * pooled
        return shrunk
