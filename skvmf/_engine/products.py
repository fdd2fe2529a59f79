"""Products of tall matrices, in tiles that BLAS multiplies where they are."""

from collections.abc import Callable
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from .._kernels.rows import add_labelled_rows
from .chunks import Array
from .shares import DenseShares, Shares

SMALL = 10**6  # multiplications up to which OpenBLAS does not copy the factors first
TILE = 512  # rows whose features stay in the processor's second cache
FEW_ROWS = 128  # in a tile, from which calls cost less than copies
COPYING = {"Haswell", "Zen"}  # for which OpenBLAS copies the factors of every product


def tile_rows(size: int, most: int) -> int:
    """Return how many rows, at most `most`, to multiply at once with a matrix of that size."""
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
    n_tiles = 1 if always_copies() else -(-n // tile_rows(matrix.size, n))
    size = -(-n // n_tiles)
    for start in range(0, n, size):
        np.dot(X[start : start + size], matrix, out=product[start : start + size])


def tiles(n: int, size: int = TILE) -> list[slice]:
    """Return slices of at most `size` rows."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def feature_product(features: Callable[..., None], X: Array, origin: Array, matrix: Array) -> Array:
    """Return features of the rows about an origin times a matrix, by tiles.

    The last row of the matrix is added to all products. Those beyond the largest float are
    infinite.
    """
    product = np.empty((len(X), matrix.shape[1]))
    n_rows = tile_rows(matrix.size, TILE)
    values = np.ones((n_rows, len(matrix)))
    for tile in tiles(len(X), n_rows):
        n = tile.stop - tile.start
        features(X[tile], origin, values)
        with np.errstate(over="ignore"):
            np.dot(values[:n], matrix, out=product[tile])
    return product


def feature_sums(
    features: Callable[..., None], X: Array, origin: Array, shares: Shares, size: tuple[int, int]
) -> Array:
    """Return sums (K, n_features) of features of the rows about an origin, by share, by tiles."""
    sums = np.zeros(size)
    n_rows = tile_rows(size[0] * size[1], min(TILE, max(32, 2**16 // size[1])))
    values = np.empty((n_rows, size[1]))
    for tile in tiles(len(X), n_rows):
        n = tile.stop - tile.start
        features(X[tile], origin, values)
        if isinstance(shares, DenseShares):
            sums += np.dot(shares.resp[tile].T, values[:n])
        else:
            labels, factors = shares.labels[tile], shares.factors[tile]
            add_labelled_rows(values[:n], labels, factors, sums)
    return sums
