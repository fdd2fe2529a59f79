"""The Student-t family: what a component with heavy tails is.

A row of a Student-t component is a Gaussian row whose covariance is divided by a latent weight
u of its own, drawn from a gamma distribution of mean one. Given the row, u is expected to be
(nu + d) / (nu + D), with D the squared Mahalanobis distance: rows far away count less (Peel and
McLachlan, "Robust mixture modelling using the t distribution", Statistics and Computing 10, 2000).
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.special import gammaln

from ..._kernels.student_t import solve_dof, tail_scores, weigh_responsibilities
from ..._typing import Array
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .background import Background
from .covariance import per_component
from .family import AnyFamily, Proposal, Scores
from .gaussian import Elliptical, Gaussian
from .gaussian_products import GaussianComponents
from .missing import ObservedRows
from .responsibilities import DenseResponsibilities, Responsibilities, as_dense
from .statistics import Statistics

KNOWN_RANGE = (1e-3, 1e100)  # of given degrees of freedom; at the upper end a Gaussian
ESTIMATED_RANGE = (0.1, 1e6)  # of estimated degrees of freedom
MAX_MERGED_DOF = 30.0  # at which a merged component begins
INITIAL_DOF = 4.0  # degrees of freedom
MIN_HELD = 1e-3  # of a feature, from which it counts that `reg_covar` holds its scale,
STEPS_IF_HELD = 4  # and degrees of freedom and latent weights are not maximized at once
_SERIES_FROM = 20.0  # half the degrees of freedom


@dataclass(frozen=True)
class StudentTComponents(GaussianComponents):
    """K Student-t components: `covariances` are their scale matrices.

    `degrees_of_freedom` and `log_normalizers` are (K,); the latter is the log-density at the
    mean less that of a Gaussian.
    """

    degrees_of_freedom: Array
    log_normalizers: Array


@dataclass(frozen=True)
class StudentT(Elliptical[StudentTComponents]):
    """Student-t components, their degrees of freedom known or estimated.

    Moments are those of a Gaussian with responsibilities r times latent weights u,
    sum r u (x - c) and sum r u (x - c)(x - c)', and in addition sum r u, sum r log u and, for each
    number from 1 to d of missing features, sum r.
    """

    components_class: ClassVar[type] = StudentTComponents

    degrees_of_freedom: float | Array = INITIAL_DOF  # (K,): of components that have none yet
    estimated: bool = True  # whether degrees of freedom are
    tied: bool = False  # whether estimates are one for all components

    @cached_property
    def gaussian(self) -> Gaussian:
        """The family of rows that are weighted already."""
        fixed = self.fixed_covariances, self.fixed_means
        return Gaussian(self.dim, self.covariance_type, self.reg_covar, *fixed, self.scale)

    def n_parameters(self, n_components: int) -> int:
        n_dof = 0 if not self.estimated else 1 if self.tied else n_components
        return super().n_parameters(n_components) + n_dof

    def sample(self, components: StudentTComponents, counts: Array, rng: RandomState) -> Array:
        centred = np.zeros_like(components.means)
        rows = self.type.draw(centred, components.covariances, counts, rng)
        dof = np.repeat(components.degrees_of_freedom, counts)
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

    @property
    def component_axes(self) -> tuple[int | None, ...]:
        return *super().component_axes, 0, 0, 0

    def chosen(self, components: StudentTComponents, numbers: Array) -> StudentTComponents:
        shapes = self.gaussian.chosen(components, numbers)
        return self._with_dof(shapes, components.degrees_of_freedom[numbers])

    def reshaped(self, components: StudentTComponents, shapes: Array) -> StudentTComponents:
        return self.components(components.means, shapes, components.degrees_of_freedom)

    def scores(self, block: DenseBlock, components: StudentTComponents) -> Scores:
        """Return the log-densities of the rows of a block, and keep their latent weights."""
        dof, normalizers = components.degrees_of_freedom, components.log_normalizers
        bias = components.log_det - 0.5 * self.dim * np.log(2 * np.pi) + normalizers
        if block.missing is None:
            products = self.type.scores(block.X, components)
            latent = np.empty(products.shape)
            tail_scores(products, dof, self.dim, latent)
            return Scores(products, bias, cache=latent)
        products, rest = ObservedRows(self.type, block, components).scores()
        latent, n_missing = np.empty(products.shape), block.missing.n_missing
        for dim in self.dim - np.unique(n_missing):
            rows = n_missing == self.dim - dim
            own, weights = products[rows], np.empty((np.count_nonzero(rows), len(dof)))
            tail_scores(own, dof, dim, weights)
            products[rows], latent[rows] = own + (log_normalizers(dof, dim) - normalizers), weights
        return Scores(products + rest, bias, cache=latent)

    def moments(
        self,
        block: DenseBlock,
        responsibilities: Responsibilities,
        components: StudentTComponents,
        cache: Array | None = None,
    ) -> tuple[Array, ...]:
        """Return Gaussian moments weighted by r u, and sums; conditional covariances by r."""
        latent = self.scores(block, components).cache if cache is None else cache
        weighted, sums, logs = _weighted(responsibilities, latent)
        moments = self.gaussian.moments(block, weighted, components, shares=responsibilities)
        lacking = np.zeros((len(components), self.dim))
        if block.missing is not None:
            resp, n_missing = as_dense(responsibilities, len(components)), block.missing.n_missing
            for m in np.unique(n_missing[n_missing > 0]):
                lacking[:, m - 1] = resp[n_missing == m].sum(axis=0)
        return *moments, sums, logs, lacking

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        moved = self.gaussian.recenter(_of_weighted_rows(stats), origins)
        return replace(stats, moments=moved.moments + stats.moments[2:], origins=origins)

    def maximize(
        self, stats: Statistics, components: StudentTComponents
    ) -> tuple[StudentTComponents, Array]:
        """Return better components, and which are broken.

        With a = (nu + d) / 2 and b = (nu + D) / 2 a row's log-density has log Gamma(a) - a log b.
        Since a log(a / b) - a is convex in (a, b) that is at least

            log Gamma(a) - a log a + a + a log u - u b,

        with equality at the old components, whose u this is (derived here; for the degrees of
        freedom Hasannasab et al., Numerical Algorithms 87, 2021, MMF). What is maximized is this
        bound, with latent weights of any mean (Liu, Rubin and Wu, Biometrika 85, 1998, PX-EM):
        scatter is divided by sums of r u, not of r.
        """
        shape, broken = self.gaussian.maximize(_of_weighted_rows(stats), components)
        held, dof = self._held(components), components.degrees_of_freedom
        for _ in range(STEPS_IF_HELD if held.any() and not self.type.shared else 1):
            levels = self._latent_means(stats, dof, held)
            dof = self._freedom(stats, levels, components, broken)
        if not self.fixed_covariances and (self.type.shared or held.any()):
            shape = self._rescaled(shape, stats, levels, broken)
        return self._with_dof(shape, dof), broken

    def reseed(self, components: StudentTComponents, k: int, row: Array) -> StudentTComponents:
        moved = self.gaussian.reseed(components, k, row)
        return self._with_dof(moved, components.degrees_of_freedom)

    def initial(
        self, stats: Statistics, components: StudentTComponents, centres: Array | None = None
    ) -> StudentTComponents:
        shape = self.gaussian.initial(_of_weighted_rows(stats), components, centres)
        return self._with_dof(shape, self.degrees_of_freedom)

    def kept(
        self, first: StudentTComponents, old: StudentTComponents, numbers: Array, merged: Array
    ) -> StudentTComponents:
        """Lower large degrees of freedom of merged components: EM hardly leaves them."""
        dof = old.degrees_of_freedom[numbers]
        if self.estimated:
            dof = np.where(merged, np.minimum(dof, MAX_MERGED_DOF), dof)
        return self._with_dof(self.gaussian.kept(first, old, numbers, merged), dof)

    def proposal(self) -> Proposal:
        """Start with Gaussians, with a background and without one.

        Rows between clusters are nothing unlikely to heavy tails. With a background the start
        finds clusters among many such rows, without one it finds more of their shapes.
        """

        def alternative(rows: RowSource) -> tuple[Background, AnyFamily]:
            return Background.around(rows, self.reg_covar, self.scale), self

        return replace(self.gaussian.proposal(), alternative=alternative)

    def adapted(self, components: StudentTComponents) -> StudentTComponents:
        """Return components of another fit with degrees of freedom that are this family's."""
        if not self.estimated:
            return self._with_dof(components, self.degrees_of_freedom)
        dof = np.clip(components.degrees_of_freedom, *ESTIMATED_RANGE)
        if self.tied and np.ptp(dof) > 0:  # else a warm start would round them
            dof = np.exp(np.log(dof).mean())
        return self._with_dof(components, dof)

    def _with_dof(self, shape: GaussianComponents, dof: float | Array) -> StudentTComponents:
        gaussian = {field.name: getattr(shape, field.name) for field in fields(GaussianComponents)}
        dof = np.broadcast_to(dof, len(shape.means)).astype(np.float64)
        normalizers = log_normalizers(dof, self.dim)
        return StudentTComponents(**gaussian, degrees_of_freedom=dof, log_normalizers=normalizers)

    def _held(self, components: StudentTComponents) -> Array:
        """Return the number of features whose scale is `reg_covar` rather than that of rows."""
        kind, d = self.type, self.dim
        held = self.reg_covar * d * kind.sizes(kind.precisions(components.cholesky))
        held = np.where(held > MIN_HELD, np.minimum(held, d), 0.0)
        return np.broadcast_to(0.0 if self.fixed_covariances else held, len(components))

    def _latent_means(self, stats: Statistics, dof: Array, held: Array) -> Array:
        """Return the means (K,) that latent weights are let have.

        If components share a scale matrix there is one mean, weighted by their degrees of
        freedom. Scale matrices take it up; it is 1 if they are fixed, and nearer to 1 where
        `reg_covar` holds them: for h of the d features, the bound's maximum over a factor of u is
        at sum of u = n (1 + h / nu) if all scales stay.
        """
        counts, sums = stats.counts, stats.moments[2]
        if self.fixed_covariances:
            return np.ones(len(counts))
        if self.type.shared:
            largest = dof.max()
            total = dof / largest @ counts + held[0] / largest * counts.sum()
            return np.full(len(counts), (dof / largest @ sums) / total)
        return np.divide(sums, counts, out=np.ones_like(sums), where=counts > 0) / (1 + held / dof)

    def _rescaled(
        self, shape: GaussianComponents, stats: Statistics, levels: Array, broken: Array
    ) -> GaussianComponents:
        """Return components whose scatter is divided by counts times `levels`."""
        divisors, sums = levels * stats.counts, stats.moments[2]
        kept = broken | (divisors <= 0)
        if self.type.shared:
            divisors, sums, kept = divisors.sum(), sums.sum(), np.array(False)
        factors = np.where(kept, 1.0, sums / np.where(kept, 1.0, divisors))
        factors = per_component(factors, shape.covariances)
        scatter = factors * self.type.regularized(shape.covariances, -self.reg_covar)
        covariances = self.type.regularized(scatter, self.reg_covar)
        fresh = self.gaussian.components(shape.means, covariances)
        singular = np.isnan(fresh.log_det)
        if not singular.any():
            return fresh
        if singular.all():  # by rounding: these were regular before
            return shape
        covariances = self.type.replaced(covariances, singular, by=shape.covariances)
        return self.gaussian.components(shape.means, covariances)

    def _freedom(
        self, stats: Statistics, levels: Array, components: StudentTComponents, broken: Array
    ) -> Array:
        """Return the best degrees of freedom (K,) for latent weights of means `levels` (K,)."""
        if not self.estimated:
            return np.broadcast_to(self.degrees_of_freedom, len(levels))
        counts, (_, _, sums, logs, lacking) = stats.counts, stats.moments
        alive = (counts > 0) & (sums > 0) & ~broken
        counts, levels = np.where(alive, counts, 1.0), np.where(alive, levels, 1.0)
        gaps = np.log(levels) + sums / counts / levels - 1 - logs / counts
        dims = self.dim - np.append(0, 1 + np.flatnonzero(lacking.any(axis=0)))
        shares = lacking[:, self.dim - dims[1:] - 1] / counts[:, None]
        shares = np.hstack([1 - shares.sum(axis=1, keepdims=True), shares])
        if self.tied:
            weights = counts[alive] / counts[alive].sum()
            gaps = np.average(gaps[alive], weights=counts[alive], keepdims=True)
            shares = np.dot(weights, shares[alive])[np.newaxis]
        best = np.empty_like(gaps)
        solve_dof(gaps, dims.astype(np.float64), shares, *ESTIMATED_RANGE, best)
        return np.where(alive | self.tied, best, components.degrees_of_freedom)


def log_normalizers(dof: Array, dim: int) -> Array:
    """Return log Gamma((nu + d) / 2) - log Gamma(nu / 2) - d / 2 log(nu / 2), (K,).

    As a sum over pairs of features it loses nothing where it tends to 0: Gamma(a + 1) = a Gamma(a).
    """
    halves = 0.5 * dof
    steps = np.arange(dim // 2) + 0.5 * (dim % 2)
    total = np.array([np.log1p(steps / half).sum() for half in halves])
    if dim % 2 == 0:
        return total
    few, many = np.minimum(halves, _SERIES_FROM), np.maximum(halves, _SERIES_FROM)
    direct = gammaln(few + 0.5) - gammaln(few) - 0.5 * np.log(few)
    terms = [-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432]
    series = np.polynomial.polynomial.polyval(many**-2.0, terms) / many
    return total + np.where(halves < _SERIES_FROM, direct, series)


def _of_weighted_rows(stats: Statistics) -> Statistics:
    """Return the statistics of a Gaussian, weighted by r u."""
    counts = np.where(stats.counts > 0, stats.moments[2], 0.0)
    return replace(stats, counts=counts, moments=stats.moments[:2])


def _weighted(
    responsibilities: Responsibilities, latent: Array
) -> tuple[Responsibilities, Array, Array]:
    """Return r u, and the sums of r u and of r log u; uses up the latent weights."""
    K = latent.shape[1]
    if isinstance(responsibilities, DenseResponsibilities):
        sums, logs = np.zeros(K), np.zeros(K)
        weigh_responsibilities(responsibilities.resp, latent, sums, logs)
        return DenseResponsibilities(latent), sums, logs
    labels, factors = responsibilities.labels, responsibilities.factors
    latent = np.take_along_axis(latent, labels[:, None], axis=1)[:, 0]
    weighted = factors * latent
    of_rows = np.bincount(labels, weights=weighted, minlength=K)
    of_logs = np.bincount(labels, weights=factors * np.log(latent), minlength=K)
    return replace(responsibilities, factors=weighted), of_rows, of_logs
