"""Gaussian components, and those with covariances shrunk to the pooled one for large starts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..._kernels import fisher as kernels
from ..._typing import Array
from ..rows.blocks import DenseBlock
from .covariance import EPS, per_component, sum_over_components
from .elliptical import Elliptical
from .family import Proposal, Scores, SeedFamily
from .gaussian_products import GaussianComponents
from .gradients import Bags, Gradients, GradientsType, ParameterBlock, VectorResponsibilities
from .merge_costs import SphericalMergeCost
from .missing import ObservedRows
from .responsibilities import Responsibilities, as_dense
from .statistics import Statistics

_LOG_2PI = float(np.log(2 * np.pi))
# What moments lose to rounding does not count below these parts of a variance, and of the old one.
_NEGLIGIBLE = 1e-6
_NEGLIGIBLE_OF_OLD = 1e-12
_ADVICE = (
    "If a few rows lie far from all others, no reg_covar helps: leave them out, set "
    "background=True, or take a StudentTMixture."
)


@dataclass(frozen=True, eq=False)
class Gaussian(Elliptical[GaussianComponents]):
    """Gaussian components with full, tied, diagonal or spherical covariances.

    Rows are taken in float64: products of float32 features are wrong for clusters ten standard
    deviations apart. Scores of float32 rows under diagonal covariances alone are taken in float32,
    by differences, where that moves a mean by a millionth of a standard deviation, and a
    responsibility by less than 1e-4: see `GaussianComponents.single_precision`.
    """

    components_class: ClassVar[type] = GaussianComponents

    def kmeans(self) -> "Gaussian":
        return Gaussian(self.dim, "spherical", fixed_covariances=True, scale=self.scale)

    def sample(self, components: GaussianComponents, counts: Array, rng: Generator) -> Array:
        return self.type.draw(components.means, components.covariances, counts, rng)

    def components(self, means: Array, covariances: Array) -> GaussianComponents:
        return self.type.components(means, covariances, self.units_of_density)

    def from_centres(self, centres: Array) -> GaussianComponents:
        """Return components at centres (K, d) with the data's scale."""
        variances = self.scale if self.units_of_density is None else self.units_of_density**2
        nothing = np.zeros(self.type.shape(*centres.shape))
        return self.components(centres, self.type.regularized(nothing, variances))

    def from_units(self, components: GaussianComponents, units: Array) -> GaussianComponents:
        covariances = self.type.in_other_units(components.covariances, units)
        return self.components(components.means * units, covariances)

    def select(self, components: GaussianComponents, numbers: Array) -> GaussianComponents:
        covariances = self.type.select(components.covariances, numbers)
        return self.components(components.means[numbers], covariances)

    def with_shapes(self, components: GaussianComponents, shapes: Array) -> GaussianComponents:
        return self.components(components.means, shapes)

    def with_added(
        self, components: GaussianComponents, centres: Array, in_use: Array
    ) -> GaussianComponents:
        covariances = components.covariances
        if not self.type.shared:
            average = covariances[in_use].mean(axis=0, keepdims=True)
            covariances = np.concatenate([covariances, np.repeat(average, len(centres), axis=0)])
        return self.components(np.vstack([components.means, centres]), covariances)

    def scores(self, block: DenseBlock, components: GaussianComponents) -> Scores:
        if block.missing is None:
            products = self.type.scores(block.X, components)
        else:
            rows = ObservedRows(self.type, block, components)
            products, normalizers = rows.scores(self.units_of_density)
            products += normalizers
        return Scores(products, self.peaks(components))

    def peaks(self, components: GaussianComponents) -> Array:
        """Return the log-densities at the means, (K,)."""
        return components.log_det - 0.5 * self.dim * _LOG_2PI

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: GaussianComponents,
        cache: None = None,
        shares: Responsibilities | None = None,
    ) -> tuple[Array, ...]:
        """Return first and second moments.

        If values are missing, `shares` weigh conditional covariances, else responsibilities do.
        """
        if block.missing is None:
            return self.type.moments(block.X, responsibilities, components)
        K = len(components)
        return ObservedRows(self.type, block, components).moments(
            as_dense(responsibilities, K), as_dense(shares or responsibilities, K)
        )

    def shift_moments(self, stats: Statistics, centred_at: Array | None) -> Statistics:
        assert centred_at is not None
        assert stats.centred_at is not None
        shifts = centred_at - stats.centred_at
        first, second = stats.moments
        second = self.type.moved(stats.counts, first, second, shifts)
        first = first - stats.counts[:, None] * shifts
        return replace(stats, moments=(first, second), centred_at=centred_at)

    def sample_means(self, stats: Statistics, components: GaussianComponents) -> Array:
        """Return the weighted means of the rows (K, d); an empty component stays."""
        assert stats.centred_at is not None
        means = stats.centred_at + _mean_first(stats)
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
            # About other points than the rows' means scatter is larger, by the distance.
            covariances = covariances + self.type.scatter(stats.counts, means - sample_means)
        covariances = self.type.replaced(covariances, empty, by=components.covariances)
        updated = self._regular_components(means, covariances, stats)
        singular = np.isnan(updated.log_det)
        if not singular.any():
            return updated, singular
        if singular[~empty].all():
            raise ValueError(
                "Every covariance is singular: the rows of each component lie in a subspace. "
                f"Increase reg_covar (now {self.reg_covar}), reduce n_components, or choose a "
                f"simpler covariance_type. {_ADVICE}"
            )
        means = np.where(singular[:, None], components.means, means)
        covariances = self.type.replaced(updated.covariances, singular, by=components.covariances)
        return self.components(means, covariances), singular

    def reseed(self, components: GaussianComponents, k: int, row: Array) -> GaussianComponents:
        """Move component k to a row, with the mean covariance of all."""
        if self.fixed_means:
            return components
        means = components.means.copy()
        means[k] = row
        covariances = components.covariances
        if not self.fixed_covariances:
            average = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
            moved = np.arange(len(means)) == k
            covariances = self.type.replaced(covariances, moved, by=average)
        return self.components(means, covariances)

    def inherit(
        self, first: GaussianComponents, old: GaussianComponents, numbers: Array, merged: Array
    ) -> GaussianComponents:
        if not (self.fixed_means or self.fixed_covariances):
            return first
        means = first.means
        if self.fixed_means:
            means = old.means[numbers]
        covariances = first.covariances
        if self.fixed_covariances:
            covariances = self.type.select(old.covariances, numbers)
        return self.components(means, covariances)

    def initial(
        self, stats: Statistics, components: GaussianComponents, centres: Array | None = None
    ) -> GaussianComponents:
        """Make first components from a partition whose moments are about `components`.

        `centres` (K, d) overrides the means, and then covariances are that of all rows; so
        is a covariance that the partition leaves empty or singular.
        """
        assert stats.centred_at is not None
        means = stats.centred_at + _mean_first(stats)
        if self.fixed_covariances:
            if centres is not None:
                means = centres
            return self.components(means, components.covariances)
        covariances = self._covariances(stats, components.covariances)
        of_data = self.type.of_data(stats.counts, means, covariances)
        if centres is not None:
            # Nobody knows which rows are theirs.
            first = self.components(centres, of_data)
        else:
            first = self._regular_components(means, covariances, stats)
            singular = np.isnan(first.log_det)
            unusable = singular | (stats.counts <= 0)
            if singular.all():
                first = self.components(means, of_data)
            elif unusable.any():
                covariances = self.type.replaced(first.covariances, unusable, by=of_data)
                first = self.components(means, covariances)
        if np.isnan(first.log_det).any():
            raise ValueError(
                "The covariance of the data is singular: the rows lie in a subspace. Increase "
                f"reg_covar (now {self.reg_covar}) or choose a simpler covariance_type. {_ADVICE}"
            )
        return first

    def _regular_components(
        self, means: Array, covariances: Array, stats: Statistics
    ) -> GaussianComponents:
        """Return components; covariances that are singular by rounding alone grow by that much."""
        components = self.components(means, covariances)
        singular = np.isnan(components.log_det)
        if singular.any() and self.reg_covar > 0:  # else the rows may lie in a subspace
            # Rounding adds up over features. A few times as much is above it, and changes nothing
            # that is known of a covariance.
            rounding = self._rounding(stats.counts, _mean_first(stats))
            regular = self.type.regularized(covariances, 8 * self.dim * rounding)
            covariances = self.type.replaced(covariances, singular, by=regular)
            components = self.components(means, covariances)
        return components

    def _covariances(self, stats: Statistics, old: Array) -> Array:
        """Return covariances; the old ones where moments have lost their digits.

        Moments about a point far from the rows cancel. A mean that has come from there is at the
        rows now, so the next step knows better, and the bound does not fall meanwhile.
        """
        kind = self.type
        _, second = stats.moments
        divisor = stats.counts.sum()
        if not kind.shared:
            divisor = per_component(np.where(stats.counts > 0, stats.counts, 1.0), second)
        first = _mean_first(stats)
        estimate = kind.estimate(stats.counts, first, second / divisor)
        covariances = kind.regularized(estimate, self.regularization)
        negligible = np.maximum(
            _NEGLIGIBLE * kind.variances(covariances), _NEGLIGIBLE_OF_OLD * kind.variances(old)
        )
        inexact = self._rounding(stats.counts, first) > negligible
        if not inexact.any():
            return covariances
        if kind.shared:
            return old
        return kind.replaced(covariances, np.asarray(inexact.any(axis=1)), by=old)

    def _rounding(self, counts: Array, gaps: Array) -> Array:
        """Return what moments about points `gaps` (K, d) off the means lose of variances."""
        return EPS * self.type.variances(self.type.scatter(counts, gaps))

    def proposal(self) -> Proposal:
        """Start with spherical Gaussians, and give them covariances where rows suffice."""
        return Proposal(
            ShrunkSpherical.of(self),
            shaped=None if self.fixed_covariances else ShrunkGaussian.of(self),
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


def _mean_first(stats: Statistics) -> Array:
    """Return first moments per unit of count, (K, d)."""
    first, _ = stats.moments
    return first / np.where(stats.counts > 0, stats.counts, 1.0)[:, None]


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
        self._weights = weights
        self._means = components.means
        self._variances = components.covariances
        K, d = self._variances.shape
        # How much larger rounding is than at the origin: that of means, in standard deviations.
        self._rounding_units = 1 + np.abs(self._means / np.sqrt(self._variances))
        of_features = np.tile(weights[:, None], d)
        self.blocks = {
            "means": ParameterBlock(1 / np.sqrt(self._variances), of_features),
            "variances": ParameterBlock(0.5 / self._variances, 2 * of_features),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        n = len(bags[0]) - 1
        K, d = self._means.shape
        counts = np.empty((n, K))
        first, second = np.empty((n, K, d)), np.empty((n, K, d))
        add = kernels.packed_moment_sums if responsibilities.packed else kernels.moment_sums
        add(bags, responsibilities.resp, responsibilities.table, self._means, counts, first, second)
        n_terms = np.diff(bags[0])
        kernels.clear_rounded_moments(n_terms, self._means, counts, first, second)
        sizes = counts.sum(axis=1)
        first /= np.sqrt(self._variances)
        statistics = {"means": first}
        sizes_of_terms = np.sqrt(n_terms)[:, None] * counts
        if "variances" in kinds:
            with np.errstate(over="ignore"):  # beyond the largest float it is taken for that
                second /= self._variances
            second -= counts[:, :, None]
            # Both parts of each are as large as the counts where it is about zero.
            kernels.clear_rounding(2 * sizes_of_terms, self._rounding_units, second)
            statistics["variances"] = second
        if "weights" in kinds:
            statistics["weights"] = counts - sizes[:, None] * self._weights
            kernels.clear_rounding(
                sizes_of_terms, np.ones((K, 1)), statistics["weights"][:, :, None]
            )
        return statistics, sizes


# A component with a covariance of its own needs so many rows, or they tell little about it.
MIN_ROWS_PER_COMPONENT = 8


@dataclass(frozen=True, eq=False)
class ShrunkSpherical(Gaussian, SeedFamily[GaussianComponents]):
    """Spherical Gaussians with n0 pseudo-observations each of the pooled variance."""

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: Gaussian) -> "ShrunkSpherical":
        """Return the family for the same data with n0 = 1 + 8/d."""
        # One row, and eight numbers: of few features a row tells little of a variance. More draw
        # all components to one size, fewer leave one of two rows next to no width.
        return cls(family.dim, "spherical", scale=family.scale, n_pseudo=1 + 8 / family.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        empty = stats.counts <= 0
        variances = np.where(empty, 0.0, self._covariances(stats, components.covariances))
        pooled = max(stats.counts @ variances / stats.counts.sum(), self._least_variance)
        means = self.sample_means(stats, components)
        return self._shrunk(means, variances, stats.counts, pooled), np.zeros_like(empty)

    @property
    def _least_variance(self) -> float:
        """Of copies of one row there is no variance to pool."""
        return 1e-12 * self.scale

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

    def merge_cost(
        self, stats: Statistics, components: GaussianComponents, numbers: Array
    ) -> SphericalMergeCost:
        """Return what merging components costs, by sums about the mean of all means."""
        centre = components.means.mean(axis=0)
        stats = self.shift_moments(stats, np.tile(centre, (len(stats.counts), 1)))
        counts = stats.counts[numbers]
        sums, squares = (moment[numbers] for moment in stats.moments)
        scatter = np.maximum(squares - np.einsum("kd,kd->k", sums, sums) / counts, 0)
        pooled = max(scatter.sum() / (counts.sum() * self.dim), self._least_variance)
        return SphericalMergeCost(sums, counts, squares, centre, self.n_pseudo, float(pooled))

    def fit_clusters(self, cost: SphericalMergeCost, clusters: Array) -> GaussianComponents:
        counts = cost.counts[clusters]
        means = cost.sums[clusters] / counts[:, None]
        squares = np.einsum("kd,kd->k", means, means)
        variances = np.maximum(cost.row_squares[clusters] / counts - squares, 0) / self.dim
        return self._shrunk(cost.centre + means, variances, counts, cost.pooled)

    def _shrunk(
        self, means: Array, variances: Array, counts: Array, pooled: float
    ) -> GaussianComponents:
        """Return components with the variances (n s^2 + n0 pooled) / (n + n0)."""
        weighted = counts * variances + self.n_pseudo * pooled
        return self.components(means, weighted / (counts + self.n_pseudo))


@dataclass(frozen=True, eq=False)
class ShrunkGaussian(Gaussian):
    """Gaussians with n0 pseudo-observations each, of the pooled shape and of their own size.

    `SplitAndMerge` splits and merges these.
    """

    n_pseudo: float = 0.0

    @classmethod
    def of(cls, family: Gaussian) -> "ShrunkGaussian":
        """Return the family with the n0 that its type of covariance asks for."""
        return cls(
            family.dim,
            family.covariance_type,
            family.reg_covar,
            scale=family.scale,
            units=family.units,
            divided=family.divided,
            n_pseudo=family.type.pseudo_rows(family.dim),
        )

    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether there are enough rows to estimate the components.

        A row has `dim` numbers: there are to be two for each parameter of a covariance.
        """
        n_parameters = self.type.n_parameters(n_components, self.dim)
        return n_rows >= max(MIN_ROWS_PER_COMPONENT * n_components, 2 * n_parameters / self.dim)

    def maximize(
        self, stats: Statistics, components: GaussianComponents, means: Array | None = None
    ) -> tuple[GaussianComponents, Array]:
        kind = self.type
        counts = stats.counts
        covariances = self._covariances(stats, components.covariances)
        pooled = covariances
        if not kind.shared:
            pooled = sum_over_components(counts / counts.sum(), covariances)
        # Of copies of a few rows there is nothing to pool: a small part of the mean variance, or of
        # the data's, keeps matrices invertible.
        floor = max(1e-9 * float(np.mean(kind.variances(pooled))), 1e-12 * self.scale)
        pooled = kind.regularized(pooled, floor)
        shrunk = pooled if kind.shared else self._shrunk(covariances, counts, pooled)
        updated = self.components(self.sample_means(stats, components), shrunk)
        singular = np.isnan(updated.log_det)
        if singular.any():  # by rounding, beside a row very far away: then a sphere of its size
            sizes = np.maximum(kind.sizes(shrunk), floor)  # rounding can take them below zero
            nothing = np.zeros_like(shrunk)
            if kind.shared:
                covariances = kind.regularized(nothing, sizes)
            else:
                spheres = kind.regularized(nothing, sizes[:, None])
                covariances = kind.replaced(shrunk, singular, by=spheres)
            updated = self.components(updated.means, covariances)
        return updated, np.zeros(len(counts), dtype=bool)

    def split(self, components: GaussianComponents, steps: Array) -> GaussianComponents:
        """Return components moved by -steps (K, d), followed by the same moved by steps."""
        twice = np.tile(np.arange(len(steps)), 2)
        means = np.vstack([components.means - steps, components.means + steps])
        return self.components(means, self.type.select(components.covariances, twice))

    def merge_pairs(
        self, components: GaussianComponents, weights: Array, pairs: Array
    ) -> GaussianComponents:
        """Return a component for each pair (m, 2), with the mean and covariance of the two."""
        kind = self.type
        a, b = pairs.T
        total = weights[a] + weights[b]
        fractions = np.where(total > 0, weights[a] / np.where(total > 0, total, 1.0), 0.5)
        gaps = components.means[a] - components.means[b]
        means = components.means[b] + fractions[:, None] * gaps
        covariances = kind.select(components.covariances, a)
        if not kind.shared:
            others = kind.select(components.covariances, b)
            covariances = kind.merged(1 - fractions, covariances, others, gaps)
        return self.components(means, covariances)

    def some(self, components: GaussianComponents, numbers: Array | slice) -> GaussianComponents:
        """Return some components, centred at their means, without deriving arrays again."""
        kind = self.type
        means = components.means[numbers]
        return GaussianComponents(
            means,
            kind.select(components.covariances, numbers),
            kind.select(components.cholesky, numbers),
            components.log_det[numbers],
            centred_at=means,
            spread=np.inf,
        )

    def merge_statistics(
        self, stats: Statistics, components: GaussianComponents, pairs: Array
    ) -> tuple[Statistics, GaussianComponents]:
        """Add statistics of the second of each pair (m, 2) to the first; return components, too."""
        kind = self.type
        a, b = pairs.T
        assert stats.centred_at is not None
        # Moments add where they are about the same points.
        centred_at = stats.centred_at.copy()
        centred_at[b] = centred_at[a]
        stats = self.shift_moments(stats, centred_at)
        counts = stats.counts
        first, second = stats.moments
        counts[a] += counts[b]
        first[a] += first[b]
        if not kind.shared:  # else the sum is that of all anyway
            second[a] += second[b]
        left = np.delete(np.arange(len(counts)), b)
        moments = first[left], kind.select(second, left)
        stats = replace(stats, counts=counts[left], moments=moments, centred_at=centred_at[left])
        return stats, self.some(components, left)

    def _shrunk(self, covariances: Array, counts: Array, pooled: Array) -> Array:
        """Return (n C + n0 s pooled) / (n + n0), with C's own size s in units of the pooled one.

        The size has 1 + 2/d pseudo-observations of 1.
        """
        ratios = self.type.variances(covariances) / self.type.variances(pooled)
        ratios = ratios.reshape(len(counts), -1).mean(axis=1)
        n_of_size = 1 + 2 / self.dim
        sizes = (counts * ratios + n_of_size) / (counts + n_of_size)
        total = counts + self.n_pseudo
        shrunk: Array = per_component(counts / total, covariances) * covariances
        shrunk += per_component(self.n_pseudo * sizes / total, covariances) * pooled
        return shrunk
