"""What Fisher vectors need of a fitted mixture: gradients, and responsibilities for vectors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ..._typing import Array
from ..families.gradients import Gradients, GradientsType, VectorResponsibilities
from ..families.responsibilities import DenseResponsibilities, as_dense
from ..rows.blocks import DenseBlock
from ..rows.sources import RowSource
from .mixture import FittedMixture
from .posterior import FenchelYoungPosterior

TABLE_BYTES = 2**23  # selected rows of a table are copied by so much at a time
Index: TypeAlias = Array | slice
PACK = 1 / 4  # of responsibilities that are not zero, up to which visiting those alone is cheaper


@dataclass(frozen=True)
class VectorModel:
    """A fitted mixture, whose family has gradients, as bags of vectors see it."""

    fitted: FittedMixture
    posterior: FenchelYoungPosterior
    as_rows: Callable[[Array], RowSource]  # of vectors (n, d); may raise a ValueError

    @property
    def names(self) -> Mapping[str, str]:
        """The kinds of gradients, each with the name of one of its parameters."""
        gradients: GradientsType = self.fitted.family.gradients
        return gradients.names

    def gradients(self, *, tangent: bool) -> Gradients:
        """Return gradients given that rows belong to a component, along the sphere if `tangent`."""
        fitted, params = self.fitted, self.fitted.params
        return fitted.family.gradients(
            params.conditional_weights, params.components, tangent=tangent
        )

    def responsibilities(self, table: Array, used: Array | None) -> VectorResponsibilities:
        """Return responsibilities for the rows of a table in `used`, booleans (None: all)."""
        found = _Found(np.zeros((len(table), len(self.fitted.weights))), np.zeros(len(table)))
        for numbers, part in _parts(table, used):
            self._assign_part(numbers, part, found)
        if found.moved:
            table = table.copy()
            for mine, vectors in found.moved:
                table[mine] = vectors
        if not found.any_dense:
            return VectorResponsibilities(found.packed(), table, found.scales)
        for _, mine, resp in found.sparse:
            found.dense[mine] = resp.toarray()
        return VectorResponsibilities(found.dense, table, found.scales)

    def _assign_part(self, numbers: Array | None, part: Array, found: "_Found") -> None:
        """Compute responsibilities for rows with their numbers in the table; None is all."""
        fitted, K = self.fitted, self.fitted.n_components

        def write(block: DenseBlock, span: slice) -> None:
            mine = span if numbers is None else numbers[span]
            assigned = fitted.mixture.assign(
                fitted.params, block, self.posterior, row_weights=block.weights
            )
            responsibilities = assigned.of_components(K)
            resp = as_dense(responsibilities, K)
            resp[np.isneginf(assigned.values)] = fitted.weights  # no component has a density
            if isinstance(responsibilities, DenseResponsibilities) and responsibilities.denser_than(
                PACK
            ):
                found.dense[mine] = resp
                found.any_dense = True
            else:
                start = span.start if numbers is None else int(numbers[span.start])
                found.sparse.append((start, mine, sparse.csr_array(resp)))
            found.scales[mine] = 1.0 if block.scales is None else block.scales
            if not np.may_share_memory(block.X, part):
                found.moved.append((mine, block.X))

        self.as_rows(part).for_each(write)


@dataclass
class _Found:
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
        sizes, blocks = np.zeros(V, dtype=np.intp), [sparse.csr_array((0, K))]
        for _, mine, resp in sorted(self.sparse, key=lambda block: block[0]):
            sizes[mine] = np.diff(resp.indptr)
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
