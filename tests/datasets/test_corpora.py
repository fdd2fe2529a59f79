"""The corpora: what a text is, and files that cannot be read say why."""

import importlib
import inspect
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics

from skvmf.datasets import load_docstrings


@pytest.fixture(scope="module")
def corpus():
    return load_docstrings()


def test_docstrings_are_labelled_texts_on_thirteen_topics(corpus):
    assert len(corpus.target_names) == 13
    assert all(importlib.import_module(name) for name in corpus.target_names)
    assert corpus.target.shape == (len(corpus.data),)
    assert 1500 <= len(corpus.data) == len(set(corpus.data)) <= 2000
    assert np.bincount(corpus.target).min() >= 25
    assert all(isinstance(text, str) for text in corpus.data)
    assert not any(name in text for text in corpus.data for name in corpus.target_names)
    assert str(len(corpus.data)) in corpus.DESCR


def test_docstrings_come_in_a_fixed_order_also_as_a_pair(corpus):
    data, target = load_docstrings(return_X_y=True)
    assert data == corpus.data
    np.testing.assert_array_equal(target, corpus.target)
    assert np.all(np.diff(target) >= 0)


def test_dropped_docstrings_are_told(corpus, monkeypatch):
    """As by ``python -OO``, which leaves those of compiled functions alone."""
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"}
    monkeypatch.setattr(sys, "flags", SimpleNamespace(**flags | {"optimize": 2}))
    for name in corpus.target_names:
        for item in vars(importlib.import_module(name)).values():
            if inspect.isfunction(item):
                monkeypatch.setattr(item, "__doc__", None)
    with pytest.warns(UserWarning, match="Python runs with -OO, which drops docstrings"):
        left = load_docstrings().data
    assert 0 < len(left) < len(corpus.data)


def test_prose_keeps_the_words_and_drops_the_rest(monkeypatch):
    docstring = """filter(b, a)

    Filter data along one dimension, as long as there are any.

    .. versionadded:: 1.0

    Like :func:`scipy.signal.lfilter`, but here {'b', 'a'}.

    Parameters
    ----------
    b : array_like
        The numerator.

    See Also
    --------
    other : A link.

    Notes
    -----
    It is stable.

    Examples
    --------
    >>> filter(1, 2)
    """
    monkeypatch.setattr(metrics.accuracy_score, "__doc__", docstring)
    expected = (
        "Filter data along one dimension, as long as there are any. Like ``, but here {'a', 'b'}."
    )
    expected += " b : array_like The numerator. It is stable."
    assert expected.split() in [text.split() for text in load_docstrings().data]
