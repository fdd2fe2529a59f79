"""Fits that end in the middle, as if their process had been killed."""

from unittest import mock

from skvmf._engine import checkpoint


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
