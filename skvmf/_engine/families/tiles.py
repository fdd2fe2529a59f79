"""Tiles of rows, and work space for them: products that stay in the processor's caches."""

from functools import cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from ..._kernels._jit import CACHE_LINE, thread_cache
from ..._typing import Array, DType

# OpenBLAS copies the factors of a product before it multiplies them, in tiles of its own; small
# products it takes as they are, where it has kernels for that.
MAX_UNCOPIED_PRODUCT = 10**6  # multiplications
COPYING_ARCHITECTURES = {"Haswell", "Zen"}  # have none
# There, copies of a matrix of so many entries, one for each tile, cost less than products that
# leave the cache; smaller matrices are not tiled.
MIN_TILED_SIZE = 2**15
TILE_ROWS = 512  # taken at once
MIN_TILE_ROWS = 128  # from which calls cost less than copies
MAX_CACHED_BYTES = 2**24  # of work space that a thread uses again; larger arrays are given back


def tile_rows(size: int, most: int) -> int:
    """Return how many rows, at most `most`, to multiply at once with a matrix of that size."""
    rows = most
    if not always_copies():
        rows = MAX_UNCOPIED_PRODUCT // size
        if rows < MIN_TILE_ROWS:
            rows = most
    elif size >= MIN_TILED_SIZE:
        rows = TILE_ROWS
    return min(rows, most)


@cache
def always_copies() -> bool:
    """Return whether BLAS treats small products as it does large ones."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return any(getattr(each, "architecture", "") in COPYING_ARCHITECTURES for each in libraries)


def tall_dot(X: Array, matrix: Array, product: Array) -> None:
    """Fill `product` with X (n, d) times a matrix (d, K).

    Tiles are cut by the shapes and BLAS alone: bits do not depend on the number of threads.
    """
    n = max(len(X), 1)  # no rows are one tile
    n_tiles = -(-n // tile_rows(matrix.size, n))
    size = -(-n // n_tiles)
    for start in range(0, n, size):
        np.dot(X[start : start + size], matrix, out=product[start : start + size])


def tiles(n: int, size: int = TILE_ROWS) -> list[slice]:
    """Return slices of at most `size` rows."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def aligned(n: int, size: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """Return zeros (n, size or a few more) whose rows begin with lines of the cache: for speed."""
    itemsize = np.dtype(dtype).itemsize
    row_bytes = -(-size * itemsize // CACHE_LINE) * CACHE_LINE
    memory = np.zeros(n * row_bytes + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + n * row_bytes].view(dtype).reshape(n, row_bytes // itemsize)


def work_rows(use: str, n: int, size: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """Return rows as `aligned` makes them, as work space; this thread caches them, unless large."""
    shape: tuple[int, int, DType] = n, size, np.dtype(dtype)
    cached_shape, rows = getattr(thread_cache, use, (None, np.empty(0)))
    if cached_shape != shape:
        rows = aligned(*shape)
        if rows.nbytes <= MAX_CACHED_BYTES:
            setattr(thread_cache, use, (shape, rows))
    return rows
