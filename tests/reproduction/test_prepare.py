"""Public files become what the items read."""

import gzip
import io
import json
import struct
import tarfile

import numpy as np
import pytest

from reproduction import p4_representations, prepare, texts
from reproduction.instruments.idx import load_idx
from skvmf.datasets import load_conllu


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_messages_are_sorted_by_split_group_and_number(tmp_path):
    archive = tmp_path / "20news-bydate.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in [
            ("20news-bydate-test/b/1", b"From: x\r\n\r\ncaf\xe9"),
            ("20news-bydate-train/b/2", b"two"),
            ("20news-bydate-train/a/10", b"ten"),
            ("20news-bydate-train/a/9", b"nine"),
        ]:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    assert prepare.main(["newsgroups", str(archive), "--data", str(tmp_path)]) == 0
    found = lines(tmp_path / "20news-bydate.jsonl.gz")
    assert [m["id"] for m in found] == ["a/10", "a/9", "b/2", "b/1"]
    assert found[-1] == {
        "id": "b/1", "split": "test", "label": "b", "text": "From: x\n\ncafé"
    }  # fmt: skip


def test_abstracts_are_cut_into_sections(tmp_path):
    for name, text in [
        ("MED.ALL", ".I 1\n.W\nblood\ncells\n.I 2\n.W\nbone\n"),
        ("CISI.ALL", ".I 1\n.T\nLibrary\nscience\n.A\nX\n.W\nbooks\n.X\n1 2 3\n"),
        ("cran.all", ".I 1\n.T\nwings\n.A\nY\n.B\nZ\n.W\nlift and drag\n"),
    ]:
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("MED.ALL", "CISI.ALL", "cran.all")]
    prepare.main(["abstracts", *files, "--data", str(tmp_path)])
    found = lines(tmp_path / "classic3.jsonl.gz")
    assert [(d["id"], d["title"], d["text"]) for d in found] == [
        ("med-1", "", "blood\ncells"),
        ("med-2", "", "bone"),
        ("cisi-1", "Library science", "books"),
        ("cran-1", "wings", "lift and drag"),
    ]
    kept, labels = texts._abstracts(tmp_path)
    assert kept.tolist() == ["blood\ncells", "bone", "Library science. books", "lift and drag"]
    assert labels.tolist() == ["med", "med", "cisi", "cran"]


@pytest.mark.parametrize(
    ("kind", "relations", "expected"),
    [
        ("med", "1 0 13 1\n2 0 7 1\n", {"1": {"med-13": 1}, "2": {"med-7": 1}}),
        ("cran", "1 13 2\n2 7 -1\n", {"1": {"cran-13": 2}, "2": {"cran-7": -1}}),
        ("cisi", "1 3\t0\t0.0\n1 4\t0\t0.0\n", {"1": {"cisi-3": 1, "cisi-4": 1}, "2": {}}),
    ],
)
def test_judgements_belong_to_queries(tmp_path, kind, relations, expected):
    second = 4 if kind == "cran" else 2  # Cranfield's judgements count positions
    (tmp_path / "q").write_text(f".I 1\n.W\nwhat\n.I {second}\n.W\nwhy\n")
    (tmp_path / "r").write_text(relations)
    prepare.main([kind, str(tmp_path / "q"), str(tmp_path / "r"), "--data", str(tmp_path)])
    with gzip.open(tmp_path / f"{kind}_queries_qrels.json.gz", "rt") as file:
        found = json.load(file)
    assert [query["text"] for query in found["queries"]] == ["what", "why"]
    assert found["qrels"] == expected


def test_a_collection_may_have_its_own_documents(tmp_path):
    for name, text in (
        ("d", ".I 1\n.W\nwaves\n.I 2\n.W\nnoise\n"),
        ("q", ".I 7\n.W\nwhat\n.I 8\n.W\nwhy\n"),
        ("r", "7 1  2\n"),
    ):
        (tmp_path / name).write_text(text)
    prepare.main(["npl", *(str(tmp_path / n) for n in "dqr"), "--data", str(tmp_path)])
    found, queries, relevant = p4_representations.judged(tmp_path, "npl")
    assert (found, queries) == (["waves", "noise"], ["what"])  # the other is not judged
    assert relevant.tolist() == [[True, True]]


def test_sentences_have_the_label_of_their_file(tmp_path):
    (tmp_path / "a").write_bytes(b"one \ntwo\n")
    (tmp_path / "b").write_bytes(b"caf\xe9\n")
    prepare.main(["mr", str(tmp_path / "a"), str(tmp_path / "b"), "--data", str(tmp_path)])
    assert [(d["label"], d["text"]) for d in lines(tmp_path / "mr.jsonl.gz")] == [
        ("positive", "one"),
        ("positive", "two"),
        ("negative", "café"),
    ]


def test_stop_words_lose_their_comment(tmp_path):
    (tmp_path / "english.stop").write_text("# SMART\na\ndon't\n")
    prepare.main(["stopwords", str(tmp_path / "english.stop"), "--data", str(tmp_path)])
    assert texts.stop_words(tmp_path) == ["don"]


def test_sources_are_listed(capsys):
    assert prepare.main([]) == 0
    printed = capsys.readouterr().out
    assert all(kind in printed for kind in prepare.READERS)
    assert set(prepare.READERS) == set(prepare.sources())


def test_a_checksum_tells_other_contents(tmp_path):
    path = tmp_path / "subj.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"other")
    assert "not byte for byte" in prepare.compared(path, "9e46")


def test_a_treebank_is_compressed(tmp_path):
    (tmp_path / "en_ewt-ud-test.conllu").write_text("1\tGo\t_\tVERB\tVB\t_\t0\t_\t_\t_\n\n")
    prepare.main(["ewt", str(tmp_path / "en_ewt-ud-test.conllu"), "--data", str(tmp_path)])
    bank = load_conllu(tmp_path / "en_ewt-ud-test.conllu.gz", tags="upos")
    assert [list(tags) for tags in bank.tags] == [["VERB"]]


def test_dependencies_become_the_columns_of_a_treebank(tmp_path):
    text = "Go\tVB\t0\n.\t.\t1\n\nThey\tPRP\t2\ngo\tVBP\t0\n"
    (tmp_path / "wsj_0001.dp").write_text(text)
    prepare.main(["wsj", str(tmp_path / "wsj_0001.dp"), "--data", str(tmp_path)])
    bank = load_conllu(tmp_path / "wsj_dependency_sample.conllu.gz", tags="xpos")
    assert [list(tags) for tags in bank.tags] == [["VB"], ["PRP", "VBP"]]
    assert [list(heads) for heads in bank.heads] == [[0], [2, 0]]


def test_images_are_the_first_of_each_class(tmp_path):
    rng, files = np.random.default_rng(0), []
    for split, number in (("train", 12_000), ("t10k", 3000)):
        y = rng.integers(10, size=number).astype(np.uint8)
        pixels = np.repeat(y, 4).reshape(-1, 2, 2)
        pixels[:, 0] = np.arange(number)[:, np.newaxis] % 256
        for kind, values in (("images", pixels), ("labels", y)):
            path = tmp_path / f"{split}-{kind}"
            head = struct.pack(f">{1 + values.ndim}i", 0x800 + values.ndim, *values.shape)
            path.write_bytes(head + values.tobytes())
            files.append(str(path))
    prepare.main(["fashion", *files, "--data", str(tmp_path)])
    for split, number in (("train", 1000), ("test", 200)):
        y = load_idx(tmp_path / f"fashion-{split}-labels-idx1-ubyte.gz")
        pixels = load_idx(tmp_path / f"fashion-{split}-images-idx3-ubyte.gz")
        assert (y == np.arange(10 * number) % 10).all()
        assert (pixels[:, 1, 0] == y).all()
