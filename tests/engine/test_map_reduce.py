"""Sums over threads and the pin on BLAS: the same for any number of threads, in any order.

Ctrl-C is played by a profile function: it runs where the interpreter looks for a signal, at the
start of every function and after every call of a built-in, and what it raises is raised there.
"""

import ast
import gc
import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

import skvmf
from skvmf._engine import parallel as blas
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
    assert not blas._workers._users
    assert blas._workers._pool is None
    assert not vars(blas._workers._here)
    assert elsewhere(threads_of_a_fold) == max(blas_threads(), default=os.cpu_count())


def threads_of_a_fold():
    with limited_blas() as limit, limit:
        return 1 if limit.pool is None else limit.pool.n_threads


def test_blas_is_pinned_inside_and_restored_outside(before):
    with limited_blas() as limit, limit:
        assert set(blas_threads()) == {1}
        with limited_blas() as inner, inner:
            assert set(blas_threads()) == {1}
            assert inner.pool is limit.pool
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    assert_nobody_is_here()


def test_every_use_in_the_package_can_be_left_twice():
    uses = []
    for path in Path(skvmf.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            items = [ast.unparse(item) for item in getattr(node, "items", [])]
            for i, item in enumerate(items):
                if item.startswith("limited_blas()"):
                    uses.append(path.name)
                    assert items[i:] == ["limited_blas() as limit", "limit"], path
    assert len(uses) >= 5


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
        with limited_blas() as limit, limit, threadpool_limits(3, user_api="blas"):
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


def called_back(frame):
    """Tell what C calls, or closes as a generator: errors end there."""
    while frame is not None:
        if frame.f_code.co_name in ("weakref_cb", "match_library_callback", "<genexpr>"):
            return True
        frame = frame.f_back
    return False


def interrupted(action, at):
    """Do something with a Ctrl-C at one of its moments; return whether it had so many."""
    moments, came = 0, False

    def look(frame, event, arg):
        nonlocal moments, came
        if event in ("call", "c_return"):
            moments += 1
            if moments >= at and not came and not called_back(frame):
                came = True
                raise KeyboardInterrupt

    try:
        sys.setprofile(look)
        action()
    except KeyboardInterrupt:
        return True
    except RuntimeError as error:  # what a Condition of the standard library makes of some
        return isinstance(error.__context__, KeyboardInterrupt)
    finally:
        sys.setprofile(None)
    return False


class TestInterrupts:
    """Wherever Ctrl-C comes, the limit is restored, nobody is counted and nothing runs on."""

    @pytest.fixture
    def profile(self):
        """Give the profile function back to who had one, as a measurement of coverage."""
        earlier = sys.getprofile()
        yield
        sys.setprofile(earlier)

    def enter_and_leave(self):
        with limited_blas() as limit, limit:
            pass

    def test_between_entering_and_leaving(self, before, profile):
        self.enter_and_leave()  # the libraries are known from here on
        at = 0
        while interrupted(self.enter_and_leave, at := at + 1):
            assert blas_threads() == before, at
            assert_nobody_is_here()
        assert at > 20

    def test_at_the_first_use_of_the_process(self, before, profile, monkeypatch):
        for at in range(1, 10_000, 20):
            monkeypatch.setattr(blas, "_workers", blas._Workers())
            came = interrupted(self.enter_and_leave, at)
            assert blas_threads() == before, at
            assert_nobody_is_here()
            if not came:
                break
        assert at > 100

    def test_while_another_thread_stays(self, before, profile):
        with ThreadPoolExecutor(1) as other:
            limit = other.submit(lambda: limited_blas().__enter__()).result(60)
            for at in range(1, 10_000):
                if not interrupted(self.enter_and_leave, at):
                    break
                assert set(blas_threads()) == {1}, at
                assert blas._workers._users == {limit}
            other.submit(limit.__exit__).result(60)
        assert at > 20
        assert blas_threads() == before
        assert_nobody_is_here()

    def test_in_a_fold(self, before, profile):
        for at in range(1, 10_000, 3):
            work = Work()
            with limited_blas() as limit, limit:
                came = interrupted(lambda work=work: total(work, range(12)), at)
                work.closed = True
                assert not work.inside, at
            assert not work.late, at
            assert blas_threads() == before, at
            assert_nobody_is_here()
            if not came:
                break
        assert at > 100


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


def test_an_exception_in_a_block_is_raised_when_no_block_runs(before):
    work = Work()

    def fail_at_seven(block):
        if block == 7:
            raise RuntimeError("block seven")
        return work(block)

    with pytest.raises(RuntimeError, match="block seven"):
        total(fail_at_seven, range(20))
    work.closed = True
    assert not work.inside
    assert blas_threads() == before
    assert_nobody_is_here()
    assert not work.late


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


class OwnLimits:
    """A library whose limit is each thread's own, as MKL's."""

    def __init__(self):
        self.local = threading.local()

    @property
    def num_threads(self):
        return getattr(self.local, "limit", 4)

    def set_num_threads(self, limit):
        self.local.limit = limit


def test_limits_of_each_thread_are_restored_in_each_thread(monkeypatch):
    library = OwnLimits()
    library.set_num_threads(3)
    monkeypatch.setattr(blas, "_workers", blas._Workers())
    blas._workers._libraries = [library]

    def limits(block):
        return [library.num_threads]

    with ThreadPoolExecutor(1) as other:
        with limited_blas() as limit, limit:
            assert library.num_threads == 1
            assert limit.pool.n_threads == 3
            assert total(limits, range(9)) == [1] * 9
            user = other.submit(lambda: limited_blas().__enter__()).result(60)
            assert other.submit(limits, 0).result(60) == [1]
        assert library.num_threads == 3
        assert other.submit(limits, 0).result(60) == [1]
        other.submit(user.__exit__).result(60)
        assert other.submit(limits, 0).result(60) == [4]


def test_overlapping_folds_share_the_workers(before):
    meet = threading.Barrier(2, timeout=30)

    def work(name):
        with limited_blas() as limit, limit:
            meet.wait()
            found = total(lambda block: np.full(3, block), range(100)).sum()
            meet.wait()
            return found

    with ThreadPoolExecutor(2) as pair:
        assert list(pair.map(work, "ab")) == [3 * 4950, 3 * 4950]
    assert blas_threads() == before


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

    def test_after_a_fold(self, before):
        total(lambda block: block, range(10))
        assert self.exit_status(before) == 0

    def test_in_the_middle_of_a_fit(self, before):
        with limited_blas() as limit, limit:
            total(lambda block: block, range(10))
            assert self.exit_status(before) == 0
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

    def test_in_the_middle_of_another_threads_fit(self, before):
        stop = threading.Event()

        def fit():
            while not stop.is_set():
                total(lambda block: block, range(10))

        other = threading.Thread(target=fit)
        other.start()
        try:
            assert [self.exit_status(before) for _ in range(8)] == [0] * 8
        finally:
            stop.set()
            other.join()
        assert blas_threads() == before


@pytest.mark.slow
def test_joblib_workers_do_not_oversubscribe():
    per_worker = Parallel(n_jobs=2)(delayed(threads_of_a_fold)() for _ in range(2))
    assert max(per_worker) <= max(1, cpu_count() // 2)


def test_the_limit_on_blas_is_the_number_of_threads():
    for n_threads in [1, 2, 3]:
        with threadpool_limits(n_threads, user_api="blas"):
            assert threads_of_a_fold() == n_threads
