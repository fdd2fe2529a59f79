"""Sums over blocks of rows on threads, bit-identical for any number of threads.

Floating-point addition is not associative. So parts of single blocks are added along the aligned
binary tree of block numbers: blocks 2i and 2i + 1 first, then 4i to 4i + 3, and so on.

A Ctrl-C comes to the main thread between two steps of Python, never within a built-in. So threads
share only queues and locks that are built-ins: those of `concurrent.futures` and
`threading.Thread`, interrupted at the wrong moment, are held for ever.

How many threads there are is what BLAS is allowed at that moment: ``threadpool_limits``,
``OMP_NUM_THREADS`` and joblib's workers steer it.

Kernels release the GIL and BLAS is held at one thread, so a standard thread pool over fixed
blocks uses every core. How many threads there are is what BLAS is allowed at that moment:
``threadpool_limits``, ``OMP_NUM_THREADS`` and joblib's workers steer it.
"""

import os
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from threadpoolctl import LibController


# Sums over blocks that are bit-identical for any order and any number of workers.


Part = TypeVar("Part")


class BlockSum(Generic[Part]):
    """The sums of some blocks, in pieces: each piece is a whole subtree of the tree of blocks.

    Two neighbours in the tree are added as soon as both are there. A piece is the same subtree
    however its blocks were grouped, and in whichever order they came: so sums of threads and of
    workers, of runs of blocks and of scattered ones, are bit-identical. Of a run of n blocks
    that came in order at most 1 + log2(n) pieces are kept.
    """

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, int], Part] = {}  # by first block and number of blocks

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self._pieces)

    def add(self, first: int, part: Part, size: int = 1) -> None:
        """Take in the part of one block, or of a subtree of `size` blocks; it is used up."""
        while (neighbour := (first ^ size, size)) in self._pieces:
            left, right = self._pieces.pop(neighbour), part
            if first < neighbour[0]:
                left, right = right, left
            left += right  # type: ignore[operator]
            first, part, size = min(first, neighbour[0]), left, 2 * size
        self._pieces[first, size] = part

    def absorb(self, other: "BlockSum[Part]") -> None:
        """Take in the sums of other blocks, which are used up."""
        for (first, size), part in other._pieces.items():
            self.add(first, part, size)

    def join(self, other: "BlockSum[Part]") -> None:
        """Take in copies of the sums of other blocks, which stay as they are."""
        self.absorb(deepcopy(other))

    def total(self) -> Part:
        """Return the sum of all blocks, the last pieces first; the pieces are used up."""
        pieces = sorted(self._pieces.items())
        self._pieces = {}
        _, total = pieces.pop()
        while pieces:
            _, left = pieces.pop()
            left += total  # type: ignore[operator]
            total = left
        return total


# A thread pool whose caller may be interrupted at any moment.


Result = TypeVar("Result")


class Call(Generic[Result]):
    """A call that another thread is to make, unless `wanted` has been released by then."""

    def __init__(self, function: Callable[[], Result], wanted: Lock) -> None:
        self._function = function
        self._wanted = wanted
        self._made = Lock()
        self._done = Lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def make(self) -> None:
        with self._made:
            if self._wanted.locked():
                try:
                    self._result = self._function()
                except BaseException as error:
                    self._error = error
        self._done.release()

    def make_here(self) -> None:
        """Make the call in the thread that waits for it, where a Ctrl-C is raised at once."""
        try:
            self._result = self._function()
        except Exception as error:
            self._error = error
        self._done.release()

    @property
    def has_result(self) -> bool:
        """Whether the call was made, and raised nothing."""
        return not self._done.locked() and self._error is None

    def result(self) -> Result:
        """Wait for the result, or raise what the call raised. To be asked for once."""
        with self._done:
            if self._error is None:
                return self._result
            try:
                raise self._error
            finally:
                self._error = None  # or it would keep itself alive

    def give_up(self) -> None:
        """Wait until the call has come to its end if it has begun; it is wanted no more."""
        with self._made:
            self._error = None  # as above


class Pool:
    """A number of threads, the caller's among them; the others start with the first call.

    Calls wait in a queue of the caller's, who makes some itself rather than wait: a thread more
    than there are cores would take turns with the others, and each turn is milliseconds long.
    """

    def __init__(self, n_threads: int, prepare: Callable[[], None]) -> None:
        self.n_threads = n_threads
        self._prepare = prepare
        self._queues: SimpleQueue[SimpleQueue[Call[Any]] | None] = SimpleQueue()
        self._started = Lock()  # held from the first call on

    def submit(self, call: Call[Any], queue: SimpleQueue[Call[Any]]) -> None:
        """Let a thread make the next call of a queue, to whose end this one goes."""
        queue.put(call)
        self._queues.put(queue)
        if self._started.acquire(blocking=False):
            # Cut off from here on, there are too few threads, and callers make more calls.
            for _ in range(self.n_threads - 1):
                start_new_thread(self._work, ())

    def close(self) -> None:
        """Let the threads end when they have made all calls."""
        self._queues.put(None)

    def _work(self) -> None:
        self._prepare()
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        queue = self._queues.get()
        if queue is None:
            self._queues.put(None)  # for the next thread
            return False
        with suppress(Empty):  # the caller has taken a call out
            queue.get_nowait().make()
        return True


# BLAS held at one thread while blocks of rows are computed on several.


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


# Sums over blocks of rows on threads, bit-identical for any number of threads.


Item = TypeVar("Item")


def map_reduce(
    function: Callable[[Item], Part], blocks: Sequence[Item], numbers: Iterable[int] | None = None
) -> BlockSum[Part]:
    """Sum ``function(block)`` over blocks, whose numbers are counted from zero unless given.

    Parts add with ``+=``; a part that has been added to another is used up. At most two parts
    more than there are threads are alive at a time, besides those that the sum keeps. An exception
    in any part is raised here, when no part is being made any more. `function` does not call
    `map_reduce` itself.
    """
    total: BlockSum[Part] = BlockSum()
    numbers = range(len(blocks)) if numbers is None else numbers
    with limited_blas() as limit, limit:
        if limit.pool is None or len(blocks) == 1:
            for number, block in zip(numbers, blocks, strict=True):
                total.add(number, function(block))
        else:
            _add_by_threads(total, function, blocks, numbers, limit.pool)
    return total


def _made_one(todo: SimpleQueue[Call[Part]]) -> bool:
    """Make a call that no thread has begun, in this one; False if there is none."""
    try:
        call = todo.get_nowait()
    except Empty:
        return False
    call.make_here()
    return True


def _add_by_threads(
    total: BlockSum[Part],
    function: Callable[[Item], Part],
    blocks: Sequence[Item],
    numbers: Iterable[int],
    pool: Pool,
) -> None:
    wanted = threading.Lock()  # held as long as the sum is waited for
    todo: SimpleQueue[Call[Part]] = SimpleQueue()
    waiting: dict[Call[Part], int] = {}  # numbers of the calls that are not added yet, in order

    def add(call: Call[Part]) -> None:
        total.add(waiting[call], call.result())
        del waiting[call]

    def add_some() -> None:
        first = next(iter(waiting))  # of several errors the first is raised
        if not _made_one(todo):  # all have begun
            add(first)
        for call in [call for call in waiting if call.has_result]:
            add(call)

    try:
        with wanted:
            for number, block in zip(numbers, blocks, strict=True):
                call = Call(partial(function, block), wanted)
                waiting[call] = number
                pool.submit(call, todo)
                while len(waiting) > pool.n_threads:
                    add_some()
            while waiting:
                add_some()
    finally:
        for call in waiting:
            call.give_up()
