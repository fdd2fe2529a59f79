"""A pool of arrays that are used again instead of being allocated for each block."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._typing import Array

MAX_KEPT = 16  # arrays per use


class BufferPool:
    """Arrays to be filled again, and arrays that are computed once for all blocks.

    Fresh pages cost as much as some sums do. Arrays are kept by what they were used for, where
    somebody has asked for such, and dropped where another shape or type is asked for.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, list[Array]] = {}
        self._made: dict[str, tuple[Any, Array]] = {}

    def empty(self, use: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
        """Return an array with anything in it."""
        try:
            array = self._arrays.setdefault(use, []).pop()
        except IndexError:
            return np.empty(shape, dtype)
        return array if array.shape == shape and array.dtype == dtype else np.empty(shape, dtype)

    def give(self, use: str, array: Array) -> None:
        """Take an array back."""
        arrays = self._arrays.get(use)
        if arrays is not None and len(arrays) < MAX_KEPT:
            arrays.append(array)

    def once(self, use: str, owner: Any, make: Callable[[], Array]) -> Array:
        """Return what `make` returned for the same owner before, or else call it."""
        made = self._made.get(use)
        if made is None or made[0] is not owner:
            made = self._made[use] = owner, make()
        return made[1]
