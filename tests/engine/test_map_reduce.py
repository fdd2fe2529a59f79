"""Sums over threads and the pin on BLAS: the same for any number of threads, in any order."""

import gc
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from skvmf import VonMisesFisherMixture
from skvmf._engine import parallel
from skvmf._engine.parallel import limited_blas, map_reduce

BLAS = ThreadpoolController().select(user_api="blas").lib_controllers


def total(function, blocks):
    return map_reduce(function, blocks).total()


def blas_threads():
    return [library.num_threads for library in BLAS]


def elsewhere(function):
    """Return what a function answers in another thread, which is gone by then."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(function).result(timeout=60)


@pytest.fixture
def before():
    """What BLAS is allowed: four threads, by the word of a thread that is gone."""
    found = blas_threads()
    elsewhere(lambda: threadpool_limits(4, user_api="blas"))
    yield blas_threads()
    elsewhere(lambda: threadpool_limits(max(found, default=1), user_api="blas"))


def assert_nobody_is_here():
    assert not parallel._threads.users
    assert parallel._threads.pool is None
    assert elsewhere(threads_of_a_fold) == max(blas_threads(), default=os.cpu_count())


def threads_of_a_fold():
    with limited_blas() as threads:
        return threads.n_threads


def test_blas_is_pinned_inside_and_restored_outside(before):
    with limited_blas() as threads:
        assert set(blas_threads()) == {1}
        pool = threads.pool
        with limited_blas() as inner:
            assert set(blas_threads()) == {1}
            assert inner.pool is pool
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    assert_nobody_is_here()


class TestOrders:
    """Threads that live on enter and leave in every order."""

    @pytest.fixture
    def people(self):
        """The main thread (None) and threads that live through the test."""
        with ExitStack() as stack:
            pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]
            yield [None, *pools]

    def play(self, order, people, contexts, expected, folding=True):
        """Enter at a name's first place in the order and leave at its second; maybe fold then."""
        inside = []
        for name in order:
            if name in inside:
                inside.remove(name)
                done(people[name], contexts[name].__exit__, None, None, None)
            else:
                inside.append(name)
                done(people[name], contexts[name].__enter__)
                assert name == "L" or set(blas_threads()) == {1}, order
            if not set(inside) & {"A", "B", "C"}:
                assert blas_threads() == expected(inside), order
            elif folding:
                done(people[name], total, lambda block: block, range(3))
        assert_nobody_is_here()

    @pytest.mark.parametrize("names", ["AB", "ABC"])
    @pytest.mark.parametrize("main", [True, False])
    def test_all_leave_the_limit_as_it_was(self, before, people, names, main):
        here = dict(zip("ABC", people if main else people[1:], strict=False))
        for order in interleavings(names * 2):
            contexts = {name: limited_blas() for name in names}
            self.play(order, here, contexts, lambda inside: before)

    @pytest.mark.parametrize("folding", [True, False])
    @pytest.mark.parametrize("main", ["A", "L", ""])
    def test_a_limit_of_the_user_holds_until_lifted(self, before, people, main, folding):
        def expected(inside):
            return [3 for _ in before] if "L" in inside else before

        here = dict(zip("ABL", people[1:], strict=True)) | ({main: None} if main else {})
        for order in interleavings("AABBL"):
            contexts = {"A": limited_blas(), "B": limited_blas(), "L": PendingLimit(3)}
            self.play(("L", *order), here, contexts, expected, folding)

    def test_a_limit_set_and_lifted_meanwhile_changes_nothing(self, before):
        with limited_blas(), threadpool_limits(3, user_api="blas"):
            assert total(lambda block: blas_threads(), range(1)) == [1 for _ in before]
        assert blas_threads() == before


class PendingLimit:
    """`threadpool_limits` as a user writes it, set on entering."""

    def __init__(self, limit):
        self.limit = limit

    def __enter__(self):
        self.context = threadpool_limits(self.limit, user_api="blas")
        self.context.__enter__()

    def __exit__(self, *exc):
        self.context.__exit__(*exc)


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


def done(person, function, *args):
    """Let a thread do something; None is this one."""
    return function(*args) if person is None else person.submit(function, *args).result(60)


def interleavings(letters):
    """Every order of the letters, once."""
    if not letters:
        yield ()
    for first in sorted(set(letters)):
        for rest in interleavings(letters.replace(first, "", 1)):
            yield (first, *rest)


class Work:
    """A function of blocks that knows which are in work and which began too late."""

    def __init__(self):
        self.inside, self.late, self.closed = set(), [], False

    def __call__(self, block):
        if self.closed:
            self.late.append(block)
        try:
            self.inside.add(block)
            time.sleep(1e-5)  # let the others in
        finally:
            self.inside.discard(block)
        return block


@pytest.mark.parametrize("error", [RuntimeError("block seven"), KeyboardInterrupt("block seven")])
def test_an_exception_in_a_block_is_raised_when_no_block_runs(before, error):
    work = Work()

    def fail_at_seven(block):
        if threading.current_thread() is threading.main_thread() and block >= 7:
            raise error
        return work(block)

    with pytest.raises(type(error), match="block seven"):
        total(fail_at_seven, range(1000))
    work.closed = True
    assert not work.inside
    assert blas_threads() == before
    assert_nobody_is_here()
    assert not work.late


def no_thread(*_):
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("refused", ["threading.Thread.start", "ThreadPoolExecutor.submit"])
def test_where_no_thread_can_start_the_caller_computes(monkeypatch, refused):
    """As in an `atexit` handler, or where a user may have so many processes only."""
    rng = np.random.default_rng(0)
    X, seen = rng.normal(size=(20_000, 3)), set()
    mixture = VonMisesFisherMixture(2, random_state=0)

    def results():
        with threadpool_limits(4, user_api="blas"):
            total(lambda block: seen.add(threading.get_ident()) or block, range(40))
            fitted = clone(mixture).fit(X)
            return fitted.means_, fitted.lower_bound_, fitted.predict_proba(X)

    expected = results()
    seen.clear()
    target = threading.Thread if refused.startswith("threading") else parallel.ThreadPoolExecutor
    monkeypatch.setattr(target, refused.rpartition(".")[2], no_thread)
    for one, other in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert seen == {threading.get_ident()}
    assert not parallel._threads.users


THREADS = pytest.mark.parametrize("n_threads", [1, 2, 4])


@THREADS
def test_of_several_errors_that_of_the_first_block_is_raised_as_it_was(n_threads):
    def fail(block):
        time.sleep(0.02 if block == 3 else 0)
        if block >= 3:
            raise RuntimeError(f"block {block}")
        return block

    with threadpool_limits(n_threads, user_api="blas"):
        for _ in range(5):
            with pytest.raises(RuntimeError, match="block 3") as caught:
                total(fail, range(20))
            assert caught.value.__context__ is None


@THREADS
def test_errors_of_several_blocks_keep_no_block_alive(n_threads):
    def fail(block):
        raise ValueError("a bad row")

    blocks = [threading.Event() for _ in range(6)]
    alive = [weakref.ref(block) for block in blocks]
    gc.disable()
    try:
        with threadpool_limits(n_threads, user_api="blas"), suppress(ValueError):
            total(fail, blocks)
        del blocks
        wait_until(lambda: not any(block() for block in alive))  # threads come to the end of theirs
    finally:
        gc.enable()


class Part:
    """A part that counts how many of its kind are alive."""

    alive = most = 0
    lock = threading.Lock()

    def __init__(self):
        with Part.lock:
            Part.alive += 1
            Part.most = max(Part.most, Part.alive)

    def __del__(self):
        with Part.lock:
            Part.alive -= 1

    def __iadd__(self, other):
        time.sleep(1e-3)  # adding is slower than making a part
        return self


@pytest.mark.parametrize("n_threads", [2, 4])
@pytest.mark.parametrize("slow", [None, 0, 1, 20])
def test_few_parts_are_alive_even_while_one_is_waited_for(n_threads, slow):
    Part.alive = Part.most = 0

    def work(block):
        if block == slow:
            time.sleep(0.2)
        return Part()

    with threadpool_limits(n_threads, user_api="blas"):
        total(work, range(60))
    kept = (1 if slow is None else 2) * int(np.log2(60))  # before the one and behind
    assert 2 <= Part.most <= n_threads + 2 + kept


def test_the_calling_thread_works_too_and_lists_are_joined_in_order():
    def work(block):
        time.sleep(1e-3)
        return [(block, threading.get_ident())]

    with threadpool_limits(2, user_api="blas"):
        blocks, threads = zip(*total(work, range(40)), strict=True)
    assert blocks == tuple(range(40))
    assert threading.get_ident() in threads
    assert len(set(threads)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
class TestForks:
    """A child folds too, with the limit that the parent had before its fits."""

    def exit_status(self, before):
        child = os.fork()
        if child == 0:
            right = total(lambda block: block, range(10)) == 45
            os._exit(0 if right and blas_threads() == before else 1)
        return os.waitpid(child, 0)[1]

    def test_in_the_middle_of_a_fit(self, before):
        with limited_blas():
            total(lambda block: block, range(10))
            assert self.exit_status(before) == 0
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


@pytest.mark.slow
def test_joblib_workers_do_not_oversubscribe():
    per_worker = Parallel(n_jobs=2)(delayed(threads_of_a_fold)() for _ in range(2))
    assert max(per_worker) <= max(1, cpu_count() // 2)


def test_what_was_queued_though_no_thread_could_start_is_waited_for(monkeypatch):
    """A pool queues a call before it starts a thread for it; another thread may make it."""
    submit = ThreadPoolExecutor.submit

    def queue_and_refuse(pool, function):
        submit(pool, function)
        no_thread()

    def work(block):
        here = threading.current_thread() is threading.main_thread()
        time.sleep(0.01 if here else 0.2)
        return np.ones(1)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", queue_and_refuse)
    with threadpool_limits(2, user_api="blas"):
        assert total(work, range(4)) == 4
