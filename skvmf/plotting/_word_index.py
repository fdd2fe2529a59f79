"""An index of the words of texts, small enough for the file that is searched."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from .._typing import Array

# Words of one text only are most of all words. The search finds them in what is shown of texts.
_MIN_TEXTS = 2


def word_index(texts: Sequence[str]) -> dict[str, str]:
    """Return which texts have each word: words in order, a line each, and numbers of texts.

    Both are compressed by deflate, in base64.

    A word has the number of its texts and then the gaps between their numbers, each in groups of
    seven bits, the lowest first, with 128 added to all groups of a number but the last.
    """
    counter = CountVectorizer(token_pattern=r"(?u)\b\w+\b", binary=True)
    if not any(map(counter.build_analyzer(), texts)):
        return {"words": "", "texts": ""}
    by_word = counter.fit_transform(texts).tocsc()
    by_word.sort_indices()
    n_texts = np.diff(by_word.indptr)
    words = counter.get_feature_names_out()
    kept = np.flatnonzero(n_texts >= _MIN_TEXTS)
    by_word = by_word[:, kept]
    if len(kept) == 0:
        return {"words": "", "texts": ""}
    starts = by_word.indptr[:-1]
    gaps = np.diff(by_word.indices, prepend=0)
    # The first of a word is its number itself, and before it comes how many there are.
    gaps[starts] = by_word.indices[starts]
    packed = _packed(np.insert(gaps, starts, n_texts[kept]))
    lines = "\n".join(words[kept].tolist()).encode("utf-8", "replace")
    return {"words": _compressed(lines), "texts": _compressed(packed)}


def _compressed(content: bytes) -> str:
    return b64encode(zlib.compress(content, 9)).decode("ascii")


def _packed(numbers: Array) -> bytes:
    """Return numbers in groups of seven bits."""
    numbers = numbers.astype(np.int64)
    n_groups = np.maximum(1, (np.frexp(numbers.astype(float))[1] + 6) // 7)
    ends = np.cumsum(n_groups)
    packed = np.zeros(int(ends[-1]), dtype=np.uint8)
    for group in range(int(n_groups.max())):
        has = n_groups > group
        is_last = (n_groups == group + 1)[has]
        places = (ends - n_groups)[has] + group
        packed[places] = (numbers[has] >> (7 * group)) & 127 | np.where(is_last, 0, 128)
    return packed.tobytes()
