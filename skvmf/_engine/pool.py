"""Threads that make calls for another, which may be interrupted at any moment.

A Ctrl-C comes to the main thread between two steps of Python, never within a call of a built-in.
The main thread shares nothing with the others here but queues and locks that are built-ins.
Those of `concurrent.futures` and `threading.Thread` are written in Python: interrupted at the
wrong moment, they are held for ever.
"""

from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
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
            pass


class Pool:
    """A number of threads, which start with the first call."""

    def __init__(self, n_threads: int, prepare: Callable[[], None]) -> None:
        self.n_threads = n_threads
        self._prepare = prepare
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._started = False

    def submit(self, call: Call[Any]) -> None:
        self._calls.put(call)
        if not self._started:
            for _ in range(self.n_threads):
                start_new_thread(self._work, ())
            self._started = True  # after the fact: rather too many threads than none

    def close(self) -> None:
        """Let the threads end when they have made all calls."""
        self._calls.put(None)

    def _work(self) -> None:
        self._prepare()
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        call = self._calls.get()
        if call is None:
            self._calls.put(None)  # for the next thread
            return False
        call.make()
        return True
