"""Copies of rows: how much the most frequent row weighs."""

import numpy as np

from ..._typing import Array
from .blocks import Block, DenseBlock
from .sources import RowSource

# Rows are compared by sums of their bits times odd numbers, modulo 2^64: two different ones have
# the same sum with a probability of about 2^-63.
_SEED = 0


def heaviest_row(rows: RowSource) -> float:
    """Return the weight of a row in memory and all its copies, the largest of all rows."""
    factors = np.random.default_rng(_SEED).integers(0, 2**63, rows.n_features, np.uint64)
    sums = rows.per_row(lambda block: _sums(block, 2 * factors + 1), np.uint64)
    _, first = np.unique(sums, return_inverse=True)
    return float(np.bincount(first, rows.sampling_weights()).max())


def _sums(block: Block, factors: Array) -> Array:
    """Return a number for each row of a block, equal for copies."""
    if isinstance(block, DenseBlock):
        return np.einsum("nd,d->n", _bits(block.X), factors)
    used = slice(block.indptr[0], block.indptr[-1])
    # A stored zero is none, and adds nothing.
    products = _bits(block.data[used]) * factors[block.indices[used]]
    before = np.append(np.zeros(1, np.uint64), np.cumsum(products))
    pointers = block.indptr - block.indptr[0]
    return before[pointers[1:]] - before[pointers[:-1]]


def _bits(values: Array) -> Array:
    """Return the bits of floats as numbers; those of both zeros are 0."""
    whole = np.ascontiguousarray(values) + values.dtype.type(0)
    return whole.view(f"u{values.dtype.itemsize}").astype(np.uint64)
