"""Validation of numbers, arrays, random states and sizes, with errors that name the argument."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._sklearn import refuse_mask
from .._typing import Array, RandomState


def checked_array(values: object, name: str) -> Array:
    """Return values as an array of real numbers; errors name the argument."""
    if sparse.issparse(values):
        raise ValueError(f"{name} should be a dense array, not a sparse one: give its toarray().")
    refuse_mask(values, name)
    # A RuntimeError comes from a tensor with a gradient.
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} should be an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} should hold real numbers, not {array.dtype}.")
    return array


def checked_number(value: object, name: str) -> float:
    """Return a value as a float; errors name the argument."""
    array = checked_array(value, name)
    if array.ndim > 0:
        raise ValueError(f"{name} should be one number, not an array of shape {array.shape}.")
    return float(array)


def checked_alpha(alpha: object) -> float:
    """Return the alpha of an entropy as a float, at least 1."""
    value = checked_number(alpha, "alpha")
    if not 1 <= value < np.inf:
        raise ValueError(f"alpha must be a finite number of at least 1, not {alpha}.")
    return value


def checked_positive(value: object, name: str) -> float:
    """Return a value as a float, finite and above 0."""
    number = checked_number(value, name)
    if not 0 < number < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, not {value}.")
    return number


def check_count(value: object, name: str) -> None:
    """Raise a ValueError if a value is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer, not {value!r}.")


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
