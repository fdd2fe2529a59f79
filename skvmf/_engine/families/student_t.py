"""The Student-t family: what a component with heavy tails is.

A row of a Student-t component is a Gaussian row whose covariance is divided by a latent weight
u of its own, drawn from a gamma distribution of mean one. Given the row, u is expected to be
(nu + d) / (nu + D), with D the squared Mahalanobis distance: rows far away count less (Peel and
McLachlan, "Robust mixture modelling using the t distribution", Statistics and Computing 10, 2000).
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from ..._kernels.student_t import solve_dof, tail_scores, weigh_responsibilities
from ..._typing import Array
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .background import Background
from .covariance import per_component
from .elliptical import Elliptical
from .family import AnyFamily, Proposal, Scores
from .gaussian import Gaussian
from .gaussian_products import GaussianComponents
from .missing import ObservedRows
from .responsibilities import DenseResponsibilities, Responsibilities, as_dense
from .statistics import Statistics

# Degrees of freedom: at the upper ends a component is a Gaussian, or all but one.
KNOWN_RANGE = (1e-3, 1e100)
ESTIMATED_RANGE = (0.1, 1e6)
# Those that first and merged components begin with: EM hardly leaves large ones.
INITIAL_DOF = 4.0
MAX_MERGED_DOF = 30.0
# Features of a component whose scale is `reg_covar`, from which that counts. Degrees of freedom and
# latent weights are then not at their maximum at once: they are maximized in turn, so many times.
MIN_REGULARISED = 1e-3
STEPS_IF_REGULARISED = 4
_SERIES_FROM = 20.0  # half the degrees of freedom: the first term left out is less than 1e-16


class StudentTMoments(NamedTuple):
    """The names of the moments of Student-t components."""

    first: Array  # of a Gaussian whose responsibilities are r u
    second: Array
    latent: Array  # sums of r u, (K,)
    log_latent: Array  # sums of r log u, (K,)
    n_missing: Array  # sums of r over rows that lack 1, ..., d features, (K, d)


@dataclass(frozen=True, eq=False)
class StudentTComponents(GaussianComponents):
    """K Student-t components: `covariances` are their scale matrices.

    `degrees_of_freedom` and `log_normalizers` are (K,); the latter is the log-density at the
    mean less that of a Gaussian.
    """

    degrees_of_freedom: Array
    log_normalizers: Array


@dataclass(frozen=True, eq=False)
class StudentT(Elliptical[StudentTComponents]):
    """Student-t components, their degrees of freedom known or estimated.

    Moments are those of a Gaussian with responsibilities r times latent weights u,
    sum r u (x - c) and sum r u (x - c)(x - c)', and in addition sum r u, sum r log u and, for each
    number from 1 to d of missing features, sum r.
    """

    components_class: ClassVar[type] = StudentTComponents
    # Merges are compared as if scale matrices were covariances: latent weights, of which the merged
    # component has others, are not known without the rows.
    estimated_losses: ClassVar[bool] = True

    degrees_of_freedom: float | Array = INITIAL_DOF  # (K,): of components that have none yet
    estimated: bool = True  # whether degrees of freedom are
    tied: bool = False  # whether estimates are one for all components

    @cached_property
    def gaussian(self) -> Gaussian:
        """The family of rows that are weighted already."""
        return Gaussian(**{each.name: getattr(self, each.name) for each in fields(Gaussian)})

    def kmeans(self) -> Gaussian:
        return self.gaussian.kmeans()

    def n_parameters(self, n_components: int) -> int:
        n_others = super().n_parameters(n_components)
        if not self.estimated:
            return n_others
        return n_others + (1 if self.tied else n_components)

    def sample(self, components: StudentTComponents, counts: Array, rng: Generator) -> Array:
        centred = np.zeros_like(components.means)
        rows = self.type.draw(centred, components.covariances, counts, rng)
        dof = np.repeat(components.degrees_of_freedom, counts)
        # A latent weight may be 0 to rounding: of few degrees of freedom many are tiny.
        latent = np.maximum(rng.chisquare(dof) / dof, np.finfo(np.float64).tiny)
        rows /= np.sqrt(latent)[:, None]
        rows += np.repeat(components.means, counts, axis=0)
        return rows

    def components(
        self, means: Array, covariances: Array, degrees_of_freedom: float | Array | None = None
    ) -> StudentTComponents:
        """Derive all arrays from means (K, d), scale matrices and degrees of freedom."""
        dof = self.degrees_of_freedom if degrees_of_freedom is None else degrees_of_freedom
        return self._with_dof(self.gaussian.components(means, covariances), dof)

    def from_centres(self, centres: Array) -> StudentTComponents:
        """Return components at centres (K, d) that weight all rows alike, as Gaussian ones do."""
        return self._with_dof(self.gaussian.from_centres(centres), KNOWN_RANGE[1])

    def from_units(self, components: StudentTComponents, units: Array) -> StudentTComponents:
        shapes = self.gaussian.from_units(components, units)
        return self._with_dof(shapes, components.degrees_of_freedom)

    @property
    def component_axes(self) -> tuple[int | None, ...]:
        return *super().component_axes, 0, 0, 0

    def select(self, components: StudentTComponents, numbers: Array) -> StudentTComponents:
        shapes = self.gaussian.select(components, numbers)
        return self._with_dof(shapes, components.degrees_of_freedom[numbers])

    def with_added(
        self, components: StudentTComponents, centres: Array, in_use: Array
    ) -> StudentTComponents:
        """Add components with the degrees of freedom of first ones, or those that all share."""
        shapes = self.gaussian.with_added(components, centres, in_use)
        dof = components.degrees_of_freedom
        of_added = _common(dof[in_use]) if self.tied else INITIAL_DOF
        return self._with_dof(shapes, np.append(dof, np.full(len(centres), of_added)))

    def renumbered(self, numbers: Array) -> "StudentT":
        if np.ndim(self.degrees_of_freedom) == 0:
            return self
        dof = np.asarray(self.degrees_of_freedom)
        return replace(self, degrees_of_freedom=dof[numbers])

    def with_shapes(self, components: StudentTComponents, shapes: Array) -> StudentTComponents:
        return self.components(components.means, shapes, components.degrees_of_freedom)

    def scores(self, block: DenseBlock, components: StudentTComponents) -> Scores:
        """Return the log-densities of the rows of a block, and keep their latent weights."""
        dof = components.degrees_of_freedom
        bias = self.gaussian.peaks(components) + components.log_normalizers
        if block.missing is None:
            products = self.type.scores(block.X, components)
            latent = np.empty(products.shape)
            tail_scores(products, dof, self.dim, latent)
            return Scores(products, bias, cache=latent)
        observed = ObservedRows(self.type, block, components)
        products, normalizers = observed.scores(self.units_of_density)
        latent = np.empty(products.shape)
        # Rows that lack as many features have one normalizer.
        n_missing = block.missing.n_missing
        for n_observed in self.dim - np.unique(n_missing):
            rows = n_missing == self.dim - n_observed
            products_of_rows = products[rows]
            latent_of_rows = np.empty(products_of_rows.shape)
            tail_scores(products_of_rows, dof, n_observed, latent_of_rows)
            difference = log_normalizers(dof, n_observed) - components.log_normalizers
            products[rows] = products_of_rows + difference
            latent[rows] = latent_of_rows
        return Scores(products + normalizers, bias, cache=latent)

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: StudentTComponents,
        cache: Array | None = None,
    ) -> tuple[Array, ...]:
        """Return `StudentTMoments` as a plain tuple; conditional covariances are weighted by r."""
        latent = cache
        if latent is None:
            latent = self.scores(block, components).cache
        weighted, sums, sums_of_logs = _weighted(responsibilities, latent)
        moments = self.gaussian.moments(block, weighted, components, shares=responsibilities)
        n_missing = np.zeros((len(components), self.dim))
        if block.missing is not None:
            resp = as_dense(responsibilities, len(components))
            n_missing_of_rows = block.missing.n_missing
            for n in np.unique(n_missing_of_rows[n_missing_of_rows > 0]):
                n_missing[:, n - 1] = resp[n_missing_of_rows == n].sum(axis=0)
        return *moments, sums, sums_of_logs, n_missing

    def shift_moments(self, stats: Statistics, centred_at: Array | None) -> Statistics:
        moments = StudentTMoments(*stats.moments)
        first, second = self.gaussian.shift_moments(_of_weighted_rows(stats), centred_at).moments
        moments = moments._replace(first=first, second=second)
        return replace(stats, moments=tuple(moments), centred_at=centred_at)

    def maximize(
        self, stats: Statistics, components: StudentTComponents
    ) -> tuple[StudentTComponents, Array]:
        """Return better components, and which are singular.

        With a = (nu + d) / 2 and b = (nu + D) / 2 a row's log-density has log Gamma(a) - a log b.
        Since a log(a / b) - a is convex in (a, b) that is at least

            log Gamma(a) - a log a + a + a log u - u b,

        with equality at the old components, whose u this is (derived here; for the degrees of
        freedom Hasannasab et al., Numerical Algorithms 87, 2021, MMF). What is maximized is this
        bound, with latent weights of any mean (Liu, Rubin and Wu, Biometrika 85, 1998, PX-EM):
        scatter is divided by sums of r u, not of r.
        """
        shape, singular = self.gaussian.maximize(_of_weighted_rows(stats), components)
        regularised = self._n_regularised(components)
        n_steps = 1
        if regularised.any() and not self.type.shared:
            n_steps = STEPS_IF_REGULARISED
        dof = components.degrees_of_freedom
        for _ in range(n_steps):
            mean_latent_weight = self._mean_latent_weight(stats, dof, regularised)
            dof = self._maximize_dof(stats, mean_latent_weight, components, singular)
        if not self.fixed_covariances and (self.type.shared or regularised.any()):
            shape = self._rescaled(shape, stats, mean_latent_weight, singular)
        return self._with_dof(shape, dof), singular

    def reseed(self, components: StudentTComponents, k: int, row: Array) -> StudentTComponents:
        moved = self.gaussian.reseed(components, k, row)
        return self._with_dof(moved, components.degrees_of_freedom)

    def initial(
        self, stats: Statistics, components: StudentTComponents, centres: Array | None = None
    ) -> StudentTComponents:
        shape = self.gaussian.initial(_of_weighted_rows(stats), components, centres)
        return self._with_dof(shape, self.degrees_of_freedom)

    def inherit(
        self, first: StudentTComponents, old: StudentTComponents, numbers: Array, merged: Array
    ) -> StudentTComponents:
        """Lower large degrees of freedom of merged components: EM hardly leaves them."""
        dof = old.degrees_of_freedom[numbers]
        if self.estimated:
            dof = np.where(merged, np.minimum(dof, MAX_MERGED_DOF), dof)
        return self._with_dof(self.gaussian.inherit(first, old, numbers, merged), dof)

    def proposal(self) -> Proposal:
        """Start with Gaussians, with a background and without one.

        Rows between clusters are nothing unlikely to heavy tails. With a background the start
        finds clusters among many such rows, without one it finds more of their shapes.
        """

        def alternative(rows: RowSource) -> tuple[Background, AnyFamily]:
            return Background.around(rows, self), self

        return replace(self.gaussian.proposal(), alternative=alternative)

    def adapted(self, components: StudentTComponents) -> StudentTComponents:
        """Return components of another fit with degrees of freedom that are this family's."""
        if not self.estimated:
            return self._with_dof(components, self.degrees_of_freedom)
        dof = np.clip(components.degrees_of_freedom, *ESTIMATED_RANGE)
        return self._with_dof(components, _common(dof) if self.tied else dof)

    def _with_dof(self, shape: GaussianComponents, dof: float | Array) -> StudentTComponents:
        # The arrays of a Gaussian alone: the shape may have degrees of freedom of its own.
        gaussian = {each.name: getattr(shape, each.name) for each in fields(GaussianComponents)}
        dof = np.broadcast_to(dof, len(shape.means)).astype(np.float64)
        normalizers = log_normalizers(dof, self.dim)
        return StudentTComponents(**gaussian, degrees_of_freedom=dof, log_normalizers=normalizers)

    def _n_regularised(self, components: StudentTComponents) -> Array:
        """Return the number of features, (K,), whose scale is `reg_covar`, not that of rows."""
        if self.fixed_covariances:
            return np.zeros(len(components))
        kind = self.type
        d = self.dim
        precisions = kind.variances(kind.precisions(components.cholesky))
        number = np.atleast_1d(d * (self.regularization * precisions).mean(axis=-1))
        number = np.where(number > MIN_REGULARISED, np.minimum(number, d), 0.0)
        return np.broadcast_to(number, len(components))

    def _mean_latent_weight(self, stats: Statistics, dof: Array, regularised: Array) -> Array:
        """Return the mean latent weights, (K,), at which the bound is largest.

        If components share a scale matrix there is one mean, weighted by their degrees of
        freedom. Scale matrices take it up; it is 1 if they are fixed, and nearer to 1 where
        `reg_covar` is their scale: for h of the d features, the bound's maximum over a factor of u
        is at sum of u = n (1 + h / nu) if all scales stay.
        """
        counts = stats.counts
        latent = StudentTMoments(*stats.moments).latent
        if self.fixed_covariances:
            return np.ones(len(counts))
        if self.type.shared:
            largest = dof.max()  # divided out: degrees of freedom may be 1e100
            total = dof / largest @ counts + regularised[0] / largest * counts.sum()
            return np.full(len(counts), (dof / largest @ latent) / total)
        means = np.divide(latent, counts, out=np.ones_like(latent), where=counts > 0)
        return means / (1 + regularised / dof)

    def _rescaled(
        self,
        shape: GaussianComponents,
        stats: Statistics,
        mean_latent_weight: Array,
        singular: Array,
    ) -> GaussianComponents:
        """Return components whose scatter is divided by counts times mean latent weights."""
        divisors = mean_latent_weight * stats.counts
        latent = StudentTMoments(*stats.moments).latent
        stays = singular | (divisors <= 0)
        if self.type.shared:
            divisors = divisors.sum()
            latent = latent.sum()
            stays = np.array(False)
        factors = np.where(stays, 1.0, latent / np.where(stays, 1.0, divisors))
        factors = per_component(factors, shape.covariances)
        scatter = factors * self.type.regularized(shape.covariances, -self.regularization)
        covariances = self.type.regularized(scatter, self.regularization)
        rescaled = self.gaussian.components(shape.means, covariances)
        by_rounding = np.isnan(rescaled.log_det)  # singular, as these were regular before
        if not by_rounding.any():
            return rescaled
        if by_rounding.all():
            return shape
        covariances = self.type.replaced(covariances, by_rounding, by=shape.covariances)
        return self.gaussian.components(shape.means, covariances)

    def _maximize_dof(
        self,
        stats: Statistics,
        mean_latent_weight: Array,
        components: StudentTComponents,
        singular: Array,
    ) -> Array:
        """Return the best degrees of freedom (K,) for mean latent weights (K,)."""
        if not self.estimated:
            return np.broadcast_to(self.degrees_of_freedom, len(mean_latent_weight))
        moments = StudentTMoments(*stats.moments)
        usable = (stats.counts > 0) & (moments.latent > 0) & ~singular
        counts = np.where(usable, stats.counts, 1.0)
        means = np.where(usable, mean_latent_weight, 1.0)
        gaps = np.log(means) + moments.latent / counts / means - 1 - moments.log_latent / counts
        # The numbers of observed features, and the shares of rows that have so many.
        numbers = np.flatnonzero(moments.n_missing.any(axis=0))
        dims = self.dim - np.append(0, 1 + numbers)
        shares = moments.n_missing[:, numbers] / counts[:, None]
        shares = np.hstack([1 - shares.sum(axis=1, keepdims=True), shares])
        # Columns that are chosen may be stored by columns, which would be compiled once more.
        shares = np.ascontiguousarray(shares)
        if self.tied:
            weights = counts[usable] / counts[usable].sum()
            gaps = np.average(gaps[usable], weights=counts[usable], keepdims=True)
            shares = np.dot(weights, shares[usable])[np.newaxis]
        best = np.empty_like(gaps)
        solve_dof(gaps, dims.astype(np.float64), shares, *ESTIMATED_RANGE, best)
        return np.where(usable | self.tied, best, components.degrees_of_freedom)


def log_normalizers(dof: Array, dim: int) -> Array:
    """Return log Gamma((nu + d) / 2) - log Gamma(nu / 2) - d / 2 log(nu / 2), (K,).

    As a sum over pairs of features it loses nothing where it tends to 0: Gamma(a + 1) = a Gamma(a).
    """
    halves = 0.5 * dof
    is_odd = dim % 2 == 1
    steps = np.arange(dim // 2, dtype=np.float64)
    if is_odd:
        steps += 0.5
    total = np.array([np.log1p(steps / half).sum() for half in halves])
    if not is_odd:
        return total
    # A half is left: Gamma(a + 1/2) / Gamma(a), by its asymptotic series where a is large.
    small = np.minimum(halves, _SERIES_FROM)
    direct = gammaln(small + 0.5) - gammaln(small) - 0.5 * np.log(small)
    large = np.maximum(halves, _SERIES_FROM)
    coefficients = [-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432]
    series = np.polynomial.polynomial.polyval(large**-2.0, coefficients) / large
    return total + np.where(halves < _SERIES_FROM, direct, series)


def _common(dof: Array) -> Any:
    """Return the geometric mean of degrees of freedom; equal ones are not rounded."""
    return dof[0] if np.ptp(dof) == 0 else np.exp(np.log(dof).mean())


def _of_weighted_rows(stats: Statistics) -> Statistics:
    """Return the statistics of a Gaussian, weighted by r u."""
    moments = StudentTMoments(*stats.moments)
    counts = np.where(stats.counts > 0, moments.latent, 0.0)
    return replace(stats, counts=counts, moments=(moments.first, moments.second))


def _weighted(
    responsibilities: Responsibilities, latent: Array
) -> tuple[Responsibilities, Array, Array]:
    """Return r u, and the sums of r u and of r log u; uses up the latent weights."""
    K = latent.shape[1]
    if isinstance(responsibilities, DenseResponsibilities):
        sums, sums_of_logs = np.zeros(K), np.zeros(K)
        weigh_responsibilities(responsibilities.resp, latent, sums, sums_of_logs)
        return DenseResponsibilities(latent), sums, sums_of_logs
    labels = responsibilities.labels
    factors = responsibilities.factors
    latent = np.take_along_axis(latent, labels[:, None], axis=1)[:, 0]
    weighted = factors * latent
    of_latent = np.bincount(labels, weights=weighted, minlength=K)
    of_logs = np.bincount(labels, weights=factors * np.log(latent), minlength=K)
    return replace(responsibilities, factors=weighted), of_latent, of_logs
