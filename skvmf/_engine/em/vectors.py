"""What Fisher vectors need of a fitted mixture: gradients, and responsibilities for vectors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ..._typing import Array
from ..families.gradients import Gradients, VectorResponsibilities
from ..families.responsibilities import DenseResponsibilities, as_dense
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .mixture import Point

Index: TypeAlias = Array | slice

# Selected rows of a table are copied by so much at a time: few copies, of which a cache holds most.
TABLE_BYTES = 2**23

# The fraction of responsibilities that are not zero up to which visiting those alone is cheaper.
MAX_PACKED = 1 / 4


@dataclass(frozen=True, eq=False)
class VectorModel:
    """A fitted mixture, whose family has gradients, as bags of vectors see it."""

    fitted: Point  # with the posterior to publish
    as_rows: Callable[[Array], RowSource]  # of vectors (n, d); may raise a ValueError

    @property
    def names(self) -> Mapping[str, str]:
        """The kinds of gradients, each with the name of one of its parameters."""
        return self.fitted.family.gradients.names

    def gradients(self, *, tangent: bool) -> Gradients:
        """Return gradients given that rows belong to a component, along the sphere if `tangent`."""
        params = self.fitted.params
        gradients = self.fitted.family.gradients
        return gradients(params.conditional_weights, params.components, tangent=tangent)

    def responsibilities(self, table: Array, used: Array | None) -> VectorResponsibilities:
        """Return responsibilities for the rows of a table in `used`, booleans (None: all)."""
        shape = len(table), self.fitted.n_components
        of_table = _OfTable(np.zeros(shape), np.zeros(len(table)))
        for numbers, part in _parts(table, used):
            self._assign_part(numbers, part, of_table)
        if of_table.moved:
            table = table.copy()
            for index, vectors in of_table.moved:
                table[index] = vectors
        if not of_table.any_dense:
            return VectorResponsibilities(of_table.packed(), table, of_table.scales)
        for _, index, resp in of_table.sparse:
            of_table.dense[index] = resp.toarray()
        return VectorResponsibilities(of_table.dense, table, of_table.scales)

    def _assign_part(self, numbers: Array | None, part: Array, of_table: "_OfTable") -> None:
        """Compute responsibilities for rows with their numbers in the table; None is all."""
        fitted = self.fitted
        K = fitted.n_components

        def write(block: DenseBlock, span: slice) -> None:
            index = span if numbers is None else numbers[span]
            assigned = fitted.assign(block, row_weights=block.weights)
            responsibilities = assigned.of_components(K)
            resp = as_dense(responsibilities, K)
            resp[np.isneginf(assigned.values)] = fitted.weights  # no component has a density
            is_dense = isinstance(
                responsibilities, DenseResponsibilities
            ) and responsibilities.denser_than(MAX_PACKED)
            if is_dense:
                of_table.dense[index] = resp
                of_table.any_dense = True
            else:
                start = span.start if numbers is None else int(numbers[span.start])
                of_table.sparse.append((start, index, sparse.csr_array(resp)))
            of_table.scales[index] = 1.0 if block.scales is None else block.scales
            if not np.may_share_memory(block.X, part):
                of_table.moved.append((index, block.X))

        self.as_rows(part).for_each(write)


@dataclass(eq=False)
class _OfTable:
    """Responsibilities for and scales of the rows of a table, block by block.

    `dense` costs nothing until it is written to; `sparse` blocks come with the number of their
    first row, and of all. Rows that the mixture sees elsewhere are `moved`.
    """

    dense: Array
    scales: Array
    any_dense: bool = False
    sparse: list[tuple[int, Index, Any]] = field(default_factory=list)
    moved: list[tuple[Index, Array]] = field(default_factory=list)

    def packed(self) -> tuple[Array, Array, Array]:
        """Return sparse responsibilities as compressed rows over the whole table."""
        V, K = self.dense.shape
        sizes = np.zeros(V, dtype=np.intp)
        blocks = [sparse.csr_array((0, K))]
        for _, index, resp in sorted(self.sparse, key=lambda block: block[0]):
            sizes[index] = np.diff(resp.indptr)
            blocks.append(resp)
        resp = sparse.vstack(blocks, format="csr")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return starts, resp.indices.astype(np.intp), resp.data.astype(np.float64)


def _parts(table: Array, used: Array | None) -> Iterator[tuple[Array | None, Array]]:
    """Yield numbers of rows in `used`, a bounded number at a time, and the rows; None is all."""
    if used is None or used.all():
        if len(table):
            yield None, table
        return
    numbers = np.flatnonzero(used)
    size = max(1, TABLE_BYTES // (table.shape[1] * table.itemsize))
    for start in range(0, len(numbers), size):
        rows = numbers[start : start + size]
        yield rows, table[rows]
