"""Small files of the formats that ``--data`` wants, with words that tell classes apart."""

import gzip
import json
import struct

import numpy as np

GROUPS = [f"group.{letter}" for letter in "abcd"]


def make(folder):
    """Write all files into a folder."""
    rng = np.random.default_rng(0)
    write_lines(folder / "20news-bydate.jsonl.gz", list(messages(rng)))
    write_lines(folder / "classic3.jsonl.gz", list(abstracts(rng)))
    for name in ("subj", "mr"):
        write_lines(folder / f"{name}.jsonl.gz", list(sentences(rng)))
    for name in ("med", "cran"):
        write_judgements(folder / f"{name}_queries_qrels.json.gz", name, rng)
    for split in ("train", "test"):
        with gzip.open(folder / f"en_ewt-ud-{split}.conllu.gz", "wt", encoding="utf-8") as file:
            file.writelines(trees(rng))
    for name in ("mnist-train", "mnist-t10k", "fashion-train", "fashion-test"):
        pixels = rng.integers(0, 256, size=(64, 8, 8), dtype=np.uint8)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
    for name in ("mnist-train", "fashion-train"):
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">2i", 0x801, 64) + bytes(range(4)) * 16)
    (folder / "stoplist_smart.txt").write_text("the\nof\ndon't\n", encoding="utf-8")


def text(rng, topic, n_words=25):
    """Return words, most of which belong to a topic, and some stop words."""
    own = [f"{topic}{chr(97 + i // 10)}{chr(97 + i % 10)}" for i in rng.integers(60, size=n_words)]
    common = [f"common{chr(97 + i)}" for i in rng.integers(26, size=n_words // 3)]
    return " ".join(rng.permutation([*own, *common, "the", "of"]))


def messages(rng, per_group=30):
    """Yield messages with headers, those of training first."""
    for split in ("train", "test"):
        for group in GROUPS:
            for i in range(per_group):
                body = text(rng, group[-1])
                yield {
                    "id": f"{group}/{split}{i}",
                    "split": split,
                    "label": group,
                    "text": f"From: someone\nSubject: {i}\n\n{body}",
                }


def abstracts(rng, per_class=40):
    """Yield abstracts of three collections."""
    for name in ("med", "cisi", "cran"):
        for i in range(per_class):
            yield {
                "id": f"{name}-{i + 1}",
                "label": name,
                "title": "" if name == "med" else "title",
                "text": text(rng, name),
            }


def sentences(rng, per_class=60):
    """Yield subjective and objective sentences."""
    for label, topic in (("subjective", "s"), ("objective", "o")):
        for i in range(per_class):
            yield {"id": f"{label}-{i}", "label": label, "text": text(rng, topic, 12)}


def write_judgements(path, name, rng):
    """Write queries whose first abstracts are relevant."""
    queries = [{"id": i, "text": text(rng, name, 6)} for i in range(1, 5)]
    relevant = {str(i): {f"{name}-{2 * i + j}": 1 for j in range(3)} for i in range(1, 5)}
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"queries": queries, "qrels": relevant}, file)


def trees(rng, n_sentences=40):
    """Yield sentences of determiners, nouns and a verb, with their heads."""
    for number in range(n_sentences):
        tags, heads = ["DT", "NN", "VB"], [2, 3, 0]
        if rng.random() < 0.5:
            tags, heads = [*tags, "DT", "NN"], [*heads, 5, 3]
        yield f"# sent_id = {number}\n"
        for i, (tag, head) in enumerate(zip(tags, heads, strict=True), 1):
            yield f"{i}\tw\t_\t{tag}\t{tag}\t_\t{head}\t_\t_\t_\n"
        yield "\n"


def write_lines(path, objects):
    """Write objects as JSON lines."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(o) + "\n" for o in objects)
