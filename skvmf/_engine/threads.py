"""Row blocks over threads: an ordered fold that gives the same bits for any number of threads.

Kernels release the GIL and BLAS is held at one thread, so a standard thread pool over fixed
blocks uses every core. How many threads there are is what BLAS is allowed at that moment:
``threadpool_limits``, ``OMP_NUM_THREADS`` and joblib's workers steer it.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Block = TypeVar("Block")
Part = TypeVar("Part")


class _Workers:
    """The process's one pin on BLAS and the pool that goes with it, counted under a lock.

    The limit of BLAS is global to the process: the first user saves it, the last one restores
    it, and those between share the pool, so overlapping fits do not oversubscribe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._blas: ThreadpoolController | None = None  # finding libraries takes milliseconds

    def enter(self) -> ThreadPoolExecutor | None:
        with self._lock:
            if self._users == 0:
                if self._blas is None:
                    self._blas = ThreadpoolController().select(user_api="blas")
                self._allowed = self._limits()
                self._limit = self._blas.limit(limits=1)
                self._owner = threading.current_thread()
                self.n_threads = max(self._allowed, default=os.cpu_count() or 1)
                self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None
            self._users += 1
            return self._pool

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()
                if self._limits() != self._allowed:
                    # OpenBLAS takes no limit from one thread while another that set it lives.
                    threading.Thread(target=self._restore_after, args=(self._owner,)).start()
                if self._pool is not None:
                    self._pool.shutdown()

    def _limits(self) -> list[int]:
        assert self._blas is not None
        return [library.num_threads for library in self._blas.lib_controllers]

    def _restore_after(self, owner: threading.Thread) -> None:
        owner.join()
        with self._lock:
            if self._users == 0:
                self._limit.restore_original_limits()


_workers = _Workers()


def _after_fork() -> None:
    """Forget the parent's users: their threads do not exist in the child."""
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor | None]:
    """Hold BLAS at one thread and lend the pool; None where one thread is allowed.

    Entering is cheap inside another `workers()`, so a fit holds it once around its loop.
    """
    mine = _workers
    pool = mine.enter()
    try:
        yield pool
    finally:
        mine.leave()


def ordered_fold(function: Callable[[Block], Part], blocks: Sequence[Block]) -> Part:
    """Add ``function(block)`` over the blocks with ``+=``, in their order.

    At most two parts more than there are threads are alive at a time. There is at least one
    block; an exception in any part is raised here. `function` does not fold itself.
    """
    with workers() as pool:
        if pool is None or len(blocks) == 1:
            total = function(blocks[0])
            for block in blocks[1:]:
                total += function(block)  # type: ignore[operator]
            return total
        return _threaded_fold(function, blocks, pool, window=_workers.n_threads + 1)


def _threaded_fold(
    function: Callable[[Block], Part],
    blocks: Sequence[Block],
    pool: ThreadPoolExecutor,
    window: int,
) -> Part:
    waiting: deque[Future[Part]] = deque()
    total: Part | None = None

    def take_first() -> None:
        nonlocal total
        part = waiting.popleft().result()
        if total is None:
            total = part
        else:
            total += part  # type: ignore[operator]

    try:
        for block in blocks:
            waiting.append(pool.submit(function, block))
            if len(waiting) == window:
                take_first()
        while waiting:
            take_first()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)
    assert total is not None
    return total
