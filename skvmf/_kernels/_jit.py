"""The one place that says njit, and with which options.

Set the environment variable ``SKVMF_CACHE=0`` to compile afresh in every process. Where no
cache location can be written, compiled code is not kept and nothing else changes.
Numba does not notice a changed option: after editing this file, clear its cache.
"""

import os
from collections.abc import Callable
from typing import Any

import numba

_CACHE = os.environ.get("SKVMF_CACHE", "1") != "0"


def _compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Decorate lazily; fall back to no caching where no location is writable."""
    options |= {"nogil": True, "error_model": "numpy"}
    if _CACHE:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # Numba: "no locator available for file"
            pass
    return numba.njit(**options)(function)


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
