"""The papers' collections of texts as tf-idf rows.

The preprocessing is that of Table 1 of Nonnenmacher and Sahani, "A solution for the mean
parametrization of the von Mises-Fisher distribution", which their text leaves in part unsaid:
scikit-learn's tokens, smoothed idf and unit rows, the SMART stop words cut into the same tokens,
no word in more than 15 % of the texts, and no text without a word.
"""

import gzip
import json
import re

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

CLASSES = ["med", "cisi", "cran"]


def classic3(folder):
    """Return rows and labels of MEDLINE, CISI and Cranfield abstracts: (3891, 4674)."""
    texts, labels = _abstracts(folder)
    return _rows(texts, labels, stop_words(folder), min_df=7)


def classic300(folder):
    """Return rows and labels of a hundred abstracts of each: (300, 2551)."""
    texts, labels = _abstracts(folder)
    rng = np.random.RandomState(0)
    chosen = [rng.permutation(np.flatnonzero(labels == name))[:100] for name in CLASSES]
    chosen = np.concatenate(chosen)
    return _rows(texts[chosen], labels[chosen], stop_words(folder), min_df=2)


def news20(folder):
    """Return rows and labels of the 20 newsgroups without their headers: (18803, 28571)."""
    bodies, labels, _ = messages(folder)
    return _rows(bodies, labels, stop_words(folder), min_df=6)


def news20_small(folder):
    """Return rows and labels of a hundred messages of each group: (2000, 16218).

    They are drawn from bodies of 20 characters or more, in the order of scikit-learn's loader: it
    shuffles training and test messages apart with seed 0, and all of them with seed 42.
    """
    bodies, labels, splits = messages(folder)
    order = []
    for split in ("train", "test"):
        part = np.flatnonzero(splits == split)
        np.random.RandomState(0).shuffle(part)
        order.extend(part)
    np.random.RandomState(42).shuffle(order)
    bodies, labels = bodies[order], labels[order]
    long = np.array([len(body) >= 20 for body in bodies])
    rng = np.random.RandomState(0)
    chosen = [
        rng.permutation(np.flatnonzero(long & (labels == name)))[:100] for name in np.unique(labels)
    ]
    chosen = np.concatenate(chosen)
    return _rows(bodies[chosen], labels[chosen], stop_words(folder), min_df=2)


def _abstracts(folder):
    """Return texts and labels: sections that only repeat a stray mark are left out."""
    texts, labels = [], []
    for document in read(folder / "classic3.jsonl.gz"):
        text = document["text"][document.get("last_section_start", 0) :]
        texts.append(f"{document['title']}. {text}" if document["label"] == "cisi" else text)
        labels.append(document["label"])
    return np.array(texts, dtype=object), np.array(labels)


def messages(folder):
    """Return the messages of the 20 newsgroups without headers, their groups and their splits."""
    found = read(folder / "20news-bydate.jsonl.gz")
    bodies = np.array([own["text"].partition("\n\n")[2] for own in found], dtype=object)
    return bodies, *(np.array([own[name] for own in found]) for name in ("label", "split"))


def read(path):
    """Return the objects of a file of JSON lines, compressed by gzip."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def stop_words(folder):
    """Return the SMART stop words, cut as scikit-learn cuts texts."""
    words = (folder / "stoplist_smart.txt").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"\b\w\w+\b", words.lower())))


def _rows(texts, labels, stop_words, min_df):
    X = TfidfVectorizer(stop_words=stop_words, min_df=min_df, max_df=0.15).fit_transform(texts)
    kept = np.diff(X.indptr) > 0
    return X[kept], np.unique(labels, return_inverse=True)[1][kept]
