"""What Numba has, but does not document: the only file that uses such names, and only tries to.

If another release of Numba lacks one, kernels are compiled and cached as they are for everybody
else: a first fit takes longer, and a damaged file of the cache may stop it. Nothing else changes.
"""

import gc
import glob
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numba

Function = Callable[..., Any]


def without_entries(*languages: str) -> dict[str, bool]:
    """Return the options that spare a function the code by which "cpython" or "cfunc" enters it.

    Only Python calls kernels, and only kernels call parts.
    """
    try:
        from numba.core.options import DefaultOptions
    except ImportError:
        return {}
    names = [f"no_{language}_wrapper" for language in languages]
    return {name: True for name in names if hasattr(DefaultOptions, name)}


def compile_once(part: Function, options: dict[str, Any]) -> bool:
    """Let kernels call a part as one compiled function, while Python still runs it as Python.

    Return whether they will. What is documented is an overload, which is compiled again for callers
    with other options, and with an entry for C: first fits take a seventh longer.
    """
    compiled = numba.njit(**options, **without_entries("cpython", "cfunc"))(part)
    try:
        # By this name Numba asks a value for its type. A type holds its function weakly.
        vars(part).update(_numba_type_=compiled._numba_type_, _compiled=compiled)
        return bool(numba.typeof(part) == compiled._numba_type_)
    except (AttributeError, ValueError):
        return False


def compile_uncollected(compiled: Any) -> None:
    """Turn Python's search for garbage off while a kernel is compiled.

    Compiling makes so many objects that Python goes through all there are again and again: a tenth
    of a first fit, and more where more is loaded.
    """
    compile_types = getattr(compiled, "compile", None)
    if compile_types is None:
        return

    @wraps(compile_types)
    def compile_types_uncollected(*args: object) -> object:
        collects = gc.isenabled()
        gc.disable()
        try:
            return compile_types(*args)
        finally:
            if collects:
                gc.enable()

    with suppress(AttributeError):
        compiled.compile = compile_types_uncollected


def forgive(compiled: Any) -> None:
    """Let the cache of a compiled function bear errors, and read where it cannot write.

    A damaged file or a full disk should cost time, and no fit.
    """
    with suppress(Exception):
        compiled._cache = ForgivingCache(compiled._cache, compiled.py_func)


class ForgivingCache:
    """Numba's cache of a function; what cannot be read or written is compiled.

    Each error removes the function's index, as it may name files that are damaged. If the disk is
    full, it may even name a file of older code. The next process caches its code again.
    """

    def __init__(self, cache: Any, function: Function) -> None:
        self._cache = cache
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *key: Any) -> Any:
        """Return the code that is cached under a key, such as a signature; None without any."""
        code = None
        try:
            code = self._cache.load_overload(*key)
        except Exception:  # unpickling a damaged file can raise any
            self._remove_index()
        if code is None:
            with suppress(Exception):
                code = self._load_from_read_only(key)
        return code

    def save_overload(self, *key_and_code: Any) -> None:
        """Cache compiled code if that is possible."""
        try:
            self._cache.save_overload(*key_and_code)
        except OSError:
            self._remove_index()

    def _remove_index(self) -> None:
        with suppress(Exception):
            folder = glob.escape(self._cache.cache_path)
            for path in glob.glob(f"{folder}/*.{self._function.__name__}-*.nbi"):
                os.unlink(path)

    def _load_from_read_only(self, key: tuple[Any, ...]) -> Any:
        """Return code from the folders that Numba passed over, as it cannot write to them.

        They may hold code all the same: an image is filled by one user and run by another.
        """
        for cache in _caches(self._function):
            if cache.cache_path == self._cache.cache_path:
                break
            with suppress(Exception):  # a damaged file here; another folder may do
                code = cache.load_overload(*key)
                if code is not None:
                    return code
        return None


def _caches(function: Function) -> Iterator[Any]:
    """Yield Numba's caches of a function, one a folder in its order, writable or not."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    for locator in CompileResultCacheImpl._locator_classes:
        unchecked = type("Locator", (locator,), {"ensure_cache_path": lambda self: None})
        files = type("Files", (CompileResultCacheImpl,), {"_locator_classes": [unchecked]})
        with suppress(RuntimeError, OSError):  # Numba has no such folder for this function
            yield type("Cache", (FunctionCache,), {"_impl_class": files})(function)
