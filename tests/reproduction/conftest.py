"""Small files of the formats that ``--data`` wants, with words that tell classes apart."""

import gzip
import json
import shutil
import struct

import numpy as np
import pytest


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    """Return a folder of small files in the formats of ``--data``."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    write_lines(folder / "20news-bydate.jsonl.gz", messages(rng))
    write_lines(folder / "classic3.jsonl.gz", abstracts(rng))
    for name in ("subj", "mr"):
        write_lines(folder / f"{name}.jsonl.gz", sentences(rng))
    for name in ("med", "cran"):
        queries = [{"id": i, "text": text(rng, name, 6)} for i in range(1, 5)]
        relevant = {str(i): {f"{name}-{2 * i + j}": 1 for j in range(3)} for i in range(1, 5)}
        with gzip.open(folder / f"{name}_queries_qrels.json.gz", "wt", encoding="utf-8") as file:
            json.dump({"queries": queries, "qrels": relevant}, file)
    for split in ("train", "test"):
        with gzip.open(folder / f"en_ewt-ud-{split}.conllu.gz", "wt", encoding="utf-8") as file:
            file.writelines(trees(rng))
    shutil.copy(folder / "en_ewt-ud-train.conllu.gz", folder / "wsj_dependency_sample.conllu.gz")
    for name in ("mnist-train", "mnist-t10k", "fashion-train", "fashion-test"):
        pixels = rng.integers(0, 256, size=(64, 8, 8), dtype=np.uint8)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">2i", 0x801, 64) + bytes(range(4)) * 16)
    (folder / "stoplist_smart.txt").write_text("the\nof\ndon't\n", encoding="utf-8")
    words = [f"{topic}{a}{b}" for topic in "abcd" for a in "abcdef" for b in "abcdefghij"]
    (folder / "nvdm-vocab.new").write_text("".join(f"{word} 9\n" for word in words))
    (folder / "nvdm-test.feat").write_text("1 1:2 5:1 61:3\n2 61:1 70:2\n" * 10)
    return folder


def text(rng, topic, n_words=25):
    """Return words, most of which belong to a topic, and some stop words."""
    own = [f"{topic}{chr(97 + i // 10)}{chr(97 + i % 10)}" for i in rng.integers(60, size=n_words)]
    common = [f"common{chr(97 + i)}" for i in rng.integers(26, size=n_words // 3)]
    return " ".join(rng.permutation([*own, *common, "the", "of"]))


def messages(rng):
    """Yield messages with headers, those of training first."""
    for split in ("train", "test"):
        for group in "abcd":
            for i in range(30):
                body = f"From: someone\nSubject: {i}\n\n{text(rng, group)}"
                name = {"id": f"group.{group}/{split}{i}", "split": split}
                yield name | {"label": f"group.{group}", "text": body}


def abstracts(rng):
    for name in ("med", "cisi", "cran"):
        for i in range(40):
            title = "" if name == "med" else "title"
            own = {"id": f"{name}-{i + 1}", "label": name, "title": title}
            yield own | {"text": text(rng, name)}


def sentences(rng):
    for label in ("subjective", "objective"):
        for i in range(60):
            yield {"id": f"{label}-{i}", "label": label, "text": text(rng, label[0], 12)}


def trees(rng):
    """Yield sentences of determiners, nouns and a verb, with their heads."""
    for number in range(40):
        tags, heads = ["DT", "NN", "VB"], [2, 3, 0]
        if rng.random() < 0.5:
            tags, heads = [*tags, "DT", "NN"], [*heads, 5, 3]
        yield f"# sent_id = {number}\n"
        for i, (tag, head) in enumerate(zip(tags, heads, strict=True), 1):
            yield f"{i}\tw\t_\t{tag}\t{tag}\t_\t{head}\t_\t_\t_\n"
        yield "\n"


def write_lines(path, objects):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(own) + "\n" for own in objects)
