"""The corpora: what a text is, and files that cannot be read say why."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest

from skvmf.datasets import load_docstrings, load_jsonl
from skvmf.datasets._corpora import _prose


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


@pytest.mark.slow
def test_dropped_docstrings_are_told():
    code = "import skvmf.datasets; skvmf.datasets.load_docstrings()"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("UserWarning: Python runs with -OO, which drops docstrings") == 1


def test_prose_keeps_the_words_and_drops_the_rest():
    docstring = """filter(b, a)

    Filter data along one dimension.

    .. versionadded:: 1.0

    Like :func:`scipy.signal.lfilter`, but here.

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
    words = _prose(docstring).split()
    expected = "Filter data along one dimension. Like ``, but here."
    expected += " b : array_like The numerator. It is stable."
    assert words == expected.split()


RECORDS = [
    {"text": "puck and ice", "label": "hockey", "id": 1},
    {"text": "caf\u00e9 \u2028 bat", "label": "baseball"},
    {"text": "goal", "label": "hockey"},
]
LINES = "\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS)


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and return its path."""

    def write(content, name="texts.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["texts.jsonl", "texts"])
@pytest.mark.parametrize("content", [LINES, LINES + "\n\n"])
def test_jsonl_whatever_the_name(write, name, content):
    corpus = load_jsonl(write(content, name))
    assert corpus.data == [record["text"] for record in RECORDS]
    assert corpus.target_names == ["baseball", "hockey"]
    np.testing.assert_array_equal(corpus.target, [1, 0, 1])
    assert name in corpus.DESCR


def test_jsonl_fields_by_name_and_whole_numbers_as_classes(write):
    path = write('{"body": "a", "topic": 10}\n{"body": "b", "topic": 9}')
    data, target = load_jsonl(str(path), text="body", label="topic", return_X_y=True)
    assert data == ["a", "b"]
    np.testing.assert_array_equal(target, [1, 0])
    assert load_jsonl(path, text="body", label="topic").target_names == [9, 10]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "texts.jsonl holds no texts"),
        (LINES + "\n{'text'", "texts.jsonl, line 4 is not valid JSON"),
        ('["text"]', "line 1 is not a JSON object"),
        ('{"body": "a", "label": "b"}', r"line 1 has no field 'text'; it has \['body', 'label'\]"),
        ('{"text": 3, "label": "b"}', "field 'text' must be a string, got 3"),
        ('{"text": "a", "label": null}', "field 'label' must be a string or an integer, got None"),
        ('{"text": "a", "label": true}', "field 'label' must be a string or an integer, got True"),
    ],
)
def test_jsonl_says_what_is_wrong_with_a_file(write, content, message):
    with pytest.raises(ValueError, match=message):
        load_jsonl(write(content))


def test_jsonl_reads_a_real_file(data_folder):
    corpus = load_jsonl(data_folder / "classic3.jsonl.gz")
    assert corpus.target_names == ["cisi", "cran", "med"]
    np.testing.assert_array_equal(np.bincount(corpus.target), [1460, 1400, 1033])
