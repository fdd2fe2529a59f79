"""What texts say about clusters: their words, and how the most typical texts begin."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from .._typing import Array

_LENGTH = 60  # of the beginning of a text, in characters


def checked_texts(texts: Any, n_rows: int) -> Sequence[str]:
    """Return one text per row, or say what is wrong with them."""
    if isinstance(texts, str):
        raise TypeError("texts should be a sequence of strings, one per row, got one string.")
    one_per_row: list[str] = list(texts)
    if len(one_per_row) != n_rows:
        raise ValueError(
            f"texts should be one per row: X has {n_rows} rows, got {len(one_per_row)}."
        )
    for i, text in enumerate(one_per_row):
        if not isinstance(text, str):
            raise TypeError(f"texts should be strings, got {type(text).__name__} at index {i}.")
    return one_per_row


def class_words(
    texts: Sequence[str], labels: Array, classes: Array, n_words: int, vectorizer: Any = None
) -> list[list[str]]:
    """Return the words of each class with the largest class-based tf-idf.

    The root of a word's count in the texts of a class is multiplied by log(1 + A / f): A is the
    average number of words per class, and f how often the word occurs in all texts. The root gives
    frequent words less weight, which are often the same in all classes.
    """
    counter = CountVectorizer(stop_words="english") if vectorizer is None else clone(vectorizer)
    counts = counter.fit_transform(texts)
    words = counter.get_feature_names_out()
    all_classes, numbers = np.unique(labels, return_inverse=True)
    n = len(texts)
    members = sparse.csr_array((np.ones(n), (numbers, np.arange(n))), (len(all_classes), n))
    by_class = sparse.csr_array(members @ counts)
    by_class.sort_indices()  # in the order of the words, which decides between equal scores
    frequencies = np.asarray(by_class.sum(axis=0)).ravel()
    average = frequencies.sum() / len(all_classes)
    by_class.data = np.sqrt(by_class.data) * np.log1p(average / frequencies[by_class.indices])
    best = {}
    for k, begin, end in zip(all_classes, by_class.indptr, by_class.indptr[1:], strict=False):
        order = np.argsort(-by_class.data[begin:end], kind="stable")[:n_words]
        best[k] = [str(word) for word in words[by_class.indices[begin:end][order]]]
    return [best.get(k, []) for k in classes]


def beginning(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: 10 * _LENGTH].split())
    return (
        line if len(line) <= _LENGTH else line[: _LENGTH - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
    )
