"""Decorators that compile kernels: the only use of Numba's njit, with its options.

Set the environment variable ``SKVMF_CACHE=0`` to compile again in every process. If the
cache cannot be written or read, code is compiled, not cached, and nothing else changes.
Numba does not notice a changed option: after editing this file, clear its cache.
"""

import gc
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numba
from llvmlite import ir
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler import Compiler
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[..., Any]

CACHE_LINE = 64  # bytes of a line of the processor's cache

thread_cache = threading.local()  # work space that a thread uses again in its next call of a kernel

_CACHE = os.environ.get("SKVMF_CACHE", "1") != "0"


# How code is kept in the folder of NUMBA_CACHE_DIR, and in that of the package. Versions of Numba
# name these classes differently.
_Given: Any
_InTree: Any
_Given, _InTree, *_ = CompileResultCacheImpl._locator_classes


class _Nowhere(_InTree):
    """The folder of the package, where no folder can be written to."""

    def ensure_cache_path(self) -> None:
        """Take the folder as it is."""


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = (*CompileResultCacheImpl._locator_classes, _Nowhere)


class _ForgivingCache(FunctionCache):
    """Numba's cache without its errors: a full disk, or files that are damaged or foreign.

    Each failure removes the index, which may name files that are not there; the next process keeps
    its code again. Code is also read from folders that cannot be written to, as another user's in
    an image, which Numba passes over.
    """

    _impl_class = _CacheImpl

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        file, name = inspect.getfile(function), self._impl.filename_base
        given = [_Given] if numba.config.CACHE_DIR else []
        self._passed_over = []
        for locator in [each(function, file) for each in [*given, _InTree]]:
            path = locator.get_cache_path()
            if path == self._cache_path:
                break
            stamp = locator.get_source_stamp()
            self._passed_over.append(IndexDataCacheFile(path, name, stamp))

    @property
    def cache_path(self) -> str | None:
        """The folder that code is written to; None without one."""
        return None if isinstance(self._impl.locator, _Nowhere) else self._cache_path

    def load_overload(self, sig: object, target_context: Any) -> object:
        code = None
        try:
            code = super().load_overload(sig, target_context)
        except Exception:  # unpickling what is no pickle raises what it likes
            self._remove_index()
        key = self._index_key(sig, target_context.codegen())
        for files in [] if code is not None else self._passed_over:
            with suppress(Exception):  # also if there is none
                return self._impl.rebuild(target_context, files.load(key))
        return code

    def save_overload(self, *args: object) -> None:
        """Keep compiled code where that is possible."""
        try:
            super().save_overload(*args)
        except OSError:
            self._remove_index()

    def _remove_index(self) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self._cache_path, self._impl.filename_base + ".nbi"))


class _Apart(Compiler):
    """Compile for arguments that do not overlap in memory: else loops look, and are double."""

    def compile_extra(self, func: Function) -> object:
        self.state.flags.noalias = True
        return super().compile_extra(func)


def _uncollected(compile_types: Function) -> Function:
    """Turn Python's search for garbage off while a kernel is compiled.

    Compiling makes so many objects that Python goes through all there are again and again: a
    quarter of a first fit, and more where more is loaded.
    """

    @wraps(compile_types)
    def compile_uncollected(*args: object) -> object:
        collects = gc.isenabled()
        gc.disable()
        try:
            return compile_types(*args)
        finally:
            if collects:
                gc.enable()

    return compile_uncollected


def _compile(function: Function, **options: object) -> Function:
    """Decorate lazily; do without a cache where no location can be used.

    A name with an underscore is that of a part, which kernels call; Python would crash. Without
    the entries for Python and C, and files of its own, a first fit is ready a tenth earlier.
    """
    part = function.__name__.startswith("_")
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    # Files whose kernels make arrays, or hold other objects, say MAKES_ARRAYS = True. Others
    # only borrow what they are given, and Numba need not count who holds it: a fifth less to
    # compile. It refuses np.empty there.
    options["_nrt"] = function.__globals__.get("MAKES_ARRAYS", False)
    if "fastmath" in options and not options["_nrt"]:
        options["pipeline_class"] = _Apart
    compiled = numba.njit(no_cpython_wrapper=part, **options)(function)
    if compiled is function:  # without the compiler
        return compiled
    compiled.compile = _uncollected(compiled.compile)
    if _CACHE and not part:
        with suppress(RuntimeError, OSError):  # Numba: "no locator available for file"
            compiled._cache = _ForgivingCache(function)  # what njit(cache=True) sets
    return compiled


def by_precision(single: Function, double: Function) -> Function:
    """Return the part for float32 or float64: a kernel that asks itself would compile both."""

    def choice(x):  # without the compiler
        return (single if x.dtype == "float32" else double)(x)

    if isinstance(double, numba.core.dispatcher.Dispatcher):

        @overload(choice, jit_options=double.targetoptions)
        def of_type(x):  # Numba compares signatures
            part = single if getattr(x, "dtype", x) == numba.float32 else double
            return part.py_func

    return choice


@intrinsic
def _ask_for(_, array, index):
    """Ask for the line of memory that an entry is in, numbered as if the array were flat."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        where = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        # To read it (0), soon and more than once (3), as data (1).
        builder.call(ask, [where, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return numba.void(array, numba.intp), generate


def prefetch(rows, n):
    """Ask for row n of a contiguous matrix, which will be read soon and processors do not guess."""


@overload(prefetch, jit_options={"_nrt": False})
def _prefetch(rows, n):
    def lines(rows, n):  # Numba compares signatures
        for k in range(0, rows.shape[1], CACHE_LINE // rows.itemsize):
            _ask_for(rows, n * rows.shape[1] + k)

    return lines


def kernel(function: Function) -> Function:
    """Compile a kernel with strict IEEE arithmetic: for special functions."""
    return _compile(function)


def row_kernel(function: Function) -> Function:
    """Compile a kernel that may fuse a multiplication and an addition: for passes over rows.

    `contract` changes no rule for nan and inf; it is worth 10-20 % on such passes. Arrays that
    are written to may not overlap with others.
    """
    return _compile(function, fastmath={"contract"})


def sum_kernel(function: Function) -> Function:
    """Compile a kernel that may also add in another order, several terms at a time: for sums."""
    return _compile(function, fastmath={"contract", "reassoc"})
