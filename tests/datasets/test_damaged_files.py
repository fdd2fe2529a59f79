"""Files that are cut off, changed or of another kind: an answer, or a ValueError that says where.

A longer run: SKVMF_FUZZ=5000 pytest tests/datasets/test_damaged_files.py
"""

import gzip
import os

import numpy as np
import pytest

from skvmf.datasets import load_conllu

pytest.importorskip("conllu", reason="needs conllu: pip install 'skvmf[treebanks]'")

N_CASES = int(os.environ.get("SKVMF_FUZZ", "150"))


def rows(*heads):
    return [f"{i}\twörd\t_\tNOUN\tNN\t_\t{h}\t_\t_\t_" for i, h in enumerate(heads, start=1)]


CONLLU = "\n".join(["# text", *rows(2, 0, 2), "", "1-2" + "\t_" * 9, *rows(2, 0), ""]).encode()


def damaged(content, rng):
    """Cut a file off, change a few of its bytes, or both."""
    content = bytearray(content)
    how = rng.integers(3)
    if how != 0:
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] = rng.integers(256)
    return bytes(content[: rng.integers(len(content))] if how != 1 else content)


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_are_read_or_refused(packed, tmp_path):
    content = gzip.compress(CONLLU, mtime=0) if packed else CONLLU
    path, rng, refusals = tmp_path / "file", np.random.default_rng(0), []
    path.write_bytes(content)
    load_conllu(path)
    for _ in range(N_CASES):
        path.write_bytes(damaged(content, rng))
        try:
            load_conllu(path)
        except ValueError as error:
            refusals.append(str(error))
    assert [message for message in refusals if not message.startswith(str(path))] == []
    assert len(refusals) > 0.3 * N_CASES


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
