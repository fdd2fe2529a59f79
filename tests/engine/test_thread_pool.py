"""Calls made in other threads: results, errors, calls that are given up, threads that end."""

import threading
import time
import weakref
from _thread import start_new_thread
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

import pytest

from skvmf._engine.parallel import Call, Pool


@pytest.fixture
def pool():
    """Two threads, beside this one."""
    pool = Pool(3, prepare=lambda: None)
    yield pool
    pool.close()


@pytest.fixture
def todo():
    return SimpleQueue()


@pytest.fixture
def wanted():
    lock = threading.Lock()
    with lock:
        yield lock


def submitted(pool, calls, todo):
    """Return the results of calls."""
    for call in calls:
        pool.submit(call, todo)
    return [call.result() for call in calls]


def test_every_call_is_made_once_and_in_another_thread(pool, wanted, todo):
    calls = [Call(partial(lambda i: (i, threading.get_ident()), i), wanted) for i in range(20)]
    results = submitted(pool, calls, todo)
    assert [i for i, _ in results] == list(range(20))
    assert 1 <= len({thread for _, thread in results}) <= 2
    assert threading.get_ident() not in {thread for _, thread in results}


def test_threads_are_prepared_before_their_first_call(wanted, todo):
    here = threading.local()
    pool = Pool(3, prepare=partial(setattr, here, "ready", True))
    assert all(submitted(pool, [Call(lambda: here.ready, wanted) for _ in range(9)], todo))
    pool.close()


def test_a_call_that_the_caller_has_taken_out_is_made_by_nobody_else(pool, wanted, todo):
    meet = threading.Barrier(3, timeout=30)
    busy = [Call(meet.wait, wanted) for _ in range(2)]  # all threads, until they are met
    calls = [Call(lambda: True, wanted) for _ in range(5)]
    for call in busy:
        pool.submit(call, todo)
    while todo.qsize():
        time.sleep(1e-3)
    for call in calls:
        pool.submit(call, todo)
    taken = [todo.get_nowait() for _ in range(3)]
    meet.wait()
    assert all(call.result() for call in calls if call not in taken)
    assert not any(call.has_result for call in taken)


def test_an_error_is_raised_where_the_result_is_asked_for(pool, wanted, todo):
    failing, fine = Call(lambda: 1 // 0, wanted), Call(lambda: 1, wanted)
    pool.submit(failing, todo)
    pool.submit(fine, todo)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert fine.result() == 1


def test_giving_up_waits_for_the_call_that_has_begun_and_for_no_other(todo):
    begun, ended, made = threading.Event(), [], []
    wanted = threading.Lock()

    def slow():
        begun.set()
        time.sleep(0.02)
        ended.append(True)

    pool = Pool(2, prepare=lambda: None)
    calls = [Call(slow, wanted), Call(partial(made.append, 1), wanted), Call(slow, wanted)]
    with wanted:
        pool.submit(calls[0], todo)
        pool.submit(calls[1], todo)
        assert begun.wait(30)
    for call in calls:  # the last one is in no queue
        call.give_up()
    assert ended == [True]
    calls[1]._done.acquire()  # its turn has come and gone
    assert not made
    pool.close()


def test_closing_lets_every_thread_end(wanted, todo):
    pool = Pool(4, prepare=lambda: None)
    submitted(pool, [Call(lambda: None, wanted) for _ in range(9)], todo)
    alive = weakref.ref(pool)
    pool.close()
    del pool
    deadline = time.monotonic() + 60
    while alive() is not None and time.monotonic() < deadline:
        time.sleep(1e-3)
    assert alive() is None  # a thread holds what it works for


def test_callers_that_begin_at_once_start_no_thread_too_many(monkeypatch):
    started, meet = [], threading.Barrier(4, timeout=30)

    def start(function, arguments):
        started.append(start_new_thread(function, arguments))
        time.sleep(0.01)  # let the other callers in

    def submit():
        meet.wait()
        pool.submit(Call(lambda: None, threading.Lock()), SimpleQueue())

    monkeypatch.setattr("skvmf._engine.parallel.start_new_thread", start)
    pool = Pool(3, prepare=lambda: None)
    with ThreadPoolExecutor(4) as callers:
        for caller in [callers.submit(submit) for _ in range(4)]:
            caller.result()
    pool.close()
    assert len(started) == 2
