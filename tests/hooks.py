"""Where tests reach into the package, in one place: others need no private names for this.

Each function but the first two changes the package, or watches it, as long as a ``with`` lasts.
"""

import os
from contextlib import contextmanager
from functools import partial
from unittest import mock

from skvmf._engine.em import checkpoint
from skvmf._engine.rows import blocks, parallel
from skvmf._engine.rows import sources as rows
from skvmf._engine.search import merging_start as starts
from skvmf.grammar import _model as grammar
from skvmf.mixture import _parameters
from skvmf.model_selection import _component_path


def fits_at_work():
    """Return how many fits and predictions hold the limit on the threads of BLAS."""
    return len(parallel._threads.users)


def lock_is_free():
    return repr(parallel._threads.lock).startswith("<unlocked")


def cores(number):
    return mock.patch.object(parallel, "_n_cores", return_value=number)


@contextmanager
def few_rows_in_blocks(size=8):
    """Let there be several blocks of rows, in memory and in Dask arrays."""
    from skvmf._engine.rows import dask

    few = partial(mock.patch.object, attribute="block_rows", autospec=True, return_value=size)
    with few(rows), few(dask), few(blocks):
        yield


def patience_of_a_path(seconds):
    """Let a path that prints nothing say sooner, or later, that it is at work."""
    return mock.patch.object(_component_path, "_PATIENCE", seconds)


def few_sentences_in_blocks():
    return mock.patch.object(grammar, "_BLOCK_COST", 50)


@contextmanager
def reads(n_rows):
    """Yield a list that gets the length of each part that is read of data with so many rows."""
    lengths = []

    def counting(read):
        def counted(self, span):
            if self.n_rows == n_rows:
                lengths.append(span.stop - span.start)
            return read(self, span)

        return counted

    kinds = rows.DenseRows, rows.SparseRows
    dense, csr = (mock.patch.object(kind, "_read", counting(kind._read)) for kind in kinds)
    with dense, csr:
        yield lengths


@contextmanager
def before_folds(call):
    """Before workers fold a Dask array, call with the name of what they fold it with."""
    from skvmf._engine.rows.dask import DaskRows

    tasks = DaskRows._tasks

    def named(self, run, function, *others, **options):
        whole = getattr(function, "func", function)
        call(getattr(whole, "__name__", type(whole).__name__))
        return tasks(self, run, function, *others, **options)

    with mock.patch.object(DaskRows, "_tasks", named):
        yield


@contextmanager
def merging_starts():
    """Yield a list that gets the rows and the result of each start by merging."""
    begun, run = [], starts.MergingStart.run

    def noted(self, *arguments, **options):
        result = run(self, *arguments, **options)
        begun.append((self.sample.rows, result))
        return result

    with mock.patch.object(starts.MergingStart, "run", noted):
        yield begun


def merging_start_is(result):
    """Let every start by merging have a result that `merging_starts` has listed."""
    return mock.patch.object(starts.MergingStart, "run", return_value=result)


# Fits with a checkpoint, and such that end in the middle, as if their process had been killed.


@contextmanager
def writing_at_once():
    """Write checkpoints at every iteration, however long that takes, and wait for no disk."""
    limits = mock.patch.multiple(checkpoint, _TIMES_WRITING=0, _FIRST_WRITE=0)
    with limits, mock.patch.object(os, "fsync"):
        yield


class Killed(BaseException):
    """What ends a fit in the middle."""


def killed_after(n_writes, fit):
    """Call `fit`; stop it once so many checkpoints were written, and return whether it was."""
    left, write = n_writes, checkpoint.save

    def save(path, tree):
        nonlocal left
        write(path, tree)
        left -= 1
        if left == 0:
            raise Killed

    with mock.patch.object(checkpoint, "save", save):
        try:
            fit()
        except Killed:
            return True
    return False


def version_is(version):
    """Let checkpoints be of another version of skvmf."""
    return mock.patch.object(_parameters, "__version__", version)
