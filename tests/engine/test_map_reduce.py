"""Sums over threads and the pin on BLAS: the same for any number of threads, in any order."""

import gc
import itertools
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from skvmf import VonMisesFisherMixture
from skvmf._engine.rows import parallel
from skvmf._engine.rows.parallel import BlockSum, limited_blas, map_reduce

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
    result = blas_threads()
    elsewhere(lambda: threadpool_limits(4, user_api="blas"))
    yield blas_threads()
    elsewhere(lambda: threadpool_limits(max(result, default=1), user_api="blas"))


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
            contexts = {"A": limited_blas(), "B": limited_blas(), "L": pending_limit(3)}
            self.play(("L", *order), here, contexts, expected, folding)

    def test_a_limit_set_and_lifted_meanwhile_changes_nothing(self, before):
        with limited_blas(), threadpool_limits(3, user_api="blas"):
            assert total(lambda block: blas_threads(), range(1)) == [1 for _ in before]
        assert blas_threads() == before


@contextmanager
def pending_limit(limit):
    """`threadpool_limits` as a user writes it, set on entering."""
    with threadpool_limits(limit, user_api="blas"):
        yield


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
    return sorted(set(itertools.permutations(letters)))


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


@THREADS
def test_sums_within_sums_keep_nothing_alive(n_threads):
    """Nothing is queued for threads that have other work."""
    seen, most = [], []

    def work(_):
        kept = threading.Event()
        seen.append(weakref.ref(kept))
        total(lambda block: kept is not None, range(3))
        most.append(sum(own() is not None for own in list(seen)))
        return 1

    with threadpool_limits(n_threads, user_api="blas"):
        total(work, range(40))
    assert max(most) <= n_threads


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
def test_a_child_that_is_forked_in_a_fit_folds_with_the_limit_before_it(before):
    with limited_blas():
        total(lambda block: block, range(10))
        child = os.fork()
        if child == 0:
            right = total(lambda block: block, range(10)) == 45
            os._exit(0 if right and blas_threads() == before else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


# Sums of blocks: the same bits however the blocks are grouped, and whoever adds them when.


def parts_of(n_blocks):
    """Parts whose sum depends on the order in which they are added."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n_blocks, 3)) * 10.0 ** rng.integers(-8, 8, size=(n_blocks, 1))


def run(parts, first, stop):
    return map_reduce(lambda i: parts[i].copy(), range(first, stop), range(first, stop))


def bits(total):
    return total.tobytes()


@pytest.mark.bits
@given(st.integers(1, 70), st.data())
def test_bits_depend_on_the_blocks_alone(n_blocks, data):
    """Cut into runs anywhere, put together in any order and tree."""
    parts = parts_of(n_blocks)
    cuts = data.draw(st.sets(st.integers(0, n_blocks)), label="cuts") | {0, n_blocks}
    edges = sorted(cuts)
    sums = [run(parts, a, b) for a, b in itertools.pairwise(edges)]
    while len(sums) > 1:
        i, j = data.draw(
            st.lists(st.integers(0, len(sums) - 1), min_size=2, max_size=2, unique=True)
        )
        sums[i].join(sums[j])
        del sums[j]
    assert bits(sums[0].total()) == bits(run(parts, 0, n_blocks).total())


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
def test_threads_do_not_matter_and_sums_are_right_to_rounding(n_threads):
    parts = np.random.default_rng(0).random((777, 2))
    with threadpool_limits(n_threads, user_api="blas"):
        result = run(parts, 0, 777).total()
    total = BlockSum()
    for i in np.random.default_rng(1).permutation(777):
        total.add(int(i), parts[i].copy())
    assert bits(result) == bits(total.total())
    np.testing.assert_allclose(result, parts.sum(axis=0), rtol=1e-13)
