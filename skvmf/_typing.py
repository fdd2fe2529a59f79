"""Types that many files have in common, and warnings that point to the user's line."""

import sys
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Function: TypeAlias = Callable[..., Any]

# What functions of numbers and arrays return: a float for numbers, else an array.
Values: TypeAlias = Any


class HasShape(Protocol):
    """What data frames, sparse and Dask arrays have in common."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class SupportsArray(Protocol):
    """Arrays of any library, series and data frames."""

    def __array__(self) -> Array:
        """Return the values as an array of NumPy."""


# What users give.
MatrixLike: TypeAlias = ArrayLike | HasShape
# Numbers for a parameter that may be a text, too; numpy's ArrayLike includes all texts.
Numbers: TypeAlias = SupportsArray | Sequence[float] | Sequence[Sequence[float]]
# What rows are when they have been checked; SciPy brings no types.
Matrix: TypeAlias = Array | sparse.csr_array
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None

# Fitted attributes, the state of a pickle, or options to pass on, by name.
Attributes: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, Any]

# What scikit-learn checks the parameters of an estimator by.
ParameterConstraints: TypeAlias = dict[str, object]


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, also one of NumPy."""
    return isinstance(value, Integral)


# Packages that stand between a fit and the code that asked for it: its author can change that code.
_BETWEEN = {"skvmf", "sklearn", "joblib"}


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the name and line of the first caller outside skvmf, scikit-learn and joblib."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
