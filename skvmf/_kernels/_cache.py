"""The cache of compiled code, without the errors of Numba's own.

A damaged file or a full disk should cost time, and no fit. Numba has no public way to say so: this
is the only file that uses its private names. Each use is only tried. If another release of Numba
lacks a name, its cache works as it does for everybody else.
"""

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

Function = Callable[..., Any]


def forgive(compiled: Any) -> None:
    """Let the cache of a compiled function bear errors, and read where it cannot write."""
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
