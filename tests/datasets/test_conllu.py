"""The treebank reader: what is kept, where heads go, and damaged files, which it reads or refuses.

A longer run: FUZZ_FACTOR=30 pytest tests/datasets/test_conllu.py
"""

import gzip
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skvmf.datasets import load_conllu

from ..conftest import fuzzing

pytest.importorskip("conllu", reason="needs conllu: pip install 'skvmf[treebanks]'")


def line(number, word, head, xpos="_", upos="_"):
    return "\t".join([str(number), word, "_", upos, xpos, "_", str(head), "_", "_", "_"])


def sentence(*heads):
    return [line(i, "wörd", head, "NN", "NOUN") for i, head in enumerate(heads, start=1)]


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


# Files that are cut off, changed or of another kind: an answer, or a ValueError that says where.

CONLLU = "\n".join(
    ["# text", *sentence(2, 0, 2), "", "1-2" + "\t_" * 9, *sentence(2, 0), ""]
).encode()


@st.composite
def damaged(draw, content):
    """A file of which a few bytes have changed, or which is cut off, or both."""
    places = st.integers(0, len(content) - 1)
    changes = draw(st.dictionaries(places, st.integers(0, 255), max_size=3))
    end = draw(places if not changes else st.none() | places)
    content = bytearray(content)
    for place, byte in changes.items():
        content[place] = byte
    return bytes(content[:end])


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_are_read_or_refused(packed, tmp_path):
    content = gzip.compress(CONLLU, mtime=0) if packed else CONLLU
    path, refused = tmp_path / "file", []
    path.write_bytes(content)
    load_conllu(path)

    @fuzzing(150)
    @given(damaged(content))
    def run(changed):
        path.write_bytes(changed)
        message = ""
        try:
            load_conllu(path)
        except ValueError as error:
            message = str(error)
        assert not message or message.startswith(str(path))
        refused.append(bool(message))

    run()
    assert np.mean(refused) > 0.3


def test_gzip_cut_off_anywhere_is_said_to_be(tmp_path):
    path = tmp_path / "file.gz"
    for size in (*range(3, 40), -9, -8, -1):
        path.write_bytes(gzip.compress(CONLLU)[:size])
        with pytest.raises(ValueError, match=r"file.gz.*: the compressed file is damaged or cut"):
            load_conllu(path)


def test_the_contents_say_whether_a_file_is_compressed(tmp_path):
    answers = []
    for name, data in (("a.gz", CONLLU), ("b", gzip.compress(CONLLU)), ("c", CONLLU)):
        (tmp_path / name).write_bytes(data)
        answers += [load_conllu(tmp_path / name), load_conllu(str(tmp_path / name))]
    for answer in answers:
        np.testing.assert_equal(answer, answers[0])


def test_what_is_no_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_conllu(tmp_path / "nowhere")
    with pytest.raises((IsADirectoryError, PermissionError)):  # PermissionError on Windows
        load_conllu(tmp_path)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_text_that_is_not_utf8_is_named_by_its_line(number, tmp_path):
    lines = CONLLU.split(b"\n")
    lines[number - 1] += b"\xff"
    path = tmp_path / "latin1"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=f"latin1, line {number}: the text should be UTF-8"):
        load_conllu(path)


def test_a_byte_order_mark_is_no_text(tmp_path):
    content = CONLLU.removeprefix(b"# text\n")
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    plain, marked = load_conllu(tmp_path / "plain"), load_conllu(tmp_path / "marked")
    assert marked["words"] == plain["words"]
    assert len(plain["words"]) > 0


@pytest.mark.parametrize(
    ("token", "head", "message"),
    [
        ("3x", "2", "Failed parsing field 'id': '3x' is not a valid ID"),
        ("_", "2", "token None follows 2"),
        ("3" * 5000, "2", "Exceeds the limit"),
        ("4", "2", "token 4 follows 2"),
        ("3", "_", "HEAD of token 3 is None, no token of it"),
        ("3", "2x", "Failed parsing field 'head': '2x' is not"),
        ("3", "4", "HEAD of token 3 is 4, no token of it"),
        ("3", "-1", "HEAD of token 3 is -1, no token of it"),
        ("3", "2" * 4000, "HEAD of token 3 is 2+[.]+2+, no token of it"),
        ("3", "2" * 5000, "Exceeds the limit"),
    ],
)
def test_tokens_that_are_no_tokens_are_named_by_their_sentence(token, head, message, tmp_path):
    path = tmp_path / "bank"
    lines = [*sentence(0), "", *sentence(2, 0), line(token, "word", head)]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"bank, sentence 2: {message}") as error:
        load_conllu(path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("line", "message"), [("1 Dogs NNS", "Invalid line format"), ("1\tDogs\t_\tNNS", "HEAD of")]
)
def test_lines_without_columns_are_named_by_their_sentence(line, message, tmp_path):
    path = tmp_path / "bank"
    path.write_text(line)
    with pytest.raises(ValueError, match=f"bank, sentence 1: {message}"):
        load_conllu(path)


@pytest.mark.parametrize("punctuation", ["keep", "drop"])
@pytest.mark.parametrize("heads", [(0, 3, 2), (1, 0), (2, 3, 1, 0)])
def test_heads_that_go_round_are_named_by_their_sentence(punctuation, heads, tmp_path):
    path = tmp_path / "bank"
    path.write_text("\n".join(sentence(*heads)).replace("NOUN", "PUNCT"))
    with pytest.raises(ValueError, match="bank, sentence 1: heads form a cycle"):
        load_conllu(path, punctuation=punctuation)
