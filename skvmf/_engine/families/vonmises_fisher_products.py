"""Matrix products of von Mises-Fisher components: cosines of rows, and sums of rows."""

from dataclasses import dataclass

import numpy as np

from ..._kernels import high_concentration as high_concentration
from ..._kernels import rows as row_kernels
from ..._kernels import sparse as sparse_kernels
from ..._typing import Array
from ..contracts.responsibilities import (
    DenseResponsibilities,
    HardResponsibilities,
    Responsibilities,
)
from ..contracts.statistics import Statistics
from ..data.blocks import Block, DenseBlock, SparseBlock
from .linalg import tall_dot

# Of positive responsibilities; below, visiting those alone is cheaper than a product.
MIN_DENSITY_DENSE, MIN_DENSITY_SPARSE = 1 / 8, 1 / 32
HIGH_CONCENTRATION = 4e5  # kappa times the rounding of a cosine is felt above


@dataclass(frozen=True)
class DirectionalComponents:
    """K von Mises-Fisher components, and the arrays derived from them once per step.

    `directions` (d, K) are unit columns; `lengths` (K,) and `complements` (K,) are the mean
    resultant length r and 1 - r; log p = kappa m.x + `log_normalizers` = `peaks` -
    kappa (1 - m.x), where the peaks lose nothing to a large kappa. Float32 rows are scored
    in float64 where `in_float64`. For components that are `concentrated` (K, boolean), 1 - m.x is
    |x - m|^2 / 2; `origins` (K, d) are their directions, with nan for other components, or None
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
    origins: Array | None

    def __len__(self) -> int:
        return len(self.concentrations)


def cosine_products(block: Block, components: DirectionalComponents) -> Array:
    """Return kappa m.x of the rows as they are stored, (n, K)."""
    directions, kappa = components.directions, components.concentrations
    rows = block.data if isinstance(block, SparseBlock) else block.X
    dtype = np.dtype(np.float64) if components.in_float64 else rows.dtype
    if isinstance(block, SparseBlock):  # many features: float64 directions are not copied
        cast = block.buffers.once(
            "directions", components, lambda: directions.astype(dtype, copy=False)
        )
        product = sparse_dot(block, cast)
        product *= kappa.astype(dtype)
        return product
    natural = block.buffers.once(
        f"natural {dtype.char}", components, lambda: (directions * kappa).astype(dtype)
    )
    product = block.products(len(kappa), dtype)
    tall_dot(block.X.astype(dtype, copy=False), natural, product)
    return product


def cosine_complements(block: Block, components: DirectionalComponents, cosines: Array) -> Array:
    """Turn cosines (n, m) of rows with concentrated components into 1 - m.x, in place."""
    assert block.scales is not None
    directions = np.ascontiguousarray(components.directions[:, components.concentrated].T)
    if isinstance(block, SparseBlock):
        arguments = block.indptr, block.indices, block.data
        high_concentration.csr_cosine_complements(*arguments, block.scales, directions, cosines)
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
    gaps /= np.where(block.scales > 0, block.scales, 1.0)[:, None]
    if isinstance(responsibilities, DenseResponsibilities):
        return np.einsum("nk,nk->k", responsibilities.resp[:, concentrated], gaps)
    assigned = responsibilities.labels[:, None] == concentrated
    total = np.einsum("nk,nk,n->k", assigned, gaps, responsibilities.factors)
    return total


def sparse_dot(block: SparseBlock, matrix: Array) -> Array:
    """Return the products of sparse rows with a matrix (d, K), in its dtype."""
    product = block.products(matrix.shape[1], matrix.dtype)
    matrix = np.ascontiguousarray(matrix)
    sparse_kernels.csr_dot(block.indptr, block.indices, block.data, matrix, product)
    return product


def dense_row_sums(block: DenseBlock, responsibilities: Responsibilities, K: int) -> Array:
    """Return the sums (d, K) of dense rows times their responsibilities."""
    if isinstance(responsibilities, DenseResponsibilities) and responsibilities.denser_than(
        MIN_DENSITY_DENSE
    ):
        X = block.X.astype(responsibilities.resp.dtype, copy=False)
        sums = block.buffers.empty("sums", (X.shape[1], K))
        product = block.buffers.empty("block sums", sums.shape, X.dtype)
        sums[:] = np.dot(X.T, responsibilities.resp, out=product)
        block.buffers.give("block sums", product)
        return sums
    sums = block.buffers.empty("sums", (block.X.shape[1], K)).T
    if not sums.flags.c_contiguous:  # a component's sums are added to at once
        sums = np.empty(sums.shape)
    sums[:] = 0
    if isinstance(responsibilities, HardResponsibilities):
        row_kernels.add_labelled_rows(
            block.X, responsibilities.labels, responsibilities.factors, sums
        )
    else:
        row_kernels.add_sparse_responsibilities(block.X, responsibilities.resp, sums)
    return sums.T


def sparse_row_sums(block: SparseBlock, responsibilities: Responsibilities, K: int) -> Array:
    """Return the sums (d, K) of sparse rows times their responsibilities."""
    columns = block.columns
    if (
        isinstance(responsibilities, DenseResponsibilities)
        and responsibilities.denser_than(MIN_DENSITY_SPARSE)
        and columns is not None
    ):
        sums = block.buffers.empty("sums", (block.n_features, K))
        sparse_kernels.csr_dot(
            columns.ptr, columns.rows, columns.values, responsibilities.resp, sums
        )
        return sums
    sums = block.buffers.empty("sums", (block.n_features, K))
    sums[:] = 0
    packed = responsibilities.packed()
    sparse_kernels.csr_scatter(
        block.indptr, block.indices, block.data, packed.ends, packed.columns, packed.values, sums
    )
    return sums


def unit_columns(sums: Array, counts: Array) -> tuple[Array, Array]:
    """Return columns (d, K) of unit length, and their lengths per unit of count.

    If nothing but rounding is left of a sum, its length is 0. Sums are no longer than their
    counts, which are divided out first where squares might overflow.
    """
    scale = counts.max()
    if 1e-100 < scale < 1e100:
        scale = 1.0
    else:
        sums = sums / scale
    norms = np.sqrt(np.einsum("dk,dk->k", sums, sums))
    lengths: Array = norms * scale / np.where(counts > 0, counts, 1.0)
    lengths[lengths < 1e-150] = 0
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
    return stats.moments[0] / np.where(stats.counts > 0, stats.counts, 1.0)


def pooled_length(stats: Statistics) -> float:
    """Return the mean resultant length, averaged over components."""
    lengths = np.linalg.norm(mean_vectors(stats), axis=0)
    return min(float(lengths @ stats.counts / stats.counts.sum()), 1.0)
