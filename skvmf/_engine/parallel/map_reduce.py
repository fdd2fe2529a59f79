"""Sums over blocks of rows on threads, bit-identical for any number of threads.

Kernels release the GIL and BLAS is held at one thread, so a standard thread pool over fixed
blocks uses every core. How many threads there are is what BLAS is allowed at that moment:
``threadpool_limits``, ``OMP_NUM_THREADS`` and joblib's workers steer it.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

from .blas import limited_blas
from .thread_pool import Call, Pool
from .tree_sum import BlockSum

Item = TypeVar("Item")
Part = TypeVar("Part")


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
