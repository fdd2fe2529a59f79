"""BLAS held at one thread while blocks of rows are computed on several.

How many threads there are is what BLAS is allowed at that moment: ``threadpool_limits``,
``OMP_NUM_THREADS`` and joblib's workers steer it.
"""

import os
import threading
from _thread import start_new_thread
from functools import partial
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

from .thread_pool import Call, Pool

if TYPE_CHECKING:
    from threadpoolctl import LibController


class _User:
    """A thread's stay among the workers, and the limits of BLAS that it has to give back."""

    def __init__(self) -> None:
        self.limits: dict[LibController, int] = {}  # by library
        self.pool: Pool | None = None

    def __enter__(self) -> "_User":
        try:
            _workers.enter(self)
        except BaseException:
            _workers.leave(self)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _workers.leave(self)


class _Workers:
    """The process's one pin on BLAS and the pool that goes with it.

    A limit of BLAS is the whole process's: the last user restores what the first one found, and
    all share the pool, so overlapping fits bring no thread but their own. A few libraries keep
    a limit for each thread instead, and there every user restores its own.

    A Ctrl-C may come between any two lines of the main thread. So what is to be undone is
    written down before it is done, and leaving can begin again wherever it was cut off.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._here = threading.local()  # the user of this thread: the outermost
        self._users: set[_User] = set()
        self._limits: dict[LibController, int] = {}  # limits by library
        self._libraries: list[LibController] | None = None  # finding them takes milliseconds
        self._shared: dict[
            LibController, bool
        ] = {}  # whether a library's limit is the whole process's
        self._pool: Pool | None = None

    def enter(self, user: _User) -> None:
        with self._lock:
            outermost = self._here.__dict__.setdefault("user", user)
            if not self._users:
                self._open()
            self._users.add(outermost)
            self._pin(outermost)
            user.pool = self._pool

    def leave(self, user: _User) -> None:
        with self._lock:
            if self._here.__dict__.get("user") is not user:
                return
            self._users.discard(user)
            _restore(user.limits)
            if not self._users:
                _restore(self._limits)
                if self._pool is not None:
                    self._pool.close()
                    self._pool = None
            del self._here.user

    def forget(self) -> None:
        """Restore the limits in a forked child, which has none of the other users' threads."""
        _restore(self._limits)
        if "user" in self._here.__dict__:
            _restore(self._here.user.limits)

    def _open(self) -> None:
        if self._libraries is None:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        limits = [library.num_threads for library in self._libraries]
        n_threads = max(limits, default=os.cpu_count() or 1)
        if n_threads > 1:
            self._pool = Pool(n_threads, prepare=self._pin_worker)

    def _pin(self, user: _User) -> None:
        for library in self._unpinned():
            # Found again, somebody has set or lifted a limit since: the higher one was first.
            self._limits[library] = max(library.num_threads, self._limits.get(library, 1))
            _set_limit(library, 1)
            if library not in self._shared:
                self._shared[library] = _limit_elsewhere(library) == 1
            if not self._shared[library]:
                user.limits[library] = self._limits.pop(library)

    def _pin_worker(self) -> None:
        for library in self._unpinned():
            if not self._shared.get(library):
                _set_limit(library, 1)

    def _unpinned(self) -> list["LibController"]:
        assert self._libraries is not None
        return [library for library in self._libraries if library.num_threads != 1]


def _restore(limits: dict["LibController", int]) -> None:
    for library in list(limits):
        if library.num_threads == 1:  # else somebody has set another limit since
            _set_limit(library, limits[library])
        del limits[library]


def _limit_elsewhere(library: "LibController") -> int:
    """Return the limit of a library in another thread."""
    wanted = threading.Lock()
    with wanted:
        call: Call[int] = Call(partial(getattr, library, "num_threads"), wanted)
        start_new_thread(call.make, ())
        return call.result()


def _set_limit(library: "LibController", limit: int) -> None:
    """Set a limit from any thread, and let any thread set the next one.

    From 3.8 on, threadpoolctl lets one thread set the limits of OpenBLAS and ignores the others
    as long as that one lives.
    """
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    try:
        free(force=True)
        library.set_num_threads(limit)
    finally:
        free(force=True)


_workers = _Workers()


def _after_fork() -> None:
    global _workers
    parents, _workers = _workers, _Workers()
    parents.forget()


if hasattr(os, "register_at_fork"):
    # No thread is on its way in or out while the process forks.
    os.register_at_fork(
        before=lambda: _workers._lock.acquire(),
        after_in_parent=lambda: _workers._lock.release(),
        after_in_child=_after_fork,
    )


def limited_blas() -> _User:
    """Hold BLAS at one thread and lend the pool; None where one thread is allowed.

    Write ``with limited_blas() as limit, limit:``. A Ctrl-C that comes just as a `with` ends can
    keep it from leaving; the second one leaves then. Entering is cheap inside another
    `limited_blas()`, so a fit holds it once around its loop.
    """
    return _User()
