"""Sums over blocks of rows on threads, bit-identical for any number of threads.

Floating-point addition is not associative. So parts of single blocks are added along the aligned
binary tree of block numbers: blocks 2i and 2i + 1 first, then 4i to 4i + 3, and so on.

Kernels release the GIL and BLAS is held at one thread, so a standard thread pool over fixed
blocks uses every core. How many threads there are is what BLAS is allowed when the outermost
`limited_blas` begins (``threadpool_limits``, ``OMP_NUM_THREADS`` and joblib's workers steer it),
and at most what the process may use of the machine (``joblib.cpu_count``, which knows quotas of
containers). Where no thread can start, the caller computes.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from threadpoolctl import LibController


Part = TypeVar("Part")


class BlockSum(Generic[Part]):
    """The sums of some blocks, in pieces: each piece is a whole subtree of the tree of blocks.

    Two neighbours in the tree are added as soon as both are there, so a piece is the same however
    its blocks were grouped, and in whichever order they came: sums of threads and of workers are
    bit-identical. Of a run of n blocks in order at most 1 + log2(n) pieces are kept.
    """

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, int], Part] = {}  # by first block and number of blocks

    def add(self, first: int, part: Part, size: int = 1) -> None:
        """Take in the part of one block, or of a subtree of `size` blocks; it is used up."""
        while (first ^ size, size) in self._pieces:
            # The other half of the next subtree: it begins where one bit of the number differs.
            neighbour = first ^ size
            other = self._pieces.pop((neighbour, size))
            if neighbour < first:
                other += part  # type: ignore[operator]
                part = other
                first = neighbour
            else:
                part += other  # type: ignore[operator]
            size *= 2
        self._pieces[first, size] = part

    def join(self, other: "BlockSum[Part]") -> None:
        """Take in copies of the sums of other blocks, which stay as they are."""
        for (first, size), part in deepcopy(other._pieces).items():
            self.add(first, part, size)

    def total(self) -> Part:
        """Return the sum of all blocks; the pieces are used up."""
        # The last pieces first: in one order, whatever it is, sums have the same bits, and these
        # pieces are the smallest ones.
        pieces = sorted(self._pieces.items())
        self._pieces = {}
        _, total = pieces.pop()
        while pieces:
            _, left = pieces.pop()
            left += total  # type: ignore[operator]
            total = left
        return total


class _Threads:
    """The process's one limit on BLAS, and the pool that all fits share; the last one ends both."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users: set[object] = set()
        self.n_threads = 1
        self.pool: ThreadPoolExecutor | None = None
        self._limits: dict[LibController, int] = {}  # as they were found

    def enter(self, user: object) -> None:
        with self.lock:
            self.users.add(user)
            if len(self.users) == 1:
                # What BLAS may use is what a fit may use; without BLAS, all cores.
                limits = [library.num_threads for library in _libraries()]
                self.n_threads = min(max(limits, default=_n_cores()), _n_cores())
                if self.n_threads > 1:
                    self.pool = ThreadPoolExecutor(self.n_threads - 1, "skvmf")
            for library in _libraries():
                if library.num_threads != 1:  # maybe set or lifted since: the higher one was first
                    self._limits[library] = max(library.num_threads, self._limits.get(library, 1))
                    _set_limit(library, 1)

    def leave(self, user: object) -> None:
        with self.lock:
            self.users.discard(user)
            if not self.users:
                self.restore()
                if self.pool is not None:
                    self.pool.shutdown(wait=False)
                    self.pool = None

    def restore(self) -> None:
        for library in list(self._limits):
            if library.num_threads == 1:  # else somebody has set another limit since
                _set_limit(library, self._limits[library])
            del self._limits[library]


@cache
def _libraries() -> list["LibController"]:
    return ThreadpoolController().select(user_api="blas").lib_controllers  # takes milliseconds


@cache
def _n_cores() -> int:
    return int(joblib.cpu_count())


def _set_limit(library: "LibController", limit: int) -> None:
    """Set a limit from any thread, and let any thread set the next one.

    From 3.8 on, threadpoolctl lets one thread set the limits of OpenBLAS and ignores the others
    as long as that one lives.
    """
    release_control = getattr(library, "clear_controlling_thread", lambda force: None)
    try:
        release_control(force=True)
        library.set_num_threads(limit)
    finally:
        release_control(force=True)


_threads = _Threads()
_this_thread = threading.local()


def _after_fork() -> None:
    """Begin anew in a forked child, which has none of the other threads."""
    global _threads
    _threads.restore()
    _threads.pool = None
    _threads.lock.release()
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    # No thread is on its way in or out while the process forks.
    os.register_at_fork(
        before=lambda: _threads.lock.acquire(),
        after_in_parent=lambda: _threads.lock.release(),
        after_in_child=_after_fork,
    )


@contextmanager
def limited_blas() -> Iterator[_Threads]:
    """Hold BLAS at one thread and lend the pool.

    Entering is cheap inside another `limited_blas()`, so a fit holds it once around its loop. A
    Ctrl-C within some microseconds of entering or leaving can leave BLAS limited.
    """
    threads = _threads
    user = object()
    try:
        threads.enter(user)
        yield threads
    finally:
        try:
            threads.leave(user)
        except KeyboardInterrupt:  # a second Ctrl-C, maybe halfway
            threads.leave(user)
            raise


Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class LazyItems(Generic[Item]):
    """Items that are made from their numbers when they are asked for, by the thread that asks."""

    make: Callable[[int], Item]
    n_items: int

    def __len__(self) -> int:
        return self.n_items

    def __getitem__(self, i: int) -> Item:
        return self.make(i)


Items: TypeAlias = Sequence[Item] | LazyItems[Item]


class _SharedWork(Generic[Item, Part]):
    """The parts of a sum: each of several threads makes the next one that nobody has begun.

    `total` is the sum of those that are made. Parts are added to their neighbours alone, so those
    of a thread far ahead would pile up: none begins a part that is further from the first one in
    the making than there are threads.
    """

    def __init__(
        self, function: Callable[[Item], Part], items: Items[Item], numbers: Sequence[int]
    ) -> None:
        self.total: BlockSum[Part] = BlockSum()
        self._function = function
        self._items = items
        self._numbers = numbers
        self._todo = deque(range(len(items)))
        self._begun: set[int] = set()
        self._errors: dict[int, Exception] = {}
        self._changed = threading.Condition()

    @contextmanager
    def helped(self, threads: _Threads) -> Iterator[None]:
        """Let other threads make parts, too, until none is left to begin, or the caller leaves."""
        # Within another sum all threads have work, and what is queued for them would stay alive.
        nested = getattr(_this_thread, "works", False)
        helpers: list[Future[None]] = []
        try:
            _this_thread.works = True
            if not nested:
                self._call(helpers, threads)
            yield
        finally:
            _this_thread.works = nested
            with self._changed:
                self._todo.clear()
            for helper in helpers:
                if not helper.cancel():
                    helper.result()

    def make_parts(self, n_threads: int) -> None:
        """Make parts until none is left to begin."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._may_begin(n_threads))
                if not self._todo:
                    return
                i = self._todo.popleft()
                self._begun.add(i)
            try:
                part = self._function(self._items[i])
                if part is not None:
                    with self._changed:
                        self.total.add(self._numbers[i], part)
            except Exception as error:
                self._errors[i] = error
                with self._changed:
                    self._todo.clear()
            finally:
                with self._changed:
                    self._begun.discard(i)
                    self._changed.notify_all()

    def raise_error(self) -> None:
        """Raise what the first of the parts that failed has raised."""
        try:
            if self._errors:
                raise self._errors[min(self._errors)]
        finally:
            self._errors.clear()  # or they would keep themselves alive

    def _call(self, helpers: list[Future[None]], threads: _Threads) -> None:
        """Queue work for the other threads of the pool, noted in `helpers`."""
        pool = threads.pool
        if pool is None:
            return
        n_helpers = min(len(self._todo), threads.n_threads) - 1
        try:
            helpers.extend(pool.submit(self._help, threads) for _ in range(n_helpers))
        except RuntimeError:  # no thread can start: none may come later to what was queued
            threads.pool = None
            pool.shutdown(cancel_futures=True)

    def _help(self, threads: _Threads) -> None:
        """Make parts, as a thread of the pool."""
        _this_thread.works = True
        with threads.lock:
            if threads.users:  # else the caller has left
                for library in _libraries():
                    if library.num_threads != 1:  # where each thread has a limit of its own
                        _set_limit(library, 1)
        self.make_parts(threads.n_threads)

    def _may_begin(self, n_threads: int) -> bool:
        """Return whether a thread may look for the next part: also where none is left."""
        if not self._todo or not self._begun:
            return True
        return self._todo[0] - min(self._begun) <= n_threads


def map_reduce(
    function: Callable[[Item], Part], items: Items[Item], numbers: Sequence[int] | None = None
) -> BlockSum[Part]:
    """Sum ``function(item)`` over items, whose numbers are counted from zero unless given.

    Parts add with ``+=``; a part that has been added to another is used up, and None is no part.
    Few parts are alive, as no thread runs far ahead of the others. An exception in any part is
    raised here, when no part is being made any more; of several, that of the first item.
    """
    if numbers is None:
        numbers = range(len(items))
    if len(items) == 1:  # as a prediction of few rows has: no other thread is asked to help
        total: BlockSum[Part] = BlockSum()
        with limited_blas():
            total.add(numbers[0], function(items[0]))
        return total
    work = _SharedWork(function, items, numbers)
    with limited_blas() as threads, work.helped(threads):
        work.make_parts(threads.n_threads)
    work.raise_error()
    return work.total


def for_each(function: Callable[[Item], None], items: Items[Item]) -> None:
    """Call a function with each item, by all threads."""
    map_reduce(function, items)
