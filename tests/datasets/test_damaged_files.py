"""Files that are cut off, changed or of another kind: an answer, or a ValueError that says where.

A longer run: SKVMF_FUZZ=5000 pytest tests/datasets/test_damaged_files.py
"""

import gzip
import json
import os

import numpy as np
import pytest

from skvmf.datasets import load_conllu, load_jsonl

pytest.importorskip("conllu", reason="needs conllu: pip install 'skvmf[treebanks]'")

N_CASES = int(os.environ.get("SKVMF_FUZZ", "150"))


def rows(*heads):
    return [f"{i}\twörd\t_\tNOUN\tNN\t_\t{h}\t_\t_\t_" for i, h in enumerate(heads, start=1)]


CONLLU = "\n".join(["# text", *rows(2, 0, 2), "", "1-2" + "\t_" * 9, *rows(2, 0), ""]).encode()
JSONL = "\n".join(
    json.dumps({"text": f"wörd {i}", "label": "ab"[i % 2]}, ensure_ascii=False) for i in range(9)
).encode()
READERS = {"conllu": (load_conllu, CONLLU), "jsonl": (load_jsonl, JSONL)}


def damaged(content, rng):
    """Cut a file off, change a few of its bytes, or both."""
    content = bytearray(content)
    how = rng.integers(3)
    if how != 0:
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] = rng.integers(256)
    return bytes(content[: rng.integers(len(content))] if how != 1 else content)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_are_read_or_refused(kind, packed, tmp_path):
    read, content = READERS[kind]
    content = gzip.compress(content, mtime=0) if packed else content
    path, rng, refusals = tmp_path / "file", np.random.default_rng(0), []
    path.write_bytes(content)
    read(path)
    for _ in range(N_CASES):
        path.write_bytes(damaged(content, rng))
        try:
            read(path)
        except ValueError as error:
            refusals.append(str(error))
    assert [message for message in refusals if not message.startswith(str(path))] == []
    assert len(refusals) > 0.3 * N_CASES


@pytest.mark.parametrize("kind", READERS)
def test_gzip_cut_off_anywhere_is_said_to_be(kind, tmp_path):
    read, content = READERS[kind]
    path = tmp_path / "file.gz"
    for size in (*range(3, 40), -9, -8, -1):
        path.write_bytes(gzip.compress(content)[:size])
        with pytest.raises(ValueError, match=r"file.gz.*: the compressed file is damaged or cut"):
            read(path)


@pytest.mark.parametrize("kind", READERS)
def test_the_contents_say_whether_a_file_is_compressed(kind, tmp_path):
    read, content = READERS[kind]
    answers = []
    for name, data in (("a.gz", content), ("b", gzip.compress(content)), ("c", content)):
        (tmp_path / name).write_bytes(data)
        answers += [read(tmp_path / name), read(str(tmp_path / name))]
    for answer in answers:
        if kind == "jsonl":
            del answer["DESCR"]  # names the file
        np.testing.assert_equal(answer, answers[0])


@pytest.mark.parametrize("kind", READERS)
def test_what_is_no_file_is_an_error_of_the_system(kind, tmp_path):
    read, _ = READERS[kind]
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")
    with pytest.raises((IsADirectoryError, PermissionError)):  # PermissionError on Windows
        read(tmp_path)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_text_that_is_not_utf8_is_named_by_its_line(kind, number, tmp_path):
    read, content = READERS[kind]
    lines = content.split(b"\n")
    lines[number - 1] += b"\xff"
    path = tmp_path / "latin1"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=f"latin1, line {number}: the text should be UTF-8"):
        read(path)


@pytest.mark.parametrize("kind", READERS)
def test_a_byte_order_mark_is_no_text(kind, tmp_path):
    read, content = READERS[kind]
    content = content.removeprefix(b"# text\n")
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    plain, marked = read(tmp_path / "plain"), read(tmp_path / "marked")
    first = "words" if kind == "conllu" else "data"
    assert marked[first] == plain[first]
    assert len(plain[first]) > 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[" * 100_000, "is not valid JSON"),
        ('{"text": "a", "label": ' + "[" * 100_000, "is not valid JSON"),
        ('{"text": "a", "label": ' + "9" * 5000 + "}", "is not valid JSON: .*digits"),
        ('{"text": "a", "label": 1}', "field 'label' is 1, and was 'ab' at first"),
        ('{"text": "a", "label": 1.5}', "must be a string or an integer, got 1.5"),
        ('{"text": ' + "[1, " * 50 + "1" + "]" * 50 + ', "label": "b"}', "must be a string, got"),
    ],
    ids=["deep", "deeper", "long", "mixed", "float", "list"],
)
def test_json_that_cannot_be_used_is_named_by_its_line(value, message, tmp_path):
    path = tmp_path / "texts"
    path.write_text('{"text": "a", "label": "ab"}\n\n' + value)
    with pytest.raises(ValueError, match=f"texts, line 3.* {message}") as error:
        load_jsonl(path)
    assert len(str(error.value)) < 500


def test_classes_are_one_kind_and_keep_their_values(tmp_path):
    path = tmp_path / "texts"
    path.write_text("\n".join(f'{{"text": "a", "label": {label}}}' for label in (1, 2**70, -3, 1)))
    corpus = load_jsonl(path)
    assert corpus.target_names == [-3, 1, 2**70]
    assert corpus.target.tolist() == [1, 2, 0, 1]
    path.write_text('{"text": "a", "label": 1}\n{"text": "a", "label": "1"}')
    with pytest.raises(ValueError, match="line 2: field 'label' is '1', and was 1 at first"):
        load_jsonl(path)


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
    lines = [*rows(0), "", *rows(2, 0), f"{token}\tword\t_\t_\t_\t_\t{head}\t_\t_\t_"]
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
    path.write_text("\n".join(rows(*heads)).replace("NOUN", "PUNCT"))
    with pytest.raises(ValueError, match="bank, sentence 1: heads form a cycle"):
        load_conllu(path, punctuation=punctuation)
