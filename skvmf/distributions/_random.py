"""Validation of random states and sizes of samples."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | np.random.Generator | None


def checked_size(size: Any) -> tuple[int, ...]:
    """Return a size as a tuple of integers."""
    if size is None:
        return ()
    sizes = (size,) if np.ndim(size) == 0 else tuple(size)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in sizes):
        raise ValueError(
            "size should be a whole number of points, 0 or more, a tuple of them, or None, "
            f"got {size!r}."
        )
    return tuple(map(int, sizes))


def checked_generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator that kernels take, seeded with draws from a RandomState."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(words)
