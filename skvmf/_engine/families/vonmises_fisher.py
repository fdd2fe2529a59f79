"""The von Mises-Fisher family: components on the unit sphere, their products and gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..._kernels import fisher as kernels
from ..._kernels import rows as row_kernels
from ..._kernels import vonmises_fisher as high_concentration
from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ...distributions.vonmises_fisher._density import split
from ...distributions.vonmises_fisher._maps import Method, exact_functions
from ..rows.blocks import Block, DenseBlock, SparseBlock
from .family import AnyFamily, Proposal, Scores, SeedFamily
from .gradients import (
    Bags,
    Gradients,
    GradientsType,
    ParameterBlock,
    VectorResponsibilities,
    repeat_columns,
)
from .merge_costs import DirectionMergeCost
from .responsibilities import DenseResponsibilities, HardResponsibilities, Responsibilities
from .statistics import Statistics
from .tiles import tall_dot

# Shares of positive responsibilities; below, visiting those alone is cheaper than a product.
MIN_DENSITY_DENSE = 1 / 8
MIN_DENSITY_SPARSE = 1 / 32
MIN_LISTED_SUMS = 2**16  # entries of sums that leave the second cache if rows are added one by one
HIGH_CONCENTRATION = 4e5  # kappa times the rounding of a cosine is felt above
MAX_CONCENTRATION = 1e12  # of fitted and given components
# Float32 scores lose digits beyond these concentrations: at any number of features, and for each.
MAX_FLOAT32_CONCENTRATION = 16_000
MAX_FLOAT32_CONCENTRATION_PER_DIM = 84
MAX_INITIAL_LENGTH = 1 - 1e-12  # mean resultant length of a partition: nearer to 1 it is rounding
MIN_LENGTH = 1e-6  # mean resultant length that is none: of float32 rows more may be rounding
MAX_PRIOR_LENGTH = 1 - 1e-6  # of pseudo-rows: at 1 no rows could lower an infinite concentration
# Counts between which the squares of sums are floats; others are divided out first.
_SAFE_COUNTS = (1e-100, 1e100)
_LEAST_LENGTH = 1e-150  # whose square is a float


@dataclass(frozen=True, eq=False)
class DirectionalComponents:
    """K von Mises-Fisher components, and the arrays derived from them once per step.

    `directions` (d, K) are unit columns; `lengths` (K,) and `complements` (K,) are the mean
    resultant length r and 1 - r; log p = kappa m.x + `log_normalizers` = `peaks` -
    kappa (1 - m.x), where the peaks lose nothing to a large kappa. Float32 rows are scored
    in float64 where `in_float64`. For components that are `concentrated` (K, boolean), 1 - m.x is
    |x - m|^2 / 2; `centred_at` (K, d) are their directions, with nan for other components, or None
    if there are none.
    """

    directions: Array
    lengths: Array
    complements: Array
    concentrations: Array
    log_normalizers: Array
    peaks: Array
    in_float64: bool
    concentrated: Array
    centred_at: Array | None

    def __len__(self) -> int:
        return len(self.concentrations)


def cosine_products(block: Block, components: DirectionalComponents) -> Array:
    """Return kappa m.x of the rows as they are stored, (n, K)."""
    directions = components.directions
    kappa = components.concentrations
    rows = block.data if isinstance(block, SparseBlock) else block.X
    dtype = np.dtype(np.float64) if components.in_float64 else rows.dtype
    if isinstance(block, SparseBlock):
        # There are many features: float64 directions are not copied, to multiply them by kappa.
        of_dtype = partial(directions.astype, dtype, copy=False)
        product = sparse_dot(block, block.buffers.cached("directions", components, of_dtype))
        product *= kappa.astype(dtype)
        return product
    natural = block.buffers.cached(
        f"natural {dtype.char}", components, lambda: (directions * kappa).astype(dtype)
    )
    product = block.empty_scores(len(kappa), dtype)
    tall_dot(block.X.astype(dtype, copy=False), natural, product)
    return product


def cosine_complements(block: Block, components: DirectionalComponents, cosines: Array) -> Array:
    """Turn cosines (n, m) of rows with concentrated components into 1 - m.x, in place."""
    assert block.scales is not None
    directions = np.ascontiguousarray(components.directions[:, components.concentrated].T)
    if isinstance(block, SparseBlock):
        rows = block.indptr, block.indices, block.data
        high_concentration.csr_cosine_complements(*rows, block.scales, directions, cosines)
    else:
        high_concentration.cosine_complements(block.X, block.scales, directions, cosines)
    return cosines


def complement_sums(
    block: Block, responsibilities: Responsibilities, components: DirectionalComponents
) -> Array:
    """Return sums of 1 - m.x (m,) weighted by responsibilities, for concentrated components.

    Responsibilities carry the rows' scales; chords are of unit rows, and do not need them.
    """
    assert block.scales is not None
    concentrated = np.flatnonzero(components.concentrated)
    directions = components.directions[:, concentrated]
    if isinstance(block, SparseBlock):
        cosines = sparse_dot(block, directions)
    else:
        cosines = np.dot(block.X.astype(np.float64, copy=False), directions)
    gaps = cosine_complements(block, components, cosines * block.scales[:, None])
    # The scales that responsibilities bring are divided out again.
    gaps /= np.where(block.scales > 0, block.scales, 1.0)[:, None]
    if isinstance(responsibilities, DenseResponsibilities):
        return np.einsum("nk,nk->k", responsibilities.resp[:, concentrated], gaps)
    is_assigned = responsibilities.labels[:, None] == concentrated
    return np.einsum("nk,nk,n->k", is_assigned, gaps, responsibilities.factors)


def sparse_dot(block: SparseBlock, matrix: Array) -> Array:
    """Return the products of sparse rows with a matrix (d, K), in its dtype."""
    matrix = np.ascontiguousarray(matrix)
    product = block.empty_scores(matrix.shape[1], matrix.dtype)
    row_kernels.csr_dot(block.indptr, block.indices, block.data, matrix, product)
    return product


def dense_row_sums(block: DenseBlock, responsibilities: Responsibilities, K: int) -> Array:
    """Return the sums (d, K) of dense rows times their responsibilities."""
    if isinstance(responsibilities, HardResponsibilities):
        sums = _sums_by_component(block, K)
        sums[:] = 0
        labels = responsibilities.labels
        row_kernels.add_labelled_rows(block.X, labels, responsibilities.factors, sums)
        return sums.T
    resp = responsibilities.resp
    if responsibilities.denser_than(MIN_DENSITY_DENSE):
        X = block.X.astype(resp.dtype, copy=False)
        sums = block.buffers.acquire("sums", (X.shape[1], K))
        if not sums.flags.c_contiguous:  # or bits would depend on what was released before
            sums = np.empty(sums.shape)
        product = block.buffers.acquire("block sums", sums.shape, X.dtype)
        sums[:] = np.dot(X.T, resp, out=product)
        block.buffers.release("block sums", product)
        return sums
    sums = _sums_by_component(block, K)
    if sums.size >= MIN_LISTED_SUMS:
        row_kernels.sum_for_many_components(block.X, resp, row_kernels.listing_space(K), sums)
    else:
        sums[:] = 0
        row_kernels.add_sparse_responsibilities(block.X, resp, sums)
    return sums.T


def _sums_by_component(block: DenseBlock, K: int) -> Array:
    """Return an array (K, d) to be filled, whose rows are contiguous: sums are added by rows."""
    sums = block.buffers.acquire("sums", (block.X.shape[1], K)).T
    return sums if sums.flags.c_contiguous else np.empty(sums.shape)


def sparse_row_sums(block: SparseBlock, responsibilities: Responsibilities, K: int) -> Array:
    """Return the sums (d, K) of sparse rows times their responsibilities."""
    columns = block.columns
    sums = block.buffers.acquire("sums", (block.n_features, K))
    if (
        columns is not None
        and isinstance(responsibilities, DenseResponsibilities)
        and responsibilities.denser_than(MIN_DENSITY_SPARSE)
    ):
        row_kernels.csr_dot(*columns, responsibilities.resp, sums)
        return sums
    sums[:] = 0
    packed = responsibilities.packed()
    resp = packed.ends, packed.columns, packed.values
    row_kernels.csr_scatter(block.indptr, block.indices, block.data, *resp, sums)
    return sums


def unit_columns(sums: Array, counts: Array) -> tuple[Array, Array]:
    """Return columns (d, K) of unit length, and their lengths per unit of count; 0 for rounding.

    Sums are no longer than their counts, which are divided out first where squares might overflow.
    """
    low, high = _SAFE_COUNTS
    scale = 1.0
    largest = counts.max()
    if largest > 0 and not low < largest < high:
        scale = largest
        sums = sums / scale
    norms = np.sqrt(np.einsum("dk,dk->k", sums, sums))
    lengths: Array = norms * scale / np.where(counts > 0, counts, 1.0)
    lengths[lengths < _LEAST_LENGTH] = 0
    return sums / np.where(lengths > 0, norms, 1.0), lengths


def concentrated_lengths(means: Array, deficits: Array, directions: Array) -> tuple[Array, Array]:
    """Return r and 1 - r of mean parameters (d, m) about old directions (d, m).

    With a the mean's component along the old direction, 1 - a is known directly, as
    `deficits`, and 1 - r = (1 - a) - p.p / (r + a) for the perpendicular component p: nothing
    cancels. If a is negative, r + a would cancel, and 1 - r does not.
    """
    along = 1 - deficits
    across = means - directions * np.einsum("dk,dk->k", means, directions)
    squares = np.einsum("dk,dk->k", across, across)
    lengths = np.hypot(along, np.sqrt(squares))
    complements = deficits - squares / np.where(along > 0, lengths + along, 1.0)
    return lengths, np.where(along > 0, complements, 1 - lengths)


def mean_vectors(stats: Statistics) -> Array:
    """Return the mean parameters (d, K); 0 for an empty component."""
    sums, _ = stats.moments
    return sums / np.where(stats.counts > 0, stats.counts, 1.0)


def pooled_length(stats: Statistics) -> float:
    """Return the mean resultant length, averaged over components."""
    lengths = np.linalg.norm(mean_vectors(stats), axis=0)
    return min(float(lengths @ stats.counts / stats.counts.sum()), 1.0)


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
        self._weights = weights
        self._tangent = tangent
        self._directions = np.ascontiguousarray(components.directions.T)
        K, d = self._directions.shape
        kappa = components.concentrations
        self._lengths = vmf.mean_resultant_length(kappa, d)
        complements = vmf.mean_resultant_length(kappa, d, complement=True)
        along, across = vmf.variance_eigenvalues(self._lengths, d, complement=complements)
        spread = across if tangent else np.full(K, 1 / d)
        self._rounding_units = np.ones((K, d))
        self.blocks = {
            "means": ParameterBlock(*repeat_columns(kappa, weights * spread, d)),
            "concentrations": ParameterBlock(np.ones(K), weights * along),
            "weights": ParameterBlock(np.ones(K), weights),
        }

    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        n = len(bags[0]) - 1
        K, d = self._directions.shape
        counts, sums = np.empty((n, K)), np.empty((n, K, d))
        add = kernels.packed_direction_sums if responsibilities.packed else kernels.direction_sums
        table, scales = responsibilities.table, responsibilities.scales
        add(bags, responsibilities.resp, table, scales, counts, sums)
        sizes = counts.sum(axis=1)
        statistics = {"means": sums}
        if "concentrations" in kinds or self._tangent:
            along = np.einsum("nkd,kd->nk", sums, self._directions)
            statistics["concentrations"] = along - self._lengths * counts
            if self._tangent:
                sums -= along[:, :, None] * self._directions
        if "weights" in kinds:
            statistics["weights"] = counts - sizes[:, None] * self._weights
        # Vectors have length one, and products with directions are sums of d terms more.
        sizes_of_terms = np.sqrt(np.diff(bags[0]) + d)[:, None] * counts
        for values in statistics.values():
            blocks = values if values.ndim == 3 else values[:, :, None]
            kernels.clear_rounding(sizes_of_terms, self._rounding_units, blocks)
        return statistics, sizes


@dataclass(frozen=True)
class VonMisesFisher(SeedFamily[DirectionalComponents]):
    """Von Mises-Fisher components in mean or natural parameters.

    The prior is on kappa alone, p(kappa) ~ exp(n0 (r0 kappa - Phi(kappa))): n0 pseudo-rows of
    resultant length r0 about each mean direction (derived here: the conjugate prior with the
    direction marginalised out; log-concave in kappa).

    Moments are sums of rows, (d, K), and for components by chords `deficits`, sums of 1 - m.x,
    (K,), about the directions of the components that they were taken with.
    """

    components_class: ClassVar[type] = DirectionalComponents
    unit_rows: ClassVar[bool] = True
    sparse_rows: ClassVar[bool] = True
    component_axes = (1, 0)

    dim: int
    tied: bool = False  # one concentration for all
    method: Method = "exact"  # from mean resultant length to concentration and log-normalizer
    prior_strength: float = 0.0  # n0
    prior_length: float = 0.0  # r0
    fixed_means: bool = False
    fixed_concentrations: bool = False

    def components(
        self,
        directions: Array,
        lengths: Array,
        complements: Array,
        concentrations: Array | None = None,
    ) -> DirectionalComponents:
        """Derive all arrays from unit columns, r and 1 - r, or concentrations, which are exact."""
        directions = np.ascontiguousarray(directions)
        complements = np.maximum(complements, self._least_complement)
        lengths = np.minimum(lengths, 1 - complements)
        if concentrations is None:
            # They are (1,) where all components have the same.
            kappa, log_partition, deficit = self._functions(lengths, complements)
        else:
            kappa = np.atleast_1d(concentrations)
            log_partition = vmf.log_partition(kappa, self.dim)
            deficit = vmf.log_partition_deficit(kappa, self.dim)
        log_area = self._log_area
        max_in_float32 = min(
            MAX_FLOAT32_CONCENTRATION, MAX_FLOAT32_CONCENTRATION_PER_DIM * (self.dim - 1)
        )
        in_float64 = bool(kappa.max() > max_in_float32)
        K = directions.shape[1]

        def of_each(values: Array) -> Array:
            return np.repeat(values, K // len(values))

        kappa = of_each(kappa)
        concentrated = kappa > HIGH_CONCENTRATION
        centred_at = None
        if concentrated.any():
            centred_at = np.where(concentrated[:, None], directions.T, np.nan)
        return DirectionalComponents(
            directions=directions,
            lengths=of_each(lengths),
            complements=of_each(complements),
            concentrations=kappa,
            log_normalizers=of_each(-log_partition - log_area),
            peaks=of_each(deficit - log_area),
            in_float64=in_float64,
            concentrated=concentrated,
            centred_at=centred_at,
        )

    def _functions(self, lengths: Array, complements: Array) -> tuple[Array, Array, Array]:
        """Return kappa, Phi(kappa) and kappa - Phi(kappa), (K,) or (1,), by the method."""
        if self.method == "exact":
            return exact_functions(lengths, complements, self.dim)
        kappa = vmf.concentration(lengths, self.dim, complement=complements, method=self.method)
        if self.method == "newton":
            log_partition = vmf.log_partition(kappa, self.dim)
            deficit = vmf.log_partition_deficit(kappa, self.dim)
        else:
            psi = vmf.negentropy(lengths, self.dim, complement=complements, method=self.method)
            log_partition = kappa * lengths - psi
            deficit = kappa * complements + psi
        return np.asarray(kappa), np.asarray(log_partition), np.asarray(deficit)

    @cached_property
    def _log_area(self) -> float:
        return float(vmf.log_sphere_area(self.dim))

    @cached_property
    def _least_complement(self) -> float:
        return float(vmf.mean_resultant_length(MAX_CONCENTRATION, self.dim, complement=True))

    def kmeans(self) -> "VonMisesFisher":
        return VonMisesFisher(self.dim, tied=True)

    def from_centres(self, centres: Array) -> DirectionalComponents:
        """Return components of moderate concentration in the directions of `centres`."""
        half = np.full(len(centres), 0.5)
        return self.components(centres.T, half, half)

    def select(self, components: DirectionalComponents, numbers: Array) -> DirectionalComponents:
        # All arrays as they are: given concentrations are not what a method would derive.
        concentrated = components.concentrated[numbers]
        centred_at = components.centred_at
        if centred_at is not None:
            centred_at = centred_at[numbers] if concentrated.any() else None
        return replace(
            components,
            directions=np.take(components.directions, numbers, axis=1),
            lengths=components.lengths[numbers],
            complements=components.complements[numbers],
            concentrations=components.concentrations[numbers],
            log_normalizers=components.log_normalizers[numbers],
            peaks=components.peaks[numbers],
            concentrated=concentrated,
            centred_at=centred_at,
        )

    def with_added(
        self, components: DirectionalComponents, centres: Array, in_use: Array
    ) -> DirectionalComponents:
        directions = (centres / np.linalg.norm(centres, axis=1, keepdims=True)).T
        concentrations = components.concentrations[in_use]
        kappa: Array | None = None  # that of the mean resultant length
        if self.fixed_concentrations or np.ptp(concentrations) == 0:
            kappa = np.mean(concentrations, keepdims=True)
        lengths = np.mean(components.lengths[in_use], keepdims=True)
        complements = np.mean(components.complements[in_use], keepdims=True)
        added = self.components(directions, lengths, complements, kappa)
        # All arrays of the old ones as they are, as in `select`.
        joined = {
            each.name: np.append(getattr(components, each.name), getattr(added, each.name))
            for each in fields(components)
            if each.name not in ("directions", "in_float64", "centred_at")
        }
        all_directions = np.hstack([components.directions, directions])
        centred_at = None
        if joined["concentrated"].any():
            centred_at = np.where(joined["concentrated"][:, None], all_directions.T, np.nan)
        return DirectionalComponents(
            directions=all_directions,
            in_float64=components.in_float64 or added.in_float64,
            centred_at=centred_at,
            **joined,
        )

    def with_shapes(
        self, components: DirectionalComponents, shapes: Array
    ) -> DirectionalComponents:
        return self.from_natural(components.directions.T, shapes)

    def centres(self, components: DirectionalComponents) -> Array:
        return components.directions.T

    def from_means(self, means: Array) -> DirectionalComponents:
        """Derive the components from mean parameters (K, d) inside the unit ball."""
        directions, lengths = split(means)
        return self.components(directions.T, lengths, 1 - lengths)

    def from_natural(self, directions: Array, concentrations: Array) -> DirectionalComponents:
        """Derive the components from directions (K, d) of any length and kappa (K,)."""
        units = directions / np.abs(directions).max(axis=1, keepdims=True)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        lengths = vmf.mean_resultant_length(concentrations, self.dim)
        complements = vmf.mean_resultant_length(concentrations, self.dim, complement=True)
        return self.components(units.T, lengths, complements, concentrations)

    def inherit(
        self,
        first: DirectionalComponents,
        old: DirectionalComponents,
        numbers: Array,
        merged: Array,
    ) -> DirectionalComponents:
        if self.fixed_means:
            directions = old.directions[:, numbers]
            first = self.components(directions, first.lengths, first.complements)
        if not self.fixed_concentrations:
            return first
        return self.with_shapes(first, old.concentrations[numbers])

    def in_all_columns(
        self,
        components: DirectionalComponents,
        stats: Statistics | None,
        columns: Array,
        n_features: int,
    ) -> tuple[DirectionalComponents, Statistics | None]:
        """Return components and statistics of columns in use, by number, as those of all."""

        def in_all(values: Array) -> Array:
            result = np.zeros((n_features, values.shape[1]))
            result[columns] = values
            return result

        directions = in_all(components.directions)
        centred_at = components.centred_at
        if centred_at is not None:
            centred_at = np.where(components.concentrated[:, None], directions.T, np.nan)
        if stats is not None:
            sums, deficits = stats.moments
            if stats.centred_at is not None:
                stats = replace(stats, centred_at=centred_at)
            stats = replace(stats, moments=(in_all(sums), deficits))
        return replace(components, directions=directions, centred_at=centred_at), stats

    def continued_by(self, new: AnyFamily) -> "VonMisesFisher":
        assert isinstance(new, VonMisesFisher)
        if new.dim != self.dim:
            raise ValueError(f"The fit to continue has {self.dim} features, not {new.dim}.")
        return replace(new, prior_length=self.prior_length)

    @property
    def min_rows(self) -> int:
        """A direction and a concentration take two rows."""
        return 2

    def n_parameters(self, n_components: int) -> int:
        n_parameters = 0
        if not self.fixed_means:
            n_parameters += n_components * (self.dim - 1)
        if not self.fixed_concentrations:
            n_parameters += 1 if self.tied else n_components
        return n_parameters

    def sample(self, components: DirectionalComponents, counts: Array, rng: Generator) -> Array:
        directions = np.ascontiguousarray(components.directions.T)
        parts = zip(directions, components.concentrations, counts, strict=True)
        return np.vstack([vmf.rvs(mu, kappa, size=n, random_state=rng) for mu, kappa, n in parts])

    @property
    def zero_row_log_density(self) -> float:
        return -self._log_area

    @property
    def gradients(self) -> GradientsType:
        return VonMisesFisherGradients

    def scores(self, block: Block, components: DirectionalComponents) -> Scores:
        bias = components.log_normalizers
        products = cosine_products(block, components)
        concentrated = components.concentrated
        if not concentrated.any():
            return Scores(products, bias, block.scales)
        # Of large concentrations kappa m.x less its maximum would cancel: kappa (1 - m.x) does not.
        assert block.scales is not None
        products *= block.scales[:, None]
        kappa = components.concentrations[concentrated]
        cosines = products[:, concentrated] / kappa
        products[:, concentrated] = -kappa * cosine_complements(block, components, cosines)
        return Scores(products, np.where(concentrated, components.peaks, bias))

    def moments(
        self,
        block: Block,
        responsibilities: Responsibilities,
        components: DirectionalComponents,
        cache: None = None,
    ) -> tuple[Array, ...]:
        """Return the weighted sums of rows (d, K) and, for components by chords, of 1 - m.x."""
        K = len(components.lengths)
        if isinstance(block, DenseBlock):
            sums = dense_row_sums(block, responsibilities, K)
        else:
            sums = sparse_row_sums(block, responsibilities, K)
        deficits = np.zeros(K)
        if components.concentrated.any():
            deficits[components.concentrated] = complement_sums(block, responsibilities, components)
        return sums, deficits

    def centred_at(self, components: DirectionalComponents) -> Array | None:
        return components.centred_at

    def shift_moments(self, stats: Statistics, centred_at: Array | None) -> Statistics:
        """Return the statistics with sums of 1 - m.x about other directions (K, d)."""
        sums, deficits = stats.moments
        if centred_at is None:
            return replace(stats, moments=(sums, np.zeros_like(deficits)), centred_at=None)
        shifted = stats.counts - np.einsum("dk,kd->k", sums, centred_at)
        if stats.centred_at is not None:  # then the difference of two directions does not cancel
            by_difference = deficits + np.einsum("dk,kd->k", sums, stats.centred_at - centred_at)
            shifted = np.where(np.isnan(by_difference), shifted, by_difference)
        return replace(stats, moments=(sums, np.nan_to_num(shifted)), centred_at=centred_at)

    def maximize(
        self, stats: Statistics, components: DirectionalComponents
    ) -> tuple[DirectionalComponents, Array]:
        counts = stats.counts
        sums, deficits = stats.moments
        has_rows = counts > 0
        directions, lengths = unit_columns(sums, counts)
        # Sums that cancel, and those of no rows, have no direction.
        directions[:, lengths == 0] = components.directions[:, lengths == 0]
        if self.fixed_means:  # lengths along these directions may be negative
            lengths *= np.einsum("dk,dk->k", directions, components.directions)
            directions = components.directions
        # Where no component has rows, a tied concentration has none to be estimated from.
        if self.fixed_concentrations or not has_rows.any():
            return self._moved(components, directions), np.zeros_like(has_rows)
        # Rounding may make a length larger than one: the complement is as small as that rounding.
        complements = np.abs(1 - lengths)
        if stats.centred_at is not None:
            # The complements of these are known by chords, to more digits than by 1 - r.
            concentrated = ~np.isnan(stats.centred_at[:, 0]) & has_rows
            mean_deficits = deficits[concentrated] / counts[concentrated]
            if self.fixed_means:
                lengths[concentrated] = 1 - mean_deficits
                complements[concentrated] = mean_deficits
            else:
                means = directions[:, concentrated] * lengths[concentrated]
                lengths[concentrated], complements[concentrated] = concentrated_lengths(
                    means, mean_deficits, stats.centred_at[concentrated].T
                )
        if self.tied:
            # One concentration is the best where its mean resultant length is the rows' mean.
            lengths = np.atleast_1d(counts @ lengths / counts.sum())
            complements = np.atleast_1d(counts @ complements / counts.sum())
        lengths, complements = self._with_prior(lengths, complements, counts)
        if not self.tied:
            lengths = np.where(has_rows, lengths, components.lengths)
            complements = np.where(has_rows, complements, components.complements)
        return self.components(directions, lengths, complements), np.zeros_like(has_rows)

    def _with_prior(self, lengths: Array, complements: Array, counts: Array) -> tuple[Array, Array]:
        """Return resultant lengths, at least 0, and complements of rows and pseudo-rows.

        `counts` (K,) are those of all components; if one length is for all, it goes
        with their sum, and has the pseudo-rows of all.
        """
        n_prior = self.prior_strength
        if len(lengths) < len(counts):
            n_prior = n_prior * len(counts)
            counts = np.atleast_1d(counts.sum())
        total = np.where(counts + n_prior > 0, counts + n_prior, 1.0)
        lengths = counts / total * lengths + n_prior / total * self.prior_length
        complements = counts / total * complements + n_prior / total * (1 - self.prior_length)
        return np.maximum(lengths, 0), np.minimum(complements, 1)

    def reseed(
        self, components: DirectionalComponents, k: int, row: Array
    ) -> DirectionalComponents:
        """Move component k to a row, with the mean of all resultant lengths."""
        if self.fixed_means:
            return components
        directions = components.directions.copy()
        directions[:, k] = row / np.linalg.norm(row)  # float32 rows are of unit length nearly
        if self.fixed_concentrations:
            return self._moved(components, directions)
        if self.tied:
            return self.components(directions, components.lengths[:1], components.complements[:1])
        lengths = components.lengths.copy()
        lengths[k] = lengths.mean()
        complements = components.complements.copy()
        complements[k] = complements.mean()
        return self.components(directions, lengths, complements)

    def _moved(self, components: DirectionalComponents, directions: Array) -> DirectionalComponents:
        """Return components with other directions, and the same concentrations."""
        return self.components(
            directions, components.lengths, components.complements, components.concentrations
        )

    def log_prior(self, components: DirectionalComponents) -> float:
        """Return n0 sum of r0 kappa - Phi(kappa), less what it is at the prior's mode.

        A pruned component keeps its term. Near the mode the difference would be rounding alone: it
        is half of what the concentration gains times what the resultant length gains.
        """
        if self.prior_strength == 0:
            return 0.0
        mode = self._prior_mode
        gains = components.concentrations - mode.concentrations
        gains_in_length = components.lengths - mode.lengths
        if self.prior_length > 0.5:  # then the complements have more digits
            gains_in_length = mode.complements - components.complements
        losses = (1 - self.prior_length) * gains - (components.peaks - mode.peaks)
        # At a relative gap of 1e-5 both errors are about as large: that of the product is the gap,
        # and that of the difference a rounding over its square.
        is_near = np.abs(gains) <= 1e-5 * mode.concentrations
        losses = np.where(is_near, 0.5 * gains * gains_in_length, losses)
        return -self.prior_strength * float(losses.sum())

    @cached_property
    def _prior_mode(self) -> DirectionalComponents:
        """A component of the prior's resultant length, in any direction."""
        length = np.array([self.prior_length])
        return self.components(np.eye(self.dim, 1), length, 1 - length)

    def with_prior_from(self, stats: Statistics) -> "VonMisesFisher":
        """Centre the prior on the pooled resultant length of a first partition."""
        return replace(self, prior_length=min(pooled_length(stats), MAX_PRIOR_LENGTH))

    def initial(
        self, stats: Statistics, components: DirectionalComponents, centres: Array | None = None
    ) -> DirectionalComponents:
        """Make first components from a partition, all with its pooled concentration.

        The prior counts, or the concentration of rows that are all but equal would be rounding. A
        component that is empty, or whose rows cancel, gets some axis.
        """
        if centres is None:
            means = mean_vectors(stats)
            norms = np.linalg.norm(means, axis=0)
            undirected = np.flatnonzero(norms < MIN_LENGTH)
            means[:, undirected] = 0.0
            means[undirected % len(means), undirected] = 1.0
            norms[undirected] = 1.0
            directions = means / norms
        else:
            directions = centres.T
        pooled = np.array([min(pooled_length(stats), MAX_INITIAL_LENGTH)])
        lengths, complements = self._with_prior(pooled, 1 - pooled, stats.counts)
        if not self.tied:
            K = len(stats.counts)
            lengths = np.repeat(lengths, K)
            complements = np.repeat(complements, K)
        return self.components(directions, lengths, complements)

    # Merging.

    def merge_cost(
        self, stats: Statistics, components: DirectionalComponents, numbers: Array
    ) -> DirectionMergeCost:
        counts = stats.counts[numbers]
        sums, _ = stats.moments
        sums = np.ascontiguousarray(sums.T[numbers])
        if self.tied:
            log_normalizer = float(components.log_normalizers[0])
            kappa = float(components.concentrations[0])
            return DirectionMergeCost(sums, counts, log_normalizer, kappa)
        return DirectionMergeCost(
            sums,
            counts,
            self.zero_row_log_density,
            n_pseudo=self.prior_strength,
            pseudo_length=self.prior_length,
        )

    def proposal(self) -> Proposal:
        """Start with components of one concentration, without a prior."""
        return Proposal(self.kmeans())

    def at_points(
        self, points: Array, like: DirectionalComponents | None = None
    ) -> DirectionalComponents:
        units = points / np.linalg.norm(points, axis=1, keepdims=True)
        if like is None:
            half = np.array([0.5])  # moderate, until rows tell
            return self.components(units.T, half, half)
        return self.components(units.T, like.lengths[:1], like.complements[:1])

    def append(
        self, components: DirectionalComponents, others: DirectionalComponents
    ) -> DirectionalComponents:
        """All have the concentration of the first."""
        directions = np.hstack([components.directions, others.directions])
        return self.components(directions, components.lengths[:1], components.complements[:1])

    def peaks(self, components: DirectionalComponents) -> Array:
        return components.concentrations + components.log_normalizers

    def fit_clusters(self, cost: DirectionMergeCost, clusters: Array) -> DirectionalComponents:
        """Return components in the directions of sums, with the pooled resultant length."""
        sums = cost.sums[clusters]
        norms = np.linalg.norm(sums, axis=1)
        directions = sums.T / np.where(norms > 0, norms, 1.0)
        directions[0, norms == 0] = 1.0  # rows that cancel get some axis
        length = np.array([min(norms.sum() / cost.counts[clusters].sum(), 1.0)])
        return self.components(directions, length, 1 - length)

    def distances(self, block: Block, centres: Array) -> Array:
        """Return 1 - x.c for unit rows c of `centres`, never negative."""
        assert block.scales is not None
        if isinstance(block, DenseBlock):
            cosines = np.dot(block.X, centres.T.astype(block.X.dtype))
        else:
            cosines = sparse_dot(block, centres.T)
        return np.maximum(1 - cosines * block.scales[:, None], 0)
