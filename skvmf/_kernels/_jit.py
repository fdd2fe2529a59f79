"""The one place that says njit, and with which options.

Set the environment variable ``SKVMF_CACHE=0`` to compile afresh in every process. Where the
cache cannot be written or read, code is compiled, not kept, and nothing else changes.
Numba does not notice a changed option: after editing this file, clear its cache.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.extending import overload

_CACHE = os.environ.get("SKVMF_CACHE", "1") != "0"


class _ForgivingCache(FunctionCache):
    """Numba's cache without its errors: a full disk, or files that are damaged or foreign.

    Each failure removes the index: it may name a file that was not written, or that an older
    source left there. The next process then keeps its code again.
    """

    def load_overload(self, *args: Any) -> Any:
        """Return compiled code, or None where there is none to be read."""
        try:
            return super().load_overload(*args)
        except Exception:  # unpickling what is no pickle raises what it likes
            self._remove_index()
            return None

    def save_overload(self, *args: Any) -> None:
        """Keep compiled code where that is possible."""
        try:
            super().save_overload(*args)
        except OSError:
            self._remove_index()

    def _remove_index(self) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self.cache_path, self._impl.filename_base + ".nbi"))


def _compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Decorate lazily; do without a cache where no location is writable.

    A name with an underscore is that of a part, which kernels call; Python would crash. Without
    the entries for Python and C, and files of its own, a first fit is ready a tenth earlier.
    """
    part = function.__name__.startswith("_")
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(no_cpython_wrapper=part, **options)(function)
    if _CACHE and not part and compiled is not function:  # without the compiler it is
        with suppress(RuntimeError, OSError):  # Numba: "no locator available for file"
            compiled._cache = _ForgivingCache(function)  # what njit(cache=True) sets
    return compiled


def by_precision(single: Callable[..., Any], double: Callable[..., Any]) -> Callable[..., Any]:
    """Return the one part for float32 and the other for float64, by their only argument.

    Where a kernel asks for the type itself, both branches are compiled, and one thrown away.
    """

    def choice(x: Any) -> Any:  # without the compiler
        return (single if x.dtype == "float32" else double)(x)

    if isinstance(double, numba.core.dispatcher.Dispatcher):

        @overload(choice, jit_options=double.targetoptions)  # type: ignore[untyped-decorator]
        def of_type(x):  # type: ignore[no-untyped-def]  # Numba compares signatures
            part: Any = single if getattr(x, "dtype", x) == numba.float32 else double
            return part.py_func

    return choice


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel with strict IEEE arithmetic: for special functions."""
    return _compile(function)


def row_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that may fuse a multiplication and an addition: for passes over rows.

    `contract` changes no rule for nan and inf; it is worth 10-20 % on such passes.
    """
    return _compile(function, fastmath={"contract"})


def sum_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that may also add in another order: for sums and nothing else.

    Without leave to reorder them compilers take one term of a sum at a time.
    """
    return _compile(function, fastmath={"contract", "reassoc"})
