"""Words that distinguish classes of texts, and groups of classes from each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from .._typing import Array

# Two letters, digits or underscores, and at least one letter: a line of underscores is no word.
TOKEN = r"(?u)\b(?=\w*[^\W\d_])\w\w+\b"
# No stop or comma, and no other word, is between the words of a phrase.
_WORDS_AND_STOPS = re.compile(r"\w+|[^\w\s-]+")
# From so many classes on, a word that is frequent in nearly all of them is taken for a stop word,
# of whatever language. With fewer, two clusters of one topic would lose its name.
_MIN_CLASSES = 5
_NEARLY_ALL = 0.9
# A class has a word if it has it a third as often as the mean class.
_SHARE_OF_MEAN = 1 / 3
# How many times as many words as are asked for may be part of a phrase.
_CANDIDATES = 4
# A phrase stands for a word if half of the uses of that are in it, and of its other word some.
_SHARE_OF_WORD = 0.5
_SHARE_OF_OTHER = 0.2
_MIN_PHRASES = 3


@dataclass(frozen=True, eq=False)
class ClassWords:
    """The counts of words in the texts of each class.

    Words that nearly all classes share are left out, unless a vectorizer was given.
    """

    words: Array
    """The words (V,)."""
    classes: Array
    """The labels of the classes with texts, in order (C,)."""
    counts: Any
    """How often each class has each word, a CSR array (C, V)."""
    is_shared: Array
    """Whether nearly all classes share a word (V,)."""
    phrases: dict[int, Counter[tuple[str, str]]] = field(default_factory=dict)
    """How often a class, by label, has two words one after the other."""

    def of_class(self, label: int, n_words: int) -> list[str]:
        """Return the words of a class with the largest class-based tf-idf.

        The root of a word's count in the texts of a class is multiplied by log(1 + A / f): A is the
        average number of words per class, and f how often the word occurs in all texts. The root
        gives frequent words less weight, which are often the same in all classes.
        """
        found = np.flatnonzero(self.classes == label)
        if len(found) == 0:
            return []
        own = self.counts[found]
        scores = np.sqrt(own.data) * self._rarity[own.indices]
        scores[self.is_shared[own.indices]] = 0
        ranked = own.indices[np.argsort(-scores, kind="stable")][: np.count_nonzero(scores)]
        names = [str(word) for word in self.words[ranked[: _CANDIDATES * n_words]]]
        phrases = self.phrases.get(int(label))
        if phrases:
            uses = dict(zip(self.words[own.indices], own.data, strict=True))
            names = with_phrases(names, phrases, uses)
        return names[:n_words]

    def beside(self, labels: Array, others: Array, n_words: int) -> list[str]:
        """Return the words that some classes together have more often than others together.

        These are the largest differences between the roots of their shares of all words, each
        multiplied by log(1 + A / f) as in class-based tf-idf.
        """
        own, other = (self._shares(each) for each in (labels, others))
        gaps = (own - other) * self._rarity
        gaps[self.is_shared] = 0
        best = np.argsort(-gaps, kind="stable")[:n_words]
        return [str(word) for word in self.words[best[gaps[best] > 0]]]

    def _shares(self, labels: Array) -> Array:
        """Return the roots of the shares that words have in the texts of some classes, (V,)."""
        rows = np.flatnonzero(np.isin(self.classes, labels))
        totals = np.asarray(self.counts[rows].sum(axis=0)).ravel()
        return np.sqrt(totals / max(totals.sum(), 1))

    @property
    def _rarity(self) -> Array:
        frequencies = np.asarray(self.counts.sum(axis=0)).ravel()
        average = frequencies.sum() / len(self.classes)
        return np.log1p(average / frequencies)


def count_words(
    texts: Sequence[str],
    labels: Array,
    n_words: int,
    vectorizer: Any = None,
    *,
    phrases: bool = True,
) -> ClassWords:
    """Count the words of texts by label, as a vectorizer does; None finds phrases, if asked to."""
    counter = vectorizer
    if counter is None:
        counter = CountVectorizer(stop_words="english", token_pattern=TOKEN)
    counter = clone(counter)
    classes, numbers = np.unique(labels, return_inverse=True)
    if hasattr(counter, "build_analyzer") and not any(map(counter.build_analyzer(), texts)):
        # scikit-learn refuses an empty vocabulary.
        nothing = sparse.csr_array((len(classes), 0))
        return ClassWords(np.empty(0, dtype=str), classes, nothing, np.zeros(0, dtype=bool))
    by_text = counter.fit_transform(texts)
    if vectorizer is None:
        # A single text that repeats a word says less about its class than several that have it.
        by_text.data = np.sqrt(by_text.data)
    n = len(texts)
    membership = sparse.csr_array((np.ones(n), (numbers, np.arange(n))), (len(classes), n))
    counts = sparse.csr_array(membership @ by_text)
    # In the order of the words, which decides between equal scores.
    counts.sort_indices()
    words = counter.get_feature_names_out()
    if vectorizer is not None:
        return ClassWords(words, classes, counts, np.zeros(len(words), dtype=bool))
    found = ClassWords(words, classes, counts, _is_shared(counts))
    if not phrases:
        return found
    candidates = {
        int(label): set(found.of_class(label, _CANDIDATES * n_words)) for label in classes
    }
    return replace(found, phrases=_pairs(texts, labels, candidates))


def with_phrases(
    names: list[str], phrases: Counter[tuple[str, str]], uses: dict[str, float]
) -> list[str]:
    """Return names with phrases in the place of words that mostly occur in them."""
    in_phrase: dict[str, str] = {}
    for (first, second), count in sorted(phrases.items(), key=lambda pair: (-pair[1], pair[0])):
        if first == second or first in in_phrase or second in in_phrase or count < _MIN_PHRASES:
            continue
        shares = {word: count / uses[word] for word in (first, second)}
        if min(shares.values()) < _SHARE_OF_OTHER or max(shares.values()) < _SHARE_OF_WORD:
            continue
        for word, share in shares.items():
            if share >= _SHARE_OF_WORD:
                in_phrase[word] = f"{first} {second}"
    chosen: list[str] = []
    said: set[str] = set()
    for name in names:
        part = in_phrase.get(name, name)
        words = set(part.split())
        if not words & said:
            chosen.append(part)
            said |= words
    return chosen


def _is_shared(counts: Any) -> Array:
    """Return which words (V,) nearly all classes have about as often."""
    n_classes = counts.shape[0]
    if n_classes < _MIN_CLASSES:
        return np.zeros(counts.shape[1], dtype=bool)
    sizes = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    rates = sparse.csr_array(sparse.diags_array(1 / sizes) @ counts)
    means = np.asarray(rates.sum(axis=0)).ravel() / n_classes
    is_often = rates.data >= _SHARE_OF_MEAN * means[rates.indices]
    n_often = np.bincount(rates.indices[is_often], minlength=counts.shape[1])
    return n_often >= _NEARLY_ALL * n_classes


def _pairs(
    texts: Sequence[str], labels: Array, candidates: dict[int, set[str]]
) -> dict[int, Counter[tuple[str, str]]]:
    """Count, for each label, how often two of its candidates follow each other in one phrase."""
    found: dict[int, Counter[tuple[str, str]]] = {label: Counter() for label in candidates}
    for text, label in zip(texts, labels.tolist(), strict=True):
        own = candidates[label]
        parts = _WORDS_AND_STOPS.findall(text.lower())
        found[label].update({pair for pair in pairwise(parts) if pair[0] in own and pair[1] in own})
    return found
