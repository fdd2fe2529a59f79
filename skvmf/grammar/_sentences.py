"""Sentences and heads: validation, their flat form, and scores of trees."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array

# Tags or heads, before it is known of which type they are.
Items: TypeAlias = list[Any]

# Unknown tags that an error names.
_MAX_NAMED = 5


def flatten(X: Any, name: str = "X") -> tuple[Items, Array]:
    """Return the items of sequences one after the other, and their offsets; refuse empty ones."""
    try:
        n_sentences = len(X)
    except TypeError:
        # A number, a generator or a sparse matrix.
        n_sentences = None
    if n_sentences is None or isinstance(X, str | bytes):
        raise ValueError(f"{name} should be a list of sentences, got {type(X).__name__}.")
    if n_sentences == 0:
        raise ValueError(f"{name} is empty: at least one sentence is needed.")
    items: Items = []
    lengths = []
    for i, sentence in enumerate(X):
        sentence_items = _items(sentence, f"Sentence {i} of {name}")
        items += sentence_items
        lengths.append(len(sentence_items))
    return items, np.concatenate([[0], np.cumsum(lengths)])


def _items(sentence: Any, which: str) -> Items:
    """Return the items of one sentence as a list, or raise a ValueError that says which it is."""
    if isinstance(sentence, str | bytes):
        raise ValueError(f"{which} is the string {sentence!r}: split it into a list of tags.")
    is_list = hasattr(sentence, "__len__") and not isinstance(sentence, set | frozenset | dict)
    if not is_list or getattr(sentence, "ndim", 1) != 1:
        raise ValueError(
            f"{which} should be a list or a one-dimensional array, got {type(sentence).__name__}."
        )
    if len(sentence) == 0:
        raise ValueError(f"{which} is empty: leave empty sentences out.")
    return sentence.tolist() if isinstance(sentence, np.ndarray) else list(sentence)


def flatten_tags(X: Any, name: str = "X") -> tuple[Items, Array]:
    """Return tags, all strings or all integers, one after the other, and their offsets."""
    items, offsets = flatten(X, name)
    kinds = {type(item) for item in items}
    if all(map(_is_string, kinds)) or all(map(_is_integer, kinds)):
        return items, offsets
    # The error names the first tag that is not as the first of all.
    is_expected = _is_string if isinstance(items[0], str) else _is_integer
    i = next(i for i, item in enumerate(items) if not is_expected(type(item)))
    sentence = int(np.searchsorted(offsets, i, side="right")) - 1
    raise ValueError(
        f"Tags should be all strings or all integers: sentence {sentence} of {name} has "
        f"{items[i]!r}, of type {type(items[i]).__name__}."
    )


def _is_string(kind: type) -> bool:
    return issubclass(kind, str)


def _is_integer(kind: type) -> bool:
    return issubclass(kind, Integral) and not issubclass(kind, bool)


def check_tag_set(tags: ArrayLike) -> Array:
    """Return distinct tags, all strings or all integers, as an array."""
    items, _ = flatten_tags([tags], name="tags")
    if len(set(items)) < len(items):
        raise ValueError("tags should be distinct.")
    return tag_array(items)


def tag_array(items: Items) -> Array:
    """Return tags as an array, of objects if strings or integers would lose something."""
    array = np.array(items)
    if array.dtype.kind in "iuU" and array.tolist() == items:
        return array
    return np.array(items, dtype=object)


def number_tags(items: Items, tags: Array, unknown: int | None = None) -> Array:
    """Return each item's number in `tags`; `unknown` for others, or None to raise a ValueError."""
    number = {tag: i for i, tag in enumerate(tags.tolist())}
    missing = sorted(set(items) - set(number), key=str)
    if missing and unknown is None:
        names = list(map(repr, missing[:_MAX_NAMED]))
        if len(missing) > _MAX_NAMED:
            names.append("...")
        raise ValueError(
            f"Unknown tags: {', '.join(names)}. List every tag in the parameter `tags`, or set "
            "unknown_tags='average' to parse them like the average of the known ones."
        )
    return np.array([number.get(item, unknown) for item in items], dtype=np.int64)


def flatten_heads(y: Any, name: str = "y") -> tuple[Array, Array]:
    """Return heads one after the other as int64, and their offsets."""
    items, offsets = flatten(y, name)
    if not all(map(_is_integer, {type(item) for item in items})):
        raise ValueError(f"{name} should hold integers: positions from 1, or 0 for the root.")
    lengths = np.diff(offsets)
    limits = np.repeat(lengths, lengths)
    outside = [not 0 <= item <= limit for item, limit in zip(items, limits.tolist(), strict=True)]
    _refuse(offsets, np.array(outside), name, "a head outside 0 to the number of its tags")
    return np.array(items, dtype=np.int64), offsets


def check_trees(y: Any, offsets: Array) -> Array:
    """Return given heads as one int64 array, or raise a ValueError if they do not form trees."""
    heads, starts = flatten_heads(y)
    if len(starts) != len(offsets):
        raise ValueError(f"X has {len(offsets) - 1} sentences, y has {len(starts) - 1}.")
    lengths = np.diff(offsets)
    n_heads = np.diff(starts)
    differing = np.flatnonzero(n_heads != lengths)
    if len(differing):
        i = differing[0]
        raise ValueError(f"Sentence {i} has {lengths[i]} tags but {n_heads[i]} heads.")
    roots = np.add.reduceat(heads == 0, offsets[:-1], dtype=np.int64)
    _refuse(offsets, np.repeat(roots > 1, lengths), "y", "more than one root (head 0)")
    _refuse(offsets, in_cycles(heads, offsets), "y", "heads that form a cycle")
    return heads


def in_cycles(heads: Array, offsets: Array) -> Array:
    """Return which tokens' chains of heads are cycles: double the steps until all have ended."""
    lengths = np.diff(offsets)
    # The end is one place behind the last token, and its own head.
    end = len(heads)
    up = np.where(heads == 0, end, np.repeat(offsets[:-1], lengths) + heads - 1)
    up = np.append(up, end)
    for _ in range(int(lengths.max()).bit_length()):
        up = up[up]
    return up[:-1] != end


def _refuse(offsets: Array, is_wrong: Array, name: str, problem: str) -> None:
    """Raise a ValueError that names the first sentence with a wrong head, if there is one."""
    if not is_wrong.any():
        return
    sentence = int(np.searchsorted(offsets, np.argmax(is_wrong), side="right")) - 1
    raise ValueError(
        f"Sentence {sentence} of {name} has {problem}: heads should be one tree over the "
        "sentence, with positions from 1 and exactly one 0."
    )


def attachment_score(
    y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike], directed: bool = True
) -> float:
    """Return the fraction of tokens that are attached as in the given trees.

    Parameters
    ----------
    y_true, y_pred : sequence of array-like of int
        The true and the predicted head of every token of every sentence, as positions from 1; 0 is
        the root.
    directed : bool, default=True
        Whether a token must have the right head. If false, it suffices that the given tree links
        the token and its predicted head in either direction (Klein and Manning, ACL 2004).

    Returns
    -------
    score : float
        Between 0 and 1; every token counts the same, including the root.

    Raises
    ------
    ValueError
        If the two differ in shape, a sentence is empty, or a head is not a position in it.

    Examples
    --------
    >>> from skvmf.grammar import attachment_score
    >>> attachment_score([[2, 0, 2]], [[0, 1, 2]], directed=False)
    0.6666666666666666
    """
    true_heads, offsets = flatten_heads(y_true, "y_true")
    heads, predicted_offsets = flatten_heads(y_pred, "y_pred")
    if not np.array_equal(offsets, predicted_offsets):
        raise ValueError("y_true and y_pred should have the same sentences, token by token.")
    correct = true_heads == heads
    if not directed:
        tokens = np.arange(len(heads))
        positions = tokens - np.repeat(offsets[:-1], np.diff(offsets)) + 1
        predicted = tokens + heads - positions
        # Also if the token is the true head of its predicted head.
        correct |= (heads > 0) & (true_heads[predicted] == positions)
    return float(correct.mean())
