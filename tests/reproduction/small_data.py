"""Small files of the formats that ``--data`` wants, with words that tell classes apart."""

import gzip
import json

import numpy as np

GROUPS = [f"group.{letter}" for letter in "abcd"]


def make(folder):
    """Write all files into a folder."""
    rng = np.random.default_rng(0)
    write_lines(folder / "20news-bydate.jsonl.gz", list(messages(rng)))
    write_lines(folder / "classic3.jsonl.gz", list(abstracts(rng)))
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


def write_lines(path, objects):
    """Write objects as JSON lines."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(o) + "\n" for o in objects)
