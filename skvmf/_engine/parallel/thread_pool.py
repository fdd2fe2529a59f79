"""A thread pool whose caller may be interrupted at any moment.

A Ctrl-C comes to the main thread between two steps of Python, never within a built-in. So threads
share only queues and locks that are built-ins: those of `concurrent.futures` and
`threading.Thread`, interrupted at the wrong moment, are held for ever.
"""

from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Generic, TypeVar

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
