"""Fitted attributes that are set all at once, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was where the body fails or is interrupted.

    Attributes are kept by name: a body assigns new arrays, it does not write into old ones.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        object.__setattr__(estimator, "__dict__", before)
        raise
