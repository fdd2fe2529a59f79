"""The treebank reader: what is kept, where heads go, and what it needs."""

import sys

import numpy as np
import pytest

from skvmf.datasets import load_conllu

pytest.importorskip("conllu", reason="needs conllu: pip install 'skvmf[treebanks]'")


def line(number, word, head, xpos="_", upos="_"):
    return "\t".join([str(number), word, "_", upos, xpos, "_", str(head), "_", "_", "_"])


TEXT = "\n".join(
    [
        "# sent_id = 1",
        line(1, "“", 4, "``", "PUNCT"),
        line(2, "Dogs", 3, "NNS", "NOUN"),
        line(3, ",", 1, ",", "PUNCT"),
        line(4, "bark", 0, "VBP", "VERB"),
        "",
        "1-2" + line("", "don't", "_"),  # a multiword token and an empty node
        line(1, "do", 2, "VB", "AUX"),
        line(2, "n't", 0, "RB", "PART"),
        "2.1" + line("", "bark", "_"),
        "",
        line(1, "!", 0, ".", "PUNCT"),
    ]
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(TEXT, encoding="utf-8")
    return path


def as_lists(heads):
    return [sentence.tolist() for sentence in heads]


def test_dropped_punctuation_hands_its_dependents_upwards(path):
    treebank = load_conllu(path)
    assert treebank.words == [["Dogs", "bark"], ["do", "n't"]]
    assert treebank.tags == [["NNS", "VBP"], ["VB", "RB"]]
    assert as_lists(treebank.heads) == [[2, 0], [2, 0]]  # Dogs <- , <- “ <- bark
    assert all(heads.dtype == np.int64 for heads in treebank.heads)


def test_kept_punctuation_keeps_its_heads(path):
    treebank = load_conllu(path, tags="upos", punctuation="keep")
    assert treebank.tags[0] == ["PUNCT", "NOUN", "PUNCT", "VERB"]
    assert as_lists(treebank.heads) == [[4, 3, 1, 0], [2, 0], [0]]


def test_a_dropped_root_leaves_the_first_of_its_dependents_as_root(tmp_path):
    rows = [line(1, "a", 2, "NN"), line(2, ":", 0, ":"), line(3, "b", 2, "NN")]
    path = tmp_path / "bank.conllu"
    path.write_text("\n".join([*rows, line(4, "c", 3, "NN")]), encoding="utf-8")
    assert as_lists(load_conllu(path).heads) == [[0, 1, 2]]


def test_length_is_counted_without_dropped_punctuation(path):
    assert len(load_conllu(path, max_length=2).tags) == 2
    assert len(load_conllu(path, max_length=1).tags) == 0
    assert len(load_conllu(path, max_length=1, punctuation="keep").tags) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "pos"}, "tags"),
        ({"punctuation": "yes"}, "punctuation"),
        ({"max_length": "10"}, "max_length should be a whole number or None, got '10'"),
    ],
)
def test_options_are_checked(path, options, message):
    with pytest.raises(ValueError, match=message):
        load_conllu(path, **options)


def test_the_package_that_is_missing_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "conllu", None)
    with pytest.raises(ImportError, match=r"pip install 'skvmf\[treebanks\]'"):
        load_conllu(path)


def test_the_english_web_treebank(data_folder):
    path = data_folder / "en_ewt-ud-test.conllu.gz"
    whole = load_conllu(path, tags="xpos", punctuation="keep")
    assert (len(whole.tags), sum(map(len, whole.tags))) == (2077, 25094)
    short = load_conllu(path, tags="xpos", max_length=10)
    assert (len(short.tags), sum(map(len, short.tags))) == (1224, 5714)
    assert len({tag for tags in short.tags for tag in tags}) == 36
    assert all(np.count_nonzero(heads == 0) == 1 for heads in short.heads)
