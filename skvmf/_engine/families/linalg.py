"""Products of tall matrices, in tiles that BLAS multiplies where they are."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from ..._kernels._jit import LINE, kept
from ..._kernels.rows import add_dense_shares, add_labelled_rows
from ..._typing import Array
from ..contracts.responsibilities import DenseResponsibilities, Responsibilities

SMALL = 10**6  # multiplications up to which OpenBLAS does not copy the factors first
LARGE = 2**15  # entries of a matrix, from which copies cost less than products that leave the cache
TILE = 512  # rows that are taken at once
FEATURES = 2**16  # of a tile of rows, which stay in the processor's second cache
MOST_FEATURES = 2**19  # of a tile, which stay in the third
FEW_ROWS = 128  # in a tile, from which calls cost less than copies
KEPT = 2**24  # bytes, up to which a thread keeps what it works in
COPYING = {"Haswell", "Zen"}  # for which OpenBLAS copies the factors of every product


def tile_rows(size: int, most: int) -> int:
    """Return how many rows, at most `most`, to multiply at once with a matrix of that size."""
    if always_copies():
        return min(TILE, most) if size >= LARGE else most
    rows = SMALL // size
    return rows if FEW_ROWS <= rows < most else most


@cache
def always_copies() -> bool:
    """Return whether BLAS treats small products as it does large ones."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return not COPYING.isdisjoint(getattr(library, "architecture", "") for library in libraries)


def tall_dot(X: Array, matrix: Array, product: Array) -> None:
    """Fill `product` with X (n, d) times a matrix (d, K); up to twice as fast as in one piece.

    How the rows are cut depends on the shapes, and on BLAS, alone.
    """
    n = max(len(X), 1)  # no rows are one tile
    n_tiles = -(-n // tile_rows(matrix.size, n))
    size = -(-n // n_tiles)
    for start in range(0, n, size):
        np.dot(X[start : start + size], matrix, out=product[start : start + size])


def tiles(n: int, size: int = TILE) -> list[slice]:
    """Return slices of at most `size` rows."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def aligned(n: int, size: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """Return zeros (n, size or a few more) whose rows begin with lines of the cache.

    A vector that reaches into two lines takes twice as long to load.
    """
    itemsize = np.dtype(dtype).itemsize
    size = -(-size * itemsize // LINE) * LINE
    memory = np.zeros(n * size + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n * size].view(dtype).reshape(n, size // itemsize)


def work_rows(use: str, n: int, size: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """Return rows as `aligned` makes them, to work in; this thread keeps them, unless large."""
    shape = n, size, np.dtype(dtype)
    found: tuple[tuple[int, int, np.dtype[Any]], Array] | None = getattr(kept, use, None)
    if found is not None and found[0] == shape:
        return found[1]
    rows = aligned(*shape)
    if rows.nbytes <= KEPT:
        setattr(kept, use, (shape, rows))
    return rows


def feature_rows(n_features: int) -> int:
    """Return how many rows' features to take at once: a multiple of four, as they are summed."""
    n_rows = min(max(FEW_ROWS, FEATURES // n_features), MOST_FEATURES // n_features)
    return max(4, n_rows // 4 * 4)


def feature_sums(
    features: Callable[..., None],
    X: Array,
    origin: Array,
    responsibilities: Responsibilities,
    size: tuple[int, int],
) -> Array:
    """Return sums (K, n_features) of features of the rows about an origin, by share, by tiles."""
    K, n_features = size
    sums = aligned(K + K % 2, n_features)
    values = work_rows("features", feature_rows(n_features), n_features)
    for tile in tiles(len(X), len(values)):
        n = tile.stop - tile.start
        features(X[tile], origin, values)
        if isinstance(responsibilities, DenseResponsibilities):
            add_dense_shares(values[:n], responsibilities.resp[tile], sums)
        else:
            add_labelled_rows(
                values[:n], responsibilities.labels[tile], responsibilities.factors[tile], sums
            )
    return sums[:K, :n_features]
