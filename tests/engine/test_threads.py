"""The ordered fold: same sum for any number of threads, and a polite guest in the process."""

import os
import threading
import time

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from skvmf._engine.threads import ordered_fold, workers


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
def test_parts_are_added_in_order(n_threads):
    with threadpool_limits(n_threads, user_api="blas"):
        assert ordered_fold(lambda block: [block], range(50)) == list(range(50))


def test_blas_is_pinned_inside_and_restored_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with workers():
            assert set(blas_threads()) == {1}
            with workers():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_an_exception_in_a_block_is_raised_and_the_limit_restored():
    def fail_at_seven(block):
        if block == 7:
            raise RuntimeError("block seven")
        return block

    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="block seven"):
            ordered_fold(fail_at_seven, range(20))
        assert blas_threads() == before


def test_overlapping_folds_leave_the_limit_as_it_was():
    before = blas_threads()
    meet = threading.Barrier(2, timeout=30)
    sums = {}

    def work(name):
        with workers():
            meet.wait()
            sums[name] = ordered_fold(lambda block: np.full(3, block), range(100)).sum()
            meet.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {"a": 3 * 4950, "b": 3 * 4950}
    # OpenBLAS may take the old limit only once the thread that set the new one is gone
    for _ in range(100):
        if blas_threads() == before:
            break
        time.sleep(0.05)
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_folds_too():
    ordered_fold(lambda block: block, range(10))
    child = os.fork()
    if child == 0:
        os._exit(0 if ordered_fold(lambda block: block, range(10)) == 45 else 1)
    assert os.waitpid(child, 0)[1] == 0


def threads_of_a_fold():
    with workers() as pool:
        return 1 if pool is None else pool._max_workers


def test_joblib_workers_do_not_oversubscribe():
    per_worker = Parallel(n_jobs=2)(delayed(threads_of_a_fold)() for _ in range(2))
    assert max(per_worker) <= max(1, cpu_count() // 2)


def test_the_limit_on_blas_is_the_number_of_threads():
    for n_threads in [1, 2, 3]:
        with threadpool_limits(n_threads, user_api="blas"):
            assert threads_of_a_fold() == n_threads
