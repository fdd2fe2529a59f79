"""Parts of the files of data have the same format, order and classes."""

import numpy as np
import pytest

from reproduction import reduced, texts
from reproduction.__main__ import main
from reproduction.instruments.idx import load_idx
from skvmf.datasets import load_conllu


@pytest.fixture
def parts(small_folder, tmp_path, monkeypatch):
    """Return a folder of parts of the small files."""
    monkeypatch.setattr(reduced, "EACH", {"20news-bydate.jsonl.gz": 7, "subj.jsonl.gz": 5})
    monkeypatch.setattr(reduced, "SENTENCES", 12)
    monkeypatch.setattr(reduced, "IMAGES", 9)
    reduced.copy(small_folder, tmp_path)
    return tmp_path


def test_lines_are_taken_from_all_classes(small_folder, parts):
    name = "20news-bydate.jsonl.gz"
    whole, part = (texts.read(folder / name) for folder in (small_folder, parts))
    assert part == whole[::7]
    assert {own["label"] for own in part} == {own["label"] for own in whole}


def test_sentences_and_images_are_the_first(small_folder, parts):
    name = "en_ewt-ud-train.conllu.gz"
    whole, part = (load_conllu(folder / name) for folder in (small_folder, parts))
    assert part.tags == whole.tags[:12]
    for name in ("mnist-train-images-idx3-ubyte.gz", "mnist-train-labels-idx1-ubyte.gz"):
        whole, part = (load_idx(folder / name) for folder in (small_folder, parts))
        np.testing.assert_array_equal(part, whole[:9])


def test_what_judgements_name_is_whole(small_folder, parts):
    for name in ("classic3.jsonl.gz", "stoplist_smart.txt"):
        assert (parts / name).read_bytes() == (small_folder / name).read_bytes()


def test_a_small_run_reads_parts(small_folder, monkeypatch, capsys):
    monkeypatch.setattr(reduced, "EACH", {"20news-bydate.jsonl.gz": 2})
    for options, rows in (([], 240), (["--small"], 120)):
        assert main(["P0.tab1", "--data", str(small_folder), *options]) == 0
        (line,) = (own for own in capsys.readouterr().out.splitlines() if "18,803 x" in own)
        assert f" {rows} x" in line
