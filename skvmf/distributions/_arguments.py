"""Validation of numbers and arrays, with errors that name the argument."""

from numbers import Integral

import numpy as np
from scipy import sparse

from .._typing import Array


def checked_array(values: object, name: str) -> Array:
    """Return values as an array of real numbers; errors name the argument."""
    if sparse.issparse(values):
        raise ValueError(f"{name} should be a dense array, not a sparse one: give its toarray().")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # the last: a tensor with a gradient
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
