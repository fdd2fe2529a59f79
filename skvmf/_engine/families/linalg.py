"""Products of tall matrices, in tiles that BLAS multiplies without copies."""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from ..._kernels._jit import CACHE_LINE, thread_cache
from ..._kernels.rows import add_dense_responsibilities, add_labelled_rows
from ..._typing import Array, DType
from ..contracts.responsibilities import DenseResponsibilities, Responsibilities

MAX_UNCOPIED_PRODUCT = 10**6  # multiplications for which OpenBLAS does not copy the factors first
MIN_TILED_SIZE = 2**15  # entries of a matrix; copies cost less than products outside the cache
TILE_ROWS = 512  # taken at once
TILE_FEATURES = 2**16  # entries that stay in the processor's second cache
MAX_TILE_FEATURES = 2**19  # entries that stay in the third
MIN_TILE_ROWS = 128  # from which calls cost less than copies
MAX_CACHED_BYTES = 2**24  # of work space that a thread uses again
COPYING_ARCHITECTURES = {"Haswell", "Zen"}  # OpenBLAS copies the factors of every product


def tile_rows(size: int, most: int) -> int:
    """Return how many rows, at most `most`, to multiply at once with a matrix of that size."""
    if always_copies():
        return min(TILE_ROWS, most) if size >= MIN_TILED_SIZE else most
    rows = MAX_UNCOPIED_PRODUCT // size
    return rows if MIN_TILE_ROWS <= rows < most else most


@cache
def always_copies() -> bool:
    """Return whether BLAS treats small products as it does large ones."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return not COPYING_ARCHITECTURES.isdisjoint(
        getattr(library, "architecture", "") for library in libraries
    )


def tall_dot(X: Array, matrix: Array, product: Array) -> None:
    """Fill `product` with X (n, d) times a matrix (d, K); up to twice as fast as in one piece.

    How the rows are cut depends on the shapes, and on BLAS, alone.
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
    """Return zeros (n, size or a few more) whose rows begin with lines of the cache.

    A vector that reaches into two lines takes twice as long to load.
    """
    itemsize = np.dtype(dtype).itemsize
    size = -(-size * itemsize // CACHE_LINE) * CACHE_LINE
    memory = np.zeros(n * size + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + n * size].view(dtype).reshape(n, size // itemsize)


def work_rows(use: str, n: int, size: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """Return rows as `aligned` makes them, as work space; this thread caches them, unless large."""
    shape = n, size, np.dtype(dtype)
    cached: tuple[tuple[int, int, DType], Array] | None = getattr(thread_cache, use, None)
    if cached is not None and cached[0] == shape:
        return cached[1]
    rows = aligned(*shape)
    if rows.nbytes <= MAX_CACHED_BYTES:
        setattr(thread_cache, use, (shape, rows))
    return rows


def feature_rows(n_features: int) -> int:
    """Return how many rows' features to take at once: a multiple of four, as they are summed."""
    n_rows = min(max(MIN_TILE_ROWS, TILE_FEATURES // n_features), MAX_TILE_FEATURES // n_features)
    return max(4, n_rows // 4 * 4)


def feature_sums(
    features: Callable[..., None],
    X: Array,
    origin: Array,
    responsibilities: Responsibilities,
    size: tuple[int, int],
) -> Array:
    """Return sums (K, n_features) of features about an origin, weighted by responsibilities."""
    K, n_features = size
    sums = aligned(K + K % 2, n_features)
    values = work_rows("features", feature_rows(n_features), n_features)
    for tile in tiles(len(X), len(values)):
        n = tile.stop - tile.start
        features(X[tile], origin, values)
        if isinstance(responsibilities, DenseResponsibilities):
            add_dense_responsibilities(values[:n], responsibilities.resp[tile], sums)
        else:
            add_labelled_rows(
                values[:n], responsibilities.labels[tile], responsibilities.factors[tile], sums
            )
    return sums[:K, :n_features]
