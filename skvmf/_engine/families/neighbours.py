"""The nearest of other points, for thousands of points in many dimensions."""

import numpy as np

from ..._typing import Array
from ..rows.blocks import BufferPool
from ..rows.parallel import for_each
from .tiles import TILE_ROWS, tiles

MAX_DISTANCES = 2**24  # between points that a thread takes at once: 64 MiB
CHUNK_SIZE = 64  # distances of which the least is found first


def nearest_points(points: Array, others: Array, n: int, *, but_itself: bool = False) -> Array:
    """Return the numbers of the n nearest of other points for each point, in float32.

    Points are scaled by a power of two: squares of far ones would overflow.
    """
    M, d = others.shape
    centre = others.mean(axis=0)
    points = points - centre
    others = others - centre
    _, exponent = np.frexp(max(np.abs(points).max(), np.abs(others).max()))
    points = np.ldexp(points, -exponent)
    others = np.ldexp(others, -exponent)
    # Squared distances, but for the points' own squares, are a product. What fills up the last
    # chunk is infinitely far away.
    left = np.ones((len(points), d + 1), np.float32)
    left[:, :d] = points
    left[:, :d] *= -2
    right = np.zeros((d + 1, -(-M // CHUNK_SIZE) * CHUNK_SIZE), np.float32)
    right[:d, :M] = others.T
    right[d] = np.inf
    right[d, :M] = np.einsum("dm,dm->m", right[:d, :M], right[:d, :M])
    nearest = np.empty((len(points), n), dtype=np.int32)
    buffers = BufferPool()

    def write(tile: slice) -> None:
        shape = len(left[tile]), right.shape[1]
        distances = np.dot(left[tile], right, out=buffers.acquire("distances", shape, np.float32))
        if but_itself:
            distances[np.arange(len(distances)), np.arange(len(points))[tile]] = np.inf
        nearest[tile] = _least(distances, n)
        buffers.release("distances", distances)

    for_each(write, tiles(len(points), max(1, min(TILE_ROWS, MAX_DISTANCES // M))))
    return nearest


def _least(values: Array, n: int) -> Array:
    """Return the numbers of the n least in each row: they are in the n columns of chunks with such.

    A chunk is every m-th of `CHUNK_SIZE` m values, so that few are compared with each other.
    """
    m = values.shape[1] // CHUNK_SIZE
    if m <= n:
        return np.argpartition(values, n - 1, axis=1)[:, :n]
    least = values.reshape(len(values), CHUNK_SIZE, m).min(axis=1)
    chunks = np.argpartition(least, n - 1, axis=1)[:, np.newaxis, :n]
    numbers = (chunks + m * np.arange(CHUNK_SIZE)[:, np.newaxis]).reshape(len(values), -1)
    order = np.argpartition(np.take_along_axis(values, numbers, axis=1), n - 1, axis=1)[:, :n]
    return np.take_along_axis(numbers, order, axis=1)
