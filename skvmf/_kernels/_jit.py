"""Decorators that compile kernels, and what kernels ask of the compiler: the only use of Numba.

All of it is documented, but for what is in `_undocumented`. That, and instructions that are written
for LLVM, is only tried: another release costs speed at most.

Set the environment variable ``SKVMF_CACHE=0`` to compile again in every process. If the
cache cannot be written or read, code is compiled, not cached, and nothing else changes.
Numba does not notice a changed option: after editing this file, clear its cache.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from llvmlite import ir
from numba.extending import (
    intrinsic,
    is_jitted,
    lower_builtin,
    overload,
    register_jitable,
    type_callable,
)
from numpy.typing import NDArray

from ._undocumented import compile_once, compile_uncollected, forgive, without_entries

Array = NDArray[Any]
Function = Callable[..., Any]

CACHE_LINE = 64  # bytes of a line of the processor's cache

thread_cache = threading.local()  # work space that a thread uses again in its next call of a kernel

_CACHE = os.environ.get("SKVMF_CACHE", "1") != "0"

# What the compiler may do with floats. `contract` changes no rule for nan and inf.
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": False}
_FUSED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
_REORDERED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}


def kernel(function: Function) -> Function:
    """Compile a kernel with strict IEEE arithmetic: for special functions."""
    return _compile(function, _STRICT)


def row_kernel(function: Function) -> Function:
    """Compile a kernel that may fuse a multiplication and an addition: for passes over rows.

    Such passes take 10-20 % less time.
    """
    return _compile(function, _FUSED)


def sum_kernel(function: Function) -> Function:
    """Compile a kernel that may also add in another order, several terms at a time: for sums."""
    return _compile(function, _REORDERED)


def inlined(function: Function) -> Function:
    """Write a part out where kernels call it, with their rules for floats.

    A call counts who holds each of its arrays, by two atomic operations. A part that is called for
    each row and component, with several arrays, would spend a fifth of its time on that.
    """
    return register_jitable(inline="always")(function)


def _compile(function: Function, options: dict[str, Any]) -> Function:
    """Decorate a kernel, which is compiled when it is first called, or a part of kernels.

    A name with an underscore is that of a part: kernels call it, and from Python it runs as Python.
    """
    if function.__name__.startswith("_"):
        if not compile_once(function, options):
            register_jitable(**options)(function)
        return function
    options = {"nogil": True, **options, **without_entries("cfunc")}
    try:
        compiled = numba.njit(cache=_CACHE, **options)(function)
    except (RuntimeError, OSError):  # no folder for the cache can be written to
        compiled = numba.njit(**options)(function)
    if is_jitted(compiled):  # it is not if NUMBA_DISABLE_JIT is set
        compile_uncollected(compiled)
        if _CACHE:
            forgive(compiled)
    return compiled


def by_precision(single: Function, double: Function) -> Function:
    """Return the part of row kernels for float32 or float64.

    A part that asks itself which it has would compile both.
    """

    def choice(x):  # without the compiler
        return (single if x.dtype == "float32" else double)(x)

    @overload(choice, jit_options=_FUSED)
    def of_type(x):  # Numba compares signatures
        return single if getattr(x, "dtype", x) == numba.float32 else double

    return choice


def assume_no_overlap():
    """Tell the compiler that no array which the calling kernel is given overlaps another.

    It could not know, and its loops would compare addresses before they take several entries at a
    time. Products with few columns spend a third of their time on that.
    """


@type_callable(assume_no_overlap)
def _type_of_assumption(_):
    return lambda: numba.types.none


@lower_builtin(assume_no_overlap)
def _write_assumption(context, builder, _, __):
    """Mark the pointers to entries; those to bytes lead to who holds an array."""
    with suppress(Exception):  # whatever another release does not have
        for argument in builder.function.args:
            kind = argument.type
            if isinstance(kind, ir.PointerType) and kind.pointee != ir.IntType(8):
                argument.add_attribute("noalias")
    return context.get_dummy_value()


def prefetch(rows, n):
    """Ask for row n of a contiguous matrix, which will be read soon and processors do not guess."""


@overload(prefetch)
def _prefetch(rows, n):
    def lines(rows, n):  # Numba compares signatures
        for k in range(0, rows.shape[1], CACHE_LINE // rows.itemsize):
            _ask_for(rows, n * rows.shape[1] + k)

    return lines


@intrinsic
def _ask_for(_, array, index):
    """Ask for the line of memory that an entry is in, numbered as if the array were flat."""

    def write(context, builder, signature, arguments):
        with suppress(Exception):  # whatever another release does not have
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            _write_prefetch(builder, builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return numba.void(array, numba.intp), write


def _write_prefetch(builder: ir.IRBuilder, where: ir.Value) -> None:
    byte = ir.IntType(8).as_pointer()
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    # To read it (0), soon and more than once (3), as data (1).
    builder.call(ask, [builder.bitcast(where, byte), number(0), number(3), number(1)])
